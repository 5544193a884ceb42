package sqlshape

import (
	"slices"
	"strings"

	"deduplab/strategies"
	"deduplab/stream"
)

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

// named is column for a name.
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
		return "", 0, none("the deduplication reads a join, which may take the time attribute away and send updates: " +
			"deduplicate one input of it")
	}
	star := slices.ContainsFunc(q.items, func(it item) bool {
		return len(it.expr) > 0 && it.expr[len(it.expr)-1].is("*")
	})
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
		if t := r.base; t != nil && t.has(name) {
			if star {
				return "", 0, none("column %s stands twice in a SELECT: the table's, by *, and a computed one", name)
			}
			if strings.EqualFold(name, t.timeAttribute()) {
				r.lost = true
				r.note("the table's time attribute %s is not in the result of that query: its computed namesake is a plain "+
					"column", name)
			}
			name, _, err := r.inTable(t, name)
			return name, plain, err
		}
		if !slices.Contains(r.extra, name) {
			r.extra = append(r.extra, name)
		}
		return name, plain, nil
	}
	if !star {
		return "", 0, none("the subquery has no column %s: its SELECT does not name it", name)
	}
	return r.named(q.from[0].source, name, depth+1)
}

// has reports whether a table is known to have a column.
func (t *table) has(name string) bool {
	is := func(c stream.Column) bool { return strings.EqualFold(c.Name, name) }
	return slices.ContainsFunc(t.columns, is) || strings.EqualFold(name, t.timeAttribute()) ||
		t.assumed && slices.ContainsFunc(Orders.Columns, is)
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
	if name == cloudRowtime && t.infer(name) {
		r.note("%s is taken for Confluent Cloud's event-time attribute", name)
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

// hint hands on a STATE_TTL hint, or says that it does nothing.
func (r *recogniser) hint() {
	for _, h := range r.hints {
		tokens, err := lex(h)
		if err != nil || len(tokens) != 6 || !tokens[0].is("STATE_TTL") {
			continue
		}
		span, ok := Duration(tokens[4].text)
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
		r.note("table %s is a source of changes, which the planner takes for updates and deletes: in a "+
			"scenario, job: {input: changelog}", t.name)
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
	if r.lost {
		r.shape.NoTimeAttribute = true
		event = "event_time" // another than the computed one
	}
	if event == "" && !r.lost {
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
