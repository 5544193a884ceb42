package strategies

import (
	"fmt"
	"strings"

	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "tumble-agg",
	Engine: "flink-sql",
	About:  "GROUP BY key in a tumbling window, the minimum of each other column, at the window's end",
	Loses: "It loses events that arrive after their window has fired, leaks copies that fall into another window, and " +
		"can emit rows that never existed, because each column takes its minimum by itself.",
	Facts:  tumbleAggFacts,
	Params: []Param{sizeParam, phasesParam},
	Check:  checkSize,
	Plan: func(args Args, job Job) Plan {
		p := windowPlan(args, job, "StreamExecWindowAggregate", minimumOf(job.Schema))
		p.Time = Materialized
		p.Code = tumbleAggCode(args, job)
		if args.Text("phases") == "two" {
			p.Operator = "StreamExecLocalWindowAggregate, StreamExecGlobalWindowAggregate"
			// Lateness is tested when a source hands on its buffer, which is of all keys: flink tumble-agg/late-checkpoint.
			p.SharedCache, p.AtCheckpoints = true, true
			size := args.Duration("size")
			p.New = func(c *sim.Ctx) sim.Operator {
				return &twoPhaseWindow{
					window: *newWindow(c, size, minimumOf(job.Schema), job), local: make([]groups, c.Readers()),
					sources: c.Shared(func() any { return make([]sourceBuffer, c.Readers()) }).([]sourceBuffer),
				}
			}
		}
		return job.notModelled(job.planned(p), "a windowed aggregate that takes rows back (MIN_RETRACT)")
	},
})

const onePhaseOption = "SET 'table.optimizer.agg-phase-strategy' = 'ONE_PHASE';\n\n"

var phasesParam = Param{Name: "phases", Kind: Enum, Values: []string{"two", "one"}, Default: "two",
	About: "table.optimizer.agg-phase-strategy: pre-aggregate at the source (two) or not; a GROUP BY without a window " +
		"does so with mini-batch only"}

// minimumOf merges by taking the minimum of each column by itself, so that the result may be none of the rows: flink
// tumble-agg/ties. MIN leaves NULL out: tumble-agg/null-value.
func minimumOf(schema stream.Schema) merge {
	return func(records stream.Records, stands, later group) (group, stream.Tag, sim.Disposition) {
		if later.parts == nil && stands.parts == nil && records.Content(stands.tag) == records.Content(later.tag) {
			return stands, later.tag, sim.Duplicate
		}
		parts := make([]stream.Tag, len(schema.Columns))
		minimum, candidate := columnsOf(records, stands), columnsOf(records, later)
		for i, column := range schema.Columns {
			parts[i] = partOf(stands, i)
			a, b := minimum[i], candidate[i]
			if !b.Null && (a.Null || b.Compare(a, column.Type) < 0) {
				parts[i] = partOf(later, i)
			}
		}
		stands.parts = parts
		return stands, later.tag, sim.Duplicate
	}
}

// partOf is the row that column i of a group comes from.
func partOf(g group, i int) stream.Tag {
	if g.parts == nil {
		return g.tag
	}
	return g.parts[i]
}

// columnsOf are the columns of what stands for a group.
func columnsOf(records stream.Records, g group) stream.Record {
	if g.parts == nil {
		return records.Record(g.tag)
	}
	return sim.Compose(records, g.parts)
}

// twoPhaseWindow pre-aggregates at each source before the shuffle: Flink's LocalSlicingWindowAggOperator in front of
// the global one. A local buffer goes by the watermark of its own reader. It pre-aggregates late rows first, so the
// late counter counts groups, and only when a watermark passes the next window border or at a checkpoint: flink
// tumble-agg/late-same-key, tumble-agg/late-checkpoint.
type twoPhaseWindow struct {
	window
	local   []groups       // one a reader: of its buffer, the groups that go to this subtask
	sources []sourceBuffer // one a reader, shared by all subtasks
}

// sourceBuffer decides when the buffer of a reader is handed on, whole, whichever subtasks its groups go to. It counts
// watermarks from 0: until one is above 0 it hands nothing on. flink tumble-agg/negative-time
type sourceBuffer struct {
	earliest    stream.Time // window end in the buffer, if filled
	filled      bool
	watermark   stream.Time
	nextTrigger stream.Time
	handsOn     bool // at this watermark
}

func (s *sourceBuffer) add(end stream.Time) {
	if !s.filled || end < s.earliest {
		s.earliest, s.filled = end, true
	}
}

// advance reports whether a watermark empties the buffer. All subtasks ask, and the first one decides.
func (s *sourceBuffer) advance(w, size stream.Time) bool {
	if w <= s.watermark {
		return w == s.watermark && s.handsOn
	}
	s.watermark = w
	if s.handsOn = w >= s.nextTrigger && s.filled && fired(s.earliest, w); s.handsOn {
		s.filled = false
	}
	if w < s.nextTrigger {
		return false
	}
	s.nextTrigger = w
	if w < stream.MaxTime {
		if s.nextTrigger = WindowEnd(w, size) - 1; s.nextTrigger <= w {
			s.nextTrigger += size
		}
	}
	return s.handsOn
}

