package report

import (
	_ "embed"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"deduplab/measure"
	"deduplab/results"
	"deduplab/stream"
)

//go:embed measure.tmpl
var measureTemplate string

var measureParsed = parse(measureTemplate)

// Measure writes what was measured of a trace as one page that needs nothing else.
func Measure(w io.Writer, r *measure.Report) error {
	p, err := newMeasurePage(r)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return write(w, measureParsed, p)
}

// measurePage is what the template reads.
type measurePage struct {
	shell
	Report   *measure.Report
	Files    string
	Question string
	Answer   string
	Found    bool // there are copies
	Stream   []fact
	Compared figure // of candidate keys, if there are several
	Keys     []measuredKey
	Disorder figure
	Idle     figure
	Ties     []fact
	TiesSee  string
}

// measuredKey is what the page says of one candidate key.
type measuredKey struct {
	Name     string
	Anchor   string
	Lead     string
	Plan     grid
	TooShort string
	Settings grid
	Figures  []figure
}

// measureWords are the words of the glossary that the page uses.
var measureWords = []string{"copy", "event time", "arrival", "disorder", "horizon", "watermark", "late", "late copy",
	"late first", "leak rate", "lost", "TTL"}

func newMeasurePage(r *measure.Report) (*measurePage, error) {
	first := &r.Keys[0]
	p := &measurePage{
		Report: r, Files: fileNames(r.Files), Found: first.Copies > 0, Stream: measureFacts(r),
		Compared: comparedFigure(r), Disorder: disorderFigure(r), Idle: idleFigure(r),
	}
	p.Question = fmt.Sprintf("How late do the duplicates of %s come, and what removes them?", isolated(p.Files))
	p.Answer = measureAnswer(r)
	p.Ties, p.TiesSee = tieFacts(r)
	figures := []figure{p.Compared}
	for i := range r.Keys {
		key := newMeasuredKey(r, i)
		p.Keys = append(p.Keys, key)
		figures = append(figures, key.Figures...)
	}
	var words []entry
	for _, word := range measureWords {
		words = append(words, term(word))
	}
	var err error
	p.shell, err = newShell(p.Files+": measured by deduplab", words, append(figures, p.Disorder, p.Idle)...)
	return p, err
}

// fileNames names the files without their folders, at most three of them.
func fileNames(files []string) string {
	var names []string
	for i, file := range files {
		if i == 3 {
			names = append(names, fmt.Sprintf("%d more", len(files)-i))
			break
		}
		names = append(names, filepath.Base(file))
	}
	return list(names)
}

// isolated keeps the direction of a name's script to itself within a sentence.
func isolated(name string) string { return "\u2068" + name + "\u2069" }

func keyName(key []string) string { return strings.Join(key, ", ") }

// advised finds a recommended setting.
func advised(all []measure.Advice, what string) measure.Advice {
	for _, a := range all {
		if a.What == what {
			return a
		}
	}
	return measure.Advice{}
}

func measureAnswer(r *measure.Report) string {
	k := &r.Keys[0]
	if k.Copies == 0 {
		return fmt.Sprintf("No row is a copy by %s: there is nothing to remove, and what is removed is lost.",
			isolated(keyName(k.Key)))
	}
	return fmt.Sprintf("%s of the rows are copies by %s. A TTL of %s in the stream, a look-back of %s at the sink.",
		ratio(float64(k.Copies)/float64(r.Rows)), isolated(keyName(k.Key)), advised(k.Advice, measure.TTLAdvice).Value,
		advised(k.Advice, measure.SinkAdvice).Value)
}

func measureFacts(r *measure.Report) []fact {
	k := &r.Keys[0]
	facts := []fact{
		{"rows", n(r.Rows), "in " + results.FormatNumber(int64(len(r.Partitions)), "partition"), ""},
		{"distinct", n(k.Distinct), "by " + keyName(k.Key), ""},
		{"copies", n(k.Copies), percent(int64(k.Copies), int64(r.Rows)) + " of the rows", "copy"},
		{"covered", r.Span.String(), r.From[:min(10, len(r.From))] + " to " + r.To[:min(10, len(r.To))], ""},
	}
	if k.Copies > 0 {
		facts = append(facts, fact{"delay p99.9", k.FromFirst.P999.String(), "max " + k.FromFirst.Max.String(), "horizon"})
	}
	if r.Columns.EventTime != "" {
		note := "by " + r.Disorder.Order
		if r.Disorder.OutOfOrder > 0 {
			note = "p99.9 by " + r.Disorder.Lateness.P999.String()
		}
		facts = append(facts, fact{"out of order", percent(int64(r.Disorder.OutOfOrder), int64(r.Disorder.Rows)), note,
			"disorder"})
	}
	if r.Skipped > 0 {
		facts = append(facts, fact{"bad rows", n(r.Skipped), "skipped", ""})
	}
	return facts
}

