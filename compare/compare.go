// Package compare holds runs side by side: what was judged otherwise, what is measured otherwise, and what of that may
// be chance.
//
// Same scenario and seed give the same numbers, so two runs of one seed are compared exactly: any difference is one.
// Runs over several seeds are compared as samples: a median with its 95 % confidence interval, and a Mann-Whitney U
// test that says whether the difference may be noise.
package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"deduplab/results"
)

// Column is one of the runs that are compared. All others are held against the first.
type Column struct {
	Name string
	Run  *results.Run
}

// Comparison is what differs.
type Comparison struct {
	Columns []Column
	// Warnings say why numbers cannot be compared, or only with care; empty where they can.
	Warnings []string
	// Settings are the parts of the job, of the versions and of the requirements that differ.
	Settings   []Text
	Flips      []Flip
	Strategies []Strategy // that differ in anything
	Same       []string   // ids of those that do not
}

// Flip is a requirement that two of the runs judge otherwise. Where there is no verdict there is nothing to flip.
type Flip struct {
	Strategy, Requirement string
	Cells                 []Verdict // one a column; an empty one where there is none
}

// Verdict is one verdict with the number that decided.
type Verdict struct{ Verdict, Bound, Value, Evidence string }

// Strategy is one strategy's differences.
type Strategy struct {
	ID      string
	In      []bool // the columns that have it
	Texts   []Text
	Metrics []Metric
}

// Text is something that is not a number and differs.
type Text struct {
	Name  string
	Cells []string
}

// Metric is a number that differs.
type Metric struct {
	Name string
	// Headline metrics are those that somebody requires, and those that every report shows.
	Headline bool
	Cells    []Cell
}

// Cell is the value of a metric in one column.
type Cell struct {
	Known bool
	// Center, Low and High are the median and its confidence interval, all the same for a single value, and for fewer
	// than leastSeeds.
	Center, Low, High float64
	N                 int // number of seeds
	// Delta tells the change from the first column: "same", "~" for one that may be chance, or as +12.3 %.
	Delta string
	P     float64 // of a test between samples; 0 for an exact comparison
}

// headline are the metrics that are shown first, beside those that somebody requires.
var headline = []string{
	"residual", "leaked", "lost", "wrong_version", "latency_ms.wait.p99", "latency_ms.settle.p99", "latency_ms.commit.p99",
	"state.keys_live_peak", "state.bytes_peak", "updates",
}

// leastSeeds is how many values the interval of a median needs: below that the smallest and the largest do not enclose
// it with 95 %.
const leastSeeds = 6

// twins are metrics that are others under a second name, or that depend on the machine.
var twins = []string{"fates.leaked", "append_only_violations", "state.physical_bytes"}

// Compare holds runs side by side; there must be at least two.
func Compare(columns []Column) (*Comparison, error) {
	if len(columns) < 2 {
		return nil, fmt.Errorf("there must be at least two runs to compare, and there are %d", len(columns))
	}
	c := &Comparison{Columns: columns}
	c.warn()
	c.settings()
	for _, id := range c.ids() {
		c.strategy(id)
	}
	return c, nil
}

// warn finds what stands in the way of a comparison.
func (c *Comparison) warn() {
	add := func(format string, args ...any) { c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...)) }
	for _, column := range c.Columns {
		if column.Run.Partial {
			add("%s was interrupted after %s: its numbers and verdicts are those of the rows up to then", column.Name,
				stream(column.Run))
		}
	}
	for _, column := range c.Columns {
		if n := len(column.Run.Seeds); n > 0 && n < leastSeeds {
			add("%s ran under %d seeds: a confidence interval needs %d, and few differences stand out of so few",
				column.Name, n, leastSeeds)
		}
	}
	first := c.Columns[0]
	for _, other := range c.Columns[1:] {
		a, b := &first.Run.Workload, &other.Run.Workload
		sameSeeds := first.Run.Seed == other.Run.Seed && slices.Equal(first.Run.Seeds, other.Run.Seeds)
		switch {
		case a.Spec != b.Spec:
			add("%s and %s ran on different streams (%s and %s): verdicts can be compared, numbers cannot", first.Name,
				other.Name, stream(first.Run), stream(other.Run))
		case first.Run.Partial || other.Run.Partial: // that says all
		case sameSeeds && (a.Rows != b.Rows || a.Copies != b.Copies || a.HorizonMS != b.HorizonMS):
			add("%s and %s describe the same stream with the same seed, but its rows differ (%s and %s): another version "+
				"of the generator, or another file, made them", first.Name, other.Name, stream(first.Run), stream(other.Run))
		case !sameSeeds && (len(first.Run.Seeds) == 0 || len(other.Run.Seeds) == 0):
			add("%s and %s have other seeds, so numbers differ by chance too: lab run --seeds 10 tells how much",
				first.Name, other.Name)
		}
	}
}

