package lab

import (
	"fmt"
	"slices"

	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// batches sums up what the micro-batches of a query did.
type batches struct {
	from, to stream.Time // the span
	interval stream.Time // of the trigger; 0: none
	stateful []bool      // by stage

	total     results.Spark
	half, end rowsAt // the last batches within the first half of the span, and within the whole
	operators []results.SparkOperator
	moved     stream.Time   // when the watermark last moved
	inputs    []stream.Time // the watermarks of the inputs then
	policy    sim.WatermarkPolicy
	engine    *sim.BatchEngine
}

// rowsAt is numRowsTotal after a batch.
type rowsAt struct {
	at   stream.Time
	rows int64
}

// newBatches prepares for a query.
func newBatches(plan *strategies.BatchPlan, from, to, interval stream.Time, policy sim.WatermarkPolicy) *batches {
	b := &batches{from: from, to: to, interval: interval, moved: from, policy: policy}
	for _, stage := range plan.Stages {
		b.stateful = append(b.stateful, stage.Operator != "")
		b.operators = append(b.operators, results.SparkOperator{Name: stage.Name})
	}
	return b
}

// add counts a batch that was committed.
func (b *batches) add(p *sim.BatchProgress) {
	t := &b.total
	t.Batches++
	if p.NoData {
		t.NoDataBatches++
	}
	if p.Attempt > 1 {
		t.Reruns++
	}
	if b.interval > 0 && p.End-p.At > b.interval {
		t.FellBehind++
	}
	rows := int64(0)
	for i := range p.Stages {
		s, o := &p.Stages[i], &b.operators[i]
		o.RowsIn += s.RowsIn
		o.RowsOut += s.RowsOut
		if !b.stateful[i] {
			continue
		}
		o.RowsUpdated += s.RowsUpdated
		o.RowsRemoved += s.RowsRemoved
		o.DroppedByWatermark += s.DroppedByWatermark
		o.DroppedDuplicates += s.DroppedDuplicates
		o.RowsTotal.Peak, o.RowsTotal.End = max(o.RowsTotal.Peak, s.RowsTotal), s.RowsTotal
		rows += s.RowsTotal
	}
	t.RowsTotal.Peak, t.RowsTotal.End = max(t.RowsTotal.Peak, rows), rows
	if p.End <= b.from+(b.to-b.from)/2 {
		b.half = rowsAt{p.End, rows}
	}
	if p.End <= b.to {
		b.end = rowsAt{p.End, rows}
	}
	if p.HasWatermark && p.WatermarkAfter > p.Watermark {
		b.stood(p.End, p.Inputs)
	}
}

// stood ends a standstill of the watermark.
func (b *batches) stood(at stream.Time, inputs []stream.Time) {
	at = min(at, b.to)
	if still := int64(at - b.moved); still > b.total.Standstill.Millis {
		b.total.Standstill = results.Standstill{Millis: still, FromMS: int64(b.moved - b.from),
			RowsTotal: b.total.RowsTotal.End, Input: b.heldBackBy(inputs)}
	}
	b.moved = max(b.moved, at)
	b.inputs = append(b.inputs[:0], inputs...)
}

// heldBackBy is the number of the input by which a watermark stood still while another input's went on.
func (b *batches) heldBackBy(now []stream.Time) int64 {
	if b.policy != sim.MinWatermark || len(now) < 2 {
		return 0
	}
	before := b.inputs
	if before == nil {
		before = make([]stream.Time, len(now))
	}
	slowest := slices.Index(before, slices.Min(before))
	for i := range now {
		if i != slowest && now[i] > before[i] {
			return int64(slowest) + 1
		}
	}
	return 0
}

// result sums up the run.
func (b *batches) result() *results.Spark {
	t := &b.total
	for i, o := range b.operators {
		if b.stateful[i] {
			t.RowsUpdated += o.RowsUpdated
			t.RowsRemoved += o.RowsRemoved
			t.DroppedByWatermark += o.DroppedByWatermark
			t.DroppedDuplicates += o.DroppedDuplicates
		}
	}
	if span := int64(b.end.at - max(b.half.at, b.from)); span > 0 {
		t.RowsTotal.PerHour = (b.end.rows - b.half.rows) * 3_600_000 / span
	}
	if late := b.engine.LateByInput(); len(late) > 1 {
		t.DroppedByInput = late
	}
	if len(b.operators) > 1 {
		t.Operators = b.operators
	}
	return t
}

// sparkFindings are what the micro-batches of a query brought up.
func sparkFindings(s *results.Strategy, plan strategies.Plan, job results.Job) []string {
	var notes []string
	count := results.FormatCount
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	spark := s.Spark
	if rows := spark.RowsTotal; rows.End > 0 && spark.RowsRemoved == 0 {
		trend := fmt.Sprintf("numRowsTotal only rises: %s at the end", results.FormatNumber(rows.End, "key"))
		if rows.PerHour > 0 {
			trend += fmt.Sprintf(", %s more each hour", count(rows.PerHour))
		}
		if plan.StateClass == strategies.TimeBounded {
			note("%s; nothing was removed yet: no key has come to its end", trend)
		} else {
			note("%s, and nothing ever removes one", trend)
		}
	}
	var failures int64
	for _, f := range job.Failures {
		if f.Kind == sim.SinkFailure.String() {
			failures++
		}
	}
	if failures > spark.Reruns && s.Failed == "" {
		note("of %s of the sink %s struck a batch: the others came at the same batch, or after the last one",
			results.FormatNumber(failures, "failure"), count(spark.Reruns))
	}
	still, each := spark.Standstill, job.Spark.Trigger != scenarios.AvailableNow
	if each && still.RowsTotal > 0 && still.Millis >= max(10*job.Spark.TriggerMS, 60_000) {
		by := "no row came that moves it"
		if still.Input > 0 {
			by = fmt.Sprintf("input %d was quiet, and multipleWatermarkPolicy = min lets it hold back the others", still.Input)
		}
		note("the watermark stood still for %s from %s on: %s; %s keys were in the state by then",
			results.FormatSpan(still.Millis), results.FormatSpan(still.FromMS), by, count(still.RowsTotal))
	}
	if late := spark.DroppedByInput; len(late) > 0 && job.Spark.WatermarkPolicy == "max" && slices.Max(late) > 0 {
		slower := slices.Index(late, slices.Max(late))
		note("%s of the %s late rows are of input %d: multipleWatermarkPolicy = max goes by the input that is ahead",
			count(late[slower]), count(spark.DroppedByWatermark), slower+1)
	}
	if spark.FellBehind > 0 {
		note("%s of %s batches took longer than the trigger's interval", count(spark.FellBehind), count(spark.Batches))
	}
	return notes
}

// sparkJob tells what the queries ran in.
func sparkJob(s scenarios.Spark) *results.SparkJob {
	job := &results.SparkJob{
		Version: strategies.Spark, Trigger: "processing-time", TriggerMS: int64(s.Trigger.Every), MaxRows: s.Trigger.MaxRows,
		NoDataBatches: s.NoDataBatches, WatermarkPolicy: scenarios.PolicyName(s.Policy), Inputs: s.Inputs,
		BatchCostMS: int64(s.Cost.Batch), CostRowsPerSecond: s.Cost.RowsPerSecond,
	}
	if s.Trigger.AvailableNow {
		job.Trigger = scenarios.AvailableNow
	}
	job.RestartMS, job.MigrateMS, job.OverlapMS = int64(s.Restart), int64(s.Migrate.At), int64(s.Migrate.Overlap)
	return job
}
