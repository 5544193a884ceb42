package lab

import (
	"runtime/debug"
	"slices"

	"deduplab/results"
	"deduplab/strategies"
	"deduplab/stream"
)

// result puts together what was measured.
func (r *run) result() *results.Run {
	s := r.scenario
	out := &results.Run{
		Schema: results.Schema, Scenario: s.Name, About: s.About, Seed: s.Seed, Versions: versions(s.Job.Flink.String()),
		Job: results.Job{
			Flink: s.Job.Flink.String(), Input: strategies.InputName(s.Job.Input), Parallelism: s.Job.Parallelism,
			WatermarkDelayMS:    int64(s.Job.Watermark.Delay),
			WatermarkIntervalMS: int64(s.Job.Watermark.Interval), IdleAfterMS: int64(s.Job.Watermark.IdleAfter),
			CheckpointIntervalMS: int64(s.Job.Checkpoint.Interval), Delivery: s.Job.Checkpoint.Delivery,
			Sink: s.Job.Sink.String(), State: s.Job.State, WatermarkPer: s.Job.Watermark.Per, Skew: s.Job.Skew,
			RetentionMS: int64(s.Job.Retention),
			CatchUpRate: r.catchUpRate(), MiniBatchMS: int64(s.Job.MiniBatch.Latency), MiniBatchSize: s.Job.MiniBatch.Size,
			Table: s.Job.TableKind(), Shuffle: s.Job.Spark.Shuffle,
		},
		Workload: r.base.survey.result(), Keys: r.base.survey.keyResults(),
	}
	for _, c := range s.Job.Adds {
		out.Job.Adds = append(out.Job.Adds, results.AddedColumn{Column: c.Name, Function: c.Function.String()})
	}
	out.Workload.Spec = s.WorkloadSpec()
	out.Job.Failures, out.Outages = r.jobFailures(), r.outages()
	if r.after != nil {
		out.After = r.after.describe()
	}
	if slices.ContainsFunc(r.entries, func(e entry) bool { return e.plan.Batch != nil }) {
		out.Job.Spark = sparkJob(s.Job.Spark)
		out.Versions["spark"] = strategies.Spark
	}
	if t := s.Workload.Trace; t != nil {
		out.Workload.Skipped, out.Workload.BadRows = t.Rows.Skipped()
	}
	for _, q := range s.Require {
		out.Require = append(out.Require, results.Requirement{Name: q.Name, Bound: q.Bound})
	}
	for i, e := range r.entries {
		out.Strategies = append(out.Strategies, r.strategy(i, e, out))
	}
	out.Summary = summary(out)
	fillIn(out)
	return out
}

// fillIn makes every list that is missing an empty one, so that nobody who reads the JSON has to tell the two apart.
func fillIn(r *results.Run) {
	r.Require, r.Strategies, r.Summary = orEmpty(r.Require), orEmpty(r.Strategies), orEmpty(r.Summary)
	r.Workload.BadRows = orEmpty(r.Workload.BadRows)
	r.Workload.Arrivals, r.Workload.Watermark = orEmpty(r.Workload.Arrivals), orEmpty(r.Workload.Watermark)
	for i := range r.Keys {
		r.Keys[i].Examples = orEmpty(r.Keys[i].Examples)
	}
	for i := range r.Strategies {
		s := &r.Strategies[i]
		s.Subtasks, s.Determinism, s.Verdicts = orEmpty(s.Subtasks), orEmpty(s.Determinism), orEmpty(s.Verdicts)
		s.Stages = orEmpty(s.Stages)
		s.Examples, s.Findings, s.State.Series = orEmpty(s.Examples), orEmpty(s.Findings), orEmpty(s.State.Series)
	}
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// versions names what the numbers depend on beside the scenario.
func versions(flink string) map[string]string {
	v := map[string]string{"flink": flink}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/brianvoe/gofakeit/v7" {
				v["gofakeit"] = m.Version
			}
		}
	}
	return v
}

// strategy puts together one strategy.
func (r *run) strategy(i int, e entry, out *results.Run) results.Strategy {
	plan := e.plan
	s := results.Strategy{
		ID: e.ID, Name: e.Strategy.Name, Params: e.Args.Map(), Engine: e.Strategy.Engine, About: e.Strategy.About,
		Loses: e.Strategy.Loses, Code: plan.Code, Language: plan.Language, Refused: plan.Refused,
		Declared: results.Declared{
			Changelog: plan.Changelog.Names(), Operator: plan.Operator, Runtime: plan.Runtime,
			StateClass: string(plan.StateClass), Clock: plan.Clock, TTL: plan.TTL,
		},
		LeaksByCause: map[string]int64{}, LossesByCause: map[string]int64{},
	}
	if e.Key != nil {
		s.Key = e.Key.Name
	}
	if l := r.base.lanes[i]; l != nil {
		r.measured(&s, i, l, e, out.Workload)
	}
	s.Verdicts = judge(r.scenario.Require, &s)
	s.Findings = append(findings(&s, plan, out.Job), failureFindings(&s, out)...)
	return s
}

// measured fills in the numbers of a strategy that ran.
func (r *run) measured(s *results.Strategy, i int, l *lane, e entry, w results.Workload) {
	survey := r.base.survey
	l.ledger.Result(s)
	s.Examples = l.ledger.Examples()
	s.State = l.state(survey.keysAt(e.Key))
	if l.sums {
		of := l.ledger.Sums()
		s.Amount = sums{survey.expected, of.Kept, of.Twice, of.Gone}.amount(survey.column)
	}
	s.LateDropped, s.LeakedWithinTTL, s.Failed = l.late, l.withinTTL, l.failed
	if l.batches != nil {
		s.Stages = l.stages.result(l.firsts, s, r.scenario.Job.Spark.Shuffle)
		s.Spark = l.batches.result()
	}
	s.Failures = r.failed(l)
	if l.after != nil {
		s.After = l.after.result(r.after)
	}
	if s.ResultRows > 0 {
		s.Residual = float64(s.Leaked) / float64(s.ResultRows)
	}
	if w.Copies > 0 {
		s.LeakRate = float64(s.Leaked) / float64(w.Copies)
	}
	s.Undeclared = undeclared(e.plan.Changelog, s.Changes)
	s.AppendOnlyViol = s.Updates
	if !w.Labelled && e.Key == nil {
		// This key is the truth, so a distinct event taken for a copy cannot be told.
		s.Fates.Swallowed = -1
	}
	for j := range l.rows {
		s.Subtasks = append(s.Subtasks, results.Subtask{Rows: l.rows[j], KeysLivePeak: l.peaks[j]})
	}
	s.Determinism = r.determinism(i)
}

// undeclared counts emitted changes whose kind the declared mode does not have.
func undeclared(mode stream.ChangelogMode, c results.Changes) int64 {
	count := int64(0)
	for kind, n := range map[stream.Kind]int64{
		stream.Insert: c.Insert, stream.UpdateBefore: c.UpdateBefore, stream.UpdateAfter: c.UpdateAfter,
		stream.Delete: c.Delete,
	} {
		if !mode.Has(kind) {
			count += n
		}
	}
	return count
}
