package lab_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"deduplab/lab"
	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/strategies"
)

// sources is an hour of two partitions with one retry in ten, to which a test adds what it is about.
func sources(t *testing.T, workload, job string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Load("sources.yaml", fmt.Appendf(nil, `
scenario: sources
workload:
  duration: 1h
  rate: 2/s
  fields: {id: {uuid: true}}
  key: id
  partitions: {count: 2}
  transport: {uniform: [0s, 1s]}
  duplicates: [{origin: retry, rate: 10%%, delay: {exponential: {mean: 10s}, cap: 1m}}]
%s
job:
  parallelism: 2
  watermark: {delay: 2s}
%s
strategies: [pass-through, rowtime-asc, proctime-asc]
require: {lost: <= 0, same_under: [catch-up, retention]}
`, workload, job), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRetention states that rows that the source no longer has are missing in the replay that is about them, and there
// alone.
func TestRetention(t *testing.T) {
	const time = "  event_time: {field: ts}"
	all := run(t, sources(t, time, ""), lab.Options{})
	short := run(t, sources(t, time, "  retention: 15m"), lab.Options{})
	for i, s := range short.Strategies {
		if kept, of := s.Fates, all.Strategies[i].Fates; kept != of || s.Lost != 0 {
			t.Errorf("%s: retention changes the run itself from %+v to %+v", s.ID, of, kept)
		}
		d := s.Determinism[2]
		if d.Cause != "retention" || s.Determinism[0].RowsGone != 0 || s.Determinism[1].RowsGone != 0 ||
			all.Strategies[i].Determinism[2].ByConstruction == "" {
			t.Errorf("%s: %+v", s.ID, s.Determinism)
		}
		// 45 minutes of two originals a second and one copy in ten; four standard deviations are 300 rows.
		if d.RowsGone < 5640 || d.RowsGone > 6240 {
			t.Errorf("%s: %d rows are gone", s.ID, d.RowsGone)
		}
		if lost := d.LossesByCause["retention"]; lost < 5100 || lost > 5700 || lost >= d.RowsGone {
			t.Errorf("%s: %d events are lost", s.ID, lost)
		}
		v := s.Verdicts[1]
		want := fmt.Sprintf("the final table differs under retention: the source no longer has %s rows, which loses %s "+
			"events; ", results.FormatCount(d.RowsGone), results.FormatCount(d.LossesByCause["retention"]))
		if v.Verdict != results.Fail || !strings.HasPrefix(v.Evidence, want) {
			t.Errorf("%s: %s", s.ID, v.Evidence)
		}
	}
}

// TestFinishedPartition states that a partition that is silent holds back the watermark, and one that is finished does
// not.
func TestFinishedPartition(t *testing.T) {
	const time = "  event_time: {field: ts}\n"
	silent := run(t, sources(t, time+"  silent: [{partition: 1, from: 10m, for: 1h}]", ""), lab.Options{})
	finished := run(t, sources(t, time+"  finished: [{partition: 1, at: 10m}]", ""), lab.Options{})
	// Latency leaves out the drain, and behind the silent partition the rows of 50 minutes wait for it.
	before, after := strategyOf(t, silent, "rowtime-asc").Latency.Wait, strategyOf(t, finished, "rowtime-asc").Latency.Wait
	if before.N > 1400 {
		t.Errorf("a silent partition: %d events went out, about 1200 came before", before.N)
	}
	if after.N < 3900 || after.Max > 10_000 {
		t.Errorf("a finished partition: %d of about 4200 events went out, the longest wait is %d ms", after.N, after.Max)
	}
}

// TestClockSkew states that a device whose clock is behind loses events in front of a watermark that the others make.
func TestClockSkew(t *testing.T) {
	const time, clock = "  event_time: {field: ts}\n", "  clock: [{partition: 1, skew: %s}]"
	lost := func(workload string) int64 {
		s := sources(t, workload, "")
		s.Job.Parallelism, s.Job.Watermark.Per = 1, "reader"
		return strategyOf(t, run(t, s, lab.Options{}), "rowtime-asc").LossesByCause["late"]
	}
	if right, behind := lost(time), lost(time+fmt.Sprintf(clock, "-30s")); right != 0 || behind < 3400 || behind > 3600 {
		t.Errorf("%d events lost with the right time, %d of 3600 with a clock 30 s behind", right, behind)
	}
}

// TestNullEventTimes states that a row without event time ends a Flink job, and no other.
func TestNullEventTimes(t *testing.T) {
	s := sources(t, "  event_time: {field: ts, nulls: 1%}", "")
	_, alone := lab.Run(context.Background(), s, lab.Options{})
	const fails = "has no event time: Flink's watermark assigner fails the job on NULL"
	if alone == nil || !strings.Contains(alone.Error(), fails) {
		t.Errorf("all strategies are Flink's, and the run ends with the error %v", alone)
	}

	s = sources(t, "  event_time: {field: ts, nulls: 1%}", "")
	spark, _ := strategies.Lookup("drop-duplicates")
	args, faults := spark.Resolve(nil, s.Workload.Schema)
	if faults != nil {
		t.Fatal(faults)
	}
	s.Strategies = append(s.Strategies, scenarios.Entry{ID: "drop-duplicates", Strategy: spark, Args: args})
	r := run(t, s, lab.Options{})
	if got := strategyOf(t, r, "drop-duplicates"); got.Refused != "" || got.RowsIn != r.Workload.Rows {
		t.Errorf("of %d rows it takes %d: %s", r.Workload.Rows, got.RowsIn, got.Refused)
	}
	for _, id := range []string{"rowtime-asc", "proctime-asc"} {
		if got := strategyOf(t, r, id); got.Refused != alone.Error() || got.RowsIn != 0 ||
			got.Verdicts[0].Verdict != results.Refused {
			t.Errorf("%s: %d rows in, refused for %q", id, got.RowsIn, got.Refused)
		}
	}
}
