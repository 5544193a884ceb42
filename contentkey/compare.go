package contentkey

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"
)

// Field is one field of a row, as it was given and as it is hashed.
type Field struct {
	Name  string
	Type  Type
	Given string // as written; of no meaning if Value is NULL
	Value Value
}

// Row is the fields of a key in their order.
type Row []Field

// Values are the parts of the key.
func (r Row) Values() []Value {
	values := make([]Value, len(r))
	for i, f := range r {
		values[i] = f.Value
	}
	return values
}

// Difference is a field that is not the same in two rows, and why.
type Difference struct {
	Field string
	Why   string
}

// Compare lists the fields of two rows that differ in the key, and those that do not although they were given
// differently. The rows must have the same fields in the same order.
func Compare(a, b Row) []Difference {
	var all []Difference
	for i := range a {
		if why := difference(a[i], b[i]); why != "" {
			all = append(all, Difference{a[i].Name, why})
		}
	}
	return all
}

// difference says how two fields differ, or nothing.
func difference(a, b Field) string {
	x, y := a.Value, b.Value
	switch {
	case x.Null && y.Null:
		return ""
	case x.Null || y.Null:
		other := x.Text + y.Text
		switch {
		case other == "":
			return "differs: NULL is not the empty string"
		case other == Sentinel:
			return "collides: the value is the sentinel that stands for NULL"
		case strings.EqualFold(other, "null"):
			return "differs: NULL is not the text " + strconv.Quote(other)
		}
		return "differs: one is NULL"
	case x.Text == y.Text:
		if a.Given != b.Given {
			return "same: both are cast to " + strconv.Quote(Visible(x.Text))
		}
		return ""
	case norm.NFC.String(x.Text) == norm.NFC.String(y.Text):
		return "differs: the same letters, composed (NFC) in one and decomposed (NFD) in the other; normalise first"
	case strings.TrimSpace(x.Text) == strings.TrimSpace(y.Text):
		return "differs: blanks at an end; trim first"
	case strings.EqualFold(x.Text, y.Text):
		return "differs: upper and lower case"
	case sameNumber(x.Text, y.Text):
		return fmt.Sprintf("differs: one number written in two ways, %s and %s; cast both to one type first",
			Visible(x.Text), Visible(y.Text))
	}
	return "differs"
}

func sameNumber(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}

// Traps lists what can go wrong with the key of a row, given the zone of the session that makes it.
func Traps(row Row, session *time.Location) []Difference {
	var all []Difference
	add := func(f Field, format string, args ...any) {
		all = append(all, Difference{f.Name, fmt.Sprintf(format, args...)})
	}
	for _, f := range row {
		switch {
		case f.Value.Null:
		case strings.Contains(f.Value.Text, Separator):
			add(f, "holds the separator: another split of the same text between fields has the same key")
		case f.Value.Text == Sentinel:
			add(f, "is the sentinel: a NULL in its place has the same key")
		case f.Type == Timestamp:
			at, err := parseTimestamp(f.Given)
			if err != nil {
				continue
			}
			add(f, "is written in the session's zone, %s: a session in another zone makes another key", session)
			for _, other := range []time.Duration{time.Hour, -time.Hour} {
				if FormatTimestamp(at.Add(other).In(session)) == f.Value.Text {
					add(f, "stands twice on the clock of that night: the instant %s has the same key",
						at.Add(other).UTC().Format(time.RFC3339Nano))
				}
			}
		case f.Type == Double:
			add(f, "is a double: where a bigint column writes 1 this one writes 1.0, another key; 0.0 and -0.0 differ")
		}
	}
	return all
}
