package measure

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"deduplab/stream"
)

// Span is a span of time in nanoseconds.
type Span int64

const (
	millisecond Span = 1e6
	second      Span = 1e9
	minute           = 60 * second
	hour             = 60 * minute
	day              = 24 * hour
)

// MarshalJSON writes milliseconds, with up to six decimals.
func (s Span) MarshalJSON() ([]byte, error) { return []byte(s.millis()), nil }

func (s Span) millis() string {
	if s < 0 {
		return "-" + (-s).millis()
	}
	text := strconv.FormatInt(int64(s/millisecond), 10)
	if rest := int64(s % millisecond); rest != 0 {
		text += "." + strings.TrimRight(fmt.Sprintf("%06d", rest), "0")
	}
	return text
}

// String is short: 800ns, 0.25ms, 850ms, 4.07s, 1m42s, 1h2m, 6d18h.
func (s Span) String() string {
	round := func(unit Span) stream.Time { return stream.Time((s + unit/2) / unit * unit / millisecond) }
	switch {
	case s < 0:
		return "-" + (-s).String()
	case s > 0 && s < 10_000:
		return strconv.FormatInt(int64(s), 10) + "ns"
	case s < second:
		return s.roundedMillis() + "ms"
	case s < minute:
		return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", float64(s)/1e9), "0"), ".") + "s"
	case s < hour:
		return stream.FormatDuration(round(second))
	case s < day:
		return stream.FormatDuration(round(minute))
	}
	return stream.FormatDuration(round(hour))
}

// roundedMillis is milliseconds with up to two decimals.
func (s Span) roundedMillis() string { return ((s + 5000) / 10000 * 10000).millis() }

// Quantile is a value of a distribution. AtLeast says that it is half the trace or more: the trace is too short to tell
// how long it really is.
type Quantile struct {
	Value   Span `json:"ms"`
	AtLeast bool `json:"at_least,omitempty"`
}

// String is the value, behind >= if it is a lower bound.
func (q Quantile) String() string {
	if q.AtLeast {
		return ">=" + q.Value.String()
	}
	return q.Value.String()
}

// Delays is a distribution of spans. Where there are none, the quantiles are 0.
type Delays struct {
	Count     int      `json:"count"`
	P50       Quantile `json:"p50"`
	P99       Quantile `json:"p99"`
	P999      Quantile `json:"p99_9"`
	P9999     Quantile `json:"p99_99"`
	Max       Quantile `json:"max"`
	Histogram []Bucket `json:"histogram,omitempty"`
	sorted    []nanos
}

// Bucket counts the spans above the one before it, up to and including its own.
type Bucket struct {
	UpTo  Span `json:"up_to_ms"`
	Count int  `json:"count"`
}

// buckets are the bounds of histograms; each is shown up to the longest span.
var buckets = []Span{0, millisecond, 10 * millisecond, 100 * millisecond, second, 5 * second, 10 * second, 30 * second,
	minute, 5 * minute, 10 * minute, 30 * minute, hour, 2 * hour, 6 * hour, 12 * hour, day, 2 * day, 3 * day, 7 * day,
	14 * day, 28 * day, 90 * day, 365 * day, 1<<63 - 1}

// newDelays sorts the values. Those of half the trace and more are lower bounds.
func newDelays(values []nanos, trace Span) Delays {
	slices.Sort(values)
	d := Delays{Count: len(values), sorted: values}
	if d.Count == 0 {
		return d
	}
	at := func(tenthousandths int) Quantile {
		v := Span(Rank(values, tenthousandths))
		return Quantile{v, trace > 0 && v >= (trace+1)/2}
	}
	d.P50, d.P99, d.P999, d.P9999, d.Max = at(5000), at(9900), at(9990), at(9999), at(10000)
	below := 0
	for _, bound := range buckets {
		upTo := d.UpTo(bound)
		d.Histogram = append(d.Histogram, Bucket{bound, upTo - below})
		if below = upTo; upTo == d.Count {
			break
		}
	}
	return d
}

// UpTo counts the spans that are not longer than a bound.
func (d Delays) UpTo(bound Span) int {
	n, _ := slices.BinarySearchFunc(d.sorted, int64(bound), func(v, b nanos) int {
		if v <= b {
			return -1
		}
		return 1
	})
	return n
}

// Rank is the percentile at p ten-thousandths of sorted values: the one at rank ceil(p x n), counted from 1, as Spark's
// percentile_approx gives it while it is exact.
func Rank(sorted []int64, p int) int64 {
	rank := (int64(p)*int64(len(sorted)) + 9999) / 10000
	return sorted[max(rank, 1)-1]
}

// Interpolated is the percentile at p ten-thousandths of sorted values as Spark's percentile gives it: between the
// neighbours of position p x (n - 1).
func Interpolated(sorted []int64, p int) float64 {
	position := int64(p) * int64(len(sorted)-1)
	low, rest := position/10000, position%10000
	value := float64(sorted[low])
	if rest > 0 {
		value += float64(sorted[low+1]-sorted[low]) * float64(rest) / 10000
	}
	return value
}

// Interpolated is the percentile at p ten-thousandths, in nanoseconds, as Spark's percentile gives it. There must be
// delays.
func (d Delays) Interpolated(p int) float64 { return Interpolated(d.sorted, p) }

// Rank is the percentile at p ten-thousandths, in nanoseconds, as Spark's percentile_approx gives it. There must be
// delays.
func (d Delays) Rank(p int) int64 { return Rank(d.sorted, p) }
