package strategies

import "deduplab/stream"

var _ = register(&Strategy{
	Name:   "nontime-to-changelog",
	Engine: "flink-sql",
	About:  "nontime wrapped in TO_CHANGELOG: every change becomes an inserted row with an op column",
	Loses: "Ordered by the key it never updates and so comes closest of the SQL ways; ordered by anything else its " +
		"updates become rows, without an UPDATE_BEFORE where the planner took the query for insert-only.",
	Params: rankParams,
	Check:  checkRank,
	Plan: func(args Args, job Job) Plan {
		rank := job
		rank.Sink = Retract
		query := "SELECT * FROM TO_CHANGELOG(input => (\n" +
			indent(job.rowNumber(job.orderText(args.OrderBy()), job.Schema.Event)) + "\n));"
		p := ToChangelog(rankPlan(args, rank, query), job)
		p.Output = DropEvent
		return p
	},
})

// ToChangelog wraps a plan in TO_CHANGELOG. The plan must have been made for a retracting sink: TO_CHANGELOG takes all
// changes of its input, update-before too, also in front of an append-only sink: flink
// nontime-to-changelog-price-desc/append-price-change.
func ToChangelog(p Plan, job Job) Plan {
	p.Input, p.Changelog = p.Changelog, stream.InsertOnly
	p.ToChangelog = true
	p.UpsertKey, p.Time = NoKey, PlainTime
	return job.planned(p)
}
