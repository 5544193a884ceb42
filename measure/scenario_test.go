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

// TestScenarioMeasuresTheSame: a stream generated from the scenario that is written has the trace's copies and delays,
// within 10 %.
func TestScenarioMeasuresTheSame(t *testing.T) {
	for _, c := range []struct {
		path    string
		columns measure.Columns
	}{
		{"testdata/horizon-input.csv", measure.Columns{Keys: key("event_id"), EventTime: "event_ts", Arrival: "ingest_ts"}},
		{"../scenarios/data/radio-frames.csv.gz", measure.Columns{Keys: key("frame"), EventTime: "timestamp"}},
	} {
		want := report(t, c.columns, measure.Options{}, read(t, c.path))
		var yaml, rows bytes.Buffer
		if err := want.Scenario(&yaml, "trace"); err != nil {
			t.Fatal(err)
		}
		scenario, err := scenarios.Load("trace.yaml", yaml.Bytes(), nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, yaml.String())
		}
		workload, err := gen.New(*scenario.Workload.Spec, scenario.Seed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := export.Write(context.Background(), &rows, workload, export.Options{Format: export.CSV}); err != nil {
			t.Fatal(err)
		}
		got := report(t, measure.Columns{Keys: key("id"), EventTime: "event_time", Arrival: export.Arrival},
			measure.Options{}, map[string]string{"generated": rows.String()})
		a, b := want.Keys[0], got.Keys[0]
		for _, n := range []struct {
			what string
			a, b float64
		}{
			{"rows", float64(want.Rows), float64(got.Rows)},
			{"copies", float64(a.Copies), float64(b.Copies)},
			{"p50", float64(a.FromFirst.P50.Value), float64(b.FromFirst.P50.Value)},
			{"p99", float64(a.FromFirst.P99.Value), float64(b.FromFirst.P99.Value)},
			{"p99.9", float64(a.FromFirst.P999.Value), float64(b.FromFirst.P999.Value)},
			{"max", float64(a.FromFirst.Max.Value), float64(b.FromFirst.Max.Value)},
		} {
			if math.Abs(n.b-n.a) > 0.1*n.a {
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
