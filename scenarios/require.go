package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"deduplab/results"
	"deduplab/strategies"
	"deduplab/stream"
	"deduplab/yml"
)

func (l *loader) require(n *yml.Node) {
	if !l.Is(n, yml.Mapping) {
		return
	}
	metrics := results.MetricNames()
	known := append([]string{AppendOnly, StateClass, SameUnder, Version}, metrics...)
	for _, v := range n.Items {
		r := Requirement{Name: v.Name}
		switch {
		case v.Name == SameUnder:
			yml.Values(l.Reader, &r.Causes, yml.OneOf(Causes...))(v)
			r.Bound = strings.Join(r.Causes, ", ")
		case v.Name == Version:
			yml.Value(l.Reader, &r.Bound, yml.OneOf(Versions...))(v)
		case v.Name == AppendOnly:
			yml.Bare(l.Reader, &r.Bound, required)(v)
		case v.Name == StateClass:
			yml.Value(l.Reader, &r.Class, class)(v)
			r.Bound = classPrefix + string(r.Class)
		case isAmount(v.Name) && l.scenario.Workload.Amount == "" && slices.Contains(metrics, v.Name):
			l.Add(v.NameAt, "%s needs a column to sum: write amount: COLUMN in the workload", v.Name)
		case slices.Contains(metrics, v.Name):
			yml.Value(l.Reader, &r, bound(v.Name))(v)
		default:
			l.Add(v.NameAt, "there is no metric %q%s", v.Name, stream.DidYouMean(v.Name, known))
		}
		l.scenario.Require = append(l.scenario.Require, r)
	}
}

// required reads the bound of append_only.
func required(s string) (string, error) {
	if s != "true" {
		return "", fmt.Errorf("%q: write true, or leave the line out where it is not required", s)
	}
	return s, nil
}

const classPrefix = "at most "

// class reads the bound of state.class.
func class(s string) (strategies.StateClass, error) {
	name, ok := strings.CutPrefix(s, classPrefix)
	c := strategies.StateClass(name)
	if ok && slices.Contains(strategies.StateClasses, c) {
		return c, nil
	}
	names := make([]string, len(strategies.StateClasses))
	for i, c := range strategies.StateClasses {
		names[i] = string(c)
	}
	return "", fmt.Errorf("%q is not a bound: write \"at most CLASS\"%s; the classes are, from cheap to dear, %s", s,
		stream.DidYouMean(name, names), strings.Join(names, ", "))
}

// bound makes the reader of a metric's bound, such as "<= 1s".
func bound(metric string) func(string) (Requirement, error) {
	return func(s string) (Requirement, error) {
		none := Requirement{Name: metric}
		op := firstOp(s)
		number := strings.TrimSpace(s[len(op):])
		if op == "" {
			return none, fmt.Errorf("%q is not a bound: write one like <= %s, with %s", s, example(metric),
				strings.Join(whereOps, ", "))
		}
		v, err := quantity(metric, number)
		if err != nil {
			return none, err
		}
		return Requirement{Name: metric, Bound: op + " " + number, Op: op, Value: v}, nil
	}
}

// firstOp returns the comparison that a text starts with, or nothing.
func firstOp(s string) string {
	for _, op := range whereOps {
		if strings.HasPrefix(s, op) {
			return op
		}
	}
	return ""
}

// quantity reads a number in the unit of a metric: durations in milliseconds, shares, or counts.
func quantity(metric, s string) (float64, error) {
	switch results.UnitOf(metric) {
	case results.Millis:
		t, err := stream.ParseDuration(s)
		return float64(t), err
	case results.Share:
		return fraction(s)
	case results.Bytes:
		return size(s)
	case results.Sum:
		return number(s)
	}
	v, err := yml.Whole(0, 1<<53)(s)
	if err != nil {
		return 0, fmt.Errorf("%s is a count: %w", metric, err)
	}
	return float64(v), nil
}

var sizes = []struct {
	name  string
	bytes float64
}{{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}}

// size reads a number of bytes, such as 64MB.
func size(s string) (float64, error) {
	for _, unit := range sizes {
		number, ok := strings.CutSuffix(s, unit.name)
		if v, err := decimal(number, ""); ok && err == nil {
			return v * unit.bytes, nil
		}
	}
	return 0, fmt.Errorf("%q is not a size: write one like 500KB, 64MB or 2GB", s)
}

func example(metric string) string {
	switch results.UnitOf(metric) {
	case results.Millis:
		return "1s"
	case results.Share:
		return "0.1%"
	case results.Bytes:
		return "64MB"
	case results.Sum:
		return "99.50"
	}
	return "0"
}
