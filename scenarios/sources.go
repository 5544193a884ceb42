package scenarios

import (
	"errors"
	"fmt"
	"strings"

	"deduplab/gen"
	"deduplab/stream"
	"deduplab/yml"
)

// This file reads and writes what sets one source partition apart from another.

// shares reads the share of each partition.
func (l *loader) shares(to *[]float64) func(*yml.Node) {
	return func(n *yml.Node) {
		if l.Is(n, yml.List) {
			yml.Values(l.Reader, to, share)(n)
		}
		if l.Faulty(n) {
			*to = nil
		}
	}
}

func formatShares(shares []float64) string {
	parts := make([]string, len(shares))
	for i, s := range shares {
		parts[i] = formatShare(s)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func (l *loader) partition(to *int) yml.Field {
	return yml.Must("partition", yml.Bare(l.Reader, to, yml.Whole(0, 65534)))
}

func (l *loader) slow(to *[]gen.Slow) func(*yml.Node) {
	return func(n *yml.Node) {
		for _, entry := range l.Entries(n) {
			var s gen.Slow
			l.Object(entry,
				l.partition(&s.Partition),
				yml.Must("delay", l.delay(&s.Delay)),
				yml.May("from", yml.Value(l.Reader, &s.From, span)),
				yml.May("for", yml.Value(l.Reader, &s.For, positive)),
			)
			*to = append(*to, s)
		}
	}
}

func (l *loader) finished(to *[]gen.Finish) func(*yml.Node) {
	return func(n *yml.Node) {
		for _, entry := range l.Entries(n) {
			var f gen.Finish
			l.Object(entry, l.partition(&f.Partition), yml.Must("at", yml.Value(l.Reader, &f.At, span)))
			*to = append(*to, f)
		}
	}
}

func (l *loader) clocks(to *[]gen.Clock) func(*yml.Node) {
	return func(n *yml.Node) {
		for _, entry := range l.Entries(n) {
			var c gen.Clock
			l.Object(entry,
				l.partition(&c.Partition),
				yml.May("skew", yml.Value(l.Reader, &c.Skew, signedSpan)),
				yml.May("drift", yml.Value(l.Reader, &c.Drift, drift)),
			)
			if entry.Kind == yml.Mapping && entry.Get("skew") == nil && entry.Get("drift") == nil {
				l.Add(entry.At, "%s needs a skew such as -30s or a drift such as 50ppm", entry.Name)
			}
			*to = append(*to, c)
		}
	}
}

// signedSpan reads a duration that may be negative.
func signedSpan(s string) (stream.Time, error) {
	size, negative := strings.CutPrefix(s, "-")
	d, err := span(size)
	if negative {
		d = -d
	}
	return d, err
}

// drift reads a number of millionths, such as 50ppm or -0.5ppm.
func drift(s string) (float64, error) {
	number, ppm := strings.CutSuffix(s, "ppm")
	size, negative := strings.CutPrefix(number, "-")
	v, err := decimal(size, "")
	if !ppm {
		err = errors.New("not in ppm")
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a drift: write one like 50ppm or -0.5ppm", s)
	}
	if negative {
		v = -v
	}
	return v, nil
}

// sources writes what sets partitions apart, one entry a line.
func (p *printer) sources(s *gen.Spec) {
	list := func(name string, entries []string) {
		if len(entries) > 0 {
			p.open(1, name)
		}
		for _, entry := range entries {
			fmt.Fprintf(p, "    - {%s}\n", entry)
		}
	}
	var slow, finished, clocks []string
	for _, o := range s.Slow {
		entry := fmt.Sprintf("partition: %d, delay: %s", o.Partition, formatDelay(o.Delay))
		if o.From > 0 {
			entry += ", from: " + dur(o.From)
		}
		if o.For > 0 {
			entry += ", for: " + dur(o.For)
		}
		slow = append(slow, entry)
	}
	for _, f := range s.Finished {
		finished = append(finished, fmt.Sprintf("partition: %d, at: %s", f.Partition, dur(f.At)))
	}
	for _, c := range s.Clock {
		clocks = append(clocks, fmt.Sprintf("partition: %d, skew: %s, drift: %sppm", c.Partition, dur(c.Skew),
			formatNumber(c.Drift)))
	}
	list("slow", slow)
	list("finished", finished)
	list("clock", clocks)
}
