package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExtraRecordings replays the recordings that this project made itself of the same engine: sources that send
// updates and deletes. See testdata/flink-extra/README.md.
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

// TestRefused asks the lab what the planner refused over a source of changes.
func TestRefused(t *testing.T) {
	b, err := os.ReadFile("testdata/flink-extra/_refused.json")
	if err != nil {
		t.Fatal(err)
	}
	var refused []struct {
		Case
		Error string
	}
	if err := json.Unmarshal(b, &refused); err != nil {
		t.Fatal(err)
	}
	for _, want := range refused {
		schema, err := want.schema()
		if err != nil {
			t.Fatal(err)
		}
		_, plan, err := want.plan(schema)
		if err != nil {
			t.Fatal(err)
		}
		if substance(plan.Refused) != substance(strings.ReplaceAll(want.Error, "default_catalog.default_database.", "")) {
			t.Errorf("%s: reason %q, recorded %q", want.Strategy, plan.Refused, want.Error)
		}
	}
}
