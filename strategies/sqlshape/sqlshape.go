// Package sqlshape recognises deduplication queries: which of the lab's strategies a query is, with which parameters,
// and why the planner makes that of it.
//
// It is no SQL parser. It cuts a file into tokens, reads what the CREATE TABLE and SET statements say of time
// attributes and options, cuts queries into their clauses, and compares them with the shapes whose behaviour was
// recorded. A query that has none of the shapes is an error that says why.
package sqlshape

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"deduplab/strategies"
	"deduplab/stream"
)

// MaxBytes bounds the SQL that is read.
const MaxBytes = 1 << 20

// Shape is what was recognised.
type Shape struct {
	Strategy string
	Params   map[string]string
	Job      strategies.Job
	// RowNumber says that the query keeps the row number; ToChangelog that it is wrapped in TO_CHANGELOG.
	RowNumber, ToChangelog bool
	// Consumer is what the query, or its INSERT, does with the deduplicated rows; empty where that is not known.
	Consumer strategies.Consumer
	// NoTimeAttribute says that the table has no event-time attribute.
	NoTimeAttribute bool
	Why             []string // how the planner comes to its operator
	Notes           []string // what was assumed, and what has no effect
}

// statement is a query with the INSERT that it feeds.
type statement struct {
	query      *query
	sink       string
	onConflict bool
}

// Recognise tells which strategy the deduplication in some SQL is. Of several queries it takes the last that
// deduplicates.
func Recognise(sql string) (Shape, error) {
	if len(sql) > MaxBytes {
		return Shape{}, fmt.Errorf("the SQL is longer than %d bytes", MaxBytes)
	}
	tokens, err := lex(sql)
	if err != nil {
		return Shape{}, err
	}
	f := &file{
		parser:  parser{tokens: tokens, tables: map[string]*table{}, views: map[string]*query{}},
		options: map[string]string{},
	}
	if err := f.read(); err != nil {
		return Shape{}, err
	}
	if len(f.statements) == 0 {
		return Shape{}, f.nothing()
	}
	var best *Shape
	for i, s := range f.statements {
		r := recogniser{file: f, shape: Shape{Params: map[string]string{}}}
		shape, fault := r.recognise(s)
		if fault != nil {
			err = fault
			continue
		}
		if len(f.statements) > 1 {
			shape.Notes = append(shape.Notes, fmt.Sprintf("of %d queries this is the one in line %d",
				len(f.statements), f.statements[i].query.line))
		}
		if best == nil || shape.removes() || !best.removes() {
			best = &shape
		}
	}
	if best == nil {
		return Shape{}, err
	}
	return *best, nil
}

// removes reports whether the query removes anything.
func (s *Shape) removes() bool {
	return s.Strategy != "pass-through" && s.Strategy != "pk-not-enforced"
}

// file is the SQL that was handed in.
type file struct {
	parser
	statements []statement
	options    map[string]string // SET
	other      string            // the first word of a statement that is not looked at
}

// read parses the statements.
func (f *file) read() error {
	for lo := 0; lo < len(f.tokens); {
		hi := f.find(lo, len(f.tokens), ";")
		if err := f.statement(lo, hi); err != nil {
			return err
		}
		lo = hi + 1
	}
	return nil
}

// statement takes in one statement.
func (f *file) statement(lo, hi int) error {
	for f.is(lo, hi, "EXECUTE") || f.is(lo, hi, "STATEMENT", "SET") || f.is(lo, hi, "SET", "BEGIN") ||
		f.is(lo, hi, "BEGIN") || f.is(lo, hi, "EXPLAIN") || f.is(lo, hi, "END") {
		lo++
	}
	if lo >= hi {
		return nil
	}
	var s statement
	switch first := f.tokens[lo]; {
	case first.is("SET"):
		f.set(lo+1, hi)
		return nil
	case first.is("CREATE"):
		return f.create(lo+1, hi)
	case first.is("INSERT"):
		at := f.find(lo, hi, "SELECT", "WITH", "(")
		for f.is(at, hi, "(") && !f.is(at+1, hi, "SELECT") && !f.is(at+1, hi, "WITH") && !f.is(at+1, hi, "(") {
			at = f.find(f.after(at), hi, "SELECT", "WITH", "(") // the columns of the sink
		}
		if sink := lo + 2; sink < hi && f.tokens[sink].name() {
			for f.is(sink+1, hi, ".") && sink+2 < hi {
				sink += 2
			}
			s.sink = f.tokens[sink].text
		}
		lo = at
		if conflict := f.find(lo, hi, "CONFLICT"); conflict < hi {
			s.onConflict = true
			hi = conflict - 1
		}
	case !first.is("SELECT") && !first.is("WITH") && !first.is("("):
		if f.other == "" {
			f.other = fmt.Sprintf("%.40s", first.text)
		}
		return nil
	}
	q, err := f.query(lo, hi, 0)
	if err != nil {
		return err
	}
	s.query = q
	f.statements = append(f.statements, s)
	return nil
}

// set reads SET 'name' = 'value' or SET name = value.
func (f *file) set(lo, hi int) {
	joined := func(lo, hi int, space string) string {
		var parts []string
		for _, t := range f.tokens[lo:hi] {
			parts = append(parts, t.text)
		}
		return strings.Join(parts, space)
	}
	if at := f.find(lo, hi, "="); at < hi {
		f.options[joined(lo, at, "")] = joined(at+1, hi, " ")
	}
}