func (o *twoPhaseWindow) Rows(c *sim.Ctx, rows []stream.Row) {
	for i := range rows {
		row := &rows[i]
		local := &o.local[row.Reader]
		if local.index == nil {
			*local = newGroups()
		}
		g := newGroup(row, o.size)
		o.sources[row.Reader].add(g.end)
		c.Hold(row)
		local.buffered(c, o.merge, g, row.Arrival)
	}
}

func (o *twoPhaseWindow) SourceWatermark(c *sim.Ctx, reader int, w stream.Time) {
	if o.sources[reader].advance(w, o.size) {
		o.handOn(c, reader)
	}
}

func (o *twoPhaseWindow) BeforeCheckpoint(c *sim.Ctx) {
	for reader := range o.local {
		o.sources[reader].filled = false
		o.handOn(c, reader)
	}
	o.window.BeforeCheckpoint(c)
}

// handOn sends the groups of a reader's buffer to the global operator.
func (o *twoPhaseWindow) handOn(c *sim.Ctx, reader int) {
	o.local[reader].drain(func(g group) {
		if fired(g.end, c.Watermark()) {
			c.DropHeldLate(g.key, g.tag, g.behind)
			return
		}
		o.buffer.buffered(c, o.merge, g, c.Now())
	})
}

func (o *twoPhaseWindow) State(c *sim.Ctx) sim.State {
	s := o.window.State(c)
	for i := range o.local {
		n := o.local[i].len()
		s.Buffered += n
		s.Bytes += int64(n * o.groupBytes)
	}
	s.LiveKeys = distinctKeys(append([]groups{o.state, o.buffer}, o.local...)...)
	return s
}

func tumbleAggCode(args Args, job Job) string {
	var b strings.Builder
	b.WriteString(job.ddl("orders") + "\n\n")
	if args.Text("phases") == "one" {
		b.WriteString(onePhaseOption)
	}
	keys := strings.Join(job.keyNames(), ", ")
	fmt.Fprintf(&b, "SELECT window_start, window_end, %s", keys)
	for i, c := range job.Schema.Columns {
		if !isKey(job.Schema, i) {
			fmt.Fprintf(&b, ",\n  MIN(%s) AS %s", c.Name, c.Name)
		}
	}
	fmt.Fprintf(&b, "\nFROM %s\nGROUP BY window_start, window_end, %s;", job.tumble(args.Duration("size")), keys)
	return b.String()
}

// tumbleAggFacts is what is known of the strategy.
var tumbleAggFacts = []Fact{
	{TopicState, "one row for each key and window, with one timer, until the end of the window: " +
		"time-bounded", "tumble-agg/many-keys"},
	{TopicState, "rows wait in a memory buffer; a watermark that closes a window in it, or a checkpoint, moves " +
		"the whole buffer to keyed state", "tumble-agg/checkpoint"},
	{TopicState, "table.exec.state.ttl does nothing: the end of the window removes the state, and a key lives " +
		"one window plus the watermark's delay", "tumble-agg/ttl-ignored"},
	{TopicChangelog, "declared [I], and only +I comes out", "tumble-agg/basic"},
	{TopicChangelog, "its created_at is a minimum and no time attribute any more: a window, MATCH_RECOGNIZE or a " +
		"temporal sort behind it is refused, and an interval join becomes a regular one", "_acceptance"},
	{TopicLate, "a row is late only once its window has fired, which is when the watermark is at window_end - 1 " +
		"ms or above; a row below the watermark in an open window is taken", "tumble-agg/one-phase-late"},
	{TopicLate, "in two phases, the default, late rows are pre-aggregated first: numLateRecordsDropped counts " +
		"one for each key and window, and only when a watermark passes the next window " +
		"border", "tumble-agg/late-same-key"},
	{TopicLate, "or when a checkpoint comes", "tumble-agg/late-checkpoint"},
	{TopicLate, "in one phase it counts rows, at once", "tumble-agg/one-phase-late-same-key"},
	{TopicLatency, "at the end of the window: when the watermark reaches window_end - 1 ms", "tumble-agg/basic"},
	commitLatency,
	{TopicDeterminism, "processing time: closed; a minimum does not depend on the order of " +
		"arrival", "tumble-agg/ties"},
	{TopicDeterminism, "watermarks: open; a row whose window is still open in one run is late in " +
		"another", "tumble-agg/late"},
	opensIdleness,
	{TopicDeterminism, "state TTL: closed; table.exec.state.ttl does nothing here", "tumble-agg/ttl-ignored"},
	opensReplay,
	callsNoFunction,
	{TopicLoses, "any row whose window has fired, the only row of its key among them", "tumble-agg/late"},
	{TopicLoses, "the rows themselves: each column takes its minimum by itself, so what comes out may be a row " +
		"that never was", "tumble-agg/ties"},
	{TopicLoses, "MIN leaves NULL out: a NULL is replaced by another row's value", "tumble-agg/null-value"},
	{TopicLeaks, "copies 1 ms apart come out twice if a window border lies between them", "tumble-agg/two-windows"},
}
