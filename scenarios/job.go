package scenarios

import (
	"fmt"
	"math"
	"strconv"

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
		yml.May("catch_up_rate", yml.Value(l.Reader, &j.CatchUpRate, rate)),
		yml.May("retention", yml.Value(l.Reader, &j.Retention, positive)),
		yml.May("skew", yml.Bare(l.Reader, &j.Skew, yml.Whole(1, math.MaxInt32))),
	)
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
