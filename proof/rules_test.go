package proof

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"deduplab/semantics"
	"deduplab/strategies"
	"deduplab/stream"
)

// rules says of every strategy what it does, as a person would explain it.
var rules = []struct {
	config string
	rule   func() rule
}{
	{"pass-through", func() rule { return &everyRow{} }},
	{"pk-not-enforced", func() rule { return &everyRow{} }},

	{"proctime-asc", func() rule { return &firstRow{} }},
	{"proctime-asc ttl=10s", func() rule { return &firstRow{ttl: ttl} }},
	{"ptf ttl=0s", func() rule { return &firstRow{} }},
	{"ptf ttl=10s", func() rule { return &firstRow{ttl: ttl} }},
	{"keyed-process", func() rule { return &firstRow{} }},
	{"keyed-process ttl=10s", func() rule { return &firstRow{ttl: ttl} }},
	{"keyed-process ttl=10s side_output=true", func() rule { return &firstRow{ttl: ttl, sideOutput: true} }},
	{"keyed-process timer=10s", func() rule { return &untilTimer{every: true} }},
	{"keyed-process timer=10s timer_on=first", func() rule { return &untilTimer{} }},

	{"proctime-desc", func() rule { return &lastRow{} }},
	{"proctime-desc ttl=10s", func() rule { return &lastRow{ttl: ttl} }},

	{"rowtime-asc", func() rule { return &earliestRow{} }},
	{"rowtime-asc ttl=10s", func() rule { return &earliestRow{ttl: ttl} }},
	{"rowtime-desc", func() rule { return &bestByTime{replaces: notBefore} }},
	{"rowtime-desc ttl=10s", func() rule { return &bestByTime{ttl: ttl, replaces: notBefore} }},

	{"nontime order_by=price asc", func() rule { return &topOne{before: byPrice} }},
	{"nontime order_by=price asc ttl=10s", func() rule { return &topOne{ttl: ttl, before: byPrice} }},
	{"nontime order_by=price asc cache=1", func() rule { return &topOne{size: 1, before: byPrice} }},
	{"nontime order_by=price asc cache=2 ttl=10s", func() rule { return &topOne{size: 2, ttl: ttl, before: byPrice} }},
	{"nontime order_by=price desc ttl=10s", func() rule {
		return &topOne{retracts: true, ttl: ttl, before: byPriceDown}
	}},
	{"nontime order_by=created_at asc, price asc", func() rule { return &topOne{before: byTimeThenPrice} }},
	{"nontime order_by=order_id asc ttl=10s", func() rule { return &topOne{ttl: ttl, before: never} }},
	{"nontime-to-changelog order_by=price asc", func() rule { return &topOne{before: byPrice} }},
	{"nontime-to-changelog order_by=price desc", func() rule { return &topOne{retracts: true, before: byPriceDown} }},
	{"nontime order_by=price asc top=2", func() rule { return &topTwo{before: byPrice} }},

	{"select-distinct", func() rule { return &groups{of: wholeRow, better: never} }},
	{"select-distinct ttl=10s", func() rule { return &groups{ttl: ttl, of: wholeRow, better: never} }},
	{"select-distinct hint=10s", func() rule { return &groups{ttl: ttl, of: wholeRow, better: never} }},
	{"select-distinct-key", func() rule { return &groups{of: theKey, better: never} }},
	{"select-distinct-key ttl=10s", func() rule { return &groups{ttl: ttl, of: theKey, better: never} }},
	{"group-by-min column=price", func() rule { return &groups{of: theKey, better: smallerPrice} }},
	{"group-by-min column=price ttl=10s", func() rule { return &groups{ttl: ttl, of: theKey, better: smallerPrice} }},

	{"window-dedup size=5s", func() rule { return &windows{merge: first} }},
	{"window-dedup size=5s keep=last", func() rule { return &windows{merge: last} }},
	{"window-topn size=5s order_by=price asc", func() rule { return &windows{merge: cheapest} }},
	{"tumble-agg size=5s phases=one", func() rule { return &windows{merge: minimum} }},
	{"tumble-agg size=5s", func() rule { return &windows{merge: minimum, lateAtBorders: true} }},

	{"late-dlq main=none", func() rule { return &onTime{rule: &everyRow{}, withoutWatermark: true} }},
	{"late-dlq main=none null_check=false", func() rule { return &onTime{rule: &everyRow{}} }},
	{"late-dlq main=none branch=dlq", func() rule { return &onTime{rule: &everyRow{}, late: true} }},
	{"late-dlq main=window-dedup size=5s", func() rule {
		return &onTime{rule: &windows{merge: first}, withoutWatermark: true}
	}},
	{"late-dlq size=5s", func() rule {
		return &onTime{rule: &windows{merge: minimum, lateAtBorders: true}, withoutWatermark: true}
	}},

	{"proctime-asc mini_batch", func() rule { return &batchByClock{batch{rule: &firstRow{}, of: firstOfKey}} }},
	{"proctime-asc ttl=10s mini_batch", func() rule {
		return &batchByClock{batch{rule: &firstRow{ttl: ttl}, of: firstOfKey}}
	}},
	{"proctime-desc mini_batch", func() rule { return &batchByClock{batch{rule: &lastRow{}, of: lastOfKey}} }},
	{"select-distinct-key ttl=10s mini_batch", func() rule {
		return &batchByClock{batch{rule: &groups{ttl: ttl, of: theKey, better: never}, of: firstOfKey}}
	}},
	{"rowtime-asc mini_batch", func() rule {
		return &batchByWatermark{batch: batch{rule: &bestByTime{replaces: earlier}, of: allOfKey}}
	}},
	{"rowtime-desc mini_batch", func() rule {
		return &batchByWatermark{batch: batch{rule: &bestByTime{replaces: notBefore}, of: allOfKey}}
	}},
	{"rowtime-desc ttl=10s mini_batch compact", func() rule {
		return &batchByWatermark{batch: batch{rule: &bestByTime{ttl: ttl, replaces: notBefore}, of: latestOfKey}}
	}},
}

