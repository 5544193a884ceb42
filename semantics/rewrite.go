package semantics

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"deduplab/yml"
)

// correction is what makes one expectation true.
type correction struct {
	node  *yml.Node // what is written now; nil: nothing
	step  *yml.Node // where rows go that are not expected yet, as the field
	field string
	text  []string
	rows  bool // text is a list of rows, else one bare value
}

// Rewrite writes what was sent and held into the expectations of the tests that selected picks, and returns the file as
// it then is, with the number of expectations that changed. All else stays as it is written; comments inside a list of
// rows that is replaced move above it. Of many rows only the number is written. What a rewrite cannot mend, such as a
// job that fails, is left alone.
func Rewrite(path string, src []byte, selected func(*Test) bool) ([]byte, int, error) {
	file, err := Load(path, src)
	if err != nil {
		return nil, 0, err
	}
	var corrections []correction
	for _, t := range file.Tests {
		if selected(t) {
			_, c := t.run()
			corrections = append(corrections, c...)
		}
	}
	if len(corrections) == 0 {
		return src, 0, nil
	}
	text := newText(src)
	var edits []edit
	for _, c := range corrections {
		edits = append(edits, text.edit(c))
		if c.rows && c.node != nil {
			edits = append(edits, text.above(c.node)...)
		}
	}
	changed := text.apply(edits)
	if _, err := Load(path, changed); err != nil {
		return nil, 0, fmt.Errorf("%s: its layout is beyond a rewrite; write its steps in the plain way: %w", path, err)
	}
	return changed, len(corrections), nil
}

// text is a file by lines.
type text struct {
	lines [][]rune
	mark  string // a byte order mark
	end   string // of a line
}

func newText(src []byte) *text {
	t := &text{end: "\n"}
	if rest, ok := bytes.CutPrefix(src, []byte("\uFEFF")); ok {
		src, t.mark = rest, "\uFEFF"
	}
	if bytes.Contains(src, []byte("\r\n")) {
		t.end = "\r\n"
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(string(src), "\r\n", "\n"), "\n") {
		t.lines = append(t.lines, []rune(line))
	}
	return t
}

// edit replaces what stands between two places.
type edit struct {
	from, to yml.Position
	text     string
}

const (
	widest    = 120 // how long a line may become
	maxListed = 50  // of more rows only the number is written
)

// edit turns a correction into an edit.
func (t *text) edit(c correction) edit {
	switch {
	case !c.rows:
		return edit{c.node.At, t.endOf(c.node), c.text[0]}
	case c.node != nil && t.at(c.step.At) == '{':
		return edit{c.node.NameAt, t.endOf(c.node), inLine(c)}
	case c.node != nil:
		if c.node.Kind == yml.List && len(c.node.Items) > 0 && t.at(c.node.At) != '[' {
			return edit{c.node.NameAt, t.endOf(c.node), block(c, c.node.At.Column-1)}
		}
		return edit{c.node.NameAt, t.endOf(c.node), spread(c, c.step.At.Column-1)}
	case t.at(c.step.At) == '{':
		before := t.endOf(c.step)
		before.Column--
		return edit{before, before, ", " + inLine(c)}
	}
	after := t.endOf(c.step)
	after.Column = len(t.lines[after.Line-1]) + 1
	indent := c.step.At.Column - 1
	return edit{after, after, "\n" + strings.Repeat(" ", indent) + spread(c, indent)}
}

// above keeps the comments inside a list that is replaced: they move above it.
func (t *text) above(n *yml.Node) []edit {
	var comments string
	indent := t.indent(n.NameAt.Line)
	items, end := n.Items, t.endOf(n)
	for p := n.NameAt; p.Line < end.Line || p.Line == end.Line && p.Column < end.Column; p = t.next(p) {
		if len(items) > 0 && p == items[0].At {
			p, items = t.endOf(items[0]), items[1:]
			p.Column-- // next goes on
		} else if t.at(p) == '#' {
			rest := t.lines[p.Line-1][p.Column-1:]
			comments += indent + strings.TrimRight(string(rest), " \t") + "\n"
			p.Column += len(rest)
		}
	}
	if comments == "" {
		return nil
	}
	start := yml.Position{Line: n.NameAt.Line, Column: 1}
	return []edit{{start, start, comments}}
}

// inLine writes a list of rows in one line.
func inLine(c correction) string {
	if len(c.text) > maxListed {
		return fmt.Sprintf("%s: %d", c.field, len(c.text))
	}
	rows := make([]string, len(c.text))
	for i, row := range c.text {
		rows[i] = strconv.Quote(row)
	}
	return c.field + ": [" + strings.Join(rows, ", ") + "]"
}

// spread writes a list of rows in one line if it is short, else a row a line.
func spread(c correction, indent int) string {
	line := inLine(c)
	if len(c.text) > maxListed || len(c.text) < 2 && indent+utf8.RuneCountInString(line) <= widest {
		return line
	}
	return block(c, indent+2)
}

