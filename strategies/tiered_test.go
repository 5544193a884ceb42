package strategies_test

import (
	"strings"
	"testing"

	"deduplab/harness"
	"deduplab/strategies"
)

// TestTiers tells which stages can stand behind one another, and why others cannot.
func TestTiers(t *testing.T) {
	for _, c := range []struct {
		name, stages string
		fault        string // of the parameter
		refused      string // by the planner; with a checkpoint interval of 1 s
		want         string // the stages of the query
	}{
		{name: "three tiers", stages: `[{"drop-duplicates-within-watermark":{"delay":"1h"}},{"merge-insert-only":{}},{"audit":{}}]`,
			want: "drop-duplicates-within-watermark merge-insert-only audit"},
		{name: "an audit alone runs over what is appended", stages: `[{"audit":{}}]`, want: "append-batch-sink audit"},
		{name: "Flink in front", stages: `[{"ptf":{}},{"merge-insert-only":{}}]`, want: "merge-insert-only"},
		{name: "a front that retracts", stages: `[{"proctime-desc":{}},{"merge-insert-only":{}}]`,
			refused: "stage 1, proctime-desc: it sends updates"},
		{name: "a front that goes by whole rows", stages: `[{"select-distinct":{}},{"merge-insert-only":{}}]`,
			refused: "stage 1, select-distinct: it sends"},
		{name: "Flink behind Spark", stages: `[{"drop-duplicates":{}},{"ptf":{}}]`, refused: "put the stages of Flink first"},
		{name: "two sinks", stages: `[{"append-batch-sink":{}},{"merge-insert-only":{}}]`, refused: "a query has one"},
		{name: "an operator behind a sink", stages: `[{"merge-insert-only":{}},{"drop-duplicates":{}}]`,
			refused: "what foreachBatch has written is no stream"},
		{name: "anything behind an audit", stages: `[{"audit":{}},{"merge-insert-only":{}}]`, refused: "put the audit last"},
		{name: "two watermarks", stages: `[{"drop-duplicates":{"delay":"1m"}},{"drop-duplicates-within-watermark":{"delay":"1h"}}]`,
			refused: "its watermark delay is 1h, that of a stage before it 1m"},
		{name: "unknown", stages: `[{"merge-insert-onyl":{}}]`, fault: "did you mean merge-insert-only"},
		{name: "itself", stages: `[{"tiered":{}}]`, fault: "cannot be tiered itself"},
		{name: "half a day", stages: `[{"merge-insert-only":{"lookback":"12h"}}]`, fault: "not a whole number of days"},
		{name: "no list", stages: `merge-insert-only`, fault: "not a list of strategies"},
		{name: "empty", stages: `[]`, fault: "the list is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tiered, _ := strategies.Lookup("tiered")
			args, faults := tiered.Resolve(map[string]string{"stages": c.stages}, harness.Orders())
			if c.fault != "" {
				if len(faults) != 1 || !strings.Contains(faults[0].Message, c.fault) {
					t.Errorf("faults %v, want %q", faults, c.fault)
				}
				return
			}
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			plan := tiered.Plan(args, strategies.Job{Schema: harness.Orders(), CheckpointInterval: 1000})
			if !strings.Contains(plan.Refused, c.refused) || c.refused == "" && plan.Refused != "" {
				t.Errorf("refused %q, want %q", plan.Refused, c.refused)
			}
			var names []string
			for _, s := range plan.Batch.Stages {
				names = append(names, s.Strategy)
			}
			if got := strings.Join(names, " "); c.refused == "" && got != c.want {
				t.Errorf("stages %q, want %q", got, c.want)
			}
		})
	}
}
