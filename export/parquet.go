package export

import (
	"io"
	"reflect"

	"github.com/parquet-go/parquet-go"

	"deduplab/stream"
)

// groupRows is the number of rows of a row group, batchRows of those written together.
const (
	groupRows = 1 << 20
	batchRows = 256
)

// table writes a Parquet file.
type table struct {
	e    *exporter
	out  *parquet.GenericWriter[any]
	rows []parquet.Row
}

func (e *exporter) newParquet(w io.Writer) *table {
	schema := columnsInOrder{Group: parquet.Group{}}
	for _, c := range e.schema {
		node := parquet.Optional(nodeOf(c))
		schema.Group[c.Name] = node
		schema.fields = append(schema.fields, field{node, c.Name})
	}
	return &table{e: e, out: parquet.NewGenericWriter[any](w, parquet.NewSchema("rows", schema),
		parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(groupRows), parquet.CreatedBy("deduplab", "", ""))}
}

// nodeOf is the type of a column.
func nodeOf(c stream.Column) parquet.Node {
	switch c.Type {
	case stream.String:
		return parquet.String()
	case stream.Decimal:
		return parquet.Decimal(c.Scale, 18, parquet.Int64Type)
	case stream.Timestamp:
		return parquet.Timestamp(parquet.Millisecond)
	}
	return parquet.Int(64)
}

// columnsInOrder is a group whose columns stand in the order of the workload, not in that of their names.
type columnsInOrder struct {
	parquet.Group
	fields []parquet.Field
}

// Fields implements parquet.Node.
func (c columnsInOrder) Fields() []parquet.Field { return c.fields }

// field is a column. Rows are written as values, so that it need not take any apart.
type field struct {
	parquet.Node
	name string
}

// Name implements parquet.Field.
func (f field) Name() string { return f.name }

// Value implements parquet.Field.
func (f field) Value(base reflect.Value) reflect.Value { return base }

func (t *table) row(row *stream.Row) error {
	values := make(parquet.Row, 0, len(t.e.schema))
	for i, v := range t.e.record(row) {
		value, defined := parquet.NullValue(), 0
		if !v.Null {
			defined = 1
			if value = parquet.Int64Value(v.Int); t.e.schema[i].Type == stream.String {
				value = parquet.ByteArrayValue([]byte(v.Text))
			}
		}
		values = append(values, value.Level(0, defined, i))
	}
	if t.rows = append(t.rows, values); len(t.rows) < batchRows {
		return nil
	}
	return t.flush()
}

func (t *table) flush() error {
	_, err := t.out.WriteRows(t.rows)
	t.rows = t.rows[:0]
	return err
}

func (t *table) close() error {
	if err := t.flush(); err != nil {
		return err
	}
	return t.out.Close()
}
