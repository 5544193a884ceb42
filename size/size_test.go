package size_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deduplab/gen"
	"deduplab/size"
	"deduplab/stream"
)

const (
	minute stream.Time = 60_000
	hour               = 60 * minute
	day                = 24 * hour
)

// clickstream is the worked example of "Spark Streaming Deduplication, in depth".
var clickstream = size.Stream{
	Rate: 50_000, Duplicates: 0.004, Delays: []size.Point{{Within: 40 * minute, Share: 0.999}, {Within: 3 * day, Share: 1}},
}

func TestWorkedExample(t *testing.T) {
	r, err := size.Plans(clickstream, size.Options{})
	if err != nil {
		t.Fatal(err)
	}
	first, whole, merge := r.Plans[0].Tiers[0], r.Plans[1].Tiers[0], r.Plans[2].Tiers[1]
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"plans", float64(len(r.Plans)), 4},
		{"horizon", float64(first.Horizon), float64(hour)},
		{"keys", first.Keys, 180e6},
		{"bytes", first.Bytes, 18e9},
		{"bytes of a partition", first.BytesPerPartition, 90e6},
		{"copies left by the first tier", first.Left, 0.001},
		{"copies a day", r.Plans[0].LeftPerDay, 17_280},
		{"keys of three days", whole.Keys, 72 * 180e6},
		{"copies left by three days", whole.Left, 0},
		{"dates that the MERGE reads", float64(merge.Dates), 4}, // not three: date >= today - 3
		{"copies left behind the MERGE", r.Plans[2].Left, 0},
	} {
		if math.Abs(c.got-c.want) > 1e-9*c.want {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}

func TestFaultsAreAllReported(t *testing.T) {
	_, err := size.Plans(size.Stream{Rate: math.NaN(), Duplicates: 2, NewKey: -1}, size.Options{})
	for _, part := range []string{"rate", "share of 2", "new key", "longest"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not speak of %q", err, part)
		}
	}
}

// A further tier leaves no more, and nothing catches copies with another key.
func TestPlansLeaveLessAndLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := size.Stream{Rate: 100, Duplicates: 0.1, NewKey: rapid.Float64Range(0, 1).Draw(t, "new key")}
		at, share := stream.Time(0), 0.0
		for range rapid.IntRange(0, 5).Draw(t, "points") {
			at += stream.Time(rapid.Int64Range(0, int64(3*day)).Draw(t, "step"))
			share += (1 - share) * rapid.Float64Range(0, 0.9).Draw(t, "share")
			s.Delays = append(s.Delays, size.Point{Within: at, Share: share})
		}
		s.Delays = append(s.Delays, size.Point{Within: at, Share: 1})
		r, err := size.Plans(s, size.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, plan := range r.Plans {
			before := 1.0
			for _, tier := range plan.Tiers {
				if tier.Left > before || tier.Left < s.NewKey-1e-12 {
					t.Fatalf("%+v leaves %v after %v", tier, tier.Left, before)
				}
				before = tier.Left
			}
		}
	})
}

// A stream that is read measures what it was made of.
func TestFromWorkload(t *testing.T) {
	w, err := gen.New(gen.Spec{
		Start: 1767225600000, Duration: 6 * hour, Rate: 20, Partitions: 1, Key: []string{"id"},
		Fields: []gen.Field{{Name: "id", UUID: true}}, EventTime: gen.EventTime{Field: "ts"},
		Duplicates: []gen.Duplicate{
			{Origin: "retry", Rate: 0.1, Delay: gen.Delay{Kind: gen.Constant, Low: minute}},
			{Origin: "new-id", Rate: 0.1, NewID: true},
		},
	}, 7)
	if err != nil {
		t.Fatal(err)
	}
	s, err := size.FromWorkload(w)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what            string
		got, want, slop float64
	}{
		{"rate", s.Rate, 24, 0.5},
		{"duplicates", s.Duplicates, 0.2 / 1.2, 0.01},
		{"new key", s.NewKey, 0.5, 0.05},
		{"median", float64(s.Delays[0].Within), float64(minute), float64(minute) / 1000},
	} {
		if math.Abs(c.got-c.want) > c.slop {
			t.Errorf("%s: %v, want about %v", c.what, c.got, c.want)
		}
	}
}
