package sqlshape

import (
	"slices"
	"strconv"
	"strings"
)

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

// direction is ASC or DESC.
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
		return nil, nil, none("the ROW_NUMBER has no PARTITION BY: it keeps one row of the whole stream, not one of " +
			"each key")
	}
	if len(by) < 2 || !by[0].is("BY") {
		return nil, nil, none("the ROW_NUMBER has no ORDER BY: Flink's streaming Top-N needs one")
	}
	for _, frame := range []string{"ROWS", "RANGE"} {
		if _, _, found := cut(by, frame); found {
			return nil, nil, none("%s BETWEEN gives the ROW_NUMBER a frame, and the planner takes none: ROW/RANGE not allowed "+
				"with RANK, DENSE_RANK or ROW_NUMBER functions", frame)
		}
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
	if either(q.where) && mentions(q.where, alias) {
		return 0, none("the condition on %s is one of several joined by OR: expected %s = 1 or %s <= n beside AND only",
			alias, alias, alias)
	}
	n := 0
	for _, condition := range split(q.where, "AND") {
		limit, err := upTo(unwrap(condition), alias)
		switch {
		case err != nil:
			return 0, err
		case limit > 0 && n > 0:
			n = min(n, limit)
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
	what := "a Deduplicate"
	if r.base.changes() {
		what = "a Rank after all, because the table is a source of changes: one that can take rows back"
	}
	switch {
	case len(order) == 1 && n == 1 && kinds[0] == rowtime:
		r.why("ORDER BY %s %s, and nothing else: %s is the event-time attribute (%s), so the planner makes %s",
			names[0], direction, names[0], r.base.watermark(), what)
		r.is("rowtime-" + strings.ToLower(direction))
	case len(order) == 1 && n == 1 && kinds[0] == proctime:
		r.why("ORDER BY %s %s, and nothing else: it is processing time, so the planner makes %s",
			names[0], direction, what)
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
		r.why("ORDER BY %s %s: %s is no time attribute, so the planner makes a Rank and sorts nothing: it compares each "+
			"row with the one that it holds", names[0], order[0].direction(), names[0])
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
	case r.base.changes():
		r.why("the table is a source of changes: the Rank keeps all rows of a key, to take back what goes, and is " +
			"declared updating")
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
