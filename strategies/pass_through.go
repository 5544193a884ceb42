package strategies

import (
	"fmt"

	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "pass-through",
	Engine: "flink-sql",
	About:  "no deduplication: the floor that every other strategy is measured against",
	Loses:  "It loses nothing and lets every copy through.",
	Facts:  passThroughFacts,
	Plan: func(_ Args, job Job) Plan {
		p := job.passThroughPlan(job.ddl("orders") + "\n\n" + fmt.Sprintf("SELECT %s FROM orders;", job.columns("")))
		p.UpsertKey = NoKey
		if job.changelog() {
			return job.planned(p)
		}
		// The floor runs into every sink, though an upsert sink would want an ON CONFLICT clause for it.
		p.Declared = p.Changelog
		return p
	},
})

// passThroughPlan plans a query without an operator of its own: it declares what its source declares.
func (j Job) passThroughPlan(code string) Plan {
	return Plan{
		Changelog: j.inputMode(), Operator: "StreamExecCalc", Runtime: "none", Node: j.sourceNode(),
		StateClass: Stateless, Clock: "none", TTL: "no state",
		Leaks:    NoDeduplication,
		New:      func(*sim.Ctx) sim.Operator { return passThrough{} },
		Language: "sql",
		Code:     code,
	}
}

// passThrough emits every row at once, of a changelog each of its kind: flink-extra changelog/pass-through. A -U that
// the consumer does not want is dropped, the planner's DropUpdateBefore.
type passThrough struct{ sim.Base }

func (passThrough) Rows(c *sim.Ctx, rows []stream.Row) {
	for i := range rows {
		row := &rows[i]
		if row.Kind == stream.UpdateBefore && !c.UpdateBefore() {
			c.Drop(row, sim.Retraction)
			continue
		}
		c.Emit(row.Kind, row)
	}
}

func (passThrough) State(*sim.Ctx) sim.State { return sim.State{} }

// passThroughFacts is what is known of the strategy.
var passThroughFacts = []Fact{
	{TopicState, "none", "watermark/sql-no-delay"},
	{TopicChangelog, "declared [I], and each row comes out as it came", "watermark/sql-no-delay"},
	{TopicLate, "no lateness test: each row comes out, whatever the watermark", "watermark/sql-no-delay"},
	{TopicLatency, "at once", "watermark/sql-no-delay"},
	commitLatency,
	{TopicDeterminism, "processing time: closed", "watermark/sql-no-delay"},
	{TopicDeterminism, "watermarks: closed", "watermark/sql-no-delay"},
	{TopicDeterminism, "idleness: closed; rows after an idle time come out as any other", "watermark/sql-idle"},
	{TopicDeterminism, "state TTL: closed; there is no state", "watermark/sql-no-delay"},
	opensReplay,
	callsNoFunction,
	{TopicLoses, "nothing; but a NULL in the event-time column fails the job", "watermark/sql-null-rowtime"},
	{TopicLeaks, "every copy", "watermark/sql-no-delay"},
}