// TestRules compares what the operators send, drop as late and know after each step with the rules.
func TestRules(t *testing.T) {
	for _, tc := range rules {
		t.Run(tc.config, func(t *testing.T) {
			t.Parallel()
			c := configure(tc.config)
			plan := c.plan()
			rapid.Check(t, func(t *rapid.T) {
				steps := anySteps(watermarkOp, clockOp, checkpointOp).Draw(t, "steps")
				got, want := run(c, steps, world{}), follow(tc.rule(), steps)
				for i := range steps {
					got, want := c.written(got[i], plan), c.written(want[i], plan)
					if got != want {
						t.Fatalf("step %d\ngot  %s\nwant %s\n%s", i+1, got, want,
							yaml("found by TestRules", c, steps[:i+1], follow(tc.rule(), steps)))
					}
				}
			})
		})
	}
}

// TestYAML reads and runs what a failure prints: `lab test` says the same of the steps as the rules do.
func TestYAML(t *testing.T) {
	for _, tc := range rules {
		t.Run(tc.config, func(t *testing.T) {
			c := configure(tc.config)
			for seed := range 5 {
				steps := anySteps(watermarkOp, clockOp, checkpointOp).Example(seed)
				text := yaml("as TestRules prints it", c, steps, follow(tc.rule(), steps))
				file, err := semantics.Load("found.yaml", []byte(text))
				if err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
				for _, failure := range file.Tests[0].Run() {
					t.Errorf("%v\n%s", failure, text)
				}
			}
		})
	}
}

// written is all that two outcomes are compared by.
func (c config) written(o outcome, plan strategies.Plan) string {
	var lines []string
	for _, out := range c.inOrder(o.changes, plan) {
		lines = append(lines, fmt.Sprintf("%s at %s", out.text(plan), stream.FormatDuration(out.at)))
	}
	for _, out := range o.diverted {
		lines = append(lines, "diverted "+out.text(plan))
	}
	return fmt.Sprintf("%s, %d late, %d keys known", lines, o.late, o.live)
}

