package measure

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// parquetMagic begins a Parquet file.
var parquetMagic = []byte("PAR1")

// readParquet takes in the columns of a Parquet file that play a role. A file on disk is read in place, anything else
// into memory. A column within a group is named by its path with dots; lists and maps cannot be read.
func (r *Reader) readParquet(name string, in io.Reader, buffered *bufio.Reader) error {
	file, err := openParquet(in, buffered)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var names []string
	for _, path := range file.Schema().Columns() {
		names = append(names, strings.Join(path, "."))
	}
	columns := make([]*parquetColumn, len(r.roles))
	var faults []error
	for i, role := range r.roles {
		r.found[i] = true
		if role.column == "" {
			continue
		}
		leaf, ok := file.Schema().Lookup(strings.Split(role.column, ".")...)
		switch {
		case !ok || !slices.Contains(names, role.column):
			faults = append(faults, r.missing(name, role, names))
		case leaf.MaxRepetitionLevel > 0:
			faults = append(faults, fmt.Errorf("%s: %s: column %q is a list", name, role.flag, role.column))
		default:
			columns[i] = &parquetColumn{index: leaf.ColumnIndex, text: textOf(leaf.Node.Type())}
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	line := 0
	for _, group := range file.RowGroups() {
		if err := r.readGroup(name, group, columns, &line); err != nil {
			return err
		}
	}
	return nil
}

// openParquet opens a file on disk, or what can only be read from its start.
func openParquet(in io.Reader, buffered *bufio.Reader) (*parquet.File, error) {
	if f, ok := in.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
		}
	}
	data, err := io.ReadAll(buffered)
	if err != nil {
		return nil, err
	}
	return parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
}

// readGroup takes in the rows of a row group. The line of a row is its number in the file, from 1.
func (r *Reader) readGroup(name string, group parquet.RowGroup, columns []*parquetColumn, line *int) error {
	for _, c := range columns {
		if c != nil {
			c.open(group)
			defer c.close()
		}
	}
	cells := make([]string, len(columns))
	for range group.NumRows() {
		*line++
		for i, c := range columns {
			if c == nil {
				continue
			}
			var err error
			if cells[i], err = c.next(); err != nil {
				return fmt.Errorf("%s:%d:%s: %w", name, *line, r.roles[i].column, err)
			}
		}
		if r.add(name, *line, cells) {
			return r.fault()
		}
	}
	return nil
}

// parquetColumn reads the values of one column, row group by row group.
type parquetColumn struct {
	index  int
	text   func(parquet.Value) string
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	buffer [256]parquet.Value
	rest   []parquet.Value
}

func (c *parquetColumn) open(group parquet.RowGroup) {
	c.pages, c.values, c.rest = group.ColumnChunks()[c.index].Pages(), nil, nil
}

func (c *parquetColumn) close() {
	parquet.Release(c.page)
	c.page = nil
	_ = c.pages.Close() // it was only read
}

// next is the text of the next value, empty for NULL.
func (c *parquetColumn) next() (string, error) {
	for len(c.rest) == 0 {
		if c.values == nil {
			parquet.Release(c.page)
			var err error
			if c.page, err = c.pages.ReadPage(); err != nil {
				if err == io.EOF {
					err = io.ErrUnexpectedEOF
				}
				return "", err
			}
			c.values = c.page.Values()
		}
		n, err := c.values.ReadValues(c.buffer[:])
		c.rest = c.buffer[:n]
		if err == io.EOF {
			c.values = nil
		} else if err != nil {
			return "", err
		}
	}
	v := c.rest[0]
	c.rest = c.rest[1:]
	if v.IsNull() {
		return "", nil
	}
	return c.text(v), nil
}

// textOf says how the values of a type are written: timestamps as RFC 3339, numbers in decimal digits.
func textOf(t parquet.Type) func(parquet.Value) string {
	if logical := t.LogicalType(); logical != nil {
		if stamp, ok := logical.Value.(*format.TimestampType); ok && stamp.Unit.Value != nil {
			return timestampText(stamp.Unit.Value.Duration())
		}
	}
	switch t.Kind() {
	case parquet.Int32:
		return func(v parquet.Value) string { return strconv.FormatInt(int64(v.Int32()), 10) }
	case parquet.Int64:
		return func(v parquet.Value) string { return strconv.FormatInt(v.Int64(), 10) }
	case parquet.Float:
		return func(v parquet.Value) string { return strconv.FormatFloat(float64(v.Float()), 'f', -1, 32) }
	case parquet.Double:
		return func(v parquet.Value) string { return strconv.FormatFloat(v.Double(), 'f', -1, 64) }
	case parquet.ByteArray:
		return func(v parquet.Value) string { return string(v.ByteArray()) }
	}
	return parquet.Value.String
}

// timestampText writes timestamps of a unit. Those without a time zone are taken for UTC.
func timestampText(unit time.Duration) func(parquet.Value) string {
	perSecond := int64(time.Second / unit)
	return func(v parquet.Value) string {
		n := v.Int64()
		return time.Unix(n/perSecond, n%perSecond*int64(unit)).UTC().Format(time.RFC3339Nano)
	}
}
