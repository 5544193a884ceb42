package report

import (
	"math"
	"strconv"
	"strings"
)

const (
	second = 1000
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// unknown stands for a number that cannot be known, such as the swallowed events of a trace without labels.
const unknown = "unknown"

// count writes n in full with thousands separators: 1,234.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}

// known writes n as count does, and a negative n as unknown.
func known(n int64) string {
	if n < 0 {
		return unknown
	}
	return count(n)
}

// short writes n with three digits at most: 1,234 stays, 72,345 is 72 k.
func short(n int64) string {
	if n < 10_000 {
		return count(n)
	}
	return scaled(float64(n), 1000, []string{"", "k", "M", "G", "T", "P", "E"})
}

// byteSize writes a number of bytes in binary units: 4.2 MiB.
func byteSize(n int64) string {
	return scaled(float64(n), 1024, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"})
}

// scaled divides x by base until it is below it, and writes it with the unit that belongs to it.
func scaled(x, base float64, units []string) string {
	i := 0
	for i < len(units)-1 && math.Round(x) >= base {
		x /= base
		i++
	}
	decimals := 0
	if i > 0 && x < 9.95 {
		decimals = 1
	}
	return strconv.FormatFloat(x, 'f', decimals, 64) + " " + units[i]
}

// millis writes a span of time with the precision that its size deserves: 850 ms, 5.2 s, 41m, 1m30s, 2h58m, 3d4h.
func millis(ms int64) string {
	switch {
	case ms < 0:
		return "-" + millis(-ms)
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

// offset writes a moment as the time since the start of the scenario, to the millisecond: 3h04m12.345s.
func offset(ms int64) string {
	if ms < 0 {
		return "-" + offset(-ms)
	}
	pad := func(n int64, width int) string {
		s := strconv.FormatInt(n, 10)
		return strings.Repeat("0", max(0, width-len(s))) + s
	}
	s := pad(ms%minute/second, 2) + "." + pad(ms%second, 3) + "s"
	return strconv.FormatInt(ms/hour, 10) + "h" + pad(ms%hour/minute, 2) + "m" + s
}

// percent writes part of whole in percent with two digits that mean something: 17 %, 1.4 %, 0.059 %.
func percent(part, whole int64) string {
	if whole == 0 {
		return "0 %"
	}
	return ratio(float64(part) / float64(whole))
}

// ratio writes x in percent, as percent does.
func ratio(x float64) string {
	p := x * 100
	switch {
	case p == 0:
		return "0 %"
	case math.Abs(p) >= 9.95:
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	}
	return strconv.FormatFloat(p, 'g', 2, 64) + " %"
}

// plural writes n and its noun: 1 row, 2 rows.
func plural(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return count(n) + " " + noun
}

// list joins words as a sentence does: a, b and c.
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
