package harness

import (
	"strconv"
	"strings"

	"deduplab/stream"
)

// Records keeps the rows that were pushed, for the operator to look up.
type Records struct {
	schema   stream.Schema
	rows     []stream.Record
	keys     map[string]stream.Key
	contents map[string]uint64
	content  []int // the columns that the planner leaves to the operator; nil: all
}

// NewRecords makes an empty one.
func NewRecords(schema stream.Schema) *Records {
	return &Records{schema: schema, keys: map[string]stream.Key{}, contents: map[string]uint64{}}
}

// Prune says which columns the planner leaves to the operator: only they make rows differ.
func (r *Records) Prune(columns []int) { r.content = columns }

// Add keeps a row and returns it as an operator gets it, but for its arrival.
func (r *Records) Add(kind stream.Kind, record stream.Record) stream.Row {
	row := stream.Row{Tag: stream.NewTag(uint64(len(r.rows)), 0, 0), Event: stream.NullTime, Kind: kind}
	r.rows = append(r.rows, record)
	if v := record[r.schema.Event]; !v.Null {
		row.Event = stream.Time(v.Int)
	}
	tuple := identity(record, r.schema.Key)
	key, ok := r.keys[tuple]
	if !ok {
		key = stream.Key{Lo: uint64(len(r.keys) + 1)}
		r.keys[tuple] = key
	}
	row.Key = key
	return row
}

// identity spells some columns of a row, or all of them for nil, so that different tuples differ.
func identity(record stream.Record, columns []int) string {
	var b strings.Builder
	add := func(v stream.Value) {
		if v.Null {
			b.WriteString("NULL ")
			return
		}
		b.WriteString(strconv.Quote(v.Text))
		b.WriteString(strconv.FormatInt(v.Int, 10))
		b.WriteByte(' ')
	}
	if columns == nil {
		for _, v := range record {
			add(v)
		}
	}
	for _, i := range columns {
		add(record[i])
	}
	return b.String()
}

// Schema returns the table.
func (r *Records) Schema() stream.Schema { return r.schema }

// Record returns a row.
func (r *Records) Record(tag stream.Tag) stream.Record { return r.rows[tag.Event()] }

// Order returns a column as a number.
func (r *Records) Order(tag stream.Tag, column int) int64 {
	if v := r.Record(tag)[column]; !v.Null {
		return v.Int
	}
	return stream.NullOrder
}

// Content numbers the distinct tuples.
func (r *Records) Content(tag stream.Tag) uint64 {
	tuple := identity(r.Record(tag), r.content)
	n, ok := r.contents[tuple]
	if !ok {
		n = uint64(len(r.contents) + 1)
		r.contents[tuple] = n
	}
	return n
}
