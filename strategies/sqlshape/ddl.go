package sqlshape

import (
	"strconv"
	"strings"

	"deduplab/stream"
)

// table is a table as far as the statements tell.
type table struct {
	name    string
	assumed bool // no CREATE TABLE was there
	partial bool // its columns come from elsewhere: CREATE TABLE AS or LIKE
	columns []stream.Column
	key     []string // PRIMARY KEY NOT ENFORCED
	rowtime string   // the event-time attribute
	delay   stream.Time
	proc    map[string]bool // computed as PROCTIME()
	options map[string]string
	used    []string // columns that queries name, of a table whose columns are not known
}

// Orders is the table of "Deduplicating Streams with Flink SQL".
var Orders = stream.Schema{
	Columns: []stream.Column{{Name: "order_id"}, {Name: "quantity", Type: stream.Int},
		{Name: "price", Type: stream.Decimal, Scale: 2}, {Name: "created_at", Type: stream.Timestamp}},
	Key: []int{0}, Event: 3,
}

// What is assumed of a table without a CREATE TABLE.
const (
	assumedRowtime = "created_at"
	assumedProc    = "proc"
	cloudRowtime   = "$rowtime" // of every table on Confluent Cloud, with a watermark
)

// open reports whether a table may have columns that it does not name.
func (t *table) open() bool { return t.assumed || t.partial }

// changes reports whether a table holds the changes of another: by its connector, its format, or as the recordings' own
// connector says it.
func (t *table) changes() bool {
	connector := t.options["connector"]
	if connector == "upsert-kafka" || strings.HasSuffix(connector, "-cdc") || t.options["changelog-mode"] == "all" {
		return true
	}
	for _, format := range []string{t.options["format"], t.options["value.format"]} {
		for _, of := range []string{"debezium", "canal", "maxwell", "ogg", "changelog"} {
			if strings.HasPrefix(format, of) {
				return true
			}
		}
	}
	return false
}

// createTable parses a CREATE TABLE from the name on.
func (p *parser) createTable(lo, hi int) (*table, int) {
	for p.is(lo, hi, "IF") || p.is(lo, hi, "NOT") || p.is(lo, hi, "EXISTS") {
		lo++
	}
	for p.is(lo+1, hi, ".") {
		lo += 2
	}
	if lo >= hi || !p.tokens[lo].name() {
		return nil, hi
	}
	t := &table{name: p.tokens[lo].text, proc: map[string]bool{}, options: map[string]string{}}
	lo++
	t.partial = !p.is(lo, hi, "(")
	if !t.partial {
		for _, part := range p.commas(lo+1, p.tokens[lo].closes) {
			p.define(t, part[0], part[1])
		}
		lo = p.after(lo)
	}
	if with := p.find(lo, hi, "WITH"); p.is(with, hi, "WITH", "(") {
		for _, option := range p.list(with+2, p.tokens[with+1].closes) {
			if len(option) == 3 && option[1].is("=") {
				t.options[option[0].text] = option[2].text
			}
		}
	}
	as := p.find(lo, hi, "AS", "LIKE")
	t.partial = t.partial || as < hi
	p.tables[key(t.name)] = t
	delete(p.views, key(t.name))
	if p.is(as, hi, "AS") {
		return t, as + 1
	}
	return t, hi
}

// define reads one line of a CREATE TABLE.
func (p *parser) define(t *table, lo, hi int) {
	if p.is(lo, hi, "CONSTRAINT") {
		lo += 2
	}
	switch {
	case p.is(lo, hi, "WATERMARK", "FOR"):
		as := p.find(lo, hi, "AS")
		t.rowtime = column(p.tokens[lo+2 : as])
		if minus := p.find(as, hi, "-"); minus < hi {
			t.delay, _ = interval(p.tokens[minus+1 : hi])
		}
		return
	case p.is(lo, hi, "PRIMARY", "KEY", "("):
		for _, name := range p.list(lo+3, p.tokens[lo+2].closes) {
			t.key = append(t.key, column(name))
		}
		return
	case lo+1 >= hi || !p.tokens[lo].name():
		return
	}
	name := p.tokens[lo].text
	if p.is(lo+1, hi, "AS", "PROCTIME", "(", ")") {
		t.proc[key(name)] = true
		return
	}
	if end := p.find(lo, hi, "PRIMARY"); p.is(end, hi, "PRIMARY", "KEY") {
		t.key = append(t.key, name)
	}
	t.columns = append(t.columns, p.typed(name, lo+1, hi))
}

// typed reads the type of a column. The lab knows four types; the others run as text.
func (p *parser) typed(name string, lo, hi int) stream.Column {
	c := stream.Column{Name: name}
	switch kind := strings.ToUpper(p.tokens[lo].text); kind {
	case "TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT":
		c.Type = stream.Int
	case "DECIMAL", "NUMERIC", "DOUBLE", "FLOAT":
		c.Type = stream.Decimal
		if p.is(lo+1, hi, "(") && lo+4 < hi && p.is(lo+3, hi, ",") {
			c.Scale, _ = strconv.Atoi(p.tokens[lo+4].text)
			c.Scale = min(c.Scale, 18)
		}
	default:
		if strings.HasPrefix(kind, "TIMESTAMP") {
			c.Type = stream.Timestamp
		}
	}
	return c
}
