package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"deduplab/harness"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// Run replays a case and returns where the lab differs from the recording. The error says that the case cannot be run:
// an unknown strategy or option, a malformed step.
func Run(c *Case) ([]Diff, error) {
	switch {
	case c.spark != nil:
		return runSpark(c.File, c.spark)
	case c.batch != nil:
		return runBatchJob(c)
	}
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
	schema  stream.Schema
	harness *harness.Harness
	known   map[string]bool // the keys of the rows so far
	behind  *behind         // nil: the sink
	at      stream.Time
	sentTo  stream.Time // the watermark that the consumer has
	clock   stream.Time // the interval of mini-batch if watermarks go by the clock, else 0
	diffs   []Diff

	// After a two-phase batch was split only the rows of all steps together are compared.
	split             bool
	wantRest, gotRest []output
}

func newReplay(c *Case) (*replay, error) {
	schema, err := c.schema()
	if err != nil {
		return nil, err
	}
	id, plan, err := c.plan(schema)
	if err != nil {
		return nil, err
	}
	_, consumer := c.consumer()
	r := &replay{c: c, id: id, plan: plan, schema: schema, known: map[string]bool{}, sentTo: stream.MinTime}
	if r.behind, err = c.newBehind(consumer, plan, schema); err != nil {
		return nil, err
	}
	batches, _ := c.miniBatch() // c.plan has checked it
	if consumer != strategies.WindowAggregate && consumer != strategies.IntervalJoin &&
		!strings.HasPrefix(id.strategy, "rowtime-") && plan.Output != strategies.Windowed {
		r.clock = batches.Latency
	}
	declared := plan.Changelog
	records := harness.NewRecords(schema)
	config := harness.Config{DataStream: c.Consumer == "datastream"}
	if r.behind != nil {
		_, declared, _ = strategies.Accepts(plan, consumer)
		if plan.Key == strategies.ByKey {
			records.Prune(r.behind.handed)
		}
	} else if m := upsertPattern.FindStringSubmatch(c.Consumer); m != nil {
		config.NotNull = strings.Split(m[1], ", ")
	}
	r.differ(-1, "declared_changelog", strings.Join(c.Plan.Declared, ","), strings.Join(declared.Names(), ","))
	config.Plan = &plan
	if newOperator := plan.New; batches.Latency > 0 && r.clock == 0 {
		plan.New = func(ctx *sim.Ctx) sim.Operator {
			ctx.WatermarksEvery(batches.Latency)
			return newOperator(ctx)
		}
	}
	r.harness = harness.NewFor(config, records)
	return r, nil
}

func (r *replay) differ(step int, what, want, got string) {
	if want != got {
		r.diffs = append(r.diffs, Diff{Step: step, What: what, Want: want, Got: got})
	}
}

// step feeds one step and compares. It reports whether the run stops there.
func (r *replay) step(i int) (bool, error) {
	s := &r.c.Steps[i]
	if s.At != nil {
		r.at = stream.Time(*s.At)
	}
	var got result
	got.fail(r.harness.Clock(r.at))
	r.collect(&got, false)
	if r.behind != nil && r.clock > 0 {
		r.advance(&got, strategies.ClockWatermark(r.at, r.clock))
	}
	if err := r.feed(s, &got); err != nil {
		return false, err
	}
	r.collect(&got, s.Watermark != nil)
	if r.behind != nil {
		if s.Checkpoint != nil {
			r.behind.Checkpoint(r.at)
		}
		got.add(r.behind.take(), exactly)
		if r.clock == 0 {
			r.advance(&got, r.harness.State().Watermark)
		}
	}
	r.compareEmits(i, s, &got)
	if s.Error != "" || got.failed {
		r.differ(i, "error", verdict(s.Error != ""), verdict(got.failed))
		return true, nil
	}
	r.compareState(i, s)
	return false, nil
}

// feed feeds what a step has beside the time.
func (r *replay) feed(s *Step, got *result) error {
	switch {
	case got.failed:
	case s.Row != nil:
		kind, record, err := readRow(s.Row, r.schema)
		if err != nil {
			return err
		}
		r.known[r.keyName(record)] = true
		got.fail(r.harness.Record(kind, record))
	case s.Watermark != nil:
		w, err := strconv.ParseInt(string(s.Watermark), 10, 64)
		if err != nil {
			return fmt.Errorf("watermark %s is not a number of milliseconds", s.Watermark)
		}
		got.fail(r.harness.Watermark(stream.Time(w)))
	case s.Checkpoint != nil:
		got.fail(r.harness.Checkpoint())
	case s.Shipment != nil:
		if r.behind == nil {
			return fmt.Errorf("shipment rows need an interval join behind the deduplication")
		}
		return r.behind.ship(s.Shipment)
	}
	return nil
}

// advance moves the watermark of the consumer.
func (r *replay) advance(got *result, w stream.Time) {
	if w > r.sentTo {
		r.sentTo = w
		r.behind.Watermark(w, r.at)
		got.add(r.behind.take(), exactly)
	}
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
	failed  bool
	refused *harness.SinkError // the row that the sink does not take, if that is why
}

// fail notes the error that stops the run.
func (g *result) fail(err error) {
	g.failed = g.failed || err != nil
	errors.As(err, &g.refused)
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
	for _, sent := range r.harness.Take() {
		switch {
		case sent.Side && r.id.strategy != "keyed-process":
			// The recordings of a dead letter queue hold one branch each.
		case r.behind != nil:
			out = append(out, r.behind.handedOn(sent.Kind, sent.Row, r.schema))
			r.behind.change(sent.Kind, sent.Row, sent.At)
		default:
			out = append(out, r.spell(sent))
		}
	}
	if r.behind == nil {
		got.add(out, o)
		return
	}
	if len(out) > 0 {
		got.handed = append(got.handed, piece{out, o})
	}
	got.add(r.behind.take(), r.behind.order(out, o))
}

// spell writes out an emitted row.
func (r *replay) spell(sent harness.Output) output {
	fields := map[string]string{"kind": sent.Kind.String()}
	if sent.Side {
		fields["side_output"] = "duplicates"
	}
	for i, column := range sent.Columns {
		fields[column.Name] = jsonValue(sent.Values[i], column)
	}
	if op, ok := sent.Get("op"); ok {
		fields["op"] = op.Text
	}
	if r.id.rowNumber {
		fields["rn"] = "1"
	}
	if r.id.watermarkColumn {
		for i, column := range r.schema.Columns {
			if i != r.schema.Event && !slices.Contains(r.schema.Key, i) {
				delete(fields, column.Name)
			}
		}
		fields["wm"] = "null"
		w := r.harness.State().Watermark
		if r.clock > 0 {
			w = strategies.ClockWatermark(r.at, r.clock)
		}
		if w != stream.MinTime {
			fields["wm"] = strconv.FormatInt(int64(w), 10)
		}
	}
	return r.output(fields)
}

// output takes a row with its key and time.
func (r *replay) output(fields map[string]string) output {
	schema := r.schema
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
		var text string
		if f.Value[0] != '"' || json.Unmarshal(f.Value, &text) != nil {
			continue
		}
		fields[f.Name] = strconv.Quote(text) // whichever way JSON spelled it
		switch f.Name {
		case "kind", "side_output", "op":
			fields[f.Name] = text
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
		return strconv.Quote(v.Text)
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
