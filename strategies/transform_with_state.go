package strategies

import (
	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "transform-with-state",
	Engine: "spark",
	About:  "transformWithState with a ValueState that has a processing-time TTL: the first row of a key",
	Loses: "It leaks copies after the TTL: one each TTL if copies only read the state, none under steady copies if they " +
		"write it. " +
		"It needs the RocksDB state store, and a null key fails the query.",
	Facts: transformWithStateFacts,
	Params: []Param{
		{Name: "ttl", Kind: Duration, Default: "1h", Expires: true, About: "TTL of the state, by the timestamp of the batch"},
		{Name: "copies", Kind: Enum, Values: []string{"read", "update"}, Default: "read",
			About: "what a copy does with the state: read it, or write it again, which starts the TTL anew"},
		{Name: "state_store", Kind: Enum, Values: []string{"rocksdb", "hdfs"}, Default: "rocksdb",
			About: "spark.sql.streaming.stateStore.providerClass; hdfs, Spark's own default, is refused"},
	},
	Check: func(args Args, _ stream.Schema) string {
		if args.Duration("ttl") == 0 {
			return "ttl must be more than 0: TTLConfig takes no other"
		}
		return ""
	},
	Plan: func(args Args, job Job) Plan {
		ttl, writes := args.Duration("ttl"), args.Text("copies") == "update"
		without := [2]stream.Time{sim.NoWatermark, sim.NoWatermark}
		// The key, and the value with the time at which it expires.
		bytes := unsafeRowBytes(job.pick(job.Schema.Key)) +
			unsafeRowBytes([]stream.Column{{Type: stream.Int}, {Type: stream.Int}})
		p := Plan{
			Changelog:  stream.InsertOnly,
			Declared:   stream.InsertOnly,
			Operator:   "TransformWithState",
			Runtime:    "org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec",
			StateClass: TimeBounded,
			Clock:      "processing time: the timestamp of the batch",
			TTL:        "the first row; copies only read the state and do not extend it",
			Leaks:      ByTTL,
			StateTTL:   ttl,
			InBatches:  true,
			Language:   "python",
			Code:       transformWithStateCode(args, job),
			Batch: job.stateful(without, "transformWithStateExec", func(c *sim.BatchCtx) sim.BatchOperator {
				return &stateTTL{ttl: ttl, writes: writes, table: c.NewTable(), bytes: bytes}
			}),
		}
		p.Batch.Stages[0].NoData, p.Batch.Consumers = sim.EachTrigger, appendConsumers
		if writes {
			p.TTL = "the last row: copies write the state, and every write starts the TTL anew"
		}
		if args.Text("state_store") == "hdfs" {
			p.Batch.Refused = &sim.QueryError{
				Class: "org.apache.spark.sql.execution.streaming.state.StateStoreBackendNotSupportedForTWSException",
				Message: "[UNSUPPORTED_FEATURE.STORE_BACKEND_NOT_SUPPORTED_FOR_TWS] The feature is not supported: Store backend " +
					"org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider is not supported by " +
					"TransformWithState operator. Please use RocksDBStateStoreProvider. SQLSTATE: 0A000",
				Chain: []string{"org.apache.spark.sql.streaming.StreamingQueryException",
					"org.apache.spark.sql.execution.streaming.state.StateStoreBackendNotSupportedForTWSException"},
				Conditions: []string{"STREAM_FAILED", "UNSUPPORTED_FEATURE.STORE_BACKEND_NOT_SUPPORTED_FOR_TWS"},
			}
			p.Refused = p.Batch.Refused.Message
		}
		return p
	},
})

// stateTTL is transformWithState in TimeMode.ProcessingTime with one ValueState that has a TTL: Spark's
// TransformWithStateExec. Its clock is the timestamp of the batch: what was written at t is gone for every batch at or
// after t + TTL (spark state-ttl/expiry-tie). Reads do not refresh it, every write does (spark state-ttl/read,
// state-ttl/update). It leaves the store at the end of the next batch of any kind, and counts as removed unless it was
// written anew in that batch (spark state-ttl/cleanup).
//
// An entry's Value counts the copies, the time it was written at is that of the batch. It has one timer as long as it
// lives.
type stateTTL struct {
	ttl    stream.Time
	writes bool
	bytes  int // of an entry

	table  *sim.Table
	timers sim.Wheel[sim.Ref]
}

func (o *stateTTL) Batch(c *sim.BatchCtx, rows []stream.Row) {
	failed := false
	c.ByKey(rows, o.table, func(rows []stream.Row) bool {
		if failed = c.NullKey(&rows[0]); failed {
			c.Fail(nullKeyTWS)
		} else {
			o.group(c, rows)
		}
		return !failed
	})
	if failed {
		return
	}
	o.timers.Advance(c.Batch.At, func(_ stream.Time, due []sim.Ref) {
		for _, ref := range due {
			if until := o.table.At(ref).Written() + o.ttl; until > c.Batch.At {
				o.timers.Add(until, ref)
				continue
			}
			c.Progress.RowsRemoved++
			o.table.Remove(ref)
		}
	})
}

