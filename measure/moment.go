package measure

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// nanos is a moment since the Unix epoch, or a span, in nanoseconds.
type nanos = int64

// moment is a time as it is written, until the unit of its column is known.
type moment struct {
	whole    int64 // seconds if absolute, else of the column's unit
	fraction int32 // billionths of one, with the sign of whole
	kind     uint8
}

const (
	null uint8 = iota
	number
	absolute // RFC 3339
)

// autoUnit means that the largest number of a column tells its unit.
const autoUnit = "auto"

// unitNanos is a unit in nanoseconds.
var unitNanos = map[string]int64{"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1}

// parseMoment reads a number of any unit, or RFC 3339; an empty cell is NULL. It also returns how many digits the
// number has before its point, without leading zeros, by which the unit is told.
func parseMoment(text string) (m moment, digits int, err error) {
	if text == "" {
		return moment{}, 0, nil
	}
	plain, negative := strings.CutPrefix(text, "-")
	whole, fraction, pointed := strings.Cut(plain, ".")
	if !isDigits(whole) || pointed && !isDigits(fraction) {
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return moment{}, 0, fmt.Errorf("%q is not a time: neither a number nor RFC 3339", text)
		}
		return moment{t.Unix(), int32(t.Nanosecond()), absolute}, 0, nil
	}
	m.kind = number
	if m.whole, err = strconv.ParseInt(whole, 10, 64); err != nil {
		return moment{}, 0, fmt.Errorf("%q is too large for a time", text)
	}
	for i := range 9 {
		m.fraction *= 10
		if i < len(fraction) {
			m.fraction += int32(fraction[i] - '0')
		}
	}
	if negative {
		m.whole, m.fraction = -m.whole, -m.fraction
	}
	return m, len(strings.TrimLeft(whole, "0")), nil
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// guessUnit tells the unit of a column from the most digits that one of its numbers has before the point: seconds stay
// below 1e11 until the year 5138, and milliseconds are above it since 1973.
func guessUnit(digits int) string {
	switch {
	case digits <= 11:
		return "s"
	case digits <= 14:
		return "ms"
	case digits <= 17:
		return "us"
	}
	return "ns"
}

// nanos is the moment since the epoch; what is finer is cut off.
func (m moment) nanos(unit string) (nanos, error) {
	size := unitNanos[unit]
	if m.kind == absolute {
		size = 1e9
	}
	if limit := math.MaxInt64/2/size - 1; m.whole > limit || m.whole < -limit {
		return 0, fmt.Errorf("%d %s is outside of the years 1824 to 2116", m.whole, unit)
	}
	return m.whole*size + int64(m.fraction)/(1e9/size), nil
}

// millis rounds to whole milliseconds, halves away from 0, as the lab's clock does.
func millis(n nanos) int64 {
	if n < 0 {
		return -millis(-n)
	}
	return (n + 5e5) / 1e6
}
