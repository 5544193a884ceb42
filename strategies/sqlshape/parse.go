package sqlshape

import (
	"fmt"
	"slices"
	"strings"

	"deduplab/stream"
)

// maxDepth bounds how deep queries may be nested.
const maxDepth = 64

// query is one SELECT, cut into its clauses.
type query struct {
	line     int
	hints    []string
	distinct bool
	items    []item
	from     []from
	where    []token
	group    [][]token // GROUP BY, or nil
	order    [][]token
	rest     string // a clause that no shape has: HAVING, LIMIT, UNION ...
	// deduplicates says that it, or what it reads, groups or ranks rows, or is the result of a function.
	deduplicates bool
	other        [][]token // what stands in other clauses
	also         *query    // the other side of UNION ALL
	odd          string    // why the query cannot be what it looks like: something in it that no shape has
}

// refuse notes the first thing that no shape has.
func (q *query) refuse(format string, args ...any) {
	if q.odd == "" {
		q.odd = fmt.Sprintf(format, args...)
	}
}

// item is one expression of a SELECT list.
type item struct {
	expr  []token
	alias string // the name of the column; empty for an expression without one
}

// from is one input of a query.
type from struct {
	source
	join  string // how it is joined to what stands before it; empty for the first
	on    []token
	asOf  bool // FOR SYSTEM_TIME AS OF
	match bool // MATCH_RECOGNIZE
	odd   string
	hints []string
}

// deduplicated reports whether the rows of a source have been grouped or ranked, or come from a function.
func (s source) deduplicated() bool {
	switch {
	case s.query != nil:
		return s.query.deduplicates || rowNumberItem(s.query) >= 0
	case s.call != nil:
		inner, _ := s.call.first()
		return !windowing(s.call.name) || inner.source.deduplicated()
	}
	return false
}

// source is where rows come from: one of a table, a query or a function.
type source struct {
	table *table
	query *query
	call  *call
}

// call is a function in FROM, such as TUMBLE, TO_CHANGELOG or one of the user's.
type call struct {
	name string
	args []arg
}

// arg is one argument of a function in FROM.
type arg struct {
	value     []token
	source    source // of a TABLE argument or a query
	partition []string
}

// first returns the first argument that is a source.
func (c *call) first() (arg, bool) {
	for _, a := range c.args {
		if a.source != (source{}) {
			return a, true
		}
	}
	return arg{}, false
}

// parser cuts tokens into queries. Views and WITH queries take the place of their names.
type parser struct {
	tokens []token
	tables map[string]*table
	views  map[string]*query
}

// fault is an error at a token.
func (p *parser) fault(at int, format string, args ...any) error {
	line := 1
	if at = min(at, len(p.tokens)-1); at >= 0 {
		line = p.tokens[at].line
	}
	return fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...))
}

// is reports whether the tokens from at on, before hi, are these.
func (p *parser) is(at, hi int, words ...string) bool {
	if at+len(words) > hi {
		return false
	}
	for i, w := range words {
		if !p.tokens[at+i].is(w) {
			return false
		}
	}
	return true
}

// after is the index behind the token, or behind the bracket that it opens.
func (p *parser) after(at int) int {
	if p.tokens[at].is("(") {
		return p.tokens[at].closes + 1
	}
	return at + 1
}

// find is the first index in [lo, hi), outside of brackets, with one of the words; hi where there is none.
func (p *parser) find(lo, hi int, words ...string) int {
	for i := lo; i < hi; i = p.after(i) {
		if slices.ContainsFunc(words, p.tokens[i].is) {
			return i
		}
	}
	return hi
}

// commas cuts [lo, hi) at the commas outside of brackets.
func (p *parser) commas(lo, hi int) [][2]int {
	var parts [][2]int
	for lo < hi {
		end := p.find(lo, hi, ",")
		parts = append(parts, [2]int{lo, end})
		lo = end + 1
	}
	return parts
}

// list is commas as tokens.
func (p *parser) list(lo, hi int) [][]token {
	var parts [][]token
	for _, part := range p.commas(lo, hi) {
		parts = append(parts, p.tokens[part[0]:part[1]])
	}
	return parts
}

