// Package semantics reads and runs the tests that users write: on these rows I expect this changelog.
//
// A file is YAML with a list of tests. Each names a strategy, as a scenario does, and feeds it step by step:
//
//	tests:
//	  - name: an earlier row replaces a waiting one
//	    about: prose                        # optional, as all below but steps
//	    strategy: rowtime-asc               # or with parameters: {rowtime-asc: {ttl: 2h}}
//	    columns: {id: STRING, ts: TIMESTAMP_LTZ(3)}   # default: the article's orders table
//	    key: id                             # default: the first column
//	    event_time: ts                      # default: the first TIMESTAMP
//	    job:
//	      flink: 2.3                        # the version whose rules hold, as in a scenario
//	      input: append                     # or changelog: what the source declares to send
//	      sink: retract                     # or append, upsert, upsert-kafka
//	      mini_batch: {latency: 5s, size: 100, compact: false}
//	      insert_update_after_sensitive: true
//	      readers: 1                        # source readers, each with a watermark of its own
//	    declared: [I]                       # the changelog mode that the planner declares
//	    refused: false                      # true: the planner refuses the sink; there are no steps then
//	    steps:
//	      - row: {at: 0s, order_id: a, created_at: 10s, price: 5}
//	      - row: {at: 1s, order_id: a, created_at: 8s, price: 4}
//	      - watermark: 9s
//	        emits: ["+I {order_id: a, created_at: 8s, price: 4}"]
//	      - state: {entries: 1, timers: 0}
//
// A step does one thing, or nothing but what stands beside it:
//
//	row: {at: 0s, kind: +I, COLUMN: VALUE, ...}   a row; kind is +I unless it says -U, +U or -D
//	rows: [{...}, {...}]                          several
//	rows: {count: 100, every: 10ms, row: {...}}   a run of them; {i} in a value is the number of the row, from 1
//	watermark: 9s                                 the watermark of the source
//	clock: 9s                                     processing time moves
//	checkpoint: true                              a checkpoint is taken
//	restore: true                                 the job goes back to the last one: see [harness.Harness.Restore]
//	idle: true                                    the source reader falls idle; a row or a watermark brings it back
//	end: true                                     the input ends: the last watermark, then the last checkpoint;
//	                                              only a restore can follow
//
// A column that a row does not name has its default: a text is a, a number is 1, a time is the clock. NULL is null.
// Moments are spans since 1970, such as 10s or -5s, or dates such as 2026-01-01T00:00Z. The clock starts at 0s and only
// goes forward. Any step may also have
//
//	at: 9s                       the clock moves there first
//	reader: 0                    the source reader that the row or mark comes from
//	emits: [ROW, ...]            what the step sends, in this order; a ROW is a text such as "+I {order_id: a}"
//	emits: 3                     how many rows it sends
//	emits: any                   whatever it sends
//	emits_any_order: true        in any order: the engine leaves that of keys open in a batch or a window
//	side_output: [ROW, ...]      the same for what is diverted to a side output or a dead letter queue
//	state: {...}                 entries, cached, buffered, live, timers, late_dropped; entries may be split by the
//	                             names of states and timers by event and proc
//	error: true                  the job fails in this step; it is the last one
//
// With the sink upsert-kafka, an upsert sink, emits are the records that the topic gets: +I is a record with its value,
// -D a tombstone, which has the key columns alone. State then also has records and tombstones, counted from the start:
// a restore takes nothing back from a topic.
//
// A step without emits must send nothing, and one without side_output must divert nothing. Of a row only the columns
// that the expectation names are compared. Of state only what is named.
package semantics

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"deduplab/harness"
	"deduplab/stream"
	"deduplab/yml"
)

// File is a file of tests, complete and valid.
type File struct {
	Path  string
	Tests []*Test
}

// Test is one test.
type Test struct {
	File  string
	Line  int
	Name  string
	About string

	config   harness.Config
	topic    bool     // emits are the records of an upsert-kafka topic
	declared []string // nil: not compared
	refused  bool
	columns  []stream.Column // of the result
	named    []string        // the columns that its rows name
	steps    []step
}

// step is one input and what is expected of it.
type step struct {
	node *yml.Node
	what string // for messages: watermark 9s
	at   *stream.Time
	from int
	feed func(*harness.Harness) error // nil: nothing

	emits, side expectation
	state       *yml.Node
	fails       bool
}