// rule is a strategy in the words of its rule.
type rule interface {
	row(now stream.Time, r row)
	watermark(now, w stream.Time) // only when it advances
	clock(now stream.Time)        // before everything else of a step
	checkpoint(now stream.Time)
	known(now stream.Time) map[string]bool // the keys that the strategy has not forgotten
	out() *output                          // what came out
}

// output is what came out. Embedded it makes a rule that does nothing and knows nothing.
type output struct {
	changes, diverted []change
	late              int64
}

func (l *output) out() *output                       { return l }
func (l *output) watermark(stream.Time, stream.Time) {}
func (l *output) clock(stream.Time)                  {}
func (l *output) checkpoint(stream.Time)             {}
func (l *output) known(stream.Time) map[string]bool  { return nil }

func (l *output) send(now stream.Time, kind stream.Kind, r row) {
	l.changes = append(l.changes, change{now, kind, r})
}

func (l *output) divert(now stream.Time, r row) {
	l.diverted = append(l.diverted, change{now, stream.Insert, r})
}

func (l *output) update(now stream.Time, from, to row) {
	l.send(now, stream.UpdateBefore, from)
	l.send(now, stream.UpdateAfter, to)
}

// follow applies a rule to the steps.
func follow(r rule, steps []step) []outcome {
	var outcomes []outcome
	reached := none
	for _, s := range steps {
		r.clock(s.at)
		switch {
		case s.op == rowOp:
			r.row(s.at, s.row)
		case s.op == watermarkOp && s.watermark > reached:
			reached = s.watermark
			r.watermark(s.at, s.watermark)
		case s.op == checkpointOp:
			r.checkpoint(s.at)
		}
		l := r.out()
		outcomes = append(outcomes, outcome{changes: l.changes, diverted: l.diverted, late: l.late,
			live: len(r.known(s.at))})
		l.changes, l.diverted = nil, nil
	}
	return outcomes
}

// memory is what is remembered by name, each from when it was written, for a TTL.
type memory struct {
	ttl     stream.Time // 0: for ever
	entries map[string]entry
}

type entry struct {
	row
	written stream.Time
	updated bool
}

func (m *memory) get(now stream.Time, name string) (entry, bool) {
	e, ok := m.entries[name]
	return e, ok && (m.ttl == 0 || now < e.written+m.ttl)
}

func (m *memory) put(name string, e entry) {
	if m.entries == nil {
		m.entries = map[string]entry{}
	}
	m.entries[name] = e
}

func (m *memory) known(now stream.Time) map[string]bool {
	known := map[string]bool{}
	for name := range m.entries {
		if _, ok := m.get(now, name); ok {
			known[name] = true
		}
	}
	return known
}

// everyRow removes nothing.
type everyRow struct{ output }

func (o *everyRow) row(now stream.Time, r row) { o.send(now, stream.Insert, r) }

// firstRow sends a row if its key was not seen within the TTL. A copy does not count as seen.
type firstRow struct {
	output
	ttl        stream.Time
	sideOutput bool // for copies
	seen       memory
}

func (o *firstRow) row(now stream.Time, r row) {
	o.seen.ttl = o.ttl
	if _, ok := o.seen.get(now, r.key); !ok {
		o.seen.put(r.key, entry{written: now})
		o.send(now, stream.Insert, r)
	} else if o.sideOutput {
		o.divert(now, r)
	}
}

func (o *firstRow) known(now stream.Time) map[string]bool { return o.seen.known(now) }

// untilTimer sends the first row of a key, and forgets the key whenever a timer of it fires: one TTL after every row,
// or after the rows sent only.
type untilTimer struct {
	output
	every  bool
	seen   map[string]bool
	timers map[timer]bool
}

type timer struct {
	at  stream.Time
	key string
}

func (o *untilTimer) clock(now stream.Time) {
	for t := range o.timers {
		if t.at <= now {
			delete(o.seen, t.key)
			delete(o.timers, t)
		}
	}
}

func (o *untilTimer) row(now stream.Time, r row) {
	if o.seen == nil {
		o.seen, o.timers = map[string]bool{}, map[timer]bool{}
	}
	copied := o.seen[r.key]
	if !copied {
		o.seen[r.key] = true
		o.send(now, stream.Insert, r)
	}
	if o.every || !copied {
		o.timers[timer{now + ttl, r.key}] = true
	}
}

