package gen

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"deduplab/stream"
)

// cell is one cell of a trace as it is written.
type cell struct {
	text string
	null bool
}

// integer reads a cell that is written as integers are, without leading zeros or a plus sign.
func (c cell) integer() (int64, bool) {
	n, err := strconv.ParseInt(c.text, 10, 64)
	return n, err == nil && !c.null && strconv.FormatInt(n, 10) == c.text
}

// decimal reads a number written with a point, as an unscaled integer and its scale.
func (c cell) decimal() (unscaled int64, scale int, ok bool) {
	whole, fraction, pointed := strings.Cut(c.text, ".")
	n, err := strconv.ParseInt(whole+fraction, 10, 64)
	if !pointed || err != nil || fraction == "" {
		return 0, 0, false
	}
	return n, len(fraction), stream.FormatDecimal(n, len(fraction)) == c.text
}

// inferColumn finds the narrowest type in which all cells of a column read back as they are written.
func inferColumn(name string, cells []cell) (stream.Column, []stream.Value) {
	column := stream.Column{Name: name, Type: stream.String,
		Nullable: slices.ContainsFunc(cells, func(c cell) bool { return c.null })}
	values := make([]stream.Value, len(cells))
	if fill(values, cells, cell.integer) {
		column.Type = stream.Int
		return column, values
	}
	for _, c := range cells {
		if _, scale, ok := c.decimal(); ok {
			column.Scale = scale
			break
		}
	}
	decimal := func(c cell) (int64, bool) {
		n, scale, ok := c.decimal()
		return n, ok && scale == column.Scale
	}
	if fill(values, cells, decimal) {
		column.Type = stream.Decimal
		return column, values
	}
	column.Scale = 0
	for i, c := range cells {
		values[i] = stream.Value{Null: c.null, Text: c.text}
	}
	return column, values
}

// fill reads all cells as numbers and reports whether all that are not NULL are, and there are any.
func fill(values []stream.Value, cells []cell, read func(cell) (int64, bool)) bool {
	some := false
	for i, c := range cells {
		if c.null {
			values[i] = stream.Value{Null: true}
			continue
		}
		n, ok := read(c)
		if !ok {
			return false
		}
		values[i], some = stream.Value{Int: n}, true
	}
	return some
}

// moment is a time as read from a trace.
type moment struct {
	at   stream.Time
	null bool
}

const autoUnit = "auto"

// unitDigits is, by unit, how many decimal digits stand between it and the nanosecond.
var unitDigits = map[string]int{"s": 9, "ms": 6, "us": 3, "ns": 0}

// guessUnit tells the unit of a column by its largest number: seconds stay below 1e11 until the year 5138, and
// milliseconds are above it since 1973.
func guessUnit(cells []cell) string {
	longest := 0
	for _, c := range cells {
		whole, _, _ := strings.Cut(strings.TrimPrefix(c.text, "-"), ".")
		if isDigits(whole) {
			longest = max(longest, len(strings.TrimLeft(whole, "0")))
		}
	}
	switch {
	case longest <= 11:
		return "s"
	case longest <= 14:
		return "ms"
	case longest <= 17:
		return "us"
	}
	return "ns"
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// readMoment reads a time: a number in the unit, or RFC 3339. Fractions of a millisecond are rounded, halves away from
// 0; no floating point is involved.
func readMoment(c cell, unit string) (moment, error) {
	if c.null {
		return moment{null: true}, nil
	}
	digits, negative := strings.CutPrefix(c.text, "-")
	whole, fraction, pointed := strings.Cut(digits, ".")
	if !isDigits(whole) || pointed && !isDigits(fraction) {
		t, err := time.Parse(time.RFC3339Nano, c.text)
		if err != nil {
			return moment{}, fmt.Errorf("%q is not a time: neither a number nor RFC 3339", c.text)
		}
		return moment{at: stream.Time(t.Add(time.Millisecond / 2).UnixMilli())}, nil
	}
	// Shift the point to milliseconds: the whole part, and the first digit that is cut off decides the rounding.
	shift := unitDigits[unit] - 6
	all := whole + fraction + strings.Repeat("0", max(0, shift-len(fraction)))
	point := len(whole) + shift
	if point < 0 {
		all, point = strings.Repeat("0", -point)+all, 0
	}
	ms, err := strconv.ParseInt("0"+all[:point], 10, 64)
	if err != nil || ms >= math.MaxInt64/2 {
		return moment{}, fmt.Errorf("%q %s is too large for a time", c.text, unit)
	}
	if point < len(all) && all[point] >= '5' {
		ms++
	}
	if negative {
		ms = -ms
	}
	return moment{at: stream.Time(ms)}, nil
}
