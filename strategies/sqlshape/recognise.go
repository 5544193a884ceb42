package sqlshape

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"deduplab/strategies"
	"deduplab/stream"
)

// recogniser compares one statement with the shapes.
type recogniser struct {
	*file
	shape Shape
	base  *table   // the table at the bottom of the query
	key   []string // the columns that rows are deduplicated by
	extra []string // columns that the query computes and deduplicates by
	order []string // ORDER BY of a Rank, as a parameter
	hints []string
	steps int
}

// maxSteps bounds the work on one statement: views that read views can describe a query of any size.
const maxSteps = 1000

// errNone is a query that has none of the shapes.
type errNone struct{ reason string }

// Error gives the reason.
func (e errNone) Error() string { return e.reason }

func none(format string, args ...any) error { return errNone{fmt.Sprintf(format, args...)} }

func (r *recogniser) why(format string, args ...any) {
	r.shape.Why = append(r.shape.Why, fmt.Sprintf(format, args...))
}

func (r *recogniser) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(r.shape.Notes, n) {
		r.shape.Notes = append(r.shape.Notes, n)
	}
}

func (r *recogniser) is(strategy string) { r.shape.Strategy = strategy }

func (r *recogniser) recognise(s statement) (Shape, error) {
	if err := r.query(s.query); err != nil {
		return Shape{}, err
	}
	if r.shape.Strategy == "" {
		if err := r.plain(s.query); err != nil {
			return Shape{}, err
		}
	}
	r.schema()
	if len(r.order) > 0 {
		r.shape.Params["order_by"] = strings.Join(r.order, ", ")
	}
	r.hint()
	if err := r.settings(); err != nil {
		return Shape{}, err
	}
	r.sink(s)
	strategy, err := strategies.Find(r.shape.Strategy)
	if err != nil {
		return Shape{}, err
	}
	if _, faults := strategy.Resolve(r.shape.Params, r.shape.Job.Schema); len(faults) > 0 {
		return Shape{}, none("the query looks like %s, but %s", strategy.Name, faults[0].Message)
	}
	return r.shape, nil
}

// query looks for a deduplication in a query and, where it has none itself, in what it reads. It leaves the shape
// without a strategy where there is none at all.
func (r *recogniser) query(q *query) error {
	if r.steps++; r.steps > maxSteps {
		return none("the query is too large to look through")
	}
	r.hints = append(r.hints, q.hints...)
	switch q.rest {
	case "QUALIFY":
		return none("QUALIFY is not recorded: put the ROW_NUMBER into a subquery and write WHERE rn = 1 around it")
	case "":
	default:
		if q.distinct || q.group != nil || len(q.from) == 1 && rowNumberItem(q.from[0].query) >= 0 {
			return none("a deduplication with %s is not recorded", q.rest)
		}
	}
	if i := rowNumberItem(q); i >= 0 {
		return none("it numbers the rows with ROW_NUMBER but keeps all of them: WHERE rn = 1 around it is missing")
	}
	if len(q.from) == 1 {
		f := q.from[0]
		if i := rowNumberItem(f.query); i >= 0 {
			if err := r.topN(q, f.query, i); err != nil {
				return err
			}
			return r.behind(q, q.group != nil || aggregates(q))
		}
		switch {
		case f.call != nil && windowing(f.call.name) && q.group != nil:
			if !f.deduplicated() {
				return r.tumble(q, f.call)
			}
		case f.call != nil && !windowing(f.call.name) && !f.call.is("TO_CHANGELOG"):
			return r.function(q, f.call)
		case q.distinct && f.call == nil && !f.deduplicated():
			return r.distinct(q)
		case q.group != nil && f.call == nil && !f.deduplicated():
			return r.groupBy(q)
		}
	}
	for _, f := range q.from {
		inner := f.source
		changelog := f.call.is("TO_CHANGELOG")
		if f.call != nil {
			a, _ := f.call.first()
			inner = a.source
		}
		if inner.query == nil {
			continue
		}
		if err := r.query(inner.query); err != nil {
			return err
		}
		if r.shape.Strategy == "" {
			continue
		}
		if changelog {
			if err := r.toChangelog(); err != nil {
				return err
			}
		}
		return r.behind(q, q.group != nil || q.distinct || aggregates(q))
	}
	return nil
}

func (c *call) is(name string) bool { return c != nil && strings.EqualFold(c.name, name) }

func windowing(name string) bool {
	return slices.Contains([]string{"TUMBLE", "HOP", "CUMULATE", "SESSION"}, strings.ToUpper(name))
}

// rowNumberItem is the column of a query that ranks rows, or -1.
func rowNumberItem(q *query) int {
	if q == nil {
		return -1
	}
	return slices.IndexFunc(q.items, func(it item) bool {
		return len(it.expr) > 4 && it.expr[1].is("(") && it.expr[2].is(")") && it.expr[3].is("OVER") &&
			(it.expr[0].is("ROW_NUMBER") || it.expr[0].is("RANK") || it.expr[0].is("DENSE_RANK"))
	})
}

