package conformance

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"deduplab/harness"
	"deduplab/strategies"
	"deduplab/stream"
)

// schema is the table of a case: its first column is the key, its first timestamp the event time.
func (c *Case) schema() (stream.Schema, error) {
	schema := stream.Schema{Key: []int{0}, Event: -1}
	if len(c.Columns) == 0 {
		return schema, fmt.Errorf("%s: columns: a case needs its input columns", c.File)
	}
	for i, column := range c.Columns {
		out, err := harness.ParseType(column.Name, column.Type)
		if err != nil {
			return schema, fmt.Errorf("%s: %w", c.File, err)
		}
		if out.Type == stream.Timestamp && schema.Event < 0 {
			schema.Event = i
		}
		schema.Columns = append(schema.Columns, out)
	}
	if schema.Event < 0 {
		return schema, fmt.Errorf("%s: columns: none is a TIMESTAMP", c.File)
	}
	return schema, nil
}

// readRow reads the row of a step.
func readRow(fields Fields, schema stream.Schema) (stream.Kind, stream.Record, error) {
	text := strings.Trim(string(fields.Get("kind")), `"`)
	kind, ok := stream.ParseKind(text)
	if !ok {
		return 0, nil, fmt.Errorf("a row of the unknown kind %q", text)
	}
	record := make(stream.Record, len(schema.Columns))
	for i, column := range schema.Columns {
		v, err := parseValue(fields.Get(column.Name), column)
		if err != nil {
			return 0, nil, err
		}
		record[i] = v
	}
	return kind, record, nil
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

// keyName spells the key of a row as last_write does: strings bare, NULL as null.
func (r *replay) keyName(record stream.Record) string {
	if r.plan.Key == strategies.ByKey {
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
