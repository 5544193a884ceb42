package sim

import (
	"cmp"
	"slices"

	"deduplab/stream"
)

// byKey sorts the rows of a batch.
type byKey struct {
	places []place
	sorted []stream.Row
}

// place is where a row of a batch stands, with the half of its key that tells nearly all keys apart.
type place struct {
	hi uint64
	at int
}

// ByKey calls back for each key of a batch with its rows, as [BatchCtx.SortByKey] orders them, until the callback
// returns false. Table is where the keys will be looked for.
func (c *BatchCtx) ByKey(rows []stream.Row, table *Table, group func(rows []stream.Row) bool) {
	touched := 0 // rows
	rest := c.SortByKey(rows)
	for len(rest) > 0 {
		if touched <= 0 {
			touched = min(len(rest), maxRun)
			table.Touch(rest[:touched])
		}
		n := 1
		for n < len(rest) && rest[n].Key == rest[0].Key {
			n++
		}
		if !group(rest[:n]) {
			return
		}
		rest, touched = rest[n:], touched-n
	}
}

// SortByKey returns rows by key, those of one key in the order in which they came: the sort in front of an operator
// that takes a batch group by group. In Spark keys are ordered by their columns, nulls first (spark
// per-key-horizon/many-keys): BatchSpec.CompareKeys. Without it the order is that of the 128-bit keys, which is as good
// where nobody looks at it. The slice is valid until the next call.
func (c *BatchCtx) SortByKey(rows []stream.Row) []stream.Row {
	s := &c.byKey
	s.places = s.places[:0]
	for i := range rows {
		s.places = append(s.places, place{rows[i].Key.Hi, i})
	}
	if compare := c.engine.spec.CompareKeys; compare != nil {
		slices.SortStableFunc(s.places, func(a, b place) int { return compare(&rows[a.at], &rows[b.at]) })
	} else {
		slices.SortFunc(s.places, func(a, b place) int {
			if a.hi != b.hi {
				return cmp.Compare(a.hi, b.hi)
			}
			return cmp.Or(cmp.Compare(rows[a.at].Key.Lo, rows[b.at].Key.Lo), a.at-b.at)
		})
	}
	s.sorted = s.sorted[:0]
	for _, p := range s.places {
		s.sorted = append(s.sorted, rows[p.at])
	}
	return s.sorted
}
