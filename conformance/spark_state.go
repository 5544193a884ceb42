package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// This file is about the queries whose state is the user's: fmgws(...) and tws_ttl(...), which stand for the functions
// that a recording prints as its source, and an aggregate by max_by.

// sparkOutputs is how the rows that a function returns are spelled.
type sparkOutputs struct {
	columns []sparkOutput
	// The columns of what the function says of a row and counts; empty: it has none.
	why, count string
}

// sparkOutput is a column of the result: one of the row that an output names.
type sparkOutput struct {
	name   string
	column int
	isKey  bool // known even where the others are null
	isTime bool
}

// functions are the recorded functions by their name in the code.
var functions = map[string]struct{ strategy, variant string }{
	"fmgws-first":         {"flat-map-groups-with-state", "printed"},
	"fmgws-first-rearm":   {"flat-map-groups-with-state", "rearm"},
	"fmgws-first-guarded": {"flat-map-groups-with-state", "guarded"},
	"fmgws-latest":        {"latest-wins", ""},
}

// flatMapGroups reads fmgws(df, "fmgws-first", {"click": 3600000, "*": 3600000}, "append"). The functions take the key,
// the time and the kind from the first three columns.
func (q *sparkQuery) flatMapGroups(e *expr) error {
	f, ok := functions[e.Args[1].Text]
	horizons, mode := e.Args[2], e.Args[3].Text
	switch {
	case !ok:
		return fmt.Errorf("fmgws: the lab does not know the function %q", e.Args[1].Text)
	case horizons.Kind != exprDict || len(horizons.Args) == 0 || len(horizons.Args)%2 != 0:
		return fmt.Errorf("fmgws: expected the horizons by kind, such as {\"click\": 3600000, \"*\": 3600000}")
	case mode != "append" && mode != "update":
		return fmt.Errorf("fmgws: there is no output mode %q", mode)
	case len(q.columns.types) < 3 || q.columns.types[1] != "timestamp" || q.columns.types[2] != "string":
		return fmt.Errorf("fmgws: the functions take a key, a timestamp and a kind from the first three columns")
	}
	var spans []string
	for i := 0; i < len(horizons.Args); i += 2 {
		kind, span := horizons.Args[i], horizons.Args[i+1]
		if kind.Kind != exprText || span.Kind != exprNumber {
			return fmt.Errorf("fmgws: a horizon is a kind and a number of ms")
		}
		spans = append(spans, fmt.Sprintf("%s: %dms", kind.Text, span.Num))
	}
	params := map[string]string{"horizon": strings.Join(spans, ", "), "kind": q.columns.names[2]}
	delay := q.inputs[0].delay
	if delay == sim.NoWatermark {
		q.refused = strategies.NoWatermarkGiven // not recorded: it is that of dropDuplicatesWithinWatermark
		return nil
	}
	if q.mode != mode {
		q.refused = strategies.FunctionModeDiffers
		return nil
	}
	params["delay"] = stream.FormatDuration(delay)
	if f.variant != "" {
		params["variant"] = f.variant
	} else {
		params["mode"] = mode
	}
	return q.custom(f.strategy, params, sparkStage{
		key: []int{0}, keyNames: []string{"value"},
		stored: func(s sim.Stored) string {
			return fmt.Sprintf(`{"groupState":{"first_ts":%d,"last_ts":%d,"suppressed":%d},"timeoutTimestamp":%d}`,
				s.First, s.Last, s.Count, s.Timeout)
		},
	}, q.allOutputs())
}

// transformWithState reads tws_ttl(df, 3000, "read").
func (q *sparkQuery) transformWithState(e *expr) error {
	ttl, variant := e.Args[1], e.Args[2].Text
	if ttl.Kind != exprNumber || variant != "read" && variant != "update" {
		return fmt.Errorf("tws_ttl takes a TTL in ms, and \"read\" or \"update\"")
	}
	params := map[string]string{"ttl": fmt.Sprintf("%dms", ttl.Num), "copies": variant}
	if !strings.HasSuffix(q.provider, ".RocksDBStateStoreProvider") {
		params["state_store"] = "hdfs"
	}
	return q.custom("transform-with-state", params, sparkStage{key: []int{0}, keyNames: []string{"value"}}, q.allOutputs())
}

