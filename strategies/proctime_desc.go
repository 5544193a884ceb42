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
	Params: []Param{ttlParam},
	Plan: func(args Args, job Job) Plan {
		ttl := args.Duration("ttl")
		p := Plan{
			Changelog: job.topOneMode(false),
			Operator:  "StreamExecDeduplicate",
			Runtime:   "org.apache.flink.table.runtime.operators.deduplicate.ProcTimeDeduplicateKeepLastRowFunction",
			Clock:     "processing time",
			TTL:       "the last row of the key",
			Leaks:     ByTTL,
			New: func(c *sim.Ctx) sim.Operator {
				if job.Sink == Upsert && job.InsertInsensitive {
					return allUpdates{}
				}
				return &keepLastArrived{
					state: c.NewTable(ttl), ttl: ttl, entryBytes: job.keyBytes() + ttlBytes(ttl) + job.rowBytes(),
				}
			},
			Language: "sql",
			Code: job.withProctime("orders") + "\n\n" + ttlOption(ttl) +
				job.rowNumber("proc DESC"),
		}
		p.StateClass = perKeyUnless(ttl)
		return job.planned(p)
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
		case o.ttl == 0 && before.Value == content && !before.Has(updated):
			// Without a TTL an equal row is swallowed: flink proctime-desc/in-order-dup; with one it is an update that
			// restarts the TTL: proctime-desc/ttl-chain.
			c.Drop(row, sim.Duplicate)
		default:
			c.Update(before.Tag, before.Written(), row)
			last.Put(i, content, row.Tag, updated)
		}
	}
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
