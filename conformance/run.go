package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// Run replays a case and returns where the lab differs from the recording. The error says that the case cannot be run:
// an unknown strategy or option, a malformed step.
func Run(c *Case) ([]Diff, error) {
	if strings.HasPrefix(c.Strategy, "watermark-") {
		return runWatermark(c)
	}
	r, err := newReplay(c)
	if err != nil {
		return nil, err
	}
	for i := range c.Steps {
		stop, err := r.step(i)
		if err != nil {
			return nil, fmt.Errorf("%s: step %d: %w", c.File, i+1, err)
		}
		if stop {
			break
		}
	}
	r.compareTotals()
	return r.diffs, nil
}

// replay is a case that is being run.
type replay struct {
	c       *Case
	id      recorded
	plan    strategies.Plan
	records *caseRecords
	prepare func(*stream.Row)
	task    *sim.Task
	op      sim.Operator
	behind  *behind               // nil: the sink
	names   map[stream.Key]string // keys as last_write spells them
	notNull []string              // key columns of an upsert sink
	at      stream.Time
	wm      stream.Time // of the source
	sentTo  stream.Time // the watermark that the consumer has
	clock   stream.Time // the interval of mini-batch if watermarks go by the clock, else 0
	diffs   []Diff

	// After a two-phase batch was split only the rows of all steps together are compared.
	split             bool
	wantRest, gotRest []output
}

func newReplay(c *Case) (*replay, error) {
	records, err := newRecords(c)
	if err != nil {
		return nil, err
	}
	id, plan, err := c.plan(records.schema)
	if err != nil {
		return nil, err
	}
	_, consumer := c.consumer()
	r := &replay{c: c, id: id, plan: plan, records: records, names: map[stream.Key]string{}, wm: stream.MinTime,
		sentTo: stream.MinTime}
	if r.behind, err = c.newBehind(consumer, plan, records.schema); err != nil {
		return nil, err
	}
	batches, _ := c.miniBatch() // c.plan has checked it
	if consumer != strategies.WindowAggregate && consumer != strategies.IntervalJoin &&
		!strings.HasPrefix(id.strategy, "rowtime-") && plan.Output != strategies.Windowed {
		r.clock = batches.Latency
	}
	declared := plan.Changelog
	if r.behind != nil {
		_, declared, _ = strategies.Accepts(plan, consumer)
		if plan.Key == strategies.ByKey {
			records.pruned = r.behind.handed
		}
	}
	r.differ(-1, "declared_changelog", strings.Join(c.Plan.Declared, ","), strings.Join(declared.Names(), ","))
	if m := upsertPattern.FindStringSubmatch(c.Consumer); m != nil {
		r.notNull = strings.Split(m[1], ", ")
	}
	changes := plan.Changelog
	if plan.ToChangelog {
		changes = plan.Input
	}
	r.prepare = plan.Prepare(records)
	r.task = sim.NewTask(sim.TaskSpec{
		Parallelism: 1, Readers: 1, Records: records, Prepare: r.prepare, Jump: true,
		UpdateBefore: changes.Has(stream.UpdateBefore),
		New: func(ctx *sim.Ctx) sim.Operator {
			if batches.Latency > 0 && r.clock == 0 {
				ctx.WatermarksEvery(batches.Latency)
			}
			r.op = plan.New(ctx)
			return r.op
		},
	})
	return r, nil
}

func (r *replay) differ(step int, what, want, got string) {
	if want != got {
		r.diffs = append(r.diffs, Diff{step, what, want, got})
	}
}

