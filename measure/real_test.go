package measure_test

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"deduplab/measure"
)

// compared measures a file with candidate keys, and compares them.
func compared(t *testing.T, columns measure.Columns, path string) *measure.Report {
	t.Helper()
	keys := len(columns.Keys)
	columns.Keys = measure.Unions(columns.Keys)
	r := report(t, columns, measure.Options{}, read(t, path))
	r.Compare(keys)
	return r
}

// unzipped opens a file that is compressed with gzip.
func unzipped(t *testing.T, path string) io.Reader {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ranks are the median, p99, p99.9 and the maximum of values.
func ranks(values []int64) [4]int64 {
	slices.Sort(values)
	return [4]int64{measure.Rank(values, 5000), measure.Rank(values, 9900), measure.Rank(values, 9990),
		measure.Rank(values, 10000)}
}

// TestEarthquakes pins what is known of a week of the feed of earthquakes: quakes have several ids.
func TestEarthquakes(t *testing.T) {
	const path = "../scenarios/data/earthquakes.jsonl.gz"
	r := compared(t, measure.Columns{Keys: [][]string{{"id"}, {"quake"}, {"place", "mag"}}, EventTime: "time",
		Arrival: "updated"}, path)
	id, quake, seen := r.Keys[0], r.Keys[1], r.Keys[2]
	if r.Rows != 1803 || id.Copies != 0 || quake.Distinct != 1707 || quake.Copies != 96 || seen.Copies != 154 {
		t.Errorf("%d rows, copies: %d by id, %d by quake, %d by place and magnitude", r.Rows, id.Copies, quake.Copies,
			seen.Copies)
	}
	several := 0
	for _, b := range quake.PerID.Histogram[1:] {
		several += b.IDs
	}
	if several != 94 || quake.PerID.Max != 3 {
		t.Errorf("%d quakes have two or more ids, one of them %d", several, quake.PerID.Max)
	}
	if a := r.Agreements; a[0].OnlyB != 96 || a[2].Both != 96 || a[2].OnlyA != 0 || a[2].OnlyB != 58 {
		t.Errorf("%+v", a)
	}

	var revised []int64 // minutes from a quake to its last revision
	lines := bufio.NewScanner(unzipped(t, path))
	for lines.Scan() {
		var row struct {
			ID, Quake     string
			Time, Updated int64
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		if row.ID == row.Quake {
			revised = append(revised, (row.Updated-row.Time+30_000)/60_000)
		}
	}
	if got := ranks(revised); got != [4]int64{243, 5396, 9502, 9650} || len(revised) != 1707 {
		t.Errorf("%d quakes are revised after %v minutes", len(revised), got)
	}
}

// TestFlights pins what is known of the flights from New York, in which no row is a copy: what keys merge are flights.
// The year is too large to stand here; DEDUPLAB_DATA names the folder into which docs/fetch-data.sh has brought it.
func TestFlights(t *testing.T) {
	for _, c := range []struct {
		name, path string
		rows       int
		merged     [3]int
		cancelled  int
		delays     [4]int64 // minutes: p50, p99, p99.9 and the longest
	}{
		{"July", "../scenarios/data/flights.csv.gz", 29_425, [3]int{2795, 4, 0}, 940, [4]int64{0, 240, 396, 1005}},
		{"2013", filepath.Join(os.Getenv("DEDUPLAB_DATA"), "flights-2013.csv.gz"), 336_776, [3]int{32_610, 24, 0}, 8255,
			[4]int64{-2, 191, 340, 1301}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "2013" && os.Getenv("DEDUPLAB_DATA") == "" {
				t.Skip("DEDUPLAB_DATA does not name a folder with flights-2013.csv.gz, which docs/fetch-data.sh makes")
			}
			r := compared(t, measure.Columns{Keys: [][]string{{"day", "flight"}, {"day", "carrier", "flight"},
				{"day", "hour", "carrier", "flight"}}, EventTime: "departed", Arrival: "reported"}, c.path)
			merged := [3]int{r.Keys[0].Copies, r.Keys[1].Copies, r.Keys[2].Copies}
			if r.Rows != c.rows || merged != c.merged || r.NullEventTimes != c.cancelled {
				t.Errorf("%d rows, the keys merge %v, %d without departure", r.Rows, merged, r.NullEventTimes)
			}
			if a := r.Agreements[0]; a.OnlyA != c.merged[0]-c.merged[1] || a.OnlyB != 0 {
				t.Errorf("%+v", a)
			}
			rows, err := csv.NewReader(unzipped(t, c.path)).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			var delays []int64
			for _, row := range rows[1:] {
				if row[5] != "" {
					delays = append(delays, moment(t, row[5])-moment(t, row[4]))
				}
			}
			if got := ranks(delays); got != c.delays {
				t.Errorf("departures are delayed by %v minutes", got)
			}
		})
	}
}

// moment reads a time, in minutes.
func moment(t *testing.T, text string) int64 {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.Unix() / 60
}
