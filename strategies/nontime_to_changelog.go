package strategies

import (
	"slices"

	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "nontime-to-changelog",
	Engine: "flink-sql",
	About:  "nontime wrapped in TO_CHANGELOG: every change becomes an inserted row with an op column",
	Loses: "Ordered by the key it never updates and so comes closest of the SQL ways; ordered by anything else its " +
		"updates become rows, without an UPDATE_BEFORE where the planner took the query for insert-only.",
	Facts:  nontimeToChangelogFacts,
	Params: rankParams,
	Check:  checkRank,
	Plan: func(args Args, job Job) Plan {
		rank := job
		rank.Sink = Retract
		query := "SELECT * FROM TO_CHANGELOG(input => (\n" +
			indent(job.rowNumber(job.orderText(args.OrderBy()), job.Schema.Event)) + "\n));"
		p := ToChangelog(rankPlan(args, rank, query, job.Schema.Event), job)
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
	return job.planned(p).refusedFor(job.Version.toChangelog())
}

// nontimeToChangelogFacts is what is known of the strategy.
var nontimeToChangelogFacts = slices.Concat(rankState, []Fact{
	{TopicChangelog, "declared [I] into every sink: each change is a row with a first column op (INSERT, " +
		"UPDATE_BEFORE, UPDATE_AFTER or DELETE)", "nontime-to-changelog-price-desc/price-change"},
	{TopicChangelog, "ordered by the key: INSERT only, so that the result is append-only in " +
		"truth", "nontime-to-changelog/price-change"},
	{TopicChangelog, "ordered by a plain column ASC: UPDATE_AFTER without UPDATE_BEFORE, by the planner's fault " +
		"(FLINK-40368)", "nontime-to-changelog-price-asc/price-change"},
	{TopicChangelog, "ordered by one column DESC: both, also in front of an append-only " +
		"sink", "nontime-to-changelog-price-desc/append-price-change"},
	{TopicChangelog, "over a source of updates and deletes (job.input: changelog) the Rank retracts: rows of DELETE " +
		"and INSERT, none of UPDATE_BEFORE or UPDATE_AFTER", "flink-extra/changelog/to-changelog"},
	{TopicLate, "no lateness test: its Rank takes rows below the watermark", "nontime-key-asc/late"},
	{TopicLatency, "at once, with each change of the Rank", "nontime-to-changelog/price-change"},
	commitLatency,
}, rankDeterminism, []Fact{
	opensReplay,
	callsNoFunction,
	{TopicLoses, "no key: but the order's event time, which the article's query leaves out of the " +
		"result", "nontime-to-changelog/price-change"},
	{TopicLeaks, "ordered by the key: one copy each TTL under steady copies", "nontime-to-changelog/ttl-chain"},
	{TopicLeaks, "ordered by anything else: each better row is one more row, or " +
		"two", "nontime-to-changelog-price-desc/out-of-order"},
})
