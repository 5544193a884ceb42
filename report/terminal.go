// Package report renders a run for people: a table for the terminal and one HTML page. Both are pure functions of
// [results.Run]: the same run gives the same bytes.
package report

import (
	"fmt"
	"io"
	"strings"

	"deduplab/results"
)

// lineWidth bounds the prose of the terminal report.
const lineWidth = 120

// Terminal writes the run as text: what the stream was, one row for each strategy with the numbers that decide, best
// first, footnotes that say why a requirement is missed and where to look next, and the recommendation.
func Terminal(w io.Writer, run *results.Run) error {
	var b strings.Builder
	b.WriteString(headline(run) + "\n\n")

	order := ranked(run)
	notes := footnotes{numbers: map[string]int{}}
	t := table{right: map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true}}
	t.add("strategy", "dups left", "lost", "wait p99", "commit p99", "keys live/held", "updates",
		"same table under", "meets")
	for _, s := range ran(order) {
		marker := notes.add(s.ID, missed(s))
		t.add(s.ID, count(s.Leaked), lost(s), p99(s.Latency.Wait), p99(s.Latency.Commit),
			short(s.State.KeysLivePeak)+" / "+short(s.State.KeysHeldPeak), count(s.Updates),
			sameTable(s.Determinism), meets(s)+marker)
	}
	if len(order) == 0 {
		b.WriteString("no strategy was run\n")
	} else {
		b.WriteString(t.String())
	}
	for _, s := range order {
		if s.Refused != "" {
			b.WriteString(wrap(s.ID+gutter, "refused: "+s.Refused, lineWidth))
		}
	}
	if !run.Workload.Labelled && len(order) > 0 {
		b.WriteString("\n" + wrap("", unlabelled, lineWidth))
	}
	b.WriteString(notes.String())
	if len(run.Summary) > 0 {
		b.WriteString("\n" + wrap("", strings.Join(run.Summary, " "), lineWidth))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// unlabelled says what a trace without labels cannot show.
const unlabelled = "This trace has no labels, so the key is the truth: events wrongly taken for duplicates " +
	"(swallowed) are unknown, and lost is a lower bound."

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
	met, of := score(s)
	return fmt.Sprintf("%d/%d", met, of)
}

// sameTable says in how many replays the final table was the same, cause by cause; of many causes only those that
// differ are named.
func sameTable(causes []results.Determinism) string {
	var all, differ []string
	same, replays := 0, 0
	for _, d := range causes {
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

// missed are the lines of a strategy's footnote: every requirement that it does not meet with the number, the causes
// and the evidence, then what the measurement brought up, then where to look next.
func missed(s *results.Strategy) []string {
	var lines []string
	for _, v := range s.Verdicts {
		if v.Verdict == results.Pass || v.Verdict == results.NotApplicable {
			continue
		}
		verb := "misses"
		if v.Verdict != results.Fail {
			verb = v.Verdict + " on"
		}
		line := fmt.Sprintf("%s %s %s: %s", verb, v.Requirement, v.Bound, v.Value)
		if causes := causesOf(s, v.Requirement); len(causes) > 0 {
			line += " (" + causeText(causes) + ")"
		}
		if v.Evidence != "" {
			line += "; " + v.Evidence
		}
		lines = append(lines, line)
	}
	return append(lines, s.Findings...)
}

func causeText(causes []cause) string {
	var parts []string
	for _, c := range causes {
		parts = append(parts, c.Name+" "+count(c.N))
	}
	return strings.Join(parts, ", ")
}

// footnotes are numbered in the order of the table; strategies with the same lines share one.
type footnotes struct {
	numbers map[string]int
	notes   []footnote
}

type footnote struct {
	ids   []string
	lines []string
}

// add returns the marker of a strategy's footnote, which is empty when there is nothing to say.
func (f *footnotes) add(id string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	text := strings.Join(lines, "\n")
	n, found := f.numbers[text]
	if !found {
		f.notes = append(f.notes, footnote{lines: lines})
		n = len(f.notes)
		f.numbers[text] = n
	}
	f.notes[n-1].ids = append(f.notes[n-1].ids, id)
	return fmt.Sprintf("   [%d]", n)
}

// String writes the footnotes, each under the names of its strategies.
func (f *footnotes) String() string {
	var b strings.Builder
	for i, note := range f.notes {
		marker := fmt.Sprintf("[%d] ", i+1)
		fmt.Fprintf(&b, "\n%s%s   see report.html#%s\n", marker, list(note.ids), anchor(note.ids[0]))
		for _, line := range note.lines {
			b.WriteString(wrap(strings.Repeat(" ", len(marker))+"- ", line, lineWidth))
		}
	}
	return b.String()
}
