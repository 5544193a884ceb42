package strategies

import (
	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "latest-wins-aggregate",
	Engine: "spark",
	About:  "max_by(struct, ts) by key: the last version of a key as an aggregate",
	Loses: "It loses nothing and forgets nothing: grouped by a key without event time, the watermark neither drops rows " +
		"nor " +
		"removes state. Append mode is refused.",
	Facts: latestWinsAggregateFacts,
	Params: []Param{
		{Name: "delay", Kind: OptionalDuration, Default: "10m",
			About: "delay of withWatermark, which is of no account; none: the query has no watermark"},
		{Name: "mode", Kind: Enum, Values: []string{"update", "complete", "append"}, Default: "update",
			About: "the output mode: update sends every key that was touched in the batch, complete all keys, append is " +
				"refused"},
	},
	Plan: func(args Args, job Job) Plan {
		mode := args.Text("mode")
		// The key, and the struct, its time and the count beside it.
		bytes := unsafeRowBytes(job.pick(job.Schema.Key)) + unsafeRowBytes(job.Schema.Columns) + 3*8
		p := job.updateMode(Plan{
			Operator:   "Aggregate",
			Runtime:    "org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreSaveExec",
			StateClass: PerKey,
			Clock:      "event time to compare, no watermark",
			TTL:        "nothing: no key is ever removed",

			Promise:  LastByEvent,
			Language: "python",
			Code:     latestWinsAggregateCode(args, job),
			Batch: job.stateful(args.delays(), "stateStoreSave", func(c *sim.BatchCtx) sim.BatchOperator {
				return &maxBy{complete: mode == "complete", table: c.NewTable(), bytes: bytes}
			}),
		})
		p.Declared, p.InBatches = p.Changelog, true
		p.Batch.Consumers = []BatchConsumer{
			{"output mode append", false, "no watermark in the group", "spark/latest-wins-aggregate-append"},
			{"output mode update", true, "", "spark/latest-wins-aggregate-update"},
			{"output mode complete", true, "", "spark/latest-wins-complete-order"},
			{"file, Kafka or Delta sink", false, "they append; Kafka takes updates as further records", NotRecorded},
			{"foreachBatch", true, "a MERGE on the key: a batch has one row a key", "spark/latest-wins-aggregate-update"},
			{"aggregate, join", false, "Spark chains no stateful operator behind one in update or complete mode", NotRecorded},
		}
		if mode == "complete" {
			// StateStoreSaveExec asks for another batch in append and update mode only.
			p.Batch.Stages[0].NoData = sim.NeverNoData
		}
		if mode == "append" {
			p.Batch.Refused = &sim.QueryError{
				Class: "org.apache.spark.sql.AnalysisException",
				Message: "[STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION] Invalid streaming output mode: append. This output mode " +
					"is not " +
					"supported for streaming aggregations without watermark on streaming DataFrames/DataSets. SQLSTATE: 42KDE",
				Chain:      []string{"org.apache.spark.sql.AnalysisException"},
				Conditions: []string{OutputModeRefused},
			}
			p.Refused = p.Batch.Refused.Message
		}
		return p
	},
})

// maxBy is the aggregate, Spark's StateStoreSaveExec around max_by and count. It sends one row for every key that a
// batch touched, changed or not (spark latest-wins/aggregate-update), or in complete mode for every key there is (spark
// latest-wins/complete-order). Of equal times the row that comes later wins, and one without a time never does (spark
// latest-wins/aggregate-ties). The watermark is of no account (spark latest-wins/aggregate-late).
//
// An entry's Tag is the row that stands, its Value the number of its state.
type maxBy struct {
	complete bool
	bytes    int // of an entry

	table  *sim.Table
	states slots[maxByState]
	all    []stream.Row // in complete mode: the rows that stand
}

// maxByState is what the aggregate keeps of a key.
type maxByState struct {
	largest stream.Time // extremumOrdering, NullTime for null
	count   int64
}

func (o *maxBy) Batch(c *sim.BatchCtx, rows []stream.Row) {
	c.ByKey(rows, o.table, func(rows []stream.Row) bool {
		o.group(c, rows)
		return true
	})
	if o.complete {
		o.sendAll(c)
	}
}

