package measure

import (
	"math"
	"math/bits"
	"slices"
)

// values is many numbers, of which any rank can be asked for when all are there. Few are sorted; of many, those around
// the rank are sorted out by reading all a few times, in bounded memory.
type values struct {
	spool    *spool // empty once they are kept sorted
	n        int64
	min, max int64
	sorted   []int64 // where there is room for them
}

func (d *disk) newValues() *values {
	return &values{spool: d.newSpool(), min: math.MaxInt64, max: math.MinInt64}
}

func (v *values) add(n int64) {
	v.min, v.max = min(v.min, n), max(v.max, n)
	v.n++
	v.spool.put(n)
}

// few is how many numbers are sorted in memory.
func (d *disk) few() int { return min(d.limit/16, 1<<20) }

// order sorts the numbers; it returns nil if they are too many.
func (v *values) order() ([]int64, error) {
	d := v.spool.disk
	if v.sorted != nil || v.n > int64(d.few()) {
		return v.sorted, nil
	}
	sorted := make([]int64, 0, v.n)
	err := v.spool.chunks(func(words []int64) error { sorted = append(sorted, words...); return nil })
	slices.Sort(sorted)
	if room := d.limit/2 - d.used; err == nil && int(v.n)-v.spool.held <= room {
		v.spool.drop()
		d.used += int(v.n)
		v.sorted = sorted
	}
	return sorted, err
}

// upTo counts for each bound the numbers that are not above it. Bounds must ascend.
func (v *values) upTo(bounds []int64) ([]int64, error) {
	counts := make([]int64, len(bounds))
	sorted, err := v.order()
	if err != nil {
		return nil, err
	}
	if sorted != nil {
		for i, bound := range bounds {
			at, _ := slices.BinarySearchFunc(sorted, bound, func(n, bound int64) int {
				if n <= bound {
					return -1
				}
				return 1
			})
			counts[i] = int64(at)
		}
		return counts, nil
	}
	var from [64]int // by length in bits, the first bound that is not below all such numbers
	for length := range from {
		from[length], _ = slices.BinarySearch(bounds, int64(uint64(1)<<length>>1))
	}
	err = v.spool.chunks(func(words []int64) error {
		for _, n := range words {
			i := 0
			if n >= 0 {
				i = from[bits.Len64(uint64(n))]
			}
			for i < len(bounds) && bounds[i] < n {
				i++
			}
			if i < len(bounds) {
				counts[i]++
			}
		}
		return nil
	})
	for i := 1; i < len(counts); i++ {
		counts[i] += counts[i-1]
	}
	return counts, err
}

// at returns the numbers at ranks, which count from 0 and ascend.
func (v *values) at(ranks []int64) ([]int64, error) {
	sorted, err := v.order()
	if err != nil {
		return nil, err
	}
	if sorted != nil {
		found := make([]int64, len(ranks))
		for i, rank := range ranks {
			found[i] = sorted[rank]
		}
		return found, nil
	}
	return v.within(v.min, v.max, ranks)
}

// within finds ranks among the numbers from low to high, by counting them in ranges of equal width.
func (v *values) within(low, high int64, ranks []int64) ([]int64, error) {
	if low == high {
		return slices.Repeat([]int64{low}, len(ranks)), nil
	}
	const ranges = 1 << 16
	shift := max(bits.Len64(uint64(high-low))-16, 0)
	counts := make([]int64, ranges)
	err := v.spool.chunks(func(words []int64) error {
		for _, n := range words {
			if n >= low && n <= high {
				counts[uint64(n-low)>>shift]++
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var found []int64
	below, at := int64(0), 0
	for len(found) < len(ranks) {
		for below+counts[at] <= ranks[len(found)] {
			below += counts[at]
			at++
		}
		var here []int64 // ranks within this range
		for _, rank := range ranks[len(found):] {
			if rank < below+counts[at] {
				here = append(here, rank-below)
			}
		}
		from := low + int64(at)<<shift
		values, err := v.exactly(from, min(high, from+(1<<shift-1)), counts[at], here)
		if err != nil {
			return nil, err
		}
		found = append(found, values...)
	}
	return found, nil
}

// exactly is within for a range of which it is known how many numbers it has.
func (v *values) exactly(low, high, n int64, ranks []int64) ([]int64, error) {
	if low == high || n > int64(v.spool.disk.few()) {
		return v.within(low, high, ranks)
	}
	here := make([]int64, 0, n)
	err := v.spool.chunks(func(words []int64) error {
		for _, n := range words {
			if n >= low && n <= high {
				here = append(here, n)
			}
		}
		return nil
	})
	slices.Sort(here)
	var found []int64
	for _, rank := range ranks {
		found = append(found, here[rank])
	}
	return found, err
}

// distinct counts how many different records there are.
type distinct struct {
	disk  *disk
	width int // words of a record, 1 or 2
	parts [256]*spool
}

func (d *disk) newDistinct(width int) *distinct {
	all := &distinct{disk: d, width: width}
	for i := range all.parts {
		all.parts[i] = d.newSpool()
	}
	return all
}

// add takes in a record; the second word is 0 where records have one.
func (d *distinct) add(a, b int64) {
	part := d.parts[mix(a, b)>>56]
	if d.width == 1 {
		part.put(a)
	} else {
		part.add(a, b)
	}
}

// count is the number of different records.
func (d *distinct) count() (int64, error) {
	total := int64(0)
	var table [][2]int64
	var taken []bool
	for _, part := range d.parts {
		size := 1 << bits.Len(uint(2*int(part.n)/d.width))
		if size > len(table) {
			table, taken = make([][2]int64, size), make([]bool, size)
		}
		size = len(table)
		clear(taken)
		err := part.records(d.width, func(record []int64) error {
			key := [2]int64{record[0]}
			if d.width == 2 {
				key[1] = record[1]
			}
			at := int(mix(key[0], key[1])) & (size - 1)
			for taken[at] && table[at] != key {
				at = (at + 1) & (size - 1)
			}
			if !taken[at] {
				taken[at], table[at] = true, key
				total++
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		part.drop()
	}
	return total, nil
}

// mix spreads two words over 64 bits.
func mix(a, b int64) uint64 {
	x := uint64(a)*0x9e3779b97f4a7c15 ^ uint64(b)*0xc2b2ae3d27d4eb4f
	x = (x ^ x>>29) * 0xbf58476d1ce4e5b9
	return x ^ x>>32
}
