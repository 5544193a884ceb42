package strategies

// Facts that hold for several micro-batch queries.
var (
	lateInBatches = Fact{TopicLate, "a row is late when its time is at or below the watermark that the batch before ran " +
		"with: right after a batch that moved it, rows up to one step too old are still taken", "spark/within-watermark-lag"}

	lateWithinBatch = Fact{TopicLate, "a batch's own rows never make each other late: its watermark comes from the " +
		"batches before it", "spark/watermark-order-same-batch"}

	lateCountsCopies = Fact{TopicLate, "lateness is tested before duplication: numRowsDroppedByWatermark counts late " +
		"copies, which are harmless, with late firsts, which are lost", "spark/drop-duplicates-watermark-ts-not-in-key-late"}

	lateInBacklog = Fact{TopicLate, "in a backlog batches follow each other without one without data, so that the late " +
		"test lags one batch behind and fewer rows are late", "spark/watermark-order-backlog"}

	neverLateWithoutTime = Fact{TopicLate, "a row without event time is never late, and does not move the " +
		"watermark", "spark/drop-duplicates-watermark-null-ts"}

	waitsForBatch = Fact{TopicLatency, "a row waits for the next trigger and for the end of its batch, whatever its " +
		"event time", NotRecorded}

	batchesByTheClock = Fact{TopicDeterminism, "processing time: open in part; which rows share a batch depends on when " +
		"they arrive, and with it which are late and when keys are removed", "spark/watermark-order-two-batches-at-once-lag"}

	watermarkByBatches = Fact{TopicDeterminism, "watermarks: open; they move batch by batch, so a backlog has other " +
		"ones than the live stream", "spark/watermark-order-backlog"}

	quietInput = Fact{TopicDeterminism, "idleness: open; only rows move the watermark, so a quiet stream keeps its " +
		"state, and of several inputs a quiet one holds back the eviction for all under " +
		"multipleWatermarkPolicy = min", "spark/two-inputs-min-policy-quiet-from-start"}

	slowerInput = Fact{TopicLate, "with several inputs and multipleWatermarkPolicy = max the rows of the slower one are " +
		"late", "spark/two-inputs-max-policy"}

	replayedBatch = Fact{TopicDeterminism, "source replay: closed for a batch that failed, which is run again with the " +
		"same id, rows and watermark; what the sink had written by then is written twice, unless it goes by the batch " +
		"id", "spark/batch-replay-within-watermark"}
)

// appendConsumers are what takes the result of an operator that emits each row once.
var appendConsumers = []BatchConsumer{
	{"output mode append", true, "", "spark/drop-duplicates-basic"},
	{"output mode update", true, "with the same rows", NotRecorded},
	{"output mode complete", false, "there is no aggregation to write out whole", NotRecorded},
	{"file, Kafka or Delta sink", true, "in append mode", NotRecorded},
	{"foreachBatch", true, "where a batch can be written twice: make it idempotent", "spark/batch-replay-drop-duplicates"},
	{"aggregate, join", true, "in append mode: what stands behind it sees each row once", NotRecorded},
}
