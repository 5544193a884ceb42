package strategies

import "strings"

var _ = register(&Strategy{
	Name:   "select-distinct-key",
	Engine: "flink-sql",
	About:  "SELECT DISTINCT over the key columns: which keys there are, without their rows",
	Loses: "It keeps the key and throws the other columns away, and with a TTL sends -U/+U for each copy to keep " +
		"downstream state alive.",
	Params: []Param{ttlParam, hintParam, phasesParam},
	Plan: func(args Args, job Job) Plan {
		p := groupPlan(args, job, job.keyBytes(), nil)
		p.Code = distinctCode(args, job, strings.Join(job.keyNames(), ", "))
		p.Output = KeyOnly
		return job.planned(p)
	},
})