// allOutputs are those of a function that returns the row with what it says of it.
func (q *sparkQuery) allOutputs() *sparkOutputs {
	o := &sparkOutputs{why: cmp.Or(q.why, "why"), count: cmp.Or(q.count, "count")}
	for i, name := range q.columns.names {
		o.columns = append(o.columns, sparkOutput{name: name, column: i, isKey: i == 0, isTime: i == 1})
	}
	return o
}

// aggregate reads groupBy("id").agg(F.max_by(F.struct(...), "ts").alias("latest"),
// F.count("*").alias("n")).select(...).
func (q *sparkQuery) aggregate(e *expr) error {
	agg := e.On
	latest, count := agg.Args[0], agg.Args[1]
	if !latest.is("alias", 1) || !latest.On.is("max_by", 2) || !latest.On.Args[0].isCall("struct") ||
		!count.is("alias", 1) || !count.On.is("count", 1) {
		return fmt.Errorf("agg: the lab knows F.max_by(F.struct(...), ...).alias(...) and F.count(\"*\").alias(...)")
	}
	stage := sparkStage{}
	for _, arg := range agg.On.Args {
		i, err := q.columns.index(arg.Text)
		if err != nil {
			return err
		}
		stage.key, stage.keyNames = append(stage.key, i), append(stage.keyNames, arg.Text)
	}
	var fields []int
	for _, arg := range latest.On.Args[0].Args {
		i, err := q.columns.index(arg.Text)
		if err != nil {
			return err
		}
		fields = append(fields, i)
	}
	by, err := q.columns.index(latest.On.Args[1].Text)
	if err != nil {
		return err
	}
	if q.time = q.columns.names[by]; q.inputs[0].event != "" && q.inputs[0].event != q.time {
		return fmt.Errorf("max_by: the lab orders by the column of the watermark")
	}
	o := &sparkOutputs{}
	struc := latest.Args[0].Text + "."
	for _, arg := range e.Args {
		name, isField := strings.CutPrefix(arg.Text, struc)
		if arg.Text == count.Args[0].Text {
			o.count = arg.Text
			continue
		}
		i, err := q.columns.index(name)
		if err != nil {
			return err
		}
		if isField && !slices.Contains(fields, i) || !isField && !slices.Contains(stage.key, i) {
			return fmt.Errorf("select: there is no %s", arg.Text)
		}
		o.columns = append(o.columns, sparkOutput{name: name, column: i, isKey: !isField})
	}
	stage.stored = func(s sim.Stored) string {
		latest, by := "null", "null"
		if s.Last != stream.NullTime {
			members := map[string]string{}
			for _, i := range fields {
				members[q.columns.names[i]] = q.rows.rows[s.Tag.Event()][i].inState()
			}
			latest, by = spellFields(members), isoTime(s.Last)
		}
		return fmt.Sprintf(`{"count":%d,"extremumOrdering":%s,"valueWithExtremumOrdering":%s}`, s.Count, by, latest)
	}
	params := map[string]string{"mode": q.mode, "delay": strategies.None}
	if delay := q.inputs[0].delay; delay != sim.NoWatermark {
		params["delay"] = stream.FormatDuration(delay)
	}
	return q.custom("latest-wins-aggregate", params, stage, o)
}

// custom adds a stage whose state is the user's.
func (q *sparkQuery) custom(strategy string, params map[string]string, stage sparkStage, outputs *sparkOutputs) error {
	if len(q.stages) > 0 {
		return fmt.Errorf("the lab knows %s as the only stateful operator of a query", strategy)
	}
	q.keyed, q.outputs = stage.key, outputs
	plan, err := q.plan(strategy, params)
	if err != nil {
		return err
	}
	if plan.Refused != nil {
		q.refusal = plan.Refused
		q.refused = plan.Refused.Condition()
	}
	q.batch.Stages = append(q.batch.Stages, plan.Stages...)
	q.stages = append(q.stages, stage)
	return nil
}

