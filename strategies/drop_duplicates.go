package strategies

import (
	"slices"
	"strings"

	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "drop-duplicates",
	Engine: "spark",
	About:  "dropDuplicates: the first row of a key to arrive, batch by batch",
	Loses: "Without the event time among its columns it keeps every key for ever; with it, copies that have another " +
		"event time come through. With a watermark, late rows are dropped, firsts among them.",
	Facts: dropDuplicatesFacts,
	Params: []Param{
		columnsParam, watermarkDelayOrNone, otherDelay,
		{Name: "window", Kind: Duration, Default: "0s",
			About: "a tumbling window of the event time among the columns; 0s: none"},
		restartColumns,
	},
	Plan: func(args Args, job Job) Plan {
		plan := func(columns []int) Plan {
			d := deduplicate{columns: columns, window: args.Duration("window"), delays: args.delays()}
			p := job.deduplicatePlan("dedupe", d)
			p.Code = job.dropDuplicatesCode("dropDuplicates", d)
			p.TTL = "nothing: a key is kept for ever"
			if d.evicts(job) {
				p.TTL = "the event time: a key is removed by the first batch whose watermark has reached it"
			}
			return p
		}
		return job.withRestart(args, plan)
	},
})

// withRestart plans a deduplication by columns, and the one that the job is restarted with.
func (j Job) withRestart(args Args, plan func(columns []int) Plan) Plan {
	p := plan(j.columnsOf(args, "columns"))
	if args.Text("restart_columns") != SameColumns {
		p.restartedAs(plan(j.columnsOf(args, "restart_columns")))
	}
	return p
}

// deduplicate is what dropDuplicates and dropDuplicatesWithinWatermark have as parameters.
type deduplicate struct {
	columns []int // of the schema
	window  stream.Time
	delays  [2]stream.Time
	within  bool // dropDuplicatesWithinWatermark
}

// evicts reports whether keys are removed: those that hold an event time, or a window of it, and with WithinWatermark
// all. spark drop-duplicates-watermark/ts-in-key, drop-duplicates-watermark/ts-not-in-key.
func (d *deduplicate) evicts(job Job) bool {
	return d.delays[0] != sim.NoWatermark &&
		(d.within || d.window > 0 || slices.Contains(d.columns, job.Schema.Event))
}

// deduplicatePlan plans either operator, by its name in the state metadata.
func (j Job) deduplicatePlan(operator string, d deduplicate) Plan {
	key := j.pick(d.columns)
	if d.window > 0 {
		key = append(key, stream.Column{Name: "window", Type: stream.Timestamp, Scale: -1}) // a struct
	}
	evicts, keyOf := d.evicts(j), j.keyOf(d.columns)
	entryBytes := unsafeRowBytes(key) + unsafeRowBytes([]stream.Column{{Type: stream.Timestamp}})
	p := Plan{
		Changelog: stream.InsertOnly, Declared: stream.InsertOnly,
		Operator: "StreamingDeduplicateExec", Runtime: "org.apache.spark.sql.execution.streaming.operators.stateful." +
			"StreamingDeduplicateExec",
		StateClass: PerKey, Clock: "event time", InBatches: true, SharedCache: true, Language: "python",
		Batch: &BatchPlan{Delays: d.delays, Consumers: appendConsumers, Stages: []Stage{{
			BatchStage: sim.BatchStage{Name: operator, Shuffled: true, New: func(c *sim.BatchCtx) sim.BatchOperator {
				return &dedupe{deduplicate: d, seen: c.NewTable(), evicting: evicts, keyOf: keyOf, entryBytes: entryBytes}
			}},
			Operator: operator, Key: key,
		}}},
	}
	if !slices.Equal(d.columns, j.Schema.Key) || d.window > 0 {
		p.Leaks, p.Compared, p.Window = ByColumns, d.columns, d.window
	}
	if evicts {
		p.StateClass, p.Leaks = TimeBounded, ByHorizon
	}
	if d.delays[0] == sim.NoWatermark {
		p.Clock = "none"
	}
	return p
}

