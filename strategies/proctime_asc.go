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
	Params: []Param{ttlParam},
	Plan: func(args Args, job Job) Plan {
		ttl := args.Duration("ttl")
		p := Plan{
			// With mini-batch the node is declared updating though it still emits only +I: flink
			// proctime-asc/mini-batch.
			Changelog: job.topOneMode(!job.MiniBatch.on()),
			Operator:  "StreamExecDeduplicate",
			Runtime:   "org.apache.flink.table.runtime.operators.deduplicate.ProcTimeDeduplicateKeepFirstRowFunction",
			Clock:     "processing time",
			TTL:       "the first row; copies do not extend it",
			Leaks:     ByTTL,
			New: func(c *sim.Ctx) sim.Operator {
				return &keepFirst{state: c.NewTable(ttl), entryBytes: job.keyBytes() + ttlBytes(ttl) + 1}
			},
			Language: "sql",
			Code: job.withProctime("orders") + "\n\n" + ttlOption(ttl) +
				job.rowNumber("proc ASC"),
		}
		p.StateClass = perKeyUnless(ttl)
		return job.planned(p)
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
