// Package report renders a run for people: a table for the terminal and one HTML page. Both are pure functions of
// [results.Run]: the same run gives the same bytes.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"deduplab/results"
)

// lineWidth bounds the prose of the terminal report, and noteLines the length of a footnote.
const (
	lineWidth = 146
	noteLines = 4
)

// amountColumn is where the sums of the results stand, where a scenario asks for them.
const amountColumn = 3

// Terminal writes the run as text: what the stream was, one row for each strategy with the numbers that decide, best
// first, what each key makes of the stream, footnotes that say why a requirement is missed and where to look next, and
// the recommendation.
func Terminal(w io.Writer, run *results.Run) error {
	var b strings.Builder
	b.WriteString(headline(run) + "\n\n")
	if run.Partial {
		b.WriteString(wrap("", partial, lineWidth) + "\n")
	}

	order := run.Ranked()
	notes := footnotes{numbers: map[string]int{}}
	t := table{right: map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true}}
	head := []string{"strategy", "dups left", "lost", "wait p99", "commit p99", "keys live", "held", "updates",
		"same table under", "meets"}
	if hasAmounts(run) {
		head = slices.Insert(head, amountColumn, "amount")
		t.right[len(t.right)+1] = true
	}
	t.add(head...)
	var refused []*results.Strategy
	for _, s := range order {
		if s.Refused != "" {
			refused = append(refused, s)
			continue
		}
		cells := []string{s.ID, count(s.Leaked), lost(s), p99(s.Latency.Wait), p99(s.Latency.Commit),
			short(s.State.KeysLivePeak), short(s.State.KeysHeldPeak), count(s.Updates),
			sameTable(s.Determinism), meets(s) + notes.add(s)}
		if hasAmounts(run) {
			cells = slices.Insert(cells, amountColumn, off(s.Amount))
		}
		t.add(cells...)
	}
	switch {
	case len(order) == 0:
		b.WriteString("no strategy was run\n")
	case len(refused) < len(order):
		b.WriteString(t.String())
	}
	b.WriteString(microBatches(order))
	b.WriteString(tiers(order))
	b.WriteString(behind(run, order))
	b.WriteString(refusals(refused))
	b.WriteString(skipped(run.Workload))
	b.WriteString(keyTable(run))
	if !run.Workload.Labelled && len(order) > 0 {
		b.WriteString("\n" + wrap("", unlabelled, lineWidth))
	}
	b.WriteString(notes.String())
	for i, sentence := range run.Summary {
		if i == 0 {
			b.WriteByte('\n')
		}
		b.WriteString(wrap("", sentence, lineWidth))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// microBatches is a table of what the queries of Spark did; empty where there are none.
func microBatches(order []*results.Strategy) string {
	numbers := map[int]bool{}
	for column := range 9 {
		numbers[column+1] = true
	}
	t := table{right: numbers}
	t.add("micro-batches", "run", "no data", "again", "numRowsTotal", "at the end", "per hour", "removed", "dropped late",
		"dropped copies")
	for _, s := range order {
		if b := s.Spark; b != nil {
			t.add(s.ID, count(b.Batches), count(b.NoDataBatches), count(b.Reruns), count(b.RowsTotal.Peak),
				count(b.RowsTotal.End), count(b.RowsTotal.PerHour), count(b.RowsRemoved), count(b.DroppedByWatermark),
				count(b.DroppedDuplicates))
		}
	}
	if len(t.rows) == 1 {
		return ""
	}
	return "\n" + t.String()
}

// unlabelled says what a trace without labels cannot show.
const unlabelled = "This trace has no labels, so the key is the truth: events wrongly taken for duplicates " +
	"(swallowed) are unknown, and lost is a lower bound."

// skipped says how many rows of a trace were left out, and shows the first.
func skipped(w results.Workload) string {
	if w.Skipped == 0 {
		return ""
	}
	text := fmt.Sprintf("%s of the trace could not be read and left out:", results.FormatNumber(w.Skipped, "row"))
	var b strings.Builder
	b.WriteString("\n" + wrap("", text, lineWidth))
	const shown = 3
	for _, row := range w.BadRows[:min(shown, len(w.BadRows))] {
		b.WriteString(wrap("  ", shorten(row, 2*lineWidth), lineWidth))
	}
	if w.Skipped > shown {
		b.WriteString("  and more, see workload.bad_rows in results.json\n")
	}
	return b.String()
}

// partial says what the numbers of an interrupted run are worth.
const partial = "This run was interrupted: its numbers are those of the rows that had come by then, and replays that had " +
	"not ended are missing. What passes here may still fail with the rest."

// headline is the run in one line.
func headline(run *results.Run) string {
	w := run.Workload
	return strings.Join([]string{
		run.Scenario,
		fmt.Sprintf("seed %d", run.Seed),
		millis(w.SpanMS) + " of virtual time",
		fmt.Sprintf("%s rows = %s events + %s copies (%s)",
			count(w.Rows), count(w.Distinct), count(w.Copies), percent(w.Copies, w.Rows)),
		fmt.Sprintf("horizon p99.9 %s, max %s", millis(w.HorizonMS.P999), millis(w.HorizonMS.Max)),
	}, gutter)
}

// lost is the number of events lost, a lower bound where swallowed ones are unknown.
func lost(s *results.Strategy) string {
	if s.Fates.Swallowed < 0 {
		return "≥ " + count(s.Lost)
	}
	return count(s.Lost)
}

func p99(q results.Quantiles) string {
	if q.N == 0 {
		return "-"
	}
	return millis(q.P99)
}

func meets(s *results.Strategy) string {
	met, of := s.Score()
	return fmt.Sprintf("%d/%d", met, of)
}

// sameTable says in how many replays the final table was the same, cause by cause; of many causes only those that
// differ are named.
func sameTable(causes []results.Determinism) string {
	var all, differ []string
	same, replays := 0, 0
	for _, d := range causes {
		if d.Replays == 0 { // by construction
			continue
		}
		text := fmt.Sprintf("%s %d/%d", d.Cause, d.SameTable, d.Replays)
		all = append(all, text)
		if d.SameTable < d.Replays {
			differ = append(differ, text)
		}
		same += d.SameTable
		replays += d.Replays
	}
	switch {
	case len(all) == 0:
		return "-"
	case len(all) <= 2:
		return strings.Join(all, ", ")
	case len(differ) == 0:
		return fmt.Sprintf("%d causes %d/%d", len(all), same, replays)
	case len(differ) > 2:
		return fmt.Sprintf("%s, +%d more", strings.Join(differ[:2], ", "), len(differ)-2)
	}
	return strings.Join(differ, ", ")
}

// refusals names the strategies that the planner does not accept, under their reason.
func refusals(refused []*results.Strategy) string {
	var reasons []string
	names := map[string][]string{}
	for _, s := range refused {
		if names[s.Refused] == nil {
			reasons = append(reasons, s.Refused)
		}
		names[s.Refused] = append(names[s.Refused], s.ID)
	}
	var b strings.Builder
	for i, reason := range reasons {
		if i == 0 {
			b.WriteByte('\n')
		}
		b.WriteString(wrap("refused   ", list(names[reason])+": "+reason, lineWidth))
	}
	return b.String()
}

// misses says in one line which requirements a strategy does not meet, each with its number and the causes; an empty
// line that it meets them all. The example is the evidence of the first of them that has any.
func misses(s *results.Strategy) (line, example string) {
	var parts []string
	for _, v := range s.Verdicts {
		if v.Verdict == results.Pass || v.Verdict == results.NotApplicable {
			continue
		}
		part := v.Requirement + " "
		if !strings.HasPrefix(v.Value, v.Bound) {
			part += v.Bound + ": "
		}
		part += v.Value
		if causes := byCount(s.CausesOf(v.Requirement)); len(causes) > 0 {
			part += " (" + causeText(causes) + ")"
		}
		parts = append(parts, part)
		if example == "" {
			example = v.Evidence
		}
	}
	if len(parts) > 0 {
		line = "misses " + strings.Join(parts, "; ")
	}
	return line, example
}

func causeText(causes []cause) string {
	var parts []string
	for _, c := range causes {
		parts = append(parts, c.Name+" "+count(c.N))
	}
	return strings.Join(parts, ", ")
}

// footnotes are numbered in the order of the table. Strategies that miss the same by the same numbers, and have the
// same findings, share one.
type footnotes struct {
	numbers map[string]int
	notes   []footnote
}

type footnote struct {
	ids     []string
	texts   []string // what is missed, then the findings
	example string
}

// add returns the marker of a strategy's footnote, which is empty when there is nothing to say.
func (f *footnotes) add(s *results.Strategy) string {
	var texts []string
	line, example := misses(s)
	if line != "" {
		texts = append(texts, line)
	}
	texts = append(texts, s.Findings...)
	if len(texts) == 0 {
		return ""
	}
	key := strings.Join(texts, "\n")
	n, found := f.numbers[key]
	if !found {
		f.notes = append(f.notes, footnote{texts: texts, example: example})
		n = len(f.notes)
		f.numbers[key] = n
	}
	f.notes[n-1].ids = append(f.notes[n-1].ids, s.ID)
	return fmt.Sprintf("   [%d]", n)
}

// String writes the footnotes, each under the names of its strategies and with where to look next: what does not fit
// into a short footnote stands there, and so does all of an example.
func (f *footnotes) String() string {
	var b strings.Builder
	for i, note := range f.notes {
		marker := fmt.Sprintf("[%d] ", i+1)
		indent := strings.Repeat(" ", len(marker))
		texts := note.texts
		if note.example != "" {
			texts = append(texts, shorten(note.example, lineWidth-len(indent)-2))
		}
		var body strings.Builder
		lines, more := 0, 0
		for _, text := range texts {
			wrapped := wrap(indent+"- ", text, lineWidth)
			if n := strings.Count(wrapped, "\n"); lines == 0 || lines+n <= noteLines {
				body.WriteString(wrapped)
				lines += n
			} else {
				more++
			}
		}
		see := list(note.ids) + ", see report.html#" + anchor(note.ids[0])
		if more > 0 {
			see += fmt.Sprintf(" for %d more", more)
		}
		b.WriteString("\n" + wrap(marker, see, lineWidth) + body.String())
	}
	return b.String()
}

// shorten cuts text to a width.
func shorten(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}
