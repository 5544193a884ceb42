package lab

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"deduplab/results"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// stories of a strategy, and which of them an event is part of, from 1.
type stories struct {
	list []results.Story
	of   map[uint64]int
}

// tell tells stories: of the rows of some events, and of all rows that share a key with one of them. Events are given
// by index of the strategy, and so are the stories. Those of more than the given number of rows are left out; 0: none
// is.
func (r *run) tell(ctx context.Context, events map[int][]uint64, most int) (map[int]stories, error) {
	var tellers []*teller
	var handlers []handler
	for _, i := range slices.Sorted(maps.Keys(events)) {
		t, err := r.newTeller(i, events[i])
		if err != nil {
			return nil, err
		}
		defer t.lane.close()
		t.most = most
		tellers, handlers = append(tellers, t), append(handlers, t)
	}
	if len(tellers) == 0 {
		return nil, nil
	}
	if err := r.findKeys(ctx, tellers); err != nil {
		return nil, err
	}
	feed := r.newFeed()
	err := deliver(func(b *sim.Batch) (bool, error) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		return feed.Next(b)
	}, handlers)
	if err != nil {
		return nil, err
	}
	all := map[int]stories{}
	for _, t := range tellers {
		s := stories{of: map[uint64]int{}}
		for _, told := range t.told {
			if len(told.rows) == 0 {
				continue // it is too long, or its rows are in the story of another event, which has the same key
			}
			s.list = append(s.list, t.story(told))
			for _, tag := range told.rows {
				s.of[tag.Event()] = len(s.list)
			}
		}
		all[t.strategy] = s
	}
	return all, nil
}

// findKeys reads the stream for the keys of the events' rows.
func (r *run) findKeys(ctx context.Context, tellers []*teller) error {
	rows, buffer := r.workload.Stream(), make([]stream.Row, 1024)
	for {
		n, err := rows.Next(buffer)
		if n == 0 || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range buffer[:n] {
			for _, t := range tellers {
				if told := t.byEvent[buffer[i].Tag.Event()]; told != nil {
					row := t.prepared(&buffer[i])
					if told.own++; t.most > 0 && told.own > t.most {
						t.leaveOut(told)
					} else if t.byKey[row.Key] == nil {
						t.byKey[row.Key] = told
						t.keys = append(t.keys, row.Key)
					}
				}
			}
		}
	}
}

// leaveOut stops a story that has become too long.
func (t *teller) leaveOut(told *tale) {
	t.keys = slices.DeleteFunc(t.keys, func(key stream.Key) bool { return t.byKey[key] == told })
	maps.DeleteFunc(t.byKey, func(_ stream.Key, of *tale) bool { return of == told })
	maps.DeleteFunc(t.byEvent, func(_ uint64, of *tale) bool { return of == told })
	maps.DeleteFunc(t.byRow, func(_ stream.Tag, of *tale) bool { return of == told })
	t.told = slices.DeleteFunc(t.told, func(of *tale) bool { return of == told })
}

// mostStoryRows is how many rows the story of an example has at most: that of an id which a bot sends all day is
// nothing to read.
const mostStoryRows = 200

// toldExamples is how many of the example rows of a fate and cause have their story told: the others are like them.
const toldExamples = 3

