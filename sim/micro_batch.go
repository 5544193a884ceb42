package sim

import (
	"slices"

	"deduplab/stream"
)

// BatchSpec says how a micro-batch query runs, as Spark Structured Streaming runs one.
type BatchSpec struct {
	Records stream.Records
	// Stages make the query's operators, the first one nearest to the source. What one lets through is what the next one
	// is given in the same batch; what the last one lets through is in the result.
	Stages []BatchStage
	// Partitions is spark.sql.shuffle.partitions; 0: one. A shuffled stage has an operator for each, and its output comes
	// partition by partition: spark drop-duplicates/many-keys-two-partitions.
	Partitions int
	// PartitionOf tells the partition of a row in front of a shuffled stage. Nil: all rows are in the first one.
	PartitionOf func(stage int, row *stream.Row) int
	Trigger     Trigger
	// Cost is how long a batch takes. Its rows come out at its end.
	Cost BatchCost
	// Inputs holds the watermark delay of each input, NoWatermark where it has none; at least one input.
	Inputs []stream.Time
	// InputOf tells the input that a row belongs to. Nil: there is one.
	InputOf func(*stream.Row) int
	// Prepare fills in a row on its arrival, its key for one; may be nil.
	Prepare func(*stream.Row)
	// Policy makes one watermark of those of several inputs: spark.sql.streaming.multipleWatermarkPolicy.
	Policy WatermarkPolicy
	// NoDataBatches is spark.sql.streaming.noDataMicroBatches.enabled: a batch without rows follows one that moved the
	// watermark, if no rows have come by the next trigger and a stage is shuffled.
	NoDataBatches bool
	// Failures are in the order of their moments. At a crash the batch that is under way has not been written. A failure of
	// the sink is that of the first batch that ends at or after its moment: it fails after its rows have been written and
	// before it is committed. Either is then run again. Of the others a query takes no notice.
	Failures []Failure
	// CompareKeys orders the keys of two rows as Spark's sort does, by their columns; NullKey reports whether one of these
	// columns is null. Both may be nil: see BatchCtx.SortByKey and BatchCtx.NullKey.
	CompareKeys func(a, b *stream.Row) int
	NullKey     func(*stream.Row) bool
	// Restart stops the query and starts another one from its checkpoint; nil: it runs on.
	Restart *BatchRestart
	// NewTable makes a keyed state. Nil: in memory.
	NewTable func() *Table
	// OnBatch is told of each batch that has ended, and keeps nothing of what it is told; may be nil.
	OnBatch func(*BatchProgress)
	// OnOutput is told the rows that the user's function in a stage returns, where they are not simply the rows that it
	// lets through; may be nil.
	OnOutput func(Output)
	// Held says that the rows come from operators in front of the query: to the ledger they are held already.
	Held bool
	// Target is the table that the query writes to. A failure of the query and a restart from its checkpoint leave it as
	// it is. Nil: one in memory, if a stage asks for it.
	Target Target
	// OnStage is told what a stage has done in each attempt of a batch, and what rows it let through; may be nil.
	OnStage func(stage int, p *StageProgress, b *MicroBatch, out []stream.Row)
	// OnAudit is told of each run of an audit; may be nil.
	OnAudit func(*AuditRun)
}

// Trigger says when batches start.
type Trigger struct {
	// Every is the interval of Trigger.ProcessingTime: a batch starts at each multiple of it if there is something to do,
	// and at once when the one before has taken longer than that. 0 starts one as soon as there is something to do.
	Every stream.Time
	// Phase is how long after each multiple of Every the trigger comes, less than Every.
	Phase stream.Time
	// AvailableNow is Trigger.AvailableNow: the query starts when all rows have arrived, and runs batch after batch until
	// nothing is left. Every is ignored.
	AvailableNow bool
	// MaxRows is the greatest number of rows of a batch, 0 for no limit: those that have waited longest are taken.
	MaxRows int
}

// after is the first trigger after a moment, by the interval.
func (t Trigger) after(at stream.Time) stream.Time {
	return nextMultiple(at-t.Phase, t.Every) + t.Phase
}

// BatchRestart is another query that goes on from a query's checkpoint: with as many stages and tables, whose operators
// may be others.
type BatchRestart struct {
	// At is the moment: the first trigger at or after it starts the other query.
	At     stream.Time
	Stages []BatchStage
	// Anew says that the other query has a checkpoint of its own: its stateful operators know nothing, it has no
	// watermark, and it reads from where the rows of the span Overlap before At begin, those that the first query has
	// handled among them. Batch ids go on, as those of another application do for an idempotent sink.
	Anew    bool
	Overlap stream.Time
}

