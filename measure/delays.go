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
	values    *values
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

// newDelays finds the quantiles. Those of half the trace and more are lower bounds.
func newDelays(v *values, trace Span) (Delays, error) {
	d := Delays{Count: int(v.n), values: v}
	if d.Count == 0 {
		return d, nil
	}
	found, err := d.percentiles(5000, 9900, 9990, 9999, 10000)
	if err != nil {
		return d, err
	}
	for i, q := range []*Quantile{&d.P50, &d.P99, &d.P999, &d.P9999, &d.Max} {
		*q = Quantile{found[i], trace > 0 && found[i] >= (trace+1)/2}
	}
	bounds := make([]int64, len(buckets))
	for i, b := range buckets {
		bounds[i] = int64(b)
	}
	upTo, err := v.upTo(bounds)
	if err != nil {
		return d, err
	}
	below := int64(0)
	for i, bound := range buckets {
		d.Histogram = append(d.Histogram, Bucket{bound, int(upTo[i] - below)})
		if below = upTo[i]; int(below) == d.Count {
			break
		}
	}
	return d, nil
}

// percentiles are those at ascending ten-thousandths, each the value at rank ceil(p x n). There must be delays.
func (d Delays) percentiles(tenthousandths ...int) ([]Span, error) {
	ranks := make([]int64, len(tenthousandths))
	for i, p := range tenthousandths {
		ranks[i] = rank(int64(d.Count), p) - 1
	}
	found, err := d.values.at(ranks)
	spans := make([]Span, len(found))
	for i, v := range found {
		spans[i] = Span(v)
	}
	return spans, err
}

// Rank is the percentile at p ten-thousandths, as Spark's percentile_approx gives it while it is exact. There must be
// delays, and the Reader must not be closed.
func (d Delays) Rank(p int) (Span, error) {
	spans, err := d.percentiles(p)
	if err != nil {
		return 0, err
	}
	return spans[0], nil
}

// UpTo counts the spans that are not longer than a bound. After Reader.Close only the histogram's bounds can be asked
// for.
func (d Delays) UpTo(bound Span) int {
	if i := slices.Index(buckets, bound); i >= 0 {
		n := 0
		for _, b := range d.Histogram[:min(i+1, len(d.Histogram))] {
			n += b.Count
		}
		return n
	}
	n, err := d.values.upTo([]int64{int64(bound)})
	if err != nil {
		panic(fmt.Sprintf("reading the temporary file: %v", err))
	}
	return int(n[0])
}

// rank is that of the percentile at p ten-thousandths of n values, counted from 1.
func rank(n int64, p int) int64 { return max((int64(p)*n+9999)/10000, 1) }

// Rank is the percentile at p ten-thousandths of sorted values: the one at rank ceil(p x n), counted from 1, as Spark's
// percentile_approx gives it while it is exact.
func Rank(sorted []int64, p int) int64 {
	return sorted[rank(int64(len(sorted)), p)-1]
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
func (d Delays) Interpolated(p int) (float64, error) {
	low := int64(p) * int64(d.Count-1) / 10000
	pair, err := d.values.at([]int64{low, min(low+1, int64(d.Count-1))})
	if err != nil {
		return 0, err
	}
	rest := int64(p) * int64(d.Count-1) % 10000
	return float64(pair[0]) + float64(pair[1]-pair[0])*float64(rest)/10000, nil
}
