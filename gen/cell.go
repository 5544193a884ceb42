package gen

import (
	"slices"
	"strconv"
	"strings"

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
