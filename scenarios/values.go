package scenarios

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"deduplab/gen"
	"deduplab/stream"
	"deduplab/yml"
)

// This file reads single values, text to value, and writes them back: for each parse function whose value can be
// printed in more than one way there is the format function that Inspect uses.

// longest bounds every span of a workload and a job.
const longest = stream.Time(4 * 365 * 24 * time.Hour / time.Millisecond)

// span reads a duration.
func span(s string) (stream.Time, error) {
	d, err := stream.ParseDuration(s)
	if err == nil && d > longest {
		return 0, fmt.Errorf("duration %q is longer than 4 years", s)
	}
	return d, err
}

// positive reads a duration above 0.
func positive(s string) (stream.Time, error) {
	d, err := span(s)
	if err == nil && d == 0 {
		return 0, fmt.Errorf("duration %q must be longer than 0", s)
	}
	return d, err
}

// momentLayouts are the ways to write a moment, in UTC unless it says otherwise.
var momentLayouts = []string{"2006-01-02T15:04:05.999Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02"}

func moment(s string) (stream.Time, error) {
	for _, layout := range momentLayouts {
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		if t.Year() < 1971 || t.Year() > 2999 {
			return 0, fmt.Errorf("%q must lie between 1971 and 2999", s)
		}
		return stream.Time(t.UnixMilli()), nil
	}
	return 0, fmt.Errorf("%q is not a moment: write one like 2026-01-01T00:00Z", s)
}

// share reads a part of a whole: 0.4% or 0.004.
func share(s string) (float64, error) {
	v, err := fraction(s)
	if err == nil && v > 1 {
		return 0, fmt.Errorf("%q is more than 100%%", s)
	}
	return v, err
}

// fraction reads a number of at least 0, or a percentage.
func fraction(s string) (float64, error) {
	number, percent := strings.CutSuffix(s, "%")
	exponent := ""
	if percent {
		exponent = "e-2"
	}
	v, err := decimal(number, exponent)
	if err != nil {
		return 0, fmt.Errorf("%q is not a share: write one like 0.4%% or 0.004", s)
	}
	return v, nil
}

func formatShare(v float64) string {
	percent := formatNumber(math.Round(v*1e12)/1e10) + "%"
	if back, err := share(percent); err == nil && back == v {
		return percent
	}
	return formatNumber(v)
}

// plainNumber is a number without sign or exponent.
var plainNumber = regexp.MustCompile(`^[0-9][0-9_]*(\.[0-9]+)?$`)

// decimal is the number nearest to what is written, with an exponent or none.
func decimal(s, exponent string) (float64, error) {
	if !plainNumber.MatchString(s) {
		return 0, errors.New("not a number")
	}
	return strconv.ParseFloat(strings.ReplaceAll(s, "_", "")+exponent, 64)
}

// number reads a number of at least 0.
func number(s string) (float64, error) {
	v, err := decimal(s, "")
	if err != nil {
		return 0, fmt.Errorf("%q is not a number such as 1.5", s)
	}
	return v, nil
}

func formatNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// rate reads a number of rows per time, such as 10/s, and returns it per second.
func rate(s string) (float64, error) {
	number, unit, _ := strings.Cut(s, "/")
	v, err := decimal(number, "")
	seconds := map[string]float64{"s": 1, "m": 60, "h": 3600, "d": 86400}[unit]
	if err != nil || seconds == 0 {
		return 0, fmt.Errorf("%q is not a rate: write one like 10/s, 100/m, 5/h or 2/d", s)
	}
	if v == 0 {
		return 0, fmt.Errorf("rate %q must be more than 0", s)
	}
	return v / seconds, nil
}

// ParseRate and ParseShare read a rate, such as 10/s, and a share, such as 0.4%, as they are written in scenarios.
func ParseRate(s string) (float64, error)  { return rate(s) }
func ParseShare(s string) (float64, error) { return share(s) }

// IsScale reports whether a stream can be so many times its size.
func IsScale(times float64) bool { return times > 0 && times <= 1e6 }

// factor reads how many times something is to be.
func factor(s string) (float64, error) {
	v, err := number(s)
	if err == nil && !IsScale(v) {
		err = fmt.Errorf("%q must be above 0 and at most a million", s)
	}
	return v, err
}

func formatRate(v float64) string { return formatNumber(v) + "/s" }

func seed(s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a seed: a whole number from 0 to 18446744073709551615", s)
	}
	return v, nil
}

// slug reads a name that can stand in a path: of a scenario, or the id of a strategy.
func slug(s string) (string, error) { return named(s, slugPattern, "lower-case letters, digits and -") }

// column reads the name of a column, which stands in SQL.
func column(s string) (string, error) { return named(s, columnPattern, "letters, digits and _") }

var (
	slugPattern   = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,99}$`)
	columnPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)
)

func named(s string, pattern *regexp.Regexp, of string) (string, error) {
	if !pattern.MatchString(s) {
		return "", fmt.Errorf("%q is not a name of %s", s, of)
	}
	return s, nil
}

// integer reads a whole number, hundredths a number with at most two digits after its point, in hundredths.
func integer(s string) (int64, error)    { return scaled(s, 0) }
func hundredths(s string) (int64, error) { return scaled(s, 2) }

func scaled(s string, scale int) (int64, error) {
	whole, part, point := strings.Cut(strings.ReplaceAll(s, "_", ""), ".")
	digits := strings.TrimLeft(part, "0123456789")
	if point && (part == "" || digits != "") {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	if len(part) > scale {
		return 0, fmt.Errorf("%s has more than %d digits after the point", s, scale)
	}
	v, err := strconv.ParseInt(whole+part+strings.Repeat("0", scale-len(part)), 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%s is too large", s)
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return v, nil
}

// whereOps lists the comparisons, the longer ones first so that they are found first.
var whereOps = []string{"<=", ">=", "==", "!=", "<", ">"}

// where reads a comparison of a numeric field with a constant, such as "price < 100".
func where(fields []gen.Field) func(string) (*gen.Where, error) {
	return func(s string) (*gen.Where, error) {
		words := strings.Fields(s)
		if len(words) != 3 || !slices.Contains(whereOps, words[1]) {
			return nil, fmt.Errorf("%q is not a condition: write one like \"price < 100\", with %s", s,
				strings.Join(whereOps, ", "))
		}
		i := slices.Index(fieldNames(fields), words[0])
		if i < 0 {
			return nil, noColumn(words[0], fieldNames(fields))
		}
		w := &gen.Where{Field: words[0], Op: words[1]}
		var err error
		switch fields[i].Column().Type {
		case stream.Int:
			w.Value, err = integer(words[2])
		case stream.Decimal:
			w.Value, err = hundredths(words[2])
		default:
			err = fmt.Errorf("%s is not a number that could be compared", words[0])
		}
		return w, err
	}
}

func noColumn(name string, names []string) error {
	return fmt.Errorf("there is no column %q%s", name, yml.Nearest(name, names, "there are"))
}

func fieldNames(fields []gen.Field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return names
}
