package strategies

import (
	"errors"
	"fmt"
	"strings"

	"deduplab/sim"
	"deduplab/stream"
)

// tableSink is what foreachBatch does with a batch: it writes it to the target table. What it inserts or updates is let
// through, what the table has already is dropped as a copy.
type tableSink struct {
	mode sim.WriteMode
	// lookback is the n of `t.date >= today - n`, by which a merge bounds what it is joined with; wholeTable: not.
	lookback sim.Date
	// nullSafe joins with <=>.
	nullSafe bool
	source   sourceBatch
	// backfill writes the rows that are dated before the lookback by an anti-join with the whole table.
	backfill bool
	keys     []int // the columns of the key, where one of them can be NULL

	seen     map[stream.Key]int32 // of the batch: the place of the row that is kept
	rows     []stream.Row
	inserted map[stream.Key]bool // by the batch
}

// wholeTable is the lookback of a merge without a bound.
const wholeTable sim.Date = -1

// MultipleMatches is the condition with which Delta refuses an upsert whose batch has two rows for one row of the
// table.
const MultipleMatches = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"

// sourceBatch is what is done to a batch before it is written.
type sourceBatch uint8

// What is done to a batch before it is written.
const (
	asItIs      sourceBatch = iota
	firstOfKey              // dropDuplicates on the batch
	latestOfKey             // the row of each key with the largest event time, the first of those
)

// newTableSink makes one for the job's table.
func (j Job) newTableSink(s tableSink) *tableSink {
	for _, k := range j.Schema.Key {
		if j.Schema.Columns[k].Nullable {
			s.keys = j.Schema.Key
		}
	}
	s.seen, s.inserted = map[stream.Key]int32{}, map[stream.Key]bool{}
	return &s
}

// Batch writes the batch. One without data has nothing to write.
func (s *tableSink) Batch(c *sim.BatchCtx, rows []stream.Row) {
	if c.Batch.NoData {
		return
	}
	rows = s.prepare(c, rows)
	today := sim.DateOf(c.Batch.At)
	w := sim.TargetWrite{Batch: c.Batch.ID, Today: today, Mode: s.mode, Since: sim.NullDate, NullSafe: s.nullSafe}
	if s.lookback != wholeTable {
		w.Since = today - s.lookback
	}
	if !s.backfill {
		s.write(c, &w, rows)
		return
	}
	var old, fresh []stream.Row
	for i := range rows {
		if d := sim.DateOf(rows[i].Event); d < w.Since {
			old = append(old, rows[i])
		} else {
			fresh = append(fresh, rows[i])
		}
	}
	if len(old) > 0 {
		whole := w
		whole.Since = sim.NullDate
		s.write(c, &whole, old)
	}
	if len(fresh) > 0 {
		s.write(c, &w, fresh)
	}
}

// write writes rows by one statement.
func (s *tableSink) write(c *sim.BatchCtx, w *sim.TargetWrite, rows []stream.Row) {
	w.Rows = make([]sim.TargetRow, len(rows))
	for i := range rows {
		row := &rows[i]
		w.Rows[i] = sim.TargetRow{Key: row.Key, NullKey: s.nullKey(c, row), Event: row.Event, Tag: row.Tag}
	}
	o, err := c.Target().Write(w)
	if err != nil {
		if errors.As(err, &sim.MultipleMatches{}) {
			err = &sim.QueryError{Class: "org.apache.spark.sql.delta.DeltaUnsupportedOperationException", Message: err.Error(),
				Conditions: []string{MultipleMatches}}
		}
		c.Fail(fmt.Errorf("batch %d: %w", w.Batch, err))
		return
	}
	c.Progress.JoinedRows += o.JoinedRows
	c.Progress.JoinedDates += o.JoinedDates
	replaced := o.Replaced
	clear(s.inserted)
	for i := range rows {
		row := &rows[i]
		switch o.Fates[i] {
		case sim.RowInserted:
			if s.source == asItIs && s.mode != sim.Append && s.mode != sim.AppendOnce {
				if s.inserted[row.Key] {
					c.SameBatch(row)
				}
				s.inserted[row.Key] = true
			}
			c.Progress.RowsUpdated++
			c.Emit(row)
		case sim.RowUpdated:
			first := true
			for ; len(replaced) > 0 && replaced[0].By == i; replaced = replaced[1:] {
				if first {
					c.Replace(replaced[0].Old.Tag, row)
				} else { // the table had the key twice, and both rows are now this one
					c.Again(stream.UpdateBefore, row.Key, replaced[0].Old.Tag)
					c.Again(stream.UpdateAfter, row.Key, row.Tag)
				}
				first = false
			}
			c.Progress.RowsUpdated++
		default:
			c.Drop(row, sim.Duplicate)
		}
	}
}