// step feeds one step and compares. It reports whether the run stops there.
func (r *replay) step(i int) (bool, error) {
	s := &r.c.Steps[i]
	if s.At != nil {
		r.at = stream.Time(*s.At)
	}
	var got result
	r.task.Clock(r.at)
	r.collect(&got, false)
	if r.behind != nil && r.clock > 0 {
		r.advance(&got, strategies.ClockWatermark(r.at, r.clock))
	}
	released := false
	switch {
	case s.Row != nil:
		if err := r.row(i, &got); err != nil {
			return false, err
		}
	case s.Watermark != nil:
		w, err := strconv.ParseInt(string(s.Watermark), 10, 64)
		if err != nil {
			return false, fmt.Errorf("watermark %s is not a number of milliseconds", s.Watermark)
		}
		// A watermark that does not advance has no effect: StatusWatermarkValve.
		if stream.Time(w) > r.wm {
			r.wm = stream.Time(w)
			r.task.SourceWatermark(0, r.wm, r.at)
			r.task.Watermark(r.wm, r.at)
		}
		released = true
	case s.Checkpoint != nil:
		r.task.Checkpoint(r.at)
	case s.Shipment != nil:
		if r.behind == nil {
			return false, fmt.Errorf("shipment rows need an interval join behind the deduplication")
		}
		if err := r.behind.ship(s.Shipment); err != nil {
			return false, err
		}
	}
	r.collect(&got, released)
	if r.behind != nil {
		if s.Checkpoint != nil {
			r.behind.Checkpoint(r.at)
		}
		got.add(r.behind.take(), exactly)
		if r.clock == 0 {
			r.advance(&got, r.task.Subtasks()[0].Watermark)
		}
	}
	failed := got.failure != ""
	r.compareEmits(i, s, &got)
	if s.Error != "" || failed {
		r.differ(i, "error", verdict(s.Error != ""), verdict(failed))
		return true, nil
	}
	r.compareState(i, s)
	return false, nil
}

// advance moves the watermark of the consumer.
func (r *replay) advance(got *result, w stream.Time) {
	if w > r.sentTo {
		r.sentTo = w
		r.behind.Watermark(w, r.at)
		got.add(r.behind.take(), exactly)
	}
}

// row feeds the row of a step.
func (r *replay) row(i int, got *result) error {
	row, err := r.records.row(i)
	if err != nil {
		return err
	}
	row.Arrival = r.at
	if r.c.Consumer == "datastream" && r.records.null(row.Tag, r.records.schema.Key[0]) {
		got.failure = "a DataStream key selector may not return null"
		return nil
	}
	prepared := row
	if r.prepare != nil {
		r.prepare(&prepared)
	}
	r.names[prepared.Key] = r.records.name(row.Tag, r.plan.Key)
	r.task.Row(&row)
	r.task.Clock(r.at)
	return nil
}

func verdict(fails bool) string {
	if fails {
		return "the run stops here with an error"
	}
	return "no error"
}

// output is one emitted row.
type output struct {
	text string
	key  string // that of the query
	time int64  // that of its timer: equal times may come in any order
}

// result is what the lab did in one step.
type result struct {
	pieces  []piece
	handed  []piece // what a consumer was handed
	failure string  // the error that stops the run
	failing output  // the row that the sink does not take
}

// piece is some of a step's output, in order but for what the engine leaves open.
type piece struct {
	out   []output
	order order
}

func (g *result) add(out []output, o order) {
	if len(out) > 0 {
		g.pieces = append(g.pieces, piece{out, o})
	}
}

// collect takes what the deduplication has sent and hands it to the consumer, if there is one. Released says that a
// watermark released it.
func (r *replay) collect(got *result, released bool) {
	var out []output
	o := exactly
	switch {
	case r.plan.InBatches:
		o = byKey
	case released:
		o = byTime
	}
	r.task.Take(func(c *sim.Change, key stream.Key, parts []stream.Tag) {
		side := c.Op == sim.OpDrop && c.To == sim.Diverted && r.id.strategy == "keyed-process"
		if !side && c.Op != sim.OpEmit && c.Op != sim.OpRelease && c.Op != sim.OpAgain {
			return
		}
		record := r.records.Record(c.Tag)
		if parts != nil {
			record = sim.Compose(r.records, parts)
		}
		if r.behind != nil {
			out = append(out, r.behind.handedOn(c.Kind, record, r.records.schema))
			r.behind.change(c.Kind, record, c.At)
			return
		}
		if got.failure != "" {
			return
		}
		row := r.spell(c.Kind, side, record)
		if got.failure = r.refused(record); got.failure != "" {
			got.failing = row
			return
		}
		out = append(out, row)
	})
	if r.behind == nil {
		got.add(out, o)
		return
	}
	if len(out) > 0 {
		got.handed = append(got.handed, piece{out, o})
	}
	got.add(r.behind.take(), r.behind.order(out, o))
}

