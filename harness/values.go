package harness

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"deduplab/stream"
)

// Columns is a row by the names of its columns. A value is nil for NULL, text as [ParseValue] reads it, an int or int64
// (of a time: milliseconds), a [stream.Time] or a [stream.Value]. A column that is not named has its default: a text is
// "a", a number is 1, a time is the clock.
type Columns map[string]any

// record fills in the defaults.
func (c Columns) record(schema stream.Schema, now stream.Time) (stream.Record, error) {
	record := make(stream.Record, len(schema.Columns))
	named := 0
	for i, column := range schema.Columns {
		given, ok := c[column.Name]
		if !ok {
			record[i] = Default(column, now)
			continue
		}
		named++
		v, err := valueOf(given, column)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", column.Name, err)
		}
		record[i] = v
	}
	if named < len(c) {
		for name := range c {
			if schema.Index(name) < 0 {
				return nil, fmt.Errorf("there is no column %q%s", name, stream.DidYouMean(name, Names(schema.Columns)))
			}
		}
	}
	return record, nil
}

// Default is the value of a column that a row does not name.
func Default(column stream.Column, now stream.Time) stream.Value {
	switch column.Type {
	case stream.String:
		return stream.Value{Text: "a"}
	case stream.Timestamp:
		return stream.Value{Int: int64(now)}
	case stream.Decimal:
		one, _ := strconv.ParseInt("1"+strings.Repeat("0", column.Scale), 10, 64)
		return stream.Value{Int: one}
	}
	return stream.Value{Int: 1}
}

func valueOf(given any, column stream.Column) (stream.Value, error) {
	switch v := given.(type) {
	case nil:
		return stream.Value{Null: true}, nil
	case stream.Value:
		return v, nil
	case string:
		return ParseValue(v, column)
	case stream.Time:
		if column.Type == stream.Timestamp {
			return stream.Value{Int: int64(v)}, nil
		}
	case int:
		return valueOf(int64(v), column)
	case int64:
		if column.Type == stream.Timestamp {
			return stream.Value{Int: v}, nil
		}
		return ParseValue(strconv.FormatInt(v, 10), column)
	}
	return stream.Value{}, fmt.Errorf("%v does not fit its type", given)
}

var decimalPattern = regexp.MustCompile(`^DECIMAL\((\d{1,2}), ?(\d{1,2})\)$`)

// ParseType reads the SQL type of a column: STRING, INT, BIGINT, DECIMAL(10, 2), TIMESTAMP(3) or TIMESTAMP_LTZ(3).
func ParseType(column, sql string) (stream.Column, error) {
	c := stream.Column{Name: column}
	m := decimalPattern.FindStringSubmatch(sql)
	switch {
	case sql == "STRING":
		c.Type = stream.String
	case sql == "INT" || sql == "BIGINT":
		c.Type = stream.Int
	case m != nil:
		precision, _ := strconv.Atoi(m[1])
		c.Type = stream.Decimal
		c.Scale, _ = strconv.Atoi(m[2])
		if precision < 1 || precision > 38 || c.Scale > precision {
			return c, fmt.Errorf("column %s: there is no %s: a DECIMAL has 1 to 38 digits, at most all after the point",
				column, sql)
		}
		if c.Scale > maxDigits {
			return c, fmt.Errorf("column %s: %s: the lab holds up to %d digits after the point", column, sql, maxDigits)
		}
	case strings.HasPrefix(sql, "TIMESTAMP"):
		c.Type = stream.Timestamp
	default:
		return c, fmt.Errorf("column %s: unknown type %s: there are STRING, INT, BIGINT, DECIMAL(10, 2) and "+
			"TIMESTAMP_LTZ(3)", column, sql)
	}
	return c, nil
}

// maxDigits is how many digits a number may have that 64 bits hold, whichever they are.
const maxDigits = 18

