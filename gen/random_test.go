package gen

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"deduplab/stream"
)

func TestQuantilesHoldTheDistribution(t *testing.T) {
	const limit = float64(longest) * tickPerMs
	retry := Delay{Kind: Lognormal, Low: 2000, High: 2_400_000, P1: 0.5, P2: 0.999}
	tests := []struct {
		name    string
		inverse func(float64) float64
	}{
		{"exponential", distuv.Exponential{Rate: 1. / (20 * tickPerMs)}.Quantile},
		{"lognormal", lognormal(retry).Quantile},
	}
	for _, test := range tests {
		q := newQuantiles(test.inverse, limit)
		for _, p := range []float64{0.01, 0.1, 0.123, 0.5, 0.77, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999} {
			got := float64(q.at(uint64((1 - p) * (1 << 64))))
			if want := test.inverse(p); math.Abs(got/want-1) > 1e-3 {
				t.Errorf("%s: the quantile of %v is %.0f, want %.0f", test.name, p, got, want)
			}
		}
		for u := uint64(1); u != 0; u <<= 1 {
			if q.at(u) < q.at(u+u/2) || q.at(u-1) < q.at(u) {
				t.Errorf("%s: not monotone at %#x", test.name, u)
			}
		}
	}
}

func TestExponentialMean(t *testing.T) {
	const n, want = 4_000_000, 20 * tickPerMs
	q := newQuantiles(distuv.Exponential{Rate: 1. / want}.Quantile, float64(longest)*tickPerMs)
	source, sum := newSource(1, "test"), uint64(0)
	for i := range uint64(n) {
		sum += q.at(source.at(i))
	}
	// The standard deviation of the mean is 0.05 %.
	if mean := float64(sum) / n; math.Abs(mean/want-1) > 0.002 {
		t.Errorf("mean %.0f ticks, want %d", mean, want)
	}
}

func TestDelays(t *testing.T) {
	tests := []struct {
		name                   string
		delay                  Delay
		least, p50, p999, most stream.Time // 0: not checked
	}{
		{"none", Delay{}, 0, 0, 0, 0},
		{"constant", Delay{Low: 5}, 5, 5, 5, 5},
		{"constant, capped", Delay{Low: 5, Cap: 3}, 3, 3, 3, 3},
		{"uniform", Delay{Kind: Uniform, Low: 100, High: 10_099}, 100, 5100, 10_089, 10_099},
		{"uniform, capped", Delay{Kind: Uniform, Low: 100, High: 10_099, Cap: 7000}, 100, 5100, 7000, 7000},
		{"lognormal", Delay{Kind: Lognormal, Low: 400, High: 8000, P1: 0.5, P2: 0.999}, 0, 400, 8000, 0},
		{"lognormal, capped", Delay{Kind: Lognormal, Low: 400, High: 8000, P1: 0.5, P2: 0.99, Cap: 9000}, 0, 400, 9000, 9000},
		{"exponential", Delay{Kind: Exponential, Low: 1000}, 0, 693, 6908, 0},
		{"exponential, capped", Delay{Kind: Exponential, Low: 1000, Cap: 3000}, 0, 693, 3000, 3000},
		{"pareto by its shape", Delay{Kind: Pareto, Low: 1000, Alpha: 2}, 1000, 1414, 31_623, 0},
		{"pareto by a quantile", Delay{Kind: Pareto, Low: 1000, High: 10_000, P2: 0.99}, 1000, 1414, 31_623, 0},
		{"mixture", Delay{Kind: Mixture, Mixture: []Part{
			{0.75, Delay{Kind: Uniform, High: 999}},
			{0.25, Delay{Kind: Uniform, Low: 5000, High: 5999}},
		}}, 0, 667, 5996, 5999},
		{"mixture, capped", Delay{Kind: Mixture, Cap: 3000, Mixture: []Part{
			{0.4, Delay{}}, {0.6, Delay{Kind: Lognormal, Low: 4000, High: 8000, P1: 0.01, P2: 0.9}},
		}}, 0, 3000, 3000, 3000},
		{"step", Delay{Kind: Step, Low: 5000}, 5000, 5000, 5000, 5000},
		{"step and then", Delay{Kind: Step, Low: 5000, Then: &Delay{Kind: Uniform, High: 999}}, 5000, 5500, 5999, 5999},
		{"quantiles", Delay{Kind: Empirical, Quantiles: []Quantile{{0.5, 400}, {0.999, 8000}, {1, 90_000}}}, 0, 400, 8000, 0},
		{"quantiles from a minimum", Delay{Kind: Empirical, Quantiles: []Quantile{{0, 100}, {0.5, 400}, {1, 400}}},
			100, 400, 400, 400},
		{"quantiles of nothing", Delay{Kind: Empirical, Quantiles: []Quantile{{1, 0}}}, 0, 0, 0, 0},
	}
	for _, test := range tests {
		s := newSampler(test.delay)
		const n = 1_000_000
		source, counts := newSource(1, "test"), map[stream.Time]int{}
		least, most := stream.MaxTime, stream.Time(0)
		for i := range uint64(n) {
			d := s.draw(source.at(i))
			counts[d]++
			least, most = min(least, d), max(most, d)
		}
		quantile := func(p float64) stream.Time {
			d, rank := least, counts[least]
			for float64(rank) < p*n {
				d++
				rank += counts[d]
			}
			return d
		}
		check := func(what string, got, want stream.Time, tolerance float64) {
			if math.Abs(float64(got-want)) > tolerance*float64(want) {
				t.Errorf("%s: %s is %d ms, want %d", test.name, what, got, want)
			}
		}
		check("p50", quantile(0.5), test.p50, 0.005)
		check("p99.9", quantile(0.999), test.p999, 0.03)
		if test.delay.Kind != Lognormal {
			check("the least", least, test.least, 0)
		}
		if test.most > 0 || test.p999 == 0 {
			check("the most", most, test.most, 0)
		}
		if most > s.limit {
			t.Errorf("%s: %d ms is above the limit %d", test.name, most, s.limit)
		}
	}
}

func TestRoundCoarse(t *testing.T) {
	for x, want := range map[float64]uint64{0: 0, 1: 1, 1.5: 2, 65535: 65535, 65537: 65538, 1e15 + 1: 1000005825462272} {
		if got := roundCoarse(x); got != want {
			t.Errorf("roundCoarse(%v) = %d, want %d", x, got, want)
		}
	}
	if a, b := roundCoarse(123456789.123), roundCoarse(math.Nextafter(123456789.123, 0)); a != b {
		t.Errorf("neighbours round to %d and %d", a, b)
	}
}

func TestChance(t *testing.T) {
	if newChance(0).hits(0) || !newChance(1).hits(math.MaxUint64) {
		t.Error("0 must never hit and 1 always")
	}
	if c := newChance(0.25); !c.hits(1<<62-1) || c.hits(1<<62) {
		t.Error("0.25 must hit below 2^62")
	}
}

// TestEmpiricalTail states what is between two quantiles: a power law, of which p99.9 lies halfway between p99 and
// p99.99 on both logarithmic scales.
func TestEmpiricalTail(t *testing.T) {
	inverse := empirical([]Quantile{{0, 0}, {0.99, 100}, {0.9999, 10_000}, {1, 1_000_000}})
	for p, want := range map[float64]float64{0: 0, 0.9: 50, 0.99: 100, 0.999: 1000, 0.9999: 10_000} {
		if got := inverse(p) / tickPerMs; math.Abs(got-want) > 1e-6*want {
			t.Errorf("the quantile of %v is %v ms, want %v", p, got, want)
		}
	}
}
