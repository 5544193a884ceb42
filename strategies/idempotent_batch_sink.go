package strategies

import "deduplab/sim"

var _ = register(&Strategy{
	Name:   "idempotent-batch-sink",
	Engine: "spark-delta",
	About:  "foreachBatch that appends each batch to the table once, keyed on the batch's id",
	Loses: "It loses nothing; the write duplicates of a failed batch disappear, while every copy among the data comes " +
		"through.",
	Facts:  idempotentBatchSinkFacts,
	Params: []Param{appendSourceParam},
	Plan: func(args Args, job Job) Plan {
		s := tableSink{mode: sim.AppendOnce, source: args.source()}
		p := job.sinkPlan("idempotent-batch-sink", s)
		p.Code = job.foreachBatch(s.dedupCode(job) + "    (batch.write.format(\"delta\").mode(\"append\")\n" +
			"        .option(\"txnAppId\", \"" + tableName + "\")  # a new checkpoint needs another one\n" +
			"        .option(\"txnVersion\", batch_id)\n" +
			"        .saveAsTable(\"" + tableName + "\"))\n")
		return p
	},
})

var idempotentBatchSinkFacts = append([]Fact{
	{TopicState, "none in the query; the table's log holds the last batch id of each txnAppId",
		"spark/sink-append-replay-keyed-on-batch-id"},
	{TopicState, "a query that starts over from a new checkpoint counts its batches from 0 again: under the old txnAppId " +
		"all of them would be skipped", NotRecorded},
	{TopicChangelog, "rows are only added to the table", "spark/sink-append-replay-keyed-on-batch-id"},
	{TopicDeterminism, "source replay: closed for a batch that is run again; open for a producer or connector that sends " +
		"again, which are other batches", "spark/sink-append-replay-keyed-on-batch-id"},
	{TopicLoses, "nothing", "spark/sink-append-replay-keyed-on-batch-id"},
	{TopicLeaks, "every copy among the data; no write duplicate: the rerun of a batch is skipped by its id",
		"spark/sink-append-replay-keyed-on-batch-id"},
}, tableFacts...)

// tableFacts hold for all that write a table from foreachBatch.
var tableFacts = []Fact{
	{TopicLate, "no lateness test: a row is written whatever its event time", "spark/sink-merge-no-lookback"},
	{TopicLatency, "a row waits for its batch, and is visible when the batch has been written", "spark/sink-append-replay"},
	{TopicDeterminism, "processing time: open; which rows make up a batch depends on when they come, and the first batch to " +
		"bring a key is the one that is kept", NotRecorded},
	{TopicDeterminism, "watermarks: closed; they are not asked", "spark/sink-merge-no-lookback"},
	{TopicDeterminism, "idleness: closed; a source without rows makes no batch", NotRecorded},
	{TopicDeterminism, "state TTL: closed; there is no state", "spark/sink-merge-no-lookback"},
	{TopicDeterminism, "non-deterministic functions: a batch that is run again is computed again; uuid() or rand() in front " +
		"of the write makes its rows other rows", NotRecorded},
}
