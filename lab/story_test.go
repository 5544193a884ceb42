package lab

import (
	"context"
	"testing"

	"deduplab/results"
	"deduplab/scenarios"
)

// small has a bit of everything that stories tell: copies, late rows, versions, keys made anew and keys of two events.
const small = `
scenario: small
workload:
  duration: 10m
  rate: 1/s
  fields:
    id: {uuid: true}
    n: {int: [1, 400]}
    price: {decimal: [1.00, 9.00]}
  key: n
  event_time: {field: ts}
  partitions: {count: 2, by: n}
  transport: {lognormal: {p50: 1s, p99.9: 40s}, cap: 1m}
  duplicates:
    - {origin: copy, rate: 20%, delay: {uniform: [0s, 2m]}}
    - {origin: version, rate: 20%, delay: {uniform: [0s, 2m]}, change: [price]}
    - {origin: restamped, rate: 10%, delay: {uniform: [0s, 2m]}, restamp: true}
job:
  parallelism: 2
  watermark: {delay: 5s, idle_after: 10s}
  checkpoint: {interval: 10s, delivery: exactly-once}
strategies:
  - pass-through
  - tumble-agg: {size: 20s}
  - window-dedup: {size: 20s, keep: last}
  - late-dlq: {main: tumble-agg, size: 20s}
  - select-distinct: {ttl: 1m}
  - select-distinct-key: {ttl: 1m}
  - rowtime-asc: {ttl: 1m}
  - rowtime-desc: {ttl: 1m}
  - proctime-asc: {ttl: 1m}
  - proctime-desc: {ttl: 1m}
  - nontime: {order_by: price desc, ttl: 1m}
  - nontime-to-changelog: {order_by: price asc, ttl: 1m}
  - ptf: {ttl: 1m}
  - keyed-process: {timer: 30s, side_output: true}
  - drop-duplicates-within-watermark: {delay: 30s}
`

// Told over all events, stories agree with what the ledger counts: each row is in one, and its fate is the same.
func TestStoriesAgreeWithTheLedger(t *testing.T) {
	s, err := scenarios.Load("small.yaml", []byte(small), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	r, err := newRun(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.base, err = r.basePass(ctx); err != nil {
		t.Fatal(err)
	}
	run := r.result()
	events := map[int][]uint64{}
	for i := range r.entries {
		for event := range run.Workload.Distinct {
			events[i] = append(events[i], uint64(event))
		}
	}
	told, err := r.tell(ctx, events, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range run.Strategies {
		s := &run.Strategies[i]
		got, rows := map[string]int64{}, int64(0)
		for _, story := range told[i].list {
			for _, row := range story.Rows {
				got[row.Fate]++
				rows++
			}
		}
		if rows != s.RowsIn {
			t.Errorf("%s: stories tell of %d rows, %d went in", s.ID, rows, s.RowsIn)
		}
		f := s.Fates
		for fate, want := range map[string]int64{
			"kept": f.Kept, "leaked": f.Leaked, "suppressed": f.Suppressed, "late copy": f.LateCopy, "late first": f.LateFirst,
			"swallowed": f.Swallowed, "replaced": f.Replaced, "diverted": f.Diverted, "pending": f.Pending,
		} {
			if got[fate] != want {
				t.Errorf("%s: stories tell of %d rows %s, the ledger of %d", s.ID, got[fate], fate, want)
			}
		}
	}
}

// What is set fires and what is created ends, in the order of time.
func TestStoriesAreInOrder(t *testing.T) {
	s, err := scenarios.Load("small.yaml", []byte(small), nil)
	if err != nil {
		t.Fatal(err)
	}
	event := uint64(7)
	trace, err := Trace(context.Background(), s, Options{}, Choice{Event: &event})
	if err != nil {
		t.Fatal(err)
	}
	for _, strategy := range trace.Strategies {
		for _, story := range strategy.Stories {
			state := 0
			for i, step := range story.Steps {
				if i > 0 && step.AtMS < story.Steps[i-1].AtMS {
					t.Errorf("%s: step %d is before the one above it: %+v", strategy.ID, i, step)
				}
				switch step.What {
				case results.CreatesState:
					state++
				case results.RemovesState, results.StateExpires:
					state--
				}
				if state < 0 {
					t.Errorf("%s: state ends that was not created: %+v", strategy.ID, story.Steps)
				}
			}
		}
	}
}

func TestTraceFindsAKeyHoweverItIsSpelled(t *testing.T) {
	s, err := scenarios.Load("small.yaml", []byte(small), nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := Trace(context.Background(), s, Options{Only: []string{"ptf"}}, Choice{Key: "17"})
	if err != nil {
		t.Fatal(err)
	}
	named, err := Trace(context.Background(), s, Options{Only: []string{"ptf"}}, Choice{Key: "n=17"})
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Strategies[0].Stories) != 1 || len(first.Strategies[0].Stories[0].Rows) !=
		len(named.Strategies[0].Stories[0].Rows) {
		t.Errorf("%+v\n%+v", first, named)
	}
	if _, err := Trace(context.Background(), s, Options{}, Choice{Key: "nobody"}); err == nil {
		t.Error("a key that is not there was found")
	}
}