// aggregates reports whether a query without GROUP BY has an aggregate among its columns.
func aggregates(q *query) bool {
	return slices.ContainsFunc(q.items, func(it item) bool {
		return len(it.expr) > 2 && it.expr[1].is("(") && slices.ContainsFunc(
			[]string{"COUNT", "SUM", "MIN", "MAX", "AVG"}, it.expr[0].is)
	})
}

// behind tells what the query does with deduplicated rows.
func (r *recogniser) behind(q *query, aggregates bool) error {
	if r.shape.Consumer != "" {
		return nil // something further in stands behind the deduplication
	}
	f := q.from[0]
	switch {
	case len(q.from) > 1:
		r.shape.Consumer = join(q)
		if r.shape.Consumer == "" {
			r.note("the join behind it has no condition on time: a regular join, which takes updates too")
		}
	case f.match:
		r.shape.Consumer = strategies.MatchRecognize
	case f.call != nil && windowing(f.call.name):
		r.shape.Consumer = strategies.WindowAggregate
	case aggregates:
		r.shape.Consumer = strategies.GroupAggregate
	case q.order != nil:
		r.shape.Consumer = strategies.TemporalSort
	}
	return nil
}

// join tells which join the inputs of a query make.
func join(q *query) strategies.Consumer {
	interval := slices.ContainsFunc(q.where, func(t token) bool { return t.is("INTERVAL") })
	for _, f := range q.from {
		if f.asOf {
			return strategies.TemporalJoin
		}
		interval = interval || slices.ContainsFunc(f.on, func(t token) bool { return t.is("INTERVAL") })
	}
	if interval {
		return strategies.IntervalJoin
	}
	return ""
}

// topN recognises WHERE rn = 1 around a ROW_NUMBER.
func (r *recogniser) topN(outer, inner *query, rank int) error {
	number := inner.items[rank]
	if !number.expr[0].is("ROW_NUMBER") {
		return none("%s is not ROW_NUMBER: rows that tie all get the same number, and Flink's streaming Top-N takes only "+
			"ROW_NUMBER", strings.ToUpper(number.expr[0].text))
	}
	r.hints = append(r.hints, inner.hints...)
	partition, order, err := over(number.expr[4:])
	if err != nil {
		return err
	}
	n, err := r.limit(outer, number.alias)
	if err != nil {
		return err
	}
	r.shape.RowNumber = slices.ContainsFunc(outer.items, func(it item) bool {
		return strings.EqualFold(column(it.expr), number.alias) || len(it.expr) == 1 && it.expr[0].is("*")
	})
	if len(inner.from) != 1 {
		return none("the ROW_NUMBER stands over a join: deduplicate one input, or put the join into a view")
	}
	source := inner.from[0].source
	if source.deduplicated() {
		return none("the ROW_NUMBER stands over another aggregation or deduplication, whose updates it would have to " +
			"take back: explain that query by itself first")
	}
	window, err := r.window(source, partition)
	if err != nil {
		return err
	}
	if inner.where != nil {
		r.note("the WHERE beside the ROW_NUMBER filters rows before the deduplication")
	}
	if window {
		return r.windowTopN(source.call, partition, order, n)
	}
	for _, expr := range partition {
		if err := r.keyed(source, expr); err != nil {
			return err
		}
	}
	keys := strings.Join(r.key, ", ")
	if n > 1 {
		r.why("ROW_NUMBER() with rn <= %d keeps up to %d rows of each %s: a Top-N, which removes copies from the %d. on",
			n, n, keys, n+1)
	} else {
		r.why("ROW_NUMBER() with rn = 1 keeps one row of each %s", keys)
	}
	return r.ranked(source, order, n)
}

// sorting is one column of an ORDER BY.
type sorting struct {
	expr []token
	desc bool
}

func (s sorting) direction() string {
	if s.desc {
		return "DESC"
	}
	return "ASC"
}

// over reads what stands in the brackets of OVER.
func over(expr []token) (partition [][]token, order []sorting, err error) {
	if len(expr) < 2 || !expr[0].is("(") {
		return nil, nil, none("ROW_NUMBER() OVER a named window is not recorded: write the PARTITION BY into the brackets")
	}
	inside := expr[1 : len(expr)-1]
	before, by, _ := cut(inside, "ORDER")
	if len(before) < 3 || !before[0].is("PARTITION") || !before[1].is("BY") {
		return nil, nil, none("the ROW_NUMBER has no PARTITION BY: it keeps one row of the whole stream, not one of each key")
	}
	if len(by) < 2 || !by[0].is("BY") {
		return nil, nil, none("the ROW_NUMBER has no ORDER BY: Flink's streaming Top-N needs one")
	}
	for _, part := range split(by[1:], ",") {
		s := sorting{expr: part}
		nulls := ""
		if n := len(s.expr); n > 2 && s.expr[n-2].is("NULLS") {
			nulls = strings.ToUpper(s.expr[n-1].text)
			s.expr = s.expr[:n-2]
		}
		if n := len(s.expr); n > 1 && (s.expr[n-1].is("ASC") || s.expr[n-1].is("DESC")) {
			s.desc = s.expr[n-1].is("DESC")
			s.expr = s.expr[:n-1]
		}
		if nulls == "LAST" && !s.desc || nulls == "FIRST" && s.desc {
			return nil, nil, none("NULLS %s is not recorded: in Flink NULL sorts lowest", nulls)
		}
		order = append(order, s)
	}
	return split(before[2:], ","), order, nil
}