// group handles the rows of one key.
func (o *stateTTL) group(c *sim.BatchCtx, rows []stream.Row) {
	entry := o.table.Get(rows[0].Key, c.Batch.At)
	known, written, count := entry != nil && entry.Written()+o.ttl > c.Batch.At, false, int64(0)
	if known {
		count = entry.Value
	}
	for i := range rows {
		row := &rows[i]
		if !known {
			known, written, count = true, true, 0
			c.Progress.RowsUpdated++
			c.Emit(row)
			c.Output(sim.Output{Tag: row.Tag, Event: row.Event, Why: "first"})
			continue
		}
		if o.writes {
			written = true
			count++
			c.Progress.RowsUpdated++
		}
		c.Drop(row, sim.Duplicate)
		said := count
		if !o.writes {
			said++
		}
		c.Output(sim.Output{Tag: row.Tag, Event: row.Event, Why: "suppressed", Count: said})
	}
	if written {
		ref := o.table.Put(rows[0].Key, c.Batch.At, count, rows[0].Tag, sim.Pinned)
		if entry == nil {
			o.timers.Add(c.Batch.At+o.ttl, ref)
		}
	}
}

// nullKeyTWS is how the query ends on a null grouping key: spark state-ttl/null-key.
var nullKeyTWS = &sim.QueryError{
	Class:   "org.apache.spark.SparkException",
	Message: "[INTERNAL_ERROR_TWS] Implicit key not found in state store for stateName=seen SQLSTATE: XX000",
	Chain: []string{"org.apache.spark.sql.streaming.StreamingQueryException", "org.apache.spark.SparkException",
		"org.apache.spark.SparkException"},
	Conditions: []string{"STREAM_FAILED", "INTERNAL_ERROR_TWS"},
}

func (o *stateTTL) Snapshot(*sim.BatchCtx) any { return nil }

func (o *stateTTL) Restore(*sim.BatchCtx, any) {
	o.table.EachPinned(func(ref sim.Ref, e *sim.Entry) { o.timers.Add(e.Written()+o.ttl, ref) })
}

func (o *stateTTL) State(*sim.BatchCtx) sim.State {
	held := o.table.Held()
	return sim.State{Entries: held, LiveKeys: held, Bytes: int64(held * o.bytes)}
}

// Stored visits the state of every key.
func (o *stateTTL) Stored(f func(sim.Stored)) {
	o.table.Each(func(e *sim.Entry) { f(sim.Stored{Tag: e.Tag, Count: e.Value}) })
}

var transformWithStateFacts = []Fact{
	{TopicState, "one value a key, with the moment at which it expires, and an index by that moment; numRowsTotal " +
		"counts the values " +
		"alone", "spark/state-ttl-cleanup"},
	{TopicState, "the clock is the timestamp of the batch: what was written at t is gone for every batch from exactly t " +
		"+ TTL " +
		"on", "spark/state-ttl-expiry-tie"},
	{TopicState, "read: copies that only read the state do not extend it", "spark/state-ttl-read"},
	{TopicState, "update: every write starts the TTL anew", "spark/state-ttl-update"},
	{TopicState, "expired values leave the store at the end of the next batch of any kind, not before; numRowsRemoved " +
		"does not " +
		"count those that were written anew in that batch", "spark/state-ttl-cleanup"},
	{TopicState, "numRowsUpdated counts writes, not keys", "spark/state-ttl-update"},
	{TopicState, "it runs on RocksDB alone; Spark's default state store is refused " +
		"(STORE_BACKEND_NOT_SUPPORTED_FOR_TWS)", "spark/state-ttl-hdfs-provider"},
	{TopicState, "by the system clock it is the same", "spark/state-ttl-real-clock-read"},
	{TopicChangelog, "append-only: the first row of a key goes out with all its columns, nothing is taken " +
		"back", "spark/state-ttl-read"},
	{TopicChangelog, "a batch comes out in the order of the keys, rows of a key in the order in which they " +
		"came", "spark/state-ttl-read"},
	{TopicLate, "no lateness test, as there is no watermark", "spark/state-ttl-read"},
	waitsForBatch,
	{TopicLatency, "with batches without data on, TimeMode.ProcessingTime runs one at every trigger, with or without an " +
		"interval: " +
		"13 in 12 s after one row; 1 with them off", NotRecorded},
	{TopicDeterminism, "processing time: open; the first to arrive is kept, and the TTL goes by the clock of the " +
		"batches", "spark/state-ttl-expiry-tie"},
	{TopicDeterminism, "watermarks: closed; they are not asked", "spark/state-ttl-read"},
	{TopicDeterminism, "idleness: closed, as the watermark is not asked", "spark/state-ttl-read"},
	{TopicDeterminism, "state TTL: open; it runs by processing time, so a replay in haste expires " +
		"less", "spark/state-ttl-read"},
	{TopicDeterminism, "source replay: closed for a batch that failed, which is run again with the same id, rows and " +
		"timestamp; " +
		"what the sink had written by then is written twice", "spark/batch-replay-drop-duplicates"},
	{TopicDeterminism, "non-deterministic functions: none in the function; yours is as deterministic as its " +
		"Python", NotRecorded},
	{TopicLoses, "nothing: the first row of each key is in the result, if not the earliest", "spark/state-ttl-read"},
	{TopicLoses, "the whole query on a null key (INTERNAL_ERROR_TWS), which flatMapGroupsWithState " +
		"takes", "spark/state-ttl-null-key"},
	{TopicLeaks, "read: one copy each TTL under steady copies", "spark/state-ttl-read"},
	{TopicLeaks, "update: the first copy that comes a TTL or more after the row before it", "spark/state-ttl-update"},
}
