package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// sparkQuery is what the lab makes of the code of a recorded query.
type sparkQuery struct {
	// inputs are the sources, df and df2.
	inputs []sparkInput
	// together says that the watermark stands behind the union: it is one of the rows of both inputs.
	together bool
	// project makes the rows that reach the operators of those that an input holds.
	project []func([]sparkValue) ([]sparkValue, bool, error)
	columns sparkColumns // of the rows that reach the operators
	// window is the length of the windows in a column of type window.
	window stream.Time

	batch  strategies.BatchPlan
	stages []sparkStage // of batch.Stages
	// refused is the condition with which Spark does not start the query, refusal the whole error where the lab tells it.
	refused string
	refusal *sim.QueryError

	// Of a query whose state is the user's: its output mode and state store, the key, the column that it orders by where
	// there is no watermark, and how its rows are spelled, which it looks up.
	mode, provider string
	why, count     string // names of the columns of what a function says
	keyed          []int
	time           string
	outputs        *sparkOutputs
	rows           *sparkRows
}

// sparkInput is a source.
type sparkInput struct {
	event string      // the column of its watermark; empty: none
	delay stream.Time // sim.NoWatermark: none
}

// sparkStage is what the comparison needs to know of a stage.
type sparkStage struct {
	key []int // its columns
	// event is the event time of a row to the operator; nil: Row.Event.
	event func(row *stream.Row) stream.Time
	// value spells what the state holds for a key; stored does where it is the user's, with the names of the key.
	value    func(*sim.Entry) string
	stored   func(sim.Stored) string
	keyNames []string
}

// query reads the code of a run.
func (c *sparkCase) query(code string, rows *sparkRows) (*sparkQuery, error) {
	e, err := parseExpr(code)
	if err != nil {
		return nil, err
	}
	q := &sparkQuery{mode: c.OutputMode, provider: c.Config[optionProvider], rows: rows}
	if n := len(c.OutColumns); n >= len(c.Columns)+2 {
		q.why, q.count = c.OutColumns[n-2].Name, c.OutColumns[n-1].Name
	}
	for _, column := range c.Columns {
		q.columns.names = append(q.columns.names, column.Name)
		q.columns.types = append(q.columns.types, column.Type)
	}
	if err := q.read(e); err != nil {
		return nil, fmt.Errorf("%s: %w", code, err)
	}
	q.batch.Delays = [2]stream.Time{q.inputs[0].delay, q.inputs[len(q.inputs)-1].delay}
	return q, nil
}

// read takes a call after what it is called on.
func (q *sparkQuery) read(e *expr) error {
	if e.Kind == exprName && e.On == nil {
		if e.Name != "df" {
			return fmt.Errorf("there is no input %q, only df and, in a union, df2", e.Name)
		}
		q.inputs = append(q.inputs, sparkInput{delay: sim.NoWatermark})
		return nil
	}
	switch {
	case e.On == nil && e.is("fmgws", 4):
		if err := q.read(e.Args[0]); err != nil {
			return err
		}
		return q.flatMapGroups(e)
	case e.On == nil && e.is("tws_ttl", 3):
		if err := q.read(e.Args[0]); err != nil {
			return err
		}
		return q.transformWithState(e)
	case e.isCall("select") && e.On != nil && e.On.is("agg", 2) && e.On.On != nil && e.On.On.isCall("groupBy") &&
		e.On.On.On != nil:
		if err := q.read(e.On.On.On); err != nil {
			return err
		}
		return q.aggregate(e)
	case e.Kind != exprCall || e.On == nil:
		return fmt.Errorf("the lab does not know %s()", e.Name)
	}
	if err := q.read(e.On); err != nil {
		return err
	}
	switch {
	case e.is("withWatermark", 2):
		if len(q.inputs) == 1 {
			return q.withWatermark(e, &q.inputs[0])
		}
		return q.withWatermarkOfUnion(e)
	case e.is("union", 1):
		return q.union(e.Args[0])
	case e.is("withColumn", 2) && e.Args[0].Kind == exprText:
		return q.withColumn(e.Args[0].Text, e.Args[1])
	case e.Name == "select" && len(q.batch.Stages) == 0:
		return q.selectColumns(e.Args)
	case e.is("dropDuplicates", 0), e.is("dropDuplicates", 1):
		return q.dropDuplicates(e, "drop-duplicates")
	case e.is("dropDuplicatesWithinWatermark", 0), e.is("dropDuplicatesWithinWatermark", 1):
		return q.dropDuplicates(e, "drop-duplicates-within-watermark")
	}
	return fmt.Errorf("the lab does not know %s() with %d arguments", e.Name, len(e.Args))
}

