package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"deduplab/results"
)

var (
	//go:embed story.tmpl
	storyTemplate string
	//go:embed trace.tmpl
	traceTemplate string
)

var traceParsed = parse(traceTemplate)

// TraceHTML writes the stories of a trace as one page that needs nothing else.
func TraceHTML(w io.Writer, t *results.Trace) error {
	var b bytes.Buffer
	page := struct {
		*results.Trace
		Strategies []tracedStrategy
		Style      template.CSS
	}{t, told(t), template.CSS(pageStyle)}
	if err := traceParsed.Execute(&b, page); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// TraceTerminal writes the stories of a trace as text: the rows, then strategy by strategy what happened when.
func TraceTerminal(w io.Writer, t *results.Trace) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%sseed %d%s%s\n", t.Scenario, gutter, t.Seed, gutter, t.Chosen)
	shown := ""
	for _, s := range t.Strategies {
		for i := range s.Stories {
			if rows := rowTable(&s.Stories[i]); rows != shown {
				b.WriteString("\n" + rows)
				shown = rows
			}
			b.WriteString("\n" + s.ID + "\n" + storyText(&s.Stories[i]))
		}
		if s.Refused != "" {
			b.WriteString("\n" + s.ID + "\n" + wrap("  refused: ", s.Refused, lineWidth))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// rowTable lists the rows of a story.
func rowTable(s *results.Story) string {
	t := table{right: map[int]bool{0: true}}
	for _, cells := range rowCells(s) {
		t.add(cells...)
	}
	return t.String()
}

// rowCells are the rows of a story as a table, its head first.
func rowCells(s *results.Story) [][]string {
	columns := storyColumns(s)
	out := [][]string{append([]string{"row", "event", "key", "origin", "partition", "arrival", "event time"}, columns...)}
	for i, r := range s.Rows {
		cells := []string{fmt.Sprint(i + 1), letter('A', r.Event), letter('K', 1) + fmt.Sprint(r.Key), r.Origin,
			fmt.Sprint(r.Partition), offset(r.ArrivalMS), momentOf(r.EventMS)}
		for _, c := range columns {
			cells = append(cells, r.Row[c])
		}
		out = append(out, cells)
	}
	return out
}

// tracedStrategy is a strategy of a trace as its page shows it.
type tracedStrategy struct {
	results.TracedStrategy
	Told []toldStory
}

// toldStory is a story, and the rows that it is about unless the story before has the same.
type toldStory struct {
	results.Story
	Head []string
	Rows [][]string
}

// told lays out the stories of a trace.
func told(t *results.Trace) []tracedStrategy {
	var out []tracedStrategy
	shown := ""
	for _, s := range t.Strategies {
		traced := tracedStrategy{TracedStrategy: s}
		for i := range s.Stories {
			story := toldStory{Story: s.Stories[i]}
			if rows := rowTable(&story.Story); rows != shown {
				cells := rowCells(&story.Story)
				shown, story.Head, story.Rows = rows, cells[0], cells[1:]
			}
			traced.Told = append(traced.Told, story)
		}
		out = append(out, traced)
	}
	return out
}

// letter names things by letters: the first is from.
func letter(from rune, n int) string {
	if n > 26 {
		return fmt.Sprintf("%c%d", from, n)
	}
	return string(from + rune(n-1))
}

// storyColumns are the columns of a story's rows, in alphabetical order.
func storyColumns(s *results.Story) []string {
	if len(s.Rows) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(s.Rows[0].Row))
}

// momentOf writes a moment that may be missing.
func momentOf(ms *int64) string {
	if ms == nil {
		return "none"
	}
	return offset(*ms)
}

// storyText lists what happens, moment by moment, and what became of the rows.
func storyText(s *results.Story) string {
	var b strings.Builder
	before := ""
	for _, step := range s.Steps {
		at := offset(step.AtMS)
		if at == before {
			at = strings.Repeat(" ", len(at))
		} else {
			before = at
		}
		fmt.Fprintf(&b, "  %s  %s\n", at, stepText(s, step))
	}
	var fates []string
	for i, r := range s.Rows {
		fates = append(fates, fmt.Sprintf("row %d %s", i+1, r.Fate))
	}
	return b.String() + wrap("  → ", strings.Join(fates, ", "), lineWidth)
}

// stepText says what happens in a step.
func stepText(s *results.Story, step results.StoryStep) string {
	row := ""
	if step.Row > 0 {
		row = fmt.Sprintf("row %d ", step.Row)
	}
	until := ""
	if step.UntilMS != nil {
		until = offset(*step.UntilMS)
	}
	switch step.What {
	case results.Arrives:
		return fmt.Sprintf("%sarrives, the watermark is %s", row, momentOf(s.Rows[step.Row-1].WatermarkMS))
	case results.ComesAgain:
		return row + "is read again"
	case results.Crashes:
		return "the job crashes, and all since its last checkpoint is undone"
	case results.GoesOn:
		return "the job goes on from its last checkpoint"
	case results.Emits:
		return row + "goes out as " + step.Note
	case results.TakesBack:
		return row + "is taken back by " + step.Note
	case results.SendsAgain:
		return row + "goes out again as " + step.Note
	case results.Drops:
		return row + "is dropped: " + step.Note
	case results.GivesUp:
		return row + "is given up: " + step.Note
	case results.Holds:
		return row + "waits in the operator"
	case results.CreatesState, results.WritesState:
		what := map[results.What]string{results.CreatesState: "state is created", results.WritesState: "state is written"}
		if until == "" {
			return what[step.What]
		}
		return what[step.What] + ", it expires at " + until
	case results.RemovesState:
		return "state is removed"
	case results.StateExpires:
		return "state expires"
	case results.SetsTimer:
		return "a timer is set for " + clockOf(step) + until
	case results.TimerFires:
		return "the timer of " + clockOf(step) + until + " fires"
	case results.Visible:
		return row + "is visible to a reader"
	}
	return row + string(step.What)
}

func clockOf(step results.StoryStep) string {
	if step.EventTime {
		return "event time "
	}
	return ""
}

// swimlane is a story as a table: a column for each moment, a row for each lane.
type swimlane struct {
	Moments []string
	Lanes   []lane
	Fates   []string // of the rows
}

// lane is one row of a swim lane.
type lane struct {
	Name  string
	Cells []laneCell
}

// laneCell is what happens in a lane at a moment. On says that something lasts: state that is there, a row that waits;
// Ends that it does not from here on.
type laneCell struct {
	Texts    []string
	On, Ends bool
}

// The lanes, in the order of a row's way.
var laneOf = map[results.What]string{
	results.Crashes: "job", results.GoesOn: "job",
	results.Arrives: "in", results.ComesAgain: "in", results.Holds: "waits", results.GivesUp: "waits", results.Drops: "dropped",
	results.CreatesState: "state", results.WritesState: "state", results.RemovesState: "state",
	results.StateExpires: "state", results.SetsTimer: "timer", results.TimerFires: "timer", results.Emits: "out",
	results.TakesBack: "out", results.SendsAgain: "out", results.Visible: "reader",
}

var laneNames = []string{"job", "in", "waits", "state", "timer", "dropped", "out", "reader"}

// newSwimlane lays out a story.
func newSwimlane(story results.Story) swimlane {
	s := &story
	var moments []int64
	for _, step := range s.Steps {
		if len(moments) == 0 || moments[len(moments)-1] != step.AtMS {
			moments = append(moments, step.AtMS)
		}
	}
	out := swimlane{}
	for _, at := range moments {
		out.Moments = append(out.Moments, offset(at))
	}
	for i, r := range s.Rows {
		out.Fates = append(out.Fates, fmt.Sprintf("row %d: %s", i+1, r.Fate))
	}
	for _, name := range laneNames {
		l := lane{Name: name, Cells: make([]laneCell, len(moments))}
		used, next := false, 0
		open := map[int]bool{} // by row; 0 is the state, or the timer
		for m, at := range moments {
			cell := &l.Cells[m]
			cell.On = len(open) > 0
			for ; next < len(s.Steps) && s.Steps[next].AtMS == at; next++ {
				step := s.Steps[next]
				switch lasting(name, step) {
				case begins:
					open[step.Row] = true
				case ends:
					delete(open, step.Row)
				}
				if laneOf[step.What] == name {
					used = true
					cell.Texts = append(cell.Texts, laneText(s, step))
				}
			}
			cell.On, cell.Ends = cell.On || len(open) > 0, cell.On && len(open) == 0
		}
		if used {
			out.Lanes = append(out.Lanes, l)
		}
	}
	return out
}

// What a step does to what lasts in a lane.
const (
	nothing = iota
	begins
	ends
)

func lasting(name string, step results.StoryStep) int {
	switch name + ": " + string(step.What) {
	case "state: creates state", "state: writes state", "waits: holds", "timer: sets timer":
		return begins
	case "job: crashes":
		return begins
	case "job: goes on", "state: crashes", "timer: crashes":
		return ends
	case "state: removes state", "state: state expires", "timer: timer fires", "waits: gives up", "waits: emits":
		return ends
	}
	return nothing
}

// laneText says what happens in a few words.
func laneText(s *results.Story, step results.StoryStep) string {
	row := fmt.Sprintf("row %d", step.Row)
	switch step.What {
	case results.Arrives:
		r := s.Rows[step.Row-1]
		return fmt.Sprintf("%s, %s of event %s; event time %s, watermark %s", row, r.Origin, letter('A', r.Event),
			momentOf(r.EventMS), momentOf(r.WatermarkMS))
	case results.Emits, results.TakesBack, results.SendsAgain:
		return step.Note + " " + row
	case results.Drops, results.GivesUp:
		return row + ": " + step.Note
	case results.Holds, results.Visible:
		return row
	case results.ComesAgain:
		return row + " again"
	case results.CreatesState, results.WritesState:
		what := map[results.What]string{results.CreatesState: "created", results.WritesState: "written"}[step.What]
		if step.UntilMS != nil {
			what += ", until " + offset(*step.UntilMS)
		}
		return what
	case results.SetsTimer:
		return "set for " + clockOf(step) + momentOf(step.UntilMS)
	case results.TimerFires:
		return "fires"
	case results.StateExpires:
		return "expires"
	case results.RemovesState:
		return "removed"
	}
	return string(step.What)
}

// storyLead says in a line what a story is about.
func storyLead(s results.Story) string {
	var fates []string
	for i, r := range s.Rows {
		if i == 6 {
			fates = append(fates, fmt.Sprintf("and %d more", len(s.Rows)-i))
			break
		}
		fates = append(fates, r.Origin+" "+r.Fate)
	}
	return strings.Join(fates, ", ")
}