var clauses = []string{"FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH",
	"UNION", "EXCEPT", "INTERSECT", "MINUS"}

// query parses [lo, hi).
func (p *parser) query(lo, hi, depth int) (*query, error) {
	if depth > maxDepth {
		return nil, p.fault(lo, "queries are nested more than %d deep", maxDepth)
	}
	if lo < hi && p.tokens[lo].is("(") && p.tokens[lo].closes == hi-1 {
		return p.query(lo+1, hi-1, depth+1)
	}
	if p.is(lo, hi, "WITH") {
		var err error
		if lo, err = p.with(lo+1, hi, depth); err != nil {
			return nil, err
		}
	}
	if !p.is(lo, hi, "SELECT") {
		return nil, p.fault(lo, "expected SELECT%s", p.found(lo, hi))
	}
	q := &query{line: p.tokens[lo].line}
	for lo++; lo < hi && (p.tokens[lo].kind == hint || p.is(lo, hi, "DISTINCT") || p.is(lo, hi, "ALL")); lo++ {
		if p.tokens[lo].kind == hint {
			q.hints = append(q.hints, p.tokens[lo].text)
		}
		q.distinct = q.distinct || p.is(lo, hi, "DISTINCT")
	}
	q.deduplicates = q.distinct
	if q.distinct && p.is(lo, hi, "ON", "(") {
		q.refuse("SELECT DISTINCT ON is not Flink SQL: write ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...) and " +
			"WHERE rn = 1 around it")
		lo = p.after(lo + 1)
	}
	end := p.find(lo, hi, clauses...)
	for _, part := range p.list(lo, end) {
		q.items = append(q.items, newItem(part))
	}
	if len(q.items) == 0 {
		return nil, p.fault(lo, "SELECT names no column")
	}
	for lo = end; lo < hi; lo = end {
		clause := strings.ToUpper(p.tokens[lo].text)
		// FROM stands within a clause, too: IS DISTINCT FROM.
		end = p.find(lo+1, hi, clauses[1:]...)
		start := lo + 1
		if p.is(start, end, "BY") {
			start++
		}
		switch clause {
		case "FROM":
			if err := p.from(q, start, end, depth); err != nil {
				return nil, err
			}
		case "WHERE":
			q.where = p.tokens[start:end]
		case "GROUP":
			q.group = p.list(start, end)
			q.deduplicates = true
		case "ORDER":
			q.order = p.list(start, end)
		case "UNION", "EXCEPT", "INTERSECT", "MINUS":
			q.rest = clause
			other := p.find(lo, hi, "SELECT", "WITH", "(")
			if clause != "UNION" || !p.is(lo+1, hi, "ALL") {
				q.refuse("%s compares whole rows and removes equal ones by itself, which is not recorded: only UNION ALL "+
					"hands all rows on", clause)
			}
			var err error // the other side brings the same columns
			if p.is(other, hi, "(") && p.tokens[other].closes < hi-1 {
				q.refuse("brackets around one of several sides of %s are not understood: leave them out", clause)
				hi = p.after(other)
			}
			if q.also, err = p.query(other, hi, depth); err != nil {
				return nil, err
			}
			q.deduplicates = q.deduplicates || q.also.deduplicates
			q.expressions()
			return q, nil
		default:
			q.rest = clause
			q.other = append(q.other, p.tokens[start:end])
		}
	}
	q.expressions()
	return q, nil
}

// found tells what stands where something else was expected.
func (p *parser) found(at, hi int) string {
	if at >= hi {
		return ", found the end"
	}
	return fmt.Sprintf(", found %.40s", p.tokens[at].text)
}

// with parses the queries of a WITH clause and returns where the main query begins.
func (p *parser) with(lo, hi, depth int) (int, error) {
	for {
		if lo >= hi || !p.tokens[lo].name() {
			return 0, p.fault(lo, "expected the name of a query after WITH%s", p.found(lo, hi))
		}
		name, body := p.tokens[lo].text, lo+1
		renamed := p.is(body, hi, "(")
		if renamed {
			body = p.after(body) // column names
		}
		if !p.is(body, hi, "AS", "(") {
			return 0, p.fault(body, "expected AS ( after WITH %s%s", name, p.found(body, hi))
		}
		q, err := p.query(body+2, p.tokens[body+1].closes, depth+1)
		if err != nil {
			return 0, err
		}
		if renamed {
			q.refuse("WITH %s gives the columns other names in brackets: name them with AS in its SELECT", name)
		}
		p.views[key(name)] = q
		if lo = p.after(body + 1); !p.is(lo, hi, ",") {
			return lo, nil
		}
		lo++
	}
}

