package lab

import (
	"runtime"
	"strings"
	"testing"

	"deduplab/gen"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// TestNoAllocationPerRow runs strategies until their TTL has run out several times over, and then counts what a row
// still allocates.
func TestNoAllocationPerRow(t *testing.T) {
	workload, err := gen.New(gen.Spec{
		Start: 1_767_225_600_000, Duration: 20_000, Rate: 20_000,
		Fields:    []gen.Field{{Name: "order_id", UUID: true}, {Name: "price", Decimal: &[2]int64{200, 50_000}}},
		Key:       []string{"order_id"},
		EventTime: gen.EventTime{Field: "created_at"}, Partitions: 1,
		Duplicates: []gen.Duplicate{{Origin: "copy", Rate: 0.004, Delay: gen.Delay{Kind: gen.Uniform, High: 1000}}},
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		params map[string]string
	}{
		{"proctime-asc", map[string]string{"ttl": "2s"}},
		{"ptf", map[string]string{"ttl": "2s"}},
		{"rowtime-asc", map[string]string{"ttl": "2s"}},
		{"rowtime-desc", map[string]string{"ttl": "2s"}},
		{"proctime-desc", map[string]string{"ttl": "2s"}},
		{"select-distinct-key", map[string]string{"ttl": "2s"}},
		{"nontime", map[string]string{"ttl": "2s", "order_by": "price asc"}},
		{"drop-duplicates-within-watermark", map[string]string{"delay": "1s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if perRow := allocations(t, workload, c.name, c.params); perRow > 0.01 {
				t.Errorf("%.3f allocations a row in steady state, want none", perRow)
			}
		})
	}
}

// TestBytesPerLiveKey holds the heap that a live key takes, at a number of keys where the index has just grown.
func TestBytesPerLiveKey(t *testing.T) {
	const keys = 400_000
	w, err := gen.New(gen.Spec{
		Start: 1_767_225_600_000, Duration: keys / 20, Rate: 20_000,
		Fields:    []gen.Field{{Name: "order_id", UUID: true}, {Name: "price", Decimal: &[2]int64{200, 50_000}}},
		Key:       []string{"order_id"},
		EventTime: gen.EventTime{Field: "created_at"}, Partitions: 1,
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"proctime-asc", "ptf", "rowtime-asc", "rowtime-desc", "drop-duplicates",
		"drop-duplicates-within-watermark"} {
		params, most := map[string]string{"ttl": "2h"}, 60.0
		if strings.HasPrefix(name, "drop-duplicates") {
			params, most = map[string]string{"delay": "2h"}, 66 // a deadline takes 5 more
		}
		before := heap()
		l, feed := laneOf(t, w, name, params)
		task, batch := l.task, &sim.Batch{}
		for {
			ok, err := feed.Next(batch)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if err := l.handle(batch); err != nil {
				t.Fatal(err)
			}
		}
		perKey := float64(heap()-before) / keys
		runtime.KeepAlive(task)
		if perKey > most || perKey < 40 {
			t.Errorf("%s: %.1f bytes a live key, want 40 (an entry) to %v", name, perKey, most)
		}
	}
}

// laneOf makes a lane of its own for a strategy, and the feed of its rows.
func laneOf(tb testing.TB, w gen.Workload, name string, params map[string]string) (*lane, *sim.Feed) {
	strategy, err := strategies.Find(name)
	if err != nil {
		tb.Fatal(err)
	}
	args, faults := strategy.Resolve(params, w.Schema())
	if len(faults) > 0 {
		tb.Fatal(faults)
	}
	r := &run{workload: w, scenario: &scenarios.Scenario{Job: scenarios.Job{
		Parallelism: 1, Watermark: scenarios.Watermark{Delay: 100, Interval: 200},
		Checkpoint: scenarios.Checkpoint{Interval: 1000, Delivery: "exactly-once"},
		Spark:      scenarios.Spark{Trigger: sim.Trigger{Every: 200}, NoDataBatches: true, Inputs: 1},
	}}}
	plan := strategy.Plan(args, strategies.Job{Schema: w.Schema()})
	e := entry{Entry: scenarios.Entry{ID: name, Strategy: strategy, Args: args}, plan: plan, workload: w}
	l, err := r.newLane(e, 1000, true)
	if err != nil {
		tb.Fatal(err)
	}
	return l, r.newFeed()
}

// allocations returns how often a row of the second half of the workload allocates, the feed left out.
func allocations(t *testing.T, w gen.Workload, name string, params map[string]string) float64 {
	l, feed := laneOf(t, w, name, params)
	from, to := w.Span()
	batch := &sim.Batch{}
	rows, mallocs := 0, uint64(0)
	for {
		ok, err := feed.Next(batch)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return float64(mallocs) / float64(rows)
		}
		before := mallocCount()
		if err := l.handle(batch); err != nil {
			t.Fatal(err)
		}
		if n := len(batch.Rows); n > 0 && batch.Rows[0].Arrival > from+stream.Time(to-from)/2 {
			rows += n
			mallocs += mallocCount() - before
		}
	}
}

func mallocCount() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
