package sim

import (
	"deduplab/stream"
)

// BatchSpec says how a micro-batch query runs, as Spark Structured Streaming runs one.
type BatchSpec struct {
	Records stream.Records
	// Stages make the query's operators, the first one nearest to the source. What one lets through is what the next one
	// is given in the same batch; what the last one lets through is in the result.
	Stages []func(*BatchCtx) BatchOperator
	// Trigger is the interval of the processing-time trigger: a batch starts at each multiple of it.
	Trigger stream.Time
	// Inputs holds the watermark delay of each input, NoWatermark where it has none; at least one input.
	Inputs []stream.Time
	// InputOf tells the input that a row belongs to. Nil: there is one.
	InputOf func(*stream.Row) int
	// Policy makes one watermark of those of several inputs: spark.sql.streaming.multipleWatermarkPolicy.
	Policy WatermarkPolicy
	// NoDataBatches is spark.sql.streaming.noDataMicroBatches.enabled: a batch without rows follows one that moved the
	// watermark, if no rows have come.
	NoDataBatches bool
	// OnBatch is told of each batch that has ended; may be nil.
	OnBatch func(*BatchProgress)
}

// NoWatermark is the delay of an input without withWatermark.
const NoWatermark stream.Time = -1

// WatermarkPolicy makes one watermark of those of several inputs.
type WatermarkPolicy uint8

// The policies.
const (
	MinWatermark WatermarkPolicy = iota // the smallest: an input that has said nothing yet counts as 0
	MaxWatermark                        // the largest: rows of the slower input are late
)

// BatchOperator is one stage of a micro-batch query: a pure step machine, like [Operator].
type BatchOperator interface {
	// Batch handles the rows of one batch, in order: each must be given one disposition, by Emit or Drop. Rows come
	// first, eviction and timeouts after. It is called for batches without rows as well.
	Batch(c *BatchCtx, rows []stream.Row)
	// State tells what the stage holds.
	State(c *BatchCtx) State
}

// MicroBatch is one batch of the query.
type MicroBatch struct {
	ID     int64
	NoData bool
	// At is the batch's timestamp: the processing time at which its trigger fired.
	At stream.Time
	// Watermark is what the batch evicts by and fires timeouts by: spark README, watermark of the batches before.
	Watermark stream.Time
	// Late is what the batch tests rows by, the watermark of the batch before: spark within-watermark/lag.
	Late stream.Time
	// Attempt is 1, and more when the batch is run again after a failure, with the same ID, rows and watermarks.
	Attempt int
}

// BatchProgress is what the engine reports of a stage's batch, named as Spark's StateOperatorProgress.
type BatchProgress struct {
	MicroBatch
	WatermarkAfter stream.Time
	InputRows      int
	Stages         []StageProgress
}

// StageProgress is what one stage did in a batch.
type StageProgress struct {
	RowsIn, RowsOut    int64
	RowsTotal          int64 // numRowsTotal
	RowsUpdated        int64 // numRowsUpdated
	RowsRemoved        int64 // numRowsRemoved
	DroppedByWatermark int64 // numRowsDroppedByWatermark
	DroppedDuplicates  int64 // numDroppedDuplicateRows
}

// BatchCtx is a stage's view of the world. There is one for each stage.
type BatchCtx struct {
	Records stream.Records
	Batch   MicroBatch
	// Progress is what the stage has done in this batch so far. Stages count RowsUpdated and RowsRemoved themselves.
	Progress StageProgress

	engine *BatchEngine
	stage  int
	out    []stream.Row
	tables []*Table
}

// NewTable makes a keyed state. Call it when the stage is made.
func (c *BatchCtx) NewTable() *Table {
	t := NewTable(TableSpec{})
	c.tables = append(c.tables, t)
	return t
}

// IsLate reports whether the late-row filter drops a row: its event time is not after Batch.Late. A row without event
// time is never late: spark drop-duplicates-watermark/null-ts.
func (c *BatchCtx) IsLate(row *stream.Row) bool {
	return c.engine.hasWatermark && row.Event != stream.NullTime && row.Event <= c.Batch.Late
}

// Emit lets a row of the batch through to the next stage, or into the result.
func (c *BatchCtx) Emit(row *stream.Row) {
	c.Progress.RowsOut++
	c.out = append(c.out, *row)
}

// Drop does not let a row of the batch through.
func (c *BatchCtx) Drop(row *stream.Row, to Disposition) {
	switch to {
	case Late:
		c.Progress.DroppedByWatermark++
	case Duplicate:
		c.Progress.DroppedDuplicates++
	}
	if c.Batch.Attempt == 1 {
		c.engine.book(Change{Tag: row.Tag, At: c.Batch.At, Op: OpDropHeld, To: to, Behind: row.Behind}, row.Key)
	}
}

