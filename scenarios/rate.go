package scenarios

import (
	"fmt"
	"strings"

	"deduplab/gen"
	"deduplab/yml"
)

// rateOverTime reads how the rate changes over time: steps, a sine or bursts.
func (l *loader) rateOverTime(to *gen.Load) func(*yml.Node) {
	return func(n *yml.Node) {
		l.Object(n,
			yml.May("steps", func(n *yml.Node) {
				for _, entry := range l.Entries(n) {
					var step gen.LoadStep
					l.Object(entry,
						yml.Must("from", yml.Value(l.Reader, &step.From, span)),
						yml.Must("times", yml.Bare(l.Reader, &step.Times, number)),
					)
					to.Steps = append(to.Steps, step)
				}
			}),
			yml.May("sine", func(n *yml.Node) {
				to.Sine = &gen.Sine{}
				l.Object(n,
					yml.Must("period", yml.Value(l.Reader, &to.Sine.Period, positive)),
					yml.Must("amplitude", yml.Value(l.Reader, &to.Sine.Amplitude, share)),
					yml.May("peak", yml.Value(l.Reader, &to.Sine.Peak, span)),
				)
			}),
			yml.May("burst", func(n *yml.Node) {
				to.Burst = &gen.Burst{}
				l.Object(n,
					yml.Must("every", yml.Value(l.Reader, &to.Burst.Every, positive)),
					yml.Must("for", yml.Value(l.Reader, &to.Burst.For, positive)),
					yml.Must("times", yml.Bare(l.Reader, &to.Burst.Times, number)),
				)
			}),
		)
		if n.Kind == yml.Mapping && len(n.Items) != 1 {
			l.Add(n.At, "load must be one of {steps: [{from: 8h, times: 3}]}, {sine: {period: 24h, amplitude: 60%%, "+
				"peak: 14h}} and {burst: {every: 1h, for: 5m, times: 10}}")
		}
	}
}

// formatLoad writes a load as the loader reads it, and nothing for a constant rate.
func formatLoad(load gen.Load) string {
	switch {
	case load.Steps != nil:
		steps := make([]string, len(load.Steps))
		for i, s := range load.Steps {
			steps[i] = fmt.Sprintf("{from: %s, times: %s}", dur(s.From), formatNumber(s.Times))
		}
		return "{steps: [" + strings.Join(steps, ", ") + "]}"
	case load.Sine != nil:
		s := load.Sine
		return fmt.Sprintf("{sine: {period: %s, amplitude: %s, peak: %s}}", dur(s.Period), formatShare(s.Amplitude),
			dur(s.Peak))
	case load.Burst != nil:
		b := load.Burst
		return fmt.Sprintf("{burst: {every: %s, for: %s, times: %s}}", dur(b.Every), dur(b.For), formatNumber(b.Times))
	}
	return ""
}
