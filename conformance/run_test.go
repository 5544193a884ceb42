package conformance

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRecordings replays every recording of the real engine that stands in testdata: those that were given, and in
// flink-extra those that this project made of sources of changes.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob("testdata/flink*/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings found: %v", err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Read(file, f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Run(c.Name, func(t *testing.T) {
			diffs, err := Run(c)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range diffs {
				t.Errorf("step %d: %s\nwant: %s\ngot:  %s", d.Step+1, d.What, d.Want, d.Got)
			}
		})
	}
}
