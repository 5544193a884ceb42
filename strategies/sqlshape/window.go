package sqlshape

import (
	"slices"
	"strings"

	"deduplab/stream"
)

// windowing reports whether a function assigns rows to windows.
func windowing(name string) bool {
	return slices.Contains([]string{"TUMBLE", "HOP", "CUMULATE", "SESSION"}, strings.ToUpper(name))
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
	r.why("ROW_NUMBER() with rn = 1 over a tumbling window, with window_start and window_end in the PARTITION BY: "+
		"one row of each %s and window", strings.Join(r.key, ", "))
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
		return "", source{}, none("a row belongs to several windows of %s, or its windows depend on the data: only "+
			"TUMBLE is recorded", strings.ToUpper(c.name))
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
		return none("this window over a filter by CURRENT_WATERMARK is not recorded: the lab runs tumble-agg and the " +
			"first row of window-dedup behind the main branch")
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
	if _, _, and := cut(q.where, "AND"); and && either(q.where) {
		return "", false, none("the condition on CURRENT_WATERMARK mixes AND with OR: put the OR into brackets")
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