// limit reads n of the condition rn <= n.
func (r *recogniser) limit(q *query, alias string) (int, error) {
	if alias == "" {
		return 0, none("the ROW_NUMBER has no alias that a WHERE could name")
	}
	n := 0
	for _, condition := range split(q.where, "AND") {
		limit, err := upTo(unwrap(condition), alias)
		switch {
		case err != nil:
			return 0, err
		case limit > 0:
			n = limit
		case mentions(condition, alias):
			return 0, none("the condition on %s is none that makes a deduplication: expected %s = 1 or %s <= n",
				alias, alias, alias)
		default:
			r.note("the other conditions of the WHERE filter the deduplicated rows")
		}
	}
	if n == 0 {
		return 0, none("it numbers the rows with ROW_NUMBER but keeps all of them: WHERE %s = 1 is missing", alias)
	}
	return n, nil
}

// upTo reads the largest row number that a condition lets through, 0 if it is no such condition.
func upTo(condition []token, alias string) (int, error) {
	at := slices.IndexFunc(condition, func(t token) bool { return t.kind == symbol && strings.ContainsAny(t.text, "<>=") })
	if at < 0 || at != len(condition)-2 && at != 1 {
		return 0, nil
	}
	left, op, right := condition[:at], condition[at].text, condition[at+1:]
	if len(left) == 1 && left[0].kind == number {
		left, right = right, left
		op = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op] + map[bool]string{true: op}[op == "="]
	}
	if !strings.EqualFold(column(left), alias) || len(right) != 1 || right[0].kind != number {
		return 0, nil
	}
	n, err := strconv.Atoi(right[0].text)
	switch {
	case err != nil:
		return 0, nil
	case op == "=" && n == 1:
		return 1, nil
	case op == "=":
		return 0, none("%s = %d keeps the row number %d of each key, not the first: that is no deduplication", alias, n, n)
	case op == "<=" && n > 0:
		return n, nil
	case op == "<" && n > 1:
		return n - 1, nil
	}
	return 0, nil
}

// window reports whether rows are ranked within windows.
func (r *recogniser) window(s source, partition [][]token) (bool, error) {
	if s.call == nil {
		return false, nil
	}
	if !windowing(s.call.name) {
		return false, none("the ROW_NUMBER stands over the function %s, which is not recorded", s.call.name)
	}
	bounds := 0
	for _, expr := range partition {
		if name := key(column(expr)); name == "window_start" || name == "window_end" {
			bounds++
		}
	}
	if bounds < 2 {
		return false, none("the ROW_NUMBER stands over a window, but its PARTITION BY does not name window_start and " +
			"window_end: add them for a window deduplication, or leave the window out")
	}
	return true, nil
}

// keyed adds a column to the key.
func (r *recogniser) keyed(s source, expr []token) error {
	name, _, err := r.column(s, expr, 0)
	if err != nil {
		return err
	}
	r.key = append(r.key, name)
	return nil
}

// timeKind is what the planner knows of a column.
type timeKind uint8

const (
	plain timeKind = iota
	rowtime
	proctime
)

// column follows an expression down to the table: the name of the column there, and whether it is a time attribute.
func (r *recogniser) column(s source, expr []token, depth int) (string, timeKind, error) {
	if len(expr) == 3 && expr[0].is("PROCTIME") {
		if err := r.bottom(s, depth); err != nil {
			return "", 0, err
		}
		return "PROCTIME()", proctime, nil
	}
	name := column(expr)
	if name == "" {
		if len(expr) == 0 {
			return "", 0, none("an expression is missing between two commas")
		}
		return "", 0, none("%s ... is an expression, not a column: compute it in a view and give it a name",
			expr[0].text)
	}
	return r.named(s, name, depth)
}

