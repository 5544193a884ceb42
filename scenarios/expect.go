package scenarios

import (
	"slices"
	"strings"

	"deduplab/results"
	"deduplab/stream"
	"deduplab/yml"
)

// Expectation is one line of the section expect: what a strategy is known to do, which lab check holds it to. It is a
// bound on a metric, or a verdict.
type Expectation struct {
	Strategy string      // its id
	Metric   Requirement // its Name is empty for a verdict
	// Of is the requirement whose verdict is expected; empty for that of all together.
	Of      string
	Verdict string
	Line    int // in the scenario, from 1
}

// verdict is the field of an expectation that is no metric.
const verdict = "verdict"

// Overall are the verdicts on all requirements of a strategy together: it meets all that apply to it, misses one, or
// the planner refuses it.
var Overall = []string{results.Pass, results.Fail, results.Refused}

// verdicts are those on one requirement.
var verdicts = append(Overall[:len(Overall):len(Overall)], results.NotApplicable, results.Undetermined)

// String writes an expectation as people read it.
func (e Expectation) String() string {
	switch {
	case e.Metric.Name != "":
		return e.Metric.Name + " " + e.Metric.Bound
	case e.Of != "":
		return verdict + "." + e.Of + ": " + e.Verdict
	}
	return verdict + ": " + e.Verdict
}

func (l *loader) expect(n *yml.Node) {
	if !l.Is(n, yml.Mapping) {
		return
	}
	var ids []string
	for _, e := range l.scenario.Strategies {
		ids = append(ids, e.ID)
	}
	for _, v := range n.Items {
		if !slices.Contains(ids, v.Name) {
			l.Add(v.NameAt, "the scenario has no strategy %q%s", v.Name, yml.Nearest(v.Name, ids, "it has"))
		}
		l.expectOf(v)
	}
}

// expectOf reads what is expected of one strategy.
func (l *loader) expectOf(n *yml.Node) {
	if !l.Is(n, yml.Mapping) {
		return
	}
	metrics := results.MetricNames()
	for _, v := range n.Items {
		e := Expectation{Strategy: n.Name, Line: v.NameAt.Line}
		switch {
		case v.Name == verdict && v.Kind == yml.Mapping:
			l.expectVerdicts(v, e)
			continue
		case v.Name == verdict:
			if len(l.scenario.Require) == 0 {
				l.Add(v.NameAt, "a verdict needs something to be required: the section require is missing")
			}
			yml.Value(l.Reader, &e.Verdict, yml.OneOf(Overall...))(v)
		case slices.Contains(metrics, v.Name):
			yml.Value(l.Reader, &e.Metric, boundOrValue(v.Name))(v)
		default:
			known := append([]string{verdict}, metrics...)
			l.Add(v.NameAt, "there is no metric %q%s", v.Name, stream.DidYouMean(v.Name, known))
		}
		l.scenario.Expect = append(l.scenario.Expect, e)
	}
}

// expectVerdicts reads verdicts requirement by requirement.
func (l *loader) expectVerdicts(n *yml.Node, e Expectation) {
	var required []string
	for _, r := range l.scenario.Require {
		required = append(required, r.Name)
	}
	for _, v := range n.Items {
		e.Of, e.Line = v.Name, v.NameAt.Line
		if !slices.Contains(required, v.Name) {
			l.Add(v.NameAt, "%q is not required%s", v.Name, yml.Nearest(v.Name, required, "required are"))
		}
		yml.Value(l.Reader, &e.Verdict, yml.OneOf(verdicts...))(v)
		l.scenario.Expect = append(l.scenario.Expect, e)
	}
}

// boundOrValue makes the reader of a metric's bound, or of the value that it must have.
func boundOrValue(metric string) func(string) (Requirement, error) {
	return func(s string) (Requirement, error) {
		if firstOp(s) == "" && s != "" && strings.Contains("0123456789", s[:1]) {
			s = "== " + s
		}
		return bound(metric)(s)
	}
}

// expect writes the section as it is read.
func (p *printer) expect(all []Expectation) {
	if len(all) == 0 {
		return
	}
	p.section("expect")
	for i, e := range all {
		if i == 0 || e.Strategy != all[i-1].Strategy {
			p.open(1, quoted(e.Strategy))
		}
		if e.Of != "" && (i == 0 || e.Strategy != all[i-1].Strategy || all[i-1].Of == "") {
			p.open(2, verdict)
		}
		switch {
		case e.Metric.Name != "":
			p.field(2, e.Metric.Name, quoted(e.Metric.Bound))
		case e.Of != "":
			p.field(3, e.Of, quoted(e.Verdict))
		default:
			p.field(2, verdict, e.Verdict)
		}
	}
}
