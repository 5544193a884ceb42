package measure_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deduplab/measure"
	"deduplab/stream"
)

// report measures files, failing the test on errors.
func report(t interface{ Fatal(...any) }, columns measure.Columns, o measure.Options,
	files map[string]string) *measure.Report {
	r, err := measure.NewReader(columns, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for name, text := range files {
		if err := r.Read(name, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	report, err := r.Report(o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func key(columns ...string) [][]string { return [][]string{columns} }

func read(t *testing.T, path string) map[string]string {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{path: string(data)}
}

const (
	ms     measure.Span = 1e6
	second measure.Span = 1e9
)

// TestHorizonRecording holds the percentiles against those that Spark recorded.
func TestHorizonRecording(t *testing.T) {
	var recorded struct {
		EventIDs  int       `json:"event_ids"`
		Later     int       `json:"later_sightings"`
		Approx    []float64 `json:"percentile_approx"`
		Exact     []float64 `json:"percentile"`
		Max       float64
		SmallTest struct {
			Values, Percentages []float64
			Approx              []float64 `json:"percentile_approx"`
			Exact               []float64 `json:"percentile"`
		} `json:"small_example"`
	}
	data, err := os.ReadFile("testdata/horizon.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &recorded); err != nil {
		t.Fatal(err)
	}
	r := report(t, measure.Columns{Keys: key("event_id"), EventTime: "event_ts", Arrival: "ingest_ts"},
		measure.Options{}, read(t, "testdata/horizon-input.csv"))
	k := r.Keys[0]
	if k.Distinct != recorded.EventIDs || k.Copies != recorded.Later || k.FromFirst.Count != recorded.Later {
		t.Errorf("%d ids and %d later sightings", k.Distinct, k.Copies)
	}
	for i, got := range []measure.Quantile{k.FromFirst.P50, k.FromFirst.P99, k.FromFirst.P999, k.FromFirst.P9999} {
		if want := recorded.Approx[i]; float64(got.Value)/1e9 != want {
			t.Errorf("percentile %d: %v, want %v s", i, got.Value, want)
		}
	}
	if got := float64(k.FromFirst.Max.Value) / 1e9; got != recorded.Max {
		t.Errorf("max %v", got)
	}
	for i, p := range []int{5000, 9900, 9990, 9999} {
		got, err := k.FromFirst.Interpolated(p)
		if got /= 1e9; err != nil || math.Abs(got-recorded.Exact[i]) > 1e-6 {
			t.Errorf("interpolated percentile %d: %v, want %v, %v", p, got, recorded.Exact[i], err)
		}
	}
	small := recorded.SmallTest
	var values []int64
	for _, v := range small.Values {
		values = append(values, int64(v))
	}
	for i, p := range small.Percentages {
		tenthousandths := int(math.Round(p * 10000))
		if got := measure.Rank(values, tenthousandths); float64(got) != small.Approx[i] {
			t.Errorf("rank of %v: %d, want %v", p, got, small.Approx[i])
		}
		if got := measure.Interpolated(values, tenthousandths); got != small.Exact[i] {
			t.Errorf("interpolated %v: %v, want %v", p, got, small.Exact[i])
		}
	}
}

// TestRadioFrames pins what is known of the radio frames. 691 frames repeat at the very same time; the 3,539 that are
// published as such repeat within a millisecond.
func TestRadioFrames(t *testing.T) {
	r := report(t, measure.Columns{Keys: key("frame"), EventTime: "timestamp", Arrival: "timestamp"}, measure.Options{},
		read(t, "../scenarios/data/radio-frames.csv.gz"))
	k := r.Keys[0]
	if r.Rows != 57793 || k.Distinct != 39643 || k.Copies != 18150 {
		t.Errorf("%d rows, %d distinct, %d copies", r.Rows, k.Distinct, k.Copies)
	}
	for _, c := range []struct {
		upTo measure.Span
		want int
	}{
		{0, 691}, {ms, 3539}, {100 * ms, 4711}, {400 * ms, 8248}, {second, 13762}, {5 * second, 16805},
		{60 * second, 17939},
	} {
		if got := k.FromPrevious.UpTo(c.upTo); got != c.want {
			t.Errorf("gaps up to %v: %d, want %d", c.upTo, got, c.want)
		}
	}
	if got := k.FromPrevious.P99.String() + " " + k.FromPrevious.Max.String(); got != "1m42s >=1h3m" {
		t.Errorf("p99 and max: %s", got)
	}
	if got := k.FromPrevious.Max.Value / second; got != 3752 {
		t.Errorf("max: %d s", got)
	}
	if r.Disorder.OutOfOrder != 0 || r.Disorder.Rows != r.Rows || r.Ties.Resolution != 100 && r.Ties.Resolution != 1 {
		t.Errorf("disorder %+v, ties %+v", r.Disorder, r.Ties)
	}
}

const small = `id,ts,at,p,who
a,0,0,0,x
b,5,6,1,x
a,0,8,0,y
,,9,1,x
b,7,20,1,y
c,1,30,0,x
,31,31,1,
`

func TestSmall(t *testing.T) {
	columns := measure.Columns{Keys: [][]string{{"id"}, {"id", "who"}}, EventTime: "ts", Arrival: "at", Partition: "p",
		Origin: "who", Unit: "s"}
	r := report(t, columns, measure.Options{TTLs: []stream.Time{8000, 14000}, Delays: []stream.Time{6000}},
		map[string]string{"small.csv": small})
	k := r.Keys[0]
	if k.Distinct != 4 || k.Copies != 3 || k.NullKeys != 2 || k.SameEvent != 1 || k.FromFirst.Max.Value != 22*second ||
		!k.FromFirst.Max.AtLeast || k.FromFirst.P50.AtLeast || k.FromFirst.P50.Value != 14*second {
		t.Errorf("%+v", k)
	}
	if both := r.Keys[1]; both.Distinct != 7 || both.Copies != 0 || both.NullKeys != 2 ||
		both.Advice[0].Value != "none" {
		t.Errorf("composite key: %+v", both)
	}
	for _, c := range []struct {
		ttl  stream.Time
		want string
	}{
		{8000, "{3 1 3 300} {3 1 3 300}"},
		{14000, "{2 0.6666666666666666 3 300} {2 0.6666666666666666 3 300}"},
		{0, "{0 0 4 400} {0 0 4 400}"},
	} {
		i := slices.IndexFunc(k.Forecasts, func(f measure.Forecast) bool { return f.TTL == c.ttl })
		if got := fmt.Sprint(k.Forecasts[i].Create, k.Forecasts[i].Refresh); got != c.want {
			t.Errorf("TTL %d: %s, want %s", c.ttl, got, c.want)
		}
	}
	// Behind the largest before them are a's copy (by 5 s) and c (by 6 s), which nothing else brings through.
	if d := r.Disorder; d.Rows != 6 || d.OutOfOrder != 2 || d.Lateness.Max.Value != 6*second {
		t.Errorf("%+v", d)
	}
	i := slices.IndexFunc(k.Losses, func(l measure.Loss) bool { return l.Delay == 6000 })
	if got := k.Losses[i]; got.Reader != (measure.Late{LostEvents: 1, LostRate: 0.25}) || got.Partition.LostEvents != 0 {
		t.Errorf("%+v", got)
	}
	if r.NullEventTimes != 1 || r.Ties.SameEvent != 1 || r.Ties.Resolution != second {
		t.Errorf("%d null event times, %+v", r.NullEventTimes, r.Ties)
	}
	if p := r.Partitions; len(p) != 2 || p[0].Gaps.Max.Value != 22*second || p[0].Silent != second ||
		p[0].LongestAt != "1970-01-01T00:00:08Z" {
		t.Errorf("%+v", p)
	}
	if o := k.ByOrigin; len(o) != 3 || o[0].Name != "y" || o[0].Copies != 2 || o[1].Name != "null" || o[2].Rows != 4 {
		t.Errorf("%+v", o)
	}
}

// TestForms: the same rows as CSV, as JSON lines, compressed, and with times in other forms measure the same.
func TestForms(t *testing.T) {
	columns := measure.Columns{Keys: key("id"), EventTime: "ts", Arrival: "at"}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	fmt.Fprint(w, "id,ts,at\na,1700000000000,1700000000000\na,,1700000001500\n")
	w.Close()
	want := ""
	for i, text := range []string{
		"id,ts,at\na,1700000000,1700000000\na,,1700000001.5\n",
		zipped.String(),
		"\ufeffid,ts,at\na,1700000000000000,1700000000000000\na,,1700000001500000\n",
		`{"id":"a","ts":"2023-11-14T22:13:20Z","at":"2023-11-14T22:13:20Z"}` + "\n\n" +
			`{"at":"2023-11-14T23:13:21.5+01:00","id":"a","ts":null,"more":[1]}`,
		`{"id":"a","ts":1700000000000000000,"at":1700000000000000000}` + "\n" + `{"at":1700000001500000000,"id":"a"}`,
	} {
		r := report(t, columns, measure.Options{}, map[string]string{"f": text})
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = string(data)
		}
		if string(data) != want {
			t.Errorf("form %d: %s\nwant %s", i, data, want)
		}
	}
}

func TestFaults(t *testing.T) {
	columns := measure.Columns{Keys: key("id"), EventTime: "ts", Arrival: "at", Partition: "p"}
	for _, c := range []struct{ text, want string }{
		{"", "f: the file is empty"},
		{"id,ts,at,p\n", "f: no rows"},
		{"id,at,at,p\na,1,1,0\n",
			"f:1: column \"at\" stands twice\nf: --event-time: there is no column \"ts\" (there are: id, at, at, p)"},
		{`{"id":1,"ts":1,"at":1}`, `f:1:p: "" is not a partition, a whole number from 0 to 65534`},
		{`{"id":1,"p":0,"at":1}`, `f: --event-time: there is no column "ts" (there are: id, p, at)`},
		{"id,ts,at,p\na,1,1,0\na,noon,1,0\na,1,,0\na,1,1,-1\na,1\n",
			`f:3:ts: "noon" is not a time: neither a number nor RFC 3339 nor an SQL timestamp` +
				"\nf:4:at: a row needs an arrival\nf:5:p: \"-1\" is not a partition, a whole number from 0 to 65534" +
				"\nf:6: 2 cells, but the header has 4"},
		{"{]", "f:1: not JSON: invalid character ']' looking for beginning of object key string"},
		{"id,ts,at,p\na,1,99999999999999999999,0\n", `f:2:at: "99999999999999999999" is too large for a time`},
		{"id,ts,at,p\na,1,99999999999,0\n", "--arrival at: row 1: 99999999999 s is outside of the years 1824 to 2116 " +
			"(say in --unit what it counts in)"},
		{"id,ts,at,p\na,1,1,0\nb,9999-12-31T00:00:00Z,1,0\n",
			"f:3:ts: 9999-12-31T00:00:00Z is outside of the years 1824 to 2116"},
	} {
		r, err := measure.NewReader(columns, false)
		if err != nil {
			t.Fatal(err)
		}
		err = r.Read("f", strings.NewReader(c.text))
		if err == nil {
			_, err = r.Report(measure.Options{})
		}
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("%q: %s\nwant %s", c.text, got, c.want)
		}
	}
	r, err := measure.NewReader(columns, true)
	if err != nil {
		t.Fatal(err)
	}
	bad := "id,ts,at,p\na,1,1,0\na,1\na,1,x,0\na,9999-12-31T00:00:00Z,1,0\n"
	if err := r.Read("f", strings.NewReader(bad)); err != nil {
		t.Fatal(err)
	}
	if report, err := r.Report(measure.Options{}); err != nil || report.Rows != 1 || report.Skipped != 3 ||
		len(report.Faults) != 3 {
		t.Errorf("skipping: %+v, %v", report, err)
	}
	for _, columns := range []measure.Columns{
		{Keys: key("a")}, {Arrival: "a"}, {Keys: key("a"), Arrival: "a", Unit: "h"},
	} {
		if _, err := measure.NewReader(columns, false); err == nil {
			t.Errorf("%+v is accepted", columns)
		}
	}
}

// TestForecastAgainstModel runs a TTL row by row over a map, as an operator does.
func TestForecastAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ttl := stream.Time(rapid.IntRange(1, 30).Draw(t, "ttl"))
		text, at := "id,at\n", 1_000_000_000_000
		expires := [2]map[string]int{{}, {}}
		var leaked, peak [2]int
		seen := map[string]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "rows") {
			at += rapid.IntRange(0, 12).Draw(t, "gap")
			id := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "id")
			text += fmt.Sprintf("%s,%d\n", id, at)
			for refresh, state := range expires {
				live := state[id] > at
				if !live && seen[id] {
					leaked[refresh]++
				}
				if !live || refresh == 1 {
					state[id] = at + int(ttl)
				}
				n := 0
				for _, end := range state {
					if end > at {
						n++
					}
				}
				peak[refresh] = max(peak[refresh], n)
			}
			seen[id] = true
		}
		r := report(t, measure.Columns{Keys: key("id"), Arrival: "at"}, measure.Options{TTLs: []stream.Time{ttl}},
			map[string]string{"f": text})
		for _, f := range r.Keys[0].Forecasts {
			got := [2]int{f.Create.Leaked, f.Refresh.Leaked}
			held := [2]int{f.Create.Keys, f.Refresh.Keys}
			if f.TTL == ttl && (got != leaked || held != peak) {
				t.Fatalf("leaked %v and held %v, want %v and %v", got, held, leaked, peak)
			}
		}
	})
}
