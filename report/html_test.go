package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"html"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"deduplab/results"
	"deduplab/scenarios"
)

func render(t *testing.T, run *results.Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, run); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var blocks = regexp.MustCompile(`(?s)(<(?:script|style)[^>]*>)(.*?)(</(?:script|style)>)`)

// cut puts a digest in the place of every script and style, so that the golden file shows what people read.
func cut(html string) string {
	return blocks.ReplaceAllStringFunc(html, func(block string) string {
		parts := blocks.FindStringSubmatch(block)
		if strings.Contains(parts[1], `id="echarts"`) {
			return parts[1] + "ECharts" + parts[3]
		}
		return fmt.Sprintf("%ssha256 %x%s", parts[1], sha256.Sum256([]byte(parts[2])), parts[3])
	})
}

// script returns the content of the script element with an id.
func script(t *testing.T, html, id string) string {
	t.Helper()
	for _, parts := range blocks.FindAllStringSubmatch(html, -1) {
		if strings.Contains(parts[1], `id="`+id+`"`) {
			return parts[2]
		}
	}
	t.Fatalf("no script %s", id)
	return ""
}

func TestHTMLGolden(t *testing.T) {
	golden(t, "report.golden.html", []byte(cut(render(t, sample(t)))))
}

func TestHTMLSameBytes(t *testing.T) {
	first, second := render(t, sample(t)), render(t, sample(t))
	if first != second {
		t.Error("two renderings of one run differ")
	}
}

// bare is the page without the chart library, which speaks of addresses in its licence and its code.
func bare(t *testing.T, run *results.Run) string {
	t.Helper()
	html := render(t, run)
	return strings.Replace(html, script(t, html, "echarts"), "", 1)
}

var reference = regexp.MustCompile(`(?i)\b(?:src|srcset|href|action)\s*=\s*["']?([^"'\s>]*)|url\(|@import`)

func TestHTMLIsOffline(t *testing.T) {
	for _, m := range reference.FindAllStringSubmatch(bare(t, sample(t)), -1) {
		if !strings.HasPrefix(m[1], "#") && m[1] != "data:," {
			t.Errorf("reference to the outside: %s", m[0])
		}
	}
}

func TestHTMLHoldsTheResults(t *testing.T) {
	run := sample(t)
	got := new(results.Run)
	if err := json.Unmarshal([]byte(script(t, render(t, run), "results")), got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, run) {
		t.Error("the results in the page are not those of the run")
	}
}

type chartSpec struct {
	ID     string
	Option struct{ Series []struct{ Data []any } }
}

// chartSpecs reads the charts of a page. Their script relies on every series having data, empty or not.
func chartSpecs(t *testing.T, html string) []chartSpec {
	t.Helper()
	var specs []chartSpec
	if err := json.Unmarshal([]byte(script(t, html, "chart-options")), &specs); err != nil {
		t.Fatal(err)
	}
	for _, spec := range specs {
		for _, series := range spec.Option.Series {
			if series.Data == nil {
				t.Errorf("chart %s has a series without data", spec.ID)
			}
		}
	}
	return specs
}

func TestHTMLChartsHaveAPlace(t *testing.T) {
	html := render(t, sample(t))
	specs := chartSpecs(t, html)
	place := regexp.MustCompile(`class="chart" id="([^"]*)" role="img" aria-label="[^"]+"`)
	places := place.FindAllStringSubmatch(html, -1)
	if len(places) != len(specs) || len(specs) == 0 {
		t.Fatalf("%d charts, %d places", len(specs), len(places))
	}
	for i, s := range specs {
		if places[i][1] != s.ID {
			t.Errorf("place %s holds chart %s", places[i][1], s.ID)
		}
		points := 0
		for _, series := range s.Option.Series {
			points += len(series.Data)
		}
		if points == 0 {
			t.Errorf("chart %s has no data", s.ID)
		}
	}
}

