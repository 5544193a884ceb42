package trace_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"deduplab/trace"
)

// cells is a row of a column of every type, in order of their names.
type cells struct {
	Bool    bool             `parquet:"bool"`
	Date    int32            `parquet:"date,date"`
	Decimal int64            `parquet:"decimal,decimal(2:18)"`
	Double  float64          `parquet:"double"`
	Fixed   [3]byte          `parquet:"fixed"`
	Float   float32          `parquet:"float"`
	Int     int32            `parquet:"int"`
	Legacy  deprecated.Int96 `parquet:"legacy"`
	Long    int64            `parquet:"long"`
	Millis  int64            `parquet:"millis,timestamp"`
	Nanos   int64            `parquet:"nanos,timestamp(nanosecond)"`
	Text    string           `parquet:"text"`
	Uint    uint32           `parquet:"uint"`
	Ulong   uint64           `parquet:"ulong"`
	UUID    [16]byte         `parquet:"uuid,uuid"`
}

// TestParquetTypes: a value of every type is read as its text, plain, from a dictionary, and where it may be NULL.
func TestParquetTypes(t *testing.T) {
	rows := []cells{
		{},
		{Bool: true, Date: -1, Decimal: -5, Double: -0.1, Fixed: [3]byte{'a', 'b', 'c'}, Float: 1.5, Int: -1,
			Legacy: deprecated.Int96{1e9, 0, 2440588}, Long: -1, Millis: -1, Nanos: -1, Text: "x", Uint: 1<<32 - 1,
			Ulong: 1<<64 - 1, UUID: [16]byte{0: 1, 15: 255}},
	}
	const want = "false 1970-01-01T00:00:00Z 0.00 0 \x00\x00\x00 0 0 -4713-11-24T00:00:00Z 0 1970-01-01T00:00:00Z " +
		"1970-01-01T00:00:00Z null 0 0 00000000-0000-0000-0000-000000000000\n" +
		"true 1969-12-31T00:00:00Z -0.05 -0.1 abc 1.5 -1 1970-01-01T00:00:01Z -1 1969-12-31T23:59:59.999Z " +
		"1969-12-31T23:59:59.999999999Z x 4294967295 18446744073709551615 01000000-0000-0000-0000-0000000000ff\n"
	plain := parquet.SchemaOf(cells{})
	same := func(n parquet.Node) parquet.Node { return n }
	dictionary := func(n parquet.Node) parquet.Node { return parquet.Encoded(n, &parquet.RLEDictionary) }
	for name, wrap := range map[string]func(parquet.Node) parquet.Node{
		"plain":      same,
		"dictionary": dictionary,
		"optional":   parquet.Optional,
		"both":       func(n parquet.Node) parquet.Node { return parquet.Optional(dictionary(n)) },
	} {
		level, columns, roles := 0, parquet.Group{}, []trace.Role(nil)
		for _, field := range plain.Fields() {
			columns[field.Name()] = wrap(field)
			roles = append(roles, trace.Role{Name: "key", Column: field.Name()})
			if columns[field.Name()].Optional() {
				level = 1
			}
		}
		var file, got bytes.Buffer
		w := parquet.NewGenericWriter[any](&file, parquet.NewSchema("cells", columns))
		for _, cells := range rows {
			row := plain.Deconstruct(nil, cells)
			for i, v := range row {
				row[i] = v.Level(0, level, i)
			}
			if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
				t.Fatal(name, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(name, err)
		}
		r, err := trace.NewReader(trace.Spec{Roles: roles})
		if err != nil {
			t.Fatal(err)
		}
		err = r.Read("f", &file, func(row *trace.Row) error {
			for i, c := range row.Roles {
				if c.Null {
					c.Text = []byte("null")
				}
				if i > 0 {
					got.WriteByte(' ')
				}
				got.Write(c.Text)
			}
			return got.WriteByte('\n')
		})
		if err != nil || got.String() != want {
			t.Errorf("%s: %v\n%q\nwant\n%q", name, err, got.String(), want)
		}
	}
}

// TestParquetLZ4: a file that the library would read as other values is refused.
func TestParquetLZ4(t *testing.T) {
	var file bytes.Buffer
	w := parquet.NewGenericWriter[cells](&file, parquet.Compression(&parquet.Lz4Raw))
	if _, err := w.Write([]cells{{}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(trace.Spec{All: true})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Read("f", &file, func(*trace.Row) error { return nil })
	if !strings.HasPrefix(fmt.Sprint(err), "f: compressed with LZ4") {
		t.Errorf("%v", err)
	}
}
