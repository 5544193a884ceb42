package report

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"deduplab/results"
)

var (
	//go:embed parts.tmpl
	partsTemplate string
	//go:embed page.tmpl
	pageTemplate string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string
	//go:embed choose.js
	chooseScript string
	//go:embed tips.js
	tipsScript string
	// The full build of Apache ECharts 6.1.0 from npm, dist/echarts.min.js.
	//go:embed assets/echarts.min.js.gz
	echartsGzip []byte
)

var functions = template.FuncMap{
	"swimlane": newSwimlane, "storyLead": storyLead, "inc": func(n int) int { return n + 1 },
	"failureLines": failureLines,
	"count":        count, "known": known, "short": short, "bytes": byteSize, "millis": millis, "offset": offset,
	"percent": percent, "ratio": ratio, "join": strings.Join,
	"term": term, "metricTerm": metricTerm, "causeTerm": causeTerm, "fateTerm": fateTerm,
	"anchor": anchor, "lost": lost, "p99": p99, "meets": meets,
	"mark": mark, "spaced": spaced, "kind": kind, "agreement": newAgreement, "unlabelled": func() string { return unlabelled },
	"hasAmounts": hasAmounts, "off": off, "spelled": spelled, "missedRows": missedRows, "sumOf": sumOf,
	"sum": results.FormatSum, "keysToSee": func() string { return keysToSee },
	"keysUnlabelled": func() string { return keysUnlabelled },
	"partial":        func() string { return partial },
}

var pageParsed = parse(pageTemplate)

// parse reads the template of a page, which may use the parts that all pages share.
func parse(text string) *template.Template {
	parts := template.Must(template.New("parts").Funcs(functions).Parse(partsTemplate + storyTemplate))
	return template.Must(parts.New("page").Parse(text))
}

// HTML writes the run as one page that needs nothing else: style, script, charts and the numbers themselves, from which
// a later comparison can read them back, are inside.
func HTML(w io.Writer, run *results.Run) error {
	p, err := newPage(run)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return write(w, pageParsed, p)
}

