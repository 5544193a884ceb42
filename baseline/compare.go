package baseline

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"deduplab/results"
)

// Difference is all that differs between a baseline and a run.
type Difference struct {
	// Scenario says what of the scenario has changed since the baseline was written, which is stale then; Reasons what
	// else explains numbers that moved.
	Scenario, Reasons []string
	Strategies        []Moved
}

// Moved is what moved of one strategy.
type Moved struct {
	ID    string
	Lines []string // what moved: then -> now
	First *Event   // whose fate changed; nil: none is known to have
}

// Event is the first event whose fate changed. Where the baseline does not know which one that is, Then is empty, and the
// change is at an event from Number to before End.
type Event struct {
	Number, End uint64
	Then, Now   string
}

// Any reports whether there is a difference.
func (d *Difference) Any() bool { return len(d.Scenario) > 0 || len(d.Strategies) > 0 }

// Compare holds a run, as the baseline that it would become, against the one that is kept. FateOf tells the fate of an
// event in the run.
func Compare(then, now *Baseline, fateOf func(id string, event uint64) string) *Difference {
	d := &Difference{Scenario: changedScenario(then, now)}
	for i := range then.Strategies {
		if old := &then.Strategies[i]; now.strategy(old.ID) == nil {
			d.Scenario = append(d.Scenario, "strategy "+old.ID+" is gone")
		}
	}
	for i := range now.Strategies {
		s := &now.Strategies[i]
		old := then.strategy(s.ID)
		if old == nil {
			d.Scenario = append(d.Scenario, "strategy "+s.ID+" is new")
			continue
		}
		if params := changedParams(old, s); params != "" {
			d.Scenario = append(d.Scenario, params)
		}
		moved := Moved{ID: s.ID, Lines: changes(old, s)}
		if old.Refused == "" && s.Refused == "" {
			moved.First = firstEvent(then, now, old, s, func(event uint64) string { return fateOf(s.ID, event) })
		}
		if len(moved.Lines) > 0 || moved.First != nil {
			d.Strategies = append(d.Strategies, moved)
		}
	}
	if len(d.Strategies) > 0 {
		d.Reasons = reasons(then, now, len(d.Scenario) > 0)
	}
	return d
}

// changedScenario lists the sections of the scenario that have changed.
func changedScenario(then, now *Baseline) []string {
	var out []string
	if then.Seed != now.Seed {
		out = append(out, fmt.Sprintf("seed %d -> %d", then.Seed, now.Seed))
	}
	for _, name := range keys(then.Sections, now.Sections) {
		if then.Sections[name] != now.Sections[name] {
			out = append(out, "section "+name)
		}
	}
	return out
}

func changedParams(then, now *Strategy) string {
	var out []string
	if then.Name != now.Name {
		out = append(out, then.Name+" -> "+now.Name)
	}
	for _, name := range keys(then.Params, now.Params) {
		if a, b := then.Params[name], now.Params[name]; a != b {
			out = append(out, fmt.Sprintf("%s %s -> %s", name, orNone(a), orNone(b)))
		}
	}
	if out == nil {
		return ""
	}
	return "strategy " + now.ID + ": " + strings.Join(out, ", ")
}

// reasons says what explains numbers that moved: what is known to have changed, or who is left to have done it.
func reasons(then, now *Baseline, scenarioChanged bool) []string {
	var out []string
	version := func(what string, then, now int) {
		if then != now {
			out = append(out, fmt.Sprintf("%s: version %d -> %d", what, then, now))
		}
	}
	a, b := then.Versions, now.Versions
	version("the generator", a.Generator, b.Generator)
	version("the engine's rules", a.Rules, b.Rules)
	version("what the lab measures", a.Measuring, b.Measuring)
	same := then.Sections["workload"] == now.Sections["workload"] && then.Seed == now.Seed
	switch {
	case same && then.Stream != now.Stream && a.Generator == b.Generator:
		out = append(out, "the rows are others though the workload and its seed are the same: the trace, "+
			"or the generator")
	case !scenarioChanged && out == nil && then.Edited():
		out = append(out, "the scenario and its rows are the same: the edit by hand, if not the engine's rules")
	case !scenarioChanged && out == nil:
		out = append(out, "the scenario and its rows are the same: the rules of the engine, or what the lab measures")
	}
	return out
}

