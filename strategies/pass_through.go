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
		return Plan{
			// The floor runs into every sink, though an upsert sink would want an ON CONFLICT clause for it.
			Changelog: stream.InsertOnly, Declared: stream.InsertOnly, UpsertKey: NoKey,
			Operator: "StreamExecCalc", Runtime: "none",
			StateClass: Stateless, Clock: "none", TTL: "no state",
			Leaks:    NoDeduplication,
			New:      func(*sim.Ctx) sim.Operator { return passThrough{} },
			Language: "sql",
			Code:     job.ddl("orders") + "\n\n" + fmt.Sprintf("SELECT %s FROM orders;", job.columns("")),
		}
	},
})

// passThrough emits every row at once.
type passThrough struct{ sim.Base }

func (passThrough) Rows(c *sim.Ctx, rows []stream.Row) {
	for i := range rows {
		c.Emit(stream.Insert, &rows[i])
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