// stream is a run's stream in a few words.
func stream(r *results.Run) string {
	return fmt.Sprintf("%s: %s rows, %s copies", r.Scenario, results.FormatCount(r.Workload.Rows),
		results.FormatCount(r.Workload.Copies))
}

// settings finds what the runs were told differently.
func (c *Comparison) settings() {
	facts := func(r *results.Run) map[string]string {
		m := fields("job", r.Job)
		for name, version := range r.Versions {
			m["version of "+name] = version
		}
		for _, q := range r.Require {
			m["require "+q.Name] = q.Bound
		}
		return m
	}
	c.Settings = c.texts(func(i int) map[string]string { return facts(c.Columns[i].Run) })
}

// texts compares named texts, sorted by name.
func (c *Comparison) texts(of func(column int) map[string]string) []Text {
	all := make([]map[string]string, len(c.Columns))
	names := map[string]bool{}
	for i := range c.Columns {
		all[i] = of(i)
		for name := range all[i] {
			names[name] = true
		}
	}
	var out []Text
	for _, name := range slices.Sorted(maps.Keys(names)) {
		t, differs := Text{Name: name}, false
		for i := range all {
			t.Cells = append(t.Cells, all[i][name])
			differs = differs || all[i][name] != all[0][name]
		}
		if differs {
			out = append(out, t)
		}
	}
	return out
}

