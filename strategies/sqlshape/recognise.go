package sqlshape

import (
	"fmt"
	"slices"
	"strings"

	"deduplab/strategies"
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
	lost  bool // a query computes a column that takes the place of the time attribute
}

// maxSteps bounds the work on one statement: views that read views can describe a query of any size.
const maxSteps = 1000

// none is the error for a query that has none of the shapes.
func none(format string, args ...any) error { return fmt.Errorf(format, args...) }

// why adds a step of the reasoning.
func (r *recogniser) why(format string, args ...any) {
	r.shape.Why = append(r.shape.Why, fmt.Sprintf(format, args...))
}

// note adds what was assumed or has no effect.
func (r *recogniser) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(r.shape.Notes, n) {
		r.shape.Notes = append(r.shape.Notes, n)
	}
}

// is sets the strategy.
func (r *recogniser) is(strategy string) { r.shape.Strategy = strategy }

// recognise completes the shape of a statement.
func (r *recogniser) recognise(s statement) (Shape, error) {
	if err := r.understood(s.query); err != nil {
		return Shape{}, err
	}
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
func (r *recogniser) query(q *query) error {
	if r.steps++; r.steps > maxSteps {
		return none("the query is too large to look through")
	}
	r.hints = append(r.hints, q.hints...)
	switch {
	case len(q.from) > 1 && slices.ContainsFunc(q.from, func(f from) bool { return rowNumberItem(f.query) >= 0 }):
		return none("it is a Rank followed by a Join, which the lab does not run: for the page of the Rank alone put the " +
			"ROW_NUMBER with its WHERE rn = 1 into a view and query that")
	case rowNumberItem(q) >= 0:
		return none("it numbers the rows with ROW_NUMBER but keeps all of them: WHERE rn = 1 around it is missing")
	}
	if len(q.from) == 1 {
		f := q.from[0]
		if i := rowNumberItem(f.query); i >= 0 {
			if err := r.topN(q, f.query, i); err != nil {
				return err
			}
			r.behind(q)
			return nil
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
		r.behind(q)
		return nil
	}
	return nil
}

// is reports whether it is a call of that function.
func (c *call) is(name string) bool { return c != nil && strings.EqualFold(c.name, name) }

// rowNumberItem is the column of a query that ranks rows, or -1.
func rowNumberItem(q *query) int {
	if q == nil {
		return -1
	}
	return slices.IndexFunc(q.items, func(it item) bool {
		return ranking(it.expr)
	})
}

// aggregateNames are Flink's aggregates.
var aggregateNames = []string{"COUNT", "SUM", "SUM0", "MIN", "MAX", "AVG", "STDDEV", "STDDEV_POP", "STDDEV_SAMP",
	"VARIANCE", "VAR_POP", "VAR_SAMP", "COLLECT", "LISTAGG", "ARRAY_AGG", "FIRST_VALUE", "LAST_VALUE", "PERCENTILE",
	"APPROX_COUNT_DISTINCT", "JSON_OBJECTAGG", "JSON_ARRAYAGG"}

// aggregates reports whether a query without GROUP BY has an aggregate among its columns.
func aggregates(q *query) bool {
	return slices.ContainsFunc(q.items, func(it item) bool {
		for i := 0; i+1 < len(it.expr); i++ {
			if !it.expr[i+1].is("(") || !slices.ContainsFunc(aggregateNames, it.expr[i].is) {
				continue
			}
			if end := closing(it.expr, i+1); end+1 >= len(it.expr) || !it.expr[end+1].is("OVER") {
				return true
			}
		}
		return false
	})
}

// behind tells what the query does with deduplicated rows.
func (r *recogniser) behind(q *query) {
	if r.shape.Consumer != "" {
		return // something further in stands behind the deduplication
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
	case q.group != nil || q.distinct || aggregates(q):
		r.shape.Consumer = strategies.GroupAggregate
	case q.order != nil:
		r.shape.Consumer = strategies.TemporalSort
	}
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
	r.behind(q)
	return nil
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
	if err := r.straight(f.source); err != nil {
		return err
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

// straight refuses what is more than selecting rows between a query without a deduplication and its table.
func (r *recogniser) straight(s source) error {
	for depth := 0; s.query != nil && depth <= maxDepth; depth++ {
		q := s.query
		if len(q.from) == 0 {
			return none("it reads no table")
		}
		f := q.from[0]
		switch {
		case len(q.from) > 1:
			return none("it reads a join and deduplicates nothing: no ROW_NUMBER, no DISTINCT, no GROUP BY")
		case f.call != nil:
			return none("%s alone deduplicates nothing", strings.ToUpper(f.call.name))
		case f.match || q.order != nil:
			return none("it deduplicates nothing: no ROW_NUMBER, no DISTINCT, no GROUP BY")
		case q.deduplicates || aggregates(q):
			return none("it reads an aggregate of the whole stream and deduplicates nothing")
		}
		s = f.source
	}
	return nil
}
