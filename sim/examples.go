package sim

import (
	"deduplab/gen"
	"deduplab/results"
	"deduplab/stream"
)

// The kinds of rows that a ledger keeps a few examples of.
const (
	exampleLeaked      = "leaked"
	exampleLate        = "late"
	exampleLateFirst   = "late first" // so far nothing of its event is in the result
	exampleSwallowed   = "swallowed"
	exampleDiverted    = "diverted"
	exampleSynthesized = "synthesized"
	exampleUpdate      = "update"
	exampleWrong       = "wrong_version"
	exampleSlowest     = "slowest"
)

// ExampleFates are the fates of which examples are kept, as results.json names them.
var ExampleFates = []string{
	"late_first", "swallowed", exampleLeaked, exampleWrong, exampleSynthesized, exampleUpdate, exampleDiverted,
	exampleSlowest, "late_copy",
}

// keptExamples is how many candidates of a kind are kept; whether a late row is a late first shows only at the end.
const keptExamples = 256

// shownExamples is how many of a fate are shown; of leaks, how many of a cause.
const shownExamples = 10

// shownHash is how many digits of a content key are shown: enough to see that two are equal.
const shownHash = 12

// examples are the first rows of each kind.
type examples map[string][]example

type example struct {
	tag   stream.Tag
	at    stream.Time
	cause string
}

func (e examples) keep(kind string, c *Change) {
	if len(e[kind]) < keptExamples {
		e[kind] = append(e[kind], example{tag: c.Tag, at: c.At})
	}
}

// keepLeak keeps the first few leaks of each cause.
func (e examples) keepLeak(c *Change, cause string) {
	if kind := exampleLeaked + cause; len(e[kind]) < shownExamples {
		e[kind] = append(e[kind], example{c.Tag, c.At, cause})
	}
}

// keepSlowest keeps the emission that took longest.
func (e examples) keepSlowest(c *Change) {
	e[exampleSlowest] = append(e[exampleSlowest][:0], example{tag: c.Tag, at: c.At})
}

// Examples returns rows that show what became of rows, up to ten of each fate, worst first.
func (l *Ledger) Examples() []results.Example {
	var out []results.Example
	show := func(fate, kind string, holds func(fate) bool) {
		shown := 0
		for _, e := range l.examples[kind] {
			if shown < shownExamples && (holds == nil || holds(*l.at(e.tag.Event()))) {
				out = append(out, l.example(fate, e))
				shown++
			}
		}
	}
	lost := func(f fate) bool { return f&inResult == 0 }
	show("late_first", exampleLateFirst, lost)
	show("swallowed", exampleSwallowed, func(f fate) bool {
		why := loss(f & lossBits >> lossShift)
		return lost(f) && (why == lostAsDuplicate || why == lostReplaced)
	})
	for _, cause := range results.LeakCauses {
		show("leaked", exampleLeaked+cause, nil)
	}
	show("wrong_version", exampleWrong, func(f fate) bool { return !lost(f) && f&rightRow == 0 })
	show("synthesized", exampleSynthesized, nil)
	show("update", exampleUpdate, nil)
	show("diverted", exampleDiverted, nil)
	show("slowest", exampleSlowest, nil)
	show("late_copy", exampleLate, func(f fate) bool { return !lost(f) })
	return out
}

func (l *Ledger) example(fate string, e example) results.Example {
	w := l.spec.Workload
	from, _ := w.Span()
	out := ExampleOf(w, fate, e.tag)
	out.Cause, out.AtMS = e.cause, int64(e.at-from)
	return out
}

// ExampleOf shows a row of a fate that was sealed when it arrived.
func ExampleOf(w gen.Workload, fate string, tag stream.Tag) results.Example {
	from, _ := w.Span()
	schema, record := w.Schema(), w.Record(tag)
	arrival := int64(w.Arrival(tag) - from)
	out := results.Example{
		Fate: fate, EventNumber: tag.Event(), Origin: w.Origins()[tag.Origin()], AtMS: arrival, ArrivalMS: arrival,
		Partition: w.Partition(tag), Row: map[string]string{},
	}
	for i, v := range record {
		out.Row[schema.Columns[i].Name] = v.Format(schema.Columns[i])
	}
	if hash := out.Row[gen.DedupKey]; len(schema.Key) == 1 && schema.Columns[schema.Key[0]].Name == gen.DedupKey {
		out.Row[gen.DedupKey] = hash[:min(len(hash), shownHash)] + "…"
	}
	out.Event = out.Row[schema.Columns[schema.Event].Name]
	return out
}