// dedupe is Spark's StreamingDeduplicateExec and StreamingDeduplicateWithinWatermarkExec: the first row of a key goes
// out and the others are dropped for as long as the key is in the state, whatever their event time: spark
// drop-duplicates/basic, within-watermark/not-refreshed. A batch tests its rows first and then removes the keys whose
// time the watermark has reached: within-watermark/lag, drop-duplicates-watermark/ts-in-key-ties. Late rows leave no
// trace: within-watermark/late.
type dedupe struct {
	deduplicate
	seen       *sim.Table
	due        sim.Deadlines
	evicting   bool
	keyOf      func(stream.Records, *stream.Row) stream.Key // nil: Row.Key
	entryBytes int
	run        [64]stream.Row
}

func (o *dedupe) Batch(c *sim.BatchCtx, rows []stream.Row) {
	for len(rows) > 0 {
		n := min(len(rows), len(o.run))
		o.rows(c, rows[:n])
		rows = rows[n:]
	}
	if o.evicting {
		o.due.Take(o.seen, c.Batch.Watermark, func(ref sim.Ref) {
			o.seen.Remove(ref)
			c.Progress.RowsRemoved++
		})
	}
}

// rows handles a run of rows.
func (o *dedupe) rows(c *sim.BatchCtx, rows []stream.Row) {
	keyed := rows
	if o.keyOf != nil || o.window > 0 {
		keyed = o.run[:copy(o.run[:], rows)]
		for i := range keyed {
			keyed[i].Key = o.key(c.Records, &keyed[i])
		}
	}
	seen := o.seen.Probe(keyed)
	for i := range rows {
		row := &rows[i]
		event := row.Event
		if o.window > 0 {
			if event == stream.NullTime { // no window holds it
				c.Drop(row, sim.Filtered)
				continue
			}
			event = WindowEnd(event, o.window)
		}
		switch {
		case c.IsLate(event):
			c.Drop(row, sim.Late)
		case seen.Get(i) != nil:
			c.Drop(row, sim.Duplicate)
		default:
			ends, flags := o.deadline(c, event)
			ref := seen.Put(i, int64(ends), row.Tag, flags)
			if flags != 0 {
				o.due.Add(ref, ends)
			}
			c.Progress.RowsUpdated++
			c.Emit(row)
		}
	}
}

// key is the key of a row by the operator's columns.
func (o *dedupe) key(records stream.Records, row *stream.Row) stream.Key {
	key := row.Key
	if o.keyOf != nil {
		key = o.keyOf(records, row)
	}
	if o.window > 0 && row.Event != stream.NullTime {
		key = key.With(int64(WindowEnd(row.Event, o.window)))
	}
	return key
}

// deadline is the watermark with which a key is removed: its event time or, with WithinWatermark, that of its first row
// and the delay after it. To WithinWatermark no event time is 0, else a key without one is never removed: spark
// within-watermark/null-ts, drop-duplicates-watermark/ts-in-key-null-ts.
func (o *dedupe) deadline(c *sim.BatchCtx, event stream.Time) (stream.Time, sim.Flags) {
	switch {
	case !o.evicting:
		return 0, 0
	case !o.within && event == stream.NullTime:
		return 0, 0
	case !o.within:
		return event, sim.Pinned
	case event == stream.NullTime:
		event = 0
	}
	return event + c.Delay(), sim.Pinned
}

func (o *dedupe) Snapshot(*sim.BatchCtx) any { return nil }

func (o *dedupe) Restore(*sim.BatchCtx, any) {
	o.seen.EachPinned(func(ref sim.Ref, e *sim.Entry) { o.due.Add(ref, stream.Time(e.Value)) })
}

func (o *dedupe) State(*sim.BatchCtx) sim.State {
	held := o.seen.Held()
	return sim.State{Entries: held, LiveKeys: held, Bytes: int64(held * o.entryBytes)}
}

// columnsOf reads a parameter of the kind Columns.
func (j Job) columnsOf(args Args, param string) []int {
	switch text := args.Text(param); {
	case text == AllColumns:
		return j.allIndexes()
	case text == KeyColumns:
		return j.Schema.Key
	case text == None:
		return nil
	default:
		var columns []int
		for name := range strings.SplitSeq(text, ", ") {
			columns = append(columns, j.Schema.Index(name))
		}
		return columns
	}
}