// nullKey reports whether a column of the key is NULL.
func (s *tableSink) nullKey(c *sim.BatchCtx, row *stream.Row) bool {
	if s.keys == nil {
		return false
	}
	record := c.Records.Record(row.Tag)
	for _, k := range s.keys {
		if record[k].Null {
			return true
		}
	}
	return false
}

// prepare leaves one row a key, if that is asked for. To dropDuplicates NULL is a key like any other: spark
// drop-duplicates/null-key.
func (s *tableSink) prepare(c *sim.BatchCtx, rows []stream.Row) []stream.Row {
	if s.source == asItIs {
		return rows
	}
	clear(s.seen)
	s.rows = s.rows[:0]
	for i := range rows {
		row := &rows[i]
		place, again := s.seen[row.Key]
		switch {
		case !again:
			s.seen[row.Key] = int32(len(s.rows))
			s.rows = append(s.rows, *row)
		case s.source == latestOfKey && row.Event > s.rows[place].Event:
			c.Drop(&s.rows[place], sim.Duplicate)
			s.rows[place] = *row
		default:
			c.Drop(row, sim.Duplicate)
		}
	}
	return s.rows
}

// Snapshot stores nothing: the table stands outside the query.
func (s *tableSink) Snapshot(*sim.BatchCtx) any { return nil }

// Restore has nothing to do.
func (s *tableSink) Restore(*sim.BatchCtx, any) {}

// State is empty: what the sink knows is in the table.
func (s *tableSink) State(*sim.BatchCtx) sim.State { return sim.State{} }

// Parameters of the sinks.
var (
	lookbackParam = Param{Name: "lookback", Kind: OptionalDuration, Default: "3d",
		About: "the MERGE is joined with `date >= today - lookback`, whole days; none: with the whole table"}
	nullSafeParam = Param{Name: "null_safe", Kind: Bool, Default: "false",
		About: "joins the key with <=>, to which NULL equals NULL; with = it equals nothing"}
	appendSourceParam = Param{Name: "dedup_source_batch", Kind: Bool, Default: "false",
		About: "dropDuplicates on the key of each batch before it is written"}
	dedupSourceParam = Param{Name: "dedup_source_batch", Kind: Bool, Default: "false",
		About: "dropDuplicates on the key of each batch before it is written; MERGE does not look for copies in its own batch"}
)

// lookback reads the parameter.
func (a Args) lookback() sim.Date {
	t, ok := a.Optional("lookback")
	if !ok {
		return wholeTable
	}
	return sim.Date(t / sim.Day)
}

// checkDays tests that parameters are whole days.
func checkDays(names ...string) func(Args, stream.Schema) string {
	return func(args Args, _ stream.Schema) string {
		for _, name := range names {
			if t, ok := args.Optional(name); ok && t%sim.Day != 0 {
				return fmt.Sprintf("%s: %s is not a whole number of days: the table is partitioned by date", name,
					args.Text(name))
			}
		}
		return ""
	}
}

// sourceOf reads the parameter dedup_source_batch.
func (a Args) source() sourceBatch {
	if a.Bool("dedup_source_batch") {
		return firstOfKey
	}
	return asItIs
}

// sinkPlan plans a query that does nothing but write its source to the table.
func (j Job) sinkPlan(name string, s tableSink) Plan {
	p := Plan{
		Changelog: stream.InsertOnly, Declared: stream.InsertOnly,
		StateClass: Stateless, Clock: "none", TTL: "no state; the table keeps all rows",
		InBatches: true, SharedCache: true, Language: "python", Lookback: s.lookback,
		Batch: &BatchPlan{Delays: [2]stream.Time{sim.NoWatermark, sim.NoWatermark}, Stages: []Stage{{
			BatchStage: sim.BatchStage{Name: name, New: func(*sim.BatchCtx) sim.BatchOperator { return j.newTableSink(s) }},
			Writes:     true,
		}}},
	}
	p.Batch.Consumers = appendedTable
	if s.mode == sim.MergeUpsert {
		p.Batch.Consumers = updatedTable
	}
	stage := &p.Batch.Stages[0]
	switch s.mode {
	case sim.Append, sim.AppendOnce:
		p.Operator, p.Runtime = "WriteIntoDelta", "org.apache.spark.sql.delta.commands.WriteIntoDelta"
		p.Leaks = NoDeduplication
	case sim.MergeInsert, sim.MergeUpsert:
		p.Operator, p.Runtime = "MergeIntoCommand", "org.apache.spark.sql.delta.commands.MergeIntoCommand"
		p.Leaks, p.Clock = ByLookback, "processing time, for the date of the lookback"
		stage.Key = j.pick(j.Schema.Key)
		stage.UniqueKey = s.mode == sim.MergeInsert && s.lookback == wholeTable && s.source == firstOfKey
		stage.NullSafe = s.nullSafe
		if s.lookback == wholeTable {
			p.Clock = "none"
		}
	}
	return p
}

