package report

import (
	"math"
	"strconv"
	"strings"

	"deduplab/results"
)

const (
	second = 1000
	minute = 60 * second
	hour   = 60 * minute
)

// Short names for what pages write most.
var (
	count  = results.FormatCount
	millis = results.FormatSpan
	ratio  = results.FormatShare
	list   = results.FormatList
)

// unknown stands for a number that cannot be known, such as the swallowed events of a trace without labels.
const unknown = "unknown"

// known writes n in full, and a negative n as unknown.
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