func (r *recogniser) named(s source, name string, depth int) (string, timeKind, error) {
	if r.steps++; depth > maxDepth || r.steps > maxSteps {
		return "", 0, none("the query is too large to look through")
	}
	switch {
	case s.table != nil:
		if err := r.bottom(s, depth); err != nil {
			return "", 0, err
		}
		return r.inTable(s.table, name)
	case s.call != nil:
		inner, ok := s.call.first()
		if !ok || !windowing(s.call.name) {
			return "", 0, none("the function %s stands between the table and the deduplication, which is not recorded",
				s.call.name)
		}
		return r.named(inner.source, name, depth+1)
	}
	q := s.query
	if len(q.from) == 0 {
		return "", 0, none("a query without FROM has no rows to deduplicate")
	}
	if len(q.from) > 1 {
		r.note("the deduplication reads a join; the page tells of the deduplication alone")
	}
	for _, it := range q.items {
		if !strings.EqualFold(it.alias, name) {
			continue
		}
		if len(it.expr) == 3 && it.expr[0].is("PROCTIME") || column(it.expr) != "" {
			return r.column(q.from[0].source, it.expr, depth+1)
		}
		if err := r.bottom(q.from[0].source, depth); err != nil {
			return "", 0, err
		}
		r.note("%s is computed by the query, so it is no time attribute", name)
		if !slices.Contains(r.extra, name) {
			r.extra = append(r.extra, name)
		}
		return name, plain, nil
	}
	return r.named(q.from[0].source, name, depth+1)
}

// bottom remembers the table at the bottom of a query.
func (r *recogniser) bottom(s source, depth int) error {
	switch {
	case depth > maxDepth:
		return none("the query is too large to look through")
	case s.table != nil:
		r.base = s.table
	case s.query != nil && len(s.query.from) > 0:
		return r.bottom(s.query.from[0].source, depth+1)
	case s.call != nil:
		inner, _ := s.call.first()
		return r.bottom(inner.source, depth+1)
	}
	return nil
}

// inTable looks a column up in its table.
func (r *recogniser) inTable(t *table, name string) (string, timeKind, error) {
	if t.proc[key(name)] || t.assumed && key(name) == assumedProc {
		return name, proctime, nil
	}
	kind := plain
	if strings.EqualFold(name, t.timeAttribute()) {
		kind = rowtime
	}
	for _, c := range t.columns {
		if strings.EqualFold(c.Name, name) {
			return c.Name, kind, nil
		}
	}
	if !t.open() {
		names := make([]string, len(t.columns))
		for i, c := range t.columns {
			names[i] = c.Name
		}
		return "", 0, none("table %s has no column %s%s", t.name, name, stream.DidYouMean(name, names))
	}
	for _, used := range t.used {
		if strings.EqualFold(used, name) {
			return used, kind, nil
		}
	}
	t.used = append(t.used, name)
	return name, kind, nil
}

// timeAttribute is the event-time attribute of a table, or what is assumed to be.
func (t *table) timeAttribute() string {
	if t.rowtime == "" && t.assumed {
		return assumedRowtime
	}
	return t.rowtime
}

// ranked tells what the planner makes of a ROW_NUMBER by its order.
func (r *recogniser) ranked(s source, order []sorting, n int) error {
	var kinds []timeKind
	var names []string
	for _, o := range order {
		name, kind, err := r.column(s, o.expr, 0)
		if err != nil {
			return err
		}
		kinds, names = append(kinds, kind), append(names, name)
		r.order = append(r.order, name+" "+strings.ToLower(o.direction()))
	}
	if slices.Contains(kinds, proctime) && (len(order) > 1 || n > 1) {
		return none("ordered by processing time together with another column, or for more than one row, it is a Rank that " +
			"is not recorded")
	}
	direction := order[0].direction()
	switch {
	case len(order) == 1 && n == 1 && kinds[0] == rowtime:
		r.why("ORDER BY %s %s, and nothing else: %s is the event-time attribute (%s), so the planner makes a Deduplicate",
			names[0], direction, names[0], r.base.watermark())
		r.is("rowtime-" + strings.ToLower(direction))
	case len(order) == 1 && n == 1 && kinds[0] == proctime:
		r.why("ORDER BY %s %s, and nothing else: it is processing time, so the planner makes a Deduplicate",
			names[0], direction)
		r.is("proctime-" + strings.ToLower(direction))
	default:
		r.rank(kinds, names, order, n)
		return nil
	}
	r.order = nil
	return nil
}

// rank tells why a query is a Rank and not a Deduplicate.
func (r *recogniser) rank(kinds []timeKind, names []string, order []sorting, n int) {
	r.is("nontime")
	if n > 1 {
		r.shape.Params["top"] = strconv.Itoa(n)
	}
	switch {
	case n > 1:
		r.why("more than one row of a key: the planner makes a Rank, whatever the order")
		return
	case len(order) > 1:
		r.why("ORDER BY names %d columns: the planner makes a Rank even if one is a time attribute, so it neither waits "+
			"for the watermark nor drops late rows", len(order))
	default:
		r.why("ORDER BY %s %s: %s is no time attribute, so the planner makes a Rank and sorts nothing: it compares each row "+
			"with the one that it holds", names[0], order[0].direction(), names[0])
		if r.base.assumed && Orders.Index(names[0]) < 0 {
			r.note("without a CREATE TABLE only %s counts as the event time: if %s is your event-time attribute, add the "+
				"CREATE TABLE with its WATERMARK", r.base.timeAttribute(), names[0])
		}
	}
	tied := !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(r.key, name) })
	if r.options[optBatch] == "true" {
		return
	}
	switch {
	case len(order) == 1 && order[0].desc:
		r.why("one DESC column: declared updating")
	case tied:
		r.why("the order is part of the key: all rows of a key tie, the first arrival stays, and no update is ever sent")
	default:
		r.why("not one single DESC column: declared insert-only, and yet it sends +U for a better row (FLINK-40368)")
	}
}

