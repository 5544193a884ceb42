package strategies

import (
	"fmt"
	"slices"
	"strings"

	"deduplab/stream"
)

// Scala and Python code is rendered with the scenario's own columns.

var scalaTypes = map[stream.Type]string{stream.String: "String", stream.Int: "Long", stream.Decimal: "BigDecimal",
	stream.Timestamp: "java.sql.Timestamp"}

// caseClass renders the schema as Scala's Event.
func (j Job) caseClass() string {
	fields := make([]string, len(j.Schema.Columns))
	for i, c := range j.Schema.Columns {
		fields[i] = c.Name + ": " + scalaTypes[c.Type]
	}
	return "case class Event(" + strings.Join(fields, ", ") + ")"
}

// scalaKey renders the type of the key, and the function that finds it.
func (j Job) scalaKey() (typ, of string) {
	names, types := make([]string, len(j.Schema.Key)), make([]string, len(j.Schema.Key))
	for i, c := range j.pick(j.Schema.Key) {
		names[i], types[i] = "e."+c.Name, scalaTypes[c.Type]
	}
	if len(names) == 1 {
		return types[0], "_." + strings.TrimPrefix(names[0], "e.")
	}
	return "(" + strings.Join(types, ", ") + ")", "e => (" + strings.Join(names, ", ") + ")"
}

// scalaHorizon renders the horizon by kind, and the call of it for a row.
func (j Job) scalaHorizon(args Args) (function, of string) {
	spans, kind := args.Spans("horizon"), args.Text("kind")
	span := func(s Span) string { return fmt.Sprintf("%dL // %s", s.Span, stream.FormatDuration(s.Span)) }
	if len(spans) == 1 {
		return "val horizonMs: Long = " + span(spans[0]), "horizonMs"
	}
	column := j.Schema.Columns[j.Schema.Index(kind)]
	var b strings.Builder
	fmt.Fprintf(&b, "def horizonMs(kind: %s): Long = kind match {\n", scalaTypes[column.Type])
	for _, s := range spans {
		if s.Name != AnyKind {
			name := s.Name
			if column.Type == stream.String {
				name = fmt.Sprintf("%q", name)
			}
			fmt.Fprintf(&b, "  case %s => %s\n", name, span(s))
		}
	}
	i := slices.IndexFunc(spans, func(s Span) bool { return s.Name == AnyKind })
	fmt.Fprintf(&b, "  case _ => %s\n}", span(spans[i]))
	return b.String(), "horizonMs(row." + column.Name + ")"
}

// scalaGroups renders a query with flatMapGroupsWithState: the state's class, the lines of the function that handle
// rows, and the output mode.
func (j Job) scalaGroups(args Args, seen, rows, mode string) string {
	keyType, key := j.scalaKey()
	horizon, _ := j.scalaHorizon(args)
	return fmt.Sprintf(`import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout, OutputMode}

%s
case class Seen(%s)

%s

def dedup(id: %s, rows: Iterator[Event], state: GroupState[Seen]): Iterator[Event] = {
  if (state.hasTimedOut) { state.remove(); Iterator.empty }    // horizon passed: forget the key
  else {
    val batch = rows.toSeq.sortBy(_.%s.getTime)
%s
  }
}

val deduped = events
  .withWatermark(%q, %q)
  .groupByKey(%s)
  .flatMapGroupsWithState(OutputMode.%s, GroupStateTimeout.EventTimeTimeout)(dedup)`,
		j.caseClass(), seen, horizon, keyType, j.eventName(), rows, j.eventName(), sparkDelay(args.Duration("delay")),
		key, mode)
}

