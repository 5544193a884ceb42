package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"deduplab/results"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sample reads the run that stands in testdata.
func sample(t *testing.T) *results.Run {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	run := new(results.Run)
	if err := json.Unmarshal(text, run); err != nil {
		t.Fatal(err)
	}
	return run
}

// golden compares got with a file in testdata, or rewrites the file under -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("output differs from %s; look at the difference after: go test ./report -update", file)
	}
}
