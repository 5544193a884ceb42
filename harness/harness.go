// Package harness feeds one operator by hand: push a row, move the watermark or the clock, take a checkpoint and
// restore it, then read what was sent and what is held. It is Flink's operator test harness for the lab's operators,
// and for one of your own: the recordings of conformance and the tests that users write in YAML are replayed through
// it.
//
// A [Harness] runs one subtask. Its clock starts at 0 and moves only when told, its source has sent no watermark yet.
// As in Flink's harness the clock jumps: timers due in between fire with the clock already at its new value.
//
// Every input reports the error that fails the job there, such as a NULL event time or a NULL in a NOT NULL column of
// the sink. After one, every further input returns it again.
package harness

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// Config says what is fed. Either Strategy or Plan must be set.
type Config struct {
	// Strategy is a name of [strategies.Names], Params its parameters where they are not the defaults.
	Strategy string
	Params   map[string]string
	// Plan is an operator of your own; only its New must be set.
	Plan *strategies.Plan
	// Schema is the table of the rows. Default: [Orders].
	Schema *stream.Schema
	// Job is what the planner knows beside the query; its Schema is filled in.
	Job strategies.Job
	// Readers is the number of source readers, each with watermarks of its own. Default: 1.
	Readers int
	// NotNull lists columns in which the sink takes no NULL. Default: with an upsert sink the key, else none.
	NotNull []string
	// DataStream says that the job is no SQL: it has no WatermarkAssigner that fails on a NULL event time, but a key
	// selector that may not return null. Default: what the engine of Strategy is.
	DataStream bool
}

// Orders is the table of the article: order_id, quantity, price and created_at, its event time. order_id is the key.
func Orders() stream.Schema {
	return stream.Schema{
		Columns: []stream.Column{
			{Name: "order_id", Type: stream.String},
			{Name: "quantity", Type: stream.Int},
			{Name: "price", Type: stream.Decimal, Scale: 2},
			{Name: "created_at", Type: stream.Timestamp},
		},
		Key: []int{0}, Event: 3,
	}
}

// Harness is one operator that is fed by hand.
type Harness struct {
	plan       strategies.Plan
	records    *Records
	notNull    []string
	dataStream bool
	columns    []stream.Column // of the result

	spec    sim.TaskSpec
	task    *sim.Task
	op      sim.Operator
	saved   *sim.Snapshot
	now     stream.Time
	from    int
	readers []reader
	valve   *sim.Valve
	last    map[stream.Key]stream.Tag // the last row of each key of the operator
	out     []Output
	err     error
}

// reader is what a source reader has told.
type reader struct {
	watermark stream.Time
	idle      bool
}

// Refused is why the planner does not feed the sink of the job.
type Refused struct{ Strategy, Reason string }

// Error names the strategy and the reason.
func (r *Refused) Error() string { return r.Strategy + ": refused: " + r.Reason }

// New makes a harness. The error says what is wrong with the configuration, or is a [*Refused].
func New(c Config) (*Harness, error) {
	schema := Orders()
	if c.Schema != nil {
		schema = *c.Schema
	}
	plan, dataStream, err := c.planFor(schema)
	if err != nil {
		return nil, err
	}
	return newHarness(c, plan, dataStream, NewRecords(schema)), nil
}

// NewFor makes a harness of a plan whose rows are kept in records.
func NewFor(c Config, records *Records) *Harness {
	return newHarness(c, *c.Plan, c.DataStream, records)
}

// planFor plans the strategy.
func (c Config) planFor(schema stream.Schema) (plan strategies.Plan, dataStream bool, err error) {
	if c.Plan != nil {
		return *c.Plan, c.DataStream, nil
	}
	strategy, err := strategies.Find(c.Strategy)
	if err != nil {
		return plan, false, err
	}
	args, faults := strategy.Resolve(c.Params, schema)
	if len(faults) > 0 {
		errs := make([]error, len(faults))
		for i, fault := range faults {
			errs[i] = fmt.Errorf("%s: %w", c.Strategy, fault)
		}
		return plan, false, errors.Join(errs...)
	}
	c.Job.Schema = schema
	plan = strategy.Plan(args, c.Job)
	if plan.Refused != "" {
		return plan, false, &Refused{c.Strategy, plan.Refused}
	}
	if plan.New == nil {
		return plan, false, fmt.Errorf("%s runs in micro-batches: it cannot be fed row by row", c.Strategy)
	}
	return plan, c.DataStream || strategy.Engine == "flink-datastream", nil
}

