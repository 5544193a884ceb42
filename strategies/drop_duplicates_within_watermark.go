package strategies

var _ = register(&Strategy{
	Name:   "drop-duplicates-within-watermark",
	Engine: "spark",
	About:  "dropDuplicatesWithinWatermark: the first row of a key to arrive, and no copy of it for the watermark delay",
	Loses: "A copy with a newer event time comes through once the watermark has passed the first row's by the delay; " +
		"late rows are dropped, firsts among them.",
	Facts:  withinWatermarkFacts,
	Params: []Param{columnsParam, watermarkDelay, otherDelay, restartColumns},
	Plan: func(args Args, job Job) Plan {
		return job.withRestart(args, func(columns []int) Plan {
			d := deduplicate{columns: columns, delays: args.delays(), within: true}
			p := job.deduplicatePlan("dedupeWithinWatermark", d)
			p.Operator = "StreamingDeduplicateWithinWatermarkExec"
			p.Runtime = "org.apache.spark.sql.execution.streaming.operators.stateful.StreamingDeduplicateWithinWatermarkExec"
			p.TTL = "the first row's event time: a key is removed by the first batch whose watermark has reached it plus " +
				"the delay"
			p.Code = job.dropDuplicatesCode("dropDuplicatesWithinWatermark", d)
			return p
		})
	},
})

var withinWatermarkFacts = []Fact{
	{TopicState, "one entry a key: the event time of its first row plus the delay, in microseconds. The first batch " +
		"whose watermark has reached that removes it, at its end", "spark/within-watermark-expiry-tie"},
	{TopicState, "so in event time a key is held until a row comes that is two delays newer than its " +
		"first", "spark/within-watermark-basic"},
	{TopicState, "copies do not extend it", "spark/within-watermark-not-refreshed"},
	{TopicState, "a key without event time counts as one of 1970: once the watermark has gone beyond the delay it is " +
		"removed by the very batch that stored it, and such a row comes out every time", "spark/within-watermark-null-ts"},
	{TopicState, "a restart with another delay keeps the ends of the keys that are stored; the watermark does not go " +
		"back", "spark/within-watermark-restart-longer-delay"},
	{TopicState, "after a union the delay of the left input counts for the keys of " +
		"both", "spark/two-inputs-delay-of-left"},
	{TopicState, "a restart with another number or other types of columns is refused " +
		"(STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE)", "spark/changed-columns-within-watermark-more-keys"},
	{TopicState, "a restart as dropDuplicates is refused " +
		"(STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA)", "spark/changed-columns-from-within-watermark"},
	{TopicChangelog, "append-only: the first row of a key goes out with all its columns, nothing is taken " +
		"back", "spark/within-watermark-payload"},
	{TopicChangelog, "what counts is the row that arrived first, not the one with the smallest event " +
		"time", "spark/within-watermark-out-of-order"},
	lateInBatches, lateWithinBatch, lateCountsCopies, lateInBacklog,
	{TopicLate, "a row without event time is never late", "spark/within-watermark-null-ts"},
	slowerInput,
	waitsForBatch,
	batchesByTheClock, watermarkByBatches, quietInput,
	{TopicDeterminism, "state TTL: there is none; what ends a key is the watermark", "spark/within-watermark-basic"},
	replayedBatch,
	callsNoFunction,
	{TopicLoses, "late firsts", "spark/within-watermark-late"},
	{TopicLoses, "null is a key like any other: all rows without an id are copies of the first " +
		"one", "spark/within-watermark-null-key"},
	{TopicLoses, "without withWatermark the query does not start", "spark/within-watermark-no-watermark"},
	{TopicLeaks, "a copy with a newer event time, once its key is removed; an exact copy never, as it is late by " +
		"then", "spark/within-watermark-duplicate-after-horizon"},
	{TopicLeaks, "the horizon ends with a batch, and rows are tested before keys are removed: a key that is over still " +
		"swallows the rows of that batch", "spark/within-watermark-lag"},
	{TopicLeaks, "with a delay of 0 only copies in one batch are caught", "spark/within-watermark-delay-zero"},
}
