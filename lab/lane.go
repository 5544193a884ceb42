package lab

import (
	"errors"
	"fmt"
	"slices"

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
	atEnd    bool     // it runs only when all rows have come
	cold     []sim.Cold
	bytes    int64 // physical, at the end of the span
	onDisk   int64 // live keys at that time
	memory   int64 // of the tables, at the latest peak of the live keys
	most     int64 // live keys at that peak
	// mostEntries and mostPinned are peaks of what the tables hold.
	mostEntries, mostPinned int64
	// openState makes a cold store for what a micro-batch query keeps in memory; nil: the state is in memory.
	openState func() (sim.Cold, error)
	// withinTTL counts leaks though a row of the key had come within the TTL.
	withinTTL int64
	sums      bool       // the ledger sums a column
	stages    *stages    // of a micro-batch query that is measured
	after     *after     // what reads the result, nil for nothing
	target    sim.Target // nil: in memory, or none
	failed    string     // how the query ended before its input did
	// takesNull says that rows without event time are taken, as Spark takes them; else the first one ends the job, and
	// stands in noEventTime.
	takesNull   bool
	noEventTime error
	recovering  *sim.Recovering // the task of a job that fails
	dropped     int64           // changes that crashes have undone
	ttlByOutage int64           // leaks by TTL of rows that had arrived in time
	// onTimer is told of the timers of keys, if somebody watches.
	onTimer func(sim.TimerEvent)
	err     error
}

// newLane makes a lane. Measured asks for all there is to know of a run; a replay needs only its digests.
func (r *run) newLane(e entry, sample stream.Time, measured bool) (*lane, error) {
	job, plan := r.scenario.Job, e.plan
	from, _ := r.workload.Span()
	l := &lane{id: e.ID, from: from, measured: measured}
	l.takesNull = plan.Batch != nil
	if plan.Batch != nil && measured {
		l.stages = newStages(e, e.workload.Schema())
	}
	if plan.Batch != nil {
		if l.target, l.err = r.openTarget(e, measured); l.err != nil {
			return nil, fmt.Errorf("%s: %w", e.ID, l.err)
		}
	}
	l.task = r.newTask(e, l, sample)
	subtasks := len(l.task.Subtasks())
	l.peaks, l.rows = make([]int64, subtasks), make([]int64, subtasks)
	commit := job.Checkpoint.Interval
	if job.Checkpoint.Delivery != "exactly-once" || plan.Batch != nil { // a batch is visible when it has ended
		commit = 0
	}
	sink := job.Sink
	if plan.Batch != nil { // the result is what stands in the table
		sink = strategies.Retract
	}
	ledger := sim.LedgerSpec{
		Workload: e.workload, Sink: sink, CommitEvery: commit,
		Result: resultOf(plan), ToChangelog: plan.ToChangelog,
		Retracts: job.Sink == strategies.Upsert || plan.Changelog != stream.InsertOnly,
	}
	if l.recovering != nil {
		ledger.Failures = r.failurePlan()
		ledger.Retracts = true
	}
	if measured {
		ledger.Right = promised(plan, r.scenario.Version(), e.workload)
		ledger.Amount = r.amount(e)
		l.sums = ledger.Amount != nil
		leaks := newLeaks(plan, e.workload)
		ledger.Cause = func(leak sim.LeakedRow) string {
			why := leaks.cause(leak)
			if plan.Batch != nil && plan.Batch.Restarted != nil && leak.At >= from+job.Spark.Restart && job.Spark.Restart > 0 {
				why = "restart" // with other columns, which the old state is of no use for
			}
			if at := job.Spark.Migrate.At; plan.Batch != nil && at > 0 && leak.At >= from+at &&
				!slices.Contains([]string{"no_dedup", "regenerated_id", "same_batch"}, why) {
				why = "restart" // a query that has not seen what came before
			}
			crashed := l.recovering != nil && leak.At > ledger.Failures.FirstCrash()
			switch {
			case crashed && why == sim.Unexplained:
				why = "restart"
			case why != "ttl" || leak.Update:
			case crashed && leaks.outlived(leak):
				l.ttlByOutage++
			case leaks.seenWithin(leak, plan.StateTTL):
				l.withinTTL++
			}
			return why
		}
	}
	if measured && r.after != nil && plan.Output != strategies.KeyOnly {
		l.after = r.after.reader(e.workload)
		ledger.OnRow = l.after.row
	}
	l.ledger = sim.NewLedger(ledger)
	if !measured {
		l.ledger.EndSpan() // nobody asks for the latency of a replay
	}
	return l, l.err
}

