package downstream

import "deduplab/stream"

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
	return []stream.Value{{Int: s.count}, {Int: s.sum, Null: s.addends == 0}}
}

// Aggregate is SELECT COUNT(*), SUM(column) over all rows: Flink's GroupAggFunction. A query that is declared insert-only
// makes it count every +U as a further row: flink downstream/nontime-price-asc-then-count.
type Aggregate struct {
	outbox
	spec    AggregateSpec
	sums    sums
	exists  bool
	written stream.Time
}

// AggregateSpec says what an Aggregate does.
type AggregateSpec struct {
	Column int
	// Retracts says that its input is declared to have more than inserts: then it takes back what -U and -D name, and
	// sends -D when nothing is left.
	Retracts bool
	TTL      stream.Time
}

// NewAggregate makes an Aggregate.
func NewAggregate(spec AggregateSpec) *Aggregate { return &Aggregate{spec: spec} }

// Change handles one change.
func (a *Aggregate) Change(kind stream.Kind, row stream.Record, at stream.Time) {
	if a.expired(at) {
		a.exists, a.sums = false, sums{}
	}
	retracts := kind == stream.UpdateBefore || kind == stream.Delete
	if !a.exists && retracts {
		return
	}
	before := a.sums
	a.sums.add(kind, row[a.spec.Column])
	a.written = at
	switch {
	case a.spec.Retracts && a.sums.count == 0:
		a.send(stream.Delete, before.values()...)
		a.exists, a.sums = false, sums{}
	case !a.exists:
		a.exists = true
		a.send(stream.Insert, a.sums.values()...)
	default:
		a.send(stream.UpdateBefore, before.values()...)
		a.send(stream.UpdateAfter, a.sums.values()...)
	}
}

func (a *Aggregate) expired(at stream.Time) bool {
	return a.exists && a.spec.TTL > 0 && a.written+a.spec.TTL <= at
}

// Watermark does nothing.
func (a *Aggregate) Watermark(stream.Time) {}

// Checkpoint does nothing.
func (a *Aggregate) Checkpoint(stream.Time) {}

// State tells what the operator holds.
func (a *Aggregate) State() State {
	n := 0
	if a.exists {
		n = 1
	}
	return State{Entries: map[string]int{"accState": n}}
}
