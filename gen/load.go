package gen

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"

	"deduplab/stream"
)

// Load says how the rate of originals changes over time, in multiples of Spec.Rate. At most one of its forms is set;
// the zero Load is a constant rate.
type Load struct {
	Steps []LoadStep
	Sine  *Sine
	Burst *Burst
}

// LoadStep sets the rate from a moment on, which counts from the start of the scenario. Before the first step the rate
// is the plain one.
type LoadStep struct {
	From  stream.Time
	Times float64
}

// Sine is a rate that swings around the plain one, as over a day.
type Sine struct {
	Period    stream.Time
	Amplitude float64     // above 0; at 1 the rate falls to 0 once a period
	Peak      stream.Time // when in the period the rate is highest
}

// Burst is a rate that is Times the plain one for the last For of every Every.
type Burst struct {
	Every, For stream.Time
	Times      float64
}

// sineSegments is how many pieces of constant rate stand for a period of a sine.
const sineSegments = 48

// segments are the pieces of constant rate and the period after which they repeat, 0 if they do not.
func (l Load) segments() (steps []LoadStep, period stream.Time) {
	switch {
	case l.Sine != nil:
		const turn = 2 * math.Pi / sineSegments
		shift := 2 * math.Pi * float64(l.Sine.Peak) / float64(l.Sine.Period)
		for i := range stream.Time(sineSegments) {
			from, to := float64(i)*turn-shift, float64(i+1)*turn-shift
			mean := (math.Sin(to) - math.Sin(from)) / turn // of a cosine, which is highest at 0
			steps = append(steps, LoadStep{i * l.Sine.Period / sineSegments, 1 + l.Sine.Amplitude*mean})
		}
		return steps, l.Sine.Period
	case l.Burst != nil:
		return []LoadStep{{0, 1}, {l.Burst.Every - l.Burst.For, l.Burst.Times}}, l.Burst.Every
	case len(l.Steps) == 0 || l.Steps[0].From > 0:
		return append([]LoadStep{{0, 1}}, l.Steps...), 0
	}
	return l.Steps, 0
}

// peak is the highest rate as a multiple of the plain one; that of a faulty load does not matter.
func (l Load) peak() float64 {
	highest := 0.0
	if l.check() != nil {
		return 1
	}
	steps, _ := l.segments()
	for _, step := range steps {
		highest = max(highest, step.Times)
	}
	return highest
}

// warp turns the time of a clock that runs faster the higher the load is into real time: events that are a Poisson
// process of constant rate on the clock follow the load in real time. All times are in ticks from the start.
type warp struct {
	pieces []piece // the last one only ends the one before it
}

// piece begins a span of constant rate, on the clock and in real time.
type piece struct{ clock, real uint64 }

// newWarp makes the warp of a load, nil for a constant one.
func newWarp(l Load) *warp {
	if len(l.Steps) == 0 && l.Sine == nil && l.Burst == nil {
		return nil
	}
	steps, period := l.segments()
	if period == 0 {
		period = longest
	}
	w := &warp{pieces: []piece{{}}}
	for i, step := range steps {
		end := period
		if i+1 < len(steps) {
			end = steps[i+1].From
		}
		last := w.pieces[i]
		real := uint64(end) << tickBits
		times := math.Ldexp(float64(roundCoarse(step.Times*(1<<16))), -16)
		clock := times * float64(real-last.real)
		if room := maxClock - last.clock; clock >= float64(room) {
			w.pieces = append(w.pieces, piece{maxClock, last.real + uint64(max(float64(room)/times, 1))})
			break
		}
		w.pieces = append(w.pieces, piece{last.clock + max(uint64(clock), 1), real})
	}
	return w
}

// maxClock is how far the clock is counted, with room for a gap after it.
const maxClock = 1 << 63

// limit is the real time up to which the clock is counted.
func (w *warp) limit() uint64 {
	end := w.pieces[len(w.pieces)-1]
	if hi, lo := bits.Mul64(maxClock/end.clock, end.real); hi == 0 {
		return lo
	}
	return math.MaxUint64
}