// watermark tells why a column is the event time.
func (t *table) watermark() string {
	if t.rowtime == "" {
		return "assumed"
	}
	return "by its WATERMARK"
}

// windowTopN recognises ROW_NUMBER within windows.
func (r *recogniser) windowTopN(c *call, partition [][]token, order []sorting, n int) error {
	size, input, err := r.tumbling(c)
	if err != nil {
		return err
	}
	if n > 1 {
		return none("more than one row of a key and window is not recorded")
	}
	for _, expr := range partition {
		if name := key(column(expr)); name == "window_start" || name == "window_end" {
			continue
		}
		if err := r.keyed(input, expr); err != nil {
			return err
		}
	}
	if len(r.key) == 0 {
		return none("the PARTITION BY has no key beside the window: it keeps one row of each window")
	}
	r.why("ROW_NUMBER() with rn = 1 over a tumbling window, with window_start and window_end in the PARTITION BY: one row "+
		"of each %s and window", strings.Join(r.key, ", "))
	r.shape.Params["size"] = size
	byTime := false
	for _, o := range order {
		name, kind, err := r.column(input, o.expr, 0)
		if err != nil {
			return err
		}
		byTime = kind == rowtime && len(order) == 1
		r.order = append(r.order, name+" "+strings.ToLower(o.direction()))
	}
	if !byTime {
		r.why("ORDER BY %s is not the event time alone: the planner makes a WindowRank", strings.Join(r.order, ", "))
		r.is("window-topn")
		return r.diverted(input)
	}
	r.why("ORDER BY the event time alone: the planner makes a WindowDeduplicate")
	r.order = nil
	r.is("window-dedup")
	if order[0].desc {
		r.shape.Params["keep"] = "last"
	}
	return r.diverted(input)
}

// tumbling reads TUMBLE(input, DESCRIPTOR(time), size).
func (r *recogniser) tumbling(c *call) (size string, input source, err error) {
	if !c.is("TUMBLE") {
		return "", source{}, none("a row belongs to several windows of %s, or its windows depend on the data: only TUMBLE is "+
			"recorded", strings.ToUpper(c.name))
	}
	first, ok := c.first()
	if !ok {
		return "", source{}, none("TUMBLE has no table")
	}
	var time []token
	for _, a := range c.args {
		if len(a.value) > 3 && a.value[0].is("DESCRIPTOR") {
			time = a.value[2 : len(a.value)-1]
		}
		if span, ok := interval(a.value); ok && span > 0 && size == "" {
			size = stream.FormatDuration(span)
		} else if ok {
			return "", source{}, none("a TUMBLE with an offset is not recorded")
		}
	}
	if size == "" || time == nil {
		return "", source{}, none("TUMBLE needs DESCRIPTOR(time) and an INTERVAL as its size")
	}
	name, kind, err := r.column(first.source, time, 0)
	if err != nil {
		return "", source{}, err
	}
	if r.base == nil || kind == rowtime || r.base.infer(name) {
		return size, first.source, nil
	}
	return "", source{}, none("TUMBLE goes by %s, which is no event-time attribute: only event time is recorded", name)
}

// infer takes a column for the event time of a table of which nothing else is known.
func (t *table) infer(name string) bool {
	if t.rowtime == "" && t.open() {
		t.rowtime = name
	}
	return t.rowtime == name
}

// tumble recognises GROUP BY key and window with the minimum of each column.
func (r *recogniser) tumble(q *query, c *call) error {
	size, input, err := r.tumbling(c)
	if err != nil {
		return err
	}
	bounds := 0
	for _, expr := range q.group {
		if name := key(column(expr)); name == "window_start" || name == "window_end" || name == "window_time" {
			bounds++
		} else if err := r.keyed(input, expr); err != nil {
			return err
		}
	}
	if bounds < 2 {
		return none("GROUP BY does not name window_start and window_end, so it is no window aggregate")
	}
	if len(r.key) == 0 {
		return none("GROUP BY has no key beside the window: it counts or sums up windows and deduplicates nothing")
	}
	for _, it := range q.items {
		name, isMin := minimum(it.expr)
		switch {
		case isMin:
			if _, _, err := r.column(input, name, 0); err != nil {
				return err
			}
		case column(it.expr) == "":
			return none("%s is not recorded: the lab knows MIN as the aggregate of a window", start(it.expr))
		}
	}
	r.why("GROUP BY window_start, window_end and %s with MIN: a window aggregate, one row of each %s and window",
		strings.Join(r.key, ", "), strings.Join(r.key, ", "))
	r.is("tumble-agg")
	r.shape.Params["size"] = size
	return r.diverted(input)
}

