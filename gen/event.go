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
	sendings := g.sendings(room[:0], e, g.partition(e.draw))
	first := len(to)
	for i, s := range sendings {
		to = append(to, stream.NewTag(number, s.origin, i))
	}
	slices.SortStableFunc(to[first:], func(a, b stream.Tag) int {
		return cmp.Compare(sendings[a.Copy()].arrival, sendings[b.Copy()].arrival)
	})
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
func (g *generator) Partition(tag stream.Tag) int { return g.partition(g.timeline.draw(tag.Event())) }

// Partition implements Workload.
func (t *Trace) Partition(tag stream.Tag) int { return int(t.rows[t.row(tag)].Partition) }

// LastArrival implements Workload.
func (t *Trace) LastArrival(event uint64) stream.Time {
	return t.rows[t.byEvent[t.starts[event+1]-1]].Arrival
}