// create reads CREATE TABLE and CREATE VIEW; other statements tell nothing.
func (f *file) create(lo, hi int) error {
	for f.is(lo, hi, "TEMPORARY") || f.is(lo, hi, "OR") || f.is(lo, hi, "REPLACE") {
		lo++
	}
	switch {
	case f.is(lo, hi, "TABLE"):
		t, as := f.createTable(lo+1, hi)
		if t == nil || as >= hi {
			return nil
		}
		q, err := f.query(as, hi, 0)
		if err != nil {
			return err
		}
		f.statements = append(f.statements, statement{query: q, sink: t.name})
	case f.is(lo, hi, "VIEW"):
		lo++
		for f.is(lo, hi, "IF") || f.is(lo, hi, "NOT") || f.is(lo, hi, "EXISTS") {
			lo++
		}
		for f.is(lo+1, hi, ".") {
			lo += 2
		}
		as := f.find(lo, hi, "AS")
		if lo >= as || as >= hi || !f.tokens[lo].name() {
			return nil
		}
		q, err := f.query(as+1, hi, 0)
		if err != nil {
			return err
		}
		if f.is(lo+1, as, "(") {
			q.refuse("view %s gives the columns other names in brackets: name them with AS in its SELECT", f.tokens[lo].text)
		}
		f.views[key(f.tokens[lo].text)] = q
	}
	return nil
}

// nothing says why there is no query.
func (f *file) nothing() error {
	switch {
	case len(f.tokens) == 0:
		return errors.New("there is no SQL in it")
	case f.other != "":
		return fmt.Errorf("%s is not the beginning of a query: expected SELECT, WITH, INSERT INTO or CREATE TABLE AS",
			f.other)
	case len(f.views) > 0:
		return errors.New("it creates views but has no query that reads them: add SELECT * FROM the view")
	}
	return errors.New("it has no query, only settings and tables")
}

// options that a shape takes over.
const (
	optTTL       = "table.exec.state.ttl"
	optCloudTTL  = "sql.state-ttl"
	optCache     = "table.exec.rank.topn-cache-size"
	optPhases    = "table.optimizer.agg-phase-strategy"
	optBatch     = "table.exec.mini-batch.enabled"
	optLatency   = "table.exec.mini-batch.allow-latency"
	optBatchSize = "table.exec.mini-batch.size"
	optCompact   = "table.exec.deduplicate.mini-batch.compact-changes-enabled"
	optRepeats   = "table.exec.source.cdc-events-duplicate"
	optSensitive = "table.exec.deduplicate.insert-update-after-sensitive-enabled"
)

// settings hands the options on to the shape.
func (r *recogniser) settings() error {
	strategy, err := strategies.Find(r.shape.Strategy)
	if err != nil {
		return err
	}
	takes := func(name string) bool {
		return slices.ContainsFunc(strategy.Params, func(p strategies.Param) bool { return p.Name == name })
	}
	o := r.options
	ttl, isSet := o[optTTL]
	if !isSet {
		ttl, isSet = o[optCloudTTL]
	}
	switch {
	case !isSet:
	case strategy.Name == "ptf":
		r.note("the TTL of the function stands in its @StateHint, which wins over %s; the page assumes 2h", optTTL)
	case takes("ttl"):
		span, ok := Duration(ttl)
		if !ok {
			return fmt.Errorf("%q is no duration that Flink takes: write one like '2 h'", ttl)
		}
		r.shape.Params["ttl"] = stream.FormatDuration(span)
	default:
		r.note("%s does nothing here", optTTL)
	}
	if cache, ok := o[optCache]; ok && takes("cache") {
		r.shape.Params["cache"] = cache
	}
	if o[optPhases] == "ONE_PHASE" && takes("phases") {
		r.shape.Params["phases"] = "one"
	}
	r.shape.Job.InsertInsensitive = o[optSensitive] == "false"
	if o[optBatch] != "true" {
		return nil
	}
	latency, ok := Duration(o[optLatency])
	if !ok || latency == 0 {
		return fmt.Errorf("%s is on, but %s is %q: expected a duration", optBatch, optLatency, o[optLatency])
	}
	r.shape.Job.MiniBatch = strategies.MiniBatch{Latency: latency, Size: 1 << 30, Compact: o[optCompact] == "true"}
	if _, err := fmt.Sscan(o[optBatchSize], &r.shape.Job.MiniBatch.Size); err != nil && o[optBatchSize] != "" {
		return fmt.Errorf("%s is %q: expected a number", optBatchSize, o[optBatchSize])
	}
	r.why("mini-batch is on: a ROW_NUMBER query is declared updating, whatever its order")
	return nil
}

// Duration reads a duration as Flink's options spell it; a bare number is milliseconds.
func Duration(s string) (stream.Time, bool) {
	s = strings.ToLower(strings.ReplaceAll(s, " ", ""))
	digits := strings.TrimLeft(s, "0123456789.")
	unit, ok := map[string]string{"": "ms", "ms": "ms", "milli": "ms", "millisecond": "ms", "s": "s", "sec": "s",
		"second": "s", "m": "m", "min": "m", "minute": "m", "h": "h", "hour": "h", "d": "d", "day": "d"}[singular(digits)]
	if !ok || len(digits) == len(s) {
		return 0, false
	}
	span, err := stream.ParseDuration(s[:len(s)-len(digits)] + unit)
	return span, err == nil
}

// singular takes the s off a unit that is written out.
func singular(unit string) string {
	if len(unit) > 2 {
		return strings.TrimSuffix(unit, "s")
	}
	return unit
}
