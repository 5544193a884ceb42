package strategies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"deduplab/sim"
	"deduplab/stream"
)

// BatchPlan is a strategy planned as a micro-batch query of Spark Structured Streaming.
type BatchPlan struct {
	// Delays are the watermark delays of the inputs, in the query's withWatermark: of the first one, and of all others.
	// sim.NoWatermark stands for an input without.
	Delays [2]stream.Time
	// Refused is the error with which Spark refuses to run the query; nil where it runs it.
	Refused *sim.QueryError
	// Stages are the query's stateful operators in their order, then what foreachBatch does with the output.
	Stages []Stage
	// Restarted is the query that goes on from the checkpoint when the job is restarted; nil: the same.
	Restarted *BatchPlan
	// Consumers are what takes the result, and what does not.
	Consumers []BatchConsumer
}

// BatchConsumer says whether an output mode, a sink or an operator takes the result of a query.
type BatchConsumer struct {
	Name    string
	Accepts bool
	Note    string // the reason, or what to know beside a yes
	Case    string // as in a Fact
}

// Stage is one stage of a micro-batch query.
type Stage struct {
	sim.BatchStage
	// Strategy is the one that the stage is of, where it is one of several; empty: the plan's.
	Strategy, Engine string
	// Operator is the name of a stateful operator in the state metadata of a checkpoint, such as dedupe; empty where the
	// stage is none.
	Operator string
	// Key are the columns that rows are shuffled by, of a stateful operator those of its key; nil where a stage takes
	// them as they come.
	Key []stream.Column
	// Writes says that the stage writes the target: nothing but an audit can follow it.
	Writes bool
	// UniqueKey says that no key comes into the target twice, NullSafe that this is so of NULL as well.
	UniqueKey, NullSafe bool
	// Audits says that the stage is a job of its own that runs over the target.
	Audits bool
}

// RowBytes are the bytes of a row that is shuffled to the stage: whole, and with nothing but the key and the event
// time; 0 where rows are not shuffled.
func (s *Stage) RowBytes(schema stream.Schema) (whole, keyFirst int) {
	if s.Key == nil {
		return 0, 0
	}
	event := schema.Columns[schema.Event]
	narrow := s.Key
	if !slices.Contains(narrow, event) {
		narrow = append(slices.Clone(narrow), event)
	}
	return unsafeRowBytes(schema.Columns), unsafeRowBytes(narrow)
}

// FlinkRowBytes is RowBytes of a strategy of Flink, whose rows are shuffled by the key.
func FlinkRowBytes(schema stream.Schema) (whole, keyFirst int) {
	j := Job{Schema: schema}
	return j.rowBytes(), j.keyBytes() + columnBytes(schema.Columns[schema.Event])
}

// stateful plans a query with one stateful operator, by its name in the state metadata, that is grouped by the key.
func (j Job) stateful(delays [2]stream.Time, operator string, make func(*sim.BatchCtx) sim.BatchOperator) *BatchPlan {
	return &BatchPlan{Delays: delays, Stages: []Stage{{
		BatchStage: sim.BatchStage{Name: operator, Shuffled: true, New: make},
		Operator:   operator, Key: j.pick(j.Schema.Key),
	}}}
}

// Spec fills in what a plan knows of a query.
func (p *BatchPlan) Spec(spec sim.BatchSpec, inputs int) sim.BatchSpec {
	for i := range inputs {
		spec.Inputs = append(spec.Inputs, p.Delays[min(i, 1)])
	}
	for _, s := range p.Stages {
		spec.Stages = append(spec.Stages, s.BatchStage)
	}
	return spec
}

// restartedAs plans what becomes of a plan when the job is restarted with the query of another one.
func (p *Plan) restartedAs(next Plan) {
	p.Batch.Restarted = next.Batch
	if condition := next.Batch.RestartRefused(p.Batch); condition != "" {
		p.Refused = "the restart from the checkpoint fails with " + condition
	}
	p.Code += "\n\n# after the restart, from the same checkpoint\n" + next.Code
}

// The error conditions with which Spark refuses to go on from a checkpoint.
const (
	OperatorsDiffer = "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"
	KeysDiffer      = "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE"
)

// RestartRefused is the condition with which Spark refuses to run the plan from a checkpoint that another plan has
// left; empty where it takes it. Operators are compared by name and number, keys by number and types of their columns
// alone: other columns of the same types are accepted, and the old state is read as if it were of them. spark
// changed-columns/other-key-same-type, changed-columns/key-order.
func (p *BatchPlan) RestartRefused(before *BatchPlan) string {
	stateful := func(p *BatchPlan) []Stage {
		return slices.DeleteFunc(slices.Clone(p.Stages), func(s Stage) bool { return s.Operator == "" })
	}
	old, now := stateful(before), stateful(p)
	if !slices.EqualFunc(old, now, func(a, b Stage) bool { return a.Operator == b.Operator }) {
		return OperatorsDiffer
	}
	for i := range old {
		sameType := func(a, b stream.Column) bool { return a.Type == b.Type && a.Scale == b.Scale }
		if !slices.EqualFunc(old[i].Key, now[i].Key, sameType) {
			return KeysDiffer
		}
	}
	return ""
}

// NoWatermarkGiven is the condition with which Spark refuses dropDuplicatesWithinWatermark in a query without a
// watermark: spark within-watermark/no-watermark.
const NoWatermarkGiven = "_LEGACY_ERROR_TEMP_3102"