// block writes a list of rows a row a line, their dashes behind so many spaces.
func block(c correction, indent int) string {
	if len(c.text) > maxListed || len(c.text) == 0 {
		return inLine(c)
	}
	lines := c.field + ":"
	for _, row := range c.text {
		lines += "\n" + strings.Repeat(" ", indent) + "- " + strconv.Quote(row) // YAML reads the escapes of Go
	}
	return lines
}

// apply makes the edits, from the last to the first.
func (t *text) apply(edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(b.from.Line, a.from.Line), cmp.Compare(b.from.Column, a.from.Column))
	})
	for _, e := range edits {
		first, last := t.lines[e.from.Line-1], t.lines[e.to.Line-1]
		whole := string(first[:e.from.Column-1]) + e.text + string(last[e.to.Column-1:])
		var lines [][]rune
		for line := range strings.SplitSeq(whole, "\n") {
			lines = append(lines, []rune(line))
		}
		t.lines = slices.Replace(t.lines, e.from.Line-1, e.to.Line, lines...)
	}
	lines := make([]string, len(t.lines))
	for i, line := range t.lines {
		lines[i] = string(line)
	}
	return []byte(t.mark + strings.Join(lines, t.end))
}

// indent is the blanks that a line begins with.
func (t *text) indent(line int) string {
	s := string(t.lines[line-1])
	return s[:len(s)-len(strings.TrimLeft(s, " "))]
}

// at is the character at a place, 0 at the end of a line.
func (t *text) at(p yml.Position) rune {
	if line := t.lines[p.Line-1]; p.Column <= len(line) {
		return line[p.Column-1]
	}
	return 0
}

// endOf is the place behind a node.
func (t *text) endOf(n *yml.Node) yml.Position {
	first := t.at(n.At)
	switch {
	case n.Kind == yml.Empty && n.At == n.NameAt:
		return yml.Position{Line: n.At.Line, Column: n.At.Column + utf8.RuneCountInString(n.Name) + 1}
	case n.Kind == yml.Scalar && (first == '|' || first == '>'):
		return t.endOfBlock(n.At)
	case n.Kind == yml.Scalar && n.Quoted:
		return t.endOfQuoted(n.At, first)
	case n.Kind == yml.Scalar:
		return t.endOfPlain(n)
	case n.Kind == yml.Empty, len(n.Items) == 0 && first != '[' && first != '{':
		return yml.Position{Line: n.At.Line, Column: n.At.Column + utf8.RuneCountInString(n.Text)}
	case first == '[' || first == '{':
		return t.endOfBrackets(n.At)
	}
	return t.endOf(n.Items[len(n.Items)-1])
}

// endOfPlain is the place behind a text without quotes, which may go on in the next line.
func (t *text) endOfPlain(n *yml.Node) yml.Position {
	end := n.At
	for _, r := range n.Text {
		p := end
		for c := t.at(p); c != r && (c == ' ' || c == '\t' || c == 0 && p.Line < len(t.lines)); c = t.at(p) {
			p = t.next(p)
		}
		if t.at(p) == r {
			end = t.next(p)
		}
	}
	return end
}

// endOfBlock is the place behind a text in the block style, which goes on while lines are indented.
func (t *text) endOfBlock(at yml.Position) yml.Position {
	indent := func(line int) int { return len(t.indent(line)) }
	last := at.Line
	for line := last + 1; line <= len(t.lines); line++ {
		switch blank := strings.TrimSpace(string(t.lines[line-1])) == ""; {
		case blank:
		case indent(line) > indent(at.Line):
			last = line
		default:
			return yml.Position{Line: last, Column: len(t.lines[last-1]) + 1}
		}
	}
	return yml.Position{Line: last, Column: len(t.lines[last-1]) + 1}
}

// endOfQuoted is the place behind the quote that ends a text.
func (t *text) endOfQuoted(p yml.Position, quote rune) yml.Position {
	for p.Column++; ; p = t.next(p) {
		switch c := t.at(p); {
		case c == '\\' && quote == '"':
			p.Column++
		case c == quote && quote == '\'' && t.at(yml.Position{Line: p.Line, Column: p.Column + 1}) == quote:
			p.Column++
		case c == quote, p.Line == len(t.lines) && c == 0:
			p.Column++
			return p
		}
	}
}

// endOfBrackets is the place behind the bracket that closes the one at p.
func (t *text) endOfBrackets(p yml.Position) yml.Position {
	depth := 0
	for before := rune(0); ; {
		c := t.at(p)
		switch {
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				p.Column++
				return p
			}
		case (c == '"' || c == '\'') && strings.ContainsRune(" [{,:\t\x00", before):
			p = t.endOfQuoted(p, c)
			before = c
			continue
		case c == '#' && (before == ' ' || before == 0):
			p.Column = len(t.lines[p.Line-1]) + 1
		case c == 0 && p.Line == len(t.lines):
			return p
		}
		before = c
		p = t.next(p)
	}
}

// next is the place after p.
func (t *text) next(p yml.Position) yml.Position {
	if p.Column > len(t.lines[p.Line-1]) && p.Line < len(t.lines) {
		return yml.Position{Line: p.Line + 1, Column: 1}
	}
	p.Column++
	return p
}
