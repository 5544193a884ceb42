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
	Params: []Param{sizeParam, phasesParam},
	Check:  checkSize,
	Plan: func(args Args, job Job) Plan {
		p := windowPlan(args, job, "StreamExecWindowAggregate", minimumOf(job.Schema))
		p.Time = Materialized
		p.Code = tumbleAggCode(args, job)
		if args.Text("phases") == "two" {
			p.Operator = "StreamExecLocalWindowAggregate, StreamExecGlobalWindowAggregate"
			size := args.Duration("size")
			p.New = func(c *sim.Ctx) sim.Operator {
				return &twoPhaseWindow{
					window: *newWindow(c, size, minimumOf(job.Schema), job), local: make([]localBuffer, c.Readers()),
				}
			}
		}
		return job.planned(p)
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
// the global one. A local buffer goes by the watermark of its own reader. It pre-aggregates late rows first, so the late
// counter counts groups, and only when a watermark passes the next window border or at a checkpoint: flink
// tumble-agg/late-same-key, tumble-agg/late-checkpoint.
type twoPhaseWindow struct {
	window
	local []localBuffer // one a reader
}

// localBuffer counts watermarks from 0: until one is above 0 it hands nothing on. flink tumble-agg/negative-time
type localBuffer struct {
	groups      groups
	watermark   stream.Time
	nextTrigger stream.Time
}

func (o *twoPhaseWindow) Rows(c *sim.Ctx, rows []stream.Row) {
	for i := range rows {
		row := &rows[i]
		local := &o.local[row.Reader]
		if local.groups.index == nil {
			local.groups = newGroups()
		}
		c.Hold(row)
		local.groups.buffered(c, o.merge, newGroup(row, o.size), row.Arrival)
	}
}

func (o *twoPhaseWindow) SourceWatermark(c *sim.Ctx, reader int, w stream.Time) {
	local := &o.local[reader]
	if w <= local.watermark {
		return
	}
	local.watermark = w
	if w < local.nextTrigger {
		return
	}
	if local.groups.len() > 0 && fired(local.groups.minEnd, w) {
		o.handOn(c, local)
	}
	local.nextTrigger = w
	if w < stream.MaxTime {
		if local.nextTrigger = WindowEnd(w, o.size) - 1; local.nextTrigger <= w {
			local.nextTrigger += o.size
		}
	}
}

func (o *twoPhaseWindow) BeforeCheckpoint(c *sim.Ctx) {
	for i := range o.local {
		o.handOn(c, &o.local[i])
	}
	o.window.BeforeCheckpoint(c)
}

// handOn sends the groups of a local buffer to the global operator.
func (o *twoPhaseWindow) handOn(c *sim.Ctx, local *localBuffer) {
	local.groups.drain(func(g group) {
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
		n := o.local[i].groups.len()
		s.Buffered += n
		s.Bytes += int64(n * o.groupBytes)
		for id := range o.local[i].groups.index {
			if !o.knows(id) {
				s.LiveKeys++
			}
		}
	}
	return s
}

// knows reports whether the global operator holds a key and window.
func (o *window) knows(id stream.Key) bool {
	_, inState := o.state.index[id]
	_, inBuffer := o.buffer.index[id]
	return inState || inBuffer
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
