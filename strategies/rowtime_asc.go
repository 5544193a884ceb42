package strategies

import (
	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "rowtime-asc",
	Engine: "flink-sql",
	About:  "ROW_NUMBER ordered by event time, ascending: the earliest row, once the watermark has reached it",
	Loses: "It loses events whose first row arrives behind the watermark, and leaks copies with a newer event time " +
		"after the TTL, which counts from the emission.",
	Facts:  rowtimeAscFacts,
	Params: []Param{ttlParam},
	Plan: func(args Args, job Job) Plan {
		ttl := args.Duration("ttl")
		code := job.ddl("orders") + "\n\n" + ttlOption(ttl) + job.rowNumber(job.eventName()+" ASC")
		if job.changelog() {
			return job.retractPlan(rankQuery{
				top: 1, ttl: ttl, order: []OrderBy{{Column: job.Schema.Event}},
				node: "ROWTIME " + job.eventName() + " ASC", code: code,
			})
		}
		waits := !job.MiniBatch.on() && job.Version.rowtimeAscWaits()
		p := Plan{
			Changelog: job.topOneMode(waits),
			Operator:  "StreamExecDeduplicate",
			Node:      job.rankNode(1, "ROWTIME "+job.eventName()+" ASC"),
			Runtime:   "org.apache.flink.table.runtime.operators.deduplicate.RowTimeDeduplicateKeepFirstRowFunction",
			Clock:     "event time",
			TTL:       "the emission; copies do not extend it, and the waiting row has none",
			Leaks:     ByTTL,
			StateTTL:  ttl,
			New: func(c *sim.Ctx) sim.Operator {
				switch {
				case job.MiniBatch.on():
					return job.MiniBatch.byWatermark(c, newKeepByTime(c, ttl, job).inBatches(job))
				case !waits:
					return newKeepByTime(c, ttl, job)
				}
				return &keepEarliest{
					state:        c.NewTable(ttl),
					waitingBytes: job.keyBytes() + job.rowBytes(),
					emittedBytes: job.keyBytes() + ttlBytes(ttl) + 1,
					timerBytes:   job.timerBytes(),
				}
			},
			Language: "sql",
			Code:     code,
		}
		if !waits {
			// It drops no late row and corrects its result when an earlier row comes: flink rowtime-asc/mini-batch, and
			// without mini-batch FL-01.
			p.Runtime = job.rowtimeRuntime("org.apache.flink.table.runtime.operators.deduplicate.RowTimeDeduplicateFunction")
			p.Promise, p.Order = FirstByOrder, []OrderBy{{Column: job.Schema.Event}}
			switch {
			case !job.MiniBatch.on():
				p.Clock, p.TTL = "event time to compare, no watermark", "the last earlier row of the key"
			case job.MiniBatch.Compact:
				p.TTL = "the last batch with an earlier row of the key"
			default:
				p.TTL = "the last batch with a row of the key"
			}
		}
		p.StateClass, p.InBatches = perKeyUnless(ttl), job.MiniBatch.on()
		return job.planned(failsOnUpdates(p))
	},
})

// keepEarliest is Flink's RowTimeDeduplicateKeepFirstRowFunction. An entry is pinned while its row waits for the
// watermark; once emitted only the key is kept, and the TTL runs from there: flink
// rowtime-asc/ttl-chain-newer-rowtime, rowtime-asc/ttl-does-not-drop-waiting-row.
type keepEarliest struct {
	sim.Base
	state   *sim.Table
	waiting int

	waitingBytes, emittedBytes, timerBytes int
}

// What a waiting entry remembers of its row for the ledger: that it was the first of its event, and that it is the only
// one.
const (
	firstOfEvent = sim.Marked
	loneInEvent  = sim.Marked2
)

func (o *keepEarliest) Rows(c *sim.Ctx, rows []stream.Row) {
	known := o.state.Probe(rows)
	watermark := c.Watermark()
	for i := range rows {
		row := &rows[i]
		// Lateness is tested before duplication, and strictly: a row at the watermark is taken. flink rowtime-asc/late
		if row.Event < watermark {
			c.Drop(row, sim.Late)
			continue
		}
		before := known.Get(i)
		switch {
		case before == nil:
			o.waiting++
		case before.Has(sim.Pinned) && int64(row.Event) < before.Value:
			c.DropHeld(row.Key, before.Tag, sim.Replaced, row.Arrival)
			c.ForgetEventTimer()
		default:
			c.Drop(row, sim.Duplicate)
			continue
		}
		flags := sim.Pinned
		if row.First {
			flags |= firstOfEvent
		}
		if row.Lone {
			flags |= loneInEvent
		}
		c.Hold(row)
		c.EventTimer(row.Event, known.Put(i, int64(row.Event), row.Tag, flags))
	}
}

func (o *keepEarliest) EventTimer(c *sim.Ctx, at stream.Time, due []sim.Ref) {
	for _, ref := range due {
		e := o.state.At(ref)
		if e == nil || !e.Has(sim.Pinned) || e.Value != int64(at) {
			continue // an earlier row took the place of the one this timer was for
		}
		c.ForgetEventTimer()
		c.Release(stream.Insert, e.Key, e.Tag, waitOf(e))
		o.waiting--
		o.state.Rewrite(ref, c.Now(), 0, e.Tag, 0)
	}
}