// start shows the beginning of an expression.
func start(expr []token) string {
	var parts []string
	for _, t := range expr[:min(len(expr), 2)] {
		parts = append(parts, t.text)
	}
	return fmt.Sprintf("%.40s...", strings.Join(parts, ""))
}

// minimum is the column of MIN(column).
func minimum(expr []token) ([]token, bool) {
	if len(expr) < 4 || !expr[0].is("MIN") || !expr[1].is("(") {
		return nil, false
	}
	inside := expr[2 : len(expr)-1]
	return inside, column(inside) != ""
}

// diverted recognises a filter by CURRENT_WATERMARK in front of a windowed strategy.
func (r *recogniser) diverted(input source) error {
	q := input.query
	if q == nil || !mentions(q.where, "CURRENT_WATERMARK") {
		return nil
	}
	branch, nullCheck, err := r.lateFilter(q)
	if err != nil {
		return err
	}
	if branch != "main" || r.shape.Strategy == "window-topn" || r.shape.Params["keep"] == "last" {
		return none("this window over a filter by CURRENT_WATERMARK is not recorded: the lab runs tumble-agg and the first " +
			"row of window-dedup behind the main branch")
	}
	r.shape.Params["main"] = r.shape.Strategy
	if !nullCheck {
		r.shape.Params["null_check"] = "false"
	}
	r.why("in front of it a filter by CURRENT_WATERMARK diverts late rows")
	r.is("late-dlq")
	return nil
}

// lateFilter reads a WHERE with CURRENT_WATERMARK.
func (r *recogniser) lateFilter(q *query) (branch string, nullCheck bool, err error) {
	if len(q.from) != 1 {
		return "", false, none("CURRENT_WATERMARK over a join is not recorded")
	}
	for _, condition := range split(q.where, "AND") {
		if !mentions(condition, "CURRENT_WATERMARK") {
			r.note("the other conditions of the WHERE filter rows, too")
			continue
		}
		for _, part := range split(unwrap(condition), "OR") {
			flat := flatten(part)
			time := r.watermarkOf(part)
			name, kind, fault := r.column(q.from[0].source, time, 0)
			if fault != nil {
				return "", false, fault
			}
			if kind != rowtime && !r.base.infer(name) {
				return "", false, none("CURRENT_WATERMARK goes by %s, which is no event-time attribute", name)
			}
			column, current := key(name), "current_watermark("+key(name)+")"
			switch flat {
			case current + "isnull":
				nullCheck = true
			case column + "<=" + current, current + ">=" + column:
				branch = "dlq"
			case column + ">" + current, current + "<" + column:
				branch = "main"
			default:
				return "", false, none("the condition on CURRENT_WATERMARK is none of those recorded: expected %s <= %s for "+
					"the late rows, or %s IS NULL OR %s > %s for the others", name, strings.ToUpper(current),
					strings.ToUpper(current), name, strings.ToUpper(current))
			}
		}
	}
	if branch == "" || branch == "dlq" && nullCheck {
		return "", false, none("the condition on CURRENT_WATERMARK neither takes the late rows nor the others")
	}
	return branch, nullCheck, nil
}

// watermarkOf is the argument of CURRENT_WATERMARK.
func (r *recogniser) watermarkOf(expr []token) []token {
	at := slices.IndexFunc(expr, func(t token) bool { return t.is("CURRENT_WATERMARK") })
	if at < 0 || at+2 >= len(expr) {
		return nil
	}
	inside := expr[at+2:]
	if end := slices.IndexFunc(inside, func(t token) bool { return t.is(")") }); end >= 0 {
		return inside[:end]
	}
	return nil
}

// function recognises a process table function.
func (r *recogniser) function(q *query, c *call) error {
	first, ok := c.first()
	if !ok || len(first.partition) == 0 {
		return none("the function %s gets no table with PARTITION BY, so it is no process table function with keyed state",
			c.name)
	}
	if first.source.deduplicated() {
		return none("the function %s reads the result of a deduplication: explain that query by itself first", c.name)
	}
	for _, name := range first.partition {
		named, _, err := r.named(first.source, name, 0)
		if err != nil {
			return err
		}
		r.key = append(r.key, named)
	}
	r.why("%s is called with a table partitioned by %s: a process table function, planned as ProcessTableFunction with "+
		"state for each key", c.name, strings.Join(r.key, ", "))
	r.note("what %s does stands in its Java: the page holds if it collects the first row of a key and drops the others, "+
		"under @StateHint(ttl = \"2 hours\")", c.name)
	r.is("ptf")
	return r.behind(q, q.group != nil || q.distinct || aggregates(q))
}