// newItem takes the alias off an expression.
func newItem(expr []token) item {
	n := len(expr)
	switch {
	case n >= 3 && expr[n-2].is("AS") && expr[n-1].name():
		return item{expr[:n-2], expr[n-1].text}
	case n >= 2 && expr[n-1].name() && !expr[n-1].is("END") && (expr[n-2].kind != symbol || expr[n-2].is(")")) &&
		!expr[n-2].is("IS") && !expr[n-2].is("NOT"):
		return item{expr[:n-1], expr[n-1].text}
	}
	return item{expr, column(expr)}
}

// column is the name of an expression that is nothing but a column, whatever table it is qualified with.
func column(expr []token) string {
	for i, t := range expr {
		if i%2 == 0 && !t.name() || i%2 == 1 && !t.is(".") {
			return ""
		}
	}
	if len(expr)%2 == 0 {
		return ""
	}
	return expr[len(expr)-1].text
}

// from parses the inputs of a query.
func (p *parser) from(q *query, lo, hi, depth int) error {
	join := ""
	for {
		f, at, err := p.input(lo, hi, depth)
		if err != nil {
			return err
		}
		f.join = join
		if f.odd != "" {
			q.refuse("%s", f.odd)
		}
		lo = at
		if p.is(lo, hi, "ON") || p.is(lo, hi, "USING") {
			end := p.find(lo+1, hi, ",", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL")
			f.on = p.tokens[lo+1 : end]
			lo = end
		}
		q.from = append(q.from, f)
		q.deduplicates = q.deduplicates || f.deduplicated()
		if lo >= hi {
			return nil
		}
		if p.is(lo, hi, ",") {
			join = "a comma"
			lo++
			continue
		}
		end := p.find(lo, hi, "JOIN")
		if end == hi {
			return p.fault(lo, "expected a JOIN or the end of FROM%s", p.found(lo, hi))
		}
		join = "JOIN"
		lo = end + 1
	}
}

// input parses one input of FROM with what belongs to it, and returns where it ends.
func (p *parser) input(lo, hi, depth int) (from, int, error) {
	var f from
	src, at, err := p.source(lo, hi, depth)
	if err != nil {
		return f, 0, err
	}
	f.source = src
	alias := false
	for at < hi {
		switch {
		case p.is(at, hi, "TABLESAMPLE"):
			f.odd = "TABLESAMPLE takes a part of the rows, which is not recorded"
			at++
		case p.tokens[at].kind == hint:
			f.hints = append(f.hints, p.tokens[at].text)
			at++
		case p.is(at, hi, "FOR", "SYSTEM_TIME", "AS", "OF"):
			f.asOf = true
			at += 4
			for at < hi && (p.tokens[at].kind == quoted || p.is(at, hi, ".") || p.is(at, hi, "(") ||
				p.tokens[at].kind == word && !joins(p.tokens[at]) && !p.is(at, hi, "AS")) {
				at = p.after(at)
			}
		case p.is(at, hi, "MATCH_RECOGNIZE", "("):
			f.match = true
			at = p.after(at + 1)
		case p.is(at, hi, "AS") && at+1 < hi && p.tokens[at+1].name() && !alias:
			alias = true
			at += 2
		case p.tokens[at].kind == quoted || p.tokens[at].kind == word && !joins(p.tokens[at]):
			if (alias || p.is(at, hi, "PIVOT") || p.is(at, hi, "UNPIVOT")) && f.odd == "" {
				f.odd = fmt.Sprintf("%.40s behind a table in FROM is not understood", p.tokens[at].text)
			}
			alias = true
			at++
		case p.is(at, hi, "("):
			if f.odd == "" {
				f.odd = "an alias in FROM gives the columns other names in brackets: name them with AS in a SELECT"
			}
			at = p.after(at) // the column names of an alias
		default:
			return f, at, nil
		}
	}
	return f, at, nil
}

// joins reports whether the word ends an input.
func joins(t token) bool {
	return slices.ContainsFunc([]string{"JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "ON", "USING"}, t.is)
}

// source parses a table, a query in brackets or a function.
func (p *parser) source(lo, hi, depth int) (source, int, error) {
	if depth > maxDepth {
		return source{}, 0, p.fault(lo, "queries are nested more than %d deep", maxDepth)
	}
	for p.is(lo, hi, "LATERAL") || p.is(lo, hi, "TABLE") && !p.is(lo+1, hi, "(") {
		lo++
	}
	switch {
	case lo >= hi:
		return source{}, 0, p.fault(lo, "expected a table%s", p.found(lo, hi))
	case p.is(lo, hi, "TABLE", "("):
		src, _, err := p.source(lo+2, p.tokens[lo+1].closes, depth+1)
		return src, p.after(lo + 1), err
	case p.is(lo, hi, "("):
		if inside, end := lo+1, p.tokens[lo].closes; p.is(inside, end, "SELECT") || p.is(inside, end, "WITH") ||
			p.is(inside, end, "(") {
			q, err := p.query(inside, end, depth+1)
			return source{query: q}, end + 1, err
		}
		src, _, err := p.source(lo+1, p.tokens[lo].closes, depth+1)
		return src, p.after(lo), err
	case !p.tokens[lo].name():
		return source{}, 0, p.fault(lo, "expected a table%s", p.found(lo, hi))
	}
	for p.is(lo+1, hi, ".") && lo+2 < hi && p.tokens[lo+2].name() {
		lo += 2
	}
	name := p.tokens[lo].text
	if p.is(lo+1, hi, "(") {
		c, err := p.call(name, lo+2, p.tokens[lo+1].closes, depth)
		return source{call: c}, p.after(lo + 1), err
	}
	if q, ok := p.views[key(name)]; ok {
		return source{query: q}, lo + 1, nil
	}
	return source{table: p.table(name)}, lo + 1, nil
}

// table returns the table of a name. One that was not created is assumed.
func (p *parser) table(name string) *table {
	t, ok := p.tables[key(name)]
	if !ok {
		t = &table{name: name, assumed: true}
		p.tables[key(name)] = t
	}
	return t
}

// key is how names are looked up.
func key(name string) string { return strings.ToLower(name) }

// call parses a function in FROM, whose arguments stand in [lo, hi).
func (p *parser) call(name string, lo, hi, depth int) (*call, error) {
	c := &call{name: name}
	for _, part := range p.commas(lo, hi) {
		from, to := part[0], part[1]
		if p.is(from+1, to, "=>") {
			from += 2
		}
		a := arg{value: p.tokens[from:to]}
		if p.is(from, to, "TABLE") || p.is(from, to, "(") {
			src, at, err := p.source(from, to, depth+1)
			if err != nil {
				return nil, err
			}
			a.source = src
			if at = p.find(at, to, "PARTITION"); p.is(at, to, "PARTITION", "BY") {
				at += 2
				columns := [][]token{p.tokens[at:p.find(at, to, "ORDER")]}
				if p.is(at, to, "(") {
					columns = p.list(at+1, p.tokens[at].closes)
				}
				for _, expr := range columns {
					a.partition = append(a.partition, column(expr))
				}
			}
		}
		c.args = append(c.args, a)
	}
	return c, nil
}

// interval reads INTERVAL 'n' UNIT.
func interval(expr []token) (stream.Time, bool) {
	if len(expr) != 3 || !expr[0].is("INTERVAL") || expr[1].kind != text {
		return 0, false
	}
	unit, ok := map[string]string{"SECOND": "s", "MINUTE": "m", "HOUR": "h", "DAY": "d"}[strings.TrimSuffix(
		strings.ToUpper(expr[2].text), "S")]
	if !ok {
		return 0, false
	}
	span, err := stream.ParseDuration(strings.TrimSpace(expr[1].text) + unit)
	return span, err == nil
}
