package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"deduplab/compare"
	"deduplab/results"
)

// CompareTerminal writes a comparison as text: what was judged otherwise first, then what differs by strategy. Without
// all, only the headline metrics are listed.
func CompareTerminal(w io.Writer, c *compare.Comparison, all bool) error {
	var b strings.Builder
	for _, column := range c.Columns {
		b.WriteString(column.Name + gutter + runName(column.Run) + "\n")
	}
	for _, warning := range c.Warnings {
		b.WriteString("\n" + wrap("! ", warning, lineWidth))
	}
	t := table{}
	for _, s := range c.Settings {
		t.add(append([]string{"  " + s.Name}, dashed(s.Cells)...)...)
	}
	if len(c.Settings) > 0 {
		b.WriteString("\nset otherwise\n" + t.String())
	}
	b.WriteString(flips(c))
	for _, s := range c.Strategies {
		b.WriteString(strategyLines(c, s, all))
	}
	if len(c.Same) > 0 {
		b.WriteString("\n" + wrap("", "no difference: "+list(c.Same), lineWidth))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// runName says which run a column is.
func runName(r *results.Run) string {
	name := fmt.Sprintf("%s, seed %s, %s rows", r.Scenario, seedsOf(r), count(r.Workload.Rows))
	if r.Partial {
		name += ", partial"
	}
	return name
}

// dashed shows what is not there as a dash.
func dashed(cells []string) []string {
	out := slices.Clone(cells)
	for i, cell := range out {
		if cell == "" {
			out[i] = "–"
		}
	}
	return out
}

// flips lists the requirements that are judged otherwise.
func flips(c *compare.Comparison) string {
	if len(c.Flips) == 0 {
		return "\nno verdict flipped\n"
	}
	t := table{}
	for _, f := range c.Flips {
		cells := []string{"  " + f.Strategy, requirement(f)}
		for _, v := range f.Cells {
			cells = append(cells, verdictText(v))
		}
		t.add(cells...)
	}
	text := "\nverdicts that flipped\n" + t.String()
	for _, f := range c.Flips {
		for i, v := range f.Cells {
			if v.Verdict == results.Fail && v.Evidence != "" {
				text += wrap(fmt.Sprintf("  %s, %s: ", f.Strategy, c.Columns[i].Name), v.Evidence, lineWidth)
			}
		}
	}
	return text
}

// requirement names a requirement with its bound, where that is the same for all.
func requirement(f compare.Flip) string {
	bound := ""
	for _, v := range f.Cells {
		switch {
		case v.Verdict == "":
		case bound == "":
			bound = v.Bound
		case bound != v.Bound:
			return f.Requirement
		}
	}
	return strings.TrimSpace(f.Requirement + " " + bound)
}

func verdictText(v compare.Verdict) string {
	if v.Verdict == "" {
		return "–"
	}
	return strings.TrimSpace(mark(v.Verdict) + " " + v.Verdict + " " + v.Value)
}

// strategyLines lists what differs of one strategy.
func strategyLines(c *compare.Comparison, s compare.Strategy, all bool) string {
	text := "\n" + s.ID + "\n"
	for i, in := range s.In {
		if !in {
			text += "  not in " + c.Columns[i].Name + "\n"
		}
	}
	t := table{right: map[int]bool{}}
	for i := range c.Columns {
		t.right[2*i+1] = true
	}
	for _, x := range s.Texts {
		cells := []string{"  " + x.Name}
		for i, cell := range dashed(x.Cells) {
			if i > 0 {
				cells = append(cells, cell, "")
			} else {
				cells = append(cells, cell)
			}
		}
		t.add(cells...)
	}
	more := 0
	for _, m := range s.Metrics {
		if !all && !m.Headline {
			more++
			continue
		}
		cells := []string{"  " + m.Name}
		for i, cell := range m.Cells {
			if cells = append(cells, cellText(m.Name, cell)); i > 0 {
				cells = append(cells, deltaText(cell))
			}
		}
		t.add(cells...)
	}
	text += t.String()
	if more > 0 {
		text += fmt.Sprintf("  and %s that differ: --all lists them\n", results.FormatNumber(int64(more), "more metric"))
	}
	return text
}

// cellText is the value of a metric, with the spread of a sample.
func cellText(metric string, c compare.Cell) string {
	if !c.Known {
		return "–"
	}
	short := func(v float64) string { return results.FormatMetric(metric, v, v) }
	if c.N > 1 && c.Low != c.High {
		return fmt.Sprintf("%s [%s, %s]", short(c.Center), short(c.Low), short(c.High))
	}
	return short(c.Center)
}

// deltaText is the change, with the test behind it.
func deltaText(c compare.Cell) string {
	if c.N > 1 && c.P > 0 {
		return fmt.Sprintf("%s (p=%.3f n=%d)", c.Delta, c.P, c.N)
	}
	return c.Delta
}

// CompareMarkdown writes a comparison for a pull request.
func CompareMarkdown(w io.Writer, c *compare.Comparison) error {
	var b strings.Builder
	row := func(cells ...string) {
		for i := range cells {
			cells[i] = markdownText(cells[i])
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	head := func(cells ...string) {
		row(cells...)
		b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
	}
	var names []string
	for _, column := range c.Columns {
		names = append(names, column.Name)
		fmt.Fprintf(&b, "- **%s**: %s\n", markdownText(column.Name), markdownText(runName(column.Run)))
	}
	for _, warning := range c.Warnings {
		fmt.Fprintf(&b, "\n> **Warning** %s\n", markdownText(warning))
	}
	if len(c.Settings) > 0 {
		b.WriteString("\n### Set otherwise\n\n")
		head(append([]string{"setting"}, names...)...)
		for _, s := range c.Settings {
			row(append([]string{s.Name}, dashed(s.Cells)...)...)
		}
	}
	if len(c.Flips) == 0 {
		b.WriteString("\nNo verdict flipped.\n")
	} else {
		b.WriteString("\n### Verdicts that flipped\n\n")
		head(append([]string{"strategy", "requirement"}, names...)...)
		for _, f := range c.Flips {
			cells := []string{f.Strategy, requirement(f)}
			for _, v := range f.Cells {
				cells = append(cells, verdictText(v))
			}
			row(cells...)
		}
	}
	if len(c.Strategies) > 0 {
		b.WriteString("\n### What changed\n\n")
		cells := []string{"strategy", "metric", names[0]}
		for _, name := range names[1:] {
			cells = append(cells, name, "change")
		}
		head(cells...)
		for _, s := range c.Strategies {
			markdownStrategy(row, c, s)
		}
	}
	if len(c.Same) > 0 {
		fmt.Fprintf(&b, "\nNo difference: %s.\n", markdownText(list(c.Same)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func markdownStrategy(row func(...string), c *compare.Comparison, s compare.Strategy) {
	for i, in := range s.In {
		if !in {
			row(append([]string{s.ID, "not in " + c.Columns[i].Name}, make([]string, 2*len(c.Columns)-1)...)...)
		}
	}
	line := func(name string, n int, cell func(int) (string, string)) {
		cells := []string{s.ID, name}
		for i := range n {
			value, delta := cell(i)
			if cells = append(cells, value); i > 0 {
				cells = append(cells, delta)
			}
		}
		row(cells...)
	}
	for _, x := range s.Texts {
		line(x.Name, len(x.Cells), func(i int) (string, string) { return dashed(x.Cells)[i], "" })
	}
	for _, m := range s.Metrics {
		if m.Headline {
			line(m.Name, len(m.Cells), func(i int) (string, string) {
				return cellText(m.Name, m.Cells[i]), deltaText(m.Cells[i])
			})
		}
	}
}

// markdownText writes text so that Markdown shows it as it is, in a cell of a table too.
func markdownText(s string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(s), " ") {
		switch {
		case strings.ContainsRune("\\`*_[]|#~", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
