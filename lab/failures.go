package lab

import (
	"fmt"

	"deduplab/results"
	"deduplab/sim"
	"deduplab/stream"
)

// failures are the failures of the job, by when they happen.
func (r *run) failures() []sim.Failure {
	from, to := r.workload.Span()
	return r.scenario.Job.PlanFailures(from, to, r.scenario.Seed)
}

// failurePlan is how a job that takes a record at a time fails and recovers; nil: it does not fail.
func (r *run) failurePlan() *sim.Failures {
	failures := r.failures()
	if len(failures) == 0 {
		return nil
	}
	from, _ := r.workload.Span()
	return sim.PlanFailures(failures, from, r.scenario.Job.Checkpoint.Interval)
}

// recovers reports whether a strategy is restored from checkpoints: what it does then depends on when they were made,
// and on how its readers catch up.
func (r *run) recovers(e entry) bool { return len(r.scenario.Job.Failures) > 0 && e.plan.Batch == nil }

// newStreamTask makes a task that takes a record at a time, and recovers if the job fails.
func (r *run) newStreamTask(spec sim.TaskSpec, l *lane) task {
	if len(r.scenario.Job.Failures) == 0 {
		return sim.NewTask(spec)
	}
	l.recovering = sim.NewRecovering(spec, r.scenario.Job.Checkpoint.Delivery == "exactly-once")
	return l.recovering
}

// seenBy is what a task is shown of a batch: with the failures of the job if it takes a record at a time. A micro-batch
// query reads its rows as they arrive, and has failures of its own.
func seenBy(t task, b *sim.Batch) *sim.Batch {
	if _, ok := t.(*sim.Recovering); ok {
		return b
	}
	return b.Plain()
}

// fail does what a mark says about the failures of a job.
func fail(t task, m sim.Mark) {
	r, ok := t.(*sim.Recovering)
	if !ok {
		return
	}
	switch m.Kind {
	case sim.Kept:
		r.Keep()
	case sim.Crashed:
		r.Crash(m.At)
	case sim.Restarted:
		r.Restart(m.At, m.Again)
	}
}

// uncounted counts, of rows that a job which fails is given, those that have no disposition yet and will get one, and
// the first ones of their events among them. What a crash undoes is counted when it is done again.
func (l *lane) uncounted(rows []stream.Row) (n int, firsts int64) {
	if l.recovering.Undone() {
		return 0, 0
	}
	for i := range rows {
		if l.ledger.Counted(rows[i].Tag) {
			continue
		}
		n++
		if rows[i].First {
			firsts++
		}
	}
	return n, firsts
}

// outlived reports whether a row came within the TTL of an earlier one of its event, and was handled after it.
func (l *leaks) outlived(leak sim.LeakedRow) bool {
	f, arrival := l.family(leak.Tag.Event()), l.w.Arrival(leak.Tag)
	for i := l.predecessor(f, f.place(leak.Tag)); i >= 0; i = l.predecessor(f, i) {
		if before := l.w.Arrival(f.rows[i]); arrival-before < l.plan.StateTTL && leak.At-before >= l.plan.StateTTL {
			return true
		}
	}
	return false
}

// jobFailures tells what went wrong.
func (r *run) jobFailures() []results.Failure {
	from, _ := r.workload.Span()
	var out []results.Failure
	for _, f := range r.failures() {
		out = append(out, results.Failure{Kind: f.Kind.String(), AtMS: int64(f.At - from), DownMS: int64(f.Down),
			ForMS: int64(f.For), ByMS: int64(f.By)})
	}
	return out
}

// outages tells how the job recovered.
func (r *run) outages() []results.Outage {
	from, _ := r.workload.Span()
	var out []results.Outage
	for _, o := range r.base.outages {
		one := results.Outage{CrashMS: int64(o.Crash - from), RestartMS: int64(o.Restart - from), CheckpointMS: -1,
			RowsAgain: o.Again, RowsWaiting: o.Waiting, CaughtUpMS: int64(o.CaughtUp - from), WatermarkMS: -1}
		if o.Kept != stream.MinTime {
			one.CheckpointMS = int64(o.Kept - from)
		}
		if o.Regained != stream.MaxTime {
			one.WatermarkMS = int64(o.Regained - from)
		}
		out = append(out, one)
	}
	return out
}

// failed tells what the failures did to a strategy; nil where the job has none.
func (r *run) failed(l *lane) *results.Failures {
	if len(r.scenario.Job.Failures) == 0 {
		return nil
	}
	f := &results.Failures{Outages: int64(len(r.base.outages)), LeakedByTTL: l.ttlByOutage}
	if l.batches != nil {
		f.Outages = l.batches.engine.Outages()
	}
	l.ledger.RecoveryResult(f)
	f.UndoneChanges += l.dropped
	return f
}

// failureFindings are what the failures of the job did to a strategy.
func failureFindings(s *results.Strategy, out *results.Run) []string {
	f := s.Failures
	if f == nil || f.Outages == 0 {
		return nil
	}
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	count := results.FormatCount
	if w := f.Wait; w.N > 0 {
		note("%s events came in while the job was down or had yet to do its work again: half of them waited %s or longer, "+
			"one waited %s", count(w.N), results.FormatSpan(w.P50), results.FormatSpan(w.Max))
	}
	if n := f.UndoneChanges; n > 0 && out.Job.Delivery == "exactly-once" {
		note("crashes undid %s changes, of which no reader has seen any: exactly-once", count(n))
	} else if n > 0 {
		note("%s changes had gone out when a crash undid them: at-least-once, so %s rows were written again", count(n),
			count(f.WrittenAgain))
	}
	if n := f.LeakedByTTL; n > 0 {
		note("%s copies had come within the TTL and came through all the same: processing time goes on while the job is "+
			"down, and the TTL ran out before they were handled", count(n))
	}
	return notes
}
