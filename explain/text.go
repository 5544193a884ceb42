package explain

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"deduplab/strategies"
)

// width is the number of columns that a page keeps within, but for code.
const width = 100

// titles are the headings of the topics. The first five are the points of the review.
var titles = map[string]string{
	"state":       "1 STATE",
	"changelog":   "2 APPEND-ONLY OR UPDATING",
	"late events": "3 LATE EVENTS",
	"latency":     "4 LATENCY",
	"determinism": "5 DETERMINISM",
	"loses":       "WHEN IT LOSES DATA",
	"leaks":       "WHEN COPIES LEAK",
}

// Text writes the page for people.
func (p *Page) Text(w io.Writer) error {
	t := &text{}
	if p.Query != nil {
		t.query(p)
	}
	t.strategy(p)
	if p.Code != "" {
		t.section("DEPLOY (" + p.Language + ")")
		for line := range strings.SplitSeq(p.Code, "\n") {
			t.line("%s", strings.TrimRight("  "+line, " "))
		}
	}
	t.plan(p)
	t.downstream(p)
	for _, topic := range p.Topics {
		t.section(titles[topic.Topic])
		for _, f := range topic.Facts {
			t.item(f.Text, f.Source)
		}
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// text collects the lines of a page.
type text struct{ strings.Builder }

// query says what a query was taken for.
func (t *text) query(p *Page) {
	t.line("The query becomes %s: strategy %s", p.Plan.Operator, p.Strategy)
	t.section("WHY")
	for _, why := range p.Query.Why {
		t.item(why, "")
	}
	for _, note := range p.Query.Notes {
		t.item("note: "+note, "")
	}
	if p.Query.Consumer != "" {
		t.item("does what stands behind it take its rows? "+p.Query.Consumer, "")
	}
	t.section("IN A SCENARIO")
	if p.Query.Job == "" {
		t.line("  %s", p.Query.Entry)
	} else {
		t.line("  %s\n  strategies:\n    %s", p.Query.Job, p.Query.Entry)
	}
	t.line("")
}

// strategy says what it does, and with which parameters.
func (t *text) strategy(p *Page) {
	if p.Query != nil && p.Query.LeftOut != "" {
		t.wrapped(p.Strategy+": "+p.Query.LeftOut, "", "", "("+p.Engine+")")
	} else {
		t.wrapped(p.Strategy+": "+p.About, "", "", "("+p.Engine+")")
		t.line("")
		t.wrapped(p.Loses, "", "", "")
	}
	if len(p.Params) > 0 {
		t.section("PARAMETERS")
		for _, param := range p.Params {
			t.param(param)
		}
	}
}

// plan says what the engine makes of the strategy.
func (t *text) plan(p *Page) {
	t.section("PLAN")
	t.field("operator", p.Plan.Operator)
	class, folder := p.Plan.Runtime, ""
	if dot := strings.LastIndexByte(class, '.'); dot >= 0 {
		class, folder = class[dot+1:], class[:dot]
	}
	t.field("runtime", class)
	if folder != "" {
		t.field("", "in "+folder)
	}
	t.field("clock", p.Plan.Clock)
	t.field("state", p.Plan.StateClass)
	t.field("state ends", p.Plan.TTL)
	for _, d := range p.Declared {
		mode := "[" + strings.Join(d.Changelog, ",") + "]"
		if d.Refused != "" {
			mode = "refused, see below"
		}
		if d.Sink == p.Plan.Sink {
			mode += ", the sink of the scenario"
		}
		t.field("declared", d.Sink+" sink: "+mode)
	}
	if p.Plan.Misdeclared != "" {
		t.field("fault", "updates come out that are not declared: "+p.Plan.Misdeclared)
	}
	if p.Plan.Spark != "" {
		t.field("engine", "Spark "+p.Plan.Spark+", Structured Streaming in micro-batches")
	} else if recorded := string(strategies.Flink23); p.Plan.Flink != recorded {
		t.field("engine", "Flink "+p.Plan.Flink+"; the facts below are those of "+recorded+", which was recorded")
	}
	facts := len(p.Topics) > 0
	if changelog := p.Plan.Input == "changelog"; changelog && !facts {
		t.field("input", p.Plan.Input+": the source sends updates and deletes")
	} else if changelog {
		t.field("input", p.Plan.Input+": the source sends updates and deletes. Facts below that do not speak of one "+
			"are those of a source of inserts")
	}
	if p.Plan.MiniBatch != "" && !facts {
		t.field("mini-batch", p.Plan.MiniBatch)
	} else if p.Plan.MiniBatch != "" {
		t.field("mini-batch", p.Plan.MiniBatch+". Facts below that do not speak of one are those without")
	}
}

// downstream says who takes what the strategy sends.
func (t *text) downstream(p *Page) {
	t.section("WHO ACCEPTS IT DOWNSTREAM")
	switch {
	case p.Plan.Refused != "":
		t.item("nobody can: "+p.Plan.Refused, "")
	case len(p.Downstream) == 0 && p.Plan.Input != "append":
		t.item("DataStream API: nobody checks. It passes rows on with their kind, so a -D of the source goes straight "+
			"into an append-only sink", strategies.NotRecorded)
	case len(p.Downstream) == 0:
		t.item("no planner looks at a DataStream: this one is insert-only, so whatever takes inserts takes it",
			strategies.NotRecorded)
	}
	for _, d := range p.Downstream {
		t.accepts(d)
	}
}

func (t *text) line(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

func (t *text) section(title string) { t.line("\n%s", title) }

// param is a parameter with its value; one that is long, such as a list of stages, stands on lines of its own.
func (t *text) param(p Param) {
	first, rest := fmt.Sprintf("  %-24s  ", p.Name+" = "+p.Value), strings.Repeat(" ", 28)
	if len(first) > width/2 {
		t.wrapped(strings.ReplaceAll(p.Value, "},{", "}, {"), "  "+p.Name+" = ", "    ", "")
		first = rest
	}
	t.wrapped(p.About, first, rest, "")
}

// field is a name with its value.
func (t *text) field(name, value string) {
	const column = 14
	t.wrapped(value, fmt.Sprintf("  %-*s", column-2, name), strings.Repeat(" ", column), "")
}

// item is a point of a list, and what shows it.
func (t *text) item(s, source string) {
	if source != "" {
		source = "[" + source + "]"
	}
	t.wrapped(s, "  - ", "    ", source)
}

func (t *text) accepts(d Downstream) {
	first := fmt.Sprintf("  %-26s  ", d.Consumer)
	t.wrapped(d.Answer(), first, strings.Repeat(" ", len(first)), "["+d.Source+"]")
}

// wrapped writes words within the width, the first line and the others each behind a margin of their own, and the tail
// in one piece at the end.
func (t *text) wrapped(s, first, rest, tail string) {
	words := strings.Fields(s)
	if tail != "" {
		words = append(words, tail)
	}
	line, empty := first, true
	for _, word := range words {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			t.line("%s", line)
			line, empty = rest, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	t.line("%s", line)
}
