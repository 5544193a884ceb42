package compare_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deduplab/compare"
	"deduplab/results"
)

// run is a run of one strategy, ptf, that leaks so many of 1,000 copies.
func run(leaked int64, change func(*results.Run)) *results.Run {
	verdict := results.Verdict{Requirement: "residual", Bound: "<= 0.1%", Verdict: results.Pass}
	if leaked > 1 {
		verdict.Verdict = results.Fail
	}
	r := &results.Run{
		Scenario: "orders", Seed: 1, Workload: results.Workload{Spec: "a", Rows: 2000, Copies: 1000},
		Require: []results.Requirement{{Name: "residual", Bound: "<= 0.1%"}},
		Strategies: []results.Strategy{{
			ID: "ptf", Leaked: leaked, Residual: float64(leaked) / 1000, Params: map[string]string{"ttl": "2h"},
			Verdicts: []results.Verdict{verdict},
		}},
	}
	if change != nil {
		change(r)
	}
	return r
}

func compared(t *testing.T, runs ...*results.Run) *compare.Comparison {
	t.Helper()
	var columns []compare.Column
	for i, r := range runs {
		columns = append(columns, compare.Column{Name: string(rune('a' + i)), Run: r})
	}
	c, err := compare.Compare(columns)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func metric(c *compare.Comparison, name string) compare.Metric {
	for _, s := range c.Strategies {
		for _, m := range s.Metrics {
			if m.Name == name {
				return m
			}
		}
	}
	return compare.Metric{}
}

func TestEqualRunsDoNotDiffer(t *testing.T) {
	c := compared(t, run(1, nil), run(1, nil), run(1, nil))
	if len(c.Warnings)+len(c.Flips)+len(c.Strategies)+len(c.Settings) > 0 || !slices.Equal(c.Same, []string{"ptf"}) {
		t.Errorf("%+v", c)
	}
}

func TestDifferences(t *testing.T) {
	c := compared(t, run(1, nil), run(4, func(r *results.Run) {
		r.Strategies[0].Params["ttl"] = "1h"
		r.Job.Sink = "append"
		r.Job.Spark = &results.SparkJob{MigrateMS: 5}
		r.Strategies = append(r.Strategies, results.Strategy{ID: "new", Verdicts: r.Strategies[0].Verdicts})
	}))
	if len(c.Flips) != 1 || c.Flips[0].Cells[0].Verdict != results.Pass || c.Flips[0].Cells[1].Verdict != results.Fail {
		t.Errorf("flips: %+v", c.Flips)
	}
	if m := metric(c, "leaked"); m.Cells[1].Delta != "+300.0 %" || !m.Headline {
		t.Errorf("leaked: %+v", m)
	}
	if texts := c.Strategies[0].Texts; len(texts) != 1 || !slices.Equal(texts[0].Cells, []string{"2h", "1h"}) {
		t.Errorf("texts: %+v", texts)
	}
	settings := map[string][]string{}
	for _, s := range c.Settings {
		settings[s.Name] = s.Cells
	}
	if !slices.Equal(settings["job.sink"], []string{"", "append"}) ||
		!slices.Equal(settings["job.spark.migrate_ms"], []string{"", "5"}) || settings["job.spark"] != nil {
		t.Errorf("settings: %+v", c.Settings)
	}
	if s := c.Strategies[1]; s.ID != "new" || !slices.Equal(s.In, []bool{false, true}) {
		t.Errorf("a strategy of one run: %+v", s)
	}
}

// What stands in the way of comparing numbers is said.
func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*results.Run)
		want   string
	}{
		{"another stream", func(r *results.Run) { r.Workload.Spec = "b" }, "different streams"},
		{"another generator", func(r *results.Run) { r.Workload.Rows++ }, "another version of the generator"},
		{"an interrupted run", func(r *results.Run) { r.Partial = true; r.Workload.Rows-- },
			"b was interrupted after orders: 1,999 rows, 1,000 copies"},
		{"another seed", func(r *results.Run) { r.Seed = 2 }, "other seeds"},
		{"the same", nil, ""},
	} {
		got := strings.Join(compared(t, run(1, nil), run(1, c.change)).Warnings, "\n")
		if !strings.Contains(got, c.want) || (c.want == "") != (got == "") || strings.Contains(got, "\n") {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// Over several seeds a difference counts that the spread does not explain, and no other.
func TestSamples(t *testing.T) {
	seeds := func(values ...float64) *results.Run {
		return run(1, func(r *results.Run) {
			r.Strategies[0].Samples = map[string][]float64{"leaked": values}
			for i := range values {
				r.Seeds = append(r.Seeds, uint64(i+1))
			}
		})
	}
	a := seeds(10, 11, 12, 13, 14, 15)
	if m := metric(compared(t, a, seeds(20, 21, 22, 23, 24, 25)), "leaked"); m.Cells[1].Delta != "+80.0 %" ||
		m.Cells[0].Center != 12.5 || m.Cells[0].Low != 10 || m.Cells[0].High != 15 || m.Cells[1].N != 6 {
		t.Errorf("a real difference: %+v", m)
	}
	if m := metric(compared(t, a, seeds(9, 11, 12.5, 13, 14, 16)), "leaked"); m.Cells[1].Delta != "~" {
		t.Errorf("noise: %+v", m)
	}

	few := compared(t, seeds(10), seeds(10, 11, 11, 10))
	m := metric(few, "leaked")
	if m.Cells[1].Low != 10.5 || m.Cells[1].High != 10.5 || m.Cells[1].Delta != "~" || m.Cells[1].P > 1 {
		t.Errorf("few seeds have no interval: %+v", m)
	}
	if warnings := strings.Join(few.Warnings, "\n"); !strings.Contains(warnings, "b ran under 4 seeds") {
		t.Errorf("few seeds: %q", warnings)
	}
	if m := metric(compared(t, seeds(10), seeds(10, 10, 10)), "leaked"); m.Name != "" {
		t.Errorf("the same number under all seeds: %+v", m)
	}
}

// Nothing differs from itself, and if anything of b differs from a, then of a from b.
func TestCompareIsSymmetric(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func() *results.Run {
			return run(rapid.Int64Range(0, 3).Draw(rt, "leaked"), func(r *results.Run) {
				r.Strategies[0].Lost = rapid.Int64Range(0, 2).Draw(rt, "lost")
				r.Strategies[0].Declared.Operator = rapid.SampledFrom([]string{"", "Rank"}).Draw(rt, "operator")
			})
		}
		a, b := draw(), draw()
		if c := compared(t, a, a); len(c.Strategies) > 0 {
			rt.Fatalf("a run differs from itself: %+v", c)
		}
		ab, ba := compared(t, a, b), compared(t, b, a)
		if len(ab.Strategies) != len(ba.Strategies) || len(ab.Flips) != len(ba.Flips) {
			rt.Fatalf("%+v\n%+v", ab, ba)
		}
	})
}

func TestOneRunIsNoComparison(t *testing.T) {
	if _, err := compare.Compare([]compare.Column{{Name: "a", Run: run(1, nil)}}); err == nil {
		t.Error("one run was compared")
	}
}