// Restore registers the timers of the waiting rows. The operator knows no watermark until the next one comes, so that a
// row behind the one of the checkpoint is late no longer.
func (o *keepEarliest) Restore(c *sim.Ctx, _ any) {
	o.state.EachPinned(func(ref sim.Ref, e *sim.Entry) {
		o.waiting++
		c.EventTimer(stream.Time(e.Value), ref)
	})
}

func (o *keepEarliest) State(c *sim.Ctx) sim.State {
	held := o.state.Held()
	return sim.State{
		Entries: held,
		Named: map[string]int{
			"already-emitted-state-boolean": held - o.waiting,
			"waiting-to-emit-on-timer":      o.waiting,
		},
		LiveKeys: o.state.Live(c.Now()),
		Bytes:    int64(o.waiting*(o.waitingBytes+o.timerBytes) + (held-o.waiting)*o.emittedBytes),
	}
}

// waitOf is the wait of the row of a pinned entry.
func waitOf(e *sim.Entry) sim.Wait {
	w := sim.Wait{Since: stream.NullTime, Lone: e.Has(loneInEvent)}
	if e.Has(firstOfEvent) {
		w.Since = e.Written()
	}
	return w
}

// rowtimeAscFacts is what is known of the strategy.
var rowtimeAscFacts = []Fact{
	{TopicState, "while a key waits for the watermark: its earliest row and one event-time timer; once emitted: " +
		"one Boolean that says so", "rowtime-asc/out-of-order"},
	{TopicState, "without a TTL that Boolean is kept for ever: per-key state; with one it lives from the " +
		"emission, by the processing-time clock, and copies do not extend " +
		"it", "rowtime-asc/ttl-chain-newer-rowtime"},
	{TopicState, "the waiting row has no TTL: a key lives from its first row to its emission, however long that " +
		"takes, and one TTL more", "rowtime-asc/ttl-does-not-drop-waiting-row"},
	{TopicState, "an expired entry stays in memory until the operator uses its state " +
		"again", "rowtime-asc/ttl-physical-cleanup"},
	ignoresHint("state-ttl-hint/hint-rowtime-asc-newer-rowtime"),
	confluentTTL,
	{TopicChangelog, "declared [I] into every sink, and only +I comes out", "rowtime-asc/append-out-of-order"},
	{TopicChangelog, "with mini-batch declared [I,UB,UA,D]: an earlier row corrects what is out, and an " +
		"append-only sink refuses the query", "rowtime-asc/mini-batch"},
	{TopicChangelog, "a row number kept in the result is the constant 1 and changes " +
		"nothing", "rowtime-asc/with-rn-late"},
	{TopicChangelog, "a second sort column, even as a mere tie-break, makes it a Rank: no wait, no late drops, " +
		"and +U in a plan declared insert-only: see nontime", "rowtime-asc-tiebreak/out-of-order"},
	{TopicChangelog, "an interval join behind it gets each order once, with its time attribute " +
		"intact", "downstream/rowtime-asc-then-interval-join"},
	overChangelog("flink-extra/changelog/rowtime-asc"),
	{TopicLate, "a row is late when its time is strictly below the watermark; a row at the watermark is " +
		"taken", "rowtime-asc/late"},
	{TopicLate, "lateness is tested before duplication: numLateRecordsDropped counts late copies, which are " +
		"harmless, with late firsts, which are lost; copies in time of an emitted key do not count at " +
		"all", "rowtime-asc/late"},
	{TopicLate, "with mini-batch no row is late", "rowtime-asc/mini-batch"},
	{TopicLatency, "a row comes out when the watermark reaches its time: the watermark's delay, and the wait for " +
		"a row that moves it; no watermark, no output", "rowtime-asc/no-watermark"},
	{TopicLatency, "a row at the watermark comes out with the next watermark that advances, not " +
		"before", "rowtime-asc/equal-watermark-after-emission"},
	{TopicLatency, "rows released by one watermark come out in the order of their " +
		"times", "rowtime-asc/emission-order"},
	{TopicLatency, "with mini-batch a batch ends with the watermark that reaches the end of an interval, " +
		"whatever the clock says", "rowtime-asc/mini-batch-boundary"},
	{TopicLatency, "over a changelog at once: a Rank does not wait for the " +
		"watermark", "flink-extra/changelog/rowtime-asc"},
	commitLatency,
	{TopicDeterminism, "processing time: closed for the choice of the row, which is the earliest by event time " +
		"whatever the order of arrival; of equal times the first arrival is kept", "rowtime-asc/ties"},
	{TopicDeterminism, "watermarks: open; a row that was in time in one run is late in " +
		"another", "rowtime-asc/out-of-order"},
	opensIdleness,
	{TopicDeterminism, "state TTL: open; it runs by processing time, so a replay in haste expires " +
		"less", "rowtime-asc/ttl-chain-newer-rowtime"},
	opensReplay,
	callsNoFunction,
	{TopicLoses, "any row strictly below the watermark, the only row of its key among them", "rowtime-asc/late"},
	{TopicLoses, "a key whose first row is still waiting when no watermark comes any more: it is held, not " +
		"emitted", "rowtime-asc/no-watermark"},
	{TopicLeaks, "after the TTL a copy at or above the watermark comes out again; one that is re-stamped with " +
		"each retry leaks once each TTL", "rowtime-asc/ttl-at-newer-rowtime"},
	{TopicLeaks, "not a copy with its old time: after the TTL the watermark still stops " +
		"it", "rowtime-asc/ttl-expired-duplicate-is-late"},
}
