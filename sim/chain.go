package sim

import "deduplab/stream"

// ChainSpec says what stands behind one another.
type ChainSpec struct {
	Records stream.Records
	// Tasks take a record at a time; each is given the inserts of the one before.
	Tasks []TaskSpec
	// Query takes the inserts of the last task. Between the two stands a table or topic that shows them with each
	// checkpoint, so that the query's trigger should be the checkpoint interval.
	Query BatchSpec
	// OnChange is told of each change of a task; may be nil.
	OnChange func(task int, c *Change)
}

// Chain runs a micro-batch query behind tasks that take a record at a time. A row is in one of them: to the ledger it is
// held from when it leaves the first task until the query decides. Rows move on whenever time does.
type Chain struct {
	spec    ChainSpec
	tasks   []*Task
	query   *BatchEngine
	event   int // column
	changes []Change
	keys    []stream.Key
}

// NewChain makes a chain of at least one task.
func NewChain(spec ChainSpec) *Chain {
	spec.Query.Held = true
	c := &Chain{spec: spec, query: NewBatchEngine(spec.Query), event: spec.Records.Schema().Event}
	for _, task := range spec.Tasks {
		c.tasks = append(c.tasks, NewTask(task))
	}
	return c
}

// Row hands a row to the first task.
func (c *Chain) Row(row *stream.Row) { c.tasks[0].Row(row) }

// each does something to one task after the other, and moves on what it sends.
func (c *Chain) each(f func(*Task)) {
	for i, task := range c.tasks {
		f(task)
		task.Drain(func(change *Change, key stream.Key, _ []stream.Tag) { c.move(i, change, key) })
	}
}

// move hands a row that a task has sent to what follows, and books what became of the others.
func (c *Chain) move(task int, change *Change, key stream.Key) {
	if c.spec.OnChange != nil {
		c.spec.OnChange(task, change)
	}
	booked := *change
	switch change.Op {
	case OpEmit, OpRelease:
		if !change.adds() {
			return
		}
		if task == 0 && change.Op == OpEmit {
			booked.Op = OpHold
			c.book(booked, key)
		}
		c.forward(task+1, &stream.Row{Key: key, Event: stream.Time(c.spec.Records.Order(change.Tag, c.event)),
			Arrival: change.At, Tag: change.Tag})
	case OpDrop:
		if task > 0 {
			booked.Op = OpDropHeld
		}
		c.book(booked, key)
	case OpHold:
		if task == 0 {
			c.book(booked, key)
		}
	case OpDropHeld:
		c.book(booked, key)
	}
}

func (c *Chain) forward(to int, row *stream.Row) {
	if to < len(c.tasks) {
		c.tasks[to].Row(row)
		return
	}
	c.query.Row(row)
}

func (c *Chain) book(change Change, key stream.Key) {
	c.changes = append(c.changes, change)
	c.keys = append(c.keys, key)
}

// Clock moves processing time.
func (c *Chain) Clock(now stream.Time) {
	c.each(func(t *Task) { t.Clock(now) })
	c.query.Clock(now)
}

// SourceWatermark tells the watermark of one reader; the tasks behind the first one have one watermark.
func (c *Chain) SourceWatermark(reader int, w, now stream.Time) {
	c.each(func(t *Task) { t.SourceWatermark(reader, w, now) })
	c.query.Clock(now)
}

// Watermark advances the combined watermark of the tasks. The query makes one of its own.
func (c *Chain) Watermark(w, now stream.Time) {
	c.each(func(t *Task) { t.Watermark(w, now) })
	c.query.Clock(now)
}

// Batch is the latest batch of the query that was started.
func (c *Chain) Batch() MicroBatch { return c.query.Batch() }

// Checkpoint flushes the tasks, and shows the query what they have sent.
func (c *Chain) Checkpoint(now stream.Time) {
	c.each(func(t *Task) { t.Checkpoint(now) })
	c.query.Clock(now)
}

// End ends the input.
func (c *Chain) End(now stream.Time) {
	c.each(func(t *Task) { t.End(now) })
	c.query.End(now)
}

// Drain hands all changes since the last call to f: those of the tasks, then those of the query.
func (c *Chain) Drain(f func(change *Change, key stream.Key, parts []stream.Tag)) {
	for i := range c.changes {
		f(&c.changes[i], c.keys[i], nil)
	}
	c.changes, c.keys = c.changes[:0], c.keys[:0]
	c.query.Drain(f)
}

// Subtasks returns what the subtasks of all tasks and the query hold. Only the rows that come in are counted, and the
// first task takes them.
func (c *Chain) Subtasks() []SubtaskState {
	states := c.tasks[0].Subtasks()
	for _, task := range c.tasks[1:] {
		states = append(states, withoutRows(task.Subtasks())...)
	}
	return append(states, withoutRows(c.query.Subtasks())...)
}

func withoutRows(states []SubtaskState) []SubtaskState {
	for i := range states {
		states[i].Rows = 0
	}
	return states
}

// TaskState returns what the subtasks of one task hold.
func (c *Chain) TaskState(task int) []SubtaskState { return c.tasks[task].Subtasks() }

// Query is the micro-batch query.
func (c *Chain) Query() *BatchEngine { return c.query }

// Tables visits the keyed state of all.
func (c *Chain) Tables(f func(int, *Table)) {
	for _, task := range c.tasks {
		task.Tables(f)
	}
	c.query.Tables(f)
}

// Err is the first error.
func (c *Chain) Err() error {
	for _, task := range c.tasks {
		if err := task.Err(); err != nil {
			return err
		}
	}
	return c.query.Err()
}
