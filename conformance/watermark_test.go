package conformance

import (
	"os"
	"path/filepath"
	"testing"
)

// watermarkCases are the recorded cases of watermarks, all of them.
var watermarkCases = []string{
	"datastream-bounded-0ms",
	"datastream-bounded-5000ms",
	"datastream-idleness",
	"multiplexer-two-partitions",
	"sql-5s",
	"sql-idle",
	"sql-negative",
	"sql-no-delay",
	"sql-null-rowtime",
	"valve-all-idle",
	"valve-two-channels",
}

const watermarkDir = "testdata/flink/watermark"

func TestWatermarkCases(t *testing.T) {
	for _, name := range watermarkCases {
		t.Run(name, func(t *testing.T) {
			f, err := os.Open(filepath.Join(watermarkDir, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			c, err := Read(f.Name(), f)
			if err != nil {
				t.Fatal(err)
			}
			diffs, err := runWatermark(c)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range diffs {
				t.Errorf("step %d, %s:\nwant %s\n got %s", d.Step, d.What, d.Want, d.Got)
			}
		})
	}
}

func TestWatermarkCasesAreAllListed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(watermarkDir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(watermarkCases) {
		t.Errorf("%d recorded cases, %d listed: %q", len(files), len(watermarkCases), files)
	}
}
