package scenarios

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"deduplab/gen"
	"deduplab/stream"
	"deduplab/yml"
)

// delayForms are the distributions of a delay by the name that they are written with.
var delayForms = []string{"uniform", "exponential", "lognormal", "pareto", "mixture", "step", "quantiles"}

// delay reads a span, or a distribution of spans.
func (l *loader) delay(to *gen.Delay) func(*yml.Node) {
	return func(n *yml.Node) {
		if n.Kind != yml.Mapping && n.Kind != yml.Broken {
			yml.Value(l.Reader, &to.Low, span)(n)
			return
		}
		l.Object(n,
			yml.May("uniform", func(n *yml.Node) {
				var b [2]stream.Time
				yml.Bounds(l.Reader, &b, span)(n)
				to.Kind, to.Low, to.High = gen.Uniform, b[0], b[1]
			}),
			yml.May("exponential", func(n *yml.Node) {
				to.Kind = gen.Exponential
				l.Object(n, yml.Must("mean", yml.Value(l.Reader, &to.Low, positive)))
			}),
			yml.May("lognormal", l.lognormal(to)),
			yml.May("pareto", l.pareto(to)),
			yml.May("mixture", l.mixture(to)),
			yml.May("step", l.step(to)),
			yml.May("quantiles", l.empirical(to)),
			yml.May("cap", yml.Value(l.Reader, &to.Cap, positive)),
		)
		forms := 0
		for _, form := range delayForms {
			if n.Get(form) != nil {
				forms++
			}
		}
		if n.Kind == yml.Mapping && forms != 1 {
			l.Add(n.At, "%s must be a duration such as 5s or one distribution such as {lognormal: {p50: 2s, p99.9: 40m}, "+
				"cap: 3h}; there are %s", n.Name, strings.Join(delayForms, ", "))
		}
	}
}

// quantileName is the name of a quantile in percent.
var quantileName = regexp.MustCompile(`^p([0-9]{1,2}(\.[0-9]{1,6})?)$`)

// percentile reads the name of a quantile as the share that it stands for.
func (l *loader) percentile(n *yml.Node) float64 {
	percent := quantileName.FindStringSubmatch(n.Name)
	if percent == nil || strings.Trim(percent[1], "0.") == "" {
		l.Add(n.NameAt, "%q is not a quantile: write one like p50 or p99.9", n.Name)
		return 0
	}
	p, _ := share(percent[1] + "%")
	return p
}

func formatPercentile(p float64) string { return "p" + strings.TrimSuffix(formatShare(p), "%") }

// lognormal reads two quantiles, in any order.
func (l *loader) lognormal(to *gen.Delay) func(*yml.Node) {
	return func(n *yml.Node) {
		to.Kind = gen.Lognormal
		if !l.Is(n, yml.Mapping) {
			return
		}
		if len(n.Items) != 2 {
			l.Add(n.At, "lognormal needs two quantiles, such as {p50: 2s, p99.9: 40m}")
			return
		}
		var p [2]float64
		var at [2]stream.Time
		before := l.Faults()
		for i, v := range n.Items {
			if p[i] = l.percentile(v); p[i] > 0 {
				yml.Value(l.Reader, &at[i], positive)(v)
			}
		}
		if p[0] > p[1] {
			p[0], p[1], at[0], at[1] = p[1], p[0], at[1], at[0]
		}
		if l.Faults() == before && (p[0] == p[1] || at[0] >= at[1]) {
			l.Add(n.At, "the higher quantile must be the longer span")
		}
		to.P1, to.P2, to.Low, to.High = p[0], p[1], at[0], at[1]
	}
}

// pareto reads the minimum, and either the shape or a quantile.
func (l *loader) pareto(to *gen.Delay) func(*yml.Node) {
	return func(n *yml.Node) {
		to.Kind = gen.Pareto
		if !l.Is(n, yml.Mapping) {
			return
		}
		tails := 0
		for _, v := range n.Items {
			switch v.Name {
			case "min":
				yml.Value(l.Reader, &to.Low, positive)(v)
				continue
			case "alpha":
				yml.Bare(l.Reader, &to.Alpha, number)(v)
			default:
				if to.P2 = l.percentile(v); to.P2 > 0 {
					yml.Value(l.Reader, &to.High, positive)(v)
				}
			}
			tails++
		}
		if n.Get("min") == nil || tails != 1 {
			l.Add(n.At, "pareto needs its min and either a quantile or its alpha: {min: 1s, p99: 1h} or {min: 1s, alpha: 1.5}")
		}
	}
}

