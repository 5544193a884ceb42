package lab

import (
	"fmt"

	"deduplab/results"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// task runs a strategy: a record at a time ([sim.Task]) or in micro-batches ([sim.BatchEngine]).
type task interface {
	// Row takes a row as it arrives.
	Row(*stream.Row)
	// SourceWatermark, Watermark and Checkpoint tell what the feed does beside rows, Clock that time has passed, and End
	// that there are no more rows.
	SourceWatermark(reader int, w, now stream.Time)
	Watermark(w, now stream.Time)
	Checkpoint(now stream.Time)
	Clock(now stream.Time)
	End(now stream.Time)
	// Drain hands over the changes since the last call.
	Drain(func(c *sim.Change, key stream.Key, parts []stream.Tag))
	// Subtasks and Tables tell what the strategy holds, Err what ended it.
	Subtasks() []sim.SubtaskState
	Tables(func(int, *sim.Table))
	Err() error
}

// lane is one strategy in one pass: its task and its ledger.
type lane struct {
	id       string
	measured bool
	ended    bool
	task     task
	ledger   *sim.Ledger // of a replay, until its end
	digest   sim.Digest
	series   []results.StateSample
	peaks    []int64 // of live keys by subtask
	rows     []int64 // rows by subtask
	late     int64
	handled  int64
	firsts   int64
	from     stream.Time
	batches  *batches // of a micro-batch query that is measured
	cold     []sim.Cold
	bytes    int64 // physical, at the end of the span
	// withinTTL counts leaks though a row of the key had come within the TTL.
	withinTTL int64
	sums      bool // the ledger sums a column
	err       error
	// takesNull says that rows without event time are taken, as Spark does; failed is why the strategy's job ended, and the run did not.
	takesNull bool
	failed    error
}

// newLane makes a lane. Measured asks for all there is to know of a run; a replay needs only its digests.
func (r *run) newLane(e entry, sample stream.Time, measured bool) (*lane, error) {
	job, plan := r.scenario.Job, e.plan
	from, _ := r.workload.Span()
	l := &lane{id: e.ID, from: from, measured: measured}
	l.takesNull = plan.Batch != nil
	l.task = r.newTask(e, l, sample)
	subtasks := len(l.task.Subtasks())
	l.peaks, l.rows = make([]int64, subtasks), make([]int64, subtasks)
	commit := job.Checkpoint.Interval
	if job.Checkpoint.Delivery != "exactly-once" || plan.Batch != nil { // a batch is visible when it has ended
		commit = 0
	}
	ledger := sim.LedgerSpec{
		Workload: e.workload, Sink: job.Sink, CommitEvery: commit,
		KeyOnly: plan.Output == strategies.KeyOnly, ToChangelog: plan.ToChangelog,
		Retracts: job.Sink == strategies.Upsert || plan.Changelog != stream.InsertOnly,
	}
	if measured {
		ledger.Right = promised(plan, r.scenario.Version(), e.workload)
		ledger.Amount = r.amount(e)
		l.sums = ledger.Amount != nil
		leaks := newLeaks(plan, e.workload)
		ledger.Cause = func(leak sim.LeakedRow) string {
			why := leaks.cause(leak)
			if why == "ttl" && !leak.Update && leaks.seenWithin(leak, plan.StateTTL) {
				l.withinTTL++
			}
			return why
		}
	}
	l.ledger = sim.NewLedger(ledger)
	if !measured {
		l.ledger.EndSpan() // nobody asks for the latency of a replay
	}
	return l, l.err
}

// amount returns what the ledger of a strategy sums; nil where its result does not have it.
func (r *run) amount(e entry) func(stream.Tag, []stream.Tag) int64 {
	schema := e.workload.Schema()
	column := schema.Index(r.scenario.Workload.Amount)
	if column < 0 || !summed(e.plan, schema, column) {
		return nil
	}
	of := amountOf(e.workload, column)
	return func(tag stream.Tag, parts []stream.Tag) int64 {
		if parts != nil {
			tag = parts[column]
		}
		return of(tag)
	}
}

// newTask makes the task of a lane.
func (r *run) newTask(e entry, l *lane, sample stream.Time) task {
	job, plan := r.scenario.Job, e.plan
	if plan.Batch != nil {
		return r.newBatchEngine(e, l, sample)
	}
	declared := plan.Changelog
	if plan.ToChangelog {
		declared = plan.Input
	}
	return sim.NewTask(sim.TaskSpec{
		Parallelism: job.Parallelism, Readers: job.Parallelism, Records: e.workload, New: plan.New,
		UpdateBefore: declared.Has(stream.UpdateBefore), Prepare: e.prepare(),
		CheckpointInterval: job.Checkpoint.Interval,
		NewTable:           func(_ int, ttl stream.Time) *sim.Table { return r.newTable(l, ttl, sample) },
	})
}

// newTable makes a keyed state of a lane.
func (r *run) newTable(l *lane, ttl, sample stream.Time) *sim.Table {
	spec := sim.TableSpec{TTL: ttl, Sample: sample, SpillAt: r.options.SpillAt}
	if r.scenario.Job.State == "pebble" && l.err == nil {
		spec.Cold, l.err = r.options.OpenState()
		l.cold = append(l.cold, spec.Cold)
	}
	return sim.NewTable(spec)
}

// newBatchEngine makes the engine of a micro-batch query.
func (r *run) newBatchEngine(e entry, l *lane, sample stream.Time) *sim.BatchEngine {
	spark, plan := r.scenario.Job.Spark, e.plan
	from, to := r.workload.Span()
	spec := sim.BatchSpec{
		Records: e.workload, Prepare: e.prepare(), Trigger: spark.Trigger, Cost: spark.Cost, Policy: spark.Policy,
		NoDataBatches: spark.NoDataBatches,
		NewTable:      func() *sim.Table { return r.newTable(l, 0, sample) },
	}
	for _, at := range spark.Failures {
		spec.Failures = append(spec.Failures, from+at)
	}
	if spark.Inputs > 1 {
		spec.InputOf = func(row *stream.Row) int { return int(row.Partition) % spark.Inputs }
	}
	if l.measured {
		l.batches = newBatches(plan.Batch, from, to, spark.Trigger.Every, spark.Policy)
		spec.OnBatch = l.batches.add
	}
	engine := sim.NewBatchEngine(plan.Batch.Spec(spec, spark.Inputs))
	if l.batches != nil {
		l.batches.engine = engine
	}
	return engine
}

// handle drives a batch through the task.
func (l *lane) handle(b *sim.Batch) error {
	if l.err != nil || l.failed != nil {
		return l.err
	}
	drive(l.task, b, l.push, l.mark)
	l.drain()
	if l.ended {
		l.finish()
	}
	if l.err != nil {
		return fmt.Errorf("%s: %w", l.id, l.err)
	}
	return nil
}

func (l *lane) push(rows []stream.Row) {
	if l.failed != nil {
		return
	}
	for i := range rows {
		if rows[i].Event == stream.NullTime && !l.takesNull {
			l.failed = sim.NoEventTime(&rows[i])
			rows = rows[:i]
			break
		}
		l.task.Row(&rows[i])
		if rows[i].First {
			l.firsts++
		}
	}
	l.handled += int64(len(rows))
	l.ledger.Rows(len(rows))
}

func (l *lane) drain() { l.task.Drain(l.ledger.Book) }

// drive hands a batch to a task: rows through push, marks as they fall between them. After a mark that is about more than
// the task, then is called.
func drive(task task, b *sim.Batch, push func([]stream.Row), then func(sim.Mark)) {
	row := 0
	for _, m := range b.Marks {
		push(b.Rows[row:m.Before])
		row = m.Before
		switch m.Kind {
		case sim.SourceWatermark:
			task.SourceWatermark(m.Reader, m.Watermark, m.At)
		case sim.CombinedWatermark:
			task.Watermark(m.Watermark, m.At)
		case sim.Checkpoint:
			task.Checkpoint(m.At)
			then(m)
		case sim.Sample, sim.EndOfSpan:
			task.Clock(m.At)
			then(m)
		case sim.EndOfInput:
			task.End(m.At)
			then(m)
		}
	}
	push(b.Rows[row:])
}

// mark measures at a mark.
func (l *lane) mark(m sim.Mark) {
	switch m.Kind {
	case sim.Checkpoint:
		l.check()
	case sim.Sample:
		if l.measured {
			l.sample(m.At)
		}
	case sim.EndOfSpan:
		if l.measured {
			l.drain()
			l.ledger.EndSpan()
			l.measureDisk(m.At)
		}
	case sim.EndOfInput:
		l.check()
		l.ended = true
	}
}

// measureDisk notes what the state takes on disk once all of it is there.
func (l *lane) measureDisk(at stream.Time) {
	if len(l.cold) == 0 {
		return
	}
	l.task.Tables(func(_ int, t *sim.Table) { t.Flush(at) })
	for _, c := range l.cold {
		bytes, err := c.Bytes()
		l.bytes += bytes
		if l.err == nil {
			l.err = err
		}
	}
}

// check verifies the conservation of rows and the state backend.
func (l *lane) check() {
	l.drain()
	if l.err = l.ledger.Check(); l.err == nil {
		l.err = l.task.Err()
	}
}

// sample notes what the operator holds.
func (l *lane) sample(at stream.Time) {
	s := results.StateSample{AtMS: int64(at - l.from), Rows: l.handled, Keys: l.firsts}
	l.task.Tables(func(_ int, t *sim.Table) { s.KeysHeld += int64(t.Held() - t.Live(at)) }) // expired ones
	for i, sub := range l.task.Subtasks() {
		s.KeysLive += int64(sub.State.LiveKeys)
		s.KeysHeld += int64(sub.State.LiveKeys)
		s.Timers += int64(sub.Timers.Event + sub.Timers.Proc)
		s.Bytes += sub.State.Bytes
		l.peaks[i] = max(l.peaks[i], int64(sub.State.LiveKeys))
	}
	l.series = append(l.series, s)
}

// finish notes what is known only at the end, and lets go of the state.
func (l *lane) finish() {
	l.digest = l.ledger.Digest()
	if !l.measured {
		l.ledger = nil
	}
	for i, sub := range l.task.Subtasks() {
		l.rows[i] = sub.Rows
		l.late += sub.LateDropped
	}
	l.task = nil
}

func (l *lane) close() {
	for _, c := range l.cold {
		if c != nil {
			_ = c.Close() // what it held is of no use after the run
		}
	}
}

// state fills in the state section. Keys are the distinct keys that had come by each sample, nil where those are the
// events.
func (l *lane) state(keys []int64) results.State {
	for i, n := range keys {
		l.series[i].Keys = n
	}
	s := results.State{Series: l.series, PhysicalBytes: l.bytes}
	for _, sample := range l.series {
		s.KeysLivePeak = max(s.KeysLivePeak, sample.KeysLive)
		s.KeysHeldPeak = max(s.KeysHeldPeak, sample.KeysHeld)
		s.TimersPeak = max(s.TimersPeak, sample.Timers)
		s.BytesPeak = max(s.BytesPeak, sample.Bytes)
	}
	if n := len(l.series); n > 0 {
		s.KeysLiveEnd, s.BytesEnd = l.series[n-1].KeysLive, l.series[n-1].Bytes
	}
	s.Class = measuredClass(l.series)
	return s
}
