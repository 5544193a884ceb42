package strategies

import (
	"fmt"
	"strings"

	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "audit",
	Engine: "spark-delta",
	About: "a daily job over the last weeks of the table, which counts the keys that stand there more than once, says why, " +
		"and with repair removes the extra rows",
	Loses: "Between two runs the table holds every copy that the sink lets through. It cannot see copies under new ids, nor " +
		"those whose rows are dated before its weeks.",
	Facts:  auditFacts,
	Params: []Param{auditOver, auditEvery, auditRepair, auditLookback},
	Check:  checkDays("over", "lookback"),
	Plan: func(args Args, job Job) Plan {
		p := job.sinkPlan("append-batch-sink", tableSink{mode: sim.Append})
		stage := job.auditStage(args)
		p.Batch.Stages = append(p.Batch.Stages, stage)
		if args.Bool("repair") {
			p.Changelog = stream.Mode(stream.Insert, stream.Delete)
			p.Declared, p.Leaks, p.Batch.Consumers = p.Changelog, ByRepair, updatedTable
		}
		p.Operator = "a batch job beside the query"
		p.Code = job.auditCode(args)
		return p
	},
})

// Parameters of an audit.
var (
	auditOver = Param{Name: "over", Kind: Duration, Default: "30d",
		About: "how far back a run reads: rows dated from today - over on, whole days"}
	auditEvery = Param{Name: "every", Kind: Duration, Default: "1d",
		About: "the time from one run to the next; the last one follows the end of the input"}
	auditRepair = Param{Name: "repair", Kind: Bool, Default: "false",
		About: "removes the extra rows: of each key the row that was written first stays"}
	auditLookback = Param{Name: "lookback", Kind: OptionalDuration, Default: None,
		About: "that of the MERGE before it, by which a run tells whether the tiers are sized right; none: there is no MERGE, or " +
			"it is joined with the whole table"}
)

// days reads a Duration in whole days.
func (a Args) days(name string) sim.Date { return sim.Date(a.Duration(name) / sim.Day) }

// auditStage makes the stage.
func (j Job) auditStage(args Args) Stage {
	a := audit{over: args.days("over"), every: args.Duration("every"), repair: args.Bool("repair"),
		lookback: args.lookback()}
	return Stage{
		BatchStage: sim.BatchStage{Name: "audit", New: func(*sim.BatchCtx) sim.BatchOperator {
			o := a
			return &auditor{job: &o}
		}},
		Key: j.pick(j.Schema.Key), Audits: true,
	}
}

// audit is a job of its own that runs over the target at times, whatever becomes of the query.
type audit struct {
	over, lookback sim.Date
	every          stream.Time
	repair         bool

	next stream.Time // run; 0 before the first batch
	seen uint64      // rows with smaller IDs have been read by the run before
}

// auditor lets all rows through and runs the audit when it is due.
type auditor struct{ job *audit }

func (o *auditor) Batch(c *sim.BatchCtx, rows []stream.Row) {
	for i := range rows {
		c.Emit(&rows[i])
	}
	job := o.job
	if job.next == 0 {
		job.next = c.Batch.At.Floor(job.every) + job.every
	}
	if c.Batch.At >= job.next {
		job.run(c)
		job.next = c.Batch.At.Floor(job.every) + job.every
	}
}

// AtEnd runs the audit once more over all that has come.
func (o *auditor) AtEnd(c *sim.BatchCtx) { o.job.run(c) }

// run reads the table. It counts an extra row by the first of the reasons that apply.
func (a *audit) run(c *sim.BatchCtx) {
	from := sim.DateOf(c.Batch.At) - a.over
	run := sim.AuditRun{At: c.Batch.At}
	target := c.Target()
	for _, p := range target.Partitions() {
		if p.Date >= from {
			run.Rows += p.Rows
			run.Dates++
		}
	}
	var extra []sim.TargetRow
	seen := a.seen
	err := target.Repeated(from, func(rows []sim.TargetRow) {
		run.Keys++
		run.Extra += int64(len(rows) - 1)
		for i := 1; i < len(rows); i++ {
			if rows[i].ID >= seen {
				a.seen = max(a.seen, rows[i].ID+1)
				a.judge(rows[:i], &rows[i], &run)
			}
		}
		if a.repair {
			extra = append(extra, rows[1:]...)
		}
	})
	if err == nil && len(extra) > 0 {
		err = target.Remove(extra)
	}
	if err != nil {
		c.Fail(fmt.Errorf("audit: %w", err))
		return
	}
	for i := range extra {
		c.Remove(extra[i].Key, extra[i].Tag)
	}
	run.Repaired = int64(len(extra))
	c.Progress.JoinedRows += run.Rows
	c.Progress.JoinedDates += run.Dates
	c.Audited(&run)
}

