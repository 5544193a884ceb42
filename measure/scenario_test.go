package measure_test

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"

	"deduplab/export"
	"deduplab/gen"
	"deduplab/measure"
	"deduplab/scenarios"
)

// generated is the stream of a scenario as CSV.
func generated(t *testing.T, name string, yaml []byte) string {
	t.Helper()
	scenario, err := scenarios.Load(name, yaml, nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, yaml)
	}
	workload, err := gen.New(*scenario.Workload.Spec, scenario.Seed)
	if err != nil {
		t.Fatal(err)
	}
	var rows bytes.Buffer
	if _, err := export.Write(context.Background(), &rows, workload, export.Options{Format: export.CSV}); err != nil {
		t.Fatal(err)
	}
	return rows.String()
}

// TestScenarioMeasuresTheSame: a stream generated from the scenario that is written has the trace's copies and delays,
// within 10 %, as far as more than ten copies lie above a percentile.
func TestScenarioMeasuresTheSame(t *testing.T) {
	for _, c := range []struct {
		path    string
		columns measure.Columns
	}{
		{"testdata/horizon-input.csv", measure.Columns{Keys: key("event_id"), EventTime: "event_ts", Arrival: "ingest_ts"}},
		{"../scenarios/data/radio-frames.csv.gz", measure.Columns{Keys: key("frame"), EventTime: "timestamp"}},
		{"../scenarios/orders.yaml",
			measure.Columns{Keys: key("order_id"), EventTime: "created_at", Arrival: export.Arrival}},
		{"../scenarios/nightly-bug-24x.yaml",
			measure.Columns{Keys: key("document_id"), EventTime: "submitted_at", Arrival: export.Arrival}},
	} {
		files := read(t, c.path)
		if strings.HasSuffix(c.path, ".yaml") {
			files[c.path] = generated(t, c.path, []byte(files[c.path]))
		}
		want := report(t, c.columns, measure.Options{}, files)
		var yaml bytes.Buffer
		if err := want.Scenario(&yaml, "trace"); err != nil {
			t.Fatal(err)
		}
		got := report(t, measure.Columns{Keys: key("id"), EventTime: "event_time", Arrival: export.Arrival},
			measure.Options{}, map[string]string{"generated": generated(t, "trace.yaml", yaml.Bytes())})
		a, b := want.Keys[0], got.Keys[0]
		for _, n := range []struct {
			what  string
			a, b  float64
			above int
		}{
			{"rows", float64(want.Rows), float64(got.Rows), want.Rows},
			{"copies", float64(a.Copies), float64(b.Copies), a.Copies},
			{"p50", float64(a.FromFirst.P50.Value), float64(b.FromFirst.P50.Value), a.Copies / 2},
			{"p99", float64(a.FromFirst.P99.Value), float64(b.FromFirst.P99.Value), a.Copies / 100},
			{"p99.9", float64(a.FromFirst.P999.Value), float64(b.FromFirst.P999.Value), a.Copies / 1000},
		} {
			if math.Abs(n.b-n.a) > 0.1*n.a && n.above > 10 {
				t.Errorf("%s: %s is %v, in the trace %v", c.path, n.what, n.b, n.a)
			}
		}
	}
}

func TestScenarioNeedsTime(t *testing.T) {
	r := report(t, measure.Columns{Keys: key("id"), Arrival: "at"}, measure.Options{},
		map[string]string{"f": "id,at\na,1\nb,1\n"})
	if err := r.Scenario(&bytes.Buffer{}, "x"); err == nil || !strings.Contains(err.Error(), "at one instant") {
		t.Error(err)
	}
}