func (o *untilTimer) known(stream.Time) map[string]bool { return o.seen }

// lastRow replaces the row of a key by every later one. Without a TTL a row that equals the one before changes nothing,
// as long as the key was not updated yet.
type lastRow struct {
	output
	ttl  stream.Time
	last memory
}

func (o *lastRow) row(now stream.Time, r row) {
	o.last.ttl = o.ttl
	before, ok := o.last.get(now, r.key)
	switch {
	case !ok:
		o.send(now, stream.Insert, r)
	case o.ttl == 0 && before.row == r && !before.updated:
		return
	default:
		o.update(now, before.row, r)
	}
	o.last.put(r.key, entry{row: r, written: now, updated: ok})
}

func (o *lastRow) known(now stream.Time) map[string]bool { return o.last.known(now) }

// bestByTime replaces the row of a key by one with a better event time.
type bestByTime struct {
	output
	ttl      stream.Time
	replaces func(r, kept row) bool
	kept     memory
}

func notBefore(r, kept row) bool { return r.event >= kept.event }
func earlier(r, kept row) bool   { return r.event < kept.event }

func (o *bestByTime) row(now stream.Time, r row) {
	o.kept.ttl = o.ttl
	before, ok := o.kept.get(now, r.key)
	switch {
	case !ok:
		o.send(now, stream.Insert, r)
	case o.replaces(r, before.row):
		o.update(now, before.row, r)
	default:
		return
	}
	o.kept.put(r.key, entry{row: r, written: now})
}

func (o *bestByTime) known(now stream.Time) map[string]bool { return o.kept.known(now) }

// earliestRow holds the earliest row of a key until the watermark reaches it, and sends no other row of that key within
// the TTL from then. A row behind the watermark is late.
type earliestRow struct {
	output
	ttl     stream.Time
	reached stream.Time
	any     bool // there was a watermark
	waiting map[string]row
	sent    memory
}

func (o *earliestRow) row(now stream.Time, r row) {
	o.sent.ttl = o.ttl
	if o.any && r.event < o.reached {
		o.late++
		return
	}
	if _, ok := o.sent.get(now, r.key); ok {
		return
	}
	if w, ok := o.waiting[r.key]; ok && w.event <= r.event {
		return
	}
	if o.waiting == nil {
		o.waiting = map[string]row{}
	}
	o.waiting[r.key] = r
}

func (o *earliestRow) watermark(now, w stream.Time) {
	o.reached, o.any = w, true
	for key, r := range o.waiting {
		if r.event <= w {
			delete(o.waiting, key)
			o.sent.put(key, entry{written: now})
			o.send(now, stream.Insert, r)
		}
	}
}

func (o *earliestRow) known(now stream.Time) map[string]bool {
	known := o.sent.known(now)
	for key := range o.waiting {
		known[key] = true
	}
	return known
}

// topOne replaces the row of a key by one that sorts before it. It holds the row in a cache of the keys used last; a
// checkpoint, or the lack of room, writes it to state, where it has a TTL of its own.
type topOne struct {
	output
	ttl      stream.Time
	size     int // of the cache; 0: without bound
	retracts bool
	before   func(a, b row) bool
	cache    memory
	used     []string // the keys of the cache, in the order of use
	state    memory
}

func byPrice(a, b row) bool         { return a.price < b.price }
func byPriceDown(a, b row) bool     { return a.price > b.price }
func byTimeThenPrice(a, b row) bool { return earlier(a, b) || a.event == b.event && byPrice(a, b) }
func never(row, row) bool           { return false }

func (o *topOne) row(now stream.Time, r row) {
	o.cache.ttl, o.state.ttl = o.ttl, o.ttl
	o.forget(now)
	current, ok := o.cache.get(now, r.key)
	if ok {
		o.use(r.key)
	} else {
		current, ok = o.state.get(now, r.key)
	}
	switch {
	case !ok:
		o.send(now, stream.Insert, r)
	case !o.before(r, current.row):
		return
	case o.retracts:
		o.update(now, current.row, r)
	default:
		o.send(now, stream.UpdateAfter, r)
	}
	o.use(r.key)
	o.cache.put(r.key, entry{row: r, written: now})
	if o.size > 0 && len(o.used) > o.size {
		o.write(now, o.used[0])
		delete(o.cache.entries, o.used[0])
		o.used = o.used[1:]
	}
}