func (q *sparkQuery) withWatermark(e *expr, to *sparkInput) error {
	if e.Args[0].Kind != exprText || e.Args[1].Kind != exprText {
		return fmt.Errorf("withWatermark takes a column and a delay")
	}
	if i, err := q.columns.index(e.Args[0].Text); err != nil {
		return err
	} else if q.columns.types[i] != "timestamp" {
		return fmt.Errorf("withWatermark: column %s is no timestamp", e.Args[0].Text)
	}
	delay, err := sparkInterval(e.Args[1].Text)
	*to = sparkInput{event: e.Args[0].Text, delay: delay}
	return err
}

// withWatermarkOfUnion gives the rows of both inputs one watermark.
func (q *sparkQuery) withWatermarkOfUnion(e *expr) error {
	for i := range q.inputs {
		if q.inputs[i].delay != sim.NoWatermark {
			return fmt.Errorf("the lab knows withWatermark in front of a union or behind it, not both")
		}
		if err := q.withWatermark(e, &q.inputs[i]); err != nil {
			return err
		}
	}
	q.together = true
	return nil
}

// engineInputs are those that have a watermark of their own.
func (q *sparkQuery) engineInputs() int {
	if q.together {
		return 1
	}
	return len(q.inputs)
}

// noEventTime says that the rows of a query have no column of event time left.
const noEventTime = -1

// eventColumn is the column of the event time: that of the left input's watermark, or the window made of it, as long as
// the query has not left it out. Two are refused. WatermarkSupport.findEventTimeColumn; spark-extra
// edge/half-union-right, edge/no-event-time-left, edge/window-and-ts.
func (q *sparkQuery) eventColumn() (column int, refused string) {
	if q.inputs[0].delay == sim.NoWatermark {
		return noEventTime, ""
	}
	column, window := slices.Index(q.columns.names, q.inputs[0].event), slices.Index(q.columns.types, "window")
	switch {
	case column >= 0 && window >= 0:
		return noEventTime, strategies.EventTimesDiffer
	case window >= 0:
		return window, ""
	}
	return column, ""
}

// sparkUnits are the units of an interval in ms.
var sparkUnits = map[string]int64{
	"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000,
}

// sparkInterval reads a span such as 10 seconds.
func sparkInterval(text string) (stream.Time, error) {
	words := strings.Fields(text)
	total := stream.Time(0)
	for i := 0; i+1 < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i], 10, 64)
		unit, ok := sparkUnits[strings.TrimSuffix(strings.ToLower(words[i+1]), "s")]
		if err != nil || !ok {
			return 0, fmt.Errorf("%q is no interval such as 10 seconds", text)
		}
		total += stream.Time(n * unit)
	}
	if len(words) == 0 || len(words)%2 != 0 || total < 0 {
		return 0, fmt.Errorf("%q is no interval such as 10 seconds", text)
	}
	return total, nil
}

// union takes the second input, with or without a watermark.
func (q *sparkQuery) union(e *expr) error {
	other := sparkInput{delay: sim.NoWatermark}
	if e.is("withWatermark", 2) {
		if err := q.withWatermark(e, &other); err != nil {
			return err
		}
		e = e.On
	}
	if e == nil || e.Kind != exprName || e.Name != "df2" || len(q.inputs) != 1 {
		return fmt.Errorf("union takes df2, with a watermark or without, and stands once in a query")
	}
	q.inputs = append(q.inputs, other)
	return nil
}

// withColumn adds a column that is another one as text: F.col("d").cast("string").
func (q *sparkQuery) withColumn(name string, e *expr) error {
	if !e.is("cast", 1) || e.Args[0].Text != "string" || e.On == nil || !e.On.is("col", 1) {
		return fmt.Errorf("withColumn: the lab knows only F.col(...).cast(\"string\")")
	}
	from, err := q.columns.index(e.On.Args[0].Text)
	if err != nil {
		return err
	}
	q.columns = q.columns.with(name, "string")
	to, _ := q.columns.index(name)
	q.project = append(q.project, func(row []sparkValue) ([]sparkValue, bool, error) {
		text, err := row[from].castToString()
		row = slices.Clone(row)
		if to == len(row) {
			return append(row, text), true, err
		}
		row[to] = text
		return row, true, err
	})
	return nil
}