// Limit returns the largest number that a type which [ParseType] reads can hold, as a [stream.Value] holds it. The
// smallest is -max, and one less for INT and BIGINT. Types that are no numbers have none.
func Limit(sql string) (limit int64, ok bool) {
	switch m := decimalPattern.FindStringSubmatch(sql); {
	case sql == "INT":
		return math.MaxInt32, true
	case m != nil:
		precision, _ := strconv.Atoi(m[1])
		if precision > maxDigits {
			return math.MaxInt64, true
		}
		limit, _ = strconv.ParseInt(strings.Repeat("9", precision), 10, 64)
		return limit, true
	}
	return math.MaxInt64, sql == "BIGINT"
}

// Names lists the names of columns.
func Names(columns []stream.Column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return names
}

// ParseValue reads a value that is not NULL: a text as it is, a number, a time as [ParseTime] reads it.
func ParseValue(text string, column stream.Column) (stream.Value, error) {
	switch column.Type {
	case stream.String:
		return stream.Value{Text: text}, nil
	case stream.Timestamp:
		t, err := ParseTime(text)
		return stream.Value{Int: int64(t)}, err
	}
	whole, fraction, _ := strings.Cut(text, ".")
	if strings.Trim(fraction, "0123456789") != "" {
		return stream.Value{}, fmt.Errorf("%q is not a number", text)
	}
	if len(fraction) > column.Scale {
		return stream.Value{}, fmt.Errorf("%s has more than %d digits after the point", text, column.Scale)
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", column.Scale-len(fraction)), 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return stream.Value{}, fmt.Errorf("%s is too large", text)
	}
	if err != nil {
		return stream.Value{}, fmt.Errorf("%q is not a number", text)
	}
	return stream.Value{Int: n}, nil
}

// plainText is text that YAML reads as itself between braces.
var plainText = regexp.MustCompile(`^[A-Za-z0-9_/][A-Za-z0-9_./-]*$`)

// FormatValue spells a value so that ParseValue reads it back; NULL is null. Texts are quoted where YAML asks for it.
func FormatValue(v stream.Value, column stream.Column) string {
	switch {
	case v.Null:
		return "null"
	case column.Type == stream.Timestamp:
		return FormatTime(stream.Time(v.Int))
	case column.Type == stream.Decimal:
		return stream.FormatDecimal(v.Int, column.Scale)
	case column.Type == stream.Int:
		return strconv.FormatInt(v.Int, 10)
	case plainText.MatchString(v.Text) && !strings.EqualFold(v.Text, "null"):
		return v.Text
	}
	if strings.ContainsFunc(v.Text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(v.Text) // a line break must not be one; YAML reads the escapes of Go
	}
	return "'" + strings.ReplaceAll(v.Text, "'", "''") + "'"
}

// year is how far from the epoch a time is still written as a span, ages how far it is written as a date.
const (
	year = stream.Time(365 * 24 * time.Hour / time.Millisecond)
	ages = 1900 * year
)

// momentLayouts are the ways to write a moment, in UTC unless it says otherwise.
var momentLayouts = []string{"2006-01-02T15:04:05.999Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02"}

// ParseTime reads a moment: a span since the epoch such as 10s, 1h30m or -5s, or a date such as 2026-01-01T00:00Z.
func ParseTime(text string) (stream.Time, error) {
	for _, layout := range momentLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return stream.Time(t.UnixMilli()), nil
		}
	}
	if ms, ok := strings.CutSuffix(text, "ms"); ok {
		if t, err := strconv.ParseInt(ms, 10, 64); err == nil {
			return stream.Time(t), nil
		}
	}
	span, negative := strings.CutPrefix(text, "-")
	t, err := stream.ParseDuration(span)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time: write a span since 1970 such as 10s or -5s, or 2026-01-01T00:00Z", text)
	}
	if negative {
		t = -t
	}
	return t, nil
}

// FormatTime spells a moment so that ParseTime reads it back.
func FormatTime(t stream.Time) string {
	switch {
	case t > -year && t < year && t%1000 == 0:
		return stream.FormatDuration(t)
	case t > -year && t < year, t < -ages, t > ages:
		return strconv.FormatInt(int64(t), 10) + "ms" // 9999ms reads better than 9s999ms
	}
	return t.String()
}
