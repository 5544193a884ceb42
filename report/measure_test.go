package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"deduplab/measure"
)

// measured measures a trace in memory with candidate keys.
func measured(t *testing.T, columns measure.Columns, text string) *measure.Report {
	t.Helper()
	keys := len(columns.Keys)
	columns.Keys = measure.Unions(columns.Keys)
	reader, err := measure.NewReader(columns, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Read("trace.csv", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	r, err := reader.Report(measure.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.Compare(keys)
	return r
}

func renderMeasure(t *testing.T, r *measure.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := Measure(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// bareMeasure is the page without the chart library.
func bareMeasure(t *testing.T, r *measure.Report) string {
	t.Helper()
	html := renderMeasure(t, r)
	return strings.Replace(html, script(t, html, "echarts"), "", 1)
}

// quakes is a week of the feed of earthquakes, by id, by quake and by what a reader sees of it.
func quakes(t *testing.T) *measure.Report {
	t.Helper()
	data, err := os.ReadFile("../scenarios/data/earthquakes.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	return measured(t, measure.Columns{Keys: [][]string{{"place", "mag"}, {"quake"}, {"id"}}, EventTime: "time",
		Arrival: "updated", Origin: "network"}, string(data))
}

func TestMeasureGolden(t *testing.T) {
	html := renderMeasure(t, quakes(t))
	if html != renderMeasure(t, quakes(t)) {
		t.Error("two renderings of one report differ")
	}
	golden(t, "measure.golden.html", []byte(cut(html)))
}

// TestMeasureCharts: every chart has a place, data, and its numbers in a table below.
func TestMeasureCharts(t *testing.T) {
	html := renderMeasure(t, quakes(t))
	specs := chartSpecs(t, html)
	if len(specs) < 10 {
		t.Errorf("%d charts only", len(specs))
	}
	for _, s := range specs {
		if !strings.Contains(html, `class="chart" id="`+s.ID+`"`) {
			t.Errorf("chart %s has no place", s.ID)
		}
		if !slices.ContainsFunc(s.Option.Series, func(series struct{ Data []any }) bool { return len(series.Data) > 0 }) {
			t.Errorf("chart %s has no data", s.ID)
		}
	}
	for _, f := range regexp.MustCompile(`(?s)<figure>.*?</figure>`).FindAllString(html, -1) {
		if strings.Contains(f, `class="chart"`) && (!strings.Contains(f, "<table") || !strings.Contains(f, `class="see"`)) {
			t.Errorf("no sentence or no table with the chart in\n%s", f)
		}
	}
	for _, m := range reference.FindAllStringSubmatch(bareMeasure(t, quakes(t)), -1) {
		if !strings.HasPrefix(m[1], "#") && m[1] != "data:," {
			t.Errorf("reference to the outside: %s", m[0])
		}
	}
}

// TestMeasureEscapes: what a trace says is text, wherever it stands.
func TestMeasureEscapes(t *testing.T) {
	const evil = "</script><img src=x onerror=alert(1)>'`{a}שלום🦆 &amp; --bad"
	trace := "id,\"" + evil + "\",at,ts\n"
	for i := range 6 {
		trace += fmt.Sprintf("\"%s\",\"%s %d\",%d,%d\n", evil, evil, i%2, 1_700_000_000+i*i, 1_700_000_000-i)
	}
	trace += "x,y,\"" + evil + "\",1\n"
	r := measured(t, measure.Columns{Keys: [][]string{{"id"}, {evil}}, EventTime: "ts", Arrival: "at", Origin: evil},
		trace)
	r.Files = []string{evil}
	html := bareMeasure(t, r)
	if n := strings.Count(html, "</script>"); n != 3 {
		t.Errorf("%d script ends, want 3", n)
	}
	if strings.Contains(html, "<img") {
		t.Error("a name became markup")
	}
	if err := json.Unmarshal([]byte(script(t, html, "chart-options")), new([]any)); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"שלום🦆", "1 skipped", "The first bad rows"} {
		if !strings.Contains(strings.Replace(html, "<dd>1 <small>skipped", "1 skipped", 1), want) {
			t.Errorf("%q is missing", want)
		}
	}
}

// TestMeasureLittle: traces that have little to show are told in words.
func TestMeasureLittle(t *testing.T) {
	for _, c := range []struct {
		name, trace string
		columns     measure.Columns
		want        []string
	}{
		{"one row", "id,at\na,1\n", measure.Columns{Keys: [][]string{{"id"}}, Arrival: "at"},
			[]string{"No row is a copy by \u2068id\u2069", "no disorder to measure"}},
		{"in order", "id,at\na,1\nb,2\na,2\n", measure.Columns{Keys: [][]string{{"id"}}, EventTime: "at", Arrival: "at"},
			[]string{"The trace is too short", "lies behind another", "33 % of the rows are copies by \u2068id\u2069"}},
		{"all at once", "id,at\na,5\na,5\n", measure.Columns{Keys: [][]string{{"id"}}, EventTime: "at"},
			[]string{"come at the very time of their first sighting"}},
	} {
		html := bareMeasure(t, measured(t, c.columns, c.trace))
		for _, want := range c.want {
			if !strings.Contains(html, want) {
				t.Errorf("%s: %q is missing", c.name, want)
			}
		}
		for _, s := range chartSpecs(t, html) {
			if len(s.Option.Series) == 0 {
				t.Errorf("%s: chart %s has nothing to draw", c.name, s.ID)
			}
		}
		if strings.Contains(html, "NaN") || strings.Contains(html, "%!") {
			t.Errorf("%s: a number is not a number", c.name)
		}
	}
}

// TestMeasureRanks: rows fall with the rank of their id, whether it is drawn as it is or as the mean of its bucket.
func TestMeasureRanks(t *testing.T) {
	trace := "id,at\n"
	for id, rows := range []int{400, 300, 290, 280, 270, 260, 250, 240, 230, 220, 110, 105, 50, 7, 7, 3, 2, 2, 1} {
		for range rows {
			trace += fmt.Sprintf("%d,%d\n", id, 1_700_000_000+len(trace))
		}
	}
	r := measured(t, measure.Columns{Keys: [][]string{{"id"}}, Arrival: "at"}, trace)
	f := idsFigure("", r, &r.Keys[0])
	text, err := json.Marshal(f.Charts[0].Option)
	if err != nil {
		t.Fatal(err)
	}
	var option struct {
		Series []struct{ Data []struct{ Value [2]float64 } }
	}
	if err := json.Unmarshal(text, &option); err != nil {
		t.Fatal(err)
	}
	points := option.Series[0].Data
	for i := range points[1:] {
		if before, after := points[i].Value, points[i+1].Value; after[0] < before[0] || after[1] > before[1] {
			t.Errorf("rank %v has %v rows, rank %v %v", before[0], before[1], after[0], after[1])
		}
	}
	if first, last := points[0].Value, points[len(points)-1].Value; first != [2]float64{1, 400} ||
		last != [2]float64{19, 1} {
		t.Errorf("from %v to %v", first, last)
	}
}