func (o *topOne) use(key string) {
	o.used = append(slices.DeleteFunc(o.used, func(k string) bool { return k == key }), key)
}

// forget takes out of the cache what has expired.
func (o *topOne) forget(now stream.Time) {
	o.used = slices.DeleteFunc(o.used, func(key string) bool {
		_, ok := o.cache.get(now, key)
		return !ok
	})
}

func (o *topOne) write(now stream.Time, key string) {
	o.state.put(key, entry{row: o.cache.entries[key].row, written: now})
}

func (o *topOne) checkpoint(now stream.Time) {
	for key := range o.cache.known(now) {
		o.write(now, key)
	}
}

func (o *topOne) known(now stream.Time) map[string]bool {
	known := o.cache.known(now)
	maps.Copy(known, o.state.known(now))
	return known
}

// topTwo keeps the two rows of a key that sort first, ties in the order of arrival.
type topTwo struct {
	output
	before func(a, b row) bool
	rows   map[string][]row
}

func (o *topTwo) row(now stream.Time, r row) {
	if o.rows == nil {
		o.rows = map[string][]row{}
	}
	rows := append(o.rows[r.key], r)
	slices.SortStableFunc(rows, func(a, b row) int {
		switch {
		case o.before(a, b):
			return -1
		case o.before(b, a):
			return 1
		}
		return 0
	})
	if len(rows) > 2 {
		displaced := rows[2]
		rows = rows[:2]
		if !o.before(r, displaced) {
			return
		}
		o.send(now, stream.Delete, displaced)
	}
	o.rows[r.key] = rows
	o.send(now, stream.Insert, r)
}

func (o *topTwo) known(stream.Time) map[string]bool {
	known := map[string]bool{}
	for key := range o.rows {
		known[key] = true
	}
	return known
}

// groups sends what stands for a group when it changes, and with a TTL whenever a row of the group comes.
type groups struct {
	output
	ttl    stream.Time
	of     func(row) string
	better func(r, stands row) bool
	stand  memory
}

func wholeRow(r row) string { return fmt.Sprint(r) }
func theKey(r row) string   { return r.key }

// smallerPrice leaves NULL out.
func smallerPrice(r, stands row) bool {
	return r.price != null && (stands.price == null || r.price < stands.price)
}

func (o *groups) row(now stream.Time, r row) {
	o.stand.ttl = o.ttl
	before, ok := o.stand.get(now, o.of(r))
	stands := before.row
	if !ok || o.better(r, stands) {
		stands = r
	}
	switch {
	case !ok:
		o.send(now, stream.Insert, stands)
	case o.ttl > 0 || stands != before.row:
		o.update(now, before.row, stands)
	}
	o.stand.put(o.of(r), entry{row: stands, written: now})
}

func (o *groups) known(now stream.Time) map[string]bool { return o.stand.known(now) }

// windows keeps a row for each key and window of 5 s until the watermark reaches the last millisecond of the window. A
// row of a window that is over is late.
type windows struct {
	output
	merge   func(stands, r row) row
	reached stream.Time
	any     bool // there was a watermark
	open    map[window]row
	// lateAtBorders: late rows count as one for each key and window, and only at a checkpoint or when a watermark
	// passes the border of a window.
	lateAtBorders bool
	lateRows      map[window]bool
	border        stream.Time
}

type window struct {
	key string
	end stream.Time
}

func windowOf(r row) window { return window{r.key, r.event.Floor(5*second) + 5*second} }

func first(stands, r row) row {
	if r.event < stands.event {
		return r
	}
	return stands
}

func last(stands, r row) row {
	if r.event >= stands.event {
		return r
	}
	return stands
}

func cheapest(stands, r row) row {
	if byPrice(r, stands) {
		return r
	}
	return stands
}

