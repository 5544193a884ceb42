package results_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"deduplab/results"
)

func TestMetricNames(t *testing.T) {
	names := results.MetricNames()
	for _, want := range []string{
		"residual", "lost", "leaked", "leak_rate", "wrong_version", "fates.late_first", "latency_ms.wait.p99", "updates",
		"latency_ms.commit.n", "state.keys_live_peak", "leaks_by_cause.ttl", "losses_by_cause.unexplained", "changes.delete",
		"spark.numRowsTotal.peak", "spark.numRowsDroppedByWatermark",
		"amount.error", "amount.twice_rate", "amount.gone",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("no metric %s", want)
		}
	}
	for _, name := range names {
		for _, not := range []string{"series", "params", "subtasks", "determinism", "verdicts", "examples", "class"} {
			if slices.Contains(strings.Split(name, "."), not) {
				t.Errorf("%s is not one number", name)
			}
		}
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Error("the names are not sorted and unique")
	}
}

// A metric is the path of its number in results.json: every one must be found there, with the value Metric gives.
func TestMetricIsAPathOfTheJSON(t *testing.T) {
	s := results.Strategy{
		Residual: 0.25, Lost: 7, LeaksByCause: map[string]int64{}, LossesByCause: map[string]int64{"late": 3},
		Latency: results.Latency{Wait: results.Quantiles{P99: 5200}}, Amount: &results.Amount{Error: 0.5},
		Spark:    &results.Spark{Batches: 3, RowsTotal: results.RowsTotal{Peak: 5, PerHour: -2}},
		Failures: &results.Failures{Outages: 2, Wait: results.Quantiles{P99: 61_000}},
		After: &results.After{Window: &results.AfterWindow{Rows: 4, Sum: &results.Deviation{Value: 5, Error: 0.5}},
			Join: &results.AfterJoin{Rows: results.NewDeviation(3, 2)}},
	}
	for _, cause := range results.LeakCauses {
		s.LeaksByCause[cause] = 2
	}
	for _, cause := range results.LossCauses {
		s.LossesByCause[cause]++
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range results.MetricNames() {
		var at any
		if err := json.Unmarshal(text, &at); err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(name, ".") {
			at = at.(map[string]any)[part]
		}
		got, ok := s.Metric(name)
		if !ok || at != got {
			t.Errorf("%s: Metric says %v, %v; the JSON says %v", name, got, ok, at)
		}
	}
}

func TestMetricUnknown(t *testing.T) {
	s := results.Strategy{Fates: results.Fates{Swallowed: -1}}
	for _, name := range []string{"", "fates", "fates.lost", "state.class", "leaks_by_cause", "leaks_by_cause.x", "id"} {
		if v, ok := s.Metric(name); ok {
			t.Errorf("%q is a metric: %v", name, v)
		}
	}
	if _, ok := s.Metric("fates.swallowed"); ok {
		t.Error("a number that is not known was given")
	}
	if _, ok := s.Metric("spark.numRowsTotal.per_hour"); ok {
		t.Error("a number of another engine was given")
	}
	if _, ok := s.Metric("amount.error"); ok {
		t.Error("a sum was given where the scenario names none")
	}
	if v, ok := s.Metric("leaks_by_cause.ttl"); v != 0 || !ok {
		t.Errorf("a cause without rows is %v, %v", v, ok)
	}
}

// What a metric counts is shown by a row and by causes, also where it is named by a path.
func TestExplanations(t *testing.T) {
	s := results.Strategy{
		LeaksByCause: map[string]int64{"ttl": 1}, LossesByCause: map[string]int64{"late": 2},
		Examples: []results.Example{{Fate: "swallowed"}, {Fate: "leaked"}, {Fate: "late_first"}, {Fate: "slowest"}},
	}
	for metric, want := range map[string]struct {
		fate   string
		causes map[string]int64
	}{
		"lost":                {"late_first", s.LossesByCause},
		"losses_by_cause.ttl": {"late_first", s.LossesByCause},
		"fates.swallowed":     {"swallowed", s.LossesByCause},
		"residual":            {"leaked", s.LeaksByCause},
		"leak_rate":           {"leaked", s.LeaksByCause},
		"fates.leaked":        {"leaked", s.LeaksByCause},
		"leaks_by_cause.ttl":  {"leaked", s.LeaksByCause},
		"latency_ms.wait.p99": {"slowest", nil},
		"wrong_version":       {},
		"updates":             {},
		"fates.kept":          {},
		"append_only":         {},
	} {
		fate := ""
		if e := s.ExampleOf(metric); e != nil {
			fate = e.Fate
		}
		if fate != want.fate || !maps.Equal(s.CausesOf(metric), want.causes) {
			t.Errorf("%s: %s, %v; want %s, %v", metric, fate, s.CausesOf(metric), want.fate, want.causes)
		}
	}
}
