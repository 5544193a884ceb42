package trace

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"deduplab/stream"
)

// Auto is the unit of times that go by the largest number of their column.
const Auto = "auto"

// unitNanos is a unit in nanoseconds, 0 for what is none.
func unitNanos(unit string) int64 {
	switch unit {
	case "s":
		return 1e9
	case "ms":
		return 1e6
	case "us":
		return 1e3
	case "ns":
		return 1
	}
	return 0
}

// Moment is a time as it is written, until the unit of its column is known. The zero value is NULL.
type Moment struct {
	whole    int64 // seconds since 1970 if absolute, else of the column's unit
	fraction int32 // billionths of one
	kind     uint8
}

const (
	none uint8 = iota
	number
	absolute
)

// layouts are the timestamps that are understood, beside numbers: RFC 3339, and what SQL engines write. One without a
// zone is taken for UTC.
var layouts = []string{time.RFC3339Nano, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02T15:04:05",
	"2006-01-02 15:04:05 Z07:00", "2006-01-02 15:04:05-07", "2006-01-02 15:04:05 UTC"}

// ParseMoment reads a number of any unit, with a fraction or without, or a timestamp; an empty text is NULL.
func ParseMoment(text string) (Moment, error) {
	if text == "" {
		return Moment{}, nil
	}
	plain, negative := strings.CutPrefix(text, "-")
	whole, fraction, pointed := strings.Cut(plain, ".")
	if !isDigits(whole) || pointed && !isDigits(fraction) {
		return parseTimestamp(text)
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return Moment{}, fmt.Errorf("%s is too large for a time", quote(text))
	}
	m := Moment{whole: n, kind: number}
	for i := range 9 {
		m.fraction *= 10
		if i < len(fraction) {
			m.fraction += int32(fraction[i] - '0')
		}
	}
	if negative {
		m.whole, m.fraction = -m.whole, -m.fraction
	}
	return m, nil
}

func parseTimestamp(text string) (Moment, error) {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, text); err == nil {
			return absoluteMoment(t), nil
		}
	}
	return Moment{}, fmt.Errorf("%s is not a time: neither a number nor RFC 3339 nor an SQL timestamp", quote(text))
}

// quote cuts what is too long for a message.
func quote(text string) string {
	if len(text) > 60 {
		return strconv.Quote(text[:60]) + "..."
	}
	return strconv.Quote(text)
}

func absoluteMoment(t time.Time) Moment { return Moment{t.Unix(), int32(t.Nanosecond()), absolute} }

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// guessUnit tells the unit of a column from its largest number: seconds stay below 1e11 until the year 5138, and
// milliseconds are above it since 1973.
func guessUnit(largest int64) string {
	switch {
	case largest < 1e11:
		return "s"
	case largest < 1e14:
		return "ms"
	case largest < 1e17:
		return "us"
	}
	return "ns"
}

// Null reports whether the moment is NULL.
func (m Moment) Null() bool { return m.kind == none }

// Nanos is the moment in nanoseconds since 1970, from the year 1824 to 2116; what is finer is cut off.
func (m Moment) Nanos(unit string) (int64, error) {
	size := unitNanos(unit)
	if m.kind == absolute {
		size, unit = 1e9, "s"
	}
	if limit := math.MaxInt64/2/size - 1; m.whole > limit || m.whole < -limit {
		return 0, fmt.Errorf("%s is outside of the years 1824 to 2116", m.text(unit))
	}
	return m.whole*size + int64(m.fraction)/(1e9/size), nil
}

// Millis is the moment in milliseconds since 1970. Fractions are rounded, halves away from 0; of NULL it is NullTime.
func (m Moment) Millis(unit string) (stream.Time, error) {
	switch m.kind {
	case none:
		return stream.NullTime, nil
	case absolute:
		if m.whole > math.MaxInt64/4000 || m.whole < -math.MaxInt64/4000 {
			return 0, errTooLarge
		}
		return stream.Time(m.whole*1000 + (int64(m.fraction)+5e5)/1e6), nil
	}
	if m.whole == math.MinInt64 {
		return 0, errTooLarge
	}
	if m.whole < 0 || m.fraction < 0 {
		ms, err := Moment{-m.whole, -m.fraction, number}.Millis(unit)
		return -ms, err
	}
	size := unitNanos(unit)
	if size > 1e6 {
		if m.whole > math.MaxInt64/4000 {
			return 0, errTooLarge
		}
		return stream.Time(m.whole*1000 + (int64(m.fraction)+5e5)/1e6), nil
	}
	per := 1e6 / size // of the unit in a millisecond
	ms, rest := m.whole/per, m.whole%per
	if ms > math.MaxInt64/4 {
		return 0, errTooLarge
	}
	if 2*rest >= per || per == 1 && m.fraction >= 5e8 {
		ms++
	}
	return stream.Time(ms), nil
}

func (m Moment) text(unit string) string {
	if m.kind == absolute {
		return string(m.appendRFC3339(nil))
	}
	return fmt.Sprint(m.whole, " ", unit)
}

var errTooLarge = errors.New("the number is too large for a time in this unit")

func (m Moment) appendRFC3339(to []byte) []byte {
	return time.Unix(m.whole, int64(m.fraction)).UTC().AppendFormat(to, time.RFC3339Nano)
}
