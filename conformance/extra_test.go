package conformance

import (
	"os"
	"path/filepath"
	"testing"
)

// TestExtraRecordings replays the recordings that this project made itself of the same engine: sources that send updates
// and deletes. See testdata/flink-extra/README.md.
func TestExtraRecordings(t *testing.T) {
	files, err := filepath.Glob("testdata/flink-extra/*/*.json")
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
