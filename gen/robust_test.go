package gen_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"runtime"
	"strings"
	"testing"

	"deduplab/gen"
)

// endless is a file of one byte over and over, n times.
type endless struct {
	b byte
	n int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.n <= 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), e.n)
	for i := range p[:n] {
		p[i] = e.b
	}
	e.n -= n
	return int(n), nil
}

// A record of a gigabyte, written out or compressed, and a quote that is never closed end in an error, not in all of
// the memory.
func TestTraceTooLong(t *testing.T) {
	const gigabyte = 1 << 30
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	if _, err := io.Copy(w, io.MultiReader(strings.NewReader("id,at\n"), &endless{'a', 64 << 20})); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]io.Reader{
		"a line of CSV":  io.MultiReader(strings.NewReader("id,at\n"), &endless{'a', gigabyte}),
		"a header":       &endless{'a', gigabyte},
		"an open quote":  io.MultiReader(strings.NewReader("id,at\n\""), &endless{'\n', gigabyte}),
		"a line of JSON": io.MultiReader(strings.NewReader("{\"id\": \""), &endless{'a', gigabyte}),
		"a bomb":         &bomb,
		"a deep object":  io.MultiReader(strings.NewReader("{"), &endless{'[', gigabyte}),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := gen.ReadTrace("x", file, gen.TraceSpec{Columns: gen.TraceColumns{Key: []string{"id"}, EventTime: "at"}})
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "longer than 16 MB") {
			t.Errorf("%s: %.200v", name, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 512<<20 {
			t.Errorf("%s: %d MB were taken", name, used>>20)
		}
	}
}

func FuzzReadTrace(f *testing.F) {
	for _, src := range []string{
		"id,at\na,1\nb,2\n", "{\"id\": 1, \"at\": \"2026-01-01T00:00:00Z\"}\n{\"at\": 9e999}\n",
		"id,at\nNaN,9999-12-31T23:59:59Z\n",
		"id,at\na,99999999999999999999\n", "at,id\n-1,\n", "id,at\n\"",
		"\xef\xbb\xbfid,at\n\x00,\xff\n", "{}", "{\"id\":{}}\n[",
		"\x1f\x8b", "id,at\na,1e308\na,-1e308\n",
	} {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		w, err := gen.ReadTrace("x", bytes.NewReader(src), gen.TraceSpec{
			Columns: gen.TraceColumns{Key: []string{"id"}, EventTime: "at"}, Partitions: 3,
		})
		if err == nil {
			checkLookups(t, w, collect(t, w))
		}
	})
}
