package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// order is how much of the order of rows in a piece of output is fixed by contract.
type order uint8

const (
	exactly     order = iota
	byTime            // the times; of one time the keys come in any order, each with its rows in theirs
	byKey             // each key has its rows together, in their order
	byTimeAsSet       // the times
	asSet             // nothing
	lastOnly          // the last row alone: those before depend on the order of what came in
)

// order is the order of what a consumer sends for rows that came in an order.
func (b *behind) order(in []output, o order) order {
	switch {
	case b.join != nil && o == byTime:
		return byTimeAsSet
	case b.join != nil:
		return asSet
	case o != exactly && slices.ContainsFunc(in, func(i output) bool { return i.key != in[0].key }):
		return lastOnly
	}
	return exactly
}

// canonical brings rows into an order that does not depend on what the engine leaves open.
func canonical(out []output, o order) []output {
	out = slices.Clone(out)
	switch o {
	case byTime:
		slices.SortStableFunc(out, func(a, b output) int {
			return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.key, b.key))
		})
	case byKey:
		slices.SortStableFunc(out, func(a, b output) int { return cmp.Compare(a.key, b.key) })
	case byTimeAsSet:
		slices.SortFunc(out, func(a, b output) int {
			return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.text, b.text))
		})
	case asSet:
		slices.SortFunc(out, func(a, b output) int { return cmp.Compare(a.text, b.text) })
	case lastOnly:
		out = out[max(0, len(out)-1):]
	}
	return out
}

// arrangement tells what of the order of rows is fixed, beside what canonical keeps: the times as they come, or that
// the rows of a key stand together.
func arrangement(out []output, o order) string {
	var parts []string
	for i, row := range out {
		switch {
		case o == byTime || o == byTimeAsSet:
			parts = append(parts, fmt.Sprint(row.time))
		case o == byKey && (i == 0 || out[i-1].key != row.key):
			parts = append(parts, row.key)
		}
	}
	if o == byKey {
		slices.Sort(parts)
	}
	return strings.Join(parts, " ")
}

func lines(out []output) string {
	parts := make([]string, len(out))
	for i, o := range out {
		parts[i] = o.text
	}
	return strings.Join(parts, "\n")
}

// compareEmits compares what a step emitted.
func (r *replay) compareEmits(i int, s *Step, got *result) {
	var want, handed []output
	for _, row := range s.Emits {
		want = append(want, r.recordedOutput(row))
	}
	for _, row := range s.DeduplicationEmits {
		handed = append(handed, r.recordedOutput(row))
	}
	if op, ok := r.harness.Operator().(interface{ Split() bool }); ok && op.Split() {
		r.split = true
		r.wantRest = append(r.wantRest, want...)
		for _, p := range got.pieces {
			r.gotRest = append(r.gotRest, p.out...)
		}
		return
	}
	if s.Error != "" && r.plan.InBatches {
		return // how much of the batch came before the failing row depends on the order of keys
	}
	if s.Error != "" && s.Watermark != nil {
		// So it does for the rows with the time of the failing one.
		var failing output
		if got.refused != nil {
			failing = r.spell(got.refused.Row)
		}
		later := func(o output) bool { return o.time >= failing.time }
		want = slices.DeleteFunc(want, later)
		for i := range got.pieces {
			got.pieces[i].out = slices.DeleteFunc(got.pieces[i].out, later)
		}
	}
	r.comparePieces(i, "emits", want, got.pieces)
	if r.behind != nil && r.behind.join != nil {
		r.comparePieces(i, "deduplication_emits", handed, got.handed)
	}
}

// comparePieces compares recorded rows with the lab's, piece by piece.
func (r *replay) comparePieces(i int, what string, want []output, got []piece) {
	var wantText, gotText []string
	for n, p := range got {
		size := min(len(p.out), len(want))
		if n == len(got)-1 {
			size = len(want)
		}
		part := want[:size]
		want = want[size:]
		if len(part) == len(p.out) {
			r.differ(i, "order of "+what, arrangement(part, p.order), arrangement(p.out, p.order))
		}
		wantText = append(wantText, lines(canonical(part, p.order)))
		gotText = append(gotText, lines(canonical(p.out, p.order)))
	}
	if len(want) > 0 {
		wantText = append(wantText, lines(want))
	}
	r.differ(i, what, strings.Join(wantText, "\n"), strings.Join(gotText, "\n"))
}

