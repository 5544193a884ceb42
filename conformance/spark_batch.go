package conformance

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"deduplab/contentkey"
	"deduplab/measure"
)

// Two recordings are of batch jobs: the keys that Spark makes of rows, and the delays that it measures in a trace.

// runBatchJob replays the recording of a batch job.
func runBatchJob(c *Case) (diffs []Diff, err error) {
	switch c.Strategy {
	case "content-key":
		diffs, err = runContentKey(c.batch)
	case "horizon-measurement":
		diffs, err = runHorizon(c.File, c.batch)
	default:
		err = fmt.Errorf("unknown strategy %q of a batch job", c.Strategy)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.File, err)
	}
	return diffs, nil
}

// contentKeyCase is a recording of content keys, whose rows are its batches.
type contentKeyCase struct {
	Columns                  Columns `json:"columns"`
	EqualKeys                [][]int `json:"equal_keys"`
	EqualKeysWithoutCoalesce [][]int `json:"equal_keys_without_coalesce"`
	Rows                     []struct {
		Values                Fields  `json:"values"`
		BytesHex              string  `json:"bytes_hex"`
		SHA256                string  `json:"sha256"`
		SHA256WithoutCoalesce string  `json:"sha256_without_coalesce"`
		SHA256NewYork         *string `json:"sha256_new_york_session"`
	} `json:"rows"`
}

// runContentKey compares the keys, byte for byte.
func runContentKey(b []byte) ([]Diff, error) {
	var c contentKeyCase
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, err
	}
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		return nil, err
	}
	var diffs []Diff
	differ := func(row int, what, want, got string) {
		if want != got {
			diffs = append(diffs, Diff{Step: row, What: what, Want: want, Got: got, Unit: "row"})
		}
	}
	var keys, bare []string
	for i, row := range c.Rows {
		values, err := c.cast(row.Values, time.UTC)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
		keys = append(keys, contentkey.Sum(values))
		bare = append(bare, contentkey.SumWithoutSentinel(values))
		differ(i, "bytes_hex", row.BytesHex, hex.EncodeToString([]byte(contentkey.Canonical(values))))
		differ(i, "sha256", row.SHA256, keys[i])
		differ(i, "sha256_without_coalesce", row.SHA256WithoutCoalesce, bare[i])
		if row.SHA256NewYork != nil {
			values, err := c.cast(row.Values, newYork)
			if err != nil {
				return nil, fmt.Errorf("row %d: %w", i+1, err)
			}
			differ(i, "sha256_new_york_session", *row.SHA256NewYork, contentkey.Sum(values))
		}
	}
	differ(len(c.Rows)-1, "equal_keys", fmt.Sprint(c.EqualKeys), fmt.Sprint(equalKeys(keys)))
	differ(len(c.Rows)-1, "equal_keys_without_coalesce", fmt.Sprint(c.EqualKeysWithoutCoalesce),
		fmt.Sprint(equalKeys(bare)))
	return diffs, nil
}

// cast casts the values of a row to text in a session's zone.
func (c *contentKeyCase) cast(row Fields, session *time.Location) ([]contentkey.Value, error) {
	var values []contentkey.Value
	for _, column := range c.Columns {
		name, _, _ := strings.Cut(column.Type, " ") // what follows the type is prose
		typ, err := contentkey.ParseType(name)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", column.Name, err)
		}
		raw := row.Get(column.Name)
		if raw == nil {
			return nil, fmt.Errorf("column %s is missing", column.Name)
		}
		text := string(raw)
		if text == "null" {
			values = append(values, contentkey.Value{Null: true})
			continue
		}
		if raw[0] == '"' {
			if err := json.Unmarshal(raw, &text); err != nil {
				return nil, err
			}
		}
		v, err := typ.Cast(text, session)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", column.Name, err)
		}
		values = append(values, v)
	}
	return values, nil
}

