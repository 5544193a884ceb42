package gen

import (
	"cmp"
	"slices"

	"deduplab/stream"
)

// Rows implements Workload.
func (g *generator) Rows(number uint64) []stream.Tag {
	e := g.timeline.event(number)
	sendings := g.sendings(nil, e, g.partition(e.draw))
	order := make([]int, len(sendings))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sendings[a].arrival, sendings[b].arrival) })
	tags := make([]stream.Tag, len(sendings))
	for i, copy := range order {
		tags[i] = stream.NewTag(number, sendings[copy].origin, copy)
	}
	return tags
}

// Rows implements Workload.
func (t *trace) Rows(event uint64) []stream.Tag {
	rows := t.byEvent[t.starts[event]:t.starts[event+1]]
	tags := make([]stream.Tag, len(rows))
	for i, row := range rows {
		tags[i] = t.rows[row].Tag
	}
	return tags
}
