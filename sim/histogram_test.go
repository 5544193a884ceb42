package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"deduplab/results"
	"deduplab/stream"
)

// longSpan is beyond any span that a scenario can hold: 35 years.
const longSpan = 1 << 40

func TestHistogramBucketsAreExactOrNarrow(t *testing.T) {
	for v := range stream.Time(1 << subBits) {
		if got := lowest(bucketOf(v)); got != v {
			t.Fatalf("%d ms is counted as %d ms", v, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := stream.Time(rapid.Int64Range(1, longSpan).Draw(t, "span"))
		b := bucketOf(v)
		low, next := lowest(b), lowest(b+1)
		if v < low || v >= next {
			t.Fatalf("%d lies outside of its bucket [%d, %d)", v, low, next)
		}
		if 1000*(next-1-low) >= low {
			t.Fatalf("bucket [%d, %d) is not narrower than 0.1 %%", low, next)
		}
		if bucketOf(low) != b || bucketOf(next) != b+1 {
			t.Fatalf("bucket %d begins at %d, which is in %d, and ends at %d, which is in %d", b, low, bucketOf(low), next,
				bucketOf(next))
		}
	})
}

func TestHistogramQuantiles(t *testing.T) {
	upTo := func(n int) (spans []stream.Time) {
		for v := range n {
			spans = append(spans, stream.Time(v+1))
		}
		return spans
	}
	for _, c := range []struct {
		story string
		spans []stream.Time
		want  results.Quantiles
	}{
		{"nothing counted", nil, results.Quantiles{}},
		{"one span is every percentile", []stream.Time{7},
			results.Quantiles{N: 1, P50: 7, P90: 7, P99: 7, P999: 7, P9999: 7, Max: 7}},
		{"the value at rank ceil(p*n)", upTo(1000),
			results.Quantiles{N: 1000, P50: 500, P90: 900, P99: 990, P999: 999, P9999: 1000, Max: 1000}},
		{"of two values the median is the first", []stream.Time{1, 2},
			results.Quantiles{N: 2, P50: 1, P90: 2, P99: 2, P999: 2, P9999: 2, Max: 2}},
		{"a negative span counts as 0", []stream.Time{-5, -5, 3},
			results.Quantiles{N: 3, P50: 0, P90: 3, P99: 3, P999: 3, P9999: 3, Max: 3}},
		{"the largest span is exact", []stream.Time{0, 7_654_321},
			results.Quantiles{N: 2, P50: 0, P90: 7_651_328, P99: 7_651_328, P999: 7_651_328, P9999: 7_651_328, Max: 7_654_321}},
	} {
		var h Histogram
		for _, v := range c.spans {
			h.Add(v)
		}
		if got := h.Quantiles(); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.story, got, c.want)
		}
	}
}

// A histogram that takes spans back is the histogram of those that stay.
func TestHistogramTakesBack(t *testing.T) {
	spans := rapid.SliceOfN(rapid.Int64Range(0, 10_000), 1, 50)
	rapid.Check(t, func(t *rapid.T) {
		var h, want Histogram
		stay, back := spans.Draw(t, "stay"), spans.Draw(t, "taken back")
		for _, v := range back {
			h.Add(stream.Time(v))
		}
		for _, v := range stay {
			h.Add(stream.Time(v))
			want.Add(stream.Time(v))
		}
		for _, v := range back {
			h.addN(stream.Time(v), -1)
		}
		got, expected := h.Quantiles(), want.Quantiles()
		got.Max, expected.Max = 0, 0 // the largest span is exact only if it has not been taken back
		if got != expected {
			t.Fatalf("%+v, want %+v", got, expected)
		}
	})
}

// Against a sorted list: never above the true percentile, and less than 0.1 % below it.
func TestHistogramAgainstSortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := rapid.SliceOfN(rapid.Int64Range(0, longSpan), 1, 200).Draw(t, "spans")
		var h Histogram
		for _, v := range spans {
			h.Add(stream.Time(v))
		}
		slices.Sort(spans)
		q := h.Quantiles()
		for _, p := range []struct {
			name string
			of   int // in 10,000
			got  int64
		}{{"p50", 5000, q.P50}, {"p90", 9000, q.P90}, {"p99", 9900, q.P99}, {"p999", 9990, q.P999},
			{"p9999", 9999, q.P9999}, {"max", 10000, q.Max}} {
			rank := (len(spans)*p.of + 9999) / 10000
			want := spans[rank-1]
			if p.got > want || 1000*(want-p.got) > want {
				t.Errorf("%s: %d, the list says %d", p.name, p.got, want)
			}
		}
	})
}
