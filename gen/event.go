package gen

import (
	"cmp"
	"slices"

	"deduplab/stream"
)

// Rows implements Workload.
func (g *generator) Rows(to []stream.Tag, number uint64) []stream.Tag {
	var room [4]sending
	e := g.timeline.event(number)
	sendings := g.sendings(room[:0], e, g.partition(e))
	slices.SortStableFunc(sendings, func(a, b sending) int {
		return cmp.Or(cmp.Compare(a.arrival, b.arrival), cmp.Compare(a.partition, b.partition))
	})
	for i := range sendings {
		to = append(to, sendings[i].tag(number))
	}
	return to
}

// Rows implements Workload.
func (t *Trace) Rows(to []stream.Tag, event uint64) []stream.Tag {
	for _, row := range t.byEvent[t.starts[event]:t.starts[event+1]] {
		to = append(to, t.rows[row].Tag)
	}
	return to
}

// Ends implements Workload: a trace does not tell.
func (t *Trace) Ends() []End { return nil }

// Partition implements Workload.
func (t *Trace) Partition(tag stream.Tag) int { return int(t.rows[t.row(tag)].Partition) }

// ReusedID implements Workload.
func (t *Trace) ReusedID(uint64) bool { return false }

// LastArrival implements Workload.
func (t *Trace) LastArrival(event uint64) stream.Time {
	return t.rows[t.byEvent[t.starts[event+1]-1]].Arrival
}