// resultOf says what the rows of a strategy's result hold.
func resultOf(plan strategies.Plan) sim.Result {
	result := sim.Result{KeyOnly: plan.Output == strategies.KeyOnly}
	if plan.Output == strategies.KeyAndColumn {
		result.Beside = &plan.Column
	}
	return result
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
	plan := e.plan
	switch {
	case plan.Batch == nil:
		return r.newStreamTask(r.taskSpec(e, plan, l, sample), l)
	case len(plan.Front) == 0:
		engine := sim.NewBatchEngine(r.batchSpec(e, l, sample))
		l.watchBatches(engine)
		return engine
	}
	chain := sim.ChainSpec{Records: e.workload, Query: r.batchSpec(e, l, sample)}
	for _, f := range plan.Front {
		chain.Tasks = append(chain.Tasks, r.taskSpec(e, f.Plan, l, sample))
	}
	if l.stages != nil {
		chain.OnChange = l.stages.change
	}
	c := sim.NewChain(chain)
	l.watchBatches(c.Query())
	return c
}

// watchBatches lets what is measured of batches look at the query's state.
func (l *lane) watchBatches(query *sim.BatchEngine) {
	if l.batches != nil {
		l.batches.engine = query
	}
}

// taskSpec says how a strategy, or one in front of a micro-batch query, runs that takes a record at a time.
func (r *run) taskSpec(e entry, plan strategies.Plan, l *lane, sample stream.Time) sim.TaskSpec {
	job := r.scenario.Job
	declared := plan.Changelog
	if plan.ToChangelog {
		declared = plan.Input
	}
	return sim.TaskSpec{
		Parallelism: job.Parallelism, Readers: job.Parallelism, Records: e.workload, New: plan.New,
		UpdateBefore: declared.Has(stream.UpdateBefore), Prepare: e.prepare(plan),
		CheckpointInterval: job.Checkpoint.Interval, OnTimer: l.onTimer,
		NewTable: func(_ int, ttl stream.Time) *sim.Table { return r.newTable(l, ttl, sample) },
	}
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

// batchSpec says how a micro-batch query runs.
func (r *run) batchSpec(e entry, l *lane, sample stream.Time) sim.BatchSpec {
	spark := r.scenario.Job.Spark
	from, to := r.workload.Span()
	spec := sim.BatchSpec{
		Records: e.workload, Prepare: e.prepare(e.plan), Trigger: spark.Trigger, Cost: spark.Cost, Policy: spark.Policy,
		NoDataBatches: spark.NoDataBatches,
		NullKey:       func(row *stream.Row) bool { return hasNullKey(e.workload, row.Tag) },
		NewTable:      func() *sim.Table { return r.newTable(l, 0, sample) },
	}
	spec.Failures = r.failures()
	inputs := spark.Inputs
	switch {
	case len(e.plan.Front) > 0: // it reads the one table that they write
		inputs = 1
		spec.Trigger = sim.Trigger{Every: r.scenario.Job.Checkpoint.Interval}
	case inputs > 1:
		spec.InputOf = func(row *stream.Row) int { return int(row.Partition) % inputs }
	}
	if next := e.plan.Batch.Restarted; spark.Restart > 0 {
		if next == nil {
			next = e.plan.Batch
		}
		spec.Restart = &sim.BatchRestart{At: from + spark.Restart, Stages: next.Spec(sim.BatchSpec{}, 0).Stages}
	}
	if m := spark.Migrate; m.At > 0 {
		spec.Restart = &sim.BatchRestart{At: from + m.At, Stages: e.plan.Batch.Spec(sim.BatchSpec{}, 0).Stages, Anew: true,
			Overlap: m.Overlap}
	}
	if l.target != nil {
		spec.Target = l.target
	}
	if l.stages != nil {
		spec.OnStage, spec.OnAudit = l.stages.batch, l.stages.audit
	}
	if r.scenario.Job.State == "pebble" {
		l.openState = r.options.OpenState
	}
	if l.measured {
		l.atEnd = spec.Trigger.AvailableNow
		l.batches = newBatches(e.plan.Batch, from, to, spec.Trigger.Every, spark.Policy)
		spec.OnBatch = l.batches.add
	}
	return e.plan.Batch.Spec(spec, inputs)
}

// handle drives a batch through the task.
func (l *lane) handle(b *sim.Batch) error {
	if l.err != nil || l.noEventTime != nil || l.ended {
		return l.err
	}
	drive(l.task, b, l.push, l.mark)
	l.drain()
	l.noteFailure()
	if l.ended {
		l.finish()
	}
	if l.err != nil {
		return fmt.Errorf("%s: %w", l.id, l.err)
	}
	return nil
}

func (l *lane) push(rows []stream.Row) {
	if l.noEventTime != nil {
		return
	}
	firsts := int64(0)
	for i := range rows {
		if rows[i].Event == stream.NullTime && !l.takesNull {
			l.noEventTime = sim.NoEventTime(&rows[i])
			rows = rows[:i]
			break
		}
		l.task.Row(&rows[i])
		if rows[i].First {
			firsts++
		}
	}
	n := len(rows)
	if l.recovering != nil {
		n, firsts = l.uncounted(rows)
	}
	l.firsts += firsts
	l.handled += int64(n)
	l.ledger.Rows(n)
}

func (l *lane) drain() { l.task.Drain(l.ledger.Book) }

// drive hands a batch to a task: rows through push, marks as they fall between them. After a mark that is about more
// than the task, then is called.
func drive(task task, b *sim.Batch, push func([]stream.Row), then func(sim.Mark)) {
	row := 0
	b = seenBy(task, b)
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
		default:
			fail(task, m)
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
		l.ledger.Committed(m.At)
	case sim.Crashed:
		l.drain()
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
		if l.atEnd {
			l.sample(m.At)
		}
		l.check()
		l.ended = true
	}
}