// tellExamples tells the stories of the first example rows of each fate and cause, of all strategies, and of the
// differences that replays have found: these twice, in the run and in the replay.
func (r *run) tellExamples(ctx context.Context, out *results.Run) error {
	events := make([]map[int][]uint64, 1+len(r.replays)) // of the run, then of each replay; by strategy
	for i := range events {
		events[i] = map[int][]uint64{}
	}
	want := func(pass, strategy int, event uint64) {
		if list := events[pass][strategy]; !slices.Contains(list, event) {
			events[pass][strategy] = append(list, event)
		}
	}
	for i := range out.Strategies {
		s := &out.Strategies[i]
		alike := map[[2]string]int{}
		for _, e := range s.Examples {
			like := [2]string{e.Fate, e.Cause}
			if alike[like]++; alike[like] <= toldExamples {
				want(0, i, e.EventNumber)
			}
		}
		for _, d := range s.Determinism {
			if f := r.differences[difference{d.Cause, i}]; f != nil && f.short {
				want(0, i, f.event)
				want(1+f.replay, i, f.event)
			}
		}
	}
	told := make([]map[int]stories, len(events))
	err := r.atOnce(len(events), func(pass int) (err error) {
		teller := r
		if pass > 0 {
			teller = r.replays[pass-1].run
		}
		told[pass], err = teller.tell(ctx, events[pass], mostStoryRows)
		return err
	})
	if err != nil {
		return err
	}
	for i := range out.Strategies {
		s := &out.Strategies[i]
		base := told[0][i]
		shown := map[int]int{} // by number of the story: that in the results
		for j := range s.Examples {
			e := &s.Examples[j]
			n := base.of[e.EventNumber]
			if n > 0 && shown[n] == 0 {
				s.Stories = append(s.Stories, base.list[n-1])
				shown[n] = len(s.Stories)
			}
			e.Story = shown[n]
		}
		for j := range s.Determinism {
			d := &s.Determinism[j]
			if f := r.differences[difference{d.Cause, i}]; f != nil && base.of[f.event] > 0 {
				d.Stories = []results.Story{base.about(f.event), told[1+f.replay][i].about(f.event)}
			}
		}
	}
	return nil
}

// about is the story that an event is part of; it is empty where the source no longer had any of its rows.
func (s stories) about(event uint64) results.Story {
	if n := s.of[event]; n > 0 {
		return s.list[n-1]
	}
	return results.Story{Rows: []results.StoryRow{}, Steps: []results.StoryStep{}}
}

// teller is a strategy that runs only so that the stories of a few keys can be told.
type teller struct {
	run      *run
	strategy int
	lane     *lane
	task     task
	prepare  func(*stream.Row)
	all      bool // other keys matter too
	most     int  // rows of a story; 0: any number
	told     []*tale
	byEvent  map[uint64]*tale
	byKey    map[stream.Key]*tale
	keys     []stream.Key // of byKey
	// byRow finds the tale of a row that has been seen.
	byRow     map[stream.Tag]*tale
	watermark stream.Time
	now       *tale                      // whose row is being handled
	timers    map[sim.TimerEvent][]*tale // that have been set, by their time alone
	fired     *stream.Time               // when the last timer did, if the state was not looked at since
}

// tale is a story that is being written.
type tale struct {
	own   int // rows of its event
	rows  []stream.Tag
	keys  []stream.Key  // of each row
	came  []stream.Time // when each row could be read
	marks []stream.Time // the watermark at the arrival of each row
	steps []step
	last  map[stream.Tag]sim.Disposition // of each row
	// state is what the keys' state was when it was last looked at.
	state []entryState
}

type step struct {
	at        stream.Time
	tag       stream.Tag
	about     bool // tag is a row
	what      results.What
	until     stream.Time
	hasUntil  bool
	eventTime bool
	note      string
}

// entryState is an entry of the state.
type entryState struct {
	table   *sim.Table
	key     stream.Key
	written stream.Time
	pinned  bool
}

// expired reports whether the TTL of the entry is over.
func (e entryState) expired(at stream.Time) bool {
	return e.table.TTL() > 0 && !e.pinned && e.written+e.table.TTL() <= at
}

func (r *run) newTeller(strategy int, events []uint64) (*teller, error) {
	e := r.entries[strategy]
	t := &teller{
		run: r, strategy: strategy, lane: &lane{}, prepare: e.prepare(e.plan), all: e.plan.SharedCache,
		byEvent: map[uint64]*tale{}, byKey: map[stream.Key]*tale{}, byRow: map[stream.Tag]*tale{},
		timers: map[sim.TimerEvent][]*tale{}, watermark: stream.MinTime,
	}
	for _, event := range events {
		told := &tale{last: map[stream.Tag]sim.Disposition{}}
		t.told, t.byEvent[event] = append(t.told, told), told
	}
	t.lane.onTimer = t.timer
	t.task = r.newTask(e, t.lane, 0)
	return t, t.lane.err
}

// prepared is a row as the strategy sees it.
func (t *teller) prepared(row *stream.Row) stream.Row {
	own := *row
	if t.prepare != nil {
		t.prepare(&own)
	}
	return own
}

