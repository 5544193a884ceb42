package conformance

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"deduplab/strategies"
	"deduplab/stream"
)

// caseRecords holds the rows of a case; a row's event number is the number of its step.
type caseRecords struct {
	c        *Case
	schema   stream.Schema
	rows     map[int]stream.Record
	keys     map[string]stream.Key
	contents map[string]uint64
	pruned   []int // the columns that the planner leaves to the operator; nil: all
}

var decimalPattern = regexp.MustCompile(`^DECIMAL\(\d+, ?(\d+)\)$`)

func newRecords(c *Case) (*caseRecords, error) {
	r := &caseRecords{c: c, rows: map[int]stream.Record{}, keys: map[string]stream.Key{}, contents: map[string]uint64{}}
	if len(c.Columns) == 0 {
		return nil, fmt.Errorf("%s: columns: a case needs its input columns", c.File)
	}
	r.schema.Key, r.schema.Event = []int{0}, -1
	for i, column := range c.Columns {
		out := stream.Column{Name: column.Name}
		m := decimalPattern.FindStringSubmatch(column.Type)
		switch {
		case column.Type == "STRING":
			out.Type = stream.String
		case column.Type == "INT" || column.Type == "BIGINT":
			out.Type = stream.Int
		case m != nil:
			out.Type = stream.Decimal
			out.Scale, _ = strconv.Atoi(m[1])
		case strings.HasPrefix(column.Type, "TIMESTAMP"):
			out.Type = stream.Timestamp
			if r.schema.Event < 0 {
				r.schema.Event = i
			}
		default:
			return nil, fmt.Errorf("%s: column %s: unknown type %s", c.File, column.Name, column.Type)
		}
		r.schema.Columns = append(r.schema.Columns, out)
	}
	if r.schema.Event < 0 {
		return nil, fmt.Errorf("%s: columns: none is a TIMESTAMP", c.File)
	}
	return r, nil
}

// row reads the row of a step.
func (r *caseRecords) row(step int) (stream.Row, error) {
	fields := r.c.Steps[step].Row
	record := make(stream.Record, len(r.schema.Columns))
	for i, column := range r.schema.Columns {
		v, err := parseValue(fields.Get(column.Name), column)
		if err != nil {
			return stream.Row{}, err
		}
		record[i] = v
	}
	if kind := strings.Trim(string(fields.Get("kind")), `"`); kind != "+I" {
		return stream.Row{}, fmt.Errorf("a row of kind %s: the lab takes only +I yet", kind)
	}
	r.rows[step] = record
	row := stream.Row{Tag: stream.NewTag(uint64(step), 0, 0), Event: stream.NullTime, Kind: stream.Insert}
	if v := record[r.schema.Event]; !v.Null {
		row.Event = stream.Time(v.Int)
	}
	name := keyName(fields.Get(r.schema.Columns[0].Name))
	key, ok := r.keys[name]
	if !ok {
		key = stream.Key{Lo: uint64(len(r.keys) + 1)}
		r.keys[name] = key
	}
	row.Key = key
	return row, nil
}

func parseValue(raw json.RawMessage, c stream.Column) (stream.Value, error) {
	text := string(raw)
	if raw == nil || text == "null" {
		return stream.Value{Null: true}, nil
	}
	fail := func() (stream.Value, error) {
		return stream.Value{}, fmt.Errorf("column %s: %s does not fit its type", c.Name, text)
	}
	switch c.Type {
	case stream.String:
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return fail()
		}
		return stream.Value{Text: s}, nil
	case stream.Decimal:
		whole, fraction, _ := strings.Cut(strings.Trim(text, `"`), ".")
		if len(fraction) > c.Scale {
			return fail()
		}
		n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", c.Scale-len(fraction)), 10, 64)
		if err != nil {
			return fail()
		}
		return stream.Value{Int: n}, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fail()
	}
	return stream.Value{Int: n}, nil
}

// keyName spells a key column as last_write does: strings bare, NULL as null.
func keyName(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil && string(raw) != "null" {
		return s
	}
	return "null"
}

// name spells the key of a row as last_write does.
func (r *caseRecords) name(tag stream.Tag, by strategies.KeyBy) string {
	record := r.Record(tag)
	if by == strategies.ByKey {
		return record[0].Format(r.schema.Columns[0])
	}
	parts := make([]string, len(record))
	for i, v := range record {
		if c := r.schema.Columns[i]; c.Type == stream.Timestamp && !v.Null {
			parts[i] = strconv.FormatInt(v.Int, 10)
		} else {
			parts[i] = v.Format(c)
		}
	}
	return strings.Join(parts, "|")
}

func (r *caseRecords) null(tag stream.Tag, column int) bool { return r.Record(tag)[column].Null }

// Schema returns the columns of the case.
func (r *caseRecords) Schema() stream.Schema { return r.schema }

// Record returns a row's columns.
func (r *caseRecords) Record(tag stream.Tag) stream.Record { return r.rows[int(tag.Event())] }

// Order returns a column as a number.
func (r *caseRecords) Order(tag stream.Tag, column int) int64 {
	if v := r.Record(tag)[column]; !v.Null {
		return v.Int
	}
	return stream.NullOrder
}

// Content numbers the distinct tuples of the case.
func (r *caseRecords) Content(tag stream.Tag) uint64 {
	record := r.Record(tag)
	if r.pruned != nil {
		kept := make(stream.Record, len(r.pruned))
		for i, column := range r.pruned {
			kept[i] = record[column]
		}
		record = kept
	}
	tuple := fmt.Sprint(record)
	n, ok := r.contents[tuple]
	if !ok {
		n = uint64(len(r.contents) + 1)
		r.contents[tuple] = n
	}
	return n
}
