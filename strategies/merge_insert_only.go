package strategies

import "deduplab/sim"

var _ = register(&Strategy{
	Name:   "merge-insert-only",
	Engine: "spark-delta",
	About:  "MERGE of each batch into the table, which inserts the keys that the last days do not have",
	Loses: "Copies come through when their first row is dated before the lookback, and when they come in one batch: MERGE " +
		"does not look for copies in its own source.",
	Facts:  mergeInsertOnlyFacts,
	Params: []Param{lookbackParam, dedupSourceParam, nullSafeParam},
	Check:  checkDays("lookback"),
	Plan: func(args Args, job Job) Plan {
		s := tableSink{mode: sim.MergeInsert, lookback: args.lookback(), nullSafe: args.Bool("null_safe"),
			source: args.source()}
		p := job.sinkPlan("merge-insert-only", s)
		p.Code = s.mergeCode(job, "        WHEN NOT MATCHED THEN INSERT *\n")
		return p
	},
})

var mergeInsertOnlyFacts = append([]Fact{
	{TopicState, "none in the query: the table is the state, and each batch is joined with the dates of the lookback",
		"spark/sink-merge-backfill-beyond-lookback"},
	{TopicState, "date >= today - 3 touches four dates, not three: a row dated exactly today - 3 still matches",
		"spark/sink-merge-backfill-beyond-lookback"},
	{TopicChangelog, "rows are only added to the table; a batch that brings nothing new makes no version of it",
		"spark/sink-merge-replay"},
	{TopicDeterminism, "source replay: closed for a batch that is run again, which finds its rows", "spark/sink-merge-replay"},
	{TopicLoses, "nothing but distinct events under one key", "spark/sink-merge-source-deduplicated"},
	{TopicLeaks, "copies in one batch: a key that comes three times and matches nothing is inserted three times. " +
		"dropDuplicates on the batch before the MERGE closes it", "spark/sink-merge-source-duplicates"},
	{TopicLeaks, "copies whose first row is dated before the lookback, at each run anew: route backfills through a batch " +
		"job with an anti-join", "spark/sink-merge-backfill-beyond-lookback"},
	{TopicLeaks, "without a lookback a backfill brings no copy, and each batch is joined with the whole table",
		"spark/sink-merge-no-lookback"},
	{TopicLeaks, "with = a NULL key matches nothing, so such rows are inserted every time", "spark/sink-merge-null-key"},
	{TopicLeaks, "with <=> NULL keys match", "spark/sink-merge-null-safe-key"},
	{TopicLeaks, "no write duplicate: the second attempt of a batch inserts nothing", "spark/sink-merge-replay"},
}, tableFacts...)
