package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"deduplab/baseline"
	"deduplab/gen"
	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/strategies"
	"deduplab/stream"
)

// Version of what is measured: raised by hand whenever the same changes make other numbers.
const Version = 2

// Checked is a run with what it takes to hold it against expectations and a baseline.
type Checked struct {
	Run      *results.Run
	Baseline *baseline.Baseline // what the run would leave
	scenario *scenarios.Scenario
	run      *run
}

// Check runs a scenario as [Run] does, but for what only a report shows: it replays the strategies only where a
// requirement asks for it, and tells no stories.
func Check(ctx context.Context, s *scenarios.Scenario, o Options) (*Checked, error) {
	r, err := newRun(s, o)
	if err != nil {
		return nil, err
	}
	if r.base, err = r.basePass(ctx); err != nil {
		return nil, err
	}
	r.retire()
	if err := r.replay(ctx, r.requiredCauses()); err != nil {
		return nil, err
	}
	c := &Checked{Run: r.result(), scenario: s, run: r}
	c.Baseline = c.baseline()
	return c, nil
}

// baseline puts together what the run would leave.
func (c *Checked) baseline() *baseline.Baseline {
	s, survey := c.scenario, c.run.base.survey
	b := &baseline.Baseline{
		Schema: baseline.Schema, Scenario: s.Name, Seed: s.Seed,
		Versions: baseline.Versions{Generator: gen.Version, Rules: strategies.RulesVersion, Measuring: Version},
		Sections: s.Sections(),
		Stream:   fmt.Sprintf("%016x", survey.digest), Events: uint64(survey.firsts),
	}
	for i := range c.Run.Strategies {
		r := &c.Run.Strategies[i]
		kept := baseline.Strategy{
			ID: r.ID, Name: r.Name, Params: r.Params, Refused: r.Refused, Class: r.State.Class,
			Changelog: strings.Join(r.Declared.Changelog, " "), Verdicts: map[string]string{}, Same: map[string]string{},
		}
		for _, v := range r.Verdicts {
			kept.Verdicts[v.Requirement] = v.Verdict
		}
		for _, d := range r.Determinism {
			kept.Same[d.Cause] = d.Same()
		}
		if r.Refused == "" {
			kept.SetMetrics(gated, r.Metric)
			kept.AddFates(b.Events, func(event uint64) string { return c.fate(i, event) })
		}
		b.Strategies = append(b.Strategies, kept)
	}
	return b
}

// gated are the metrics that are the same on every machine.
var gated = slices.DeleteFunc(results.MetricNames(), func(name string) bool {
	return name == "state.physical_bytes" || name == "state.bytes_per_key"
})

func (c *Checked) fate(strategy int, event uint64) string {
	fate, rows := c.run.base.lanes[strategy].ledger.FateOf(event)
	if rows > 2 {
		return fmt.Sprintf("%s (%d copies)", fate, rows-1)
	}
	return fate
}

// FateOf tells what became of an event in a strategy that ran.
func (c *Checked) FateOf(id string, event uint64) string {
	return c.fate(slices.IndexFunc(c.Run.Strategies, func(s results.Strategy) bool { return s.ID == id }), event)
}

// FirstOther finds the first event of a range that is not kept; ok is false where all are.
func (c *Checked) FirstOther(id string, from, to uint64) (event uint64, ok bool) {
	for event := from; event < to; event++ {
		if c.FateOf(id, event) != baseline.Kept {
			return event, true
		}
	}
	return 0, false
}

// Rows writes the rows of an event, one a line, in order of arrival. Times count from the start of the scenario.
func (c *Checked) Rows(event uint64) []string {
	w := c.run.workload
	from, _ := w.Span()
	schema := w.Schema()
	var lines []string
	for _, tag := range w.Rows(nil, event) {
		record := w.Record(tag)
		columns := make([]string, len(record))
		for i, v := range record {
			columns[i] = schema.Columns[i].Name + "=" + v.Format(schema.Columns[i])
		}
		at := "none"
		if v := record[schema.Event]; !v.Null {
			at = stream.FormatDuration(stream.Time(v.Int) - from)
		}
		lines = append(lines, fmt.Sprintf("%s: event time %s, arrival %s, partition %d: %s", w.Origins()[tag.Origin()], at,
			stream.FormatDuration(w.Arrival(tag)-from), w.Partition(tag), strings.Join(columns, " ")))
	}
	return lines
}

// Expected is an expectation and what came of it.
type Expected struct {
	scenarios.Expectation
	Met      bool
	Got      string // what is in place of it
	Evidence string // one example row, or why
}

// Expected holds the run against the scenario's expectations.
func (c *Checked) Expected() []Expected {
	var out []Expected
	for _, e := range c.scenario.Expect {
		i := slices.IndexFunc(c.Run.Strategies, func(s results.Strategy) bool { return s.ID == e.Strategy })
		if i < 0 {
			continue // it was not to be run
		}
		x := Expected{Expectation: e}
		s := &c.Run.Strategies[i]
		if e.Metric.Name != "" {
			x.judgeMetric(s)
		} else {
			x.judgeVerdict(s)
		}
		out = append(out, x)
	}
	return out
}

func (x *Expected) judgeMetric(s *results.Strategy) {
	if s.Refused != "" {
		x.Got, x.Evidence = results.Refused, s.Refused
		return
	}
	value, ok := s.Metric(x.Metric.Name)
	if !ok {
		x.Got = "unknown"
		return
	}
	x.Met, x.Got = x.Metric.Holds(value), results.FormatMetric(x.Metric.Name, value, x.Metric.Value)
	if !x.Met {
		x.Evidence = evidence(s.ExampleOf(x.Metric.Name))
	}
}

func (x *Expected) judgeVerdict(s *results.Strategy) {
	x.Got = results.Pass
	if s.Refused != "" {
		x.Got, x.Evidence = results.Refused, s.Refused
	}
	for _, v := range s.Verdicts {
		switch {
		case x.Of == v.Requirement:
			x.Got, x.Evidence = v.Verdict, v.Evidence
		case x.Of == "" && x.Got == results.Pass && v.Verdict != results.Pass && v.Verdict != results.NotApplicable:
			x.Got = results.Fail
			x.Evidence = fmt.Sprintf("%s %s: %s", v.Requirement, v.Bound, v.Value)
			if v.Evidence != "" {
				x.Evidence += ", " + v.Evidence
			}
		}
	}
	x.Met = x.Got == x.Verdict
}
