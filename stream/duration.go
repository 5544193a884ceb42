package stream

import (
	"fmt"
	"strconv"
	"strings"
)

var units = []struct {
	name string
	ms   int64
}{{"w", 7 * 24 * 3600 * 1000}, {"d", 24 * 3600 * 1000}, {"h", 3600 * 1000}, {"m", 60 * 1000}, {"s", 1000}, {"ms", 1}}

// ParseDuration reads a span such as 2h, 90s, 1d12h, 40ms or 1.5h. Units are w, d, h, m, s and ms; a bare 0 needs none.
// The result is whole milliseconds and never negative.
func ParseDuration(s string) (Time, error) {
	if s == "0" {
		return 0, nil
	}
	fail := func() (Time, error) {
		if strings.HasPrefix(s, "-") {
			return 0, fmt.Errorf("duration %q is negative", s)
		}
		return 0, fmt.Errorf("%q is not a duration: write one like 2h, 90s, 1d12h or 40ms", s)
	}
	total, rest := int64(0), s
	for rest != "" {
		n := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if n <= 0 {
			return fail()
		}
		number := rest[:n]
		rest = rest[n:]
		n = strings.IndexFunc(rest, func(r rune) bool { return r == '.' || (r >= '0' && r <= '9') })
		if n < 0 {
			n = len(rest)
		}
		unit := int64(0)
		for _, u := range units {
			if u.name == rest[:n] {
				unit = u.ms
			}
		}
		rest = rest[n:]
		value, err := strconv.ParseFloat(number, 64)
		if unit == 0 || err != nil {
			return fail()
		}
		const longest = 1000 * 365 * 24 * 3600 * 1000
		ms := value * float64(unit)
		if ms > longest || total > longest {
			return 0, fmt.Errorf("duration %q is longer than a thousand years", s)
		}
		total += int64(ms + 0.5)
	}
	if s == "" {
		return fail()
	}
	return Time(total), nil
}

// FormatDuration is the shortest spelling that ParseDuration reads back, such as 1h30m; 0 is 0s.
func FormatDuration(t Time) string {
	if t < 0 {
		return "-" + FormatDuration(-t)
	}
	if t == 0 {
		return "0s"
	}
	var b strings.Builder
	rest := int64(t)
	for _, u := range units {
		if u.name == "w" && rest%u.ms != 0 {
			continue // 10d reads better than 1w3d
		}
		if n := rest / u.ms; n > 0 {
			b.WriteString(strconv.FormatInt(n, 10) + u.name)
			rest -= n * u.ms
		}
	}
	return b.String()
}
