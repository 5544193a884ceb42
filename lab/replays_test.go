package lab_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deduplab/lab"
	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/sim/pebble"
	"deduplab/strategies"
	"deduplab/stream"
)

// matrix is what is the same under which cause, of two streams of 20 minutes in three partitions. One partition falls
// silent and delivers later; a copy comes at most 3 minutes after its original, a TTL is 10 minutes, the source keeps
// rows for 15. In the first stream all copies are exact and stand in the partition of their original, in the second one
// each has another price and may stand in another partition.
//
//	table     the final table differs in some replay
//	changes   the table is the same, but not the multiset of changes
//	order     the changes are the same, but not the order of those of some key
//	same      all is the same in all replays
//	-         by construction: the strategy cannot be open to the cause
const matrix = `
`

const matrixScenario = `
scenario: matrix
workload:
  duration: 20m
  rate: 2/s
  fields: {id: {uuid: true}, price: {decimal: [1, 100]}}
  key: id
  event_time: {field: ts}
  partitions: {count: 3, by: %s}
  transport: {uniform: [0s, 4s]}
  outage: [{partition: 1, from: 5m, for: 2m, flush: 100/s}]
  duplicates: [{origin: retry, rate: 20%%, delay: {exponential: {mean: 30s}, cap: 3m}%s}]
job:
  parallelism: 2
  watermark: {delay: 2s, idle_after: 20s}
  checkpoint: {interval: 30s}
  retention: 15m
strategies: [pass-through]
`

// TestMatrix states which strategy is open to which cause.
func TestMatrix(t *testing.T) {
	var got strings.Builder
	for _, s := range []struct{ about, by, change string }{
		{"exact copies", "id", ""}, {"copies that differ", "price", ", change: [price]"},
	} {
		scenario, err := scenarios.Load("matrix.yaml", fmt.Appendf(nil, matrixScenario, s.by, s.change), nil)
		if err != nil {
			t.Fatal(err)
		}
		scenario.Strategies = nil
		for _, name := range strategies.Names() {
			scenario.Strategies = append(scenario.Strategies, withTTL(t, name, scenario.Workload.Schema))
		}
		r := run(t, scenario, lab.Options{Causes: scenarios.Causes})
		fmt.Fprintf(&got, "\n%-34s%s\n", s.about, columns(scenarios.Causes))
		for i := range r.Strategies {
			if s := &r.Strategies[i]; s.Refused == "" {
				fmt.Fprintf(&got, "%-34s%s\n", s.ID, columns(cells(s)))
			}
		}
	}
	sameText(t, "matrix", got.String(), matrix)
	if got.String() != matrix {
		t.Logf("the whole matrix is now:%s", got.String())
	}
}

func withTTL(t *testing.T, name string, schema stream.Schema) scenarios.Entry {
	strategy, err := strategies.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	params := map[string]string{}
	for _, p := range strategy.Params {
		switch {
		case p.Name == "ttl", p.Name == "timer":
			params[p.Name] = "10m"
		case p.Kind == strategies.Order && p.Default == "":
			params[p.Name] = "price asc"
		case p.Kind == strategies.Column && p.Default == "":
			params[p.Name] = "price"
		}
	}
	args, faults := strategy.Resolve(params, schema)
	if faults != nil {
		t.Fatal(name, faults)
	}
	return scenarios.Entry{ID: name, Strategy: strategy, Args: args}
}

func cells(s *results.Strategy) []string {
	var cells []string
	for _, d := range s.Determinism {
		cell := "same"
		switch {
		case d.Replays == 0:
			cell = "-"
		case d.SameTable < d.Replays:
			cell = "table"
		case d.SameChanges < d.Replays:
			cell = "changes"
		case d.SameOrder < d.Replays:
			cell = "order"
		}
		cells = append(cells, cell)
	}
	return cells
}

func columns(cells []string) string {
	var b strings.Builder
	for _, c := range cells {
		fmt.Fprintf(&b, "%-13s", c)
	}
	return strings.TrimRight(b.String(), " ")
}

// A cause that a strategy cannot be open to changes nothing, whatever the rows and the job.
func TestByConstruction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyScenario(t)
		if rapid.Bool().Draw(t, "mini-batch") {
			s.Job.MiniBatch = strategies.MiniBatch{Latency: 2000, Size: 5}
		}
		cause := rapid.SampledFrom(scenarios.Causes).Draw(t, "cause")
		r, err := lab.Run(context.Background(), s, lab.ReplayClosed(lab.Options{
			Causes: []string{cause}, Replays: rapid.IntRange(1, 3).Draw(t, "replays"), SpillAt: 20,
			OpenState: func() (sim.Cold, error) { return pebble.Open("") },
		}))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Strategies {
			for _, d := range s.Determinism {
				if d.ByConstruction != "" && (d.Replays == 0 || d.SameTable+d.SameChanges+d.SameOrder < 3*d.Replays) {
					t.Errorf("%s cannot be open to %s, as %s; but: %+v", s.ID, d.Cause, d.ByConstruction, d)
				}
			}
		}
	})
}

// Every difference is told twice: what became of the key in the run, and in the replay.
func TestDifferencesAreTold(t *testing.T) {
	s, err := scenarios.Load("matrix.yaml", fmt.Appendf(nil, matrixScenario, "id", ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Strategies = []scenarios.Entry{withTTL(t, "rowtime-asc", s.Workload.Schema)}
	told := 0
	for _, d := range run(t, s, lab.Options{Causes: scenarios.Causes}).Strategies[0].Determinism {
		if (d.Example != "") != (d.SameOrder < d.Replays) || (d.Example != "") != (len(d.Stories) == 2) {
			t.Errorf("%+v", d)
			continue
		}
		if d.Example == "" {
			continue
		}
		told++
		emits := func(s results.Story) (out []string) {
			for _, step := range s.Steps {
				if step.What == results.Emits {
					out = append(out, fmt.Sprint(step.Row))
				}
			}
			return out
		}
		if before, after := emits(d.Stories[0]), emits(d.Stories[1]); slices.Equal(before, after) {
			t.Errorf("%s: rows %v go out in the run, and the same in the replay that differs: %s", d.Cause, before, d.Example)
		}
	}
	if told < 4 {
		t.Errorf("%d causes make a difference", told)
	}
}
