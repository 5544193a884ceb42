package results

import (
	"math"
	"strconv"
	"strings"

	"deduplab/stream"
)

const (
	second = 1000
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// FormatCount writes n in full with thousands separators: 1,234.
func FormatCount(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// FormatSum writes a sum in full with thousands separators, and with two digits after the point where it is not whole.
func FormatSum(x float64) string {
	sign, text := "", strconv.FormatFloat(math.Abs(x), 'f', 2, 64)
	text = strings.TrimSuffix(text, ".00")
	if x < 0 && text != "0" {
		sign = "-"
	}
	whole, cents, pointed := strings.Cut(text, ".")
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil {
		whole = FormatCount(n)
	}
	if pointed {
		whole += "." + cents
	}
	return sign + whole
}

// FormatSpan writes a span of time with the precision that its size deserves: 850 ms, 5.2 s, 41m, 1m30s, 2h58m, 3d4h.
func FormatSpan(ms int64) string {
	switch {
	case ms < 0:
		return "-" + FormatSpan(max(-ms, 0))
	case ms < second:
		return strconv.FormatInt(ms, 10) + " ms"
	case ms < minute-50:
		return strings.TrimSuffix(strconv.FormatFloat(float64(ms)/second, 'f', 1, 64), ".0") + " s"
	case ms < hour-second/2:
		return pair((ms+second/2)/second, 60, "m", "s")
	case ms < day-minute/2:
		return pair((ms+minute/2)/minute, 60, "h", "m")
	}
	return pair((ms+hour/2)/hour, 24, "d", "h")
}

// pair writes n as a count of two units, the second of which is left out when it is zero.
func pair(n, per int64, big, small string) string {
	s := strconv.FormatInt(n/per, 10) + big
	if n%per != 0 {
		s += strconv.FormatInt(n%per, 10) + small
	}
	return s
}

// FormatShare writes x in percent with two digits that mean something: 17 %, 1.4 %, 0.059 %.
func FormatShare(x float64) string {
	p := x * 100
	if math.Abs(p) >= 9.95 {
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	}
	return strconv.FormatFloat(p, 'g', 2, 64) + " %"
}

// FormatNumber writes a number of things: 1 row, 2 rows.
func FormatNumber(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return FormatCount(n) + " " + thing
}

// FormatList joins words as a sentence does: a, b and c.
func FormatList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// FormatMetric writes a value of a metric with its unit, as shortly as may be: in full where it would look like the
// bound that it misses.
func FormatMetric(metric string, value, bound float64) string {
	text := formatShort(metric, value)
	if value != bound && text == formatShort(metric, bound) {
		return formatExact(metric, value)
	}
	return text
}

func formatShort(metric string, value float64) string {
	switch UnitOf(metric) {
	case Millis:
		return FormatSpan(int64(value))
	case Share:
		return FormatShare(value)
	}
	return formatExact(metric, value)
}

func formatExact(metric string, value float64) string {
	switch UnitOf(metric) {
	case Millis:
		if value < second {
			return FormatSpan(int64(value))
		}
		return stream.FormatDuration(stream.Time(value))
	case Share:
		return strconv.FormatFloat(value*100, 'g', 6, 64) + " %"
	case Bytes:
		return FormatCount(int64(value)) + " bytes"
	case Sum:
		return FormatSum(value)
	}
	return FormatCount(int64(value))
}
