package strategies

var _ = register(&Strategy{
	Name:   "drop-duplicates-within-watermark",
	Engine: "spark",
	About:  "dropDuplicatesWithinWatermark: the first row of a key to arrive, and no copy of it for the watermark delay",
	Loses: "A copy with a newer event time comes through once the watermark has passed the first row's by the delay; late " +
		"rows are dropped, firsts among them.",
	Facts: withinWatermarkFacts,
	Params: []Param{
		{Name: "columns", Kind: Columns, Default: KeyColumns, About: "the columns that make two rows duplicates; key: those " +
			"of the workload's key, all: all of them"},
		watermarkDelay, otherDelay,
	},
	Plan: func(args Args, job Job) Plan {
		d := deduplicate{columns: job.columnsOf(args), delays: args.delays(), within: true}
		p := job.deduplicatePlan("dedupeWithinWatermark", d)
		p.Operator = "StreamingDeduplicateWithinWatermarkExec"
		p.Runtime = "org.apache.spark.sql.execution.streaming.operators.stateful.StreamingDeduplicateWithinWatermarkExec"
		p.TTL = "the first row's event time: a key is removed by the first batch whose watermark has reached it plus the delay"
		p.Code = job.dropDuplicatesCode("dropDuplicatesWithinWatermark", d)
		return p
	},
})

var withinWatermarkFacts = []Fact{}