func newHarness(c Config, plan strategies.Plan, dataStream bool, records *Records) *Harness {
	h := &Harness{
		plan: plan, dataStream: dataStream, records: records, notNull: c.NotNull,
		columns: ResultColumns(plan, records.schema), last: map[stream.Key]stream.Tag{},
	}
	if c.NotNull == nil && c.Job.Sink == strategies.Upsert {
		for _, i := range records.schema.Key {
			h.notNull = append(h.notNull, records.schema.Columns[i].Name)
		}
	}
	changes := plan.Changelog
	if plan.ToChangelog {
		changes = plan.Input
	}
	h.spec = sim.TaskSpec{
		Parallelism: 1, Readers: max(1, c.Readers), Records: records, Prepare: plan.Prepare(records), Jump: true,
		UpdateBefore: changes.Has(stream.UpdateBefore),
		New: func(ctx *sim.Ctx) sim.Operator {
			h.op = plan.New(ctx)
			return h.op
		},
	}
	h.task = sim.NewTask(h.spec)
	h.connect()
	return h
}

// connect starts the source: no reader has told a watermark yet.
func (h *Harness) connect() {
	h.readers = make([]reader, h.spec.Readers)
	for i := range h.readers {
		h.readers[i].watermark = stream.MinTime
	}
	h.valve = sim.NewValve(len(h.readers), toTask{h})
}

// toTask hands on what the valve in front of the operator lets through.
type toTask struct{ h *Harness }

func (t toTask) Watermark(w stream.Time) { t.h.task.Watermark(w, t.h.now) }
func (toTask) Idle()                     {}
func (toTask) Active()                   {}

// Plan is what the planner made of the strategy.
func (h *Harness) Plan() strategies.Plan { return h.plan }

// Schema is the table of the rows.
func (h *Harness) Schema() stream.Schema { return h.records.schema }

// Operator is the operator that is fed. A restore makes another one.
func (h *Harness) Operator() sim.Operator { return h.op }

// Task is the runtime around the operator, for what the harness does not show. A restore makes another one.
func (h *Harness) Task() *sim.Task { return h.task }

// Now is the clock.
func (h *Harness) Now() stream.Time { return h.now }

// From says which source reader the next rows and marks come from; at first it is reader 0.
func (h *Harness) From(reader int) { h.from = reader }

// Insert pushes a row of kind +I.
func (h *Harness) Insert(row Columns) error { return h.Change(stream.Insert, row) }

// Change pushes a row of any kind.
func (h *Harness) Change(kind stream.Kind, row Columns) error {
	record, err := row.record(h.records.schema, h.now)
	if err != nil {
		return err
	}
	return h.Record(kind, record)
}

// Record pushes a whole row.
func (h *Harness) Record(kind stream.Kind, record stream.Record) error {
	if h.err != nil {
		return h.err
	}
	h.active()
	if h.err = h.fails(record); h.err != nil {
		return h.err
	}
	row := h.records.Add(kind, record)
	row.Arrival, row.Reader = h.now, uint16(h.from)
	prepared := row
	if h.spec.Prepare != nil {
		h.spec.Prepare(&prepared)
	}
	h.last[prepared.Key] = row.Tag
	h.task.Row(&row)
	h.task.Clock(h.now)
	return h.collect(false)
}

// fails is the error with which the job ends before the operator sees the row.
func (h *Harness) fails(record stream.Record) error {
	schema := h.records.schema
	if !h.dataStream {
		if record[schema.Event].Null {
			return sim.ErrNullRowtime
		}
	} else if slices.ContainsFunc(schema.Key, func(i int) bool { return record[i].Null }) {
		return errors.New("a DataStream key selector may not return null")
	}
	return nil
}

// active brings the reader back from idle, as a row or a watermark does.
func (h *Harness) active() {
	if r := &h.readers[h.from]; r.idle {
		r.idle = false
		h.valve.Active(h.from)
	}
}

// Clock moves processing time and fires the timers due. It does not go back.
func (h *Harness) Clock(now stream.Time) error {
	if h.err != nil {
		return h.err
	}
	if now < h.now {
		return fmt.Errorf("the clock cannot go back from %s to %s", FormatTime(h.now), FormatTime(now))
	}
	h.now = now
	h.task.Clock(now)
	return h.collect(false)
}

// Watermark tells the watermark of the reader. One that does not advance has no effect. The operator's watermark is the
// least of all readers that are not idle.
func (h *Harness) Watermark(w stream.Time) error {
	if h.err != nil {
		return h.err
	}
	h.active()
	if r := &h.readers[h.from]; w > r.watermark {
		r.watermark = w
		h.task.SourceWatermark(h.from, w, h.now)
		h.valve.Watermark(h.from, w)
	}
	return h.collect(true)
}

// Idle says that the reader has nothing to read: the watermarks of the others no longer wait for it. A row or a
// watermark brings it back.
func (h *Harness) Idle() error {
	if h.err != nil {
		return h.err
	}
	if r := &h.readers[h.from]; !r.idle {
		r.idle = true
		h.valve.Idle(h.from)
	}
	return h.collect(true)
}

