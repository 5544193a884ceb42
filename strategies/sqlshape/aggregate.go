package sqlshape

import (
	"fmt"
	"slices"
	"strings"

	"deduplab/stream"
)

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
			return none("GROUP BY TUMBLE(...) is the old way of writing windows and not recorded: write FROM " +
				"TABLE(TUMBLE(TABLE t, DESCRIPTOR(time), size)) GROUP BY window_start, window_end")
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
