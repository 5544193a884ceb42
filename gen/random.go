package gen

import (
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"deduplab/stream"
)

// source is a random stream for one purpose. It has no state: its n-th number is a hash of n, so that everything about
// a row can be drawn again from the number of the row.
type source uint64

// newSource derives the stream for a purpose from the seed of the workload.
func newSource(seed uint64, purpose string) source {
	return source(stream.Mix(stream.Mix(seed) ^ xxhash.Sum64String(purpose)))
}

// at is the n-th number, uniform over 64 bits.
func (s source) at(n uint64) uint64 { return stream.Mix(uint64(s) ^ n) }

// below scales a uniform number to [0, n).
func below(u, n uint64) uint64 {
	scaled, _ := bits.Mul64(u, n)
	return scaled
}

// factor turns a number into one that times multiplies by.
func factor(x float64) uint64 { return uint64(math.Round(math.Ldexp(x, 32))) }

// times multiplies by a factor, which counts in units of 2^-32.
func times(x, factor uint64) uint64 {
	hi, lo := bits.Mul64(x, factor)
	return hi<<32 | lo>>32
}

// chance is a probability as a bound on a uniform number.
type chance struct {
	bound  uint64
	always bool
}

func newChance(p float64) chance {
	if p >= 1 {
		return chance{always: true}
	}
	return chance{bound: uint64(p * (1 << 64))} // exact: a power of two
}

func (c chance) hits(u uint64) bool { return u < c.bound || c.always }

// quantiles is a distribution as a table of integers, so that it is sampled without floating point, which differs
// between processors. The table is indexed by the probability of a greater value: an octave of it, from 1/2 down to
// 2^-octaves, has cells of equal width. So the tail is as fine as the body, and interpolation within a cell is
// accurate to about 1e-5.
type quantiles []uint64

const (
	octaves  = 24
	cellBits = 8 // cells of an octave, as a power of two
)

// newQuantiles tabulates the inverse of a distribution function. Values are at least 0 and at most limit.
func newQuantiles(inverse func(p float64) float64, limit float64) quantiles {
	const cells = 1 << cellBits
	q := make(quantiles, octaves*cells+1)
	for i := range q {
		octave, cell := i/cells, i%cells
		greater := math.Ldexp(1+float64(cell)/cells, octave-octaves)
		q[i] = roundCoarse(max(0, min(inverse(1-greater), limit)))
	}
	return q
}

// roundCoarse rounds to 16 significant bits. Processors differ in the last bits of a float, and this makes them agree.
func roundCoarse(x float64) uint64 {
	fraction, exponent := math.Frexp(x)
	return uint64(math.Ldexp(math.Round(math.Ldexp(fraction, 16)), exponent-16) + 0.5)
}

// at returns the value that a uniform number stands for.
func (q quantiles) at(u uint64) uint64 {
	u = max(u, 1<<(64-octaves))
	zeros := bits.LeadingZeros64(u)
	within := u << ((zeros + 1) % 64) // the place within the octave
	cell := (octaves-1-zeros)<<cellBits + int(within>>(64-cellBits))
	ends := q[cell : cell+2]
	down, _ := bits.Mul64(ends[0]-ends[1], within<<cellBits)
	return ends[0] - down
}