// toChangelog wraps what was recognised.
func (r *recogniser) toChangelog() error {
	switch {
	case r.shape.Params["top"] != "" || r.shape.Consumer != "":
		return none("TO_CHANGELOG around this query is not recorded")
	case r.shape.Strategy == "nontime":
		r.is("nontime-to-changelog")
		r.note("the lab's query leaves the event time out, as the article's does")
	}
	r.shape.ToChangelog = true
	r.why("TO_CHANGELOG around it turns each change into an inserted row: declared insert-only, now rightly so")
	return nil
}

// distinct recognises SELECT DISTINCT.
func (r *recogniser) distinct(q *query) error {
	if q.group != nil || aggregates(q) {
		return none("DISTINCT over an aggregate is not recorded")
	}
	source := q.from[0].source
	r.why("SELECT DISTINCT is GROUP BY all of its columns, without aggregates: the planner makes a GroupAggregate, and " +
		"always declares it updating")
	whole := len(q.items) == 1 && q.items[0].expr[len(q.items[0].expr)-1].is("*")
	if whole {
		if err := r.bottom(source, 0); err != nil {
			return err
		}
	} else {
		for _, it := range q.items {
			if err := r.keyed(source, it.expr); err != nil {
				return err
			}
		}
		whole = r.base.all(r.key)
	}
	if r.base == nil {
		return none("SELECT DISTINCT over something that is no table is not recorded")
	}
	if !whole {
		r.why("its columns are the key: which keys there are, without their rows")
		r.is("select-distinct-key")
		return nil
	}
	r.why("its columns are all of the table's: only rows that are equal in each count as copies")
	r.key = r.base.key
	r.is("select-distinct")
	return nil
}

// all reports whether these are all columns of a table.
func (t *table) all(names []string) bool {
	columns := t.columns
	if t.open() {
		columns = Orders.Columns
	}
	return len(columns) > 0 && !slices.ContainsFunc(columns, func(c stream.Column) bool {
		return !slices.Contains(names, c.Name)
	})
}

// groupBy recognises GROUP BY key, with or without MIN.
func (r *recogniser) groupBy(q *query) error {
	source := q.from[0].source
	for _, expr := range q.group {
		if len(expr) > 1 && expr[0].is("TUMBLE") {
			return none("GROUP BY TUMBLE(...) is the old way of writing windows and not recorded: write " +
				"FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(time), size)) GROUP BY window_start, window_end")
		}
		if err := r.keyed(source, expr); err != nil {
			return err
		}
	}
	r.why("GROUP BY %s: the planner makes a GroupAggregate, and always declares it updating", strings.Join(r.key, ", "))
	var columns []string
	for _, it := range q.items {
		inside, isMin := minimum(it.expr)
		if isMin {
			name, _, err := r.column(source, inside, 0)
			if err != nil {
				return err
			}
			columns = append(columns, name)
			continue
		}
		if column(it.expr) == "" {
			return none("%s is not recorded: the lab knows MIN as the aggregate of a GROUP BY", start(it.expr))
		}
		if name, _, err := r.column(source, it.expr, 0); err != nil || !slices.Contains(r.key, name) {
			return none("column %s is neither in GROUP BY nor in an aggregate", column(it.expr))
		}
	}
	switch len(columns) {
	case 0:
		r.why("without an aggregate it is SELECT DISTINCT over its columns")
		r.is("select-distinct-key")
	case 1:
		r.is("group-by-min")
		r.shape.Params["column"] = columns[0]
	default:
		return none("GROUP BY with %d minima is not recorded, only with one", len(columns))
	}
	return nil
}

// plain recognises what is left: a query that removes nothing by itself, or takes late rows aside.
func (r *recogniser) plain(q *query) error {
	if len(q.from) == 0 {
		return none("it reads no table")
	}
	if len(q.from) > 1 {
		return none("it joins tables and deduplicates none of them: no ROW_NUMBER, no DISTINCT, no GROUP BY")
	}
	f := q.from[0]
	if f.call != nil {
		return none("%s alone deduplicates nothing", strings.ToUpper(f.call.name))
	}
	if q.rest != "" || f.match || q.order != nil {
		return none("it deduplicates nothing: no ROW_NUMBER, no DISTINCT, no GROUP BY")
	}
	if aggregates(q) {
		return none("it aggregates the whole stream and deduplicates nothing")
	}
	if err := r.bottom(f.source, 0); err != nil {
		return err
	}
	if r.base == nil {
		return none("it reads no table")
	}
	if mentions(q.where, "CURRENT_WATERMARK") {
		return r.lateBranch(q)
	}
	if f.query != nil && mentions(f.query.where, "CURRENT_WATERMARK") {
		return r.lateBranch(f.query)
	}
	if len(r.base.key) == 0 {
		r.is("pass-through")
		r.why("no ROW_NUMBER, no DISTINCT, no GROUP BY: the query removes nothing")
		return nil
	}
	r.key = r.base.key
	if r.base.changes() {
		r.is("changelog-normalize")
		r.shape.Params["events_duplicate"] = "false"
		if r.options[optRepeats] == "true" || r.base.options["connector"] == "upsert-kafka" {
			r.shape.Params["events_duplicate"] = "true"
			r.why("the table is a source of changes with a PRIMARY KEY, whose events may repeat: the planner puts a " +
				"ChangelogNormalize behind it")
		} else {
			r.why("the table is a source of changes with a PRIMARY KEY, but %s is not set: the planner believes its events "+
				"and removes nothing", optRepeats)
		}
		return nil
	}
	r.is("pk-not-enforced")
	r.why("the table has a PRIMARY KEY NOT ENFORCED, which the planner believes and nobody checks; nothing else in the " +
		"query removes a copy")
	return nil
}

