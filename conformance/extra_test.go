package conformance

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

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
