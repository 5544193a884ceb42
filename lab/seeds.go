package lab

import (
	"context"

	"deduplab/results"
	"deduplab/scenarios"
)

// RunSeeds runs a scenario under n seeds, its own and the ones that follow. The result is that of the first, with the
// values of the metrics that vary; only the first is replayed for determinism. It is partial as that of [Run] is.
func RunSeeds(ctx context.Context, s *scenarios.Scenario, o Options, n int) (*results.Run, error) {
	out, err := Run(ctx, s, o)
	if err != nil || n < 2 {
		return out, err
	}
	all := []*results.Run{out}
	for i := 1; i < n; i++ {
		other := *s
		other.Seed += uint64(i)
		r, err := newRun(&other, o)
		if err != nil {
			return nil, err
		}
		if r.base, err = r.basePass(ctx); err != nil {
			out.Partial = true
			out.Summary = orEmpty(summary(out))
			return out, err
		}
		r.retire()
		all = append(all, r.result())
	}
	for _, r := range all {
		out.Seeds = append(out.Seeds, r.Seed)
	}
	for i := range out.Strategies {
		addSamples(all, i)
	}
	return out, nil
}

// addSamples gives a strategy of the first run what all runs measured of it.
func addSamples(all []*results.Run, i int) {
	out := &all[0].Strategies[i]
	out.Samples = map[string][]float64{}
	for _, metric := range results.MetricNames() {
		values, varies := make([]float64, 0, len(all)), false
		for _, r := range all {
			v, ok := r.Strategies[i].Metric(metric)
			if !ok {
				break
			}
			values = append(values, v)
			varies = varies || v != values[0]
		}
		if varies && len(values) == len(all) {
			out.Samples[metric] = values
		}
	}
	for j := range out.Verdicts {
		for _, r := range all {
			if r.Strategies[i].Verdicts[j].Verdict == results.Pass {
				out.Verdicts[j].Passed++
			}
		}
	}
}
