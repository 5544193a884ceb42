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
	Params: []Param{ttlParam},
	Plan: func(args Args, job Job) Plan {
		ttl := args.Duration("ttl")
		p := Plan{
			Changelog: job.topOneMode(!job.MiniBatch.on()),
			Operator:  "StreamExecDeduplicate",
			Node:      job.rankNode(1, "ROWTIME "+job.eventName()+" ASC"),
			Runtime:   "org.apache.flink.table.runtime.operators.deduplicate.RowTimeDeduplicateKeepFirstRowFunction",
			Clock:     "event time",
			TTL:       "the emission; copies do not extend it, and the waiting row has none",
			Leaks:     ByTTL,
			New: func(c *sim.Ctx) sim.Operator {
				if job.MiniBatch.on() {
					return job.MiniBatch.byWatermark(c, newKeepByTime(c, ttl, job).inBatches(job))
				}
				return &keepEarliest{
					state:        c.NewTable(ttl),
					waitingBytes: job.keyBytes() + job.rowBytes(),
					emittedBytes: job.keyBytes() + ttlBytes(ttl) + 1,
					timerBytes:   job.timerBytes(),
				}
			},
			Language: "sql",
			Code: job.ddl("orders") + "\n\n" + ttlOption(ttl) +
				job.rowNumber(job.eventName()+" ASC"),
		}
		if job.MiniBatch.on() {
			// It drops no late row and corrects its result when an earlier row comes: flink rowtime-asc/mini-batch.
			p.Runtime = job.rowtimeRuntime(p.Runtime)
			p.Promise, p.Order = FirstByOrder, []OrderBy{{Column: job.Schema.Event}}
			p.TTL = "the last batch with a row of the key"
			if job.MiniBatch.Compact {
				p.TTL = "the last batch with an earlier row of the key"
			}
		}
		p.StateClass, p.InBatches = perKeyUnless(ttl), job.MiniBatch.on()
		return job.planned(p)
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

// firstOfEvent marks a waiting entry whose row was the first of its event, so that its wait is known.
const firstOfEvent = sim.Marked

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
		c.Release(stream.Insert, e.Key, e.Tag, heldSince(e))
		o.waiting--
		o.state.Rewrite(ref, c.Now(), 0, e.Tag, 0)
	}
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

// heldSince is the arrival of a held row if it was the first of its event, else unknown.
func heldSince(e *sim.Entry) stream.Time {
	if e.Has(firstOfEvent) {
		return e.Written()
	}
	return stream.NullTime
}