// changes lists what differs between two runs of a strategy.
func changes(then, now *Strategy) []string {
	var out []string
	text := func(what, then, now string) {
		if then != now {
			out = append(out, fmt.Sprintf("%s: %s -> %s", what, orNone(then), orNone(now)))
		}
	}
	text("refused", then.Refused, now.Refused)
	text("declared changelog", then.Changelog, now.Changelog)
	text("state class", then.Class, now.Class)
	for _, name := range keys(then.Verdicts, now.Verdicts) {
		text("verdict on "+name, then.Verdicts[name], now.Verdicts[name])
	}
	for _, cause := range keys(then.Same, now.Same) {
		text("same table under "+cause, then.Same[cause], now.Same[cause])
	}
	if then.Refused != "" || now.Refused != "" {
		return out // one of the two has no numbers
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(append(results.MetricNames(),
		keys(then.Metrics, now.Metrics)...)))) {
		a, knownA := then.metric(name)
		b, knownB := now.metric(name)
		switch {
		case knownA != knownB:
			text(name, known(name, a, knownA), known(name, b, knownB))
		case a != b:
			out = append(out, fmt.Sprintf("%s: %s -> %s (%s)", name, exact(name, a), exact(name, b), by(name, a, b)))
		}
	}
	return out
}

// metric returns a metric's value; ok is false where it is not known.
func (s *Strategy) metric(name string) (value float64, ok bool) {
	group, _, _ := strings.Cut(name, ".")
	unknown := strings.Fields(s.Unknown)
	if slices.Contains(unknown, name) || slices.Contains(unknown, group) {
		return 0, false
	}
	return s.Metrics[name], true
}

// SetMetrics keeps the metrics that have a name in names, which value answers for.
func (s *Strategy) SetMetrics(names []string, value func(name string) (v float64, ok bool)) {
	s.Metrics = map[string]float64{}
	known := map[string]bool{}
	for _, name := range names {
		if v, ok := value(name); ok {
			group, _, _ := strings.Cut(name, ".")
			known[group] = true
			if v != 0 {
				s.Metrics[name] = v
			}
		}
	}
	var unknown []string
	for _, name := range names {
		group, _, _ := strings.Cut(name, ".")
		if !known[group] {
			unknown = append(unknown, group)
		} else if _, ok := value(name); !ok {
			unknown = append(unknown, name)
		}
	}
	s.Unknown = strings.Join(slices.Compact(unknown), " ")
}

func known(metric string, value float64, ok bool) string {
	if !ok {
		return "unknown"
	}
	return exact(metric, value)
}

// exact writes a value so that two that differ look different.
func exact(metric string, value float64) string {
	switch {
	case value != math.Trunc(value) || results.UnitOf(metric) == results.Share:
		return strconv.FormatFloat(value, 'g', -1, 64)
	case results.UnitOf(metric) == results.Millis:
		return results.FormatCount(int64(value)) + " ms"
	}
	return results.FormatCount(int64(value))
}

// by says how far a value moved.
func by(metric string, then, now float64) string {
	sign := "+"
	if now < then {
		sign = "-"
	}
	far := max(now-then, then-now)
	distance := exact(metric, far)
	if far != math.Trunc(far) {
		distance = strconv.FormatFloat(far, 'g', 3, 64)
	}
	if then == 0 {
		return sign + distance
	}
	return fmt.Sprintf("%s%s, %+.3g %%", sign, distance, 100*(now-then)/math.Abs(then))
}

// firstEvent finds the first event whose fate changed; nil where none did. Of events that are not listed one by one it is
// known only in which range they are.
func firstEvent(then, now *Baseline, a, b *Strategy, fateOf func(event uint64) string) *Event {
	before, err := a.listed()
	if err != nil {
		return nil // Read has looked at them
	}
	after, _ := b.listed()
	last := then.Events // the fates of the events before it are known one by one
	if len(before) >= Listed {
		last = slices.Max(slices.Collect(maps.Keys(before))) + 1
	}
	var first *Event
	for _, event := range slices.Sorted(maps.Keys(union(before, after))) {
		fate, ok := before[event]
		if !ok {
			fate = Kept
		}
		is := "not in the stream"
		if event < now.Events {
			is = fateOf(event)
		}
		if event < last && fate != is {
			first = &Event{Number: event, End: event + 1, Then: fate, Now: is}
			break
		}
	}
	if first != nil || then.Events != now.Events {
		return first
	}
	digests, others := strings.Fields(a.Ranges), strings.Fields(b.Ranges)
	for i := range min(len(digests), len(others)) {
		if digests[i] != others[i] {
			return &Event{Number: max(rangeStart(now.Events, uint64(i)), last), End: rangeStart(now.Events, uint64(i)+1)}
		}
	}
	return nil
}

func union(a, b map[uint64]string) map[uint64]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// keys are the names in either of two maps, in alphabetical order.
func keys[T any](a, b map[string]T) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