func (t *teller) handle(b *sim.Batch) error {
	row := 0
	b = seenBy(t.task, b)
	for _, m := range b.Marks {
		t.push(b.Rows[row:m.Before])
		row = m.Before
		switch m.Kind {
		case sim.SourceWatermark:
			t.task.SourceWatermark(m.Reader, m.Watermark, m.At)
		case sim.CombinedWatermark:
			t.watermark = m.Watermark
			t.task.Watermark(m.Watermark, m.At)
		case sim.Checkpoint:
			t.task.Checkpoint(m.At)
			t.observe(m.At)
		case sim.EndOfInput:
			t.task.End(m.At)
		case sim.Kept, sim.Crashed, sim.Restarted:
			t.fail(m)
		}
		t.task.Drain(t.note)
		t.observeTimers()
	}
	t.push(b.Rows[row:])
	if err := t.task.Err(); !isQueryError(err) {
		return err
	}
	return nil
}

// fail tells the story of a crash: what the keys' state is afterwards is that of the checkpoint, in new tables.
func (t *teller) fail(m sim.Mark) {
	fail(t.task, m)
	what, happened := map[sim.MarkKind]results.What{sim.Crashed: results.Crashes, sim.Restarted: results.GoesOn}[m.Kind]
	for _, told := range t.told {
		if happened && len(told.rows) > 0 {
			told.add(step{at: m.At, what: what})
		}
	}
	if m.Kind != sim.Restarted {
		return
	}
	t.watermark = stream.MinTime
	clear(t.timers)
	for _, told := range t.told {
		told.state = nil
	}
	t.observe(m.At)
}

func (t *teller) push(rows []stream.Row) {
	for i := range rows {
		row := t.prepared(&rows[i])
		told := t.byKey[row.Key]
		if told != nil && t.most > 0 && len(told.rows) == t.most {
			t.leaveOut(told)
			told = nil
		}
		if told == nil {
			if t.all {
				t.task.Row(&rows[i])
			}
			continue
		}
		t.task.Clock(row.Arrival - 1)
		t.task.Drain(t.note)
		t.observeTimers()
		t.expire(row.Arrival)
		arrives := step{at: row.Arrival, tag: row.Tag, about: true, what: results.Arrives}
		if t.byRow[row.Tag] != nil { // it is read again, after a crash
			arrives.what = results.ComesAgain
		} else {
			told.rows, told.keys = append(told.rows, row.Tag), append(told.keys, row.Key)
			told.marks, told.came = append(told.marks, t.watermark), append(told.came, row.Arrival)
			t.byRow[row.Tag] = told
		}
		told.add(arrives)
		t.now = told
		t.task.Row(&rows[i])
		if _, batched := t.task.(*sim.BatchEngine); !batched {
			t.task.Clock(row.Arrival) // hands the row on
		}
		t.now = nil
		t.task.Drain(t.note)
		t.observe(row.Arrival)
	}
}

func (told *tale) add(s step) { told.steps = append(told.steps, s) }

// note writes down a change of a key that is watched.
func (t *teller) note(c *sim.Change, _ stream.Key, _ []stream.Tag) {
	told := t.byRow[c.Tag]
	if told == nil {
		return
	}
	s := step{at: c.At, tag: c.Tag, about: true}
	switch c.Op {
	case sim.OpEmit, sim.OpRelease:
		s.what, s.note = results.Emits, c.Kind.String()
		told.last[c.Tag] = sim.Emitted
	case sim.OpAgain:
		s.what, s.note = results.SendsAgain, c.Kind.String()
		if c.Kind == stream.UpdateBefore || c.Kind == stream.Delete {
			s.what = results.TakesBack
		}
	case sim.OpDrop:
		s.what, s.note = results.Drops, c.To.String()
		told.last[c.Tag] = c.To
	case sim.OpDropHeld:
		s.what, s.note = results.GivesUp, c.To.String()
		told.last[c.Tag] = c.To
	case sim.OpHold:
		s.what = results.Holds
		told.last[c.Tag] = sim.Held
	}
	told.add(s)
	if visible := t.visibleAt(c.At); visible > c.At && s.what == results.Emits {
		told.add(step{at: visible, tag: c.Tag, about: true, what: results.Visible})
	}
	t.observe(c.At)
}

