package lab

import (
	"slices"

	"deduplab/gen"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// causeOf finds why a copy came through beside another row of its event: the first cause that applies. The keys of rows
// are those of the strategy, which the workload is under.
func causeOf(plan strategies.Plan, w gen.Workload) func(sim.LeakedRow) string {
	if plan.Leaks == strategies.NoDeduplication {
		return func(sim.LeakedRow) string { return "no_dedup" }
	}
	hasNewKey := hasNewKey(w)
	return func(leak sim.LeakedRow) string {
		if leak.Update && (plan.ToChangelog || !plan.Changelog.Has(stream.UpdateBefore)) {
			return "unretracted" // a +U whose -U was not sent leaves the row before it in the result
		}
		newKey := hasNewKey(leak.Tag)
		isSameKey := func(t stream.Tag) bool { return hasNewKey(t) == newKey }
		otherKey := newKey || anyOther(w, leak, func(t stream.Tag) bool { return !isSameKey(t) })
		sameKey := siblings(w, leak, isSameKey)
		if newKey || len(sameKey) == 0 && otherKey {
			return "regenerated_id"
		}
		switch plan.Leaks {
		case strategies.ByContent:
			content := w.Content(leak.Tag)
			if len(siblings(w, leak, func(t stream.Tag) bool { return w.Content(t) == content })) == 0 {
				return "payload_differs"
			}
		case strategies.ByWindow:
			// Rows of one key and window are one row of the result.
			event := w.Schema().Event
			window := func(t stream.Tag) stream.Time {
				return strategies.WindowEnd(stream.Time(w.Order(t, event)), plan.Window)
			}
			another := func(t stream.Tag) bool { return isSameKey(t) && window(t) != window(leak.Tag) }
			if otherKey && !anyOther(w, leak, another) {
				return "regenerated_id"
			}
			return "window_boundary"
		case strategies.ByTimer:
			// Had the state been kept from the last row on, as the article means it, the copy would have been caught.
			if seenWithin(w, leak, plan.Timer) {
				return "stale_timer"
			}
			return "horizon"
		}
		switch {
		case plan.StateTTL > 0:
			return "ttl"
		case otherKey:
			return "regenerated_id"
		}
		return sim.Unexplained
	}
}

// seenWithin reports whether another row of the leaked row's key had come within a span before it.
func seenWithin(w gen.Workload, leak sim.LeakedRow, span stream.Time) bool {
	hasNewKey := hasNewKey(w)
	newKey := hasNewKey(leak.Tag)
	earlier := siblings(w, leak, func(t stream.Tag) bool { return hasNewKey(t) == newKey })
	n := len(earlier)
	return n > 0 && w.Arrival(leak.Tag)-w.Arrival(earlier[n-1]) < span
}

// siblings are the rows of the leaked row's event that arrived before it and are of a kind, in order of arrival.
func siblings(w gen.Workload, leak sim.LeakedRow, kind func(stream.Tag) bool) []stream.Tag {
	var earlier []stream.Tag
	for _, tag := range w.Rows(nil, leak.Tag.Event()) {
		if tag == leak.Tag {
			break
		}
		if kind(tag) {
			earlier = append(earlier, tag)
		}
	}
	return earlier
}

// anyOther reports whether a row of the event that is of a kind can have come through before the leaked row, though it
// may have arrived after it: subtasks send what one watermark lets go of in an order of their own.
func anyOther(w gen.Workload, leak sim.LeakedRow, kind func(stream.Tag) bool) bool {
	return slices.ContainsFunc(w.Rows(nil, leak.Tag.Event()), func(t stream.Tag) bool {
		return t != leak.Tag && w.Arrival(t) <= leak.At && kind(t)
	})
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

// best tells the rows before which no other row of their event comes.
func best(w gen.Workload, before func(a, b stream.Tag) bool) func(stream.Tag) bool {
	var rows []stream.Tag
	return func(tag stream.Tag) bool {
		rows = w.Rows(rows[:0], tag.Event())
		for _, other := range rows {
			if other != tag && before(other, tag) {
				return false
			}
		}
		return true
	}
}
