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
	Params: []Param{ttlParam},
	Plan: func(args Args, job Job) Plan {
		ttl := args.Duration("ttl")
		p := Plan{
			Changelog: job.topOneMode(false),
			Operator:  "StreamExecDeduplicate",
			Node:      job.rankNode(1, "ROWTIME "+job.eventName()+" DESC"),
			Runtime:   "org.apache.flink.table.runtime.operators.deduplicate.RowTimeDeduplicateFunction",
			Clock:     "event time to compare, no watermark",
			TTL:       "the last row that was not older; older rows do not extend it",
			Leaks:     ByTTL,
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
			Code: job.ddl("orders") + "\n\n" + ttlOption(ttl) +
				job.rowNumber(job.eventName()+" DESC"),
		}
		p.Runtime = job.rowtimeRuntime(p.Runtime)
		p.StateClass, p.InBatches = perKeyUnless(ttl), job.MiniBatch.on()
		return job.planned(p)
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
			c.Update(before.Tag, before.Written(), row)
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