// equalKeys lists the rows that share a key, where there are two or more.
func equalKeys(keys []string) [][]int {
	rows := map[string][]int{}
	for i, key := range keys {
		rows[key] = append(rows[key], i)
	}
	var equal [][]int
	for i, key := range keys {
		if group := rows[key]; len(group) > 1 && group[0] == i {
			equal = append(equal, group)
		}
	}
	return equal
}

// horizonCase is a recording of the delays measured in a trace that stands beside it.
type horizonCase struct {
	Code        string    `json:"code"`
	Input       string    `json:"input"`
	Rows        int       `json:"rows"`
	EventIDs    int       `json:"event_ids"`
	Percentages []float64 `json:"percentages"`
	Later       int       `json:"later_sightings"`
	Approx      []float64 `json:"percentile_approx"`
	Exact       []float64 `json:"percentile"`
	Max         float64   `json:"max"`
	Small       struct {
		Values      []float64 `json:"values"`
		Percentages []float64 `json:"percentages"`
		Approx      []float64 `json:"percentile_approx"`
		Exact       []float64 `json:"percentile"`
	} `json:"small_example"`
}

// firstSeen finds, in the query of a horizonCase, the columns of the key and of the time of arrival.
var firstSeen = regexp.MustCompile(`PARTITION BY (\w+) ORDER BY (\w+)\)`)

// runHorizon measures the trace and compares. Of two accuracies of percentile_approx it compares the default one, which
// gave the value at rank ceil(p x n).
func runHorizon(file string, b []byte) ([]Diff, error) {
	var c horizonCase
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, err
	}
	if c.Input != filepath.Base(c.Input) {
		return nil, fmt.Errorf("input %q does not stand beside it", c.Input)
	}
	m := firstSeen.FindStringSubmatch(c.Code)
	if m == nil {
		return nil, fmt.Errorf("the code numbers no sightings by PARTITION BY key ORDER BY time")
	}
	in, err := os.Open(filepath.Join(filepath.Dir(file), c.Input))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	columns := measure.Columns{Keys: [][]string{{m[1]}}, EventTime: m[2], Arrival: m[2], Unit: "ms"}
	r, err := measure.NewReader(columns, false)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := r.Read(c.Input, in); err != nil {
		return nil, err
	}
	report, err := r.Report(measure.Options{})
	if err != nil {
		return nil, err
	}
	var diffs []Diff
	differ := func(what string, want, got float64) {
		if math.Abs(want-got) > 1e-6 {
			format := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
			diffs = append(diffs, Diff{What: what, Want: format(want), Got: format(got)})
		}
	}
	key := report.Keys[0]
	differ("rows", float64(c.Rows), float64(report.Rows))
	differ("event_ids", float64(c.EventIDs), float64(key.Distinct))
	differ("later_sightings", float64(c.Later), float64(key.Copies))
	seconds := func(ns float64) float64 { return ns / 1e9 }
	differ("max", c.Max, seconds(float64(key.FromFirst.Max.Value)))
	for i, p := range c.Percentages {
		if i >= len(c.Approx) || i >= len(c.Exact) {
			return nil, fmt.Errorf("there are %d percentages, but fewer percentiles", len(c.Percentages))
		}
		part := int(math.Round(p * 10_000))
		approx, err := key.FromFirst.Rank(part)
		if err != nil {
			return nil, err
		}
		exact, err := key.FromFirst.Interpolated(part)
		if err != nil {
			return nil, err
		}
		differ(fmt.Sprintf("percentile_approx of %v", p), c.Approx[i], seconds(float64(approx)))
		differ(fmt.Sprintf("percentile of %v", p), c.Exact[i], seconds(exact))
	}
	var small []int64
	for _, v := range c.Small.Values {
		small = append(small, int64(v))
	}
	for i, p := range c.Small.Percentages {
		part := int(math.Round(p * 10_000))
		differ(fmt.Sprintf("small_example: percentile_approx of %v", p), c.Small.Approx[i],
			float64(measure.Rank(small, part)))
		differ(fmt.Sprintf("small_example: percentile of %v", p), c.Small.Exact[i], measure.Interpolated(small, part))
	}
	return diffs, nil
}
