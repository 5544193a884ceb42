package strategies

import (
	"fmt"
	"slices"
	"strings"

	"deduplab/stream"
)

// How long a key is remembered depends on what kind of event it is of: the horizon per key of "Spark Streaming
// Deduplication, in depth".

var (
	horizonParam = Param{Name: "horizon", Kind: Spans, Default: "1h",
		About: "how long a key is remembered, counted in event time: one span, or one for each kind such as " +
			"{payment: 7d, click: 1h, \"*\": 1h}, where * is every other kind"}

	kindParam = Param{Name: "kind", Kind: OptionalColumn, Default: "none",
		About: "the column that tells the kind; none: all rows are of one"}
)

// AnyKind stands for the kinds that have no span of their own.
const AnyKind = "*"

// Span is a span with a name. One may be negative, as Spark finds out only when the query runs.
type Span struct {
	Name string
	Span stream.Time
}

// parseSpans reads "1h", or "payment: 7d, click: 1h, *: 1h".
func parseSpans(text string) ([]Span, string) {
	if !strings.Contains(text, ":") {
		text = AnyKind + ":" + text
	}
	var spans []Span
	for part := range strings.SplitSeq(text, ",") {
		colon := strings.LastIndex(part, ":")
		name, value := strings.TrimSpace(part[:max(colon, 0)]), strings.TrimSpace(part[colon+1:])
		if name == "" {
			return nil, fmt.Sprintf("%q has no kind: write {payment: 7d, click: 1h, \"*\": 1h}", strings.TrimSpace(part))
		}
		positive, negative := strings.CutPrefix(value, "-")
		span, err := stream.ParseDuration(positive)
		if err != nil {
			return nil, fmt.Sprintf("%s: %v", name, err)
		}
		if negative {
			span = -span
		}
		if slices.ContainsFunc(spans, func(s Span) bool { return s.Name == name }) {
			return nil, fmt.Sprintf("%s stands here a second time", name)
		}
		spans = append(spans, Span{name, span})
	}
	return spans, ""
}

// formatSpans is the spelling that parseSpans reads back.
func formatSpans(spans []Span) string {
	if len(spans) == 1 && spans[0].Name == AnyKind {
		return stream.FormatDuration(spans[0].Span)
	}
	parts := make([]string, len(spans))
	for i, s := range spans {
		parts[i] = s.Name + ": " + stream.FormatDuration(s.Span)
	}
	return strings.Join(parts, ", ")
}

// checkHorizon is the Check of strategies with a horizon by kind.
func checkHorizon(args Args, schema stream.Schema) string {
	spans, kind := args.Spans("horizon"), args.Text("kind")
	switch {
	case !slices.ContainsFunc(spans, func(s Span) bool { return s.Name == AnyKind }):
		return "horizon needs \"*\" too, for every other kind: horizon: {payment: 7d, \"*\": 1h}"
	case len(spans) > 1 && kind == None:
		return "horizon differs by kind, so kind must name the column that tells it: kind: type"
	}
	return ""
}

// horizon tells how long the key of a row is remembered.
type horizon struct {
	column int
	schema stream.Schema
	kinds  map[string]stream.Time
	any    stream.Time
}

func (a Args) horizon(schema stream.Schema) horizon {
	h := horizon{column: schema.Index(a.Text("kind")), schema: schema, kinds: map[string]stream.Time{}}
	for _, s := range a.Spans("horizon") {
		if s.Name == AnyKind {
			h.any = s.Span
		} else {
			h.kinds[s.Name] = s.Span
		}
	}
	return h
}

// of returns the horizon by row.
func (h horizon) of(records stream.Records) func(*stream.Row) stream.Time {
	if h.column < 0 || len(h.kinds) == 0 {
		return func(*stream.Row) stream.Time { return h.any }
	}
	column := h.schema.Columns[h.column]
	return func(row *stream.Row) stream.Time {
		v := records.Record(row.Tag)[h.column]
		kind := v.Text
		if column.Type != stream.String {
			kind = v.Format(column)
		}
		if span, ok := h.kinds[kind]; ok && !v.Null {
			return span
		}
		return h.any
	}
}
