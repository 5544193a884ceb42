package strategies

import (
	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "rowtime-desc",
	Engine: "flink-sql",
	About:  "ROW_NUMBER ordered by event time, descending: the latest row, as updates, at once",
	Loses: "It loses nothing and drops no late row, but every copy that is not older becomes an update; after the TTL " +
		"even an older row becomes the current one.",
	Facts:  rowtimeDescFacts,
	Params: []Param{ttlParam},
	Plan: func(args Args, job Job) Plan {
		ttl := args.Duration("ttl")
		code := job.ddl("orders") + "\n\n" + ttlOption(ttl) + job.rowNumber(job.eventName()+" DESC")
		if job.changelog() {
			return job.retractPlan(rankQuery{
				top: 1, ttl: ttl, order: []OrderBy{{Column: job.Schema.Event, Desc: true}},
				node: "ROWTIME " + job.eventName() + " DESC", code: code,
			})
		}
		p := Plan{
			Changelog: job.topOneMode(false),
			Operator:  "StreamExecDeduplicate",
			Node:      job.rankNode(1, "ROWTIME "+job.eventName()+" DESC"),
			Runtime:   "org.apache.flink.table.runtime.operators.deduplicate.RowTimeDeduplicateFunction",
			Clock:     "event time to compare, no watermark",
			TTL:       "the last row that was not older; older rows do not extend it",
			Leaks:     ByTTL,
			StateTTL:  ttl,
			Promise:   LastByEvent,
			New: func(c *sim.Ctx) sim.Operator {
				last := newKeepByTime(c, ttl, job)
				last.last = true
				if job.MiniBatch.on() {
					return job.MiniBatch.byWatermark(c, last.inBatches(job))
				}
				return last
			},
			Language: "sql",
			Code:     code,
		}
		p.Runtime = job.rowtimeRuntime(p.Runtime)
		p.StateClass, p.InBatches = perKeyUnless(ttl), job.MiniBatch.on()
		return job.planned(failsOnUpdates(p))
	},
})

// keepByTime is Flink's RowTimeDeduplicateFunction: it corrects its result when a better row comes, never waits and
// never tests for lateness: flink rowtime-desc/late. Keeping the last row, an equal time replaces, even by an identical
// row: rowtime-desc/ties, rowtime-desc/in-order-dup.
type keepByTime struct {
	sim.Base
	state      *sim.Table
	last       bool        // keep the last row, not the first
	first      stream.Kind // kind of the first row of a key
	entryBytes int
}

func newKeepByTime(c *sim.Ctx, ttl stream.Time, job Job) *keepByTime {
	return &keepByTime{
		state: c.NewTable(ttl), first: job.firstKind(), entryBytes: job.keyBytes() + ttlBytes(ttl) + job.rowBytes(),
	}
}

func (o *keepByTime) Rows(c *sim.Ctx, rows []stream.Row) {
	kept := o.state.Probe(rows)
	for i := range rows {
		row := &rows[i]
		before := kept.Get(i)
		switch {
		case before == nil:
			c.Emit(o.first, row)
		case o.better(int64(row.Event), before.Value):
			c.Update(before.Tag, row)
		default:
			c.Drop(row, sim.Duplicate)
			continue
		}
		kept.Put(i, int64(row.Event), row.Tag, 0)
	}
}

func (o *keepByTime) better(event, kept int64) bool {
	if o.last {
		return kept <= event
	}
	return event < kept
}

func (o *keepByTime) State(c *sim.Ctx) sim.State { return tableState(c, o.state, o.entryBytes) }

// rowtimeDescFacts is what is known of the strategy.
var rowtimeDescFacts = []Fact{
	{TopicState, "the current row of each key, whole; no timer", "rowtime-desc/many-keys"},
	{TopicState, "a row at the same or a later time restarts the TTL, which runs by the processing-time clock; a " +
		"key that is updated often enough never expires", "rowtime-desc/ttl-chain"},
	{TopicState, "an older row does not restart the TTL", "rowtime-desc/ttl-older-row"},
	ignoresHint("state-ttl-hint/hint-rowtime-desc"),
	confluentTTL,
	{TopicChangelog, "declared [I,UB,UA,D] for a retract sink, [I,UA,D] for an upsert sink; an append-only sink " +
		"refuses it. From an insert-only source it never sends -D", "rowtime-desc/upsert-late"},
	{TopicChangelog, "each row that is not older is an update, even one that equals what is " +
		"stored", "rowtime-desc/in-order-dup"},
	{TopicChangelog, "wrapped in TO_CHANGELOG it is declared [I], and every -U and +U is a " +
		"row", "rowtime-desc-to-changelog/ttl-chain"},
	{TopicChangelog, "a second sort column makes it a Rank that is declared insert-only, DESC or not, and sends " +
		"+U without -U: see nontime", "rowtime-desc-tiebreak/price-change"},
	{TopicChangelog, "a window aggregate takes its updates and counts each order " +
		"once", "downstream/rowtime-desc-then-window-count"},
	overChangelog("flink-extra/changelog/rowtime-desc"),
	{TopicChangelog, "over a changelog a row that equals what is out sends nothing: of rows that tie the first " +
		"arrival stays", "flink-extra/changelog/rowtime-desc"},
	{TopicLate, "no lateness test: a row far behind the watermark is compared like any other, and " +
		"numLateRecordsDropped stays 0", "rowtime-desc/late"},
	{TopicLatency, "at once, with the row that causes the change; the watermark is not asked", "rowtime-desc/late"},
	{TopicLatency, "with mini-batch when the batch ends, which is with a watermark that reaches the end of an " +
		"interval", "rowtime-desc/mini-batch"},
	commitLatency,
	{TopicDeterminism, "processing time: open for equal times, of which the last arrival wins; the changes on " +
		"the way depend on the order of arrival, too", "rowtime-desc/ties"},
	{TopicDeterminism, "watermarks: closed; they are not asked", "rowtime-desc/late"},
	{TopicDeterminism, "idleness: closed, as the watermark is not asked", "rowtime-desc/late"},
	{TopicDeterminism, "state TTL: open; after it even an older row becomes the current " +
		"one", "rowtime-desc/ttl-older-row"},
	opensReplay,
	callsNoFunction,
	{TopicLoses, "nothing: every key is in the result", "rowtime-desc/late"},
	{TopicLoses, "the latest version of a key, if the TTL runs out and an older row comes: the older one becomes " +
		"the current one", "rowtime-desc/ttl-older-row"},
	{TopicLeaks, "in an upsert or retracting result nothing but a key that rested for one TTL, which comes out " +
		"as +I again", "rowtime-desc/ttl-at"},
	{TopicLeaks, "whatever stores each change it is handed as a row holds every copy: TO_CHANGELOG puts out 11 " +
		"rows for 3 keys", "rowtime-desc-to-changelog/in-order-dup"},
}
