package contentkey

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Type is the type of a column, which decides how a value is cast to text.
type Type struct {
	name  string
	scale int // of a decimal: digits after the point
}

// The types that need no parameter.
var (
	String    = Type{name: "string"}
	Bigint    = Type{name: "bigint"}
	Double    = Type{name: "double"}
	Timestamp = Type{name: "timestamp"}
	Boolean   = Type{name: "boolean"}
)

// Decimal is the type of numbers with so many digits after the point.
func Decimal(scale int) Type { return Type{"decimal", scale} }

// String is the name as [ParseType] reads it; a decimal's precision plays no role in a key and is left out.
func (t Type) String() string {
	if t.name == "decimal" {
		return fmt.Sprintf("decimal(%d)", t.scale)
	}
	return t.name
}

var decimalType = regexp.MustCompile(`^decimal\((?:[0-9]{1,2},)?([0-9]{1,2})\)$`)

// ParseType reads string, bigint, double, timestamp, boolean, decimal(4) or decimal(20,4).
func ParseType(s string) (Type, error) {
	for _, t := range []Type{String, Bigint, Double, Timestamp, Boolean} {
		if s == t.name {
			return t, nil
		}
	}
	if m := decimalType.FindStringSubmatch(s); m != nil {
		scale, _ := strconv.Atoi(m[1])
		return Decimal(scale), nil
	}
	return Type{}, fmt.Errorf("there is no type %q (there are: string, bigint, double, decimal(20,4), timestamp, boolean)",
		s)
}

// Cast is the text that Spark's cast to string makes of a value of the type: numbers as Java writes them, decimals with
// all digits of their scale, timestamps in the session's zone. The value is given as text; a timestamp as RFC 3339.
func (t Type) Cast(text string, session *time.Location) (Value, error) {
	fail := func(example string) (Value, error) {
		return Value{}, fmt.Errorf("%q is not a %s: write one like %s", text, t.name, example)
	}
	switch t.name {
	case "bigint":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fail("42")
		}
		return Value{Text: strconv.FormatInt(n, 10)}, nil
	case "double":
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fail("1.5")
		}
		return Value{Text: formatDouble(f)}, nil
	case "decimal":
		r, ok := new(big.Rat).SetString(text)
		if !ok || strings.ContainsAny(text, "/xX_") {
			return fail("1.50")
		}
		fixed := r.FloatString(t.scale)
		if strings.Trim(fixed, "-0.") == "" {
			fixed = strings.TrimPrefix(fixed, "-")
		}
		return Value{Text: fixed}, nil
	case "timestamp":
		at, err := parseTimestamp(text)
		if err != nil {
			return fail("2024-03-10T12:00:00Z")
		}
		return Value{Text: FormatTimestamp(at.In(session))}, nil
	case "boolean":
		if lower := strings.ToLower(text); lower == "true" || lower == "false" {
			return Value{Text: lower}, nil
		}
		return fail("true")
	}
	return Value{Text: text}, nil
}

// formatDouble is Java's Double.toString: at least one digit after the point, an exponent from 1E7 and below 1E-3, and
// the fewest digits that read back. Java before 19 writes a digit too many for some numbers, such as 2.0E-3 raised to
// high powers; none of the recorded ones is among them.
func formatDouble(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	if a := math.Abs(f); a == 0 || 1e-3 <= a && a < 1e7 {
		s := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	s := strconv.FormatFloat(f, 'E', -1, 64)
	if !strings.Contains(s, ".") {
		s = strconv.FormatFloat(f, 'E', 1, 64) // of two digits the nearest: 4.9E-324, not 5.0E-324
	}
	mantissa, exponent, _ := strings.Cut(s, "E")
	n, _ := strconv.Atoi(exponent)
	return mantissa + "E" + strconv.Itoa(n)
}

var yearFirst = regexp.MustCompile(`^\+?([0-9]{4,6})(-.*)$`)

// parseTimestamp reads RFC 3339 with years up to 999999, to the microsecond.
func parseTimestamp(text string) (time.Time, error) {
	m := yearFirst.FindStringSubmatch(text)
	if m == nil {
		return time.Time{}, fmt.Errorf("no year")
	}
	year, _ := strconv.Atoi(m[1])
	cycle := 2000 + year%400 // the calendar repeats after 400 years
	at, err := time.Parse(time.RFC3339Nano, strconv.Itoa(cycle)+m[2])
	if err != nil {
		return time.Time{}, err
	}
	return at.UTC().Truncate(time.Microsecond).AddDate(year-cycle, 0, 0), nil
}

// FormatTimestamp is the text that Spark's cast to string makes of a moment, in the zone of t.
func FormatTimestamp(t time.Time) string {
	plus := ""
	if t.Year() > 9999 {
		plus = "+"
	}
	return plus + t.Format("2006-01-02 15:04:05.999999")
}

// visible renders one character.
func visible(r rune) string {
	switch {
	case r == 0x1f:
		return "␟"
	case r == 0:
		return "␀"
	case unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.M, unicode.Zl, unicode.Zp):
		return fmt.Sprintf(`\u%04x`, r)
	}
	return string(r)
}