// judge counts a new extra row by what let it through, beside the rows of its key that were written before it.
func (a *audit) judge(before []sim.TargetRow, row *sim.TargetRow, run *sim.AuditRun) {
	newest := before[0].Date
	for i := range before {
		if before[i].Batch == row.Batch {
			run.New.SameBatch++
			return
		}
		newest = max(newest, before[i].Date)
	}
	if a.lookback == wholeTable || newest >= row.Written-a.lookback {
		run.New.Inside++
		return
	}
	run.New.Outside++
	run.Needed = max(run.Needed, int64(row.Written-newest))
}

// Snapshot is the job itself: a failure of the query does not touch it.
func (o *auditor) Snapshot(*sim.BatchCtx) any { return o.job }

// Restore goes on with it.
func (o *auditor) Restore(_ *sim.BatchCtx, snapshot any) { o.job = snapshot.(*audit) }

// State is empty.
func (o *auditor) State(*sim.BatchCtx) sim.State { return sim.State{} }

// auditCode renders the job.
func (j Job) auditCode(args Args) string {
	keys := pyList(j.keyNames())
	imports := "from pyspark.sql import functions as F\n\n"
	if args.Bool("repair") {
		imports = "from delta.tables import DeltaTable\nfrom pyspark.sql import Window, functions as F\n\n"
	}
	code := "# Runs every " + args.Text("every") + ", beside the stream.\n" + imports +
		"recent = (spark.table(\"" + tableName + "\")\n" +
		fmt.Sprintf("    .where(\"date >= date_sub(current_date(), %d)\"))\n", args.days("over")) +
		"repeated = recent.groupBy(" + keys + ").count().where(\"count > 1\")\n" +
		"repeated.agg(F.count(\"*\").alias(\"keys\"), (F.sum(\"count\") - F.count(\"*\")).alias(\"extra_rows\")).show()"
	if !args.Bool("repair") {
		return code
	}
	var on []string
	for _, k := range j.keyNames() {
		on = append(on, "t."+k+" = s."+k)
	}
	return code + "\n\n" +
		"# written_at is set by foreachBatch; row_id makes two rows differ that are equal in everything else.\n" +
		"order = Window.partitionBy(" + keys + ").orderBy(\"written_at\", \"row_id\")\n" +
		"extra = recent.withColumn(\"rn\", F.row_number().over(order)).where(\"rn > 1\")\n" +
		"(DeltaTable.forName(spark, \"" + tableName + "\").alias(\"t\")\n" +
		"    .merge(extra.alias(\"s\"), \"t.date = s.date AND " + strings.Join(on, " AND ") + " AND t.row_id = s.row_id\")\n" +
		"    .whenMatchedDelete()\n" +
		"    .execute())"
}

var auditFacts = append([]Fact{
	{TopicState, "none; a run reads the dates of its weeks and groups their rows by key", ArticleOnly},
	{TopicChangelog, "without repair the table is not touched; with it the extra rows are deleted, which a reader of the " +
		"table's changes sees as deletes", NotRecorded},
	{TopicDeterminism, "source replay: closed for what is dated within its weeks, with repair, from the next run on",
		NotRecorded},
	{TopicLoses, "with repair: distinct events under one key", NotRecorded},
	{TopicLeaks, "copies under new ids: a count of nearly nothing while downstream counts are high means a producer that " +
		"changes ids", ArticleOnly},
	{TopicLeaks, "copies whose rows are dated before its weeks, and all copies until the next run", ArticleOnly},
	{TopicLeaks, "rows with NULL in their key, which it leaves out", NotRecorded},
}, tableFacts...)
