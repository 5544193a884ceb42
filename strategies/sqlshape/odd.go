package sqlshape

import (
	"slices"
	"strings"
)

// expressions looks through all expressions of a query for what no shape has: subqueries, and window functions other
// than one ROW_NUMBER that is a column of its own.
func (q *query) expressions() {
	for _, f := range q.from {
		q.subquery("the condition of a JOIN", f.on)
	}
	q.subquery("WHERE", q.where)
	var columns [][]token
	for _, it := range q.items {
		columns = append(columns, it.expr)
	}
	for _, of := range []struct {
		where string
		all   [][]token
	}{{"the SELECT list", columns}, {"GROUP BY", q.group}, {"ORDER BY", q.order}, {q.rest, q.other}} {
		for _, expr := range of.all {
			q.subquery(of.where, expr)
		}
	}
	q.windows(columns)
	for _, expr := range q.group {
		for _, several := range []string{"ROLLUP", "CUBE", "GROUPING"} {
			if len(expr) > 1 && expr[0].is(several) {
				q.refuse("GROUP BY %s groups each row several times, which is not recorded: GROUP BY the columns of the key",
					several)
			}
		}
	}
	if aggregates(q) {
		q.deduplicates = true
	}
}

// subquery refuses a SELECT within an expression.
func (q *query) subquery(where string, expr []token) {
	at := slices.IndexFunc(expr, func(t token) bool { return t.is("SELECT") || t.is("VALUES") })
	if at < 0 {
		return
	}
	what := "a subquery"
	for i := at - 1; i >= 0 && what == "a subquery"; i-- {
		not := i > 0 && expr[i-1].is("NOT")
		switch {
		case expr[i].is("("):
			continue
		case (expr[i].is("EXISTS") || expr[i].is("IN")) && not:
			what = "NOT " + strings.ToUpper(expr[i].text) + " (SELECT ...)"
		case expr[i].is("EXISTS") || expr[i].is("IN"):
			what = strings.ToUpper(expr[i].text) + " (SELECT ...)"
		}
		break
	}
	q.refuse("%s in %s is a join to the planner, which the lab does not run", what, where)
}

// windows refuses window functions, but for one ROW_NUMBER.
func (q *query) windows(columns [][]token) {
	var found []string
	ranks := 0
	for _, expr := range columns {
		if ranking(expr) {
			ranks++
		}
		for i, t := range expr {
			if t.is("OVER") {
				found = append(found, windowFunction(expr, i))
			}
		}
	}
	for _, expr := range append(slices.Concat(q.group, q.order), q.where) {
		if slices.ContainsFunc(expr, func(t token) bool { return t.is("OVER") }) {
			q.refuse("a window function stands outside of the SELECT list, which is not recorded")
		}
	}
	switch {
	case len(found) > 1:
		q.refuse("the SELECT has %d window functions (%s), and no Rank has more than its ROW_NUMBER: all aggregates must be "+
			"computed on the same window, says the planner", len(found), strings.Join(found[:2], ", "))
	case len(found) == 1 && ranks == 0 && found[0] == "ROW_NUMBER":
		q.refuse("ROW_NUMBER() OVER (...) stands within a larger expression, so the planner sees no Rank in it: make it a " +
			"column of its own")
	case len(found) == 1 && ranks == 0:
		q.refuse("%s OVER is another window function than ROW_NUMBER: an OverAggregate, which the lab does not run", found[0])
	}
}

// ranking reports whether a column is ROW_NUMBER() OVER ..., or another rank, and nothing else.
func ranking(expr []token) bool {
	return len(expr) > 4 && expr[1].is("(") && expr[2].is(")") && expr[3].is("OVER") &&
		(expr[0].is("ROW_NUMBER") || expr[0].is("RANK") || expr[0].is("DENSE_RANK")) && closing(expr, 4) == len(expr)-1
}

// windowFunction is the name of the function in front of OVER.
func windowFunction(expr []token, over int) string {
	for i := over - 1; i > 0; i-- {
		if expr[i].is("(") && closing(expr, i) >= over-3 && expr[i-1].name() && !expr[i-1].is("FILTER") {
			return strings.ToUpper(expr[i-1].text)
		}
	}
	return "a function"
}

// understood refuses a query in which, at whatever depth, something stands that no shape has.
func (r *recogniser) understood(q *query) error {
	seen := map[*query]bool{}
	todo := []*query{q}
	var odd, rest string
	top := q
	for len(todo) > 0 {
		q, todo = todo[len(todo)-1], todo[:len(todo)-1]
		if q == nil || seen[q] {
			continue
		}
		seen[q] = true
		if odd == "" {
			odd = q.odd
		}
		if q.rest != "" && (q.rest != "UNION" || q.deduplicates) {
			rest = q.rest
		}
		todo = append(todo, q.also)
		for _, f := range q.from {
			todo = append(todo, f.source.queries()...)
		}
	}
	switch {
	case odd != "":
		return none("%s", odd)
	case rest == "QUALIFY":
		return none("QUALIFY is not recorded: put the ROW_NUMBER into a subquery and write WHERE rn = 1 around it")
	case rest == "WINDOW":
		return none("ROW_NUMBER() OVER a named window is not recorded: write the PARTITION BY into the brackets")
	case rest == "UNION":
		return none("a deduplication with UNION ALL is not recorded: explain its sides by themselves")
	case rest != "" && !top.deduplicates:
		return none("it deduplicates nothing, and %s is not recorded", rest)
	case rest != "":
		return none("a deduplication with %s is not recorded", rest)
	}
	return nil
}

// queries are those that a source reads itself.
func (s source) queries() []*query {
	switch {
	case s.query != nil:
		return []*query{s.query}
	case s.call != nil:
		var all []*query
		for _, a := range s.call.args {
			all = append(all, a.source.queries()...)
		}
		return all
	}
	return nil
}

// either reports whether a condition is made of alternatives: OR outside of brackets.
func either(condition []token) bool {
	_, _, found := cut(condition, "OR")
	return found
}