// measureDisk notes what the state takes on disk once all of it is there.
func (l *lane) measureDisk(at stream.Time) {
	if len(l.cold) == 0 {
		return
	}
	for _, sub := range l.task.Subtasks() {
		l.onDisk += int64(sub.State.LiveKeys)
	}
	var live []sim.Cold // not those that a restart has left behind
	l.task.Tables(func(_ int, t *sim.Table) {
		t.Flush(at)
		live = append(live, t.Cold())
		if l.openState != nil && l.err == nil { // a deadline holds its entry in memory, where no RocksDB would keep it
			var c sim.Cold
			if c, l.err = l.openState(); l.err == nil {
				l.cold, live = append(l.cold, c), append(live, c)
				l.err = t.SpillPinned(c)
			}
		}
	})
	for _, c := range live {
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
	if l.err = l.ledger.Check(); l.err != nil {
		return
	}
	if err := l.task.Err(); !isQueryError(err) {
		l.err = err
	}
}

// isQueryError reports whether an error ends a query as it would end it in production. It is a result, no fault of the
// run.
func isQueryError(err error) bool {
	_, ok := errors.AsType[*sim.QueryError](err)
	return ok
}

// noteFailure notes how a query has ended.
func (l *lane) noteFailure() {
	query, ok := l.task.(interface{ Batch() sim.MicroBatch })
	if err := l.task.Err(); ok && l.failed == "" && isQueryError(err) {
		batch := query.Batch()
		l.failed = fmt.Sprintf("the query fails in batch %d, after %s: "+
			"%v", batch.ID, stream.FormatDuration(batch.At-l.from), err)
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
	l.measureTables(s.KeysLive)
	if chain, ok := l.task.(*sim.Chain); ok {
		l.stages.held(chain)
	}
}

// measureTables notes what the tables take, while so many keys are alive.
func (l *lane) measureTables(live int64) {
	var entries, pinned, memory int64
	l.task.Tables(func(_ int, t *sim.Table) {
		entries += int64(t.Held())
		pinned += int64(t.Pinned())
		memory += t.Memory()
	})
	l.mostEntries, l.mostPinned = max(l.mostEntries, entries), max(l.mostPinned, pinned)
	if live >= l.most {
		l.most, l.memory = live, memory
	}
}

// finish notes what is known only at the end, and lets go of the state.
func (l *lane) finish() {
	l.digest = l.ledger.Digest()
	if l.recovering != nil {
		l.dropped, l.recovering = l.recovering.Dropped(), nil
	}
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
	if l.target != nil {
		_ = l.target.Close() // all that was written has been committed
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
	if s.KeysLivePeak > 0 {
		s.LogicalBytesPerKey = float64(s.BytesPeak) / float64(s.KeysLivePeak)
		s.BytesPerKey = float64(l.memory) / float64(l.most)
	}
	if len(l.cold) > 0 {
		s.BytesPerKey = 0
		if l.onDisk > 0 {
			s.BytesPerKey = float64(l.bytes) / float64(l.onDisk)
		}
	}
	s.Class = measuredClass(l.series)
	return s
}
