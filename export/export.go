// Package export writes the rows of a workload as a file, in order of arrival: JSON lines, CSV or Parquet. What it
// writes is read by a scenario's trace and by lab measure.
//
// Beside the columns of the workload each row has its arrival and source partition, and with the truth the logical
// event that it stands for and its origin. Times are milliseconds since 1970; in Parquet the columns' own are
// timestamps.
package export

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"deduplab/gen"
	"deduplab/stream"
)

// The columns that are added.
const (
	Arrival   = "_arrival"
	Partition = "_partition"
	Event     = "_event"  // truth: equal for the rows of one event, whatever their key
	Origin    = "_origin" // truth: original, or the name of the rule that made the copy
)

// Format is how rows are written.
type Format uint8

// The formats.
const (
	JSONLines Format = iota
	CSV
	Parquet
)

// Compression is what the file as a whole is packed with. Parquet files are not: their pages are, with Snappy.
type Compression uint8

// The compressions.
const (
	Plain Compression = iota
	Gzip
	Zstd
)

// FormatOf goes by the ending of a file's name: .jsonl, .ndjson, .json or .csv, and whether .gz or .zst follows; or
// .parquet.
func FormatOf(name string) (Format, Compression, error) {
	plain, packed := name, Plain
	switch {
	case strings.HasSuffix(name, ".parquet"):
		return Parquet, Plain, nil
	case strings.HasSuffix(name, ".gz"):
		plain, packed = strings.TrimSuffix(name, ".gz"), Gzip
	case strings.HasSuffix(name, ".zst"):
		plain, packed = strings.TrimSuffix(name, ".zst"), Zstd
	}
	switch {
	case strings.HasSuffix(plain, ".csv"):
		return CSV, packed, nil
	case strings.HasSuffix(plain, ".jsonl"), strings.HasSuffix(plain, ".ndjson"), strings.HasSuffix(plain, ".json"):
		return JSONLines, packed, nil
	}
	return 0, 0, fmt.Errorf("%q must end in .jsonl, .ndjson, .json or .csv, with or without .gz or .zst, or in .parquet",
		name)
}

// Options say what is written.
type Options struct {
	Format      Format
	Compression Compression
	Truth       bool
	Limit       int // the most rows; 0 is all
}

// sink takes rows one by one.
type sink interface {
	row(*stream.Row) error
	close() error
}

// Write writes the rows and returns how many there are.
func Write(ctx context.Context, w io.Writer, workload gen.Workload, o Options) (rows int, err error) {
	e := &exporter{Options: o, workload: workload, origins: workload.Origins()}
	if err := e.columns(); err != nil {
		return 0, err
	}
	to, err := e.open(w)
	if err != nil {
		return 0, err
	}
	var batch [256]stream.Row
	for in := workload.Stream(); ; {
		n, err := in.Next(batch[:])
		if err != nil {
			return rows, err
		}
		if err := ctx.Err(); err != nil {
			return rows, err
		}
		for i := range batch[:n] {
			if o.Limit > 0 && rows == o.Limit {
				return rows, to.close()
			}
			if err := to.row(&batch[i]); err != nil {
				return rows, err
			}
			rows++
		}
		if n == 0 {
			return rows, to.close()
		}
	}
}

// open makes the sink of the format.
func (e *exporter) open(w io.Writer) (sink, error) {
	if e.Format == Parquet {
		return e.newParquet(w), nil
	}
	t := &text{e: e}
	switch e.Compression {
	case Gzip: // without a name or a time, so that bytes are the same
		t.packer = gzip.NewWriter(w)
	case Zstd:
		packer, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		t.packer = packer
	}
	if t.packer != nil {
		w = t.packer
	}
	t.out = bufio.NewWriterSize(w, 1<<16)
	if e.Format == CSV {
		t.out.Write(e.header())
	}
	return t, nil
}

