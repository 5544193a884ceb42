package gen

import (
	"fmt"
	"math"

	"deduplab/stream"
)

// Copies says how many copies a rule makes of an event that it copies. At most one of its forms is set; the zero
// Copies is one copy.
type Copies struct {
	Count int // always so many
	// Geometric is the mean of a geometric distribution from 1 on: after each copy there is another one with the same
	// chance, as of a sender that gives up once it has an answer.
	Geometric float64
	// Zipf makes r copies as often as 1/r^S, up to the cap N: most events have one copy and a few ids come a hundred
	// thousand times (mozilla/gcp-ingestion#1072).
	Zipf *Zipf
}

// maxMean bounds the mean of a geometric distribution, so that its table stays small.
const maxMean = 1000

// table returns the distribution, nil where the number is fixed.
func (c Copies) table() *weights {
	switch {
	case c.Zipf != nil:
		return newZipf(*c.Zipf)
	case c.Geometric > 1:
		return newGeometric(c.Geometric)
	}
	return nil
}

// Most is the largest number of copies.
func (c Copies) Most() int64 {
	if t := c.table(); t != nil {
		return t.firsts[len(t.firsts)-1] - 1
	}
	return max(int64(c.Count), 1)
}

// Mean is the mean number of copies.
func (c Copies) Mean() float64 {
	t := c.table()
	if t == nil {
		return max(float64(c.Count), 1)
	}
	mean, below := 0.0, 0.0
	for block := range len(t.firsts) - 1 {
		upTo := 1.0
		if block < len(t.bounds) {
			upTo = math.Ldexp(float64(t.bounds[block]), -64)
		}
		mean += (upTo - below) * float64(t.firsts[block]+t.firsts[block+1]-1) / 2
		below = upTo
	}
	return mean
}

// newGeometric gives each number of copies a block of its own, up to where less than 2^-32 is left.
func newGeometric(mean float64) *weights {
	more := 1 - 1/mean
	firsts, of := []int64{1}, []float64(nil)
	for weight := 1.0; weight > math.Ldexp(1-more, -32); weight *= more {
		firsts, of = append(firsts, firsts[len(firsts)-1]+1), append(of, weight)
	}
	return newWeights(firsts, of)
}

// check reports what is wrong; name is where it stands.
func (c Copies) check(name string) (faults []error) {
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(name+": "+format, args...))
	}
	forms := 0
	if c.Count != 0 {
		forms++
		if c.Count < 1 || c.Count >= stream.MaxCopies {
			fault("%d must be from 1 to %d", c.Count, stream.MaxCopies-1)
		}
	}
	if c.Geometric != 0 {
		forms++
		if !(c.Geometric >= 1 && c.Geometric <= maxMean) {
			fault("the geometric mean %v must be from 1 to %d", c.Geometric, maxMean)
		}
	}
	if z := c.Zipf; z != nil {
		forms++
		if z.N < 1 || z.N >= stream.MaxCopies {
			fault("the cap %d of zipf must be from 1 to %d", z.N, stream.MaxCopies-1)
		}
		if !(z.S >= 0 && z.S <= 10) {
			fault("the exponent %v of zipf must be from 0 to 10", z.S)
		}
	}
	if forms > 1 {
		fault("needs one of a number, geometric and zipf, has %d", forms)
	}
	return faults
}

// Flood re-sends what was created in a range of time, in the order in which it was created: a backfill. Its first row
// leaves at At, and it passes over the originals of the range at Speed a second, those too that Rate or Where leave
// out. Times count from the start of the scenario, and the range must end before the flood begins.
type Flood struct {
	At, From, To stream.Time
	Speed        float64 // originals a second
}

func (f Flood) check(name string) (faults []error) {
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(name+format, args...))
	}
	if f.From < 0 || f.To <= f.From {
		fault(".range: from %d ms to %d ms: the end must lie after the start", f.From, f.To)
	}
	if f.At < f.To {
		fault(".at: %d ms lies before the end of the range, %d ms", f.At, f.To)
	}
	if !(f.Speed >= 0.001 && f.Speed <= 1e9) {
		fault(".speed: %v rows a second must be from 0.001 to 1e9", f.Speed)
	}
	return faults
}

// end is when the flood of a workload ends, in the mean, from the start of the scenario.
func (f Flood) end(s Spec) stream.Time {
	clock := float64(f.To - f.From)
	if w := newWarp(s.Load); w != nil {
		clock = float64(w.clock(uint64(f.To)<<tickBits)-w.clock(uint64(f.From)<<tickBits)) / tickPerMs
	}
	return f.At + stream.Time(min(clock*s.Rate/f.Speed, float64(longest)))
}

// flood is a Flood made ready. It goes by the clock of the load, on which originals come at a constant rate.
type flood struct {
	from, to, at stream.Time
	clock        uint64 // at from
	slope        uint64 // ticks of the flood a tick of the clock, a factor
}

func newFlood(f Flood, s Spec) *flood {
	made := &flood{from: f.From, to: f.To, at: f.At, clock: uint64(f.From) << tickBits}
	if w := newWarp(s.Load); w != nil {
		made.clock = w.clock(made.clock)
	}
	made.slope = factor(s.Rate / f.Speed)
	return made
}

// holds reports whether an event was created in the range.
func (f *flood) holds(e event) bool { return e.created() >= f.from && e.created() < f.to }

// sends is when the flood sends an event of its range again.
func (f *flood) sends(e event) stream.Time {
	return f.at + stream.Time(times(e.clock-min(f.clock, e.clock), f.slope)>>tickBits)
}