// dropDuplicatesCode renders the query.
func (j Job) dropDuplicatesCode(method string, d deduplicate) string {
	code := "deduped = (events\n"
	if d.delays[0] != sim.NoWatermark {
		code += "    .withWatermark(\"" + j.eventName() + "\", \"" + sparkDelay(d.delays[0]) + "\")\n"
	}
	names := make([]string, 0, len(d.columns)+1)
	for _, c := range j.pick(d.columns) {
		names = append(names, c.Name)
	}
	if d.window > 0 {
		code += "    .withColumn(\"window\", F.window(\"" + j.eventName() + "\", \"" + sparkDelay(d.window) + "\"))\n"
		names = append(names, "window")
	}
	list := pyList(names)
	if len(d.columns) == len(j.Schema.Columns) && d.window == 0 {
		list = ""
	}
	return code + "    ." + method + "(" + list + "))"
}

var dropDuplicatesFacts = []Fact{
	{TopicState, "one entry a key, with no value: without a watermark nothing is ever removed, and numRowsTotal only " +
		"rises", "spark/drop-duplicates-basic"},
	{TopicState, "with the event time among the columns a key leaves with the first batch whose watermark has reached " +
		"its time, at the end of that batch", "spark/drop-duplicates-watermark-ts-in-key-ties"},
	{TopicState, "with a watermark but without the event time among the columns late rows are dropped, yet no key is " +
		"ever removed", "spark/drop-duplicates-watermark-ts-not-in-key"},
	{TopicState, "a window among the columns counts as event time by its " +
		"end", "spark/drop-duplicates-watermark-window-in-key"},
	{TopicState, "a key without event time is never removed", "spark/drop-duplicates-watermark-ts-in-key-null-ts"},
	{TopicState, "state and watermark survive a restart", "spark/drop-duplicates-watermark-restart"},
	{TopicState, "a restart with another number or other types of columns is refused " +
		"(STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE)", "spark/changed-columns-fewer-keys"},
	{TopicState, "a restart with other columns of the same number and types is accepted, and the old state read as if " +
		"it were theirs: copies come through and distinct rows are dropped", "spark/changed-columns-other-key-same-type"},
	{TopicState, "a restart as dropDuplicatesWithinWatermark is refused " +
		"(STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA)", "spark/changed-columns-to-within-watermark"},
	{TopicChangelog, "append-only: the first row of a key goes out with all its columns, nothing is taken " +
		"back", "spark/drop-duplicates-payload"},
	{TopicChangelog, "rows come out in the order of arrival, partition by partition of the " +
		"shuffle", "spark/drop-duplicates-many-keys-two-partitions"},
	lateInBatches, lateWithinBatch, lateCountsCopies, lateInBacklog, neverLateWithoutTime, slowerInput,
	{TopicLate, "without a watermark no row is late", "spark/drop-duplicates-basic"},
	waitsForBatch,
	batchesByTheClock, watermarkByBatches, quietInput,
	{TopicDeterminism, "state TTL: there is none; what ends a key is the watermark, or " +
		"nothing", "spark/drop-duplicates-watermark-ts-in-key"},
	replayedBatch,
	callsNoFunction,
	{TopicLoses, "late firsts, as soon as there is a watermark", "spark/drop-duplicates-watermark-ts-not-in-key-late"},
	{TopicLoses, "null is a key like any other: all rows without an id are copies of the first " +
		"one", "spark/drop-duplicates-null-key"},
	{TopicLoses, "the first watermark is 0: rows with an event time at or before 1970 are " +
		"late", "spark/drop-duplicates-watermark-zero-and-negative-ts"},
	{TopicLeaks, "with the event time among the columns a copy that has another one, such as a retry with a new " +
		"timestamp, comes through", "spark/drop-duplicates-watermark-ts-in-key"},
	{TopicLeaks, "with a window among the columns, a copy on the other side of the window's " +
		"edge", "spark/drop-duplicates-watermark-window-in-key"},
	{TopicLeaks, "all columns: a copy with any difference comes through", "spark/drop-duplicates-all-columns"},
}
