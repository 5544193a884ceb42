package measure_test

import (
	"bytes"
	"testing"

	"deduplab/measure"
)

func FuzzRead(f *testing.F) {
	for _, src := range []string{
		"id,at\na,1\na,9\n", "{\"id\": 1, \"at\": 9e999}\n",
		"id,at\nNaN,9999-12-31T23:59:59Z\nNaN,0001-01-01T00:00:00Z\n",
		"PAR1PAR1", "\x1f\x8b", "\x28\xb5\x2f\xfd", "id,at\na,-9223372036854775808\na,9223372036854775807\n"} {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		r, err := measure.NewReader(measure.Columns{Keys: key("id"), EventTime: "at"}, true)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if r.Read("x", bytes.NewReader(src)) == nil {
			_, _ = r.Report(measure.Options{})
		}
	})
}
