package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// runSpark replays a recorded query batch by batch.
func runSpark(file string, c *sparkCase) ([]Diff, error) {
	if c.Batches[0].Today != "" {
		return runSink(file, c)
	}
	r := &sparkReplay{c: c, run: -1, rows: &sparkRows{}}
	if err := r.readConfig(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i := range c.Batches {
		stop, err := r.step(i)
		if err != nil {
			return nil, fmt.Errorf("%s: batch %d: %w", file, i+1, err)
		}
		if stop {
			return r.diffs, nil
		}
	}
	if !r.backlog && r.engine.NoDataBatchDue() {
		r.differ(len(c.Batches)-1, "no-data batch", "none follows", "one follows")
	}
	return r.diffs, nil
}

// sparkReplay is a recorded query that is being run.
type sparkReplay struct {
	c       *sparkCase
	spec    sim.BatchSpec // what config says
	backlog bool          // data batches follow each other directly
	readers int           // partitions of an input

	run    int      // of the batch before; -1: none
	names  []string // of the key's columns in the state: those of the query that has made it
	query  *sparkQuery
	engine *sim.BatchEngine
	saved  *sim.BatchSnapshot // after the last batch that was committed
	said   []string           // the rows that a user's function has returned in this batch
	rows   *sparkRows
	keys   [][]string // by row: how the state spells the values of the key that it had when it came
	diffs  []Diff
}

// The options of a recorded query.
const (
	optionNoData     = "spark.sql.streaming.noDataMicroBatches.enabled"
	optionPolicy     = "spark.sql.streaming.multipleWatermarkPolicy"
	optionPartitions = "spark.sql.shuffle.partitions"
	optionProvider   = "spark.sql.streaming.stateStore.providerClass"
	optionReaders    = "input_partitions"
	optionInput      = "input" // in words: files that lay ready
)

// ofNoAccount begin the options that change nothing that is compared: where state is stored, and how text is read.
var ofNoAccount = []string{"spark.sql.streaming.stateStore.rocksdb.", "spark.sql.streaming.minBatchesToRetain",
	"spark.sql.session.timeZone", "spark.sql.ansi.enabled"}

// readConfig reads the options.
func (r *sparkReplay) readConfig() error {
	r.spec, r.readers = sim.BatchSpec{Records: r.rows, NoDataBatches: true}, 1
	var err error
	for option, value := range r.c.Config {
		switch option {
		case optionNoData:
			r.spec.NoDataBatches, err = strconv.ParseBool(value)
		case optionPolicy:
			switch value {
			case "min":
			case "max":
				r.spec.Policy = sim.MaxWatermark
			default:
				err = errors.New("expected min or max")
			}
		case optionPartitions:
			r.spec.Partitions, err = positive(value)
		case optionReaders:
			r.readers, err = positive(value)
		case optionInput:
			r.backlog = true
		case optionProvider:
		default:
			if !slices.ContainsFunc(ofNoAccount, func(p string) bool { return strings.HasPrefix(option, p) }) {
				err = errors.New("the lab does not know this option")
			}
		}
		if err != nil {
			return fmt.Errorf("config %s: %s: %w", option, value, err)
		}
	}
	r.spec.PartitionOf = func(stage int, row *stream.Row) int {
		var key []sparkValue
		for _, column := range r.query.stages[stage].key {
			key = append(key, r.rows.rows[row.Tag.Event()][column])
		}
		return partitionOf(key, r.spec.Partitions)
	}
	r.spec.CompareKeys, r.spec.NullKey = r.compareKeys, r.nullKey
	r.spec.OnOutput = func(o sim.Output) { r.said = append(r.said, r.spellOutput(o)) }
	return nil
}

func positive(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 10_000 {
		return 0, errors.New("expected a whole number from 1 to 10,000")
	}
	return n, nil
}

func (r *sparkReplay) differ(batch int, what, want, got string) {
	if want != got {
		r.diffs = append(r.diffs, Diff{Step: batch, What: what, Want: want, Got: got, Unit: "batch"})
	}
}

// step runs one batch and compares. It reports whether the case ends there.
func (r *sparkReplay) step(i int) (bool, error) {
	b := &r.c.Batches[i]
	if refused, err := r.start(b); err != nil || refused != "" {
		r.differ(i, "error", orNone(b.failure()), orNone(refused))
		if err == nil {
			r.compareError(i, b, r.query.refusal)
		}
		return true, err
	}
	if due := r.engine.NoDataBatchDue(); !b.Replay && due != b.NoData && !(due && r.backlog) {
		r.differ(i, "no-data batch", follows(b.NoData), follows(due))
	}
	rows, err := r.read(b)
	if err != nil {
		return false, err
	}
	attempt := 1
	if b.Replay {
		attempt = 2
	}
	r.said = nil
	progress := r.engine.RunBatch(r.at(i), rows, attempt)
	failure := conditionOf(r.engine.Err())
	if q, ok := errors.AsType[*sim.QueryError](r.engine.Err()); ok {
		r.compareError(i, b, q)
	}
	r.differ(i, "error", orNone(b.failure()), orNone(failure))
	if failure != "" || b.failure() != "" {
		return true, nil
	}
	r.compare(i, b, progress)
	if b.SinkFailed == "" {
		r.saved = r.engine.Snapshot()
	}
	return false, nil
}

// conditionOf is the condition of the error that ended a query, else its text; empty without an error.
func conditionOf(err error) string {
	if err == nil {
		return ""
	}
	if q, ok := errors.AsType[*sim.QueryError](err); ok {
		return q.Condition()
	}
	return err.Error()
}

func orNone(condition string) string {
	if condition == "" {
		return "none"
	}
	return condition
}

func follows(noData bool) string {
	if noData {
		return "it has no data, because the batch before moved the watermark"
	}
	return "it has rows, because the batch before left the watermark where it was"
}

// start starts the query anew where a batch asks for that: at the beginning, with other code, or to run a batch again.
// It returns the condition with which Spark refuses to.
func (r *sparkReplay) start(b *sparkBatch) (string, error) {
	run, err := r.c.run(b)
	if err != nil || r.engine != nil && run == r.run && !b.Replay {
		return "", err
	}
	before := r.query
	if run != r.run {
		if r.query, err = r.c.query(r.c.Code[run], r.rows); err != nil {
			return "", err
		}
		if r.query.refused != "" {
			return r.query.refused, nil
		}
		if r.rows.schema, err = r.query.schema(); err != nil {
			return "", err
		}
	}
	r.run = run
	spec := r.query.batch.Spec(r.spec, r.query.engineInputs())
	for i := range spec.Stages {
		spec.Stages[i].New = r.query.stages[i].operator(spec.Stages[i].New)
	}
	if len(spec.Inputs) > 1 {
		spec.InputOf = func(row *stream.Row) int { return int(row.Partition) }
	}
	if r.saved == nil {
		r.names = r.query.last().names(r.query)
		r.engine = sim.NewBatchEngine(spec)
		return "", nil
	}
	if before != nil {
		if refused := r.query.batch.RestartRefused(&before.batch); refused != "" {
			return refused, nil
		}
	}
	r.engine = sim.RestoreBatchEngine(spec, r.saved)
	return "", nil
}

// at is the timestamp of a batch.
func (r *sparkReplay) at(i int) stream.Time {
	switch b := &r.c.Batches[i]; {
	case b.Clock != nil:
		return stream.Time(*b.Clock)
	case b.Timestamp != nil:
		return stream.Time(*b.Timestamp)
	}
	return stream.Time(i+1) * 1000
}

// read takes the rows of a batch, in the order in which they reach the shuffle: input by input, and partition by
// partition of an input, over which an in-memory source deals its rows in turn.
func (r *sparkReplay) read(b *sparkBatch) ([]stream.Row, error) {
	var rows []stream.Row
	for input, recorded := range [][]Fields{b.Rows, b.Rows2} {
		if len(recorded) > 0 && input >= len(r.query.inputs) {
			return nil, fmt.Errorf("the query has no second input")
		}
		for reader := range r.readers {
			for i := reader; i < len(recorded); i += r.readers {
				row, ok, err := r.row(input, recorded[i])
				if err != nil {
					return nil, fmt.Errorf("row %d: %w", i+1, err)
				}
				if ok {
					rows = append(rows, row)
				}
			}
		}
	}
	return rows, nil
}

// row takes one row to the operators. It reports whether the query lets it through to them.
func (r *sparkReplay) row(input int, recorded Fields) (stream.Row, bool, error) {
	row := stream.Row{Event: stream.NullTime, Partition: uint16(input), Tag: stream.NewTag(uint64(len(r.rows.rows)), 0, 0)}
	values := make([]sparkValue, len(r.c.Columns))
	var event sparkValue
	for i, column := range r.c.Columns {
		v, err := readSparkValue(recorded.Get(column.Name), column.Type)
		if err != nil {
			return row, false, fmt.Errorf("column %s: %w", column.Name, err)
		}
		values[i] = v
		if name := r.query.inputs[input].event; name == "" && column.Name == r.query.time && !v.null {
			row.Event = stream.Time(v.n)
		}
		if column.Name == r.query.inputs[input].event && !v.null {
			row.Event, event = stream.Time(v.n), v
		} else if column.Name == r.query.inputs[input].event {
			event = v
		}
	}
	for _, project := range r.query.project {
		out, ok, err := project(values)
		if err != nil || !ok {
			return row, false, err
		}
		values = out
	}
	if len(values) < len(r.rows.schema.Columns) {
		values = append(values, event)
	}
	r.rows.rows = append(r.rows.rows, values)
	var key []string
	for _, column := range r.query.last().key {
		key = append(key, values[column].inState())
	}
	r.keys = append(r.keys, key)
	if r.query.keyed != nil {
		row.Key = strategies.HashColumns(r.rows.Record(row.Tag), r.query.keyed)
	}
	return row, true, nil
}

// compare compares what a batch did.
func (r *sparkReplay) compare(i int, b *sparkBatch, p *sim.BatchProgress) {
	number := func(what string, want *int64, got int64) {
		if want != nil {
			r.differ(i, what, strconv.FormatInt(*want, 10), strconv.FormatInt(got, 10))
		}
	}
	number("batch", b.Batch, p.ID)
	if (b.WatermarkBefore != nil) != p.HasWatermark {
		r.differ(i, "watermark_before", yesNo(b.WatermarkBefore != nil), yesNo(p.HasWatermark))
	}
	number("watermark_before", b.WatermarkBefore, int64(p.Watermark))
	number("late_watermark", b.LateWatermark, int64(p.Late))
	after := p.WatermarkAfter
	if b.SinkFailed != "" {
		after = p.Watermark // it was not committed
	}
	number("watermark_after", b.WatermarkAfter, int64(after))
	if b.Emits != nil {
		var want []string
		for _, row := range *b.Emits {
			want = append(want, canonicalFields(row))
		}
		got := r.emitted()
		if r.query.outputs != nil {
			got, want = r.query.outputs.inAnyOrder(r.said), r.query.outputs.inAnyOrder(want)
		}
		r.differ(i, "emits", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
	s := &p.Stages[len(p.Stages)-1] // Spark numbers the operators from the sink: spark-extra edge/chain
	number("state_rows", b.StateRows, s.RowsTotal)
	number("updated", b.Updated, s.RowsUpdated)
	number("removed", b.Removed, s.RowsRemoved)
	number("dropped_by_watermark", b.DroppedByWatermark, s.DroppedByWatermark)
	number("removed_by_ttl", b.RemovedByTTL, s.RowsRemoved)
	number("dropped_duplicates", b.DroppedDuplicates, s.DroppedDuplicates)
	if b.State != nil {
		var want []string
		for _, entry := range *b.State {
			want = append(want, canonicalJSON(entry))
		}
		slices.Sort(want)
		r.differ(i, "state", strings.Join(want, "\n"), strings.Join(r.state(), "\n"))
	}
}

func yesNo(watermark bool) string {
	if watermark {
		return "there is one"
	}
	return "there is none"
}

// emitted takes the rows that the batch has given to the sink.
func (r *sparkReplay) emitted() []string {
	var out []string
	r.engine.Drain(func(c *sim.Change, _ stream.Key, _ []stream.Tag) {
		if c.Op != sim.OpRelease && c.Op != sim.OpRewrite && c.Op != sim.OpAgain {
			return
		}
		fields := map[string]string{}
		for i, v := range r.rows.rows[c.Tag.Event()][:len(r.query.columns.names)] {
			fields[r.query.columns.names[i]] = v.json
		}
		out = append(out, spellFields(fields))
	})
	return out
}

// last is the stage nearest to the sink, which Spark counts as operator 0.
func (q *sparkQuery) last() *sparkStage { return &q.stages[len(q.stages)-1] }

// names are those of the key's columns in the state.
func (s *sparkStage) names(q *sparkQuery) []string {
	if s.keyNames != nil {
		return s.keyNames
	}
	var names []string
	for _, column := range s.key {
		names = append(names, q.columns.names[column])
	}
	return names
}

// operator lets the stage's operators see rows with the event time that they have to it.
func (s *sparkStage) operator(inner func(*sim.BatchCtx) sim.BatchOperator) func(*sim.BatchCtx) sim.BatchOperator {
	if s.event == nil {
		return inner
	}
	return func(c *sim.BatchCtx) sim.BatchOperator { return &retimed{inner(c), s.event} }
}

// retimed is an operator that is given rows with another event time than the one that moves the watermark.
type retimed struct {
	sim.BatchOperator
	event func(row *stream.Row) stream.Time
}

func (o *retimed) Batch(c *sim.BatchCtx, rows []stream.Row) {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Event = o.event(&rows[i])
	}
	o.BatchOperator.Batch(c, rows)
}

// state spells what the last stage holds, sorted. A key that an earlier run with other columns has left keeps their
// names, and so do the keys of today: spark-extra changed/key-order.
func (r *sparkReplay) state() []string {
	var out []string
	stage := r.query.last()
	if stage.stored != nil {
		r.engine.Operators(func(_ int, op sim.BatchOperator) {
			op.(sim.StoredState).Stored(func(s sim.Stored) {
				fields := map[string]string{}
				for i, value := range r.keys[s.Tag.Event()] {
					fields[r.names[i]] = value
				}
				out = append(out, `{"key":`+spellFields(fields)+`,"value":`+stage.stored(s)+"}")
			})
		})
		slices.Sort(out)
		return out
	}
	r.engine.Tables(func(i int, t *sim.Table) {
		if i != len(r.query.stages)-1 {
			return
		}
		t.Each(func(e *sim.Entry) {
			fields := map[string]string{}
			for i, value := range r.keys[e.Tag.Event()] {
				fields[r.names[i]] = value
			}
			out = append(out, `{"key":`+spellFields(fields)+`,"value":`+stage.value(e)+"}")
		})
	})
	slices.Sort(out)
	return out
}

// spellFields spells an object with its members in alphabetical order.
func spellFields(fields map[string]string) string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = quoteJSON(name) + ":" + fields[name]
	}
	return "{" + strings.Join(names, ",") + "}"
}

// canonicalFields spells a recorded row.
func canonicalFields(row Fields) string {
	fields := map[string]string{}
	for _, f := range row {
		fields[f.Name] = canonicalJSON(f.Value)
	}
	return spellFields(fields)
}

// canonicalJSON spells a value in one way: members in alphabetical order, numbers as they were written.
func canonicalJSON(raw json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return string(raw)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return string(raw)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
