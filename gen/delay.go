package gen

import (
	"errors"
	"fmt"
	"math"

	"deduplab/stream"
)

// Delay is a distribution of spans. The zero Delay is no delay. Spans are whole milliseconds, drawn from tables of
// integers that are exact to 16 bits.
type Delay struct {
	Kind DelayKind
	// Low and High are what the Kind says.
	Low, High stream.Time
	P1, P2    float64     // the probabilities of two given quantiles
	Alpha     float64     // pareto: the shape, unless P2 is given
	Mixture   []Part      // the distributions that are mixed
	Then      *Delay      // step: what is added, nil for nothing
	Quantiles []Quantile  // empirical
	Cap       stream.Time // no delay is longer; 0: no cap
}

// DelayKind names a distribution.
type DelayKind uint8

// The distributions of a Delay.
const (
	Constant    DelayKind = iota // always Low
	Uniform                      // from Low to High, both included
	Lognormal                    // Low is the P1 quantile, High the P2 quantile
	Exponential                  // Low is the mean
	Pareto                       // Low is the least; the tail falls with the power Alpha, or High is the P2 quantile
	Mixture                      // one of Mixture
	Step                         // nothing before Low and from there on as Then says: a flush at the end of the day
	Empirical                    // Quantiles, and between two of them a power law
)

// Part is a share of a mixture.
type Part struct {
	Share float64 // those of all parts add up to 1
	Delay Delay
}

// Quantile is a point of an empirical distribution: the share P of all spans is At or shorter. P 0 is the minimum and
// 1 the maximum, which a distribution must have; without a minimum it begins at 0.
type Quantile struct {
	P  float64
	At stream.Time
}

// IsZero reports whether the delay is absent.
func (d Delay) IsZero() bool { return d.Kind == Constant && d.Low == 0 && d.Cap == 0 }

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
	case Exponential:
		if d.Low <= 0 {
			fault("the exponential mean of %d ms must be positive", d.Low)
		}
	case Pareto:
		d.checkPareto(fault)
	case Mixture:
		share := 0.0
		for i, part := range d.Mixture {
			part.check(fmt.Sprintf("%s.mixture[%d]", name, i), &faults)
			share += part.Share
		}
		if math.Abs(share-1) > 1e-9 {
			fault("the shares of the mixture add up to %v %%, not to 100 %%", math.Round(share*1e10)/1e8)
		}
	case Step:
		if d.Then != nil {
			faults = append(faults, d.Then.check(name+".step.then"))
		}
	case Empirical:
		d.checkQuantiles(fault)
	default:
		fault("unknown kind of delay %d", d.Kind)
	}
	return errors.Join(faults...)
}

func (p Part) check(name string, faults *[]error) {
	if !(p.Share > 0 && p.Share <= 1) {
		*faults = append(*faults, fmt.Errorf("%s.share: %v must be above 0 and at most 1", name, p.Share))
	}
	*faults = append(*faults, p.Delay.check(name+".delay"))
}

func (d Delay) checkPareto(fault func(string, ...any)) {
	if d.Low <= 0 {
		fault("the pareto minimum of %d ms must be positive", d.Low)
	}
	switch {
	case d.P2 == 0 && !(d.Alpha > 0 && d.Alpha <= 100):
		fault("the pareto alpha %v must be above 0 and at most 100", d.Alpha)
	case d.P2 != 0 && !(0 < d.P2 && d.P2 < 1):
		fault("the pareto probability %v must lie between 0 and 1", d.P2)
	case d.P2 != 0 && d.High <= d.Low:
		fault("the pareto quantile %d ms must be above the minimum %d ms", d.High, d.Low)
	}
}

func (d Delay) checkQuantiles(fault func(string, ...any)) {
	n := len(d.Quantiles)
	if n == 0 || d.Quantiles[n-1].P != 1 {
		fault("the quantiles do not say where they end: max is missing")
	}
	before := Quantile{P: -1}
	for _, q := range d.Quantiles {
		switch {
		case !(q.P >= 0 && q.P <= 1) || q.P <= before.P:
			fault("the quantile probabilities %v and %v must lie from 0 to 1 and increase", before.P, q.P)
		case q.At < before.At:
			fault("the higher quantile must not be the shorter span, but %d ms is less than %d ms", q.At, before.At)
		case q.At >= longest:
			fault("spans must be shorter than 2^40 ms, about 35 years")
		}
		before = q
	}
}

// limitOf is the longest span that a delay can be.
func limitOf(d Delay) stream.Time {
	s := newSampler(d)
	return s.limit
}
