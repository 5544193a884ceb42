package conformance

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deduplab/strategies"
	"deduplab/strategies/sqlshape"
)

// TestRecognisesRecordedQueries holds the recogniser of queries to the recordings: each query is the strategy that its
// recording is replayed with, down to the plan, with its table and options before it and without.
func TestRecognisesRecordedQueries(t *testing.T) {
	files, err := filepath.Glob("testdata/flink*/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	done := map[string]bool{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Read(file, strings.NewReader(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		if c.SQL == nil {
			continue
		}
		var all strings.Builder
		for _, option := range slices.Sorted(maps.Keys(c.Config)) {
			all.WriteString("SET '" + option + "' = '" + c.Config[option] + "';\n")
		}
		all.WriteString(c.DDL + ";\n" + *c.SQL)
		if done[all.String()] {
			continue
		}
		done[all.String()] = true
		t.Run(c.Name+"/"+filepath.Base(filepath.Dir(file)), func(t *testing.T) { recognises(t, c, all.String()) })
	}
}

func recognises(t *testing.T, c *Case, all string) {
	shape, err := sqlshape.Recognise(all)
	if err != nil {
		t.Fatal(err)
	}
	base, consumer := c.consumer()
	id, known := ids[base]
	removesNothing := []string{"pass-through", "pk-not-enforced", "changelog-normalize"}
	switch {
	case !known, strings.Contains(c.DDL, "changelog-mode") && id.strategy == "pk-not-enforced":
		// A watermark generator alone, and a source of changes whose key nobody asks for.
		if !slices.Contains(removesNothing, shape.Strategy) {
			t.Errorf("recognised as %s", shape.Strategy)
		}
		return
	}
	if shape.Strategy != id.strategy || shape.Consumer != consumer || shape.RowNumber != id.rowNumber {
		t.Errorf("recognised as %s for %q, row number %t; want %s for %q, row number %t", shape.Strategy, shape.Consumer,
			shape.RowNumber, id.strategy, consumer, id.rowNumber)
	}
	if want := id.toChangelog || id.strategy == "nontime-to-changelog"; shape.ToChangelog != want {
		t.Errorf("in TO_CHANGELOG: %t, want %t", shape.ToChangelog, want)
	}
	if got, want := planOf(t, shape), recordedPlan(t, c, shape); got.Code != want.Code || got.Operator != want.Operator ||
		got.Runtime != want.Runtime || got.Declared != want.Declared || got.Node != want.Node {
		t.Errorf("planned as\n%+v\nwant\n%+v", got, want)
	}
	if slices.Contains(removesNothing, shape.Strategy) || c.Strategy == "pk-not-enforced-distinct" {
		return // the key stands in the CREATE TABLE
	}
	alone, err := sqlshape.Recognise(*c.SQL)
	if err != nil || alone.Strategy != shape.Strategy {
		t.Errorf("without its table recognised as %q, %v", alone.Strategy, err)
	}
}

// planOf plans a recognised query.
func planOf(t *testing.T, shape sqlshape.Shape) strategies.Plan {
	t.Helper()
	strategy, err := strategies.Find(shape.Strategy)
	if err != nil {
		t.Fatal(err)
	}
	args, faults := strategy.Resolve(shape.Params, shape.Job.Schema)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	plan := strategy.Plan(args, shape.Job)
	if shape.ToChangelog && !plan.ToChangelog {
		plan = strategies.ToChangelog(plan, shape.Job)
	}
	return plan
}

// recordedPlan plans a case as its replay does, but for a retract sink and over the recognised table.
func recordedPlan(t *testing.T, c *Case, shape sqlshape.Shape) strategies.Plan {
	t.Helper()
	retract := *c
	retract.Consumer = "retract"
	schema := shape.Job.Schema
	_, plan, err := retract.plan(schema)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
