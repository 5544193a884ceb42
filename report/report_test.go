package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"deduplab/lab"
	"deduplab/results"
	"deduplab/scenarios"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sample reads the run that stands in testdata.
func sample(t *testing.T) *results.Run {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	run := new(results.Run)
	if err := json.Unmarshal(text, run); err != nil {
		t.Fatal(err)
	}
	return run
}

// tiered is a run with the sections that sample lacks: micro-batches, stages, what stands behind them, keys, stories.
func tiered(t *testing.T) *results.Run {
	t.Helper()
	scenario, err := scenarios.Read(filepath.Join("testdata", "tiers.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	run, err := lab.Run(t.Context(), scenario, lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// golden compares got with a file in testdata, or rewrites the file under -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("output differs from %s; look at the difference after: go test ./report -update", file)
	}
}

// small is a run of a trace without labels with one strategy of each kind, and with large numbers.
func small() *results.Run {
	const large = 1_000_000_000_007
	verdicts := func(verdict, value, evidence string) []results.Verdict {
		return []results.Verdict{{
			Requirement: "lost", Bound: "<= 0", Verdict: verdict, Value: value, Evidence: evidence,
		}}
	}
	return &results.Run{
		Schema: results.Schema, Scenario: "trace", Require: []results.Requirement{{Name: "lost", Bound: "<= 0"}},
		Workload: results.Workload{Rows: large, Distinct: large, Partitions: 1},
		Strategies: []results.Strategy{
			{ID: "rejected", Refused: "the sink takes no updates", Verdicts: verdicts(results.Refused, "", "")},
			{
				ID: "lossy", Fates: results.Fates{LateFirst: 7, Swallowed: -1}, Lost: 7, RowsIn: large,
				LossesByCause: map[string]int64{"late": 6, "id_reuse": 1},
				Verdicts:      verdicts(results.Fail, "7", "order x came late"),
			},
			{
				ID: "leaky", Fates: results.Fates{Swallowed: -1, Leaked: 3}, Leaked: 3, RowsIn: large,
				LeaksByCause: map[string]int64{"ttl": 3}, Verdicts: verdicts(results.Pass, "0", ""),
			},
			{
				ID: "clean", Fates: results.Fates{Kept: large, Swallowed: -1}, RowsIn: large, Updates: large,
				State:    results.State{KeysLivePeak: large, KeysHeldPeak: large, BytesPeak: large},
				Verdicts: verdicts(results.Pass, "0", ""),
			},
		},
	}
}

// keyed is a run of small that compares keys.
func keyed() *results.Run {
	run := small()
	off := results.Amount{Expected: 1000, Result: 990.5, Twice: 15, Gone: 24.5, TwiceRate: 0.015, GoneRate: 0.0245,
		Error: 0.0095}
	run.Keys = []results.Key{
		{Name: "default", Columns: []string{"id"}, Keys: 7, Amount: &results.Amount{Expected: 1000, Result: 1000}},
		{Name: "content", Columns: []string{"who", "what"}, Content: true, Keys: 1234, Missed: 12, Merged: 5,
			MissedByOrigin: map[string]int64{"retry": 9, "resend": 3}, Amount: &off,
			Examples: []results.KeyExample{{
				Row:   results.Example{Fate: "merged", Origin: "original", Row: map[string]string{"who": "ann", "what": "tea"}},
				Other: results.Example{Fate: "kept", Origin: "retry", Row: map[string]string{"who": "ann", "what": "tea"}},
			}},
		},
	}
	run.Strategies[2].Key, run.Strategies[2].Amount = "content", &off
	return run
}
