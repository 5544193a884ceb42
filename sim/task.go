package sim

import "deduplab/stream"

// TaskSpec says how a strategy's operator runs.
type TaskSpec struct {
	Parallelism int // subtasks, at least 1
	Readers     int // source readers, at least 1
	Records     stream.Records
	// New makes the operator of one subtask.
	New func(*Ctx) Operator
	// CheckpointInterval is the time from one checkpoint to the next, 0 if it is not known.
	CheckpointInterval stream.Time
	// UpdateBefore says that the consumer wants -U.
	UpdateBefore bool
	// Prepare fills in what this strategy's rows need beside what the source gives: another key, the order column. Nil:
	// nothing.
	Prepare func(*stream.Row)
	// NewTable makes the keyed state of a subtask. Nil: in memory.
	NewTable func(subtask int, ttl stream.Time) *Table
	// OnTimer is told of the timers of keys, when they are set and when they fire, for those who watch; may be nil.
	OnTimer func(TimerEvent)
	// Jump is how time passes in Flink's test harness: the clock is at its new value before the timers due in between
	// fire. Otherwise each fires at its own time.
	Jump bool
}

// TimerEvent is a timer that is set or fires.
type TimerEvent struct {
	At        stream.Time // the timer's own time
	EventTime bool        // which is event time, not processing time
	Fires     bool
	Now       stream.Time // processing time
}

// Task runs one strategy: a keyed shuffle to subtasks by key group, each with an operator, state and timers of its own.
// Time never falls from call to call.
type Task struct {
	spec     TaskSpec
	subtasks []subtask
	prepared stream.Row
	shared   any // see Ctx.Shared
	laws     laws
}

// subtask is one parallel instance. Rows wait in run until it is full or something else happens.
type subtask struct {
	ctx Ctx
	op  Operator
	run []stream.Row
	// until is the earliest time of a timer that the waiting rows may set.
	until stream.Time
	rows  int64
}

// keyGroups is the number of key groups, Flink's default maximum parallelism.
const keyGroups = 128

// NewTask makes a task.
func NewTask(spec TaskSpec) *Task {
	t := &Task{spec: spec, subtasks: make([]subtask, spec.Parallelism), laws: newLaws(spec.Readers)}
	for i := range t.subtasks {
		s := &t.subtasks[i]
		s.run, s.until = make([]stream.Row, 0, maxRun), stream.MaxTime
		s.ctx = Ctx{
			shared:  &t.shared,
			Records: spec.Records, now: stream.MinTime, watermark: stream.MinTime, readers: spec.Readers,
			updateBefore: spec.UpdateBefore, checkpoints: spec.CheckpointInterval, onTimer: spec.OnTimer,
		}
		s.ctx.newTable = func(ttl stream.Time) *Table {
			if spec.NewTable == nil {
				return NewTable(TableSpec{TTL: ttl})
			}
			return spec.NewTable(i, ttl)
		}
		s.op = spec.New(&s.ctx)
	}
	return t
}

// subtaskOf is the subtask of a key: key groups are spread over the subtasks in ranges, as Flink assigns them.
func subtaskOf(key stream.Key, parallelism int) int {
	group := int(key.Hash() >> 57)
	return group * parallelism / keyGroups
}

// Row hands one row to the subtask of its key. It is handled at its arrival, at the latest when something else happens.
func (t *Task) Row(row *stream.Row) {
	s := &t.subtasks[0]
	r := &t.prepared
	*r = *row
	if t.spec.Prepare != nil {
		t.spec.Prepare(r)
	}
	if len(t.subtasks) > 1 {
		s = &t.subtasks[subtaskOf(r.Key, len(t.subtasks))]
	}
	if s.until <= r.Arrival || s.ctx.procTimers.Len() > 0 && s.ctx.procTimers.Due(r.Arrival) {
		t.flush(s)
		t.clock(s, r.Arrival)
	}
	if len(s.run) == 0 && s.ctx.timersFrom != nil {
		s.until = s.ctx.timersFrom(r.Arrival)
	}
	s.run = append(s.run, *r)
	if len(s.run) == cap(s.run) {
		t.flush(s)
	}
}

// flush hands the waiting rows to the operator.
func (t *Task) flush(s *subtask) {
	if len(s.run) == 0 {
		return
	}
	s.rows += int64(len(s.run))
	s.ctx.now = s.run[len(s.run)-1].Arrival
	s.op.Rows(&s.ctx, s.run)
	s.run, s.until = s.run[:0], stream.MaxTime
}

// clock moves a subtask's processing time and fires the timers due.
func (t *Task) clock(s *subtask, now stream.Time) {
	if now <= s.ctx.now {
		return
	}
	if t.spec.Jump {
		s.ctx.now = now
	}
	t.laws.advance()
	s.ctx.procTimers.Advance(now, func(at stream.Time, due []stream.Key) {
		t.laws.firing(at, now)
		s.ctx.procCount.fired += len(due)
		if !t.spec.Jump {
			s.ctx.now = at
		}
		for _, key := range due {
			if key == ServiceKey {
				s.ctx.service--
			} else {
				s.ctx.tellTimer(at, false, true)
			}
			s.op.ProcTimer(&s.ctx, at, key)
		}
	})
	s.ctx.now = now
}