// selectColumns takes columns by name, and a window of the event time by F.window(...).alias(...).
func (q *sparkQuery) selectColumns(args []*expr) error {
	var picked []int // -1: the window
	var columns sparkColumns
	event := -1
	for _, arg := range args {
		name, typ := arg.Text, ""
		i := -1
		var err error
		switch {
		case arg.Kind == exprText:
			if i, err = q.columns.index(name); err != nil {
				return err
			}
			typ = q.columns.types[i]
		case arg.is("alias", 1) && arg.On != nil && arg.On.is("window", 2):
			if event, err = q.columns.index(arg.On.Args[0].Text); err != nil {
				return err
			}
			if q.window, err = sparkInterval(arg.On.Args[1].Text); err != nil {
				return err
			}
			name, typ = arg.Args[0].Text, "window"
		default:
			return fmt.Errorf("select: the lab knows columns by name and F.window(...).alias(...)")
		}
		if typ == "window" && slices.Contains(columns.types, "window") {
			return fmt.Errorf("select: the lab knows one window")
		}
		picked = append(picked, i)
		columns = columns.with(name, typ)
	}
	q.columns = columns
	q.project = append(q.project, func(row []sparkValue) ([]sparkValue, bool, error) {
		var out []sparkValue
		for _, i := range picked {
			switch {
			case i >= 0:
				out = append(out, row[i])
			case row[event].null: // it is in no window
				return nil, false, nil
			default:
				out = append(out, windowOf(stream.Time(row[event].n), q.window))
			}
		}
		return out, true, nil
	})
	return nil
}

// dropDuplicates adds one of the two operators.
func (q *sparkQuery) dropDuplicates(e *expr, strategy string) error {
	names := q.columns.names
	if len(e.Args) == 1 {
		var ok bool
		if names, ok = e.Args[0].texts(); !ok {
			return fmt.Errorf("%s takes a list of columns", e.Name)
		}
	}
	event, refused := q.eventColumn()
	if within := strategy == "drop-duplicates-within-watermark"; within && event == noEventTime && refused == "" {
		refused = strategies.NoWatermarkGiven
	}
	if q.mode == "complete" {
		refused = strategies.OutputModeRefused
	}
	if refused != "" {
		q.refused = refused
		return nil
	}
	stage := sparkStage{value: func(*sim.Entry) string { return `{"__dummy__":null}` }}
	if strategy == "drop-duplicates-within-watermark" {
		stage.value = func(e *sim.Entry) string { return fmt.Sprintf(`{"expiresAtMicros":%d}`, e.Value*1000) }
	}
	params := map[string]string{"delay": strategies.None}
	if delay := q.inputs[0].delay; delay != sim.NoWatermark {
		params["delay"] = stream.FormatDuration(delay)
	}
	var columns []string
	for _, name := range names {
		i, err := q.columns.index(name)
		if err != nil {
			return err
		}
		if slices.Contains(stage.key, i) {
			continue
		}
		stage.key = append(stage.key, i)
		if q.columns.types[i] == "window" {
			params["window"] = stream.FormatDuration(q.window)
		} else {
			columns = append(columns, name)
		}
	}
	params["columns"] = cmp.Or(strings.Join(columns, ", "), strategies.None)
	windowed := params["window"] != ""
	stage.event = func(row *stream.Row) stream.Time {
		if event == noEventTime {
			return stream.NullTime
		}
		switch v := &q.rows.rows[row.Tag.Event()][event]; {
		case v.null:
			return stream.NullTime
		case v.typ == "window" && !windowed: // else the operator makes the window of its start
			return stream.Time(v.end)
		default:
			return stream.Time(v.n)
		}
	}
	plan, err := q.plan(strategy, params)
	if err != nil {
		return err
	}
	q.batch.Stages = append(q.batch.Stages, plan.Stages...)
	q.stages = append(q.stages, stage)
	return nil
}

// plan plans a strategy of the lab for the rows that reach it.
func (q *sparkQuery) plan(name string, params map[string]string) (*strategies.BatchPlan, error) {
	strategy, err := strategies.Find(name)
	if err != nil {
		return nil, err
	}
	schema, err := q.schema()
	if err != nil {
		return nil, err
	}
	args, faults := strategy.Resolve(params, schema)
	if len(faults) > 0 {
		return nil, faults[0]
	}
	return strategy.Plan(args, strategies.Job{Schema: schema, Sink: strategies.Upsert}).Batch, nil
}

// schema is what the operators see. The event-time column is among its columns even where the query has left it out.
func (q *sparkQuery) schema() (stream.Schema, error) {
	columns := q.columns
	event := q.inputs[0].event
	i := max(slices.Index(columns.types, "timestamp"), 0)
	if event == "" {
		event = q.time
	}
	if event != "" {
		columns = columns.with(event, "timestamp")
		i, _ = columns.index(event)
	}
	return columns.schema(q.keyed, i)
}
