package strategies

import "deduplab/sim"

var _ = register(&Strategy{
	Name:   "append-batch-sink",
	Engine: "spark-delta",
	About:  "foreachBatch that appends each batch to the table",
	Loses: "It loses nothing and lets every copy through; a batch that fails after the write and is run again is written " +
		"twice.",
	Facts:  appendBatchSinkFacts,
	Params: []Param{appendSourceParam},
	Plan: func(args Args, job Job) Plan {
		s := tableSink{mode: sim.Append, source: args.source()}
		p := job.sinkPlan("append-batch-sink", s)
		p.Code = job.foreachBatch(s.dedupCode(job) +
			"    batch.write.format(\"delta\").mode(\"append\").saveAsTable(\"" + tableName + "\")\n")
		return p
	},
})

var appendBatchSinkFacts = append([]Fact{
	{TopicState, "none; each row of the source is a row of the table", "spark/sink-append-replay"},
	{TopicChangelog, "rows are only added to the table", "spark/sink-append-replay"},
	{TopicDeterminism, "source replay: a batch that is run again is written again", "spark/sink-append-replay"},
	{TopicLoses, "nothing", "spark/sink-append-replay"},
	{TopicLeaks, "every copy, and the write duplicates of a batch that failed after the write: the rerun has the same " +
		"batch id, rows and order, and its rows stand in the table twice", "spark/sink-append-replay"},
}, tableFacts...)
