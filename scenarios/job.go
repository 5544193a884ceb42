package scenarios

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"deduplab/gen"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
	"deduplab/yml"
)

// defaultJob is a job in which nothing has been set.
func defaultJob() Job {
	return Job{
		Flink:       strategies.Flink23,
		Input:       stream.InsertOnly,
		Parallelism: 1,
		Watermark:   Watermark{Interval: 200, Per: "partition"},
		Checkpoint:  Checkpoint{Delivery: "at-least-once"},
		Sink:        strategies.Retract,
		State:       "memory",
		Skew:        10_000,
		Table:       "pebble",
		Spark:       Spark{Trigger: sim.Trigger{Every: 10_000}, NoDataBatches: true, Inputs: 1, Shuffle: WholeRow},
	}
}

func (l *loader) job(n *yml.Node) {
	j := &l.scenario.Job
	l.Object(n,
		yml.May("flink", yml.Value(l.Reader, &j.Flink, strategies.ParseVersion)),
		yml.May("input", yml.Value(l.Reader, &j.Input, strategies.ParseInput)),
		yml.May("parallelism", yml.Bare(l.Reader, &j.Parallelism, parallelism)),
		yml.May("watermark", func(n *yml.Node) {
			l.Object(n,
				yml.May("delay", yml.Value(l.Reader, &j.Watermark.Delay, span)),
				yml.May("interval", yml.Value(l.Reader, &j.Watermark.Interval, positive)),
				yml.May("idle_after", yml.Value(l.Reader, &j.Watermark.IdleAfter, span)),
				yml.May("per", yml.Value(l.Reader, &j.Watermark.Per, yml.OneOf("partition", "reader"))),
			)
		}),
		yml.May("checkpoint", func(n *yml.Node) {
			l.Object(n,
				yml.May("interval", yml.Value(l.Reader, &j.Checkpoint.Interval, span)),
				yml.May("delivery", yml.Value(l.Reader, &j.Checkpoint.Delivery,
					yml.OneOf("at-least-once", "exactly-once"))),
			)
			if j.Checkpoint.Delivery == "exactly-once" && j.Checkpoint.Interval == 0 && !l.Faulty(n) {
				l.Add(n.Get("delivery").At, "exactly-once delivery needs checkpoints: set checkpoint.interval")
			}
		}),
		yml.May("sink", yml.Value(l.Reader, &j.Sink, Sink)),
		yml.May("state", yml.Value(l.Reader, &j.State, yml.OneOf("memory", "pebble"))),
		yml.May("mini_batch", func(n *yml.Node) {
			l.Object(n,
				yml.Must("latency", yml.Value(l.Reader, &j.MiniBatch.Latency, positive)),
				yml.Must("size", yml.Bare(l.Reader, &j.MiniBatch.Size, yml.Whole(1, math.MaxInt32))),
			)
		}),
		yml.May("table", yml.Value(l.Reader, &j.Table, table)),
		yml.May("spark", l.spark),
		yml.May("failures", func(n *yml.Node) {
			for _, one := range l.Entries(n) {
				j.Failures = append(j.Failures, l.failure(one))
			}
		}),
		yml.May("catch_up_rate", yml.Value(l.Reader, &j.CatchUpRate, rate)),
		yml.May("retention", yml.Value(l.Reader, &j.Retention, positive)),
		yml.May("skew", yml.Bare(l.Reader, &j.Skew, yml.Whole(1, math.MaxInt32))),
		yml.May("adds", l.adds),
	)
	if adds := n.Get("adds"); adds != nil && j.Input != stream.InsertOnly && !l.Faulty(n) {
		l.Add(adds.NameAt, "with input: changelog a -U or -D would carry another value than the row that it takes back, "+
			"which is not modelled: leave out adds")
	}
}

// adds reads the columns that the query adds. They are then columns of the workload to all that is read after it.
func (l *loader) adds(n *yml.Node) {
	schema := &l.scenario.Workload.Schema
	for _, entry := range l.Entries(n) {
		var name string
		var function stream.Function
		before := l.Faults()
		l.Object(entry,
			yml.Must("column", yml.Value(l.Reader, &name, column)),
			yml.Must("function", yml.Value(l.Reader, &function, addedFunction)),
		)
		if l.Faults() > before {
			continue
		}
		if schema.Index(name) >= 0 || name == gen.DedupKey {
			l.Add(entry.Get("column").At, "there is a column %s already", name)
			continue
		}
		c := gen.AddedColumn(name, function)
		l.scenario.Job.Adds = append(l.scenario.Job.Adds, c)
		schema.Columns = append(slices.Clip(schema.Columns), c)
	}
}

func addedFunction(s string) (stream.Function, error) {
	f, ok := stream.ParseFunction(s)
	if !ok {
		return 0, fmt.Errorf("there is no function %q%s", s, yml.Nearest(s, stream.Functions, "there are"))
	}
	return f, nil
}

// AvailableNow is the trigger that runs once over all that has arrived.
const AvailableNow = "available-now"

