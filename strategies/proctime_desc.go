package strategies

import (
	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "proctime-desc",
	Engine: "flink-sql",
	About:  "ROW_NUMBER ordered by processing time, descending: the last row to arrive, as updates",
	Loses: "It loses nothing, but a copy becomes an update: with a TTL always, without one as soon as it differs; " +
		"a key that rests for the TTL comes out again as an insert.",
	Facts:  proctimeDescFacts,
	Params: []Param{ttlParam},
	Plan: func(args Args, job Job) Plan {
		ttl := args.Duration("ttl")
		code := job.withProctime("orders") + "\n\n" + ttlOption(ttl) + job.rowNumber("proc DESC")
		if job.changelog() {
			return job.retractPlan(rankQuery{top: 1, ttl: ttl, node: "proc DESC", code: code})
		}
		p := Plan{
			Changelog: job.topOneMode(false),
			Operator:  "StreamExecDeduplicate",
			Node:      job.rankNode(1, "proc DESC"),
			Runtime:   "org.apache.flink.table.runtime.operators.deduplicate.ProcTimeDeduplicateKeepLastRowFunction",
			Clock:     "processing time",
			TTL:       "the last row of the key",
			Leaks:     ByTTL,
			StateTTL:  ttl,
			New: func(c *sim.Ctx) sim.Operator {
				stateless := job.Sink == Upsert && job.InsertInsensitive
				last := keepLastArrived{
					state: c.NewTable(ttl), ttl: ttl, entryBytes: job.keyBytes() + ttlBytes(ttl) + job.rowBytes(),
				}
				switch {
				case job.MiniBatch.on():
					return job.MiniBatch.byClock(c, &lastOfBatch{
						keepLastArrived: last, allUpdates: stateless, rowBytes: job.rowBytes(),
					})
				case stateless:
					return allUpdates{}
				}
				return &last
			},
			Language: "sql",
			Code:     code,
		}
		if job.MiniBatch.on() {
			p.Runtime = "org.apache.flink.table.runtime.operators.deduplicate." +
				"ProcTimeMiniBatchDeduplicateKeepLastRowFunction"
		}
		p.StateClass, p.InBatches = perKeyUnless(ttl), job.MiniBatch.on()
		return job.planned(failsOnUpdates(p))
	},
})

// updated marks an entry whose key has emitted an update. Heap state then holds the very row whose kind the update has
// set to +U, and the equality test, which takes in the kind, never holds again: flink proctime-desc/equal-after-update.
const updated = sim.Marked

// keepLastArrived is Flink's ProcTimeDeduplicateKeepLastRowFunction.
type keepLastArrived struct {
	sim.Base
	state      *sim.Table
	ttl        stream.Time
	entryBytes int
}

func (o *keepLastArrived) Rows(c *sim.Ctx, rows []stream.Row) {
	last := o.state.Probe(rows)
	for i := range rows {
		row := &rows[i]
		before := last.Get(i)
		content := int64(c.Records.Content(row.Tag))
		switch {
		case before == nil:
			last.Put(i, content, row.Tag, 0)
			c.Emit(stream.Insert, row)
		case o.swallows(before, content):
			c.Drop(row, sim.Duplicate)
		default:
			c.Update(before.Tag, row)
			last.Put(i, content, row.Tag, updated)
		}
	}
}

// swallows reports whether a row is dropped as equal to the last one. Without a TTL it is: flink
// proctime-desc/in-order-dup; with one it is an update that restarts the TTL: proctime-desc/ttl-chain.
func (o *keepLastArrived) swallows(before *sim.Entry, content int64) bool {
	return o.ttl == 0 && before.Value == content && !before.Has(updated)
}

func (o *keepLastArrived) State(c *sim.Ctx) sim.State { return tableState(c, o.state, o.entryBytes) }

// allUpdates sends every row on as +U and keeps no state: what is left of the operator when neither -U nor the
// difference of +I and +U is wanted: flink proctime-desc/upsert-insert-insensitive.
type allUpdates struct{ sim.Base }

func (allUpdates) Rows(c *sim.Ctx, rows []stream.Row) {
	for i := range rows {
		c.Emit(stream.UpdateAfter, &rows[i])
	}
}

func (allUpdates) State(*sim.Ctx) sim.State { return sim.State{} }

// lastOfBatch is keepLastArrived in batches, Flink's ProcTimeMiniBatchDeduplicateKeepLastRowFunction: of a batch it
// takes the last row of a key, and handles that at the batch's end: flink proctime-desc/mini-batch.
type lastOfBatch struct {
	keepLastArrived
	batch      byKey[waiting]
	allUpdates bool // see there
	rowBytes   int
}