func flatMapGroupsCode(args Args, job Job) string {
	_, horizon := job.scalaHorizon(args)
	ts := "row." + job.eventName() + ".getTime"
	switch args.Text("variant") {
	case "printed":
		return job.scalaGroups(args, "firstTsMs: Long, dupCount: Long", `    if (state.exists) {    // already emitted earlier
      state.update(state.get.copy(dupCount = state.get.dupCount + batch.size))
      Iterator.empty       // and the timeout is cleared: it is not set again
    } else {
      val row = batch.head
      state.update(Seen(`+ts+`, batch.size - 1))
      state.setTimeoutTimestamp(`+ts+` + `+horizon+`)
      Iterator(row)
    }`, "Append")
	case "guarded":
		return job.scalaGroups(args, "firstTsMs: Long, dupCount: Long", `    batch.filter { row =>
      val first = !state.exists
      if (first) {
        val until = `+ts+` + `+horizon+`
        if (until >= state.getCurrentWatermarkMs()) {    // keep no state that is already over
          state.update(Seen(`+ts+`, 0))
          state.setTimeoutTimestamp(until)
        }
      } else state.update(state.get.copy(dupCount = state.get.dupCount + 1))
      first
    }.iterator`, "Append")
	}
	until := "state.get.untilMs"
	note := "set again on every call, or it is cleared"
	if args.Text("variant") == "safe" {
		until = "math.max(state.get.untilMs, state.getCurrentWatermarkMs())"
		note = "set again on every call, and never before the watermark"
	}
	return job.scalaGroups(args, "firstTsMs: Long, dupCount: Long, untilMs: Long", `    batch.filter { row =>
      val first = !state.exists
      if (first) state.update(Seen(`+ts+`, 0, `+ts+` + `+horizon+`))
      else state.update(state.get.copy(dupCount = state.get.dupCount + 1))
      state.setTimeoutTimestamp(`+until+`) // `+note+`
      first
    }.iterator`, "Append")
}

func latestWinsCode(args Args, job Job) string {
	_, horizon := job.scalaHorizon(args)
	ts := "row." + job.eventName() + ".getTime"
	mode := "Append"
	if args.Text("mode") == "update" {
		mode = "Update"
	}
	return job.scalaGroups(args, "firstTsMs: Long, versions: Long, lastTsMs: Long", `    batch.filter { row =>
      val newer = !state.exists || `+ts+` > state.get.lastTsMs
      if (newer) {
        val seen = state.getOption.getOrElse(Seen(`+ts+`, -1, 0))
        state.update(Seen(seen.firstTsMs, seen.versions + 1, `+ts+`))
        state.setTimeoutTimestamp(`+ts+` + `+horizon+`)
      }
      newer
    }.iterator`, mode) + `

// The sink must take the last row of a key: MERGE on the key in foreachBatch, after a dedup inside the batch.`
}

func latestWinsAggregateCode(args Args, job Job) string {
	key := job.keyNames()
	var rest []string
	for i, c := range job.Schema.Columns {
		if !slices.Contains(job.Schema.Key, i) {
			rest = append(rest, c.Name)
		}
	}
	watermark := ""
	if delay, ok := args.Optional("delay"); ok {
		watermark = fmt.Sprintf("    .withWatermark(%q, %q)\n", job.eventName(), sparkDelay(delay))
	}
	return fmt.Sprintf(`from pyspark.sql import functions as F

latest = (events
%s    .groupBy(%s)
    .agg(F.max_by(F.struct(%s), %q).alias("latest"), F.count("*").alias("n"))
    .select(%s, "latest.*", "n"))

(latest.writeStream
    .outputMode(%q)
    .foreachBatch(upsert_by_key)      # each row takes the place of the one of its key
    .start())`, watermark, pyArgs(key), pyArgs(rest), job.eventName(), pyArgs(key), args.Text("mode"))
}

// pyArgs renders names as arguments.
func pyArgs(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }

func transformWithStateCode(args Args, job Job) string {
	provider := map[string]string{"rocksdb": "RocksDBStateStoreProvider", "hdfs": "HDFSBackedStateStoreProvider"}
	lines := []string{
		"            if not self.seen.exists():",
		"                self.seen.update((0,))",
		"                yield pdf.head(1)",
	}
	if args.Text("copies") == "update" {
		lines = append(lines,
			"                pdf = pdf.iloc[1:]",
			"            if len(pdf) > 0:",
			"                self.seen.update((self.seen.get()[0] + len(pdf),))  # every write starts the TTL anew")
	}
	return fmt.Sprintf(`from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import LongType, StructField, StructType

spark.conf.set("spark.sql.streaming.stateStore.providerClass",
               "org.apache.spark.sql.execution.streaming.state.%s")


class FirstOfKey(StatefulProcessor):
    def init(self, handle):
        count = StructType([StructField("copies", LongType())])
        self.seen = handle.getValueState("seen", count, ttlDurationMs=%d)  # %s

    def handleInputRows(self, key, rows, timer_values):
        for pdf in rows:
%s

    def close(self):
        pass


deduped = (events
    .groupBy(%s)
    .transformWithStateInPandas(statefulProcessor=FirstOfKey(), outputStructType=events.schema,
                                outputMode="Append", timeMode="ProcessingTime"))`,
		provider[args.Text("state_store")], args.Duration("ttl"), stream.FormatDuration(args.Duration("ttl")),
		strings.Join(lines, "\n"), pyArgs(job.keyNames()))
}