// refused is the sink's reason not to take a row.
func (r *replay) refused(record stream.Record) string {
	for i, column := range r.records.schema.Columns {
		if record[i].Null && slices.Contains(r.notNull, column.Name) {
			return fmt.Sprintf("column %s of the sink is NOT NULL", column.Name)
		}
	}
	return ""
}

// spell writes out an emitted row.
func (r *replay) spell(kind stream.Kind, side bool, record stream.Record) output {
	fields := map[string]string{"kind": kind.String()}
	if side {
		fields["side_output"] = "duplicates"
	}
	if r.plan.ToChangelog {
		fields["op"] = [...]string{"INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"}[kind]
		fields["kind"] = "+I"
	}
	schema := r.records.schema
	for i, column := range schema.Columns {
		if r.puts(i) {
			fields[column.Name] = jsonValue(record[i], column)
		}
	}
	if r.plan.Output == strategies.Windowed {
		end := int64(strategies.WindowEnd(stream.Time(record[schema.Event].Int), r.plan.Window))
		fields["window_start"] = strconv.FormatInt(end-int64(r.plan.Window), 10)
		fields["window_end"] = strconv.FormatInt(end, 10)
	}
	if r.id.rowNumber {
		fields["rn"] = "1"
	}
	if r.id.watermarkColumn {
		fields["wm"] = "null"
		w := r.task.Subtasks()[0].Watermark
		if r.clock > 0 {
			w = strategies.ClockWatermark(r.at, r.clock)
		}
		if w != stream.MinTime {
			fields["wm"] = strconv.FormatInt(int64(w), 10)
		}
	}
	return r.output(fields)
}

// puts reports whether the query puts out a column.
func (r *replay) puts(column int) bool {
	schema := r.records.schema
	isKey := slices.Contains(schema.Key, column)
	switch {
	case r.plan.Output == strategies.KeyOnly:
		return isKey
	case r.plan.Output == strategies.KeyAndColumn:
		return isKey || column == r.plan.Column
	case r.plan.Output == strategies.DropEvent:
		return column != schema.Event
	case r.id.watermarkColumn:
		return isKey || column == schema.Event
	}
	return true
}

// output takes a row with its key and time.
func (r *replay) output(fields map[string]string) output {
	schema := r.records.schema
	o := output{text: render(fields), key: fields[schema.Columns[schema.Key[0]].Name]}
	if r.plan.Key == strategies.ByRow {
		_, o.key, _ = strings.Cut(o.text, " ")
	}
	time := fields["window_end"]
	if time == "" {
		time = fields[schema.Columns[schema.Event].Name]
	}
	o.time, _ = strconv.ParseInt(time, 10, 64)
	return o
}

// recordedOutput reads a recorded row.
func (r *replay) recordedOutput(row Fields) output {
	fields := map[string]string{}
	for _, f := range row {
		fields[f.Name] = string(f.Value)
		switch f.Name {
		case "kind", "side_output", "op":
			fields[f.Name] = strings.Trim(string(f.Value), `"`)
		}
	}
	return r.output(fields)
}

// jsonValue spells a value as the recordings do: numbers bare, strings and decimals quoted.
func jsonValue(v stream.Value, c stream.Column) string {
	switch {
	case v.Null:
		return "null"
	case c.Type == stream.String:
		b, _ := json.Marshal(v.Text)
		return string(b)
	case c.Type == stream.Decimal:
		return strconv.Quote(stream.FormatDecimal(v.Int, c.Scale))
	}
	return strconv.FormatInt(v.Int, 10)
}

// render spells a row with its columns in alphabetical order.
func render(fields map[string]string) string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		if name != "kind" && name != "side_output" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = name + ": " + fields[name]
	}
	side := ""
	if s := fields["side_output"]; s != "" {
		side = "side output " + s + " "
	}
	return side + fields["kind"] + " {" + strings.Join(parts, ", ") + "}"
}
