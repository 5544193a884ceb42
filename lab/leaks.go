package lab

import (
	"fmt"
	"slices"
	"strings"

	"deduplab/gen"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// leaks finds why copies of one strategy's run came through beside another row of their event.
type leaks struct {
	plan   strategies.Plan
	w      gen.Workload          // under the strategy's key
	newKey func(stream.Tag) bool // whether a row has another key than its original
	renews bool                  // some rows may have
	rows   []stream.Tag          // scratch space
	crowds map[uint64]*family    // of events with many rows, which may all leak
}

func newLeaks(plan strategies.Plan, w gen.Workload) *leaks {
	l := &leaks{plan: plan, w: w, newKey: hasNewKey(w), crowds: map[uint64]*family{}}
	_, l.renews = w.(*gen.Keyed)
	for origin := range w.Origins() {
		l.renews = l.renews || w.NewKey(origin)
	}
	return l
}

// family is the rows of one event.
type family struct {
	rows   []stream.Tag // in order of arrival
	places []int        // by copy number: the place in rows
	newKey stream.Time  // when the first row with a new key arrives
	// contents has the first place of each content among the rows that have the original's key, looks that of what the
	// strategy compares, once they were asked for.
	contents map[uint64]int
	looks    map[look]int
}

// manyRows is how many rows make it worth while to keep what is known of an event.
const manyRows = 16

func (l *leaks) family(event uint64) *family {
	if f := l.crowds[event]; f != nil {
		return f
	}
	l.rows = l.w.Rows(l.rows[:0], event)
	f := &family{rows: l.rows, newKey: stream.MaxTime}
	for i := 0; i < len(f.rows) && l.renews && f.newKey == stream.MaxTime; i++ {
		if l.newKey(f.rows[i]) {
			f.newKey = l.w.Arrival(f.rows[i])
		}
	}
	if len(f.rows) >= manyRows {
		f.rows = slices.Clone(f.rows)
		last := slices.MaxFunc(f.rows, func(a, b stream.Tag) int { return a.Copy() - b.Copy() })
		f.places = make([]int, last.Copy()+1) // a copy that a finished partition has not taken leaves a gap
		for i, tag := range f.rows {
			f.places[tag.Copy()] = i
		}
		l.crowds[event] = f
	}
	return f
}

func (f *family) place(tag stream.Tag) int {
	if f.places != nil {
		return f.places[tag.Copy()]
	}
	return slices.Index(f.rows, tag)
}

// predecessor is the place of the last row before a place that has the original's key, -1 if there is none.
func (l *leaks) predecessor(f *family, place int) int {
	for place--; place >= 0 && l.newKey(f.rows[place]); place-- {
	}
	return place
}

// equal reports whether a row with the original's key before a place has the content of the row there.
func (l *leaks) equal(f *family, place int) bool {
	content := l.w.Content(f.rows[place])
	if f.places == nil {
		for i := l.predecessor(f, place); i >= 0; i = l.predecessor(f, i) {
			if l.w.Content(f.rows[i]) == content {
				return true
			}
		}
		return false
	}
	if f.contents == nil {
		f.contents = map[uint64]int{}
		for i := l.predecessor(f, len(f.rows)); i >= 0; i = l.predecessor(f, i) {
			f.contents[l.w.Content(f.rows[i])] = i
		}
	}
	first, ok := f.contents[content]
	return ok && first < place
}

// look is what a strategy tells rows of one key apart by: the values of the columns that it compares, and the window, 0
// where it does not matter.
type look struct {
	values string
	window stream.Time
}

// distinguished tells by what a copy differs from all rows before it that have the original's key, where the strategy
// takes only those for copies that agree in more than the key; empty where it does not differ.
func (l *leaks) distinguished(f *family, place int) string {
	if l.plan.Compared == nil {
		return ""
	}
	looks := f.looks
	if looks == nil {
		looks = map[look]int{}
		for i := l.predecessor(f, len(f.rows)); i >= 0; i = l.predecessor(f, i) {
			alike := l.look(f.rows[i])
			looks[alike], looks[look{values: alike.values}] = i, i
		}
		if f.places != nil {
			f.looks = looks
		}
	}
	own := l.look(f.rows[place])
	switch {
	case looks[look{values: own.values}] == place:
		return "payload_differs"
	case looks[own] == place:
		return "window_boundary"
	}
	return ""
}

func (l *leaks) look(tag stream.Tag) look {
	row, values := l.w.Record(tag), strings.Builder{}
	for _, column := range l.plan.Compared {
		v := row[column]
		fmt.Fprintf(&values, "%t %d %q ", v.Null, v.Int, v.Text)
	}
	seen := look{values: values.String()}
	if l.plan.Window != 0 {
		seen.window = l.window(tag)
	}
	return seen
}

func (l *leaks) window(tag stream.Tag) stream.Time {
	return strategies.WindowEnd(stream.Time(l.w.Order(tag, l.w.Schema().Event)), l.plan.Window)
}

// cause is the first cause that applies to a leak.
func (l *leaks) cause(leak sim.LeakedRow) string {
	plan := l.plan
	switch {
	case leak.Rewritten:
		return "restart"
	case plan.Leaks == strategies.NoDeduplication:
		return "no_dedup"
	case leak.Update && (plan.ToChangelog || !plan.Changelog.Has(stream.UpdateBefore)):
		return "unretracted" // a +U whose -U was not sent leaves the row before it in the result
	case l.newKey(leak.Tag):
		return "regenerated_id"
	}
	f := l.family(leak.Tag.Event())
	place := f.place(leak.Tag)
	// A row with another key can have come through before the leaked row, though it may have arrived after it: subtasks
	// send what one watermark lets go of in an order of their own.
	otherKey := f.newKey <= leak.At
	if otherKey && l.predecessor(f, place) < 0 {
		return "regenerated_id"
	}
	switch plan.Leaks {
	case strategies.ByContent:
		if !l.equal(f, place) {
			return "payload_differs"
		}
	case strategies.ByWindow:
		if otherKey && !l.inAnotherWindow(f, leak) {
			return "regenerated_id"
		}
		return "window_boundary"
	case strategies.ByTimer:
		// Had the state been kept from the last row on, as the article means it, the copy would have been caught.
		if l.seenWithin(leak, plan.Timer) {
			return "stale_timer"
		}
		return "horizon"
	case strategies.ByVersion:
		// A version that is newer than all before it goes out again beside them, an older one only when the horizon of
		// its key is over.
		if l.newest(f, place) {
			return "unretracted"
		}
		return "horizon"
	case strategies.ByRepair:
		return "no_dedup"
	case strategies.ByLookback:
		switch {
		case hasNullKey(l.w, leak.Tag) && !slices.ContainsFunc(plan.Batch.Stages, isNullSafe):
			return "null_key"
		case leak.SameBatch || plan.Lookback < 0:
			return "same_batch"
		}
		return "lookback"
	case strategies.ByHorizon, strategies.ByColumns:
		if cause := l.distinguished(f, place); cause != "" {
			return cause
		}
		if plan.Leaks == strategies.ByHorizon {
			return "horizon"
		}
	}
	switch {
	case plan.StateTTL > 0:
		return "ttl"
	case otherKey:
		return "regenerated_id"
	}
	return sim.Unexplained
}

func isNullSafe(s strategies.Stage) bool { return s.NullSafe }

// hasNullKey reports whether a column of a row's key is NULL.
func hasNullKey(rows stream.Records, tag stream.Tag) bool {
	schema := rows.Schema()
	return slices.ContainsFunc(schema.Key, func(k int) bool {
		return schema.Columns[k].Nullable && rows.Record(tag)[k].Null
	})
}

// newest reports whether a row has a later event time than all before it that have the original's key.
func (l *leaks) newest(f *family, place int) bool {
	event := l.w.Schema().Event
	own := l.w.Order(f.rows[place], event)
	for i := l.predecessor(f, place); i >= 0; i = l.predecessor(f, i) {
		if l.w.Order(f.rows[i], event) >= own {
			return false
		}
	}
	return true
}

// inAnotherWindow reports whether a row with the original's key and another window can have come through before the
// leaked row: rows of one key and window are one row of the result.
func (l *leaks) inAnotherWindow(f *family, leak sim.LeakedRow) bool {
	own := l.window(leak.Tag)
	return slices.ContainsFunc(f.rows, func(t stream.Tag) bool {
		return !l.newKey(t) && l.w.Arrival(t) <= leak.At && l.window(t) != own
	})
}

// seenWithin reports whether another row of the leaked row's key had come within a span before it.
func (l *leaks) seenWithin(leak sim.LeakedRow, span stream.Time) bool {
	f := l.family(leak.Tag.Event())
	last := l.predecessor(f, f.place(leak.Tag))
	return last >= 0 && l.w.Arrival(leak.Tag)-l.w.Arrival(f.rows[last]) < span
}

// promised tells the row that a result must end with from the others of its event: the version that the scenario
// requires, else the one that the strategy promises. Nil: any.
func promised(plan strategies.Plan, version string, w gen.Workload) func(stream.Tag) bool {
	event := w.Schema().Event
	byTime := func(a, b stream.Tag) bool { return w.Order(a, event) < w.Order(b, event) }
	switch {
	case version == "first":
		return best(w, byTime)
	case version == "last", plan.Promise == strategies.LastByEvent:
		return best(w, func(a, b stream.Tag) bool { return byTime(b, a) })
	case plan.Promise == strategies.FirstByOrder:
		return best(w, plan.Before(w))
	}
	return nil
}

// best tells the rows before which no other row of their event comes. Before is a strict weak order.
func best(w gen.Workload, before func(a, b stream.Tag) bool) func(stream.Tag) bool {
	var rows []stream.Tag
	crowds := map[uint64]stream.Tag{} // the best of events with many rows
	return func(tag stream.Tag) bool {
		first, known := crowds[tag.Event()]
		if !known {
			rows = w.Rows(rows[:0], tag.Event())
			first = rows[0]
			for _, other := range rows[1:] {
				if before(other, first) {
					first = other
				}
			}
			if len(rows) >= manyRows {
				crowds[tag.Event()] = first
			}
		}
		return !before(first, tag)
	}
}
