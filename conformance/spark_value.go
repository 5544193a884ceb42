package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"deduplab/contentkey"
	"deduplab/strategies"
	"deduplab/stream"
)

// sparkValue is a value of a column as Spark has it.
type sparkValue struct {
	null bool
	typ  string // string, long, timestamp, double, boolean, int, or window
	text string // of a string
	n    int64  // of a whole number, a timestamp in ms, a boolean, or a window's start
	f    float64
	end  int64  // of a window
	json string // as it is spelled in emits
}

// readSparkValue reads a value of a recorded row.
func readSparkValue(raw json.RawMessage, typ string) (sparkValue, error) {
	v := sparkValue{typ: typ, json: string(raw)}
	var err error
	switch {
	case raw == nil:
		return v, fmt.Errorf("it is missing")
	case string(raw) == "null":
		v.null = true
	case typ == "string":
		if err = json.Unmarshal(raw, &v.text); err == nil {
			v.json = quoteJSON(v.text)
		}
	case typ == "long", typ == "bigint", typ == "int", typ == "timestamp":
		v.n, err = strconv.ParseInt(string(raw), 10, 64)
	case typ == "double":
		v.f, err = strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	case typ == "boolean":
		var b bool
		if err = json.Unmarshal(raw, &b); b {
			v.n = 1
		}
	default:
		return v, fmt.Errorf("there is no type %q (there are string, long, int, double, boolean, timestamp)", typ)
	}
	if err != nil {
		return v, fmt.Errorf("%s is no %s", raw, typ)
	}
	return v, nil
}

// quoteJSON spells a text in one way.
func quoteJSON(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string never fails
	return strings.TrimSuffix(b.String(), "\n")
}

// windowOf is the tumbling window of a moment.
func windowOf(at stream.Time, size stream.Time) sparkValue {
	start := int64(at.Floor(size))
	return sparkValue{typ: "window", n: start, end: start + int64(size),
		json: fmt.Sprintf(`{"end":%d,"start":%d}`, start+int64(size), start)}
}

// bits are those of a double as Spark compares keys: 0.0 and -0.0 are one, and so are all that are not a number. spark
// drop-duplicates/negative-zero.
func (v *sparkValue) bits() int64 {
	switch {
	case v.f == 0:
		return 0
	case math.IsNaN(v.f):
		return 0x7ff8_0000_0000_0000 // Java's Double.doubleToLongBits, not Go's NaN: spark-extra edge/not-a-number
	}
	return int64(math.Float64bits(v.f))
}

// value is what the lab's operators compare.
func (v *sparkValue) value() stream.Value {
	switch {
	case v.null:
		return stream.Value{Null: true}
	case v.typ == "double":
		return stream.Value{Int: v.bits()}
	}
	return stream.Value{Int: v.n, Text: v.text}
}

// inState spells the value as the recordings do in a key of the state: times as text.
func (v *sparkValue) inState() string {
	at := func(ms int64) string {
		return quoteJSON(time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	switch {
	case v.null:
		return "null"
	case v.typ == "timestamp":
		return at(v.n)
	case v.typ == "window":
		return `{"end":` + at(v.end) + `,"start":` + at(v.n) + "}"
	case v.typ == "double" && v.f == 0:
		return "0.0"
	}
	return v.json
}

// castToString is Spark's cast to string in a session in UTC.
func (v *sparkValue) castToString() (sparkValue, error) {
	if v.null {
		return sparkValue{null: true, typ: "string", json: "null"}, nil
	}
	typ, text := contentkey.Bigint, v.json
	switch v.typ {
	case "string":
		typ, text = contentkey.String, v.text
	case "double":
		typ = contentkey.Double
	case "boolean":
		typ = contentkey.Boolean
	case "timestamp":
		typ, text = contentkey.Timestamp, time.UnixMilli(v.n).UTC().Format(time.RFC3339Nano)
	case "window":
		return sparkValue{}, fmt.Errorf("the lab does not cast a window to a string")
	}
	cast, err := typ.Cast(text, time.UTC)
	if err != nil {
		return sparkValue{}, err
	}
	return sparkValue{typ: "string", text: cast.Text, json: quoteJSON(cast.Text)}, nil
}

// columnType is how the lab tells types apart: two columns have the same type where Type and Scale are the same.
func columnType(typ string) (stream.Column, error) {
	// There is no double and no struct among the lab's types; the scale tells them from numbers.
	types := map[string]stream.Column{
		"string": {Type: stream.String}, "long": {Type: stream.Int}, "bigint": {Type: stream.Int},
		"int": {Type: stream.Int, Scale: 4}, "boolean": {Type: stream.Int, Scale: 1},
		"double": {Type: stream.Int, Scale: 8}, "timestamp": {Type: stream.Timestamp},
		"window": {Type: stream.Timestamp, Scale: -1},
	}
	column, ok := types[typ]
	if !ok {
		return column, fmt.Errorf("there is no type %q (there are string, long, int, double, boolean, timestamp)", typ)
	}
	return column, nil
}

// sparkColumns are the columns of a query's rows.
type sparkColumns struct {
	names, types []string
}

func (c *sparkColumns) index(name string) (int, error) {
	i := slices.Index(c.names, name)
	if i < 0 {
		return -1, fmt.Errorf("there is no column %q%s", name, stream.DidYouMean(name, c.names))
	}
	return i, nil
}

// with returns the columns and one more, which takes the place of one of its name.
func (c *sparkColumns) with(name, typ string) sparkColumns {
	names, types := slices.Clone(c.names), slices.Clone(c.types)
	if i := slices.Index(names, name); i >= 0 {
		types[i] = typ
		return sparkColumns{names, types}
	}
	return sparkColumns{append(names, name), append(types, typ)}
}

// schema is what the operators see of the columns.
func (c *sparkColumns) schema(key []int, event int) (stream.Schema, error) {
	s := stream.Schema{Key: key, Event: event}
	for i, typ := range c.types {
		column, err := columnType(typ)
		if err != nil {
			return s, fmt.Errorf("column %s: %w", c.names[i], err)
		}
		column.Name = c.names[i]
		s.Columns = append(s.Columns, column)
	}
	return s, nil
}

// sparkRows keeps the rows of a query, for its operators to look up.
type sparkRows struct {
	schema stream.Schema
	rows   [][]sparkValue
}

// Schema returns the columns.
func (r *sparkRows) Schema() stream.Schema { return r.schema }

// Record returns a row.
func (r *sparkRows) Record(tag stream.Tag) stream.Record {
	row := r.rows[tag.Event()]
	record := make(stream.Record, len(row))
	for i := range row {
		record[i] = row[i].value()
	}
	return record
}

// Order returns a column as a number.
func (r *sparkRows) Order(tag stream.Tag, column int) int64 {
	if v := r.rows[tag.Event()][column].value(); !v.Null {
		return v.Int
	}
	return stream.NullOrder
}

// Content identifies the tuple of all columns.
func (r *sparkRows) Content(tag stream.Tag) uint64 {
	all := make([]int, len(r.schema.Columns))
	for i := range all {
		all[i] = i
	}
	return strategies.HashColumns(r.Record(tag), all).Hash()
}