func tieFacts(r *measure.Report) (facts []fact, see string) {
	of := func(rows int) string { return percent(int64(rows), int64(r.Rows)) + " of the rows" }
	facts = []fact{{"same arrival", n(r.Ties.SameArrival), of(r.Ties.SameArrival), ""}}
	see = "Rows of one arrival come in an order that nothing guarantees when they are read again."
	if r.Columns.EventTime != "" {
		facts = append(facts,
			fact{"same event time", n(r.Ties.SameEvent), "as a row before, of any key", ""},
			fact{"no event time", n(r.NullEventTimes), of(r.NullEventTimes), ""},
			fact{"resolution", r.Ties.Resolution.String(), "of event times", ""})
		see += " An order by event time cannot choose between rows of one key and one event time, and a row without " +
			"event time fails a Flink job or is lost behind the watermark."
	}
	for i := range r.Keys {
		k := &r.Keys[i]
		by := "by " + keyName(k.Key)
		facts = append(facts, fact{"NULL keys", n(k.NullKeys), "rows, " + by, ""})
		if r.Columns.EventTime != "" {
			facts = append(facts, fact{"tied copies", n(k.SameEvent), "event time of an earlier row, " + by, ""})
		}
	}
	return facts, see
}

func newMeasuredKey(r *measure.Report, i int) measuredKey {
	k := &r.Keys[i]
	key := measuredKey{Name: keyName(k.Key), Anchor: fmt.Sprintf("key-%d", i+1), TooShort: k.Plan.TooShort}
	key.Lead = fmt.Sprintf("%s distinct, %s", n(k.Distinct), copies(k.Copies))
	if len(k.Plan.Tiers) > 0 {
		key.Plan = planGrid(k.Plan)
	}
	key.Settings = grid{Head: []string{"setting", "value", "why"}, Text: 3}
	for _, a := range append(slices.Clone(k.Advice), r.IdleTimeout) {
		if a.What == measure.SinkAdvice || a.What == measure.AuditAdvice {
			continue // they stand in the plan
		}
		key.Settings.Rows = append(key.Settings.Rows, []string{a.What, a.Value, a.Why})
	}
	id := fmt.Sprintf("-%d", i+1)
	if k.Copies > 0 {
		key.Figures = append(key.Figures, delayFigure(id, k))
		if len(k.ByOrigin) > 0 {
			key.Figures = append(key.Figures, originFigure(id, k))
		}
		key.Figures = append(key.Figures, idsFigure(id, r, k), ttlFigure(id, k))
	}
	if len(k.Losses) > 0 && r.Disorder.OutOfOrder > 0 {
		key.Figures = append(key.Figures, lossFigure(id, r, k))
	}
	return key
}

// planGrid is the table of the three tiers.
func planGrid(plan measure.Plan) grid {
	g := grid{Head: []string{"tier", "horizon", "copies left", "leak rate", "keys held", "bytes", "dates read", "why"},
		Text: 1}
	names := map[string]string{measure.StreamTier: "1 in the stream", measure.SinkTier: "2 at the sink",
		measure.AuditTier: "3 audit"}
	for _, t := range plan.Tiers {
		keys, bytes, dates := "", "", ""
		if t.Keys > 0 {
			keys, bytes = bound(t.AtLeast)+n(t.Keys), bound(t.AtLeast)+byteSize(t.Bytes)
		}
		if t.Dates > 0 {
			dates = n(t.Dates)
		}
		g.Rows = append(g.Rows, []string{names[t.Name], stream.FormatDuration(t.Horizon), n(t.Leaked), ratio(t.LeakRate),
			keys, bytes, dates, t.Why})
	}
	return g
}

// bound marks a lower bound.
func bound(atLeast bool) string {
	if atLeast {
		return ">="
	}
	return ""
}

// n writes a number with commas.
func n(i int) string { return count(int64(i)) }

func copies(i int) string {
	if i == 1 {
		return "1 copy"
	}
	return n(i) + " copies"
}
