package proof

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

const (
	second = stream.Time(1000)
	none   = stream.MinTime // the watermark before the first one
)

// step is one thing that happens to a strategy at one moment.
type step struct {
	op op
	at stream.Time
	row
	watermark stream.Time
}

type op uint8

const (
	rowOp op = iota
	watermarkOp
	clockOp
	checkpointOp
	restartOp // a checkpoint, and a restart of the job from it
)

// row is a row of the table orders.
type row struct {
	key   string
	event stream.Time
	price int64 // null where NULL
}

const null = stream.NullOrder

// Steps as the examples write them.

func arrives(at, key, event string, price int64) step {
	return step{op: rowOp, at: span(at), row: row{key, span(event), price}}
}
func watermark(at, to string) step { return step{op: watermarkOp, at: span(at), watermark: span(to)} }
func clock(at string) step         { return step{op: clockOp, at: span(at)} }
func checkpoint(at string) step    { return step{op: checkpointOp, at: span(at)} }
func restart(at string) step       { return step{op: restartOp, at: span(at)} }

func span(text string) stream.Time {
	t, err := stream.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return t
}

// ttl is the TTL, the timer and twice the window of all configurations that have one.
const ttl = 10 * second

// Times are drawn from a few, so that they meet often: ties, borders of windows and batches, TTLs that are just over.
var (
	pauses = []stream.Time{0, 1, second, 4 * second, ttl - 1, ttl, ttl + 1}
	events = []stream.Time{second, 2 * second, 4*second + 999, 5 * second, 5*second + 999, 7 * second, 12 * second}
)

// anySteps draws rows, watermarks that advance or do not, jumps of the clock, and whatever else is named.
func anySteps(ops ...op) *rapid.Generator[[]step] {
	return rapid.Custom(func(t *rapid.T) []step {
		at := stream.Time(0)
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			at += rapid.SampledFrom(pauses).Draw(t, "pause")
			s := step{at: at, op: rapid.SampledFrom(append([]op{rowOp, rowOp, rowOp}, ops...)).Draw(t, "op")}
			switch s.op {
			case rowOp:
				s.key = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
				s.event = rapid.SampledFrom(events).Draw(t, "event")
				s.price = rapid.SampledFrom([]int64{1, 2, null}).Draw(t, "price")
			case watermarkOp:
				s.watermark = rapid.SampledFrom(events).Draw(t, "watermark")
			}
			return s
		}), 1, 25).Draw(t, "steps")
	})
}

// config is a strategy with its parameters.
type config struct {
	strategy string
	params   map[string]string
	batch    strategies.MiniBatch
}

// configure reads a configuration: the name of a strategy, then parameters, those of mini-batch last.
func configure(text string) config {
	name, rest, _ := strings.Cut(text, " ")
	c := config{strategy: name, params: map[string]string{}}
	rest, batch, on := strings.Cut(" "+rest, " mini_batch")
	if on {
		c.batch = strategies.MiniBatch{Latency: 3 * second, Size: 1000, Compact: batch == " compact"}
		if batch == " size=2" {
			c.batch.Size = 2
		}
	}
	last := ""
	for _, word := range strings.Fields(rest) {
		if name, value, ok := strings.Cut(word, "="); ok {
			last, c.params[name] = name, value
		} else {
			c.params[last] += " " + word
		}
	}
	return c
}

// plan is the configuration planned for a retracting sink.
func (c config) plan() strategies.Plan {
	strategy, err := strategies.Find(c.strategy)
	if err != nil {
		panic(err)
	}
	args, faults := strategy.Resolve(c.params, schema)
	if len(faults) > 0 {
		panic(faults[0])
	}
	return strategy.Plan(args, strategies.Job{Schema: schema, MiniBatch: c.batch})
}

// with returns the configuration with another parameter.
func (c config) with(param, value string) config {
	params := map[string]string{param: value}
	for name, v := range c.params {
		if name != param {
			params[name] = v
		}
	}
	c.params = params
	return c
}

var schema = stream.Schema{
	Columns: []stream.Column{
		{Name: "order_id", Type: stream.String},
		{Name: "created_at", Type: stream.Timestamp},
		{Name: "price", Type: stream.Int},
	},
	Key: []int{0}, Event: 1,
}

// table is the rows of some steps, by the number of the step.
type table []step

func (t table) Schema() stream.Schema { return schema }

func (t table) Record(tag stream.Tag) stream.Record {
	r := t[tag.Event()]
	return stream.Record{{Text: r.key}, {Int: int64(r.event)}, {Int: r.price, Null: r.price == null}}
}

