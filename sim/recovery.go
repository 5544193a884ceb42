package sim

import (
	"slices"

	"deduplab/stream"
)

// Outage is a time for which a job was down, and how it caught up.
type Outage struct {
	Crash, Restart stream.Time
	// Kept is the checkpoint that the job went back to, MinTime where none had completed.
	Kept stream.Time
	By   stream.Time // what the source was rewound further than needed
	// Again counts the rows that were handled before the crash and read again, Waiting those that waited at the
	// restart, these among them.
	Again, Waiting int64
	// CaughtUp is when the last row that had waited was handled.
	CaughtUp stream.Time
	// Watermark is the watermark at the crash, MinTime where there was none, and Regained when it was that again;
	// MaxTime: not before the next crash.
	Watermark, Regained stream.Time
}

// recovery is what a feed knows of a job that fails.
type recovery struct {
	feed     *Feed
	arriving *Feed // the same stream without failures
	plan     *Failures
	rewind   *rewinder
	outages  []Outage
	begun    bool
	down     bool
	next     stream.Time // the next crash or restart
	rows     int64       // handled
	over     []bool      // by partition: its last row has been handled
	keptOver []bool      // what that was at the checkpoint that was kept
}

func newRecovery(f *Feed) *recovery {
	spec := f.spec
	spec.Failures = nil
	r := &recovery{
		feed: f, arriving: NewFeed(spec), plan: f.spec.Failures, next: stream.MaxTime,
		rewind: newRewinder(f.rows, spec.Workload.Partitions(), spec.Source.Readers),
		over:   make([]bool, spec.Workload.Partitions()), keptOver: make([]bool, spec.Workload.Partitions()),
	}
	f.rows = r.rewind
	r.expect()
	return r
}

// upcoming is the outage that is next, or under way; nil: there is none.
func (r *recovery) upcoming() *outage {
	n := len(r.outages)
	if r.down {
		n--
	}
	if n == len(r.plan.outages) {
		return nil
	}
	return &r.plan.outages[n]
}

// expect prepares for the next crash.
func (r *recovery) expect() {
	o := r.upcoming()
	if o == nil {
		r.next, r.rewind.keepFrom = stream.MaxTime, stream.MaxTime
		return
	}
	r.next, r.rewind.keepFrom = o.crash, o.readFrom()
}

// readFrom is the arrival from which on rows are read again for sure.
func (o *outage) readFrom() stream.Time {
	if o.kept == stream.MinTime {
		return stream.MinTime
	}
	return o.kept - o.by
}

// begin keeps the start if the first crash goes back to it.
func (r *recovery) begin() {
	if r.begun {
		return
	}
	r.begun = true
	if o := r.upcoming(); o != nil && o.kept == stream.MinTime {
		r.keep(stream.MinTime)
	}
}

// pending is the row that has been taken and not been handled; nil: there is none.
func (r *recovery) pending() *stream.Row {
	if r.feed.has {
		return &r.feed.pending
	}
	return nil
}

// keep keeps a checkpoint if the next crash goes back to it.
func (r *recovery) keep(at stream.Time) {
	o := r.upcoming()
	if o == nil || o.kept != at {
		return
	}
	from := o.readFrom()
	for _, later := range r.plan.outages { // that go back to it too
		if later.kept == at {
			from = min(from, later.readFrom())
		}
	}
	r.rewind.keep(r.pending(), from)
	r.keptOver = slices.Clone(r.over)
	r.feed.mark(Mark{Kind: Kept})
}

// crashOrRestart does what is next.
func (r *recovery) crashOrRestart(at stream.Time) {
	f, o := r.feed, r.upcoming()
	if !r.down {
		out := Outage{Crash: o.crash, Restart: o.restart, Kept: o.kept, By: o.by, CaughtUp: o.restart,
			Watermark: f.combined, Regained: stream.MaxTime}
		if f.combined == stream.MinTime {
			out.Regained = o.restart
		}
		r.rewind.rate = f.spec.CatchUpRate
		if r.rewind.rate == 0 {
			from, _ := f.spec.Workload.Span()
			r.rewind.rate = max(100*1000*r.rows/max(int64(at-from), 1)/int64(r.rewind.readers), 1)
		}
		before := slices.Clone(r.rewind.kept)
		out.Again = r.rewind.rewind(r.pending(), o.readFrom(), o.restart)
		for p := range r.over { // one of which rows are read again is over no more
			r.over[p] = r.keptOver[p] && r.rewind.read[p] == before[p]
		}
		f.has, f.read, f.tick = false, false, stream.MaxTime
		r.outages, r.down, r.next = append(r.outages, out), true, o.restart
		f.mark(Mark{Kind: Crashed})
		return
	}
	last := &r.outages[len(r.outages)-1]
	spec := f.spec.Source
	spec.Start = at
	f.combined, f.source = stream.MinTime, NewSource(spec, f)
	if period := f.source.Period(); period > 0 {
		f.tick = at + period
	}
	for p := range f.newest {
		f.newest[p], f.lastRow[p], f.catching[p] = stream.MinTime, at, false
		if r.over[p] {
			f.source.Finish(p)
		}
	}
	r.down = false
	next := r.upcoming()
	f.mark(Mark{Kind: Restarted, Again: next != nil && next.kept == last.Kept})
	_, _ = r.rewind.pull(at) // an error comes again
	last.Waiting = r.rewind.backlog()
	r.expect()
}