// text writes a line a row.
type text struct {
	e      *exporter
	packer io.WriteCloser // nil: none
	out    *bufio.Writer
}

func (t *text) row(row *stream.Row) error {
	_, err := t.out.Write(t.e.line(row))
	return err
}

func (t *text) close() error {
	err := t.out.Flush()
	if t.packer != nil {
		err = errors.Join(err, t.packer.Close())
	}
	return err
}

// exporter writes rows one by one into a buffer of its own.
type exporter struct {
	Options
	workload gen.Workload
	schema   []stream.Column // of the workload, then what is added
	names    [][]byte        // in JSON, with the colon
	origins  []string
	buffer   []byte
}

func (e *exporter) columns() error {
	e.schema = append(e.schema, e.workload.Schema().Columns...)
	added := []stream.Column{{Name: Arrival, Type: stream.Int}, {Name: Partition, Type: stream.Int}}
	if e.Truth {
		if !e.workload.Labelled() {
			return fmt.Errorf("the workload is a trace: what its rows stand for is not known")
		}
		added = append(added, stream.Column{Name: Event, Type: stream.Int}, stream.Column{Name: Origin})
	}
	for _, a := range added {
		if e.workload.Schema().Index(a.Name) >= 0 {
			return fmt.Errorf("column %q of the workload has a name that is kept for what is added", a.Name)
		}
		e.schema = append(e.schema, a)
	}
	for _, c := range e.schema {
		e.names = append(e.names, append(quoteJSON(c.Name), ':'))
	}
	return nil
}

func (e *exporter) header() []byte {
	var line []byte
	for i, c := range e.schema {
		if i > 0 {
			line = append(line, ',')
		}
		line = appendCSV(line, c.Name)
	}
	return append(line, '\n')
}

// record is the columns of a row and what is added.
func (e *exporter) record(row *stream.Row) stream.Record {
	record := append(e.workload.Record(row.Tag), stream.Value{Int: int64(row.Arrival)},
		stream.Value{Int: int64(row.Partition)})
	if e.Truth {
		record = append(record, stream.Value{Int: int64(row.Tag.Event())}, stream.Value{Text: e.origins[row.Tag.Origin()]})
	}
	return record
}

// line is one row as it is written, valid until the next.
func (e *exporter) line(row *stream.Row) []byte {
	line := e.buffer[:0]
	for i, v := range e.record(row) {
		switch {
		case e.Format == JSONLines && i == 0:
			line = append(line, '{')
		case i > 0:
			line = append(line, ',')
		}
		if e.Format == JSONLines {
			line = append(line, e.names[i]...)
		}
		line = e.cell(line, v, e.schema[i])
	}
	if e.Format == JSONLines {
		line = append(line, '}')
	}
	e.buffer = append(line, '\n')
	return e.buffer
}

// cell appends one value; NULL is null in JSON and nothing in CSV.
func (e *exporter) cell(line []byte, v stream.Value, c stream.Column) []byte {
	switch {
	case v.Null && e.Format == CSV:
		return line
	case v.Null:
		return append(line, "null"...)
	case c.Type == stream.String && e.Format == CSV:
		return appendCSV(line, v.Text)
	case c.Type == stream.String:
		return append(line, quoteJSON(v.Text)...)
	case c.Type == stream.Decimal:
		return append(line, stream.FormatDecimal(v.Int, c.Scale)...)
	}
	return strconv.AppendInt(line, v.Int, 10)
}

// quoteJSON is a string in JSON.
func quoteJSON(s string) []byte {
	quoted, _ := json.Marshal(s) // no string fails
	return quoted
}

// appendCSV appends a cell, in quotes where it needs them.
func appendCSV(line []byte, s string) []byte {
	if !strings.ContainsAny(s, ",\"\r\n") && !strings.HasPrefix(s, " ") {
		return append(line, s...)
	}
	return append(append(append(line, '"'), strings.ReplaceAll(s, `"`, `""`)...), '"')
}