func TestHTMLEscapes(t *testing.T) {
	const evil = "</script><img src=x onerror=alert(1)>\"'`{a}שלום🦆 &amp; --bad"
	run := sample(t)
	plain := strings.Count(bare(t, run), "</script>")
	run.Scenario, run.About, run.Summary = evil, evil, []string{evil}
	run.Workload.ByOrigin[evil] = 1
	run.Require[0].Name = evil
	s := &run.Strategies[0]
	s.ID, s.Name, s.About, s.Loses, s.Code, s.Findings = evil, evil, evil, evil, evil, []string{evil}
	s.Declared.Operator, s.Params = evil, map[string]string{evil: evil}
	s.LeaksByCause = map[string]int64{evil: 5}
	s.Verdicts[0].Requirement, s.Verdicts[0].Evidence, s.Verdicts[0].Value = evil, evil, evil
	s.Determinism[0].Cause, s.Determinism[0].Example = evil, evil
	s.Examples = []results.Example{{Fate: evil, Row: map[string]string{evil: evil}}}
	html := bare(t, run)
	if n := strings.Count(html, "</script>"); n != plain {
		t.Errorf("%d script ends, want %d", n, plain)
	}
	if strings.Contains(html, "<img") {
		t.Error("a name became markup")
	}
	got := new(results.Run)
	if err := json.Unmarshal([]byte(script(t, html, "results")), got); err != nil {
		t.Fatal(err)
	}
	if got.Strategies[0].ID != evil {
		t.Errorf("the name came back as %q", got.Strategies[0].ID)
	}
	if err := json.Unmarshal([]byte(script(t, html, "chart-options")), new([]any)); err != nil {
		t.Fatal(err)
	}
}

