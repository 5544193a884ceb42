package lab

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"deduplab/results"
	"deduplab/scenarios"
)

// What the lab says of a query is true of the query: of each strategy and job, a part of a finding or of the summary.
func TestWhatIsSaidOfQueries(t *testing.T) {
	for _, c := range []struct{ strategy, job, rate, says string }{
		{"tiered: {stages: [rowtime-asc, drop-duplicates-within-watermark: {delay: 1m}]}", "{}", "1/s",
			"numLateRecordsDropped says"}, // it was the stage of Flink
		{"drop-duplicates-within-watermark: {delay: 1m}", "{}", "1/s", "numRowsDroppedByWatermark says"},
		{"transform-with-state: {ttl: 1d}", "{}", "1/s", "nothing was removed yet: no key has come to its end"},
		{"append-batch-sink", "{failures: [5m, 5m, 9d]}", "1/s", "of 3 failures of the query 1 struck a batch"},
		{"append-batch-sink", "{failures: [5m], migrate: {at: 10m, overlap: 1m}}", "1/s",
			"was run again and the new query has read again"},
		{"append-batch-sink", "{migrate: {at: 10m, overlap: 1m}}", "1/s", "because the new query has read again"},
		{"pass-through", "{}", "1/d", "The stream has no rows, so the verdicts show nothing."},
		{"audit: {repair: true}", "{}", "1/s", "audit alone meets the requirement."},
	} {
		run := runText(t, c.strategy, c.job, c.rate)
		said := append(run.Strategies[0].Findings, run.Summary...)
		if !strings.Contains(strings.Join(said, "\n"), c.says) {
			t.Errorf("%s in %s: %q is not said: %q", c.strategy, c.job, c.says, said)
		}
	}
}

// numRowsTotal is of the stages of the query: the keys of a stage of Flink in front of it are not among them.
func TestTrendIsOfTheQuery(t *testing.T) {
	run := runText(t, "tiered: {stages: [rowtime-asc, drop-duplicates-within-watermark: {delay: 1m}]}", "{}", "1/s")
	s := run.Strategies[0]
	if keys, trend := s.State.KeysLivePeak, s.Spark.RowsTotal.PerHour; keys < 1000 || trend > 200 || trend < -200 {
		t.Errorf("%d keys live at the peak, numRowsTotal rises by %d an hour", keys, trend)
	}
}

func runText(t *testing.T, strategy, job, rate string) *results.Run {
	t.Helper()
	return runScenario(t, fmt.Sprintf(inText, rate, job, strategy))
}

// inText is a scenario of a rate, a job.spark and a strategy.
const inText = `scenario: x
workload:
  duration: 20m
  rate: %s
  fields: {id: {uuid: true}}
  key: id
  event_time: {field: ts}
  duplicates: [{origin: retry, rate: 5%%, delay: 4m}]
job: {table: memory, checkpoint: {interval: 10s}, watermark: {delay: 1m}, spark: %s}
strategies: [%s]
require: {leaked: <= 0}
`

func runScenario(t *testing.T, text string) *results.Run {
	t.Helper()
	s, err := scenarios.Load("x.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	run, err := Run(context.Background(), s, Options{Once: true})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// A null key ends transformWithState, wherever it stands: the query fails at the batch that has it, and meets nothing.
func TestNullKeyFailsTheQuery(t *testing.T) {
	for _, strategy := range []string{
		"transform-with-state", "tiered: {stages: [ptf: {ttl: 1h}, transform-with-state]}",
		"tiered: {stages: [transform-with-state, audit]}",
	} {
		text := strings.Replace(fmt.Sprintf(inText, "1/s", "{}", strategy), "{uuid: true}", "{uuid: true, nulls: 50%}", 1)
		s := runScenario(t, text).Strategies[0]
		if v := s.Verdicts[0]; v.Verdict != results.Fail || !strings.Contains(s.Failed, "batch 0, after 10s: ") ||
			!strings.Contains(s.Failed, "INTERNAL_ERROR_TWS") {
			t.Errorf("%s: %+v, %q", strategy, v, s.Failed)
		}
	}
}
