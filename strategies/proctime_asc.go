package strategies

import (
	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "proctime-asc",
	Engine: "flink-sql",
	About:  "ROW_NUMBER ordered by processing time, ascending: the first row to arrive, at once",
	Loses: "It leaks one copy each TTL, because the TTL counts from the first row and copies do not extend it; " +
		"Confluent Cloud has no processing time.",
	Facts:  proctimeAscFacts,
	Params: []Param{ttlParam},
	Plan: func(args Args, job Job) Plan {
		ttl := args.Duration("ttl")
		code := job.withProctime("orders") + "\n\n" + ttlOption(ttl) + job.rowNumber("proc ASC")
		if job.changelog() {
			return job.retractPlan(rankQuery{top: 1, ttl: ttl, node: "proc ASC", code: code})
		}
		p := Plan{
			// With mini-batch the node is declared updating though it still emits only +I: flink
			// proctime-asc/mini-batch.
			Changelog: job.topOneMode(!job.MiniBatch.on()),
			Operator:  "StreamExecDeduplicate",
			Node:      job.rankNode(1, "proc ASC"),
			Runtime:   "org.apache.flink.table.runtime.operators.deduplicate.ProcTimeDeduplicateKeepFirstRowFunction",
			Clock:     "processing time",
			TTL:       "the first row; copies do not extend it",
			Leaks:     ByTTL,
			StateTTL:  ttl,
			New: func(c *sim.Ctx) sim.Operator {
				first := keepFirst{state: c.NewTable(ttl), entryBytes: job.keyBytes() + ttlBytes(ttl) + 1}
				if job.MiniBatch.on() {
					return job.MiniBatch.byClock(c, &firstOfBatch{keepFirst: first, rowBytes: job.rowBytes()})
				}
				return &first
			},
			Language: "sql",
			Code:     code,
		}
		if job.MiniBatch.on() {
			p.Runtime = "org.apache.flink.table.runtime.operators.deduplicate." +
				"ProcTimeMiniBatchDeduplicateKeepFirstRowFunction"
		}
		p.StateClass, p.InBatches = perKeyUnless(ttl), job.MiniBatch.on()
		return job.planned(failsOnUpdates(p))
	},
})

// keepFirst emits the first row of a key and drops the others for as long as it remembers the key: Flink's
// ProcTimeDeduplicateKeepFirstRowFunction, and the process table function and DataStream function of the articles.
// State is written by the first row only, so the TTL runs from it: flink proctime-asc/ttl-chain, ptf/ttl-chain.
type keepFirst struct {
	sim.Base
	state      *sim.Table
	entryBytes int
}

func (o *keepFirst) Rows(c *sim.Ctx, rows []stream.Row) {
	seen := o.state.Probe(rows)
	for i := range rows {
		if seen.Get(i) != nil {
			c.Drop(&rows[i], sim.Duplicate)
			continue
		}
		seen.Put(i, 0, rows[i].Tag, 0)
		c.Emit(stream.Insert, &rows[i])
	}
}

func (o *keepFirst) State(c *sim.Ctx) sim.State { return tableState(c, o.state, o.entryBytes) }

// firstOfBatch is keepFirst in batches, Flink's ProcTimeMiniBatchDeduplicateKeepFirstRowFunction: of a batch it takes
// the first row of a key, and handles that at the batch's end: flink proctime-asc/mini-batch.
type firstOfBatch struct {
	keepFirst
	batch    byKey[waiting]
	rowBytes int
}

func (o *firstOfBatch) add(c *sim.Ctx, row *stream.Row) {
	if o.batch.get(row.Key) != nil {
		c.Drop(row, sim.Duplicate)
		return
	}
	c.Hold(row)
	o.batch.add(row.Key, waitingRow(row))
}

func (o *firstOfBatch) finish(c *sim.Ctx, at stream.Time) {
	o.batch.drain(func(row waiting) {
		if o.state.Get(row.key, at) != nil {
			c.DropHeld(row.key, row.tag, sim.Duplicate, at)
			return
		}
		o.state.Put(row.key, at, 0, row.tag, 0)
		c.ReleaseAt(at, stream.Insert, row.key, row.tag, row.wait)
	})
}

func (o *firstOfBatch) State(c *sim.Ctx) sim.State {
	return o.batch.state(c, o.state, o.entryBytes, len(o.batch.values), o.rowBytes)
}

// proctimeAscFacts is what is known of the strategy.
var proctimeAscFacts = []Fact{
	{TopicState, "one Boolean a key: that it has been seen", "proctime-asc/many-keys"},
	{TopicState, "the TTL runs from the first row, by the processing-time clock; copies do not extend it: a key " +
		"lives exactly one TTL", "proctime-asc/ttl-chain"},
	{TopicState, "an expired entry stays in memory until the operator uses its state " +
		"again", "proctime-asc/ttl-physical-cleanup"},
	ignoresHint("state-ttl-hint/hint-proctime-asc"),
	{TopicState, "table.exec.state.ttl is honoured beside the " +
		"hint", "state-ttl-hint/hint-proctime-asc-with-session-ttl"},
	{TopicChangelog, "declared [I], and only +I comes out", "proctime-asc/price-change"},
	{TopicChangelog, "with mini-batch still only +I, yet declared [I,UB,UA,D] and so refused by an append-only " +
		"sink", "proctime-asc/mini-batch"},
	overChangelog("flink-extra/changelog/proctime-asc"),
	{TopicChangelog, "over a changelog a delete of the row that is out puts out the next one of its " +
		"key", "flink-extra/changelog/proctime-asc"},
	{TopicLate, "no lateness test: rows below the watermark are taken", "proctime-asc/late"},
	{TopicLatency, "at once, with the first arrival of a key", "proctime-asc/in-order-dup"},
	{TopicLatency, "with mini-batch when the clock reaches a multiple of the interval, or after " +
		"table.exec.mini-batch.size rows", "proctime-asc/mini-batch-size"},
	commitLatency,
	{TopicDeterminism, "processing time: open; the first to arrive is kept, whatever its event time or price. " +
		"Closed for copies that equal their original", "proctime-asc/out-of-order"},
	noProcessingTime,
	{TopicDeterminism, "watermarks: closed; they are not asked", "proctime-asc/late"},
	{TopicDeterminism, "idleness: closed, as the watermark is not asked", "proctime-asc/late"},
	{TopicDeterminism, "state TTL: open; under steady copies one comes through each TTL", "proctime-asc/ttl-chain"},
	opensReplay,
	callsNoFunction,
	{TopicLoses, "nothing: the first row of each key is in the result, if not the earliest", "proctime-asc/late"},
	{TopicLeaks, "one copy each TTL under steady copies, since they do not extend it", "proctime-asc/ttl-chain"},
	{TopicLeaks, "at exactly one TTL after the first row a copy is new again", "proctime-asc/ttl-at"},
}