func TestHTMLEmpty(t *testing.T) {
	html := render(t, &results.Run{Scenario: "empty"})
	for _, want := range []string{"No strategy was run.", "The run has no arrivals to draw."} {
		if !strings.Contains(html, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestHTMLSmall(t *testing.T) {
	html := bare(t, small())
	for _, want := range []string{
		"2 of 4: clean and leaky.",
		"refused: the sink takes no updates",
		`<td class="n">unknown</td>`,
		"1,000,000,000,007",
		"931 GiB",
		"are unknown, and lost is a lower bound",
		"order x came late",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("%q is missing", want)
		}
	}
	chartSpecs(t, html)
	if strings.Contains(html, "NaN") {
		t.Error("a number is not a number")
	}
}

func TestECharts(t *testing.T) {
	library, err := echarts()
	if err != nil {
		t.Fatal(err)
	}
	const size = 1_121_883 // npm echarts@6.1.0, dist/echarts.min.js
	if len(library) != size || strings.Contains(string(library), "</script") {
		t.Errorf("the library has %d bytes, want %d without </script", len(library), size)
	}
}

func TestGlossary(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range glossary {
		if seen[e.ID()] {
			t.Errorf("%s stands twice", e.Term)
		}
		seen[e.ID()] = true
	}
	for metric, want := range map[string]string{
		"latency_ms.wait.p99": "wait", "fates.late_first": "late first", "residual": "residual", "lost": "lost",
		"append_only": "append-only violation", "state.class": "state class", "same_under": "replay", "nonsense": "",
	} {
		if got := metricTerm(metric).Term; got != want {
			t.Errorf("%s is explained by %q, want %q", metric, got, want)
		}
	}
}

// TestGlossaryIsComplete looks up every word that a report can show.
func TestGlossaryIsComplete(t *testing.T) {
	terms := map[string]bool{}
	for _, e := range glossary {
		terms[e.Term] = true
	}
	for _, cause := range slices.Concat(results.LeakCauses, results.LossCauses, scenarios.Causes) {
		if causeTerm(cause).Term == "" {
			t.Errorf("no entry for the cause %s", cause)
		}
	}
	for _, f := range newSection(&results.Strategy{}).Fates {
		if !terms[f.Word] {
			t.Errorf("no entry for the fate %s", f.Word)
		}
	}
	for _, name := range append(results.MetricNames(), "append_only", "same_under", "state.class", "version") {
		if metricTerm(name).Term == "" {
			t.Errorf("no entry for the requirement %s", name)
		}
	}
}

// What cannot be open to a cause says so, and a difference is told side by side.
func TestHTMLDeterminism(t *testing.T) {
	run := sample(t)
	s := &run.Strategies[0]
	story := func(at int64) results.Story {
		return results.Story{Rows: []results.StoryRow{{Event: 1, Key: 1, ArrivalMS: at, Fate: "kept"}},
			Steps: []results.StoryStep{{AtMS: at, Row: 1, What: results.Arrives}}}
	}
	s.Determinism = []results.Determinism{
		{Cause: "idleness", ByConstruction: "it does not ask the watermark"},
		{Cause: "batches", Replays: 5, SameTable: 2, Example: "id=1 differs", Stories: []results.Story{story(1000), story(7000)}},
	}
	page := render(t, run)
	for _, want := range []string{
		`<td class="closed"><span tabindex="0" title="it does not ask the watermark">by construction</span></td>`,
		`title="id=1 differs">table 2/5</a>`, "batches: the table is the same in 2 of 5 replays", "id=1 differs", "Under batches",
		`<th scope="col">0h00m01.000s</th>`, `<th scope="col">0h00m07.000s</th>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// plainWords head columns without an entry in the glossary: they say what they are.
var plainWords = []string{
	"strategy", "meets", "rows", "fate", "cause", "share", "requirement", "bound", "verdict", "measured", "evidence",
	"decided", "origin", "partition", "replays", "smallest difference found", "events", "max", "all", "rows drawn", "behind",
	"at", "operator", "at the end", "per hour", "keys", "made of", "wrong", "rows counted", "",
}

var (
	heads = regexp.MustCompile(`(?s)<th scope="col(?:group)?"[^>]*>(.*?)</th>`)
	tags  = regexp.MustCompile(`<[^>]*>`)
	// ownWords have a number in them, or a column of the user's.
	ownWords = regexp.MustCompile(`^(at \d|\d+h\d\dm|caught by stage \d|windows of \d|sum of )`)
)

// wordsOf looks for heads of columns that the page of a run does not explain.
func wordsOf(t *testing.T, run *results.Run, page string) {
	columns := map[string]bool{} // of the rows, which are the user's words
	for i := range run.Strategies {
		for _, name := range newSection(&run.Strategies[i]).Columns {
			columns[name] = true
		}
	}
	seen := 0
	for _, m := range heads.FindAllStringSubmatch(page, -1) {
		seen++
		word, _, _ := strings.Cut(html.UnescapeString(tags.ReplaceAllString(m[1], "")), " (")
		word, _, _ = strings.Cut(word, ", ")
		known := strings.Contains(m[1], `class="term"`) || slices.Contains(plainWords, word) || columns[word] ||
			ownWords.MatchString(word)
		if !known {
			t.Errorf("%s: a column is headed %q, which the glossary lacks", run.Scenario, word)
		}
	}
	if seen < 100 {
		t.Errorf("%s: looked at %d heads of columns", run.Scenario, seen)
	}
}

// TestWordsOfThePage looks for heads of columns, causes and fates that the page does not explain: each is a link to
// the glossary, with its meaning.
func TestWordsOfThePage(t *testing.T) {
	run := sample(t)
	s := &run.Strategies[0]
	s.LeaksByCause, s.LossesByCause = map[string]int64{}, map[string]int64{}
	for _, cause := range results.LeakCauses {
		s.LeaksByCause[cause] = 1
		s.Examples = append(s.Examples, results.Example{Fate: "leaked", Cause: cause})
	}
	for _, cause := range results.LossCauses {
		s.LossesByCause[cause] = 1
		s.Examples = append(s.Examples, results.Example{Fate: "swallowed", Cause: cause})
	}
	html := bare(t, run)
	wordsOf(t, run, html)
	tiers := tiered(t)
	wordsOf(t, tiers, bare(t, tiers))
	examples := regexp.MustCompile(`<tr><td>([^✓✕].*?)</td><td>.*?</td><td>(.*?)</td>`).FindAllStringSubmatch(html, -1)
	if len(examples) < len(results.LeakCauses)+len(results.LossCauses) {
		t.Errorf("%d examples", len(examples))
	}
	for _, cell := range examples {
		if !strings.Contains(cell[1], `class="term"`) || cell[2] != "" && !strings.Contains(cell[2], `class="term"`) {
			t.Errorf("an example has a fate or a cause that is not explained: %s, %s", cell[1], cell[2])
		}
	}
	for word, want := range map[string]bool{"ttl": true, "horizon": true, "p99.9": true, "nonsense": false} {
		g := grid{Words: true, Head: []string{word + " (rows)"}}
		if got := g.Entry(0) != nil; got != want {
			t.Errorf("an entry for the head %s: %v", word, got)
		}
	}
}