// EventTimesDiffer is the condition with which Spark refuses a stateful operator whose rows have two columns of event
// time: spark-extra edge/window-and-ts.
const EventTimesDiffer = "MULTIPLE_EVENT_TIME_COLUMNS"

// OutputModeRefused is the condition with which Spark refuses an output mode that a query cannot have: spark
// latest-wins/aggregate-append, spark-extra edge/dedup-complete-mode.
const OutputModeRefused = "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION"

// FunctionModeDiffers is the condition with which Spark refuses flatMapGroupsWithState where its output mode is not the
// query's: spark-extra edge/fmgws-other-mode.
const FunctionModeDiffers = NoWatermarkGiven

// watermarkDelay and its kin are the parameters of a query with withWatermark.
var (
	watermarkDelay = Param{Name: "delay", Kind: Duration, Default: "10m",
		About: "delay of withWatermark: the watermark is the largest event time of the batches before less this"}
	watermarkDelayOrNone = Param{Name: "delay", Kind: OptionalDuration, Default: None,
		About: "delay of withWatermark; none: the query has no watermark"}
	otherDelay = Param{Name: "other_delay", Kind: OptionalDuration, Default: None,
		About: "of several inputs: the delay of all but the first one; none: it is the same"}
)

// columnsParam and restartColumns are the parameters of a deduplication by columns.
var (
	columnsParam = Param{Name: "columns", Kind: Columns, Default: KeyColumns,
		About: "the columns that make two rows duplicates; key: those of the workload's key, all: all of " +
			"them, none: none but the window"}
	restartColumns = Param{Name: "restart_columns", Kind: Columns, Default: SameColumns,
		About: "the columns after job.spark.restart, from the same checkpoint; same: those of before"}
)

// delays reads the parameters delay and other_delay.
func (a Args) delays() [2]stream.Time {
	first, ok := a.Optional("delay")
	if !ok {
		return [2]stream.Time{sim.NoWatermark, sim.NoWatermark}
	}
	if other, ok := a.Optional("other_delay"); ok {
		return [2]stream.Time{first, other}
	}
	return [2]stream.Time{first, first}
}

// HashColumns is the key of some of a row's columns: equal for equal values in the same order, whatever the columns are
// called, as Spark compares them. spark changed-columns/other-key-same-type.
func HashColumns(row stream.Record, columns []int) stream.Key {
	var b []byte
	for _, i := range columns {
		v := row[i]
		if v.Null {
			b = append(b, 0)
			continue
		}
		b = fmt.Appendf(append(b, 1), "%d,%d,", v.Int, len(v.Text))
		b = append(b, v.Text...)
	}
	lo := xxhash.Sum64(b)
	return stream.Key{Hi: xxhash.Sum64(append(b, 2)), Lo: lo}
}

// keyOf finds the key of a row by some columns; nil where it is the key of the workload, which the row brings along.
func (j Job) keyOf(columns []int) func(stream.Records, *stream.Row) stream.Key {
	key := len(j.Schema.Key)
	switch {
	case key > 0 && slices.Equal(columns, j.Schema.Key):
		return nil
	case key > 0 && slices.Equal(columns, append(slices.Clone(j.Schema.Key), j.Schema.Event)):
		return func(_ stream.Records, row *stream.Row) stream.Key { return row.Key.With(int64(row.Event)) }
	case key > 0 && slices.Equal(columns, j.allIndexes()):
		return func(records stream.Records, row *stream.Row) stream.Key {
			content := records.Content(row.Tag)
			return stream.Key{Hi: content, Lo: stream.Mix(content)}
		}
	}
	return func(records stream.Records, row *stream.Row) stream.Key {
		return HashColumns(records.Record(row.Tag), columns)
	}
}

func (j Job) allIndexes() []int {
	all := make([]int, len(j.Schema.Columns))
	for i := range all {
		all[i] = i
	}
	return all
}

// unsafeRowBytes is the size of columns as Spark's UnsafeRow holds them: a bit set of nulls, 8 bytes a column, and
// texts, taken as the 36 characters of a UUID, in multiples of 8.
func unsafeRowBytes(columns []stream.Column) int {
	n := (len(columns) + 63) / 64 * 8
	for _, c := range columns {
		n += 8
		if c.Type == stream.String {
			n += (stringBytes + 7) / 8 * 8
		}
	}
	return n
}

// pick returns columns by their indexes.
func (j Job) pick(columns []int) []stream.Column {
	picked := make([]stream.Column, len(columns))
	for i, c := range columns {
		picked[i] = j.Schema.Columns[c]
	}
	return picked
}

// pyList renders names as a Python list.
func pyList(names []string) string {
	return `["` + strings.Join(names, `", "`) + `"]`
}

// sparkDelay spells a span as withWatermark reads it.
func sparkDelay(t stream.Time) string {
	for _, u := range []struct {
		ms   stream.Time
		name string
	}{{86_400_000, "days"}, {3_600_000, "hours"}, {60_000, "minutes"}, {1000, "seconds"}} {
		if t%u.ms == 0 && t > 0 {
			return fmt.Sprintf("%d %s", t/u.ms, u.name)
		}
	}
	return fmt.Sprintf("%d milliseconds", t)
}
