package conformance

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzRead reads files that may be recorded cases, and replays those that are: whatever stands in one, the answer is an
// error or a list of differences.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/flink/*/ttl*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	for _, src := range []string{
		"", "{}", "[", `{"strategy": "ptf", "steps": [{}]}`, `{"strategy": "ptf", "steps": null}`,
		`{"strategy": "none", "steps": [{"op": "row", "row": {"order_id": 1e999}}]}`} {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		c, err := Read("x.json", bytes.NewReader(src))
		if err != nil {
			return
		}
		_, _ = Run(c)
	})
}
