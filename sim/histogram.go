package sim

import (
	"math/bits"

	"deduplab/results"
	"deduplab/stream"
)

// Histogram counts spans in integer milliseconds: exactly below 2,048 ms, and above in buckets of a width below 0.1 %
// of their value. The zero value is empty.
type Histogram struct {
	counts []int64
	n      int64
	max    stream.Time
}

const (
	subBits = 11 // values below 1<<subBits have a bucket each
	half    = 1 << (subBits - 1)
)

func bucketOf(v stream.Time) int {
	if v < 1<<subBits {
		return int(max(v, 0))
	}
	shift := bits.Len64(uint64(v)) - subBits
	return shift*half + int(v>>shift)
}

// lowest is the smallest value of a bucket.
func lowest(bucket int) stream.Time {
	if bucket < 1<<subBits {
		return stream.Time(bucket)
	}
	shift := bucket/half - 1
	return stream.Time(bucket-shift*half) << shift
}

// Add counts a span; negative ones count as 0.
func (h *Histogram) Add(v stream.Time) { h.addN(v, 1) }

// addN counts a span n times; a negative n takes spans back that were counted before.
func (h *Histogram) addN(v stream.Time, n int64) {
	b := bucketOf(v)
	for b >= len(h.counts) {
		h.counts = append(h.counts, make([]int64, max(half, b+1-len(h.counts)))...)
	}
	h.counts[b] += n
	h.n += n
	if n > 0 && v > h.max {
		h.max = v
	}
}

// N is the number of spans counted.
func (h *Histogram) N() int64 { return h.n }

// Quantiles returns the percentiles: the value at rank ceil(p*n), as the lowest of its bucket. Max is exact unless it
// has been taken back.
func (h *Histogram) Quantiles() results.Quantiles {
	q := results.Quantiles{N: h.n}
	if h.n == 0 {
		return q
	}
	targets := []struct {
		perTenThousand int64
		into           *int64
	}{{5000, &q.P50}, {9000, &q.P90}, {9900, &q.P99}, {9990, &q.P999}, {9999, &q.P9999}}
	next, sum := 0, int64(0)
	for b, count := range h.counts {
		if count <= 0 {
			continue
		}
		sum += count
		for next < len(targets) && sum >= (h.n*targets[next].perTenThousand+9999)/10000 {
			*targets[next].into = int64(min(lowest(b), h.max))
			next++
		}
		q.Max = int64(lowest(b))
	}
	if last := bucketOf(h.max); last < len(h.counts) && h.counts[last] > 0 {
		q.Max = int64(h.max)
	}
	return q
}