func (l *loader) spark(n *yml.Node) {
	s := &l.scenario.Job.Spark
	l.Object(n,
		yml.May("trigger", yml.Value(l.Reader, &s.Trigger, trigger)),
		yml.May("max_rows_per_trigger", yml.Bare(l.Reader, &s.Trigger.MaxRows, yml.Whole(0, math.MaxInt32))),
		yml.May("no_data_batches", yml.Bare(l.Reader, &s.NoDataBatches, yml.Boolean)),
		yml.May("watermark_policy", yml.Value(l.Reader, &s.Policy, policy)),
		yml.May("inputs", yml.Bare(l.Reader, &s.Inputs, yml.Whole(1, 1024))),
		yml.May("cost", func(n *yml.Node) {
			l.Object(n,
				yml.May("batch", yml.Value(l.Reader, &s.Cost.Batch, span)),
				yml.May("rows_per_second", yml.Bare(l.Reader, &s.Cost.RowsPerSecond, integer)),
			)
		}),
		yml.May("shuffle", yml.Value(l.Reader, &s.Shuffle, yml.OneOf(WholeRow, KeyFirst))),
		yml.May("restart", yml.Value(l.Reader, &s.Restart, span)),
		yml.May("migrate", func(n *yml.Node) {
			l.Object(n,
				yml.Must("at", yml.Value(l.Reader, &s.Migrate.At, positive)),
				yml.May("overlap", yml.Value(l.Reader, &s.Migrate.Overlap, span)),
			)
			if s.Migrate.Overlap > s.Migrate.At && !l.Faulty(n) {
				l.Add(n.Get("overlap").At, "the overlap lies before at: it can be at most %s", dur(s.Migrate.At))
			}
		}),
	)
	if spec := l.scenario.Workload.Spec; spec != nil && spec.Duration > 0 && !l.Faulty(n) {
		if s.Restart >= spec.Duration {
			l.Add(n.Get("restart").At, "the stream has ended by then: it lasts %s", dur(spec.Duration))
		}
		if s.Migrate.At >= spec.Duration {
			l.Add(n.Get("migrate").Get("at").At, "the stream has ended by then: it lasts %s", dur(spec.Duration))
		}
	}
	if s.Restart > 0 && s.Migrate.At > 0 && !l.Faulty(n) {
		l.Add(n.Get("migrate").NameAt, "there is a restart from the checkpoint already: a query is either restarted or replaced")
	}
	if s.Trigger.Every == 0 && !s.Trigger.AvailableNow && s.Cost.Batch == 0 && !l.Faulty(n) {
		l.Add(n.Get("trigger").At, "a trigger of 0s starts a batch when the one before has ended: say how long one takes "+
			"with cost.batch")
	}
	if s.Cost.RowsPerSecond < 0 {
		l.Add(n.Get("cost").Get("rows_per_second").At, "rows_per_second must be at least 0; 0: rows cost nothing")
	}
}

// What is shuffled to a stage.
const (
	WholeRow = "whole-row"
	KeyFirst = "key-first"
)

// table reads what a target is kept in.
func table(s string) (string, error) {
	if s == "memory" || s == "pebble" || strings.HasPrefix(s, "postgres://") || strings.HasPrefix(s, "postgresql://") {
		return s, nil
	}
	const write = "memory, pebble, or the address of a database, postgres://user@host/name"
	if near := stream.DidYouMean(s, []string{"memory", "pebble"}); near != "" {
		return "", fmt.Errorf("%q is no table%s Write %s", s, near, write)
	}
	return "", fmt.Errorf("%q is no table; write %s", s, write)
}

// TableKind is memory, pebble or postgres.
func (j Job) TableKind() string {
	kind, _, _ := strings.Cut(j.Table, ":")
	if kind == "postgresql" {
		return "postgres"
	}
	return kind
}

// trigger reads an interval or available-now. It leaves the limit of rows, which stands beside it, to its own field.
func trigger(s string) (sim.Trigger, error) {
	if s == AvailableNow {
		return sim.Trigger{AvailableNow: true}, nil
	}
	every, err := span(s)
	if err != nil {
		return sim.Trigger{}, fmt.Errorf("%w; or write %s", err, AvailableNow)
	}
	return sim.Trigger{Every: every}, nil
}

// policies are the names of the watermark policies.
var policies = []string{sim.MinWatermark: "min", sim.MaxWatermark: "max"}

// PolicyName is how a scenario writes a policy.
func PolicyName(p sim.WatermarkPolicy) string { return policies[p] }

func policy(s string) (sim.WatermarkPolicy, error) {
	name, err := yml.OneOf(policies...)(s)
	return sim.WatermarkPolicy(slices.Index(policies, name)), err
}

// keyGroups is Flink's default maximum parallelism: keys are spread over so many groups, and groups over subtasks.
const keyGroups = 128

func parallelism(s string) (int, error) {
	n, err := yml.Whole(1, keyGroups)(s)
	if _, none := strconv.Atoi(s); none == nil && err != nil {
		return 0, fmt.Errorf("%w: there are %d key groups, Flink's default maximum parallelism", err, keyGroups)
	}
	return n, err
}

// Sink reads the name of a sink.
func Sink(s string) (strategies.Sink, error) {
	sink, ok := strategies.ParseSink(s)
	if !ok {
		names := []string{strategies.Retract.String(), strategies.Append.String(), strategies.Upsert.String()}
		return 0, fmt.Errorf("there is no sink %q%s", s, yml.Nearest(s, names, "there are"))
	}
	return sink, nil
}