// expectation is what is to be sent.
type expectation struct {
	node     *yml.Node // nil: not written, so nothing is to be sent
	any      bool
	count    int // of rows; -1: see rows
	rows     []row
	anyOrder bool
}

// row is an expected row.
type row struct {
	kind    stream.Kind
	columns []string
	values  []stream.Value
}

// Failure is something that a test expects and that is not so.
type Failure struct {
	File string
	Line int
	Step string // which one, and what it does; empty: the test as a whole
	What string // emits, side_output, state, error, declared or refused
	Want []string
	Got  []string
}

// Run runs the test and returns what is not as expected.
func (t *Test) Run() []Failure {
	failures, _ := t.run()
	return failures
}

// run also returns the corrections that make the test pass.
func (t *Test) run() ([]Failure, []correction) {
	r := &runner{test: t}
	h, err := harness.New(t.config)
	refusal, isRefused := errors.AsType[*harness.Refused](err)
	switch {
	case isRefused && t.refused:
		return nil, nil
	case isRefused:
		r.fail(t.Line, "", "refused", []string{"the planner takes the sink"}, []string{refusal.Reason})
		return r.failures, nil
	case err != nil:
		r.fail(t.Line, "", "error", []string{"no error"}, []string{err.Error()})
		return r.failures, nil
	case t.refused:
		r.fail(t.Line, "", "refused", []string{"the planner refuses the sink"}, []string{"it takes it"})
		return r.failures, nil
	}
	if declared := h.Plan().Changelog.Names(); t.declared != nil && !slices.Equal(t.declared, declared) {
		r.fail(t.Line, "", "declared", []string{strings.Join(t.declared, ", ")}, []string{strings.Join(declared, ", ")})
	}
	if t.topic {
		r.topic = newTopic(t.config.Schema, t.columns)
	}
	for i := range t.steps {
		if !r.step(h, i) {
			break
		}
	}
	return r.failures, r.corrections
}

// runner is a test that is being run.
type runner struct {
	test        *Test
	topic       *topic // nil: the sink is no upsert-kafka
	failures    []Failure
	corrections []correction
}

func (r *runner) fail(line int, step, what string, want, got []string) {
	f := Failure{File: r.test.File, Line: line, Step: step, What: what, Want: want, Got: got}
	r.failures = append(r.failures, f)
}

// step feeds one step and compares. It reports whether the test goes on.
func (r *runner) step(h *harness.Harness, i int) bool {
	s := &r.test.steps[i]
	name := fmt.Sprintf("step %d, %s", i+1, s.what)
	var err error
	if s.at != nil {
		err = h.Clock(*s.at)
	}
	if err == nil && s.feed != nil {
		h.From(s.from)
		err = s.feed(h)
	}
	var sent, diverted []harness.Output
	for _, out := range h.Take() {
		if out.Side {
			diverted = append(diverted, out)
		} else {
			sent = append(sent, out)
		}
	}
	if r.topic != nil {
		sent = r.topic.write(sent)
	}
	r.compare(s, name, "emits", &s.emits, sent)
	r.compare(s, name, "side_output", &s.side, diverted)
	if (err != nil) != s.fails {
		want, got := []string{"no error"}, []string{"no error"}
		if s.fails {
			want[0] = "the job fails"
		} else {
			got[0] = err.Error()
		}
		r.fail(s.node.At.Line, name, "error", want, got)
	}
	if err != nil || s.fails {
		return false
	}
	if s.state != nil {
		r.compareState(s, name, h.State())
	}
	return true
}

// compare compares what was sent with what is expected.
func (r *runner) compare(s *step, name, what string, want *expectation, got []harness.Output) {
	line := s.node.At.Line
	if want.node != nil {
		line = want.node.NameAt.Line
	}
	switch {
	case want.any:
		return
	case want.count >= 0:
		if len(got) != want.count {
			count := fmt.Sprint(len(got))
			r.fail(line, name, what, []string{want.node.Text + " rows"}, []string{count + " rows"})
			r.corrections = append(r.corrections, correction{node: want.node, text: []string{count}})
		}
		return
	case want.matches(got):
		return
	}
	shown := want.shown(r.test)
	gotText := make([]string, len(got))
	for i, out := range got {
		gotText[i] = out.Format(shown)
	}
	r.fail(line, name, what, want.texts(got, r.test.columnsOf(what)), gotText)
	c := correction{node: want.node, step: s.node, field: what, text: gotText, rows: true}
	r.corrections = append(r.corrections, c)
}