func (o *lastOfBatch) add(c *sim.Ctx, row *stream.Row) {
	c.Hold(row)
	if earlier := o.batch.get(row.Key); earlier != nil {
		c.DropHeld(row.Key, earlier.tag, sim.Replaced, row.Arrival)
		*earlier = waitingRow(row)
		return
	}
	o.batch.add(row.Key, waitingRow(row))
}

func (o *lastOfBatch) finish(c *sim.Ctx, at stream.Time) {
	o.batch.drain(func(row waiting) {
		if o.allUpdates {
			c.ReleaseAt(at, stream.UpdateAfter, row.key, row.tag, row.wait)
			return
		}
		before := o.state.Get(row.key, at)
		content := int64(c.Records.Content(row.tag))
		switch {
		case before == nil:
			o.state.Put(row.key, at, content, row.tag, 0)
			c.ReleaseAt(at, stream.Insert, row.key, row.tag, row.wait)
		case o.swallows(before, content):
			c.DropHeld(row.key, row.tag, sim.Duplicate, at)
		default:
			c.ReleaseUpdate(at, row.key, before.Tag, row.tag)
			o.state.Put(row.key, at, content, row.tag, updated)
		}
	})
}

func (o *lastOfBatch) State(c *sim.Ctx) sim.State {
	return o.batch.state(c, o.state, o.entryBytes, len(o.batch.values), o.rowBytes)
}

// proctimeDescFacts is what is known of the strategy.
var proctimeDescFacts = []Fact{
	{TopicState, "the last row of each key, whole", "proctime-desc/many-keys"},
	{TopicState, "with a TTL each row of a key restarts it: a key that is seen often enough never " +
		"expires", "proctime-desc/ttl-chain"},
	{TopicState, "with table.exec.deduplicate.insert-update-after-sensitive-enabled = false and an upsert sink " +
		"no state is kept at all: every row goes out as +U", "proctime-desc/upsert-insert-insensitive"},
	{TopicState, "an expired entry stays in memory until the operator uses its state " +
		"again", "proctime-desc/ttl-physical-cleanup"},
	confluentTTL,
	{TopicChangelog, "declared [I,UB,UA,D], for an upsert sink [I,UA,D]; an append-only sink refuses " +
		"it", "proctime-desc/upsert-ttl-chain"},
	{TopicChangelog, "without a TTL a row equal to the stored one is swallowed, but only while its key has sent " +
		"no update", "proctime-desc/in-order-dup"},
	{TopicChangelog, "from the first update of a key on every row of it is sent, equal or not: in the heap state " +
		"backend the equality test sees the changed row kind", "proctime-desc/equal-after-update"},
	{TopicChangelog, "with a TTL an equal row is an update, too", "proctime-desc/ttl-chain"},
	overChangelog("flink-extra/changelog/proctime-desc"),
	{TopicChangelog, "over a changelog the first arrival is kept, as ordered ASC: processing time is NULL in all " +
		"rows there, so they tie", "flink-extra/changelog/proctime-desc"},
	{TopicLate, "no lateness test: rows below the watermark are taken", "proctime-desc/late"},
	{TopicLatency, "at once, with every row that is not swallowed", "proctime-desc/price-change"},
	{TopicLatency, "with mini-batch when the clock reaches a multiple of the interval, the last row of the batch " +
		"alone; a checkpoint ends a batch", "proctime-desc/mini-batch-checkpoint"},
	commitLatency,
	{TopicDeterminism, "processing time: open; the last to arrive is kept, also if it is older by event " +
		"time", "proctime-desc/out-of-order"},
	noProcessingTime,
	{TopicDeterminism, "watermarks: closed; they are not asked", "proctime-desc/late"},
	{TopicDeterminism, "idleness: closed, as the watermark is not asked", "proctime-desc/late"},
	{TopicDeterminism, "state TTL: open; whether a key comes out as +U or as +I again depends on " +
		"it", "proctime-desc/ttl-refresh"},
	opensReplay,
	callsNoFunction,
	{TopicLoses, "nothing: the last row to arrive of each key is in the result", "proctime-desc/late"},
	{TopicLoses, "a NULL key fails the job at an upsert sink with that key, by " +
		"default", "proctime-desc/upsert-null-key"},
	{TopicLeaks, "a key that rested for one TTL comes out as +I again", "proctime-desc/ttl-at"},
	{TopicLeaks, "whatever stores each change it is handed as a row holds every copy that is an " +
		"update", "proctime-desc/ttl-chain"},
}