// What takes a table that rows are only added to, and one whose rows are updated or deleted.
var (
	appendedTable = []BatchConsumer{
		{"batch query", true, "sees each batch when it has been written", "spark/sink-append-replay"},
		{"stream from the table", true, "readStream of a Delta table takes commits that add rows", NotRecorded},
	}
	updatedTable = []BatchConsumer{
		{"batch query", true, "sees each batch when it has been written", "spark/sink-merge-upsert-latest"},
		{"stream from the table", false, "readStream of a Delta table fails at a commit that changes rows, without " +
			"skipChangeCommits or the change data feed", NotRecorded},
	}
)

// on renders the condition of a MERGE between t and s.
func (s *tableSink) on(j Job, quoted bool) string {
	operator := " = "
	if s.nullSafe {
		operator = " <=> "
	}
	var parts []string
	for _, k := range j.keyNames() {
		parts = append(parts, "t."+k+operator+"s."+k)
	}
	if s.lookback != wholeTable {
		today := "current_date()"
		if quoted {
			today = "DATE'{today}'"
		}
		parts = append(parts, fmt.Sprintf("t.date >= date_sub(%s, %d)", today, s.lookback))
	}
	return strings.Join(parts, " AND ")
}

// foreachBatch renders a query whose batches a function writes.
func (j Job) foreachBatch(body string) string {
	imports := ""
	if strings.Contains(body, "datetime.") {
		imports = "from datetime import datetime, timezone\n"
	}
	functions := "functions as F"
	if strings.Contains(body, "Window.") {
		functions = "Window, functions as F"
	}
	return imports + "from pyspark.sql import " + functions + "\n\n" +
		"# CREATE TABLE " + tableName + " (..., date DATE) USING delta PARTITIONED BY (date)\n" +
		"# Dates are those of spark.sql.session.timeZone: let it be UTC.\n" +
		"def write(batch, batch_id):\n" +
		"    batch = batch.withColumn(\"date\", F.to_date(\"" + j.eventName() + "\"))\n" +
		strings.TrimRight(body, "\n") + "\n\n" +
		"(events.writeStream\n" +
		"    .foreachBatch(write)\n" +
		"    .option(\"checkpointLocation\", \"/checkpoints/" + tableName + "\")\n" +
		"    .start())"
}

// tableName is what the target is called in code.
const tableName = "events_clean"

// dedupCode renders what is done to the batch before it is written.
func (s *tableSink) dedupCode(j Job) string {
	switch s.source {
	case firstOfKey:
		return "    batch = batch.dropDuplicates(" + pyList(j.keyNames()) + ")\n"
	case latestOfKey:
		return "    latest = Window.partitionBy(" + strings.Trim(pyList(j.keyNames()), "[]") + ").orderBy(F.desc(\"" +
			j.eventName() + "\"))\n" +
			"    batch = (batch.withColumn(\"rn\", F.row_number().over(latest))\n" +
			"        .where(\"rn = 1\").drop(\"rn\"))\n"
	}
	return ""
}

// mergeCode renders a MERGE by its clauses.
func (s *tableSink) mergeCode(j Job, clauses string) string {
	today := ""
	if s.lookback != wholeTable {
		today = "    today = datetime.now(timezone.utc).date()\n"
	}
	return j.foreachBatch(s.dedupCode(j) + today +
		"    batch.createOrReplaceTempView(\"s\")\n" +
		"    batch.sparkSession.sql(f\"\"\"\n" +
		"        MERGE INTO " + tableName + " t USING s\n" +
		"        ON " + s.on(j, true) + "\n" +
		clauses +
		"    \"\"\")\n")
}
