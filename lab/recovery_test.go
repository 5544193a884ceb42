package lab

import (
	"context"
	"testing"

	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/sim/pebble"
	"deduplab/strategies"
	"deduplab/stream"
)

// A minute of a stream in which nothing is late and no TTL or timer of processing time elapses.
const minute = `
scenario: minute
seed: 3
workload:
  duration: 40s
  rate: 2/s
  fields: {id: {uuid: true}, price: {int: [1, 9]}}
  key: id
  event_time: {field: ts}
  partitions: {count: 2}
  transport: {uniform: [1ms, 900ms]}
  duplicates: [{origin: copy, rate: 60%, delay: {uniform: [1s, 9s]}, change: price}]
job:
  parallelism: 2
  watermark: {delay: 20s, interval: 1s}
  checkpoint: {interval: 6s, delivery: exactly-once}
  catch_up_rate: 50/s
  spark: {trigger: 3s, cost: {batch: 700ms}}
strategies: [pass-through]
`

// minuteOf makes the run of all strategies over the minute.
func minuteOf(tb testing.TB, change func(*scenarios.Job)) *run {
	tb.Helper()
	s, err := scenarios.Load("minute.yaml", []byte(minute), nil)
	if err != nil {
		tb.Fatal(err)
	}
	change(&s.Job)
	s.Strategies = nil
	for _, name := range strategies.Names() {
		strategy, err := strategies.Find(name)
		if err != nil {
			tb.Fatal(err)
		}
		params := map[string]string{}
		for _, p := range strategy.Params {
			switch {
			case p.Name == "ttl", p.Name == "timer", p.Name == "delay":
				params[p.Name] = "1h"
			case p.Kind == strategies.Order && p.Default == "":
				params[p.Name] = "price asc"
			case p.Kind == strategies.Column && p.Default == "":
				params[p.Name] = "price"
			case p.Name == "dedup_source_batch" && name == "merge-insert-only": // a restart cuts batches elsewhere
				params[p.Name] = "true"
			}
		}
		args, faults := strategy.Resolve(params, s.Workload.Schema)
		if faults != nil {
			tb.Fatal(name, faults)
		}
		s.Strategies = append(s.Strategies, scenarios.Entry{ID: name, Strategy: strategy, Args: args})
	}
	r, err := newRun(s, Options{SpillAt: 1, OpenState: func() (sim.Cold, error) { return pebble.Open("") }})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// tables runs all strategies once and returns the digests of their results, by strategy.
func (r *run) tables(tb testing.TB) map[string]sim.Digest {
	tb.Helper()
	p, err := r.pass(context.Background(), "run", nil)
	if err != nil {
		tb.Fatal(err)
	}
	digests := map[string]sim.Digest{}
	for _, l := range p.lanes {
		if l != nil {
			digests[l.id] = l.digest
		}
	}
	return digests
}

// steps are the moments at which something happens in a run.
func (r *run) steps(tb testing.TB) []stream.Time {
	tb.Helper()
	from, _ := r.workload.Span()
	var steps []stream.Time
	add := func(at stream.Time) {
		if n := len(steps); n == 0 || at-from > steps[n-1] {
			steps = append(steps, at-from)
		}
	}
	feed, batch := r.newFeed(), &sim.Batch{}
	for {
		ok, err := feed.Next(batch)
		if err != nil {
			tb.Fatal(err)
		}
		if !ok {
			return steps
		}
		row := 0
		for _, m := range batch.Marks {
			for ; row < m.Before; row++ {
				add(batch.Rows[row].Arrival)
			}
			add(m.At)
		}
		for ; row < len(batch.Rows); row++ {
			add(batch.Rows[row].Arrival)
		}
	}
}

// TestCrashAtEveryStep: a crash at any step, and one more while the job catches up, change no table that a reader sees
// under exactly-once, whatever the strategy, the engine and the state backend. For time is on nobody's side here: no
// row is late, no TTL and no timer of processing time elapses in the run.
func TestCrashAtEveryStep(t *testing.T) {
	for _, c := range []struct {
		name   string
		every  int // step
		change func(*scenarios.Job)
	}{
		{"memory", 1, func(*scenarios.Job) {}},
		{"memory, an upsert sink", 1, func(j *scenarios.Job) { j.Sink = strategies.Upsert }},
		{"memory, in mini-batches", 1, func(j *scenarios.Job) {
			j.MiniBatch = strategies.MiniBatch{Latency: 2000, Size: 5}
		}},
		{"pebble", 4, func(j *scenarios.Job) { j.State = "pebble" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := minuteOf(t, c.change)
			want, steps := r.tables(t), r.steps(t)
			if len(want) < 20 || len(steps) < 100 {
				t.Fatalf("%d strategies, %d steps", len(want), len(steps))
			}
			for i := 0; i < len(steps); i += c.every {
				crash := scenarios.Failure{Failure: sim.Failure{At: steps[i], Down: 1300}}
				again := crash
				again.At += 1700
				r.scenario.Job.Failures = []scenarios.Failure{crash}
				if i%2 == 1 {
					r.scenario.Job.Failures = append(r.scenario.Job.Failures, again)
				}
				for id, got := range r.tables(t) {
					if !got.SameTable(want[id]) && id != "latest-wins-aggregate" { // of versions of one time it takes any of a batch
						t.Errorf("%s: another table after a crash at %s", id, stream.FormatDuration(steps[i]))
					}
				}
			}
		})
	}
}