// Again sends a change about a row that came before, past the stages that follow: see Ctx.Again.
func (c *BatchCtx) Again(k stream.Kind, key stream.Key, tag stream.Tag) {
	c.engine.book(Change{Tag: tag, At: c.Batch.At, Op: OpAgain, Kind: k}, key)
}

// BatchEngine runs a query as Spark Structured Streaming's micro-batch engine does. Rows wait for their batch: to the
// ledger they are held until then. Time never falls from call to call.
type BatchEngine struct {
	spec         BatchSpec
	stages       []batchStage
	hasWatermark bool

	waiting []stream.Row  // for the next batch
	next    stream.Time   // the next trigger
	batches int64         // the id of the next batch
	largest []stream.Time // event time, by input; 0 before the first row
	// watermark is what the next batch runs with, late what it tests rows by.
	watermark, late stream.Time

	now     stream.Time
	changes []Change
	keys    []stream.Key
	err     error
}

type batchStage struct {
	ctx BatchCtx
	op  BatchOperator
}

// NewBatchEngine makes an engine.
func NewBatchEngine(spec BatchSpec) *BatchEngine {
	m := &BatchEngine{spec: spec, stages: make([]batchStage, len(spec.Stages)), largest: make([]stream.Time, len(spec.Inputs))}
	for _, delay := range spec.Inputs {
		m.hasWatermark = m.hasWatermark || delay != NoWatermark
	}
	for i, make := range spec.Stages {
		s := &m.stages[i]
		s.ctx = BatchCtx{Records: spec.Records, engine: m, stage: i}
		s.op = make(&s.ctx)
	}
	return m
}

// Row takes a row that has arrived. It is handled by the first batch that starts at or after its arrival.
func (m *BatchEngine) Row(row *stream.Row) {
	m.Clock(row.Arrival - 1)
	m.waiting = append(m.waiting, *row)
	m.book(Change{Tag: row.Tag, At: row.Arrival, Op: OpHold, First: row.First}, row.Key)
}

// Clock moves processing time: the triggers up to now fire.
func (m *BatchEngine) Clock(now stream.Time) {
	for m.next <= now {
		// TODO: the trigger
		m.next += m.spec.Trigger
	}
	m.now = max(m.now, now)
}

// Run runs one batch over rows, or one without data, at a moment of processing time.
func (m *BatchEngine) Run(at stream.Time, rows []stream.Row, noData bool) *BatchProgress {
	batch := MicroBatch{ID: m.batches, NoData: noData, At: at, Watermark: m.watermark, Late: m.late, Attempt: 1}
	progress := &BatchProgress{MicroBatch: batch, InputRows: len(rows)}
	m.batches++
	in := rows
	for i := range m.stages {
		s := &m.stages[i]
		s.ctx.Batch, s.ctx.out = batch, s.ctx.out[:0]
		s.ctx.Progress = StageProgress{RowsIn: int64(len(in))}
		s.op.Batch(&s.ctx, in)
		s.ctx.Progress.RowsTotal = int64(s.op.State(&s.ctx).Entries)
		progress.Stages = append(progress.Stages, s.ctx.Progress)
		in = s.ctx.out
	}
	for i := range in {
		w := WaitOf(&in[i])
		m.book(Change{Tag: in[i].Tag, At: at, Since: w.Since, Lone: w.Lone, Op: OpRelease, Kind: stream.Insert}, in[i].Key)
	}
	for i := range rows {
		input := 0
		if m.spec.InputOf != nil {
			input = m.spec.InputOf(&rows[i])
		}
		if rows[i].Event != stream.NullTime && m.spec.Inputs[input] != NoWatermark {
			m.largest[input] = max(m.largest[input], rows[i].Event)
		}
	}
	m.late = m.watermark
	m.watermark = max(m.watermark, m.combined())
	progress.WatermarkAfter = m.watermark
	return progress
}

// combined makes one watermark of those of the inputs.
func (m *BatchEngine) combined() stream.Time {
	combined, any := stream.Time(0), false
	for i, delay := range m.spec.Inputs {
		if delay == NoWatermark {
			continue
		}
		w := max(m.largest[i]-delay, 0)
		if !any || m.spec.Policy == MinWatermark && w < combined || m.spec.Policy == MaxWatermark && w > combined {
			combined, any = w, true
		}
	}
	return combined
}

func (m *BatchEngine) book(c Change, key stream.Key) {
	m.changes = append(m.changes, c)
	m.keys = append(m.keys, key)
}

// Drain hands all changes since the last call to f, in the order of their processing time.
func (m *BatchEngine) Drain(f func(change *Change, key stream.Key, parts []stream.Tag)) {
	for i := range m.changes {
		f(&m.changes[i], m.keys[i], nil)
	}
	m.changes, m.keys = m.changes[:0], m.keys[:0]
}