// isCall reports whether an expression is a call of a name.
func (e *expr) isCall(name string) bool { return e.Kind == exprCall && e.Name == name }

func isoTime(at stream.Time) string {
	return quoteJSON(time.UnixMilli(int64(at)).UTC().Format("2006-01-02T15:04:05.000Z"))
}

// spellOutput spells a row that a function returns.
func (r *sparkReplay) spellOutput(o sim.Output) string {
	row, outputs := r.rows.rows[o.Tag.Event()], r.query.outputs
	fields := map[string]string{}
	for _, c := range outputs.columns {
		switch {
		case !o.Keys || c.isKey:
			fields[c.name] = row[c.column].json
		case c.isTime && o.Event != stream.NullTime:
			fields[c.name] = strconv.FormatInt(int64(o.Event), 10)
		default:
			fields[c.name] = "null"
		}
	}
	if outputs.why != "" {
		fields[outputs.why] = quoteJSON(o.Why)
	}
	if outputs.count != "" {
		fields[outputs.count] = strconv.FormatInt(o.Count, 10)
	}
	return spellFields(fields)
}

// inAnyOrder sorts the rows of timeouts that stand side by side: they come in the order of the store. spark README,
// Horizon per key.
func (o *sparkOutputs) inAnyOrder(rows []string) []string {
	rows = slices.Clone(rows)
	expired := quoteJSON(o.why) + `:"expired"`
	isExpired := func(row string) bool { return o.why != "" && strings.Contains(row, expired) }
	for i := 0; i < len(rows); {
		n := i
		for n < len(rows) && isExpired(rows[n]) {
			n++
		}
		slices.Sort(rows[i:n])
		i = n + 1
	}
	return rows
}

// compareKeys orders the keys of two rows as Spark's sort does: column by column, nulls first, texts by their bytes.
func (r *sparkReplay) compareKeys(a, b *stream.Row) int {
	for _, column := range r.query.keyed {
		if c := compareSpark(r.rows.rows[a.Tag.Event()][column], r.rows.rows[b.Tag.Event()][column]); c != 0 {
			return c
		}
	}
	return 0
}

func compareSpark(a, b sparkValue) int {
	switch {
	case a.null || b.null:
		return cmp.Compare(map[bool]int{false: 1}[a.null], map[bool]int{false: 1}[b.null])
	case a.typ == "string":
		return cmp.Compare(a.text, b.text)
	case a.typ == "double" && (a.f != a.f || b.f != b.f): // not a number is the largest
		return cmp.Compare(map[bool]int{true: 1}[a.f != a.f], map[bool]int{true: 1}[b.f != b.f])
	case a.typ == "double":
		return cmp.Compare(a.f, b.f)
	}
	return cmp.Compare(a.n, b.n)
}

// nullKey reports whether a column of a row's key is null.
func (r *sparkReplay) nullKey(row *stream.Row) bool {
	return slices.ContainsFunc(r.query.keyed, func(i int) bool { return r.rows.rows[row.Tag.Event()][i].null })
}

// compareError compares an error as far as the lab tells it.
func (r *sparkReplay) compareError(i int, b *sparkBatch, e *sim.QueryError) {
	recorded := b.Error
	if b.StartError != nil {
		recorded = b.StartError
	}
	if recorded == nil || e == nil || e.Message == "" {
		return
	}
	r.differ(i, "error class", recorded.Class, e.Class)
	if recorded.Message != "" { // Java leaves that of a NullPointerException behind when it is sent from a task
		r.differ(i, "error message", recorded.Message, e.Message)
	}
	if b.Chain != nil {
		r.differ(i, "error_chain", strings.Join(b.Chain, ", "), strings.Join(e.Chain, ", "))
	}
	if b.Conditions != nil {
		r.differ(i, "error_conditions", strings.Join(b.Conditions, ", "), strings.Join(e.Conditions, ", "))
	}
}