func (t table) Order(tag stream.Tag, column int) int64 {
	if v := t.Record(tag)[column]; !v.Null {
		return v.Int
	}
	return stream.NullOrder
}

func (t table) Content(tag stream.Tag) uint64 {
	r := t[tag.Event()].row
	return uint64(slices.IndexFunc(t, func(s step) bool { return s.op == rowOp && s.row == r }))
}

// keyOf numbers keys by their letter, so that it does not depend on the steps.
func keyOf(name string) stream.Key { return stream.Key{Lo: uint64(name[0])} }

// change is one row that came out.
type change struct {
	at   stream.Time
	kind stream.Kind
	row
}

// outcome is what a step left behind: the rows that came out at it, those that were diverted, how many were dropped as
// late so far, how many keys are known and how many timers are registered.
type outcome struct {
	changes, diverted []change
	late              int64
	live              int
	timers            sim.TimerCount
}

// world is what a strategy runs in.
type world struct {
	parallelism int
	newTable    func(subtask int, ttl stream.Time) *sim.Table
	checkpoints stream.Time // the interval that the task is told
	// detours lets the rest of the steps happen, before a restart, to the old task and to another from the snapshot.
	detours bool
}

// run feeds the steps to a strategy and returns what each left behind.
func run(c config, steps []step, w world) []outcome {
	r := newRunner(c, steps, w)
	outcomes := make([]outcome, len(steps))
	for i := range steps {
		outcomes[i] = r.step(i)
	}
	return outcomes
}

// runner is a strategy on its way through some steps.
type runner struct {
	spec      sim.TaskSpec
	task      *sim.Task
	steps     table
	watermark stream.Time
	late      int64 // before the last restart
	detours   bool
}

func newRunner(c config, steps []step, w world) *runner {
	plan, records := c.plan(), table(steps)
	changes := plan.Changelog
	if plan.ToChangelog {
		changes = plan.Input
	}
	r := &runner{steps: records, watermark: none, detours: w.detours, spec: sim.TaskSpec{
		Parallelism: max(1, w.parallelism), Readers: 1, Records: records, New: plan.New, Prepare: plan.Prepare(records),
		UpdateBefore: changes.Has(stream.UpdateBefore), NewTable: w.newTable, Jump: true,
		CheckpointInterval: w.checkpoints,
	}}
	r.task = sim.NewTask(r.spec)
	return r
}

func (r *runner) step(i int) outcome {
	s := r.steps[i]
	at := s.at
	r.task.Clock(at)
	switch s.op {
	case rowOp:
		r.task.Row(&stream.Row{Key: keyOf(s.key), Event: s.event, Arrival: at, Tag: stream.NewTag(uint64(i), 0, 0)})
		r.task.Clock(at)
	case watermarkOp:
		r.advance(s.watermark, at)
	case checkpointOp:
		r.task.Checkpoint(at)
	case restartOp:
		r.task.Checkpoint(at)
	}
	o := r.take()
	if s.op == restartOp {
		snapshot, late := r.task.Snapshot(), o.late
		if r.detours {
			other := *r
			other.detours = false
			other.rest(i + 1)
			other.restart(snapshot, late, at)
			other.rest(i + 1)
		}
		r.restart(snapshot, late, at)
	}
	for _, sub := range r.task.Subtasks() {
		o.live += sub.State.LiveKeys
		o.timers.Event += sub.Timers.Event
		o.timers.Proc += sub.Timers.Proc
	}
	return o
}

func (r *runner) rest(from int) {
	for i := from; i < len(r.steps); i++ {
		r.step(i)
	}
}

func (r *runner) advance(w, at stream.Time) {
	if w > r.watermark {
		r.watermark = w
		r.task.SourceWatermark(0, w, at)
		r.task.Watermark(w, at)
	}
}

// restart goes on in a task restored from a snapshot, with so many rows dropped as late. The source forgets its
// watermark, too.
func (r *runner) restart(s *sim.Snapshot, late int64, at stream.Time) {
	r.task, r.watermark, r.late = sim.RestoreTask(r.spec, s, at), none, late
}

