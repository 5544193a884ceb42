package sim

import (
	"cmp"
	"slices"

	"deduplab/stream"
)

// Failure is something that goes wrong in a job.
//
// A job that takes a record at a time is restored from its last completed checkpoint, as Flink restores one: the source
// reads again from where it stood then, watermark generators start anew, and state is what it was. A micro-batch query
// goes on from its last committed batch, as Spark does: a batch under way starts again with the same rows, and one that
// was written and not committed is written twice.
type Failure struct {
	Kind FailureKind
	At   stream.Time
	// Down is how long the job is down: of CrashFailure, SinkFailure and RewindFailure.
	Down stream.Time
	// For is how long a slow checkpoint takes.
	For stream.Time
	// By is how much earlier than needed the source is read from.
	By stream.Time
}

// FailureKind says what goes wrong.
type FailureKind uint8

// The failures.
const (
	// CrashFailure is a crash of the job.
	CrashFailure FailureKind = iota
	// LostCheckpoint: the first checkpoint from then on never completes. Operators have flushed for it all the same.
	// The checkpoint of a micro-batch is its commit, so that a query takes no notice.
	LostCheckpoint
	// SlowCheckpoint: the first checkpoint from then on takes For, and none is begun meanwhile
	// (execution.checkpointing.max-concurrent-checkpoints is 1).
	SlowCheckpoint
	// SinkFailure: the sink writes what the first checkpoint from then on, or the first micro-batch, holds, and the job
	// crashes before it is committed.
	SinkFailure
	// RewindFailure is a crash after which the source reads from By earlier than needed. A micro-batch query reads its
	// offsets from its own checkpoint: to it this is a crash.
	RewindFailure
)

var failureNames = []string{"crash", "lost-checkpoint", "slow-checkpoint", "sink", "rewind"}

// FailureKinds are the names of the failures in the order of their numbers.
func FailureKinds() []string { return slices.Clone(failureNames) }

// String is the name in a scenario.
func (k FailureKind) String() string { return failureNames[k] }

// crashes reports whether the job goes down.
func (k FailureKind) crashes() bool { return k != LostCheckpoint && k != SlowCheckpoint }

// outage is a time for which the job is down.
type outage struct {
	// kept is the checkpoint that the job goes back to; MinTime: it starts from nothing.
	kept           stream.Time
	crash, restart stream.Time
	by             stream.Time // what the source rewinds further than needed
	flushed        bool        // a checkpoint has been begun at the crash
}

// Failures is the course of a job's checkpoints and failures, which is known before the job has begun.
type Failures struct {
	interval stream.Time // of the checkpoints, 0: none
	outages  []outage
	lost     []stream.Time // checkpoints
	slow     []slowCheckpoint
}

type slowCheckpoint struct{ at, done stream.Time }

// PlanFailures lays out the failures of a job that begins at a moment; they are given by when they happen. A crash
// while the job is down makes the outage longer.
func PlanFailures(failures []Failure, from, interval stream.Time) *Failures {
	p := &Failures{interval: interval}
	failures = slices.Clone(failures)
	slices.SortStableFunc(failures, func(a, b Failure) int { return cmp.Compare(a.At, b.At) })
	kept, under := stream.MinTime, slowCheckpoint{stream.MinTime, stream.MinTime}
	next := nextMultiple(from, interval)
	crash := func(f *Failure, at stream.Time, flushed bool) {
		by := stream.Time(0)
		if f.Kind == RewindFailure {
			by = f.By
		}
		if n := len(p.outages); n > 0 && at <= p.outages[n-1].restart {
			last := &p.outages[n-1]
			last.restart, last.by = max(last.restart, at+f.Down), max(last.by, by)
			next = nextMultiple(last.restart, interval)
			return
		}
		if under.done < at {
			kept = max(kept, under.at)
		} else if under.at != stream.MinTime {
			p.slow[len(p.slow)-1].done = at // it is given up
		}
		p.outages = append(p.outages, outage{kept, at, at + f.Down, by, flushed})
		under = slowCheckpoint{stream.MinTime, stream.MinTime}
		next = nextMultiple(at+f.Down, interval)
	}
	take := func(is func(*Failure) bool) *Failure {
		for i := range failures {
			if f := failures[i]; is(&f) {
				failures = slices.Delete(failures, i, i+1)
				return &f
			}
		}
		return nil
	}
	atOnce := func(f *Failure) bool {
		down := len(p.outages) > 0 && f.At <= p.outages[len(p.outages)-1].restart
		return f.At <= next && f.Kind.crashes() && (f.Kind != SinkFailure || interval == 0 || down)
	}
	for len(failures) > 0 {
		if f := take(atOnce); f != nil {
			crash(f, f.At, false)
			continue
		}
		if next == stream.MaxTime { // the checkpoint that it is about never comes
			break
		}
		at := next
		next += interval
		if at < under.done {
			continue
		}
		if under.at != stream.MinTime {
			kept, under = max(kept, under.at), slowCheckpoint{stream.MinTime, stream.MinTime}
		}
		f := take(func(f *Failure) bool { return f.At <= at })
		switch {
		case f == nil:
			kept = at
		case f.Kind == SinkFailure:
			crash(f, at, true)
		case f.Kind == LostCheckpoint:
			p.lost = append(p.lost, at)
		case f.Kind == SlowCheckpoint:
			under = slowCheckpoint{at, at + f.For}
			p.slow = append(p.slow, under)
		}
	}
	return p
}

// begins reports whether a checkpoint is begun at a multiple of the interval.
func (p *Failures) begins(at stream.Time) bool {
	for _, o := range p.outages {
		if at >= o.crash && at <= o.restart && !(o.flushed && at == o.crash) {
			return false
		}
	}
	return !slices.ContainsFunc(p.slow, func(s slowCheckpoint) bool { return s.at < at && at < s.done })
}

// CommitAt is when a change of a moment that no crash undoes becomes visible under exactly-once: when the first
// checkpoint that holds it has completed.
func (p *Failures) CommitAt(t stream.Time) stream.Time {
	for at := CommitAt(t, p.interval); ; at += p.interval {
		if i := slices.IndexFunc(p.slow, func(s slowCheckpoint) bool { return s.at == at }); i >= 0 {
			return p.slow[i].done
		}
		flushed := slices.ContainsFunc(p.outages, func(o outage) bool { return o.flushed && o.crash == at })
		if p.begins(at) && !flushed && !slices.Contains(p.lost, at) {
			return at
		}
	}
}

// rewound reports whether the source may read the rows again that are handled at a moment, although a checkpoint holds
// them.
func (p *Failures) rewound(at stream.Time) bool {
	for _, o := range p.outages {
		if o.by > 0 && o.kept != stream.MinTime && at >= o.kept-o.by && at <= o.kept {
			return true
		}
	}
	return false
}

// FirstCrash is the moment of the first crash, MaxTime if there is none.
func (p *Failures) FirstCrash() stream.Time {
	if len(p.outages) == 0 {
		return stream.MaxTime
	}
	return p.outages[0].crash
}

// delays reports whether a row that arrives at a moment is handled after a restart only, or again.
func (p *Failures) delays(arrival stream.Time) bool {
	return slices.ContainsFunc(p.outages, func(o outage) bool { return arrival > o.kept && arrival < o.restart })
}