// compareTotals compares the rows of all steps together after a two-phase batch was split. With a TTL, or an aggregate,
// even those depend on the order of keys.
func (r *replay) compareTotals() {
	if r.split && r.ttl() == 0 && r.plan.Output != strategies.KeyAndColumn {
		r.differ(len(r.c.Steps)-1, "emits of all steps since a batch was split",
			lines(canonical(r.wantRest, asSet)), lines(canonical(r.gotRest, asSet)))
	}
}

func (r *replay) ttl() stream.Time {
	ttl := stream.Time(0)
	r.harness.Task().Tables(func(_ int, t *sim.Table) { ttl = max(ttl, t.TTL()) })
	if op, ok := r.harness.Operator().(interface{ TTL() stream.Time }); ok {
		ttl = max(ttl, op.TTL())
	}
	return ttl
}

// compareState compares state, timers and counters.
func (r *replay) compareState(i int, s *Step) {
	own := r.harness.State()
	entries, late, timers, named := own.Entries, own.LateDropped, own.Timers, own.Named
	if r.behind != nil {
		state := r.behind.State()
		late += state.LateDropped
		timers.Event += state.Timers
		named = r.named(s, named, entries, state.Entries)
		for _, n := range state.Entries {
			entries += n
		}
	}
	if s.LateDropped != nil {
		r.differ(i, "late_dropped", fmt.Sprint(*s.LateDropped), fmt.Sprint(late))
	}
	if s.Timers != nil {
		r.differ(i, "timers", fmt.Sprintf("event %d, proc %d", s.Timers.Event, s.Timers.Proc),
			fmt.Sprintf("event %d, proc %d", timers.Event, timers.Proc))
	}
	if r.split {
		return
	}
	const waiting = "waiting-to-emit-on-timer"
	if want, ok := s.States[waiting]; ok {
		r.differ(i, waiting, fmt.Sprint(want), fmt.Sprint(named[waiting]))
	}
	if ttl := r.ttl(); ttl > 0 {
		r.compareKnown(i, s, ttl)
		return
	}
	if s.StateEntries != nil {
		r.differ(i, "state_entries", fmt.Sprint(*s.StateEntries), fmt.Sprint(entries))
	}
	if s.CacheEntries != nil {
		r.differ(i, "cache_entries", fmt.Sprint(*s.CacheEntries), fmt.Sprint(own.Cached))
	}
	if s.States != nil {
		r.differ(i, "states", fmt.Sprint(s.States), fmt.Sprint(named))
	}
}

// named joins the states of the deduplication and its consumer. A deduplication with one state does not name it: the
// recorded name that is not the consumer's is that one.
func (r *replay) named(s *Step, own map[string]int, entries int, behind map[string]int) map[string]int {
	named := map[string]int{}
	for name, n := range own {
		named[name] = n
	}
	for name, n := range behind {
		named[name] = n
	}
	for name := range s.States {
		if _, ok := behind[name]; !ok && own == nil {
			named[name] = entries
		}
	}
	return named
}

// compareKnown compares the keys that are still known under a TTL.
func (r *replay) compareKnown(i int, s *Step, ttl stream.Time) {
	if _, ok := r.harness.Operator().(interface{ TTL() stream.Time }); ok {
		return // a key of Top-N has several lists with a TTL each
	}
	live, want := map[string]int64{}, map[string]int64{}
	r.harness.Task().Tables(func(_ int, t *sim.Table) {
		t.Each(func(e *sim.Entry) {
			if !e.Has(sim.Pinned) && e.Written()+ttl > r.at {
				live[r.keyName(r.harness.LastRow(e.Key))] = int64(e.Written())
			}
		})
	})
	for key, written := range s.LastWrite {
		// A consumer's state has a key that no row has.
		if stream.Time(written)+ttl > r.at && (r.behind == nil || r.known[key]) {
			want[key] = written
		}
	}
	r.differ(i, "keys still known", fmt.Sprint(want), fmt.Sprint(live))
}
