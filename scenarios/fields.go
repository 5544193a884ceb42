package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"deduplab/gen"
	"deduplab/stream"
	"deduplab/yml"
)

// columns reads the fields of the rows. What it finds replaces those of a ready-made kind of event.
func (l *loader) columns(to *[]gen.Field) func(*yml.Node) {
	return func(n *yml.Node) {
		*to = nil
		if l.Is(n, yml.Mapping) && len(n.Items) == 0 {
			l.Add(n.At, "%s needs at least one column", n.Name)
		}
		for _, v := range n.Items {
			*to = append(*to, l.column(v))
		}
	}
}

// column reads one field: the one kind that it is of, how often it is NULL, and how often one of a few values or used
// again.
func (l *loader) column(n *yml.Node) gen.Field {
	fd := gen.Field{Name: n.Name}
	if _, err := column(n.Name); err != nil {
		l.Add(n.NameAt, "%v", err)
	}
	before := l.Faults()
	l.Object(n,
		yml.May("uuid", yml.Bare(l.Reader, &fd.UUID, yml.Boolean)),
		yml.May("int", func(n *yml.Node) { fd.Int = new([2]int64); yml.Bounds(l.Reader, fd.Int, integer)(n) }),
		yml.May("decimal", func(n *yml.Node) {
			fd.Decimal = new([2]int64)
			yml.Bounds(l.Reader, fd.Decimal, hundredths)(n)
		}),
		yml.May("faker", yml.Value(l.Reader, &fd.Faker, yml.NonEmpty)),
		yml.May("sequence", func(n *yml.Node) { fd.Sequence = new(int64); yml.Bare(l.Reader, fd.Sequence, integer)(n) }),
		yml.May("zipf", func(n *yml.Node) {
			fd.Zipf = &gen.Zipf{S: 1}
			l.Object(n,
				yml.Must("n", yml.Bare(l.Reader, &fd.Zipf.N, integer)),
				yml.May("s", yml.Bare(l.Reader, &fd.Zipf.S, number)),
			)
		}),
		yml.May("choice", l.choices(&fd.Choice)),
		yml.May("text", yml.Bare(l.Reader, &fd.Text, yml.Whole(1, 65536))),
		yml.May("timestamp", func(n *yml.Node) {
			stamp := ""
			yml.Value(l.Reader, &stamp, yml.OneOf(string(gen.Created), string(gen.Sent)))(n)
			fd.Stamp = gen.Stamp(stamp)
		}),
		yml.May("retry", yml.Bare(l.Reader, &fd.Retry, yml.Boolean)),
		yml.May("position", yml.Bare(l.Reader, &fd.Position, yml.Boolean)),
		yml.May("reuse", func(n *yml.Node) {
			fd.Reuse = &gen.Reuse{}
			l.Object(n,
				yml.Must("rate", yml.Value(l.Reader, &fd.Reuse.Rate, share)),
				yml.May("after", l.delay(&fd.Reuse.After)),
				yml.May("constant", yml.Bare(l.Reader, &fd.Reuse.Constant, yml.Boolean)),
			)
		}),
		yml.May("nulls", yml.Value(l.Reader, &fd.Null, share)),
		yml.May("hot", func(n *yml.Node) {
			fd.Hot = &gen.Hot{}
			l.Object(n,
				yml.Must("share", yml.Value(l.Reader, &fd.Hot.Share, share)),
				yml.Must("keys", yml.Bare(l.Reader, &fd.Hot.Keys, yml.Whole(1, 1<<20))),
			)
		}),
	)
	kinds := len(n.Items)
	for _, other := range []string{"nulls", "hot", "reuse"} {
		if n.Get(other) != nil {
			kinds--
		}
	}
	off := func(name string, set bool) bool { return n.Get(name) != nil && !set }
	none := off("uuid", fd.UUID) || off("retry", fd.Retry) || off("position", fd.Position)
	if l.Faults() == before && n.Kind == yml.Mapping && (kinds != 1 || none) {
		l.Add(n.NameAt, "column %s must be one of {uuid: true}, {int: [1, 9]}, {decimal: [0.50, 9.99]}, "+
			"{faker: \"{firstname}\"}, {sequence: 1}, {zipf: {n: 1000}}, {choice: [red, green]}, {text: 200}, "+
			"{timestamp: sent}, {retry: true} and {position: true}", n.Name)
	}
	return fd
}

// choices reads texts that are equally likely, or texts with weights.
func (l *loader) choices(to *[]gen.Choice) func(*yml.Node) {
	return func(n *yml.Node) {
		if n.Kind == yml.List {
			var texts []string
			yml.Values(l.Reader, &texts, yml.NonEmpty)(n)
			for _, text := range texts {
				*to = append(*to, gen.Choice{Text: text, Weight: 1})
			}
			return
		}
		if l.Is(n, yml.Mapping) && len(n.Items) == 0 {
			l.Add(n.At, "%s needs at least one text", n.Name)
		}
		for _, v := range n.Items {
			text, err := yml.NonEmpty(v.Name)
			if err != nil {
				l.Add(v.NameAt, "%v", err)
			}
			choice := gen.Choice{Text: text}
			yml.Value(l.Reader, &choice.Weight, fraction)(v)
			*to = append(*to, choice)
		}
	}
}

// kindOf writes what a field holds.
func kindOf(fd gen.Field) string {
	kind := ""
	switch {
	case fd.UUID:
		kind = "uuid: true"
	case fd.Int != nil:
		kind = fmt.Sprintf("int: [%d, %d]", fd.Int[0], fd.Int[1])
	case fd.Decimal != nil:
		low, high := stream.FormatDecimal(fd.Decimal[0], 2), stream.FormatDecimal(fd.Decimal[1], 2)
		kind = fmt.Sprintf("decimal: [%s, %s]", low, high)
	case fd.Sequence != nil:
		kind = fmt.Sprintf("sequence: %d", *fd.Sequence)
	case fd.Zipf != nil:
		kind = fmt.Sprintf("zipf: {n: %d, s: %s}", fd.Zipf.N, formatNumber(fd.Zipf.S))
	case fd.Choice != nil:
		kind = "choice: " + formatChoices(fd.Choice)
	case fd.Text > 0:
		kind = fmt.Sprintf("text: %d", fd.Text)
	case fd.Retry:
		kind = "retry: true"
	case fd.Position:
		kind = "position: true"
	case fd.Stamp != "":
		kind = "timestamp: " + string(fd.Stamp)
	default:
		kind = "faker: " + strconv.Quote(fd.Faker)
	}
	if fd.Hot != nil {
		kind += fmt.Sprintf(", hot: {share: %s, keys: %d}", formatShare(fd.Hot.Share), fd.Hot.Keys)
	}
	if r := fd.Reuse; r != nil && r.Constant {
		kind += fmt.Sprintf(", reuse: {rate: %s, constant: true}", formatShare(r.Rate))
	} else if r != nil {
		kind += fmt.Sprintf(", reuse: {rate: %s, after: %s}", formatShare(r.Rate), formatDelay(r.After))
	}
	if fd.Null > 0 {
		kind += ", nulls: " + formatShare(fd.Null)
	}
	return "{" + kind + "}"
}

func formatChoices(choices []gen.Choice) string {
	parts := make([]string, len(choices))
	weighted := slices.ContainsFunc(choices, func(c gen.Choice) bool { return c.Weight != 1 })
	for i, c := range choices {
		parts[i] = quoted(c.Text)
		if weighted {
			parts[i] += ": " + formatNumber(c.Weight)
		}
	}
	if weighted {
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