// lateBranch recognises one branch of a dead letter queue.
func (r *recogniser) lateBranch(q *query) error {
	branch, nullCheck, err := r.lateFilter(q)
	if err != nil {
		return err
	}
	r.is("late-dlq")
	r.shape.Params["main"] = "none"
	switch {
	case branch == "dlq":
		r.shape.Params["branch"] = "dlq"
		r.why("the filter takes the rows at or behind the watermark: the dead letter branch")
	case nullCheck:
		r.why("the filter takes the rows ahead of the watermark, and all before the first watermark: the main branch")
	default:
		r.shape.Params["null_check"] = "false"
		r.why("the filter takes the rows ahead of the watermark: the main branch. Before the first watermark " +
			"CURRENT_WATERMARK is NULL, and the filter takes none")
	}
	return nil
}

// hint hands on a STATE_TTL hint, or says that it does nothing.
func (r *recogniser) hint() {
	for _, h := range r.hints {
		tokens, err := lex(h)
		if err != nil || len(tokens) != 6 || !tokens[0].is("STATE_TTL") {
			continue
		}
		span, ok := duration(tokens[4].text)
		switch r.shape.Strategy {
		case "select-distinct", "select-distinct-key", "group-by-min":
			if ok {
				r.shape.Params["hint"] = stream.FormatDuration(span)
			}
		default:
			r.note("the STATE_TTL hint is silently ignored: Flink honours it on joins and aggregates only, not on Rank and " +
				"Deduplicate (flink state-ttl-hint/hint-rowtime-asc-newer-rowtime)")
		}
	}
}

// sink tells what the INSERT of a statement makes of the result, where nothing else consumes it.
func (r *recogniser) sink(s statement) {
	t, ok := r.tables[key(s.sink)]
	if r.shape.Consumer != "" || s.sink == "" || !ok || t.assumed {
		return
	}
	switch {
	case s.onConflict:
		r.shape.Consumer = strategies.UpsertSinkMerging
	case len(t.key) > 0:
		r.shape.Consumer = strategies.UpsertSink
	case !t.changes() && (t.options["connector"] == "kafka" || t.options["connector"] == "filesystem"):
		r.shape.Consumer = strategies.AppendSink
	}
}

// schema makes the schema of the table as far as it is known.
func (r *recogniser) schema() {
	t := r.base
	job := &r.shape.Job
	job.WatermarkDelay = t.delay
	if t.changes() {
		job.Input = strategies.AllChanges
		r.note("table %s is a source of changes, which the planner takes for updates and deletes: the facts below are those "+
			"of a source of inserts", t.name)
	}
	switch {
	case !t.open():
		job.Schema.Columns = slices.Clone(t.columns)
	case !slices.ContainsFunc(t.used, func(name string) bool { return Orders.Index(name) < 0 }) &&
		Orders.Index(t.timeAttribute()) >= 0:
		job.Schema.Columns = slices.Clone(Orders.Columns)
	default:
		for _, name := range t.used {
			job.Schema.Columns = append(job.Schema.Columns, stream.Column{Name: name})
		}
	}
	if t.assumed && t.rowtime == "" {
		r.note("there is no CREATE TABLE %s: assumed are %s as its event time and %s as processing time", t.name,
			assumedRowtime, assumedProc)
	}
	for _, name := range r.extra {
		job.Schema.Columns = append(job.Schema.Columns, stream.Column{Name: name})
	}
	event := t.timeAttribute()
	if event == "" {
		r.shape.NoTimeAttribute = true
		r.note("table %s has no WATERMARK, so none of its columns is an event-time attribute", t.name)
		event = "event_time"
	}
	if job.Schema.Event = job.Schema.Index(event); job.Schema.Event < 0 {
		job.Schema.Event = len(job.Schema.Columns)
		job.Schema.Columns = append(job.Schema.Columns, stream.Column{Name: event, Type: stream.Timestamp})
	}
	job.Schema.Columns[job.Schema.Event].Type = stream.Timestamp
	for _, name := range r.key {
		if i := job.Schema.Index(name); i >= 0 && !slices.Contains(job.Schema.Key, i) {
			job.Schema.Key = append(job.Schema.Key, i)
		}
	}
	if len(job.Schema.Key) == 0 {
		job.Schema.Key = []int{0}
	}
}
