package gen

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"deduplab/stream"
)

// Spans finer than a millisecond are counted in ticks of 2^-20 ms.
const (
	tickBits  = 20
	tickPerMs = 1 << tickBits
)

// longest bounds every span from the start of a scenario: 2^40 ms, about 35 years.
const longest stream.Time = 1 << 40

// sampler draws spans from a Delay.
type sampler struct {
	kind  DelayKind
	low   stream.Time
	width uint64      // uniform: the number of values
	limit stream.Time // the longest span it draws
	table quantiles   // lognormal, in ticks
}

func newSampler(d Delay) sampler {
	s := sampler{kind: d.Kind, low: d.Low, width: uint64(d.High-d.Low) + 1, limit: longest}
	if d.Cap > 0 {
		s.limit = d.Cap
	}
	switch d.Kind {
	case Constant:
		s.limit = min(s.limit, d.Low)
	case Uniform:
		s.limit = min(s.limit, d.High)
	case Lognormal:
		s.table = newQuantiles(lognormal(d).Quantile, float64(s.limit)*tickPerMs)
		s.limit = ticksToTime(s.table[0])
	}
	return s
}

// draw returns the span that a uniform number stands for.
func (s *sampler) draw(u uint64) stream.Time {
	switch s.kind {
	case Lognormal:
		return ticksToTime(s.table.at(u))
	case Uniform:
		return min(s.low+stream.Time(below(u, s.width)), s.limit)
	}
	return s.limit
}

// ticksToTime rounds to the nearest millisecond.
func ticksToTime(ticks uint64) stream.Time { return stream.Time((ticks + tickPerMs/2) >> tickBits) }

// lognormal finds, in ticks, the distribution that has the two given quantiles.
func lognormal(d Delay) distuv.LogNormal {
	z1, z2 := distuv.UnitNormal.Quantile(d.P1), distuv.UnitNormal.Quantile(d.P2)
	low, high := math.Log(float64(d.Low)*tickPerMs), math.Log(float64(d.High)*tickPerMs)
	sigma := (high - low) / (z2 - z1)
	return distuv.LogNormal{Mu: low - sigma*z1, Sigma: sigma}
}

// check reports what is wrong with a delay; name is where it stands.
func (d Delay) check(name string) error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%s: "+format, append([]any{name}, args...)...))
	}
	if d.Low < 0 {
		fault("%d ms is negative", d.Low)
	}
	if d.Cap < 0 {
		fault("the cap of %d ms is negative", d.Cap)
	}
	if d.Low >= longest || d.High >= longest {
		fault("spans must be shorter than 2^40 ms, about 35 years")
	}
	switch d.Kind {
	case Constant:
	case Uniform:
		if d.High < d.Low {
			fault("uniform from %d ms to %d ms: the end lies before the start", d.Low, d.High)
		}
	case Lognormal:
		if d.Low <= 0 || d.High <= d.Low {
			fault("lognormal quantiles %d ms and %d ms must be positive and increase", d.Low, d.High)
		}
		if !(0 < d.P1 && d.P1 < d.P2 && d.P2 < 1) {
			fault("lognormal probabilities %v and %v must lie between 0 and 1 and increase", d.P1, d.P2)
		}
	default:
		fault("unknown kind of delay %d", d.Kind)
	}
	return errors.Join(faults...)
}

// limitOf is the longest span that a delay can be.
func limitOf(d Delay) stream.Time {
	s := newSampler(d)
	return s.limit
}
