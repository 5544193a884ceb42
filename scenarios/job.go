package scenarios

import (
	"fmt"
	"math"

	"deduplab/strategies"
)

// defaultJob is a job in which nothing has been set.
func defaultJob() Job {
	return Job{
		Flink:       "2.3",
		Parallelism: 1,
		Watermark:   Watermark{Interval: 200, Per: "partition"},
		Checkpoint:  Checkpoint{Delivery: "at-least-once"},
		Sink:        strategies.Retract,
		State:       "memory",
		Skew:        10_000,
	}
}

func (l *loader) job(n *node) {
	f, j := &l.faults, &l.scenario.Job
	f.object(n,
		may("flink", value(f, &j.Flink, oneOf("2.3"))),
		may("parallelism", bare(f, &j.Parallelism, whole(1, 1024))),
		may("watermark", func(n *node) {
			f.object(n,
				may("delay", value(f, &j.Watermark.Delay, span)),
				may("interval", value(f, &j.Watermark.Interval, positive)),
				may("idle_after", value(f, &j.Watermark.IdleAfter, span)),
				may("per", value(f, &j.Watermark.Per, oneOf("partition", "reader"))),
			)
		}),
		may("checkpoint", func(n *node) {
			f.object(n,
				may("interval", value(f, &j.Checkpoint.Interval, span)),
				may("delivery", value(f, &j.Checkpoint.Delivery, oneOf("at-least-once", "exactly-once"))),
			)
			if j.Checkpoint.Delivery == "exactly-once" && j.Checkpoint.Interval == 0 && !f.faulty(n) {
				f.add(n.get("delivery").at, "exactly-once delivery needs checkpoints: set checkpoint.interval")
			}
		}),
		may("sink", value(f, &j.Sink, sink)),
		may("state", value(f, &j.State, oneOf("memory", "pebble"))),
		may("mini_batch", func(n *node) {
			f.object(n,
				must("latency", value(f, &j.MiniBatch.Latency, positive)),
				must("size", bare(f, &j.MiniBatch.Size, whole(1, math.MaxInt32))),
			)
		}),
		may("catch_up_rate", value(f, &j.CatchUpRate, rate)),
		may("skew", bare(f, &j.Skew, whole(1, math.MaxInt32))),
	)
}

func sink(s string) (strategies.Sink, error) {
	sink, ok := strategies.ParseSink(s)
	if !ok {
		names := []string{strategies.Retract.String(), strategies.Append.String(), strategies.Upsert.String()}
		return 0, fmt.Errorf("there is no sink %q%s", s, nearest(s, names, "there are"))
	}
	return sink, nil
}
