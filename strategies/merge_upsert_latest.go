package strategies

import (
	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "merge-upsert-latest",
	Engine: "spark-delta",
	About:  "MERGE of each batch into the table, which keeps the row of each key with the largest event time",
	Loses: "A batch with two rows of one key that the table has fails the query, unless one row a key is left before; with a " +
		"lookback, keys dated before it are inserted again.",
	Facts: mergeUpsertLatestFacts,
	Params: []Param{
		{Name: "lookback", Kind: OptionalDuration, Default: None,
			About: "the MERGE is joined with `date >= today - lookback`, whole days; none: with the whole table"},
		{Name: "source_batch", Kind: Enum, Values: []string{"latest", "first", "as-is"}, Default: "latest",
			About: "which rows of a batch are merged: of each key the one with the largest event time, or the first one to " +
				"come; as-is: all, and two of one key that the table has fail the query"},
		nullSafeParam,
	},
	Check: checkDays("lookback"),
	Plan: func(args Args, job Job) Plan {
		s := tableSink{mode: sim.MergeUpsert, lookback: args.lookback(), nullSafe: args.Bool("null_safe"),
			source: map[string]sourceBatch{"latest": latestOfKey, "first": firstOfKey}[args.Text("source_batch")]}
		p := job.sinkPlan("merge-upsert-latest", s)
		p.Changelog = stream.Mode(stream.Insert, stream.UpdateBefore, stream.UpdateAfter)
		p.Declared, p.Promise = p.Changelog, LastByEvent
		time := job.eventName()
		p.Code = s.mergeCode(job, "        WHEN MATCHED AND s."+time+" > t."+time+" THEN UPDATE SET *\n"+
			"        WHEN NOT MATCHED THEN INSERT *\n")
		return p
	},
})

var mergeUpsertLatestFacts = append([]Fact{
	{TopicState, "none in the query: the table is the state", "spark/sink-merge-upsert-latest"},
	{TopicChangelog, "rows of the table are updated in place: who reads it as a stream needs the change data feed",
		"spark/sink-merge-upsert-latest"},
	{TopicChangelog, "an event time that is equal does not update; a version of the table is written all the same",
		"spark/sink-merge-upsert-latest"},
	{TopicDeterminism, "source replay: closed for a batch that is run again: its rows are not newer than themselves; but two " +
		"new rows of one key, inserted by the first attempt, fail the second one", NotRecorded},
	{TopicLoses, "all that follows: two rows of a batch that match one row of the table fail the query with " +
		MultipleMatches + ", even when only one of them meets the condition of the update",
		"spark/sink-merge-upsert-one-qualifies"},
	{TopicLeaks, "two new rows of one key in one batch, of which none matches, unless one row a key is left before",
		"spark/sink-merge-source-duplicates"},
	{TopicLeaks, "with a lookback: a key dated before it", "spark/sink-merge-backfill-beyond-lookback"},
}, tableFacts...)
