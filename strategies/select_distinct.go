package strategies

import (
	"fmt"

	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "select-distinct",
	Engine: "flink-sql",
	About:  "SELECT DISTINCT over the whole row: removes exact copies only",
	Loses: "It lets through every copy that differs in any column, and with a TTL sends -U/+U for each exact copy to " +
		"keep downstream state alive.",
	Params: []Param{ttlParam, hintParam},
	Plan: func(args Args, job Job) Plan {
		p := distinctPlan(args, job, job.allColumns(), job.rowBytes())
		p.Key, p.Leaks = ByRow, ByContent
		if job.Sink == Upsert {
			// flink _acceptance.json, select-distinct into upsert-sink
			p.Refused = "the query has an upsert key that differs from the primary key of the sink table; " +
				"an ON CONFLICT clause is needed"
		}
		return p
	},
})

// distinctPlan plans SELECT DISTINCT of some columns: a GroupAggregate without aggregates.
func distinctPlan(args Args, job Job, columns string, keyBytes int) Plan {
	ttl := args.Duration("ttl")
	if hint := args.Duration("hint"); hint > 0 {
		// The STATE_TTL hint wins over table.exec.state.ttl: flink select-distinct/state-ttl-hint-over-config.
		ttl = hint
	}
	p := Plan{
		// Declared updating with or without a TTL.
		Changelog: stream.Mode(stream.Insert, stream.UpdateBefore, stream.UpdateAfter),
		Operator:  "StreamExecGroupAggregate",
		Runtime:   "org.apache.flink.table.runtime.operators.aggregate.GroupAggFunction",
		Clock:     "none",
		TTL:       "the last copy: each one extends it, so a key seen often enough never expires",
		Leaks:     ByTTL,
		New: func(c *sim.Ctx) sim.Operator {
			return &distinct{state: c.NewTable(ttl), ttl: ttl, entryBytes: keyBytes + ttlBytes(ttl)}
		},
		Language: "sql",
		Code: job.ddl("orders") + "\n\n" + ttlOption(args.Duration("ttl")) +
			fmt.Sprintf("SELECT %sDISTINCT %s\nFROM orders;", hintText(args), columns),
	}
	p.StateClass = perKeyUnless(ttl)
	return job.planned(p)
}

// distinct is Flink's GroupAggFunction without aggregates. Without a TTL a copy changes nothing; with one every copy
// sends -U/+U of the row that stands, and restarts the TTL: flink select-distinct-key/retract-ttl-chain.
type distinct struct {
	sim.Base
	state      *sim.Table
	ttl        stream.Time
	entryBytes int
}

func (o *distinct) Rows(c *sim.Ctx, rows []stream.Row) {
	seen := o.state.Probe(rows)
	for i := range rows {
		row := &rows[i]
		before := seen.Get(i)
		if before == nil {
			seen.Put(i, 0, row.Tag, 0)
			c.Emit(stream.Insert, row)
			continue
		}
		c.Drop(row, sim.Duplicate)
		if o.ttl > 0 {
			tag, since := before.Tag, before.Written()
			if c.UpdateBefore() {
				c.Again(stream.UpdateBefore, row.Key, tag, since, row.Arrival)
			}
			c.Again(stream.UpdateAfter, row.Key, tag, since, row.Arrival)
			seen.Put(i, 0, tag, 0)
		}
	}
}

func (o *distinct) State(c *sim.Ctx) sim.State { return tableState(c, o.state, o.entryBytes) }