// Checkpoint takes a checkpoint, which [Harness.Restore] goes back to.
func (h *Harness) Checkpoint() error {
	if h.err != nil {
		return h.err
	}
	h.task.Checkpoint(h.now)
	h.saved = h.task.Snapshot()
	return h.collect(false)
}

// ErrNoCheckpoint is returned by a restore before the first checkpoint.
var ErrNoCheckpoint = errors.New("there is no checkpoint to restore")

// Restore ends the job and starts it from its last checkpoint: what came after it is forgotten, the source has sent no
// watermark yet, counters start again. The clock goes on. Rows that the source would read again must be pushed again.
func (h *Harness) Restore() error {
	if h.err != nil {
		return h.err
	}
	if h.saved == nil {
		return ErrNoCheckpoint
	}
	h.task = sim.RestoreTask(h.spec, h.saved, h.now)
	h.connect()
	h.task.Clock(h.now)
	return h.collect(false)
}

// End ends the input: the last watermark of every reader, then the last checkpoint.
func (h *Harness) End() error {
	if h.err != nil {
		return h.err
	}
	from := h.from
	for h.from = range h.readers {
		if err := h.Watermark(stream.MaxTime); err != nil {
			return err
		}
	}
	h.from = from
	return h.Checkpoint()
}

// LastRow returns the last row that was pushed with a key of the operator.
func (h *Harness) LastRow(key stream.Key) stream.Record { return h.records.Record(h.last[key]) }

// State is what the operator holds.
type State struct {
	sim.State
	Timers      sim.TimerCount
	LateDropped int64       // numLateRecordsDropped
	Watermark   stream.Time // what the operator knows
}

// State reads what the operator holds.
func (h *Harness) State() State {
	s := h.task.Subtasks()[0]
	return State{State: s.State, Timers: s.Timers, LateDropped: s.LateDropped, Watermark: s.Watermark}
}

// Take returns what was sent since the last call.
func (h *Harness) Take() []Output {
	out := h.out
	h.out = nil
	return out
}

// Output is one row that was sent.
type Output struct {
	Kind stream.Kind
	// Side says that it went to the side output, or the dead letter queue, and not to the sink.
	Side bool
	// Columns and Values are the row as the sink gets it.
	Columns []stream.Column
	Values  stream.Record
	// Row is the row with all columns of the table, from which the operator made it.
	Row stream.Record
	At  stream.Time
	// ByWatermark says that a watermark released it. Rows that one watermark releases with the same time come in an
	// order that the engine leaves open.
	ByWatermark bool
}

// Get returns a column by name.
func (o Output) Get(name string) (stream.Value, bool) {
	for i, c := range o.Columns {
		if c.Name == name {
			return o.Values[i], true
		}
	}
	return stream.Value{}, false
}

// String is the row as tests spell it: +I {order_id: a, price: 4.00}.
func (o Output) String() string { return o.Format(nil) }

// Format is String with only some of the columns; nil is all.
func (o Output) Format(only func(column string) bool) string {
	var parts []string
	for i, c := range o.Columns {
		if only == nil || only(c.Name) {
			parts = append(parts, c.Name+": "+FormatValue(o.Values[i], c))
		}
	}
	return o.Kind.String() + " {" + strings.Join(parts, ", ") + "}"
}

// SinkError is a row that the sink does not take. It fails the job.
type SinkError struct {
	Column string
	Row    Output
}

// Error names the column.
func (e *SinkError) Error() string {
	return fmt.Sprintf("column %s of the sink is NOT NULL, but the row is %s", e.Column, e.Row)
}

// collect takes what the operator sent.
func (h *Harness) collect(byWatermark bool) error {
	h.task.Drain(func(c *sim.Change, _ stream.Key, parts []stream.Tag) {
		side := c.Op == sim.OpDrop && (c.To == sim.Aside || c.To == sim.Diverted)
		if h.err != nil || !side && c.Op != sim.OpEmit && c.Op != sim.OpRelease && c.Op != sim.OpAgain {
			return
		}
		row := h.records.Record(c.Tag)
		if parts != nil {
			row = sim.Compose(h.records, parts)
		}
		out := Output{Kind: c.Kind, Side: side, Row: row, At: c.At, ByWatermark: byWatermark}
		if side {
			out.Columns, out.Values = h.records.schema.Columns, row
		} else {
			h.shape(&out)
			if column := h.refused(row); column != "" {
				h.err = &SinkError{column, out}
				return
			}
		}
		h.out = append(h.out, out)
	})
	if h.err == nil {
		h.err = h.task.Err()
	}
	return h.err
}

// refused is the column for which the sink does not take a row.
func (h *Harness) refused(row stream.Record) string {
	for i, column := range h.records.schema.Columns {
		if row[i].Null && slices.Contains(h.notNull, column.Name) {
			return column.Name
		}
	}
	return ""
}
