package strategies

import "deduplab/sim"

var _ = register(&Strategy{
	Name:   "anti-join-backfill",
	Engine: "spark-delta",
	About: "MERGE with a lookback for what is new, and for rows dated before it a batch job: an anti-join with the whole " +
		"table",
	Loses: "Copies come through that carry a newer event time than a first row before the lookback. A backfill reads the " +
		"whole table.",
	Facts: antiJoinBackfillFacts,
	Params: []Param{
		{Name: "lookback", Kind: Duration, Default: "3d",
			About: "rows dated before today - lookback take the anti-join; whole days"},
		{Name: "dedup_source_batch", Kind: Bool, Default: "true",
			About: "dropDuplicates on the key of each batch before it is written; an anti-join, like MERGE, does not look for " +
				"copies in its own batch"},
		nullSafeParam,
	},
	Check: checkDays("lookback"),
	Plan: func(args Args, job Job) Plan {
		s := tableSink{mode: sim.MergeInsert, lookback: args.lookback(), nullSafe: args.Bool("null_safe"),
			source: args.source(), backfill: true}
		p := job.sinkPlan("anti-join-backfill", s)
		p.Operator = "MergeIntoCommand; for rows before the lookback BroadcastHashJoinExec or SortMergeJoinExec (LeftAnti)"
		p.Code = s.antiJoinCode(job)
		return p
	},
})

// antiJoinCode renders the query and the job for backfills.
func (s *tableSink) antiJoinCode(j Job) string {
	keys := pyList(j.keyNames())
	join := ", " + keys
	if s.nullSafe {
		join = ", [" + nullSafeColumns(j) + "]"
	}
	return s.mergeCode(j, "        WHEN NOT MATCHED THEN INSERT *\n") + "\n\n" +
		"# Backfills go around the stream: a batch job, whose anti-join sees all of the table.\n" +
		"backfill = (spark.read.format(\"delta\").load(\"/lake/backfill\")\n" +
		"    .withColumn(\"date\", F.to_date(\"" + j.eventName() + "\")))\n" +
		"backfill = backfill" + map[bool]string{true: ".dropDuplicates(" + keys + ")"}[s.source == firstOfKey] + ".alias(\"s\")\n" +
		"known = spark.table(\"" + tableName + "\").alias(\"t\")\n" +
		"(backfill.join(known" + join + ", \"left_anti\")\n" +
		"    .write.format(\"delta\").mode(\"append\").saveAsTable(\"" + tableName + "\"))"
}

// nullSafeColumns renders a join of the key columns in which NULL equals NULL.
func nullSafeColumns(j Job) string {
	text := ""
	for i, k := range j.keyNames() {
		if i > 0 {
			text += ", "
		}
		text += "F.col(\"s." + k + "\").eqNullSafe(F.col(\"t." + k + "\"))"
	}
	return text
}

var antiJoinBackfillFacts = append([]Fact{
	{TopicState, "none in the query: the table is the state, and a backfill is joined with all of it",
		"spark/sink-merge-no-lookback"},
	{TopicChangelog, "rows are only added to the table", "spark/sink-merge-no-lookback"},
	{TopicDeterminism, "source replay: closed for a batch that is run again, which finds its rows", "spark/sink-merge-replay"},
	{TopicLoses, "nothing but distinct events under one key", "spark/sink-merge-no-lookback"},
	{TopicLeaks, "no copy of a backfill, however old: MERGE without a bound is the same join", "spark/sink-merge-no-lookback"},
	{TopicLeaks, "a copy dated within the lookback whose first row is dated before it: only rows that are old by their own " +
		"event time take the anti-join", "spark/sink-merge-backfill-beyond-lookback"},
}, tableFacts...)