// write writes a page once all of it is there.
func write(w io.Writer, parsed *template.Template, p any) error {
	var b bytes.Buffer
	if err := parsed.Execute(&b, p); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// shell is what every page has: its title, its words, and all that makes it need nothing else.
type shell struct {
	Title           string
	Glossary        []entry
	Style           template.CSS
	Script, ECharts template.JS
	ChartsJSON      template.JS
}

// newShell gathers the charts of a page's figures.
func newShell(title string, words []entry, figures ...figure) (shell, error) {
	s := shell{
		Title: title, Glossary: words, Style: template.CSS(pageStyle),
		Script: template.JS(pageScript + tipsScript + chooseScript),
	}
	specs := []chart{}
	for _, f := range figures {
		specs = append(specs, f.Charts...)
	}
	var err error
	if s.ChartsJSON, err = scriptJSON(specs); err != nil {
		return s, err
	}
	s.ECharts, err = echarts()
	return s, err
}

// page is what the template reads.
type page struct {
	shell
	Run      *results.Run
	Failing  []*results.Strategy // those whose job had failures
	Question string
	Answer   string
	Met      bool // some strategy meets every requirement
	Stream   []fact
	Job      []fact
	Origins  []cause
	Order    []*results.Strategy
	Ran      []*results.Strategy
	Causes   []string // of determinism, the columns of its matrix
	Columns  []column // of the table of numbers
	Engines  []string // of all strategies
	Sections []section

	KeyExamples []keyExamples

	Latency, State, Late, Changelog, Leaks, Tiers, After, Arrival, TradeOff figure

	ResultsJSON template.JS
}

// fact is a number with its name; Word is the glossary's word for it, if there is one.
type fact struct {
	Name, Value, Note, Word string
}

// section is what the page says of one strategy.
type section struct {
	*results.Strategy
	Fates   []fate
	Columns []string // of the example rows
	Skew    string
}

// fate is a line of a strategy's fates table.
type fate struct {
	Word string
	N    int64
}

func newPage(run *results.Run) (*page, error) {
	order := run.Ranked()
	all := ran(order)
	p := &page{
		Run: run, Order: order, Ran: all, Columns: columnsFor(run), Engines: engines(order),
		Failing: failing(all), Stream: streamFacts(run), Job: jobFacts(run.Job), Origins: byCount(run.Workload.ByOrigin),
		Latency: latencyFigure(all), State: stateFigure(all), Late: lateFigure(all), Changelog: changelogFigure(all),
		Leaks: causesFigure(all), Tiers: tiersFigure(all), After: afterFigure(run, all),
		Arrival: arrivalFigure(run.Workload), TradeOff: tradeOffFigure(all), KeyExamples: newKeyExamples(run.Keys),
	}
	p.Question = fmt.Sprintf("Which way of removing the duplicates of %s meets every requirement?", run.Scenario)
	p.Answer, p.Met = answer(run, order)
	for _, s := range order {
		p.Sections = append(p.Sections, newSection(s))
		for _, d := range s.Determinism {
			if !slices.Contains(p.Causes, d.Cause) {
				p.Causes = append(p.Causes, d.Cause)
			}
		}
	}
	var err error
	if p.shell, err = newShell(run.Scenario+": deduplab report", glossary, p.Latency, p.State, p.Late, p.Changelog,
		p.Leaks, p.Tiers, p.After, p.Arrival, p.TradeOff); err != nil {
		return nil, err
	}
	p.ResultsJSON, err = scriptJSON(run)
	return p, err
}

// scriptJSON encodes v for a script element: encoding/json writes <, > and & as escapes, so that no name can end the
// element.
func scriptJSON(v any) (template.JS, error) {
	text, err := json.Marshal(v)
	return template.JS(text), err
}

// echarts unpacks the chart library.
func echarts() (template.JS, error) {
	r, err := gzip.NewReader(bytes.NewReader(echartsGzip))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return template.JS(text), err
}

// answer says in one sentence which strategies meet every requirement, or how many where the summary says which; met is
// false when there is none.
func answer(run *results.Run, order []*results.Strategy) (text string, met bool) {
	var full []string
	for _, s := range ran(order) {
		if met, of := s.Score(); met == of && of > 0 {
			full = append(full, s.ID)
		}
	}
	switch {
	case len(order) == 0:
		return "No strategy was run.", false
	case run.Workload.Rows == 0:
		return "The stream has no rows.", false
	case len(run.Require) == 0:
		return "The scenario states no requirement, so the numbers stand without a verdict.", false
	case len(full) == 0:
		return fmt.Sprintf("None of the %d strategies does.", len(order)), false
	}
	text = fmt.Sprintf("%d of %d: %s.", len(full), len(order), list(full))
	if len(run.Summary) > 0 { // it names them
		text = fmt.Sprintf("%d of %d strategies.", len(full), len(order))
	}
	if run.Partial {
		return "So far: " + text, false
	}
	return text, true
}

func streamFacts(run *results.Run) []fact {
	w := run.Workload
	copies := percent(w.Copies, w.Rows) + " of the rows"
	if !w.Labelled {
		copies = "by key: the trace has no labels"
	}
	rows := "in " + results.FormatNumber(int64(w.Partitions), "partition")
	if w.Skipped > 0 {
		rows += fmt.Sprintf("; %s more left out, which could not be read", count(w.Skipped))
	}
	return []fact{
		{"rows", count(w.Rows), rows, ""},
		{"events", count(w.Distinct), "distinct", "event"},
		{"copies", count(w.Copies), copies, "copy"},
		{"virtual time", millis(w.SpanMS), fmt.Sprintf("seed %d", run.Seed), ""},
		{"disorder p99", millis(w.DisorderMS.P99), "max " + millis(w.DisorderMS.Max), "disorder"},
		{"horizon p99.9", millis(w.HorizonMS.P999), "max " + millis(w.HorizonMS.Max), "horizon"},
	}
}

func jobFacts(j results.Job) []fact {
	batch, size := "off", ""
	if j.MiniBatchMS > 0 {
		batch, size = millis(j.MiniBatchMS), "or "+results.FormatNumber(int64(j.MiniBatchSize), "row")
	}
	facts := []fact{
		{"Flink", j.Flink, "", ""},
		{"input", j.Input, "", ""},
		{"parallelism", count(int64(j.Parallelism)), "", "subtask"},
		{"mini-batch", batch, size, ""},
		{"watermark delay", millis(j.WatermarkDelayMS), "", "watermark"},
		{"watermark interval", millis(j.WatermarkIntervalMS), "", ""},
		{"watermark per", j.WatermarkPer, "", ""},
		{"idle after", millis(j.IdleAfterMS), "", ""},
		{"checkpoint every", millis(j.CheckpointIntervalMS), "", ""},
		{"delivery", j.Delivery, "", ""},
		{"sink", j.Sink, "", ""},
		{"state", j.State, "", ""},
		{"skew", results.FormatNumber(int64(j.Skew), "row"), "the lead of a partition when interleaved anew", ""},
		{"catch-up rate", count(j.CatchUpRate) + "/s", "rows of a reader in a backlog", ""},
	}
	if j.RetentionMS > 0 {
		facts = append(facts, fact{"retention", millis(j.RetentionMS), "of the source: a later replay lacks older rows", ""})
	}
	for _, a := range j.Adds {
		facts = append(facts, fact{a.Column, a.Function, "added by the query", ""})
	}
	if s := j.Spark; s != nil {
		facts = append(facts, sparkFacts(s)...)
	}
	return facts
}

// sparkFacts are what the micro-batch queries ran in.
func sparkFacts(s *results.SparkJob) []fact {
	trigger, most, cost := "when all has arrived", "", "nothing"
	if s.TriggerMS > 0 {
		trigger = "every " + millis(s.TriggerMS)
	} else if s.Trigger == "processing-time" {
		trigger = "when the one before has ended"
	}
	if s.MaxRows > 0 {
		most = "at most " + results.FormatNumber(int64(s.MaxRows), "row")
	}
	if s.BatchCostMS > 0 || s.CostRowsPerSecond > 0 {
		cost = millis(s.BatchCostMS)
		if s.CostRowsPerSecond > 0 {
			cost += " and 1 s for " + results.FormatNumber(s.CostRowsPerSecond, "row")
		}
	}
	noData, policy := "off", ""
	if s.NoDataBatches {
		noData = "on"
	}
	if s.Inputs > 1 {
		policy = "watermark policy " + s.WatermarkPolicy
	}
	facts := []fact{
		{"Spark", s.Version, "", ""},
		{"micro-batch", trigger, most, "micro-batch"},
		{"no-data batches", noData, "", ""},
		{"inputs", count(int64(s.Inputs)), policy, ""},
		{"a batch takes", cost, "", ""},
	}
	if s.MigrateMS > 0 {
		facts = append(facts, fact{"migration", "after " + millis(s.MigrateMS), "overlap " + millis(s.OverlapMS), ""})
	}
	return facts
}

// columnsOf lists the columns of example rows but for the event time, which has a column of its own.
func columnsOf(examples []results.Example) []string {
	columns := map[string]bool{}
	for _, e := range examples {
		for name, value := range e.Row {
			columns[name] = columns[name] || value != e.Event
		}
	}
	maps.DeleteFunc(columns, func(_ string, shown bool) bool { return !shown })
	return slices.Sorted(maps.Keys(columns))
}

func newSection(s *results.Strategy) section {
	f := s.Fates
	return section{
		Strategy: s,
		Fates: []fate{
			{"kept", f.Kept}, {"suppressed", f.Suppressed}, {"leaked", f.Leaked}, {"late copy", f.LateCopy},
			{"late first", f.LateFirst}, {"swallowed", f.Swallowed}, {"replaced", f.Replaced},
			{"diverted", f.Diverted}, {"pending", f.Pending},
		},
		Columns: columnsOf(s.Examples),
		Skew:    skew(s.Subtasks),
	}
}

// skew compares the busiest subtask with the mean.
func skew(subtasks []results.Subtask) string {
	var sum, most int64
	for _, t := range subtasks {
		sum += t.Rows
		most = max(most, t.Rows)
	}
	if sum == 0 {
		return ""
	}
	return fmt.Sprintf("The busiest subtask handled %.2f times the mean.",
		float64(most)*float64(len(subtasks))/float64(sum))
}

// Verdict returns the strategy's verdict on a requirement.
func (s section) Verdict(r results.Requirement) results.Verdict {
	for _, v := range s.Verdicts {
		if v.Requirement == r.Name && v.Bound == r.Bound {
			return v
		}
	}
	if s.Refused != "" {
		return results.Verdict{Requirement: r.Name, Bound: r.Bound, Verdict: results.Refused, Evidence: s.Refused}
	}
	return results.Verdict{Requirement: r.Name, Bound: r.Bound, Verdict: results.Undetermined}
}

// Replays returns the strategy's replays under a cause; it has none when Replays is 0.
func (s section) Replays(cause string) results.Determinism {
	for _, d := range s.Determinism {
		if d.Cause == cause {
			return d
		}
	}
	return results.Determinism{}
}

// Differences are the causes that change something, with the stories that tell it.
func (s section) Differences() []results.Determinism {
	return slices.DeleteFunc(slices.Clone(s.Determinism), func(d results.Determinism) bool { return len(d.Stories) < 2 })
}

// Lead says in a few words where the strategy stands.
func (s section) Lead() string {
	if s.Refused != "" {
		return "refused"
	}
	return fmt.Sprintf("meets %s, %s dups left, %s lost, wait p99 %s", meets(s.Strategy), count(s.Leaked),
		lost(s.Strategy), p99(s.Latency.Wait))
}

// spaced writes a name of results.json as words.
func spaced(name string) string {
	return strings.ReplaceAll(name, "_", " ")
}

// mark is the sign of a verdict, which never stands without its word or number.
func mark(verdict string) string {
	switch verdict {
	case results.Pass:
		return "✓"
	case results.Fail:
		return "✕"
	case results.Refused:
		return "⊘"
	case results.NotApplicable:
		return "–"
	}
	return "?"
}

// kind is the style sheet's class for a verdict.
func kind(verdict string) string {
	switch verdict {
	case results.Pass, results.Fail, results.Refused:
		return verdict
	}
	return "open"
}

// agreement is a cell of the determinism matrix: in how many replays the result is the same, and in what.
type agreement struct {
	Strategy, About string
	What, Class     string
	Same, Of        int
	Example         string
}

// newAgreement makes a cell of the gravest difference; the example is only shown where replays differ.
func newAgreement(strategy string, d results.Determinism) agreement {
	a := agreement{Strategy: strategy, What: "same", Class: "pass", Same: d.SameOrder, Of: d.Replays}
	switch d.Replays {
	case d.SameOrder:
		return a
	case d.SameChanges:
		a.What, a.Class = "order", "part"
	case d.SameTable:
		a.What, a.Class, a.Same = "changes", "part", d.SameChanges
	default:
		a.What, a.Class, a.Same = "table", "fail", d.SameTable
	}
	a.About = fmt.Sprintf("%s: same %s under %s", strategy, a.What, d.Cause)
	a.Example = d.Example
	return a
}
