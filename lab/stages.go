package lab

import (
	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// TargetSpec says what a table is opened for.
type TargetSpec struct {
	Strategy string // its id
	Records  stream.Records
	// UniqueKey says that no key comes into the table twice, NullSafe that this is so of keys with a NULL as well.
	UniqueKey, NullSafe bool
}

// stages measures what each stage of a strategy does: first those of Plan.Front, then those of its query.
type stages struct {
	list  []stage
	front int // stages in front of the query
}

// stage is one of them.
type stage struct {
	results.Stage
	out                eventSet
	whole, narrow      int64 // bytes of a row, 0 where nothing is shuffled to it
	audits             bool
	joinedRows, joined int64 // rows and partitions read, over all batches
}

// eventSet is a set of events.
type eventSet struct {
	bits []uint64
	n    int64
}

func (s *eventSet) add(event uint64) {
	for event/64 >= uint64(len(s.bits)) {
		s.bits = append(s.bits, make([]uint64, max(1024, len(s.bits)))...)
	}
	if bit := uint64(1) << (event % 64); s.bits[event/64]&bit == 0 {
		s.bits[event/64] |= bit
		s.n++
	}
}

// newStages makes the counters of a strategy.
func newStages(e entry, schema stream.Schema) *stages {
	s := &stages{front: len(e.plan.Front)}
	for _, f := range e.plan.Front {
		whole, narrow := strategies.FlinkRowBytes(schema)
		s.list = append(s.list, stage{Stage: results.Stage{Name: f.Name, Engine: f.Engine},
			whole: int64(whole), narrow: int64(narrow)})
	}
	for _, b := range e.plan.Batch.Stages {
		name, engine := b.Strategy, b.Engine
		if name == "" {
			name, engine = e.Strategy.Name, e.Strategy.Engine
			if b.Writes && len(e.plan.Batch.Stages) > 1 {
				name = b.Name
			}
		}
		whole, narrow := b.RowBytes(schema)
		st := stage{Stage: results.Stage{Name: name, Engine: engine}, whole: int64(whole), narrow: int64(narrow),
			audits: b.Audits}
		if b.Audits {
			st.Audit = &results.Audit{}
		}
		s.list = append(s.list, st)
	}
	return s
}

// change counts a change of a task in front of the query.
func (s *stages) change(task int, c *sim.Change) {
	st := &s.list[task]
	switch c.Op {
	case sim.OpEmit, sim.OpDrop, sim.OpHold:
		st.RowsIn++
	}
	switch c.Op {
	case sim.OpEmit, sim.OpRelease:
		if c.Kind == stream.Insert || c.Kind == stream.UpdateAfter {
			st.RowsOut++
			st.out.add(c.Tag.Event())
		}
	case sim.OpDrop, sim.OpDropHeld:
		switch c.To {
		case sim.Duplicate:
			st.Suppressed++
		case sim.Late:
			st.Late++
		}
	}
}

// batch counts what a stage has done in a batch. The first attempt is what counts: what it has written stays.
func (s *stages) batch(i int, p *sim.StageProgress, b *sim.MicroBatch, out []stream.Row) {
	i += s.front
	st := &s.list[i]
	st.Repaired += p.Repaired
	if b.Attempt > 1 {
		if last := i+1 == len(s.list) || s.list[i+1].audits; last && !st.audits {
			st.WriteDuplicates += int64(len(out))
		}
		return
	}
	st.RowsIn += p.RowsIn
	st.RowsOut += p.RowsOut
	st.Updates += p.RowsReplacing
	st.Suppressed += p.DroppedDuplicates
	st.Late += p.DroppedByWatermark
	st.RowsTotalPeak = max(st.RowsTotalPeak, p.RowsTotal)
	st.RowsTotalEnd = p.RowsTotal
	for r := range out {
		st.out.add(out[r].Tag.Event())
	}
	if p.JoinedRows > 0 || p.JoinedDates > 0 || !st.audits && p.RowsIn > 0 && st.Read != nil {
		st.read(p.JoinedRows, p.JoinedDates)
	}
}

// read counts one read of the table.
func (s *stage) read(rows, partitions int64) {
	if s.Read == nil {
		s.Read = &results.StageRead{}
	}
	s.Read.Times++
	s.joinedRows += rows
	s.joined += partitions
	s.Read.RowsMax, s.Read.PartitionsMax = max(s.Read.RowsMax, rows), max(s.Read.PartitionsMax, partitions)
}

// audit counts a run of the audit.
func (s *stages) audit(run *sim.AuditRun) {
	for i := range s.list {
		if a := s.list[i].Audit; a != nil {
			a.Runs++
			a.Keys, a.ExtraRows = run.Keys, run.Extra
			a.Found += run.New.SameBatch + run.New.Inside + run.New.Outside
			a.SameBatch += run.New.SameBatch
			a.Inside += run.New.Inside
			a.Outside += run.New.Outside
			a.NeededLookbackDays = max(a.NeededLookbackDays, run.Needed)
			a.Repaired += run.Repaired
		}
	}
}

// held notes what the tasks in front of the query hold.
func (s *stages) held(chain *sim.Chain) {
	for i := range s.front {
		total := int64(0)
		for _, sub := range chain.TaskState(i) {
			total += int64(sub.State.Entries + sub.State.Cached + sub.State.Buffered)
		}
		s.list[i].RowsTotalEnd = total
		s.list[i].RowsTotalPeak = max(s.list[i].RowsTotalPeak, total)
	}
}

// result settles the counters. Events is the number of events that came in, s what the ledger says of the result: an
// audit leaves what stands in the table at the end.
func (s *stages) result(events int64, ledger *results.Strategy, shuffle string) []results.Stage {
	var list []results.Stage
	written := int64(0) // rows of the table that the audit is not given by the sink: written twice, less those replaced
	for i := range s.list {
		st := &s.list[i]
		shuffled := st.RowsIn
		if st.audits {
			shuffled = st.joinedRows
			st.RowsIn += written
			st.RowsOut = st.RowsIn - st.Repaired
			st.WriteDuplicates = ledger.WriteDuplicates
			st.Leaked, st.Lost = ledger.Leaked-ledger.WriteDuplicates, events-ledger.Fates.Kept
		} else {
			st.Leaked, st.Lost = st.RowsOut-st.out.n, events-st.out.n
		}
		if st.Updates > 0 { // an update can take an event out again, which only the ledger knows
			st.Lost = events - ledger.Fates.Kept
			st.Leaked = st.RowsOut - st.Updates - ledger.Fates.Kept
		}
		st.Caught = st.RowsIn - st.RowsOut
		events, written = events-st.Lost, st.WriteDuplicates-st.Updates
		st.shuffle(shuffled, shuffle == scenarios.KeyFirst)
		if r := st.Read; r != nil {
			r.RowsMean = float64(st.joinedRows) / float64(r.Times)
			r.PartitionsMean = float64(st.joined) / float64(r.Times)
		}
		list = append(list, st.Stage)
	}
	return list
}

// shuffle fills in what is moved to the stage by key. An audit needs no payload, which the others get back.
func (s *stage) shuffle(rows int64, keyFirst bool) {
	s.ShuffleBytesWholeRow, s.ShuffleBytesKeyFirst = rows*s.whole, rows*s.narrow
	s.ShuffleBytes = s.ShuffleBytesWholeRow
	if keyFirst {
		s.ShuffleBytes = s.ShuffleBytesKeyFirst
		if !s.audits {
			s.JoinBackBytes = s.RowsOut * s.whole
		}
	}
}

// openTarget opens the table that a strategy writes to, nil if it writes none or none but one in memory is asked for.
// Replays write to memory: all targets give the same rows.
func (r *run) openTarget(e entry, measured bool) (sim.Target, error) {
	for _, s := range e.plan.Batch.Stages {
		if s.Writes && measured && r.options.OpenTarget != nil {
			return r.options.OpenTarget(TargetSpec{e.ID, e.workload, s.UniqueKey, s.NullSafe})
		}
	}
	return nil, nil
}
