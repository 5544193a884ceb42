package strategies

import (
	"fmt"
	"strings"
)

var _ = register(&Strategy{
	Name:   "pk-not-enforced",
	Engine: "flink-sql",
	About:  "a PRIMARY KEY NOT ENFORCED on the source: a promise to the planner that nobody checks",
	Loses:  "It loses nothing and lets every copy through: the planner believes the key, and no operator enforces it.",
	Facts:  pkNotEnforcedFacts,
	Plan: func(_ Args, job Job) Plan {
		key := fmt.Sprintf("  PRIMARY KEY (%s) NOT ENFORCED", strings.Join(job.keyNames(), ", "))
		// flink pk-not-enforced/append, /retract and /upsert: nothing is removed, into any sink.
		return job.planned(job.passThroughPlan(job.ddl("orders", key) + "\n\n" +
			fmt.Sprintf("SELECT %s FROM orders;", job.columns(""))))
	},
})

// pkNotEnforcedFacts is what is known of the strategy.
var pkNotEnforcedFacts = []Fact{
	{TopicState, "none: Flink checks no primary key", "pk-not-enforced/retract"},
	{TopicChangelog, "declared [I], and each row comes out as it came", "pk-not-enforced/append"},
	{TopicChangelog, "an upsert sink with the same key takes it and is handed every copy", "pk-not-enforced/upsert"},
	{TopicLate, "no lateness test", "pk-not-enforced/retract"},
	{TopicLatency, "at once", "pk-not-enforced/retract"},
	commitLatency,
	{TopicDeterminism, "processing time: closed", "pk-not-enforced/retract"},
	{TopicDeterminism, "watermarks: closed", "pk-not-enforced/retract"},
	{TopicDeterminism, "idleness: closed", "pk-not-enforced/retract"},
	{TopicDeterminism, "state TTL: closed; there is no state", "pk-not-enforced/retract"},
	opensReplay,
	callsNoFunction,
	{TopicLoses, "nothing", "pk-not-enforced/retract"},
	{TopicLeaks, "every copy", "pk-not-enforced/retract"},
	{TopicLeaks, "a DISTINCT over it stays in the plan and does the work", "pk-not-enforced/select-distinct"},
}