// Clock moves processing time: it hands on the waiting rows and fires the timers due.
func (t *Task) Clock(now stream.Time) {
	for i := range t.subtasks {
		t.flush(&t.subtasks[i])
		t.clock(&t.subtasks[i], now)
	}
}

// SourceWatermark tells the watermark of one reader.
func (t *Task) SourceWatermark(reader int, w, now stream.Time) {
	t.Clock(now)
	t.laws.source(reader, w)
	for i := range t.subtasks {
		s := &t.subtasks[i]
		if s.ctx.sourceWatermark(reader, w) {
			s.op.SourceWatermark(&s.ctx, reader, w)
		}
	}
}

// Watermark advances the combined watermark and fires the event-time timers due.
func (t *Task) Watermark(w, now stream.Time) {
	t.Clock(now)
	t.laws.watermark(w)
	for i := range t.subtasks {
		s := &t.subtasks[i]
		w := s.ctx.combined(w)
		if w <= s.ctx.watermark {
			continue
		}
		s.ctx.watermark = w
		s.op.Watermark(&s.ctx, w)
		t.laws.advance()
		s.ctx.eventTimers.Advance(w, func(at stream.Time, due []Ref) {
			t.laws.firing(at, w)
			s.ctx.eventCount.fired += len(due)
			s.ctx.tellTimer(at, true, true)
			s.op.EventTimer(&s.ctx, at, due)
		})
	}
}

// Checkpoint flushes what the engine flushes before a snapshot.
func (t *Task) Checkpoint(now stream.Time) {
	t.Clock(now)
	for i := range t.subtasks {
		t.subtasks[i].op.BeforeCheckpoint(&t.subtasks[i].ctx)
	}
	t.checkTimers()
}

// checkTimers holds that no timer has fired twice or was lost.
func (t *Task) checkTimers() {
	for i := range t.subtasks {
		c := &t.subtasks[i].ctx
		t.laws.timers("event time", c.eventCount, c.eventTimers.Len())
		t.laws.timers("processing time", c.procCount, c.procTimers.Len())
	}
}

// End ends the input. The last watermark and checkpoint have come before it.
func (t *Task) End(now stream.Time) {
	t.Clock(now)
	t.checkTimers()
}

// Drain hands all changes since the last call to f in the order of their processing time, subtask by subtask within one
// instant. Parts are the rows that a composed row was made of, nil for a plain one.
func (t *Task) Drain(f func(change *Change, key stream.Key, parts []stream.Tag)) {
	if len(t.subtasks) == 1 {
		c := &t.subtasks[0].ctx
		for i := range c.changes {
			f(&c.changes[i], c.keys[i], c.partsOf(i))
		}
		c.forget()
		return
	}
	next := make([]int, len(t.subtasks))
	for {
		first := -1
		for i := range t.subtasks {
			if next[i] < len(t.subtasks[i].ctx.changes) && (first < 0 ||
				t.subtasks[i].ctx.changes[next[i]].At < t.subtasks[first].ctx.changes[next[first]].At) {
				first = i
			}
		}
		if first < 0 {
			break
		}
		c := &t.subtasks[first].ctx
		f(&c.changes[next[first]], c.keys[next[first]], c.partsOf(next[first]))
		next[first]++
	}
	for i := range t.subtasks {
		t.subtasks[i].ctx.forget()
	}
}

func (c *Ctx) partsOf(i int) []stream.Tag {
	if p := c.changes[i].Parts; p > 0 {
		return c.parts[p-1]
	}
	return nil
}

// forget drops the changes that have been taken.
func (c *Ctx) forget() {
	c.changes, c.keys = c.changes[:0], c.keys[:0]
	clear(c.parts)
	c.parts = c.parts[:0]
}

// Compose builds the row whose columns come from different rows.
func Compose(records stream.Records, parts []stream.Tag) stream.Record {
	row := make(stream.Record, len(parts))
	for i, tag := range parts {
		row[i] = records.Record(tag)[i]
	}
	return row
}

// Subtasks returns how many rows each subtask was given and what it holds at now.
func (t *Task) Subtasks() []SubtaskState {
	states := make([]SubtaskState, len(t.subtasks))
	for i := range t.subtasks {
		s := &t.subtasks[i]
		states[i] = SubtaskState{Rows: s.rows, State: s.op.State(&s.ctx), Timers: s.ctx.Timers(), LateDropped: s.ctx.late,
			Watermark: s.ctx.watermark}
	}
	return states
}

// SubtaskState is what one subtask has seen and holds.
type SubtaskState struct {
	Rows        int64
	State       State
	Timers      TimerCount
	LateDropped int64
	Watermark   stream.Time // what the operator knows: see Ctx.WatermarksEvery
}

// Tables visits the keyed state of all subtasks.
func (t *Task) Tables(f func(subtask int, table *Table)) {
	for i := range t.subtasks {
		for _, table := range t.subtasks[i].ctx.tables {
			f(i, table)
		}
	}
}

// Err is the first error of an operator, which ends the job, or of a state backend, or a law that is broken.
func (t *Task) Err() error {
	if t.laws.err != nil {
		return t.laws.err
	}
	for i := range t.subtasks {
		if err := t.subtasks[i].ctx.err; err != nil {
			return err
		}
		for _, table := range t.subtasks[i].ctx.tables {
			if err := table.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