// take returns what came out since the last call.
func (r *runner) take() outcome {
	o := outcome{late: r.late}
	for _, sub := range r.task.Subtasks() {
		o.late += sub.LateDropped
	}
	r.task.Drain(func(c *sim.Change, _ stream.Key, parts []stream.Tag) {
		diverted := c.Op == sim.OpDrop && (c.To == sim.Aside || c.To == sim.Diverted)
		if !diverted && c.Op != sim.OpEmit && c.Op != sim.OpRelease && c.Op != sim.OpAgain {
			return
		}
		record := r.steps.Record(c.Tag)
		if parts != nil {
			record = sim.Compose(r.steps, parts)
		}
		out := change{c.At, c.Kind, row{record[0].Text, stream.Time(record[1].Int), record[2].Int}}
		if record[2].Null {
			out.price = null
		}
		if diverted {
			o.diverted = append(o.diverted, out)
			return
		}
		o.changes = append(o.changes, out)
	})
	return o
}

// inOrder is what one step sent, with the order that the engine leaves open fixed: rows that a watermark releases come
// in the order of their times, and the keys of one time, as those of a batch, in any order.
func (c config) inOrder(changes []change, plan strategies.Plan) []change {
	if !c.anyOrder(plan) {
		return changes
	}
	moment := func(out change) stream.Time { return out.event }
	switch {
	case plan.InBatches:
		moment = func(out change) stream.Time { return out.at }
	case plan.Output == strategies.Windowed:
		moment = func(out change) stream.Time { return strategies.WindowEnd(out.event, plan.Window) }
	}
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(moment(a), moment(b)), cmp.Compare(a.key, b.key))
	})
	return changes
}

// anyOrder reports whether the engine leaves the order of keys open.
func (c config) anyOrder(plan strategies.Plan) bool {
	return plan.InBatches || plan.Output == strategies.Windowed || c.strategy == "rowtime-asc"
}

// text writes a change as `lab test` does.
func (c change) text(plan strategies.Plan) string {
	kind, fields := c.kind.String(), []string{"order_id: " + c.key}
	if plan.ToChangelog {
		op := [...]string{"INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"}[c.kind]
		kind, fields = "+I", append([]string{"op: " + op}, fields...)
	}
	end := strategies.WindowEnd(c.event, max(1, plan.Window))
	if plan.Output == strategies.Windowed {
		fields = append([]string{"window_start: " + stream.FormatDuration(end-plan.Window),
			"window_end: " + stream.FormatDuration(end)}, fields...)
	}
	if plan.Output == strategies.WholeRow || plan.Output == strategies.Windowed {
		fields = append(fields, "created_at: "+stream.FormatDuration(c.event))
	}
	if plan.Output != strategies.KeyOnly {
		fields = append(fields, "price: "+priceText(c.price))
	}
	return kind + " {" + strings.Join(fields, ", ") + "}"
}

func priceText(price int64) string {
	if price == null {
		return "null"
	}
	return fmt.Sprint(price)
}

func texts(changes []change, plan strategies.Plan) []string {
	out := make([]string, len(changes))
	for i, c := range changes {
		out[i] = c.text(plan)
	}
	return out
}

// yaml writes a test that `lab test` reads: the steps, and what each should do.
func yaml(name string, c config, steps []step, want []outcome) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("tests:")
	line("  - name: %s", name)
	var params []string
	for _, p := range slices.Sorted(maps.Keys(c.params)) {
		params = append(params, fmt.Sprintf("%s: %q", p, c.params[p]))
	}
	line("    strategy: {%s: {%s}}", c.strategy, strings.Join(params, ", "))
	if m := c.batch; m.Latency > 0 {
		line("    job: {mini_batch: {latency: %s, size: %d, compact: %t}}", stream.FormatDuration(m.Latency), m.Size,
			m.Compact)
	}
	line("    steps:")
	plan, before := c.plan(), outcome{}
	for i, s := range steps {
		line("      - at: %s", stream.FormatDuration(s.at))
		switch s.op {
		case rowOp:
			line("        row: {order_id: %s, created_at: %s, price: %s}", s.key, stream.FormatDuration(s.event),
				priceText(s.price))
		case watermarkOp:
			line("        watermark: %s", stream.FormatDuration(s.watermark))
		case checkpointOp:
			line("        checkpoint: true")
		}
		if out := texts(want[i].changes, plan); len(out) > 0 {
			line("        emits: [\"%s\"]", strings.Join(out, `", "`))
			if len(out) > 1 && c.anyOrder(plan) {
				line("        emits_any_order: true")
			}
		}
		for _, out := range want[i].diverted {
			line("        side_output: [\"%s\"]", change{kind: stream.Insert, row: out.row}.text(strategies.Plan{}))
		}
		if want[i].late != before.late || want[i].live != before.live {
			line("        state: {late_dropped: %d, live: %d}", want[i].late, want[i].live)
		}
		before = want[i]
	}
	return b.String()
}
