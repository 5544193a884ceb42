package gen

import (
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
	table quantiles   // in ticks; nil for what needs none
	parts []part      // of a mixture; of a step the one that is added
}

// part is a Part made ready: it is taken when those before it are not and its chance hits. That of the last is 1.
type part struct {
	chance chance
	sampler
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
	case Mixture:
		s.mix(d.Mixture)
	case Step:
		then := Delay{}
		if d.Then != nil {
			then = *d.Then
		}
		s.parts = []part{{chance{always: true}, newSampler(then)}}
		s.limit = min(s.limit, d.Low+s.parts[0].limit)
	default:
		s.table = newQuantiles(d.inverse(), float64(s.limit)*tickPerMs)
		s.limit = ticksToTime(s.table[0])
	}
	return s
}

// mix makes the parts of a mixture.
func (s *sampler) mix(parts []Part) {
	share, limit := 0.0, stream.Time(0)
	for i, p := range parts {
		share += p.Share
		made := part{newChance(share), newSampler(p.Delay)}
		made.chance.always = i == len(parts)-1
		s.parts = append(s.parts, made)
		limit = max(limit, made.limit)
	}
	s.limit = min(s.limit, limit)
}

// draw returns the span that a uniform number stands for.
func (s *sampler) draw(u uint64) stream.Time {
	switch {
	case s.table != nil:
		return ticksToTime(s.table.at(u))
	case s.kind == Uniform:
		return min(s.low+stream.Time(below(u, s.width)), s.limit)
	case s.kind == Step:
		return min(s.low+s.parts[0].draw(u), s.limit)
	case s.kind == Mixture:
		for i := range s.parts {
			if p := &s.parts[i]; p.chance.hits(u) {
				return min(p.draw(stream.Mix(u)), s.limit)
			}
		}
	}
	return s.limit
}

// ticksToTime rounds to the nearest millisecond.
func ticksToTime(ticks uint64) stream.Time { return stream.Time((ticks + tickPerMs/2) >> tickBits) }

// inverse is the inverse of the distribution function of a delay that needs a table, in ticks.
func (d Delay) inverse() func(p float64) float64 {
	low, high := float64(d.Low)*tickPerMs, float64(d.High)*tickPerMs
	switch d.Kind {
	case Exponential:
		return distuv.Exponential{Rate: 1 / low}.Quantile
	case Pareto:
		alpha := d.Alpha
		if d.P2 != 0 {
			alpha = -math.Log1p(-d.P2) / math.Log(high/low)
		}
		return func(p float64) float64 { return low * math.Pow(1-p, -1/alpha) }
	case Empirical:
		return empirical(d.Quantiles)
	}
	return lognormal(d).Quantile
}

// lognormal finds, in ticks, the distribution that has the two given quantiles.
func lognormal(d Delay) distuv.LogNormal {
	z1, z2 := distuv.UnitNormal.Quantile(d.P1), distuv.UnitNormal.Quantile(d.P2)
	low, high := math.Log(float64(d.Low)*tickPerMs), math.Log(float64(d.High)*tickPerMs)
	sigma := (high - low) / (z2 - z1)
	return distuv.LogNormal{Mu: low - sigma*z1, Sigma: sigma}
}

// empirical goes, in ticks, through the given quantiles: between two of them as a Pareto distribution would, and from
// a span of 0 on as an exponential one. So a tail of which only a few points are known is neither
// too thin nor too fat. The maximum stands at the end of the table.
func empirical(points []Quantile) func(p float64) float64 {
	if points[0].P > 0 {
		points = append([]Quantile{{}}, points...)
	}
	depth := func(p float64) float64 { return min(-math.Log1p(-p), octaves*math.Ln2) }
	return func(p float64) float64 {
		i := 1
		for i < len(points)-1 && points[i].P < p {
			i++
		}
		from, to := points[i-1], points[i]
		low, high := float64(from.At)*tickPerMs, float64(to.At)*tickPerMs
		way := (depth(p) - depth(from.P)) / (depth(to.P) - depth(from.P))
		if low == 0 {
			return high * way
		}
		return low * math.Pow(high/low, way)
	}
}
