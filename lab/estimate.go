package lab

import (
	"cmp"
	"context"
	"slices"

	"deduplab/gen"
	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/strategies"
)

// Estimate is the memory that a run will take at its peak, in bytes.
type Estimate struct {
	Stream     int64 // copies under way, and what finds events again
	Strategies []StrategyEstimate
}

// StrategyEstimate is the part of one strategy.
type StrategyEstimate struct {
	ID   string
	Keys int64 // entries that its state holds at once
	// State is what its keys take in memory, Rows what rows take that wait or stand in its table, and Ledger what is noted
	// of each event.
	State, Rows, Ledger int64
	// OnDisk says that most of its keys could be on disk and are not. Those that wait for a deadline cannot.
	OnDisk bool
}

// Total is all of a strategy.
func (s StrategyEstimate) Total() int64 { return s.State + s.Rows + s.Ledger }

// Total is all of it, with what the garbage collector needs beside it.
func (e *Estimate) Total() int64 {
	total := e.Stream
	for _, s := range e.Strategies {
		total += s.Total()
	}
	return int64(float64(total) * headroom)
}

const (
	// sampleEvents is how many events are enough to tell what a stream and a strategy hold; smallEvents is the size of a
	// run that is not worth an estimate.
	sampleEvents = 60_000
	smallEvents  = 500_000

	headroom = 1.15 // what the heap may grow to where memory is short

	// An entry takes 40 bytes, and 15 in the index after it has grown; while it grows, the old one stands beside it.
	entryBytes    = 65
	deadlineBytes = 5   // of an entry that waits for one
	spillBytes    = 105 // of an entry that is about to be spilled, and of its place in the spill
	timerBytes    = 16
	waitingBytes  = 200 // of a row that waits for its batch, with what becomes of it
	storedBytes   = 250 // of a row in a table in memory: see sim.NewMemoryTarget
	underWayBytes = 100 // of a row that is to arrive
	// Of an event: in the ledger its byte, and the old bytes while they grow; and its share of the marks by which it is
	// found again.
	fateBytes = 2.5
	markBytes = 0.25
	// settledBytes is what the ledger keeps of an event that waits while more of its rows are to come.
	settledBytes = 60
)

// EstimateMemory tells what a run will take in memory, from the run of a small part of the stream: what is held grows
// as the rate does. It is nil where the run is small, or of a trace, which is in memory already.
func EstimateMemory(ctx context.Context, s *scenarios.Scenario, o Options) (*Estimate, error) {
	spec := s.Workload.Spec
	if spec == nil || spec.Originals() <= smallEvents {
		return nil, nil
	}
	times := spec.Originals() / sampleEvents
	part, small := *s, spec.Scaled(1/times)
	part.Workload.Spec, part.Job.State = &small, "memory"
	r, err := newRun(&part, Options{Only: o.Only, SpillAt: o.SpillAt})
	if err != nil {
		return nil, err
	}
	if r.base, err = r.basePass(ctx); err != nil {
		return nil, err
	}
	underWay, err := gen.MostUnderWay(r.source)
	if err != nil {
		return nil, err
	}
	out := &Estimate{Stream: int64(times * (sampleEvents*markBytes + float64(underWay)*underWayBytes))}
	for i, e := range r.entries {
		if l := r.base.lanes[i]; l != nil && l.noEventTime == nil {
			out.Strategies = append(out.Strategies, r.estimate(l, e, s.Job, times))
		}
	}
	return out, nil
}

// estimate tells what a strategy will hold in a stream that is so many times as large as the one that it has run on.
func (r *run) estimate(l *lane, e entry, job scenarios.Job, times float64) StrategyEstimate {
	var s results.Strategy
	l.ledger.Result(&s)
	pinned := times * float64(l.mostPinned)
	other := times*float64(l.mostEntries) - pinned // entries without a deadline
	out := StrategyEstimate{ID: e.ID, Keys: int64(other + pinned), OnDisk: other > pinned}
	state := pinned*deadlineBytes + times*float64(l.state(nil).TimersPeak)*timerBytes
	spill := float64(cmp.Or(r.options.SpillAt, sim.DefaultSpillAt) * len(l.peaks))
	if job.State == "pebble" && other > spill {
		out.OnDisk = false
		state += pinned*entryBytes + spill*spillBytes
	} else {
		state += (other + pinned) * entryBytes
	}
	out.State = int64(state)
	waiting, stored := float64(l.ledger.MostHeld()), 0.0
	if e.plan.Batch != nil {
		writes := slices.ContainsFunc(e.plan.Batch.Stages, func(s strategies.Stage) bool { return s.Writes })
		if writes && job.TableKind() == "memory" {
			stored = float64(s.ResultRows)
		}
	}
	out.Rows = int64(times * (waiting*waitingBytes + stored*storedBytes))
	ledger := sampleEvents * fateBytes
	if job.Sink == strategies.Upsert {
		ledger += float64(s.ResultRows) * entryBytes
	}
	if e.plan.Batch != nil || e.plan.InBatches {
		ledger += float64(r.base.survey.rows-r.base.survey.firsts) * settledBytes
	}
	out.Ledger = int64(times * ledger)
	return out
}
