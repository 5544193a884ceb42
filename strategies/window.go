package strategies

import (
	"fmt"

	"deduplab/sim"
	"deduplab/stream"
)

var sizeParam = Param{Name: "size", Kind: Duration, Default: "1m", About: "length of the tumbling window"}

func checkSize(args Args, _ stream.Schema) string {
	if args.Duration("size") == 0 {
		return "size must be longer than 0"
	}
	return ""
}

// window is Flink's WindowAggOperator over tumbling windows, for whatever merges the rows of one key and window. Rows
// wait in a buffer; a watermark that reaches the end - 1 ms of a window in it, or a checkpoint, moves the whole buffer
// to keyed state with one timer for each key and window: flink window-dedup/checkpoint, tumble-agg/many-keys.
//
// A row is late only once its window has fired, watermark >= end - 1 ms: flink window-dedup/late.
type window struct {
	sim.Base
	size   stream.Time
	merge  merge
	buffer groups // in memory until a window fires or a checkpoint is taken
	state  groups // keyed state

	groupBytes, timerBytes int
}

// merge decides what stands for two groups of one key and window, the second of which came later, and which of their
// rows is given up, as what.
type merge func(records stream.Records, stands, later group) (group, stream.Tag, sim.Disposition)

// group is what stands for the rows of one key and window so far.
type group struct {
	key    stream.Key
	end    stream.Time // of the window
	tag    stream.Tag  // the row that stands; of a composed row, the first one
	event  stream.Time // its event time
	order  int64       // its Row.Order
	wait   sim.Wait
	parts  []stream.Tag // of a composed row, the row that each column comes from
	behind bool         // see Row.Behind
}

func newGroup(row *stream.Row, size stream.Time) group {
	return group{key: row.Key, end: WindowEnd(row.Event, size), tag: row.Tag, event: row.Event, order: row.Order,
		wait: sim.WaitOf(row), behind: row.Behind}
}

// WindowEnd is the end of the tumbling window that holds t. Windows are aligned to 0, before 1970 too: flink
// window-dedup/negative-time.
func WindowEnd(t, size stream.Time) stream.Time { return t.Floor(size) + size }

// fired reports whether the watermark has reached the window's last millisecond.
func fired(end, watermark stream.Time) bool { return end-1 <= watermark }

// groups holds one group for each key and window, in slots that are used again.
type groups struct {
	slots  []group
	free   []sim.Ref
	index  map[stream.Key]sim.Ref // by key.With(end)
	order  []sim.Ref              // slots in the order in which they were added, for drain
	minEnd stream.Time            // the earliest window end since the last drain
}

func newGroups() groups { return groups{index: map[stream.Key]sim.Ref{}, minEnd: stream.MaxTime} }

func (s *groups) len() int { return len(s.index) }

// add puts a group in, or merges it into the one that stands. It reports whether the group is new.
func (s *groups) add(c *sim.Ctx, m merge, g group, at stream.Time) (sim.Ref, bool) {
	s.minEnd = min(s.minEnd, g.end)
	id := g.key.With(int64(g.end))
	if ref, ok := s.index[id]; ok {
		result, givenUp, as := m(c.Records, s.slots[ref], g)
		c.DropHeld(g.key, givenUp, as, at)
		s.slots[ref] = result
		return ref, false
	}
	var ref sim.Ref
	if n := len(s.free); n > 0 {
		ref, s.free = s.free[n-1], s.free[:n-1]
		s.slots[ref] = g
	} else {
		ref = sim.Ref(len(s.slots))
		s.slots = append(s.slots, g)
	}
	s.index[id] = ref
	return ref, true
}

// take removes a group.
func (s *groups) take(ref sim.Ref) group {
	g := s.slots[ref]
	s.slots[ref] = group{}
	s.free = append(s.free, ref)
	delete(s.index, g.key.With(int64(g.end)))
	return g
}

// all returns the groups in the order of their slots.
func (s *groups) all() []group {
	all := make([]group, 0, s.len())
	for i, g := range s.slots {
		if ref, ok := s.index[g.key.With(int64(g.end))]; ok && ref == sim.Ref(i) {
			all = append(all, g)
		}
	}
	return all
}

// buffered adds a group to a buffer that is drained in the order of arrival.
func (s *groups) buffered(c *sim.Ctx, m merge, g group, at stream.Time) {
	if ref, isNew := s.add(c, m, g, at); isNew {
		s.order = append(s.order, ref)
	}
}

// drain empties a buffer in the order of arrival.
func (s *groups) drain(f func(group)) {
	for _, ref := range s.order {
		f(s.slots[ref])
	}
	s.slots, s.free, s.order = s.slots[:0], s.free[:0], s.order[:0]
	clear(s.index)
	s.minEnd = stream.MaxTime
}