// timer writes down a timer of a key that is watched. Timers do not say whose they are: one is taken to be set by the
// row that is being handled.
func (t *teller) timer(e sim.TimerEvent) {
	at := sim.TimerEvent{At: e.At, EventTime: e.EventTime}
	switch {
	case !e.Fires && t.now != nil:
		t.now.add(step{at: e.Now, what: results.SetsTimer, until: e.At, hasUntil: true, eventTime: e.EventTime})
		t.timers[at] = append(t.timers[at], t.now)
	case e.Fires:
		for _, told := range t.timers[at] {
			told.add(step{at: e.Now, what: results.TimerFires, until: e.At, hasUntil: true, eventTime: e.EventTime})
		}
		delete(t.timers, at)
		t.fired = &e.Now
	}
}

// visibleAt is when a reader sees a change.
func (t *teller) visibleAt(at stream.Time) stream.Time {
	job := t.run.scenario.Job.Checkpoint
	if job.Delivery != "exactly-once" || job.Interval == 0 || t.run.entries[t.strategy].plan.Batch != nil {
		return at
	}
	if plan := t.run.failurePlan(); plan != nil {
		return plan.CommitAt(at)
	}
	return sim.CommitAt(at, job.Interval)
}

// observe compares the state of the keys with what it was.
func (t *teller) observe(at stream.Time) {
	t.fired = nil
	t.expire(at)
	now := map[*tale][]entryState{}
	t.task.Tables(func(_ int, table *sim.Table) {
		for _, key := range t.keys {
			e, ok := table.Peek(key)
			told, is := t.byKey[key], entryState{table, key, e.Written(), e.Has(sim.Pinned)}
			if ok && !is.expired(at) {
				now[told] = append(now[told], is)
			}
		}
	})
	for _, told := range t.told {
		told.observe(now[told], at)
	}
}

// observeTimers looks at what a timer has left.
func (t *teller) observeTimers() {
	if t.fired != nil {
		t.observe(*t.fired)
	}
}

func (told *tale) observe(now []entryState, at stream.Time) {
	same := func(a entryState) func(entryState) bool {
		return func(b entryState) bool { return a.table == b.table && a.key == b.key }
	}
	for _, was := range told.state {
		if !slices.ContainsFunc(now, same(was)) {
			told.add(step{at: at, what: results.RemovesState})
		}
	}
	for _, is := range now {
		s := step{at: at, what: results.CreatesState}
		if i := slices.IndexFunc(told.state, same(is)); i >= 0 {
			if told.state[i] == is {
				continue
			}
			s.what = results.WritesState
		}
		if ttl := is.table.TTL(); ttl > 0 && !is.pinned {
			s.until, s.hasUntil = is.written+ttl, true
		}
		told.add(s)
	}
	told.state = now
}

// expire notes the state that has expired by now.
func (t *teller) expire(now stream.Time) {
	for _, told := range t.told {
		told.state = slices.DeleteFunc(told.state, func(e entryState) bool {
			if e.expired(now) {
				told.add(step{at: e.written + e.table.TTL(), what: results.StateExpires})
			}
			return e.expired(now)
		})
	}
}