// ids lists the strategies of all runs in the order in which they come.
func (c *Comparison) ids() []string {
	var ids []string
	for _, column := range c.Columns {
		for i := range column.Run.Strategies {
			if id := column.Run.Strategies[i].ID; !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// strategy compares one strategy.
func (c *Comparison) strategy(id string) {
	s := Strategy{ID: id}
	in := make([]*results.Strategy, len(c.Columns))
	missing := false
	for i, column := range c.Columns {
		if at := slices.IndexFunc(column.Run.Strategies, func(s results.Strategy) bool { return s.ID == id }); at >= 0 {
			in[i] = &column.Run.Strategies[at]
		}
		s.In = append(s.In, in[i] != nil)
		missing = missing || in[i] == nil
	}
	s.Texts = c.texts(func(i int) map[string]string { return words(in[i]) })
	if missing { // that it is not there says all
		s.Texts = nil
	}
	s.Metrics = c.metrics(in)
	flips := c.flips(id, in)
	c.Flips = append(c.Flips, flips...)
	if missing || len(s.Texts)+len(s.Metrics)+len(flips) > 0 {
		c.Strategies = append(c.Strategies, s)
	} else {
		c.Same = append(c.Same, id)
	}
}

// words is what a strategy is beside its numbers.
func words(s *results.Strategy) map[string]string {
	if s == nil {
		return nil
	}
	m := map[string]string{
		"strategy": s.Name, "engine": s.Engine, "refused": s.Refused, "state.class": s.State.Class,
		"declared changelog": strings.Join(s.Declared.Changelog, ", "), "operator": s.Declared.Operator,
	}
	for name, value := range s.Params {
		m["parameter "+name] = value
	}
	for _, d := range s.Determinism {
		m["same table under "+d.Cause] = d.Same()
	}
	return m
}

// flips finds requirements that are judged otherwise.
func (c *Comparison) flips(id string, in []*results.Strategy) []Flip {
	var names []string
	for _, s := range in {
		if s == nil {
			continue
		}
		for _, v := range s.Verdicts {
			if !slices.Contains(names, v.Requirement) {
				names = append(names, v.Requirement)
			}
		}
	}
	var flips []Flip
	for _, name := range names {
		f, differs := Flip{Strategy: id, Requirement: name}, false
		for i, s := range in {
			f.Cells = append(f.Cells, verdictOf(s, name, c.Columns[i].Run))
			for _, other := range f.Cells[:i] {
				differs = differs || f.Cells[i].Verdict != other.Verdict && f.Cells[i].Verdict != "" && other.Verdict != ""
			}
		}
		if differs {
			flips = append(flips, f)
		}
	}
	return flips
}

func verdictOf(s *results.Strategy, requirement string, r *results.Run) Verdict {
	if s == nil {
		return Verdict{}
	}
	for _, v := range s.Verdicts {
		if v.Requirement == requirement {
			value := v.Value
			if n := len(r.Seeds); n > 0 && v.Passed > 0 && v.Passed < n {
				value = strings.TrimSpace(fmt.Sprintf("%s (passes with %d of %d seeds)", value, v.Passed, n))
			}
			return Verdict{v.Verdict, v.Bound, value, v.Evidence}
		}
	}
	return Verdict{}
}

// metrics compares the numbers of a strategy: the headline first, then by name.
func (c *Comparison) metrics(in []*results.Strategy) []Metric {
	names := slices.Clone(headline)
	for _, column := range c.Columns {
		for _, q := range column.Run.Require {
			if slices.Contains(results.MetricNames(), q.Name) && !slices.Contains(names, q.Name) {
				names = append(names, q.Name)
			}
		}
	}
	first := len(names)
	for _, name := range results.MetricNames() {
		if !slices.Contains(names, name) && !slices.Contains(twins, name) {
			names = append(names, name)
		}
	}
	var out []Metric
	for i, name := range names {
		m := Metric{Name: name, Headline: i < first}
		differs := false
		var base []float64
		for j, s := range in {
			values := samples(s, name, c.Columns[j].Run)
			cell := summarize(values)
			if j == 0 {
				base = values
			} else {
				cell.compare(base, values)
				differs = differs || cell.Delta != "same"
			}
			m.Cells = append(m.Cells, cell)
		}
		if differs {
			out = append(out, m)
		}
	}
	return out
}

// samples are the values of a metric: one for each seed, or one.
func samples(s *results.Strategy, metric string, r *results.Run) []float64 {
	if s == nil || s.Refused != "" {
		return nil
	}
	if values, ok := s.Samples[metric]; ok {
		return values
	}
	v, ok := s.Metric(metric)
	if !ok {
		return nil
	}
	return slices.Repeat([]float64{v}, max(len(r.Seeds), 1))
}

func summarize(values []float64) Cell {
	switch {
	case len(values) == 0:
		return Cell{}
	case len(values) == 1:
		return Cell{Known: true, Center: values[0], Low: values[0], High: values[0], N: 1}
	}
	s := benchmath.AssumeNothing.Summary(sample(values), 0.95)
	if len(values) < leastSeeds {
		s.Lo, s.Hi = s.Center, s.Center
	}
	return Cell{Known: true, Center: s.Center, Low: s.Lo, High: s.Hi, N: len(values)}
}

// compare says how far the values are from those of the first column.
func (cell *Cell) compare(base, values []float64) {
	a, b := summarize(base), *cell
	switch {
	case !a.Known && !b.Known:
		cell.Delta = "same"
	case !a.Known:
		cell.Delta = "new"
	case !b.Known:
		cell.Delta = "gone"
	case slices.Equal(base, values), a.N != b.N && constant(append(slices.Clone(base), values...)):
		cell.Delta = "same"
	case len(base) == 1 && len(values) == 1:
		cell.Delta = change(a.Center, b.Center)
	default:
		test := benchmath.AssumeNothing.Compare(sample(base), sample(values))
		cell.P = min(test.P, 1) // of few values with ties it comes out above 1
		cell.Delta = "~"
		if test.P < test.Alpha {
			cell.Delta = change(a.Center, b.Center)
		}
	}
}

// constant reports whether all values are one.
func constant(values []float64) bool { return slices.Min(values) == slices.Max(values) }

func sample(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
}

// change writes a difference in percent, or from 0 as it is.
func change(a, b float64) string {
	switch {
	case a == b:
		return "same"
	case a == 0:
		return "up from 0"
	}
	percent := (b - a) / a * 100
	switch {
	case percent > 1000:
		return fmt.Sprintf("x%.3g", b/a)
	case percent > -0.05 && percent < 0.05:
		return fmt.Sprintf("%+.2g %%", percent)
	}
	return fmt.Sprintf("%+.1f %%", percent)
}