func (o *window) Rows(c *sim.Ctx, rows []stream.Row) {
	for i := range rows {
		row := &rows[i]
		g := newGroup(row, o.size)
		if fired(g.end, c.Watermark()) {
			c.Drop(row, sim.Late)
			continue
		}
		c.Hold(row)
		o.buffer.buffered(c, o.merge, g, row.Arrival)
	}
}

func (o *window) Watermark(c *sim.Ctx, w stream.Time) {
	if o.buffer.len() > 0 && fired(o.buffer.minEnd, w) {
		o.flush(c)
	}
}

func (o *window) BeforeCheckpoint(c *sim.Ctx) { o.flush(c) }

// flush moves the buffer to keyed state.
func (o *window) flush(c *sim.Ctx) {
	o.buffer.drain(func(g group) {
		if ref, isNew := o.state.add(c, o.merge, g, c.Now()); isNew {
			c.EventTimer(g.end-1, ref)
		}
	})
}

func (o *window) EventTimer(c *sim.Ctx, _ stream.Time, due []sim.Ref) {
	for _, ref := range due {
		g := o.state.take(ref)
		c.ForgetEventTimer()
		if g.parts != nil {
			c.ReleaseParts(stream.Insert, g.key, g.tag, g.parts)
		} else {
			c.Release(stream.Insert, g.key, g.tag, g.wait)
		}
	}
}

// windowSnapshot is what a checkpoint stores of a window operator: the keyed state, and the watermark as operator
// state.
type windowSnapshot struct {
	state     []group
	watermark stream.Time
}

func (o *window) Snapshot(c *sim.Ctx) any { return windowSnapshot{o.state.all(), c.Watermark()} }

// Restore takes over the watermark, so that a window that has fired stays closed: WindowAggOperator.initializeState.
func (o *window) Restore(c *sim.Ctx, snapshot any) {
	s := snapshot.(windowSnapshot)
	c.RestoreWatermark(s.watermark)
	for _, g := range s.state {
		ref, _ := o.state.add(c, o.merge, g, c.Now())
		c.EventTimer(g.end-1, ref)
	}
}

func (o *window) State(*sim.Ctx) sim.State {
	return sim.State{
		Entries:  o.state.len(),
		Buffered: o.buffer.len(),
		LiveKeys: distinctKeys(o.state, o.buffer),
		Bytes:    int64((o.state.len()+o.buffer.len())*o.groupBytes + o.state.len()*o.timerBytes),
	}
}

// distinctKeys counts the keys in some groups, each once however many windows it has.
func distinctKeys(all ...groups) int {
	keys := map[stream.Key]bool{}
	for _, groups := range all {
		for _, ref := range groups.index {
			keys[groups.slots[ref].key] = true
		}
	}
	return len(keys)
}

// windowPlan fills in what all windowed strategies declare.
func windowPlan(args Args, job Job, operator string, m merge) Plan {
	size := args.Duration("size")
	return Plan{
		Changelog:  stream.InsertOnly,
		UpsertKey:  NoKey,
		Operator:   operator,
		Runtime:    "org.apache.flink.table.runtime.operators.window.tvf.common.WindowAggOperator",
		StateClass: TimeBounded,
		Clock:      "event time",
		TTL:        "the end of the window; table.exec.state.ttl does nothing here",
		Leaks:      ByWindow,
		Window:     size,
		Output:     Windowed,
		Language:   "sql",
		New:        func(c *sim.Ctx) sim.Operator { return newWindow(c, size, m, job) },
	}
}

func newWindow(c *sim.Ctx, size stream.Time, m merge, job Job) *window {
	if job.MiniBatch.on() {
		// Windows do not batch, but they get their watermarks through the assigner: flink window-dedup/mini-batch.
		c.WatermarksEvery(job.MiniBatch.Latency)
	}
	return &window{
		size: size, merge: m, buffer: newGroups(), state: newGroups(),
		groupBytes: job.keyBytes() + 8 + job.rowBytes(), timerBytes: job.timerBytes() + 8,
	}
}

// tumble renders the windowing table function.
func (j Job) tumble(size stream.Time) string {
	return fmt.Sprintf("TABLE(TUMBLE(TABLE orders, DESCRIPTOR(%s), %s))", j.eventName(), interval(size))
}

// interval spells a span as an SQL interval.
func interval(t stream.Time) string {
	for _, u := range []struct {
		ms   stream.Time
		name string
	}{{86_400_000, "DAY"}, {3_600_000, "HOUR"}, {60_000, "MINUTE"}} {
		if t%u.ms == 0 {
			return fmt.Sprintf("INTERVAL '%d' %s", t/u.ms, u.name)
		}
	}
	if t%1000 == 0 {
		return fmt.Sprintf("INTERVAL '%d' SECOND", t/1000)
	}
	return fmt.Sprintf("INTERVAL '%s' SECOND", stream.FormatDecimal(int64(t), 3))
}