// minimum takes the minimum of each column by itself.
func minimum(stands, r row) row {
	stands.event = min(stands.event, r.event)
	if smallerPrice(r, stands) {
		stands.price = r.price
	}
	return stands
}

func (o *windows) row(_ stream.Time, r row) {
	if o.open == nil {
		o.open, o.lateRows = map[window]row{}, map[window]bool{}
	}
	w := windowOf(r)
	stands, ok := o.open[w]
	switch {
	case o.any && o.reached >= w.end-1 && o.lateAtBorders:
		o.lateRows[w] = true
	case o.any && o.reached >= w.end-1:
		o.late++
	case ok:
		o.open[w] = o.merge(stands, r)
	default:
		o.open[w] = r
	}
}

func (o *windows) watermark(now, to stream.Time) {
	if to >= o.border {
		o.countLate()
		o.border = (to + 1).Floor(5*second) + 5*second - 1
	}
	o.reached, o.any = to, true
	for w, r := range o.open {
		if to >= w.end-1 {
			delete(o.open, w)
			o.send(now, stream.Insert, r)
		}
	}
}

func (o *windows) checkpoint(stream.Time) { o.countLate() }

func (o *windows) countLate() {
	o.late += int64(len(o.lateRows))
	clear(o.lateRows)
}

func (o *windows) known(stream.Time) map[string]bool {
	known := map[string]bool{}
	for w := range o.open {
		known[w.key] = true
	}
	for w := range o.lateRows {
		known[w.key] = true
	}
	return known
}

// onTime lets through only rows that are after the watermark and diverts the others, or lets through only the others.
type onTime struct {
	rule
	late             bool
	withoutWatermark bool // let rows through before the first watermark
	reached          stream.Time
	any              bool
}

func (o *onTime) row(now stream.Time, r row) {
	late := r.event <= o.reached
	switch {
	case !o.any && o.withoutWatermark || o.any && late == o.late:
		o.rule.row(now, r)
	case o.any && late:
		o.rule.out().divert(now, r)
	}
}

func (o *onTime) watermark(now, w stream.Time) {
	o.reached, o.any = w, true
	o.rule.watermark(now, w)
}

// batch holds rows back, and hands some of each key to a rule when it ends.
type batch struct {
	rule
	of   func(rows []row) []row
	rows []row
	from stream.Time // when the first row came
}

func firstOfKey(rows []row) []row { return rows[:1] }
func lastOfKey(rows []row) []row  { return rows[len(rows)-1:] }
func allOfKey(rows []row) []row   { return rows }

func latestOfKey(rows []row) []row {
	latest := rows[0]
	for _, r := range rows {
		latest = last(latest, r)
	}
	return []row{latest}
}

func (o *batch) row(now stream.Time, r row) {
	if len(o.rows) == 0 {
		o.from = now
	}
	o.rows = append(o.rows, r)
}

func (o *batch) end(now stream.Time) {
	for len(o.rows) > 0 {
		key := o.rows[0].key
		var ofKey, others []row
		for _, r := range o.rows {
			if r.key == key {
				ofKey = append(ofKey, r)
			} else {
				others = append(others, r)
			}
		}
		for _, r := range o.of(ofKey) {
			o.rule.row(now, r)
		}
		o.rows = others
	}
}

func (o *batch) checkpoint(now stream.Time) { o.end(now) }

func (o *batch) known(now stream.Time) map[string]bool {
	known := map[string]bool{}
	maps.Copy(known, o.rule.known(now))
	for _, r := range o.rows {
		known[r.key] = true
	}
	return known
}

// batchByClock ends when the clock reaches a multiple of 3 s.
type batchByClock struct{ batch }

func (o *batchByClock) clock(now stream.Time) {
	if now >= o.from.Floor(3*second)+3*second {
		o.end(now)
	}
}

// batchByWatermark ends with a watermark that reaches the last millisecond of 3 s that none has reached before.
type batchByWatermark struct {
	batch
	over stream.Time // the intervals before it
}

func (o *batchByWatermark) watermark(now, w stream.Time) {
	if reached := (w + 1).Floor(3 * second); reached > o.over {
		o.end(now)
		o.over = reached
	}
}
