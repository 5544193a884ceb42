package downstream

import (
	"slices"

	"deduplab/stream"
)

// sums is the accumulator of COUNT(*) and SUM(column). SUM leaves NULL out, and is NULL where there is nothing else.
type sums struct {
	count   int64
	sum     int64
	addends int64 // rows whose column is not NULL
}

// add takes a change into account: -U and -D subtract where the changelog is declared to have them.
func (s *sums) add(kind stream.Kind, v stream.Value) {
	sign := int64(1)
	if kind == stream.UpdateBefore || kind == stream.Delete {
		sign = -1
	}
	s.count += sign
	if !v.Null {
		s.sum += sign * v.Int
		s.addends += sign
	}
}

func (s *sums) merge(t sums) {
	s.count += t.count
	s.sum += t.sum
	s.addends += t.addends
}

func (s *sums) values() []stream.Value {
	total := stream.Value{Int: s.sum}
	if s.addends == 0 {
		total = stream.Value{Null: true}
	}
	return []stream.Value{{Int: s.count}, total}
}

// Aggregate is SELECT COUNT(*), SUM(column) over all rows: Flink's GroupAggFunction. A query that is declared
// insert-only makes it count every +U as a further row: flink downstream/nontime-price-asc-then-count.
//
// With mini-batch it aggregates in two phases, each of which waits for the end of its batch.
type Aggregate struct {
	outbox
	spec          AggregateSpec
	sums          sums
	exists        bool
	written       stream.Time
	local, global batch
}

// batch is what waits for the end of a batch: so many rows. Those that take something back before anything was added
// are summed apart.
type batch struct {
	sums, leading sums
	rows          int
	adds          bool
}

func (b *batch) receive(s sums) {
	b.rows++
	if !b.adds && s.count < 0 {
		b.leading.merge(s)
		return
	}
	b.adds = true
	b.sums.merge(s)
}

// AggregateSpec says what an Aggregate does.
type AggregateSpec struct {
	Column int
	// Retracts says that its input is declared to have more than inserts: then it takes back what -U and -D name, and
	// sends -D when nothing is left.
	Retracts bool
	TTL      stream.Time
	// BatchSize is the number of rows that end a batch of mini-batch, 0 without. OnePhase leaves the first phase out.
	BatchSize int
	OnePhase  bool
}

// NewAggregate makes an Aggregate.
func NewAggregate(spec AggregateSpec) *Aggregate { return &Aggregate{spec: spec} }

// Change handles one change.
func (a *Aggregate) Change(kind stream.Kind, row stream.Record, at stream.Time) {
	var s sums
	s.add(kind, row[a.spec.Column])
	switch {
	case a.spec.BatchSize == 0:
		retracts := kind == stream.UpdateBefore || kind == stream.Delete
		if a.expire(at); a.exists || !retracts {
			a.apply(s, at)
		}
	case a.spec.OnePhase:
		a.receive(s, at)
	default:
		if a.local.receive(s); a.local.rows >= a.spec.BatchSize {
			a.handOn(at)
		}
	}
}

// apply brings sums into the result.
func (a *Aggregate) apply(s sums, at stream.Time) {
	a.expire(at)
	before, existed := a.sums, a.exists
	a.sums.merge(s)
	a.exists, a.written = true, at
	switch {
	case a.spec.Retracts && a.sums.count == 0:
		if existed {
			a.send(stream.Delete, before.values()...)
		}
		a.exists, a.sums = false, sums{}
	case !existed:
		a.send(stream.Insert, a.sums.values()...)
	case a.spec.TTL > 0 || !slices.Equal(before.values(), a.sums.values()):
		a.send(stream.UpdateBefore, before.values()...)
		a.send(stream.UpdateAfter, a.sums.values()...)
	}
}

func (a *Aggregate) expire(at stream.Time) {
	if a.exists && a.spec.TTL > 0 && a.written+a.spec.TTL <= at {
		a.exists, a.sums = false, sums{}
	}
}

// handOn sends the first phase's batch through the shuffle, where it counts as one row.
func (a *Aggregate) handOn(at stream.Time) {
	if a.local.rows > 0 {
		s := a.local.sums
		s.merge(a.local.leading)
		a.local = batch{}
		a.receive(s, at)
	}
}

// receive takes a row into the batch behind the shuffle.
func (a *Aggregate) receive(s sums, at stream.Time) {
	if a.global.receive(s); a.global.rows >= a.spec.BatchSize {
		a.finish(at)
	}
}

// finish ends the batch behind the shuffle. In one phase, what takes something back from a result that is not there, or
// not any more, is left out, as without batches.
func (a *Aggregate) finish(at stream.Time) {
	b := a.global
	a.global = batch{}
	a.expire(at)
	if a.exists || !a.spec.OnePhase {
		b.sums.merge(b.leading)
	} else if !b.adds {
		return
	}
	if b.rows > 0 {
		a.apply(b.sums, at)
	}
}

// Watermark ends the batches.
func (a *Aggregate) Watermark(_, at stream.Time) { a.Checkpoint(at) }

// Checkpoint ends the batches.
func (a *Aggregate) Checkpoint(at stream.Time) {
	a.handOn(at)
	a.finish(at)
}

// State tells what the operator holds.
func (a *Aggregate) State() State {
	n := 0
	if a.exists {
		n = 1
	}
	return State{Entries: map[string]int{"accState": n}}
}