// story writes a tale out.
func (t *teller) story(told *tale) results.Story {
	w := t.run.workload
	from, _ := w.Span()
	schema := w.Schema()
	since := func(at stream.Time) *int64 {
		if at == stream.MinTime {
			return nil
		}
		ms := int64(at - from)
		return &ms
	}
	out := results.Story{Rows: []results.StoryRow{}, Steps: []results.StoryStep{}}
	number, events, keys := map[stream.Tag]int{}, map[uint64]int{}, map[stream.Key]int{}
	for i, tag := range told.rows {
		number[tag] = i + 1
		if _, ok := events[tag.Event()]; !ok {
			events[tag.Event()] = len(events) + 1
		}
		if _, ok := keys[told.keys[i]]; !ok {
			keys[told.keys[i]] = len(keys) + 1
		}
		row := results.StoryRow{
			Event: events[tag.Event()], Key: keys[told.keys[i]], Origin: w.Origins()[tag.Origin()],
			ArrivalMS: int64(told.came[i] - from), Partition: w.Partition(tag), WatermarkMS: since(told.marks[i]),
			Row: map[string]string{},
		}
		record := w.Record(tag)
		for c, v := range record {
			row.Row[schema.Columns[c].Name] = v.Format(schema.Columns[c])
		}
		if v := record[schema.Event]; !v.Null {
			row.EventMS = since(stream.Time(v.Int))
		}
		out.Rows = append(out.Rows, row)
	}
	t.addFates(told, out.Rows)
	slices.SortStableFunc(told.steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	for _, s := range told.steps {
		x := results.StoryStep{AtMS: int64(s.at - from), What: s.what, Note: s.note, EventTime: s.eventTime}
		if s.about {
			x.Row = number[s.tag]
		}
		if s.hasUntil {
			x.UntilMS = since(s.until)
		}
		out.Steps = append(out.Steps, x)
	}
	return out
}

// addFates says what became of the rows, as the ledger counts them: the first row of an event that stands in the result
// at the end is kept. Of an event that is lost, one row of the kind that it was lost with tells so.
func (t *teller) addFates(told *tale, rows []results.StoryRow) {
	in := t.result(told)
	kept := map[uint64]bool{}
	for i, tag := range told.rows {
		if in[tag] > 0 {
			rows[i].Fate = "leaked"
			if event := tag.Event(); !kept[event] {
				rows[i].Fate, kept[event] = "kept", true
			}
			if in[tag] > 1 {
				rows[i].Fate += ", written " + strconv.Itoa(in[tag]) + " times"
			}
			continue
		}
		rows[i].Fate = fateOf[told.last[tag]]
	}
	lost := map[uint64]int{} // by event: the row that it is lost with
	for i, tag := range told.rows {
		event := tag.Event()
		if kept[event] {
			continue
		}
		before, ok := lost[event]
		if !ok || lossRank(told.last[tag]) > lossRank(told.last[told.rows[before]]) {
			lost[event] = i
		}
	}
	for _, i := range lost {
		switch told.last[told.rows[i]] {
		case sim.Emitted, sim.Replaced, sim.Duplicate, sim.Aside:
			rows[i].Fate = "swallowed"
		case sim.Late, sim.Filtered:
			rows[i].Fate = "late first"
		}
	}
}

var fateOf = map[sim.Disposition]string{
	sim.Emitted: "replaced", sim.Replaced: "replaced", sim.Duplicate: "suppressed", sim.Late: "late copy",
	sim.Filtered: "late copy", sim.Aside: "diverted", sim.Diverted: "diverted", sim.Held: "pending",
}

// lossRank orders what can keep an event out of the result: of several the highest counts, but for an event that went
// out once and was replaced.
func lossRank(d sim.Disposition) int {
	return slices.Index([]sim.Disposition{sim.Held, sim.Replaced, sim.Duplicate, sim.Aside, sim.Filtered, sim.Late,
		sim.Diverted, sim.Emitted}, d)
}

// result counts, by row, how often it stands in the result at the end.
func (t *teller) result(told *tale) map[stream.Tag]int {
	sink, plan := t.run.scenario.Job.Sink, t.run.entries[t.strategy].plan
	keyOf, of := map[stream.Tag]stream.Key{}, map[stream.Key]stream.Tag{}
	for i, tag := range told.rows {
		keyOf[tag] = told.keys[i]
	}
	in := map[stream.Tag]int{}
	for _, s := range told.steps {
		adds, removes := s.what == results.Emits || s.what == results.SendsAgain, s.what == results.TakesBack
		key := keyOf[s.tag]
		switch {
		case plan.ToChangelog && s.what != results.Emits: // a row that tells of a change, and none of the input's
		case sink == strategies.Upsert && (adds || removes && s.note == "-D"):
			if old, ok := of[key]; ok {
				in[old]--
				delete(of, key)
			}
			if adds {
				of[key] = s.tag
				in[s.tag]++
			}
		case adds:
			in[s.tag]++
		case removes && sink == strategies.Retract && !plan.ToChangelog:
			in[s.tag]--
		}
	}
	return in
}
