package strategies

import (
	"fmt"
	"strings"

	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "pk-not-enforced",
	Engine: "flink-sql",
	About:  "a PRIMARY KEY NOT ENFORCED on the source: a promise to the planner that nobody checks",
	Loses:  "It loses nothing and lets every copy through: the planner believes the key, and no operator enforces it.",
	Plan: func(_ Args, job Job) Plan {
		key := fmt.Sprintf("  PRIMARY KEY (%s) NOT ENFORCED", strings.Join(job.keyNames(), ", "))
		return job.planned(Plan{
			// flink pk-not-enforced/append, /retract and /upsert: nothing is removed, into any sink.
			Changelog: stream.InsertOnly, Operator: "StreamExecCalc", Runtime: "none",
			StateClass: Stateless, Clock: "none", TTL: "no state",
			Leaks:    NoDeduplication,
			New:      func(*sim.Ctx) sim.Operator { return passThrough{} },
			Language: "sql",
			Code:     job.ddl("orders", key) + "\n\n" + fmt.Sprintf("SELECT %s FROM orders;", job.columns("")),
		})
	},
})
