package report

import (
	"strings"
	"unicode/utf8"
)

// gutter separates the columns of a table.
const gutter = "   "

// table lays out text in columns: the columns named right are aligned to the right, all others to the left.
type table struct {
	right map[int]bool
	rows  [][]string
}

// add appends a row.
func (t *table) add(cells ...string) {
	t.rows = append(t.rows, cells)
}

// String lays the rows out, without blanks at the ends of lines.
func (t *table) String() string {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString(gutter)
			}
			blanks := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.right[i] {
				line.WriteString(blanks + cell)
			} else {
				line.WriteString(cell + blanks)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// wrap breaks text into lines of at most width characters. The first line follows prefix; the others are indented to
// stand under the text. A word that is longer than a line stands alone on one.
func wrap(prefix, text string, width int) string {
	indent := utf8.RuneCountInString(prefix)
	column := indent
	var b strings.Builder
	b.WriteString(prefix)
	for i, word := range strings.Fields(text) {
		length := utf8.RuneCountInString(word)
		if i > 0 && column+1+length > width {
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		} else if i > 0 {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += length
	}
	return b.String() + "\n"
}