// mixture reads delays with their shares.
func (l *loader) mixture(to *gen.Delay) func(*yml.Node) {
	return func(n *yml.Node) {
		to.Kind = gen.Mixture
		for _, entry := range l.Entries(n) {
			var part gen.Part
			l.Object(entry,
				yml.Must("share", yml.Value(l.Reader, &part.Share, share)),
				yml.Must("delay", l.delay(&part.Delay)),
			)
			to.Mixture = append(to.Mixture, part)
		}
	}
}

func (l *loader) step(to *gen.Delay) func(*yml.Node) {
	return func(n *yml.Node) {
		to.Kind = gen.Step
		l.Object(n,
			yml.Must("at", yml.Value(l.Reader, &to.Low, span)),
			yml.May("then", func(n *yml.Node) {
				to.Then = &gen.Delay{}
				l.delay(to.Then)(n)
			}),
		)
		if to.Then != nil && to.Then.IsZero() {
			to.Then = nil
		}
	}
}

// empirical reads quantiles in any order, and what is the shortest and the longest of all.
func (l *loader) empirical(to *gen.Delay) func(*yml.Node) {
	return func(n *yml.Node) {
		to.Kind = gen.Empirical
		if !l.Is(n, yml.Mapping) {
			return
		}
		for _, v := range n.Items {
			var q gen.Quantile
			switch v.Name {
			case "min":
			case "max":
				q.P = 1
			default:
				if q.P = l.percentile(v); q.P == 0 {
					continue
				}
			}
			yml.Value(l.Reader, &q.At, span)(v)
			to.Quantiles = append(to.Quantiles, q)
		}
		slices.SortStableFunc(to.Quantiles, func(a, b gen.Quantile) int { return cmp.Compare(a.P, b.P) })
	}
}

// formatDelay writes a delay as the loader reads it.
func formatDelay(d gen.Delay) string {
	form := ""
	switch d.Kind {
	case gen.Constant:
		return dur(d.Low)
	case gen.Uniform:
		form = fmt.Sprintf("uniform: [%s, %s]", dur(d.Low), dur(d.High))
	case gen.Lognormal:
		form = fmt.Sprintf("lognormal: {%s: %s, %s: %s}", formatPercentile(d.P1), dur(d.Low), formatPercentile(d.P2),
			dur(d.High))
	case gen.Exponential:
		form = fmt.Sprintf("exponential: {mean: %s}", dur(d.Low))
	case gen.Pareto:
		tail := "alpha: " + formatNumber(d.Alpha)
		if d.P2 > 0 {
			tail = formatPercentile(d.P2) + ": " + dur(d.High)
		}
		form = fmt.Sprintf("pareto: {min: %s, %s}", dur(d.Low), tail)
	case gen.Mixture:
		parts := make([]string, len(d.Mixture))
		for i, p := range d.Mixture {
			parts[i] = fmt.Sprintf("{share: %s, delay: %s}", formatShare(p.Share), formatDelay(p.Delay))
		}
		form = "mixture: [" + strings.Join(parts, ", ") + "]"
	case gen.Step:
		then := ""
		if d.Then != nil {
			then = ", then: " + formatDelay(*d.Then)
		}
		form = fmt.Sprintf("step: {at: %s%s}", dur(d.Low), then)
	case gen.Empirical:
		form = "quantiles: {" + formatQuantiles(d.Quantiles) + "}"
	}
	if d.Cap > 0 {
		form += ", cap: " + dur(d.Cap)
	}
	return "{" + form + "}"
}

func formatQuantiles(quantiles []gen.Quantile) string {
	points := make([]string, len(quantiles))
	for i, q := range quantiles {
		name := formatPercentile(q.P)
		switch q.P {
		case 0:
			name = "min"
		case 1:
			name = "max"
		}
		points[i] = name + ": " + dur(q.At)
	}
	return strings.Join(points, ", ")
}
