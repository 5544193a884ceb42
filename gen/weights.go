package gen

import (
	"math"
	"slices"

	"deduplab/stream"
)

// weights picks ranks by their weight, with integers. Ranks stand in blocks, within which all are equally likely.
type weights struct {
	bounds []uint64 // by block: the numbers below it stand for its ranks or those before; the last is unbounded
	firsts []int64  // by block: its first rank; and at the end the rank after the last
}

// pick returns the rank, from 1 on, that a uniform number stands for.
func (w *weights) pick(u uint64) int64 {
	block, found := slices.BinarySearch(w.bounds, u)
	if found {
		block++ // a bound itself belongs to the block after it
	}
	first, size := w.firsts[block], w.firsts[block+1]-w.firsts[block]
	if size == 1 {
		return first
	}
	return first + int64(below(stream.Mix(u), uint64(size)))
}

// newWeights makes the table from the weight of each block.
func newWeights(firsts []int64, of []float64) *weights {
	total := 0.0
	for _, weight := range of {
		total += weight
	}
	w := &weights{firsts: firsts}
	sum := 0.0
	for _, weight := range of[:len(of)-1] {
		sum += weight
		share := min(math.Round(math.Ldexp(sum/total, 32)), 1<<32-1) // coarse: processors differ in the last bits
		w.bounds = append(w.bounds, uint64(share)<<32)
	}
	return w
}

// newChoice gives each choice a block of its own.
func newChoice(choices []Choice) *weights {
	firsts, of := []int64{1}, []float64(nil)
	for i, choice := range choices {
		firsts, of = append(firsts, int64(i)+2), append(of, choice.Weight)
	}
	return newWeights(firsts, of)
}

// newZipf gives each of the first 1024 ranks a block of its own. Further blocks grow by 1/64 each, so that within one
// the weight differs little, and have the weight of the curve through it.
func newZipf(z Zipf) *weights {
	const single, growth = 1024, 64
	firsts, of := []int64{1}, []float64(nil)
	for rank := int64(1); rank <= z.N; {
		size, weight := int64(1), math.Pow(float64(rank), -z.S)
		if rank > single {
			size = min(rank/growth, z.N+1-rank)
			weight = powerIntegral(float64(rank)-0.5, float64(rank+size)-0.5, z.S)
		}
		rank += size
		firsts, of = append(firsts, rank), append(of, weight)
	}
	return newWeights(firsts, of)
}

// powerIntegral is the integral of 1/x^s from a to b.
func powerIntegral(a, b, s float64) float64 {
	if s == 1 {
		return math.Log(b / a)
	}
	return math.Pow(a, 1-s) * math.Expm1((1-s)*math.Log(b/a)) / (1 - s)
}