// handled notes a row.
func (r *recovery) handled(row *stream.Row) {
	r.rows++
	if n := len(r.outages); n > 0 && r.rewind.catching && row.Arrival > r.outages[n-1].CaughtUp {
		r.outages[n-1].CaughtUp = row.Arrival
	}
}

// regain notes that a watermark is what it was before a crash.
func (r *recovery) regain(w stream.Time) {
	if len(r.outages) == 0 || r.down {
		return
	}
	if last := &r.outages[len(r.outages)-1]; last.Regained == stream.MaxTime && w >= last.Watermark {
		last.Regained = r.feed.now
	}
}

// Outages are the times for which the job was down; all is known once the feed has ended.
func (f *Feed) Outages() []Outage {
	if f.recovery == nil {
		return nil
	}
	return f.outages
}

// Recovering is a [Task] that crashes and is restored from its last completed checkpoint. Which checkpoint that will be
// is known beforehand, by the marks of a [Feed]: so what a crash undoes is known when it is done. Under exactly-once
// nobody is told of it. Under at-least-once it has gone out, and is done again: see Change.Early.
type Recovering struct {
	*Task
	spec        TaskSpec
	exactlyOnce bool
	kept        *Snapshot
	// counted is what the subtasks had counted before the last restart, keptCounts at the checkpoint that was kept.
	counted, keptCounts []taskCounts
	undone, down        bool
	err                 error
	told                []toldChange // not drained yet
	dropped             int64
}

type taskCounts struct{ rows, late int64 }

type toldChange struct {
	Change
	key   stream.Key
	parts []stream.Tag
}

// NewRecovering makes a task that recovers. ExactlyOnce says that what a crash undoes has not gone out.
func NewRecovering(spec TaskSpec, exactlyOnce bool) *Recovering {
	return &Recovering{Task: NewTask(spec), spec: spec, exactlyOnce: exactlyOnce,
		counted: make([]taskCounts, spec.Parallelism)}
}

// Keep stores what the last checkpoint holds: the mark Kept.
func (r *Recovering) Keep() {
	r.collect()
	r.kept, r.keptCounts, r.undone = r.Task.Snapshot(), r.counts(), true
}

// Crash ends the task: the mark Crashed.
func (r *Recovering) Crash(now stream.Time) {
	r.Task.Clock(now)
	r.collect()
	if r.err == nil {
		r.err = r.Task.Err()
	}
	r.undone, r.down = false, true
}

// Restart restores the task from the checkpoint that was kept: the mark Restarted. Again says that a crash will undo
// what follows.
func (r *Recovering) Restart(now stream.Time, again bool) {
	r.Task = RestoreTask(r.spec, r.kept, now)
	r.counted = r.keptCounts
	r.undone, r.down = again, false
}

// Clock moves processing time, unless the job is down.
func (r *Recovering) Clock(now stream.Time) {
	if !r.down {
		r.Task.Clock(now)
	}
}

// Undone reports whether a crash will undo what is done now.
func (r *Recovering) Undone() bool { return r.undone }

// Dropped counts the changes of rows in the result that crashes have undone and nobody was told of.
func (r *Recovering) Dropped() int64 { return r.dropped }

// Drain hands all changes since the last call to f.
func (r *Recovering) Drain(f func(change *Change, key stream.Key, parts []stream.Tag)) {
	for i := range r.told {
		f(&r.told[i].Change, r.told[i].key, r.told[i].parts)
	}
	r.told = r.told[:0]
	r.drain(f)
}

// drain hands on what the task has done.
func (r *Recovering) drain(f func(change *Change, key stream.Key, parts []stream.Tag)) {
	switch {
	case !r.undone:
		r.Task.Drain(f)
	case r.exactlyOnce:
		r.Task.Drain(func(c *Change, _ stream.Key, _ []stream.Tag) {
			if c.goesOut() {
				r.dropped++
			}
		})
	default:
		r.Task.Drain(func(c *Change, key stream.Key, parts []stream.Tag) {
			early := *c
			early.Early = true
			f(&early, key, parts)
		})
	}
}

// goesOut reports whether a change of a task reaches the sink.
func (c *Change) goesOut() bool { return c.Op == OpEmit || c.Op == OpRelease || c.Op == OpAgain }

// collect keeps what has been done so far until somebody asks.
func (r *Recovering) collect() {
	r.drain(func(c *Change, key stream.Key, parts []stream.Tag) {
		r.told = append(r.told, toldChange{*c, key, parts})
	})
}

func (r *Recovering) counts() []taskCounts {
	counts := slices.Clone(r.counted)
	for i, s := range r.Task.Subtasks() {
		counts[i].rows += s.Rows
		counts[i].late += s.LateDropped
	}
	return counts
}

// Subtasks returns how many rows each subtask was given, over all restarts but for what was undone, and what it holds.
func (r *Recovering) Subtasks() []SubtaskState {
	states := r.Task.Subtasks()
	for i := range states {
		states[i].Rows += r.counted[i].rows
		states[i].LateDropped += r.counted[i].late
	}
	return states
}

// Err is the first error.
func (r *Recovering) Err() error {
	if r.err != nil {
		return r.err
	}
	return r.Task.Err()
}
