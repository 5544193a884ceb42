package lab

import (
	"deduplab/gen"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// causeOf finds why a copy came through beside another row of its event: the first cause that applies.
func causeOf(plan strategies.Plan, args strategies.Args, w gen.Workload) func(sim.Leak) string {
	state := func() string {
		if args.Duration("ttl") > 0 || args.Duration("hint") > 0 {
			return "ttl"
		}
		return sim.Unexplained
	}
	if plan.Leaks == strategies.NoDeduplication {
		return func(sim.Leak) string { return "no_dedup" }
	}
	return func(leak sim.Leak) string {
		before := siblings(w, leak, func(stream.Tag) bool { return true })
		sameKey := siblings(w, leak, func(t stream.Tag) bool { return w.NewKey(t.Origin()) == w.NewKey(leak.Tag.Origin()) })
		if w.NewKey(leak.Tag.Origin()) || len(sameKey) == 0 && len(before) > 0 {
			return "regenerated_id"
		}
		switch plan.Leaks {
		case strategies.ByContent:
			content := w.Content(leak.Tag)
			if len(siblings(w, leak, func(t stream.Tag) bool { return w.Content(t) == content })) == 0 {
				return "payload_differs"
			}
		case strategies.ByWindow:
			return "window_boundary"
		case strategies.ByTimer:
			// Had the state been kept from the last row on, as the article means it, the copy would have been caught.
			if n := len(sameKey); n > 0 && w.Arrival(leak.Tag)-w.Arrival(sameKey[n-1]) < plan.Timer {
				return "stale_timer"
			}
			return "horizon"
		}
		if plan.Input == stream.InsertOnly || plan.Changelog == stream.InsertOnly {
			// A +U for which no -U was sent leaves the row before it in the result of a retracting reader.
			if plan.Promise == strategies.FirstByOrder && state() == sim.Unexplained {
				return "payload_differs"
			}
		}
		return state()
	}
}

// siblings are the rows of the leaked row's event that arrived before it and are of a kind, in order of arrival.
func siblings(w gen.Workload, leak sim.Leak, kind func(stream.Tag) bool) []stream.Tag {
	var earlier []stream.Tag
	for _, tag := range w.Rows(leak.Tag.Event()) {
		if tag == leak.Tag {
			break
		}
		if kind(tag) {
			earlier = append(earlier, tag)
		}
	}
	return earlier
}

// promised tells the row that a strategy promises to end with from the others of its event. Nil: it promises none.
func promised(plan strategies.Plan, w gen.Workload) func(stream.Tag) bool {
	switch plan.Promise {
	case strategies.LastByEvent:
		return func(tag stream.Tag) bool { return lastVersion(w, tag) }
	case strategies.FirstByOrder:
		before := plan.Before(w)
		return func(tag stream.Tag) bool {
			for _, other := range w.Rows(tag.Event()) {
				if before(other, tag) {
					return false
				}
			}
			return true
		}
	}
	return nil
}

// lastVersion reports whether no row of the event has a larger event time.
func lastVersion(w gen.Workload, tag stream.Tag) bool {
	rows := w.Rows(tag.Event())
	if len(rows) == 1 {
		return true
	}
	event := w.Schema().Event
	own := w.Order(tag, event)
	for _, other := range rows {
		if w.Order(other, event) > own {
			return false
		}
	}
	return true
}