// BatchCost is how long a batch takes.
type BatchCost struct {
	Batch         stream.Time // for whatever it holds
	RowsPerSecond int64       // 0: rows cost nothing
}

// of is the time that a batch of so many rows takes.
func (c BatchCost) of(rows int) stream.Time {
	if c.RowsPerSecond == 0 {
		return c.Batch
	}
	return c.Batch + stream.Time(int64(rows)*1000/c.RowsPerSecond)
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

// BatchStage is one operator of a micro-batch query, or what foreachBatch does with the output.
type BatchStage struct {
	Name string
	// Shuffled says that rows reach it by key. It is stateful, and the operators of its partitions are separate.
	Shuffled bool
	// NoData says when the stage asks for a batch without rows.
	NoData NoData
	New    func(*BatchCtx) BatchOperator
}

// NoData is when a stateful operator asks for a batch without rows: Spark's shouldRunAnotherBatch.
type NoData uint8

// The answers.
const (
	AfterWatermark NoData = iota // when the watermark has moved
	EachTrigger                  // always, as transformWithState by processing time does: spark README, Time to live
	NeverNoData                  // not even then, as an aggregate in complete mode
)

// BatchOperator is one stage of a micro-batch query: a pure step machine, like [Operator].
type BatchOperator interface {
	// Batch handles the rows of one batch, in order, and keeps nothing of the slice: each row must be given one
	// disposition, by Emit or Drop. Rows come first, eviction and timeouts after. It is called for batches without rows
	// as well.
	Batch(c *BatchCtx, rows []stream.Row)
	// Snapshot returns what a checkpoint stores of the stage beside its tables, nil for nothing. It shares nothing with
	// the operator.
	Snapshot(c *BatchCtx) any
	// Restore is called once, before anything else, in a new operator whose tables are those of a checkpoint, with what
	// Snapshot returned.
	Restore(c *BatchCtx, snapshot any)
	// State tells what the stage holds.
	State(c *BatchCtx) State
}

// BatchEnder is an operator that has something to do when the input has ended and the last batch is over.
type BatchEnder interface {
	AtEnd(c *BatchCtx)
}

// AuditRun is what one run of an audit of the target has found. An extra row is one whose key another row has that was
// written before; it is new if the run before has not seen it.
type AuditRun struct {
	At          stream.Time
	Rows, Dates int64 // read
	Keys, Extra int64 // keys that stand in the table more than once, and their extra rows
	// New are the new extra rows, by what let them through.
	New struct {
		SameBatch int64 // their batch has written the key before
		Inside    int64 // an earlier row of the key was dated within the lookback when they were written
		Outside   int64 // none was
	}
	// Needed is the lookback, in days, with which none of the rows outside would have come through.
	Needed   int64
	Repaired int64 // rows removed
}

// MicroBatch is one batch of the query.
type MicroBatch struct {
	ID     int64
	NoData bool
	// At is the batch's timestamp: the processing time at which its trigger fired.
	At stream.Time
	// End is when the batch ends, and its rows come out.
	End stream.Time
	// Watermark is what the batch evicts by and fires timeouts by, that of the batches before: spark
	// watermark-order/same-batch.
	Watermark stream.Time
	// Late is what the batch tests rows by, the watermark of the batch before: spark within-watermark/lag.
	Late stream.Time
	// Attempt is 1, and more when the batch is run again after a failure, with the same ID, rows and watermarks: spark
	// batch-replay/within-watermark.
	Attempt int
}

// BatchProgress is what the engine reports of a batch, named as Spark's StreamingQueryProgress.
type BatchProgress struct {
	MicroBatch
	// HasWatermark says that an input has a watermark. Else the watermarks are 0 and mean nothing.
	HasWatermark   bool
	WatermarkAfter stream.Time
	InputRows      int
	Stages         []StageProgress
	// Inputs are the watermarks that the inputs have come to, by which the policy makes the one of the query; 0 for one
	// that has said nothing yet.
	Inputs []stream.Time
}

// StageProgress is what one stage did in a batch, named as Spark's StateOperatorProgress.
type StageProgress struct {
	Name               string
	RowsIn, RowsOut    int64
	RowsTotal          int64 // numRowsTotal
	RowsUpdated        int64 // numRowsUpdated
	RowsRemoved        int64 // numRowsRemoved
	DroppedByWatermark int64 // numRowsDroppedByWatermark
	DroppedDuplicates  int64 // numDroppedDuplicateRows
	// JoinedRows and JoinedDates are what a sink has read of its target: rows, and date partitions.
	JoinedRows, JoinedDates int64
	RowsReplacing           int64 // of RowsOut: those that took the place of another row of the target
	Repaired                int64 // rows that an audit has removed from the target
}

func (p *StageProgress) add(other *StageProgress) {
	p.RowsIn += other.RowsIn
	p.RowsOut += other.RowsOut
	p.RowsTotal += other.RowsTotal
	p.RowsUpdated += other.RowsUpdated
	p.RowsRemoved += other.RowsRemoved
	p.DroppedByWatermark += other.DroppedByWatermark
	p.DroppedDuplicates += other.DroppedDuplicates
	p.JoinedRows += other.JoinedRows
	p.JoinedDates += other.JoinedDates
	p.RowsReplacing += other.RowsReplacing
	p.Repaired += other.Repaired
}

// BatchCtx is an operator's view of the world. There is one for each partition of each stage.
type BatchCtx struct {
	Records stream.Records
	Batch   MicroBatch
	// Progress is what the operator has done in this batch so far. It counts RowsUpdated and RowsRemoved itself.
	Progress StageProgress

	engine *BatchEngine
	out    []stream.Row
	tables []*Table
	byKey  byKey
}

// NewTable makes a keyed state. Call it when the operator is made.
func (c *BatchCtx) NewTable() *Table {
	var t *Table
	if c.engine.spec.NewTable != nil {
		t = c.engine.spec.NewTable()
	} else {
		t = NewTable(TableSpec{})
	}
	c.tables = append(c.tables, t)
	return t
}

// Target is the table that the query writes to: see BatchSpec.Target.
func (c *BatchCtx) Target() Target {
	if c.engine.spec.Target == nil {
		c.engine.spec.Target = NewMemoryTarget()
	}
	return c.engine.spec.Target
}

// Delay is the watermark delay of the query's first input, NoWatermark without one: spark two-inputs/delay-of-left.
func (c *BatchCtx) Delay() stream.Time { return c.engine.spec.Inputs[0] }

// IsLate reports whether the late-row filter drops a row of an event time: one that is not after Batch.Late. A row
// without event time is never late: spark drop-duplicates-watermark/null-ts.
func (c *BatchCtx) IsLate(event stream.Time) bool {
	return c.engine.hasWatermark && event <= c.Batch.Late && event != stream.NullTime
}

// Emit lets a row of the batch through to the next stage, or into the result.
func (c *BatchCtx) Emit(row *stream.Row) {
	c.Progress.RowsOut++
	c.out = append(c.out, *row)
}

// Update lets a row of the batch through in place of old, which went out before: in update mode, where nothing takes
// the old row back.
func (c *BatchCtx) Update(old stream.Tag, row *stream.Row) {
	c.Emit(row)
	c.out[len(c.out)-1].Kind = stream.UpdateAfter
	c.engine.replaces[row.Tag] = old
}

// Drop does not let a row of the batch through.
func (c *BatchCtx) Drop(row *stream.Row, to Disposition) {
	switch to {
	case Late:
		c.Progress.DroppedByWatermark++
	case Duplicate:
		c.Progress.DroppedDuplicates++
	}
	m := c.engine
	if c.Batch.Attempt > 1 {
		return
	}
	if to == Late {
		m.lateBy[m.input(row)]++
	}
	if _, again := m.again[row.Tag]; again {
		return
	}
	m.book(Change{Tag: row.Tag, At: c.Batch.End, Op: OpDropHeld, To: to, Behind: row.Behind}, row.Key)
	if r := m.spec.Restart; r != nil && r.Anew && row.Arrival >= r.At-r.Overlap {
		m.again[row.Tag] = to
	}
}

// Replace lets a row of the batch through in place of old, which came through before and is taken back: a table that is
// written to has the one row no more, and the other one.
func (c *BatchCtx) Replace(old stream.Tag, row *stream.Row) {
	c.Again(stream.UpdateBefore, row.Key, old)
	c.Progress.RowsReplacing++
	c.Update(old, row)
}

// Remove takes a copy that has come through, in this batch or before, out of the result again.
func (c *BatchCtx) Remove(key stream.Key, tag stream.Tag) {
	c.Progress.Repaired++
	c.engine.removed = append(c.engine.removed, removal{key, tag})
}

// Audited tells of a run of an audit.
func (c *BatchCtx) Audited(run *AuditRun) {
	if c.engine.spec.OnAudit != nil {
		c.engine.spec.OnAudit(run)
	}
}

// SameBatch says of a row that Emit lets through: its key is in the result already, through another row of this batch.
func (c *BatchCtx) SameBatch(row *stream.Row) { c.engine.sameBatch[row.Tag] = true }

// Again sends a change about a row that came before, past the stages that follow: see Ctx.Again.
func (c *BatchCtx) Again(k stream.Kind, key stream.Key, tag stream.Tag) {
	c.engine.book(Change{Tag: tag, At: c.Batch.End, Op: OpAgain, Kind: k}, key)
}

// Fail ends the query with an error: of several the first one counts. What the operator does after it has no meaning.
func (c *BatchCtx) Fail(err error) {
	if c.engine.err == nil {
		c.engine.err = err
	}
}

// BatchEngine runs a query as Spark Structured Streaming's micro-batch engine does. Rows wait for their batch: to the
// ledger they are held until then. It keeps watermarks and batches of its own, so that those of a [Task]
// (SourceWatermark, Watermark, Checkpoint) are nothing but moments to it. Time never falls from call to call.
type BatchEngine struct {
	spec                        BatchSpec
	stages                      []batchStage
	hasWatermark                bool
	afterWatermark, eachTrigger bool // a stage asks for batches without rows

	waiting []stream.Row // for the next batch, those of the running one first
	next    stream.Time  // the next trigger
	started bool
	// running says that a batch has taken its rows, the first taken of those that wait.
	running bool
	batch   MicroBatch
	taken   int

	batches int64         // the id of the next batch
	largest []stream.Time // event time less delay, by input; 0 before the first row
	// watermark is what the next batch runs with, late what it tests rows by.
	watermark, late stream.Time
	crashes, writes []Failure // those to come: crashes, and failures after the write
	outages         int64
	up              stream.Time // after the last crash

	// replaces and sameBatch tell more of rows that the running batch lets through: see BatchCtx.Update and SameBatch.
	replaces  map[stream.Tag]stream.Tag
	sameBatch map[stream.Tag]bool
	removed   []removal // of the running batch, which leave the result after its rows have come into it

	overlap []stream.Row // that have come within the overlap of a restart
	// again holds the rows of the overlap that have been handled before, and where they went if they did not go out.
	again map[stream.Tag]Disposition

	rows, dropped int64
	lateBy        []int64 // by input
	changes       []Change
	keys          []stream.Key
	err           error
}

// removal is a row that leaves the result.
type removal struct {
	key stream.Key
	tag stream.Tag
}

// batchStage is a stage with an operator for each partition.
type batchStage struct {
	ctx []BatchCtx
	ops []BatchOperator
	in  [][]stream.Row // by partition, where there are several
	out []stream.Row   // of all partitions, where there are several
}

// NewBatchEngine makes an engine.
func NewBatchEngine(spec BatchSpec) *BatchEngine {
	spec.Partitions = max(spec.Partitions, 1)
	m := &BatchEngine{spec: spec, stages: make([]batchStage, len(spec.Stages)),
		largest: make([]stream.Time, len(spec.Inputs)), lateBy: make([]int64, len(spec.Inputs)),
		replaces: map[stream.Tag]stream.Tag{}, sameBatch: map[stream.Tag]bool{}, again: map[stream.Tag]Disposition{}}
	for _, f := range spec.Failures {
		switch {
		case f.Kind == SinkFailure:
			m.writes = append(m.writes, f)
		case f.Kind.crashes():
			m.crashes = append(m.crashes, f)
		}
	}
	for _, delay := range spec.Inputs {
		m.hasWatermark = m.hasWatermark || delay != NoWatermark
	}
	for i := range m.stages {
		if stage := spec.Stages[i]; stage.Shuffled && spec.NoDataBatches {
			m.afterWatermark = m.afterWatermark || stage.NoData != NeverNoData
			m.eachTrigger = m.eachTrigger || stage.NoData == EachTrigger
		}
	}
	m.makeStages()
	return m
}

// makeStages makes all operators anew.
func (m *BatchEngine) makeStages() {
	for i := range m.stages {
		s, spec := &m.stages[i], m.spec.Stages[i]
		n := 1
		if spec.Shuffled {
			n = m.spec.Partitions
		}
		*s = batchStage{ctx: make([]BatchCtx, n), ops: make([]BatchOperator, n), in: make([][]stream.Row, n)}
		for p := range s.ctx {
			s.ctx[p] = BatchCtx{Records: m.spec.Records, engine: m}
			s.ops[p] = spec.New(&s.ctx[p])
		}
	}
}

// Row takes a row that has arrived. It is handled by the first batch that starts at or after its arrival.
func (m *BatchEngine) Row(row *stream.Row) {
	if !m.started {
		m.started = true
		m.next = row.Arrival
		if every := m.spec.Trigger.Every; every > 0 {
			m.next = m.spec.Trigger.after(row.Arrival - 1)
		}
	}
	m.Clock(row.Arrival - 1)
	m.rows++
	if m.err == nil {
		m.waiting = append(m.waiting, *row)
		if m.spec.Prepare != nil {
			row = &m.waiting[len(m.waiting)-1]
			m.spec.Prepare(row)
		}
		if r := m.spec.Restart; r != nil && r.Anew && row.Arrival >= r.At-r.Overlap {
			m.overlap = append(m.overlap, *row)
		}
	}
	if !m.spec.Held {
		m.book(Change{Tag: row.Tag, At: row.Arrival, Op: OpHold, First: row.First}, row.Key)
	}
}

// Clock moves processing time: the triggers up to now fire, and batches that end by then come out.
func (m *BatchEngine) Clock(now stream.Time) {
	for m.started && m.err == nil && !m.spec.Trigger.AvailableNow && m.step(now) {
	}
}

// step lets the next thing happen that is due by now, and reports whether there was one.
func (m *BatchEngine) step(now stream.Time) bool {
	switch {
	case m.crashDue(now):
		m.crash()
	case m.running && m.batch.End <= now:
		m.finish()
	case !m.running && m.next <= now:
		m.trigger(m.next)
	default:
		return false
	}
	return true
}

// crashDue reports whether a crash is what happens next, by now.
func (m *BatchEngine) crashDue(now stream.Time) bool {
	if len(m.crashes) == 0 || m.crashes[0].At > now {
		return false
	}
	if m.running {
		return m.crashes[0].At < m.batch.End
	}
	return m.crashes[0].At <= m.next
}

// crash ends the query, and starts it again from its last committed batch. A batch that was under way is run with the
// rows and the timestamp that the offset log names.
func (m *BatchEngine) crash() {
	restart := max(m.up, m.crashes[0].At+m.crashes[0].Down)
	m.crashes, m.up = m.crashes[1:], restart
	m.restore(m.Snapshot())
	clear(m.largest) // see RestoreBatchEngine
	m.outages++
	if m.running {
		m.batch.End = restart + m.spec.Cost.of(m.taken)
		restart = m.batch.End
	}
	m.next = restart
}

// pollingDelay is spark.sql.streaming.pollingDelay: how often a query without an interval looks for rows.
const pollingDelay stream.Time = 10

// trigger starts a batch if there is something to do, and sets the next trigger, as Spark's ProcessingTimeExecutor
// does: the next multiple of the interval, or the end of the batch if that comes later.
func (m *BatchEngine) trigger(at stream.Time) {
	if r := m.spec.Restart; r != nil && r.At <= at {
		before := m.Snapshot()
		m.spec.Stages, m.spec.Restart = r.Stages, nil
		if r.Anew {
			m.startAnew(before)
		} else {
			m.restore(before)
		}
		clear(m.largest) // what the inputs have said is forgotten: see RestoreBatchEngine
	}
	every := m.spec.Trigger.Every
	m.next = at + pollingDelay
	if every > 0 {
		m.next = m.spec.Trigger.after(at)
	}
	n := len(m.waiting)
	if limit := m.spec.Trigger.MaxRows; limit > 0 {
		n = min(n, limit)
	}
	if n == 0 && !m.eachTrigger && !m.NoDataBatchDue() {
		return
	}
	m.start(at, n)
	if every == 0 {
		m.next = m.batch.End
	}
	m.next = max(m.next, m.batch.End)
}

// startAnew makes all operators anew, without state but for the jobs beside the query, and gives them the rows of the
// overlap once more.
func (m *BatchEngine) startAnew(before *BatchSnapshot) {
	m.makeStages()
	for i := range m.stages {
		if stage := &m.stages[i]; !m.spec.Stages[i].Shuffled {
			stage.ops[0].Restore(&stage.ctx[0], before.stages[i].operators[0])
		}
	}
	m.watermark, m.late = 0, 0
	handled := m.overlap[:max(len(m.overlap)-len(m.waiting), 0)]
	for i := range handled {
		if _, ok := m.again[handled[i].Tag]; !ok {
			m.again[handled[i].Tag] = Emitted
		}
	}
	m.waiting = append(handled, m.waiting...)
	m.overlap = nil
}

// start begins a batch of the first n rows that wait.
func (m *BatchEngine) start(at stream.Time, n int) {
	m.running, m.taken = true, n
	m.batch = MicroBatch{ID: m.batches, NoData: n == 0, At: at, End: at + m.spec.Cost.of(n), Watermark: m.watermark,
		Late: m.late, Attempt: 1}
}

// finish runs the batch that has come to its end.
func (m *BatchEngine) finish() {
	rows := m.waiting[:m.taken]
	if len(m.writes) > 0 && m.writes[0].At <= m.batch.End && m.batch.Attempt == 1 {
		before := m.Snapshot()
		m.attempt(rows)
		m.restore(before)
		down := stream.Time(0)
		for len(m.writes) > 0 && m.writes[0].At <= m.batch.End {
			down = max(down, m.writes[0].Down)
			m.writes = m.writes[1:]
		}
		m.outages++
		m.batch.Attempt++
		m.batch.End += down + m.spec.Cost.of(len(rows)) // its timestamp stays that of the offset log
		m.next = max(m.next, m.batch.End)
		return
	}
	m.running = false
	m.commit(m.attempt(rows), rows)
	m.waiting = slices.Delete(m.waiting, 0, len(rows))
}

// NoDataBatchDue reports whether a batch without rows follows if no rows come: one does after exactly those batches
// that moved the watermark. spark within-watermark/no-data-batches.
func (m *BatchEngine) NoDataBatchDue() bool {
	return m.afterWatermark && m.watermark > m.late
}

// Outages counts the crashes and the batches that failed after the write.
func (m *BatchEngine) Outages() int64 { return m.outages }

// End ends the input: what waits is handled by batches at the triggers that follow, or at once by those of
// AvailableNow, and a last batch without rows if one is due.
func (m *BatchEngine) End(now stream.Time) {
	m.Clock(now)
	if m.spec.Trigger.AvailableNow {
		m.next = now
	}
	for m.err == nil && (m.running || len(m.waiting) > 0 || m.NoDataBatchDue()) {
		if m.spec.Trigger.AvailableNow && !m.running {
			m.next = max(now, m.batch.End)
		}
		m.step(stream.MaxTime)
	}
	if m.err == nil {
		m.atEnd(now)
	}
	m.remove()
}

// atEnd lets the stages that have something to do at the end do it.
func (m *BatchEngine) atEnd(now stream.Time) {
	m.batch = MicroBatch{ID: m.batches, NoData: true, At: max(now, m.batch.End), End: max(now, m.batch.End),
		Watermark: m.watermark, Late: m.late, Attempt: 1}
	for i := range m.stages {
		s := &m.stages[i]
		for p := range s.ops {
			if op, ok := s.ops[p].(BatchEnder); ok && m.err == nil {
				c := &s.ctx[p]
				c.Batch, c.Progress = m.batch, StageProgress{Name: m.spec.Stages[i].Name}
				op.AtEnd(c)
				if m.spec.OnStage != nil {
					m.spec.OnStage(i, &c.Progress, &m.batch, nil)
				}
			}
		}
	}
}

// RunBatch runs a batch by itself, with rows that no trigger takes. Attempt is 1, or more for one that is run again
// from the snapshot before it.
func (m *BatchEngine) RunBatch(at stream.Time, rows []stream.Row, attempt int) *BatchProgress {
	m.batch = MicroBatch{ID: m.batches, NoData: len(rows) == 0, At: at, End: at, Watermark: m.watermark, Late: m.late,
		Attempt: attempt}
	return m.commit(m.attempt(rows), rows)
}

// attempt lets all stages handle the rows of the batch.
func (m *BatchEngine) attempt(rows []stream.Row) *BatchProgress {
	progress := &BatchProgress{MicroBatch: m.batch, HasWatermark: m.hasWatermark, InputRows: len(rows),
		Stages: make([]StageProgress, len(m.stages))}
	for i := range m.stages {
		rows = m.stage(i, rows, &progress.Stages[i])
		if m.err != nil {
			return progress
		}
	}
	for i := range rows {
		m.release(&rows[i])
	}
	clear(m.replaces)
	clear(m.sameBatch)
	m.remove()
	return progress
}

// remove books the rows that leave the result.
func (m *BatchEngine) remove() {
	for _, r := range m.removed {
		m.book(Change{Tag: r.tag, At: m.batch.End, Op: OpRemove, Kind: stream.Delete}, r.key)
	}
	m.removed = m.removed[:0]
}

// release books a row that all stages have let through.
func (m *BatchEngine) release(row *stream.Row) {
	before, again := m.again[row.Tag]
	switch {
	case m.batch.Attempt > 1, again && before == Emitted: // what has been written is there already
		m.book(Change{Tag: row.Tag, At: m.batch.End, Op: OpRewrite, Kind: row.Kind}, row.Key)
		return
	case again:
		m.book(Change{Tag: row.Tag, At: m.batch.End, Op: OpRevive, To: before, Kind: row.Kind,
			Old: m.replaces[row.Tag], SameBatch: m.sameBatch[row.Tag]}, row.Key)
		return
	}
	w := WaitOf(row)
	m.book(Change{Tag: row.Tag, At: m.batch.End, Since: w.Since, Lone: w.Lone, Op: OpRelease, Kind: row.Kind,
		Old: m.replaces[row.Tag], SameBatch: m.sameBatch[row.Tag]}, row.Key)
}

// stage lets one stage handle its rows, partition by partition, and returns what it lets through.
func (m *BatchEngine) stage(i int, rows []stream.Row, progress *StageProgress) []stream.Row {
	s := &m.stages[i]
	progress.Name = m.spec.Stages[i].Name
	s.in[0], s.out = rows, s.out[:0]
	if len(s.ops) > 1 && m.spec.PartitionOf != nil {
		s.in[0] = nil
		for p := range s.in {
			s.in[p] = s.in[p][:0]
		}
		for r := range rows {
			p := m.spec.PartitionOf(i, &rows[r])
			s.in[p] = append(s.in[p], rows[r])
		}
	}
	for p, op := range s.ops {
		c := &s.ctx[p]
		c.Batch, c.out = m.batch, c.out[:0]
		c.Progress = StageProgress{RowsIn: int64(len(s.in[p]))}
		op.Batch(c, s.in[p])
		c.Progress.RowsTotal = int64(op.State(c).Entries)
		progress.add(&c.Progress)
		if len(s.ops) > 1 {
			s.out = append(s.out, c.out...)
		}
	}
	out := s.ctx[0].out
	if len(s.ops) > 1 {
		out = s.out
	}
	if m.spec.OnStage != nil {
		m.spec.OnStage(i, progress, &m.batch, out)
	}
	return out
}

// commit ends a batch: the watermark that the next one runs with follows from its rows.
func (m *BatchEngine) commit(progress *BatchProgress, rows []stream.Row) *BatchProgress {
	if m.err != nil {
		progress.WatermarkAfter = m.watermark
		return progress
	}
	if m.hasWatermark {
		m.observe(rows)
	}
	for i := range progress.Stages {
		m.dropped += progress.Stages[i].DroppedByWatermark
	}
	m.batches++
	m.late = m.watermark
	m.watermark = max(m.watermark, m.combined())
	progress.WatermarkAfter, progress.Inputs = m.watermark, m.largest
	if m.spec.OnBatch != nil {
		m.spec.OnBatch(progress)
	}
	return progress
}

// observe notes the event times of a batch.
func (m *BatchEngine) observe(rows []stream.Row) {
	for i := range rows {
		input := m.input(&rows[i])
		if delay := m.spec.Inputs[input]; rows[i].Event != stream.NullTime && delay != NoWatermark {
			m.largest[input] = max(m.largest[input], rows[i].Event-delay)
		}
	}
}

func (m *BatchEngine) input(row *stream.Row) int {
	if m.spec.InputOf == nil {
		return 0
	}
	return m.spec.InputOf(row)
}

// LateByInput counts the rows that were dropped by the watermark, by the input that they came from.
func (m *BatchEngine) LateByInput() []int64 { return m.lateBy }

// combined makes one watermark of those of the inputs.
func (m *BatchEngine) combined() stream.Time {
	combined, found := stream.Time(0), false
	for i, w := range m.largest {
		if m.spec.Inputs[i] == NoWatermark {
			continue
		}
		if !found || m.spec.Policy == MinWatermark && w < combined || m.spec.Policy == MaxWatermark && w > combined {
			combined, found = w, true
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

// SourceWatermark is a moment: a micro-batch query makes its own watermark.
func (m *BatchEngine) SourceWatermark(_ int, _, now stream.Time) { m.Clock(now) }

// Watermark is a moment: a micro-batch query makes its own watermark.
func (m *BatchEngine) Watermark(_, now stream.Time) { m.Clock(now) }

// Checkpoint is a moment: a micro-batch query makes a checkpoint of each batch.
func (m *BatchEngine) Checkpoint(now stream.Time) { m.Clock(now) }

// Subtasks returns how many rows the query was given and what its stages hold together.
func (m *BatchEngine) Subtasks() []SubtaskState {
	state := SubtaskState{Rows: m.rows, LateDropped: m.dropped, Watermark: m.watermark}
	for i := range m.stages {
		s := &m.stages[i]
		for p, op := range s.ops {
			held := op.State(&s.ctx[p])
			state.State.Entries += held.Entries
			state.State.LiveKeys += held.LiveKeys
			state.State.Bytes += held.Bytes
			state.Timers.Event += held.Timers
		}
	}
	return []SubtaskState{state}
}

// StageState returns what the operators of a stage hold, by partition.
func (m *BatchEngine) StageState(stage int) []State {
	s := &m.stages[stage]
	states := make([]State, len(s.ops))
	for p, op := range s.ops {
		states[p] = op.State(&s.ctx[p])
	}
	return states
}

// Batch is the latest batch that was started.
func (m *BatchEngine) Batch() MicroBatch { return m.batch }

// Operators visits the operators of all stages, partition by partition.
func (m *BatchEngine) Operators(f func(stage int, op BatchOperator)) {
	for i := range m.stages {
		for _, op := range m.stages[i].ops {
			f(i, op)
		}
	}
}

// Tables visits the keyed state of all stages.
func (m *BatchEngine) Tables(f func(stage int, table *Table)) {
	for i := range m.stages {
		for p := range m.stages[i].ctx {
			for _, t := range m.stages[i].ctx[p].tables {
				f(i, t)
			}
		}
	}
}

// Err is the first error of a stage, which ends the query, or of a state backend.
func (m *BatchEngine) Err() error {
	err := m.err
	m.Tables(func(_ int, t *Table) {
		if err == nil {
			err = t.Err()
		}
	})
	return err
}

// BatchSnapshot is what a checkpoint stores of a query: the state of its stages and the watermark. The target stands
// outside.
type BatchSnapshot struct {
	batches         int64
	watermark, late stream.Time
	stages          []batchStageSnapshot
}

type batchStageSnapshot struct {
	tables    [][][]Entry // by partition and table
	operators []any
}

// Snapshot takes what the checkpoint of the last batch stores.
func (m *BatchEngine) Snapshot() *BatchSnapshot {
	s := &BatchSnapshot{batches: m.batches, watermark: m.watermark, late: m.late}
	for i := range m.stages {
		stage := &m.stages[i]
		var sub batchStageSnapshot
		for p, op := range stage.ops {
			sub.operators = append(sub.operators, op.Snapshot(&stage.ctx[p]))
			var tables [][]Entry
			for _, t := range stage.ctx[p].tables {
				tables = append(tables, t.snapshot())
			}
			sub.tables = append(sub.tables, tables)
		}
		s.stages = append(s.stages, sub)
	}
	return s
}

// restore makes all operators anew from a snapshot of a query with the same stages and partitions.
func (m *BatchEngine) restore(s *BatchSnapshot) {
	m.makeStages()
	for i := range m.stages {
		stage := &m.stages[i]
		for p, op := range stage.ops {
			for j, t := range stage.ctx[p].tables {
				t.restore(s.watermark, s.stages[i].tables[p][j])
			}
			op.Restore(&stage.ctx[p], s.stages[i].operators[p])
		}
	}
}

// RestoreBatchEngine makes an engine that goes on from the checkpoint of a query with as many stages, tables and
// partitions. The watermark does not go back, but what the inputs have said is forgotten: of several inputs each counts
// as 0 until it speaks again, as in Spark's WatermarkTracker. spark within-watermark/restart-shorter-delay.
func RestoreBatchEngine(spec BatchSpec, s *BatchSnapshot) *BatchEngine {
	m := NewBatchEngine(spec)
	m.restore(s)
	m.batches, m.watermark, m.late = s.batches, s.watermark, s.late
	return m
}
