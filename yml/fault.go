package yml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a file, and where.
type Fault struct {
	File         string
	Line, Column int // from 1; the column counts characters
	Message      string
	Excerpt      string // the line and a caret below the place
}

// Error is the fault as an editor understands it, file:line:column first, with the excerpt below.
func (f Fault) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s\n%s", f.File, f.Line, f.Column, f.Message, f.Excerpt)
}

// Error is all that is wrong with a file, in its order.
type Error struct {
	Faults []Fault
}

// Error prints all faults.
func (e *Error) Error() string {
	texts := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		texts[i] = f.Error()
	}
	return strings.Join(texts, "\n")
}

// Position is a place in a file; line and column count from 1.
type Position struct{ Line, Column int }

// Add notes a fault.
func (r *Reader) Add(at Position, format string, args ...any) {
	at.Line = min(max(at.Line, 1), len(r.lines))
	at.Column = min(max(at.Column, 1), len([]rune(r.lines[at.Line-1]))+1)
	r.faults = append(r.faults, Fault{
		File: r.File, Line: at.Line, Column: at.Column,
		Message: fmt.Sprintf(format, args...),
		Excerpt: excerpt(r.lines[at.Line-1], at),
	})
}

// Faults is the number of faults so far.
func (r *Reader) Faults() int { return len(r.faults) }

// Faulty reports whether a fault has been found in a node or below it.
func (r *Reader) Faulty(n *Node) bool {
	if n.Kind == Broken {
		return true
	}
	for _, fault := range r.faults {
		if at := (Position{fault.Line, fault.Column}); at == n.At || at == n.NameAt {
			return true
		}
	}
	return slices.ContainsFunc(n.Items, r.Faulty)
}

// Err returns all faults sorted by position as an [*Error], or nil.
func (r *Reader) Err() error {
	if len(r.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(r.faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	return &Error{slices.Compact(r.faults)}
}

// excerpt shows a line with a caret below the column. Of a long line it shows what is around the column.
func excerpt(line string, at Position) string {
	const before, width = 60, 100
	text, caret := []rune(line), at.Column-1
	if from := caret - before; len(text) > width && from > 0 {
		text, caret = append([]rune("..."), text[from:]...), before+3
	}
	if len(text) > width {
		text = append(text[:width:width], []rune("...")...)
	}
	for i, r := range text {
		if r < ' ' {
			text[i] = ' ' // a tab would shift the caret
		}
	}
	return fmt.Sprintf("%5d | %s\n      | %s^", at.Line, strings.TrimRight(string(text), " "), strings.Repeat(" ", caret))
}