// real is the real time at which the clock shows a time.
func (w *warp) real(clock uint64) uint64 {
	end := w.pieces[len(w.pieces)-1]
	periods, within := clock/end.clock, clock%end.clock
	i := sort.Search(len(w.pieces)-1, func(i int) bool { return w.pieces[i+1].clock > within })
	from, to := w.pieces[i], w.pieces[i+1]
	return periods*end.real + from.real + scale(within-from.clock, to.real-from.real, to.clock-from.clock)
}

// clock is what the clock shows at a real time.
func (w *warp) clock(real uint64) uint64 {
	end := w.pieces[len(w.pieces)-1]
	periods, within := real/end.real, real%end.real
	i := sort.Search(len(w.pieces)-1, func(i int) bool { return w.pieces[i+1].real > within })
	from, to := w.pieces[i], w.pieces[i+1]
	return periods*end.clock + from.clock + scale(within-from.real, to.clock-from.clock, to.real-from.real)
}

// scale is x*by/of for an x below of.
func scale(x, by, of uint64) uint64 {
	hi, lo := bits.Mul64(x, by)
	quotient, _ := bits.Div64(hi, lo, of)
	return quotient
}

// expected is the mean number of originals of a spec, were there no silences.
func (s Spec) expected() float64 { return s.between(newWarp(s.Load), 0, uint64(s.Duration)<<tickBits) }

// between is the mean number of originals between two moments in ticks.
func (s Spec) between(w *warp, from, to uint64) float64 {
	if w != nil {
		from, to = w.clock(from), w.clock(to)
	}
	return s.Rate * float64(to-from) / tickPerMs / 1000
}

// Originals is the mean number of originals of a valid spec.
func (s Spec) Originals() float64 {
	end, w := uint64(s.Duration)<<tickBits, newWarp(s.Load)
	sum := s.between(w, 0, end)
	silences := s.silences()
	slices.SortFunc(silences, func(a, b silence) int {
		return cmp.Or(cmp.Compare(a.partition, b.partition), cmp.Compare(a.from, b.from))
	})
	partition, until := -1, uint64(0) // what has been left out of a partition so far
	for _, q := range silences {
		if q.partition != partition {
			partition, until = q.partition, 0
		}
		if from, to := max(q.from, until), min(q.to, end); from < to {
			sum -= s.share(partition) * s.between(w, from, to)
			until = to
		}
	}
	return sum
}

// check reports what is wrong with a load.
func (l Load) check() []error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	times := func(name string, times float64) {
		if !(times >= 0.001 && times <= 1000) {
			fault("%s.times: %v must be from 0.001 to 1000", name, times)
		}
	}
	forms := 0
	for i, step := range l.Steps {
		name := fmt.Sprintf("load.steps[%d]", i)
		times(name, step.Times)
		if step.From < 0 || step.From >= longest/8 || i > 0 && step.From <= l.Steps[i-1].From {
			fault("%s.from: %d ms must be after the step before it, and below 4 years", name, step.From)
		}
		forms |= 1
	}
	if s := l.Sine; s != nil {
		forms += 2
		if s.Period < second || s.Period >= longest/8 {
			fault("load.sine.period: %d ms must be from 1 s to 4 years", s.Period)
		}
		if !(s.Amplitude > 0 && s.Amplitude <= 1) {
			fault("load.sine.amplitude: %v must be above 0 and at most 1", s.Amplitude)
		}
		if s.Peak < 0 || s.Peak >= s.Period {
			fault("load.sine.peak: %d ms does not lie within the period of %d ms", s.Peak, s.Period)
		}
	}
	if b := l.Burst; b != nil {
		forms += 4
		times("load.burst", b.Times)
		if b.Every <= 0 || b.Every >= longest/8 {
			fault("load.burst.every: %d ms must be positive and below 4 years", b.Every)
		}
		if b.For <= 0 || b.For >= b.Every {
			fault("load.burst.for: %d ms must be positive and below the %d ms of every", b.For, b.Every)
		}
	}
	if bits.OnesCount(uint(forms)) > 1 {
		fault("load: needs one of steps, sine and burst, has %d", bits.OnesCount(uint(forms)))
	}
	return faults
}

// second is a second in milliseconds.
const second stream.Time = 1000