// group takes the rows of one key in.
func (o *maxBy) group(c *sim.BatchCtx, rows []stream.Row) {
	entry := o.table.Get(rows[0].Key, c.Batch.At)
	state := maxByState{largest: stream.NullTime}
	if entry != nil {
		state = *o.states.at(entry.Value)
	}
	best := -1
	for i := range rows {
		if t := rows[i].Event; t != stream.NullTime && t >= state.largest {
			state.largest, best = t, i
		}
	}
	if entry == nil && best < 0 {
		best = 0 // no row has a time: what is sent has the key alone
	}
	state.count += int64(len(rows))
	for i := range rows {
		if i != best {
			c.Drop(&rows[i], sim.Duplicate)
		}
	}
	c.Progress.RowsUpdated++
	switch {
	case entry == nil:
		c.Emit(&rows[best])
		o.table.Put(rows[0].Key, c.Batch.At, o.states.add(state), rows[best].Tag, 0)
	case best < 0:
		*o.states.at(entry.Value) = state
		c.Again(stream.UpdateAfter, entry.Key, entry.Tag)
	default:
		*o.states.at(entry.Value) = state
		c.Update(entry.Tag, &rows[best])
		o.table.Put(entry.Key, c.Batch.At, entry.Value, rows[best].Tag, 0)
	}
	if !o.complete {
		o.say(c, o.table.Get(rows[0].Key, c.Batch.At))
	}
}

// say tells the row that is sent for a key.
func (o *maxBy) say(c *sim.BatchCtx, e *sim.Entry) {
	s := o.states.at(e.Value)
	c.Output(sim.Output{Tag: e.Tag, Keys: s.largest == stream.NullTime, Event: s.largest, Count: s.count})
}

// sendAll tells the whole result. A key that no row touched is sent as it stands, which changes nothing.
func (o *maxBy) sendAll(c *sim.BatchCtx) {
	c.Progress.RowsOut = int64(o.table.Held())
	if !c.Observed() {
		return
	}
	o.all = o.all[:0]
	o.table.Each(func(e *sim.Entry) { o.all = append(o.all, stream.Row{Key: e.Key, Tag: e.Tag}) })
	for _, row := range c.SortByKey(o.all) {
		o.say(c, o.table.Get(row.Key, c.Batch.At))
	}
}

func (o *maxBy) Snapshot(*sim.BatchCtx) any {
	states := o.states.clone()
	return &states
}

func (o *maxBy) Restore(_ *sim.BatchCtx, snapshot any) {
	o.states = snapshot.(*slots[maxByState]).clone()
}

func (o *maxBy) State(*sim.BatchCtx) sim.State {
	held := o.table.Held()
	return sim.State{Entries: held, LiveKeys: held, Bytes: int64(held * o.bytes)}
}

// Stored visits the state of every key.
func (o *maxBy) Stored(f func(sim.Stored)) {
	o.table.Each(func(e *sim.Entry) {
		s := o.states.at(e.Value)
		f(sim.Stored{Tag: e.Tag, Last: s.largest, Count: s.count})
	})
}

var latestWinsAggregateFacts = []Fact{
	{TopicState, "the latest row of each key, its event time and a count, for ever: the group has no event time, so the " +
		"watermark " +
		"removes nothing", "spark/latest-wins-aggregate-late"},
	{TopicChangelog, "update: one row for every key that the batch touched, changed or " +
		"not", "spark/latest-wins-aggregate-update"},
	{TopicChangelog, "complete: the whole result with each batch", "spark/latest-wins-complete-order"},
	{TopicChangelog, "complete asks for no batch without data, append and update do when the watermark has moved: " +
		"StateStoreSaveExec", NotRecorded},
	{TopicChangelog, "append is refused: there is no watermark in the group (STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION)",
		"spark/latest-wins-aggregate-append"},
	{TopicChangelog, "rows come out in the order of the keys", "spark/latest-wins-aggregate-late"},
	{TopicLate, "no row is late, with or without a watermark", "spark/latest-wins-aggregate-late"},
	waitsForBatch,
	{TopicLatency, "the last version of an event settles with the batch that it arrives " +
		"in", "spark/latest-wins-aggregate-update"},
	{TopicDeterminism, "processing time: closed but for ties; of equal event times the row that comes later wins, " +
		"inside a batch " +
		"and across batches", "spark/latest-wins-aggregate-ties"},
	{TopicDeterminism, "watermarks: closed; they neither drop rows nor remove state", "spark/latest-wins-aggregate-late"},
	{TopicDeterminism, "idleness: closed, as the watermark is not asked", "spark/latest-wins-aggregate-late"},
	{TopicDeterminism, "state TTL: there is none", "spark/latest-wins-aggregate-late"},
	{TopicDeterminism, "source replay: closed for a sink that upserts; a batch that failed is run again and sends the " +
		"same " +
		"rows", "spark/batch-replay-drop-duplicates"},
	callsNoFunction,
	{TopicLoses, "nothing: every key has its latest row in the result", "spark/latest-wins-aggregate-late"},
	{TopicLoses, "a row without event time never wins; a key that has no other is sent with nulls for all columns but " +
		"the " +
		"key", "spark/latest-wins-aggregate-ties"},
	{TopicLeaks, "nothing into a sink that upserts; one that appends keeps a row for each batch that touched the " +
		"key", "spark/latest-wins-aggregate-update"},
}