// matches reports whether the rows are the expected ones.
func (e *expectation) matches(got []harness.Output) bool {
	if len(got) != len(e.rows) {
		return false
	}
	if !e.anyOrder {
		for i := range got {
			if !e.rows[i].is(got[i]) {
				return false
			}
		}
		return true
	}
	// Each expected row takes one that was sent; where it is taken already its taker looks for another one.
	takenBy := make([]int, len(got))
	for i := range takenBy {
		takenBy[i] = -1
	}
	var take func(want int, tried []bool) bool
	take = func(want int, tried []bool) bool {
		for i := range got {
			if tried[i] || !e.rows[want].is(got[i]) {
				continue
			}
			tried[i] = true
			if takenBy[i] < 0 || take(takenBy[i], tried) {
				takenBy[i] = want
				return true
			}
		}
		return false
	}
	for want := range e.rows {
		if !take(want, make([]bool, len(got))) {
			return false
		}
	}
	return true
}

// is reports whether a row that was sent has what is expected.
func (w row) is(got harness.Output) bool {
	if w.kind != got.Kind {
		return false
	}
	for i, name := range w.columns {
		if v, ok := got.Get(name); !ok || v != w.values[i] {
			return false
		}
	}
	return true
}

// shown says which columns of a row that was sent are shown: those that the expectation names, or else those that the
// rows of the test name and those that the query adds.
func (e *expectation) shown(t *Test) func(string) bool {
	var named []string
	for _, row := range e.rows {
		named = append(named, row.columns...)
	}
	if named == nil {
		return func(column string) bool {
			return slices.Contains(t.named, column) || t.config.Schema.Index(column) < 0
		}
	}
	return func(column string) bool { return slices.Contains(named, column) }
}

// texts spells the expected rows. Those that match a row in the same place are spelled as that one.
func (e *expectation) texts(got []harness.Output, columns []stream.Column) []string {
	texts := make([]string, len(e.rows))
	for i, row := range e.rows {
		if i < len(got) && row.is(got[i]) {
			texts[i] = got[i].Format(func(column string) bool { return slices.Contains(row.columns, column) })
			continue
		}
		texts[i] = row.format(columns)
	}
	return texts
}

func (w row) format(columns []stream.Column) string {
	out := harness.Output{Kind: w.kind}
	for _, c := range columns {
		if i := slices.Index(w.columns, c.Name); i >= 0 {
			out.Columns, out.Values = append(out.Columns, c), append(out.Values, w.values[i])
		}
	}
	return out.String()
}

// columnsOf lists the columns of the rows in emits or side_output.
func (t *Test) columnsOf(what string) []stream.Column {
	if what == "side_output" {
		return t.config.Schema.Columns
	}
	return t.columns
}

// number reads one number of the state by its name.
func (r *runner) number(s harness.State, name, part string) int64 {
	switch name + part {
	case "entries":
		return int64(s.Entries)
	case "cached":
		return int64(s.Cached)
	case "buffered":
		return int64(s.Buffered)
	case "live":
		return int64(s.LiveKeys)
	case "timers":
		return int64(s.Timers.Event + s.Timers.Proc)
	case "timersevent":
		return int64(s.Timers.Event)
	case "timersproc":
		return int64(s.Timers.Proc)
	case "late_dropped":
		return s.LateDropped
	case "records":
		return int64(r.topic.Records())
	case "tombstones":
		return int64(r.topic.Tombstones())
	}
	return int64(s.Named[part])
}

// compareState compares the numbers that the test names.
func (r *runner) compareState(s *step, name string, state harness.State) {
	var want, got []string
	compare := func(n *yml.Node, value int64, label string) {
		text := fmt.Sprint(value)
		if text == n.Text {
			return
		}
		want, got = append(want, label+": "+n.Text), append(got, label+": "+text)
		r.corrections = append(r.corrections, correction{node: n, text: []string{text}})
	}
	for _, n := range s.state.Items {
		if n.Kind == yml.Scalar {
			compare(n, r.number(state, n.Name, ""), n.Name)
			continue
		}
		for _, part := range n.Items {
			compare(part, r.number(state, n.Name, part.Name), n.Name+" "+part.Name)
		}
	}
	if want != nil {
		r.fail(s.state.NameAt.Line, name, "state", want, got)
	}
}
