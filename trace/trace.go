// Package trace reads recorded streams: JSON lines, CSV with a header, and Parquet; the first two plain or compressed
// with gzip or zstd. What a file is, its first bytes tell, not its name.
//
// A [Spec] names the columns that play a role and how each is to be read: as text, as a time, or as the number of a
// partition. Columns are found by name, also within a group of a Parquet file (a.b). An empty cell, a missing name and
// null are NULL. A [Reader] hands out the rows of one file after the other and keeps none of them.
//
// Whatever is wrong is said as file:line:column: what was expected, all of it at once up to 20 faults. A line of a
// Parquet file is the number of the row. Bad rows can be skipped and counted; what makes a whole file unreadable (a
// missing column, a truncated archive, a line too long) is an error all the same.
//
// Memory is bounded whatever the file holds: a line has at most 16 MB ([MaxLine]), a file at most 4,096 columns
// ([MaxColumns]), a zstd window 128 MB, a column of a Parquet row group 1 GB unpacked.
package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// The limits of a file.
const (
	MaxLine    = 16 << 20 // bytes of a line, or of a CSV record over several lines
	MaxColumns = 4096

	maxFaults    = 20        // that are listed
	maxWindow    = 128 << 20 // of zstd
	maxPartition = 1<<16 - 2
)

// Spec says what of a trace is read, and how.
type Spec struct {
	Roles []Role
	// All hands out all columns, beside those that play a role.
	All bool
	// Unit is that of times written as numbers: s, ms, us or ns. Auto, or nothing, goes by the largest number of each
	// column: below 1e11 it is seconds, below 1e14 milliseconds, below 1e17 microseconds.
	Unit string
	// Nanos asks for times that [Moment.Nanos] can give, as far as their unit is known from the start.
	Nanos       bool
	SkipBadRows bool
}

// Role is a column that is read, and what for.
type Role struct {
	Name   string // for messages, such as --key or columns.key
	Column string
	Kind   Kind
}

// Kind is how a column is read.
type Kind uint8

// The kinds.
const (
	Text      Kind = iota
	Label          // a Text that must not be NULL
	Time           // a number or a timestamp, see [ParseMoment]; may be NULL
	Arrival        // a Time that must not be NULL
	Partition      // a whole number from 0 to 65534
)

// Row is one row. It and all it holds are valid until the next one.
type Row struct {
	Line    int64
	Roles   []Cell // by role
	Columns []Cell // with Spec.All the texts of all columns known so far, see Reader.Columns
}

// Cell is one value of a row.
type Cell struct {
	Null   bool
	Text   []byte // of Text
	Time   Moment // of Time and Arrival
	Number uint16 // of Partition
}

// ErrStop makes a reader end early, without an error.
var ErrStop = errors.New("stop")

// Reader reads files one by one.
type Reader struct {
	spec    Spec
	each    func(*Row) error
	file    string // that is read
	files   []string
	columns []string // all that were seen, in order of appearance
	index   map[string]int
	found   []bool  // by role
	largest []int64 // number of a time, by role
	rows    int64
	skipped int64
	faults  []error

	row    Row
	values []value // what the file holds, by column read
	at     []int   // by role: its place in values, -1 if not in this file
	buffer []byte
}

// NewReader prepares to read. The spec's unit must be known.
func NewReader(spec Spec) (*Reader, error) {
	if spec.Unit == "" {
		spec.Unit = Auto
	}
	if unitNanos(spec.Unit) == 0 && spec.Unit != Auto {
		return nil, fmt.Errorf("unit: %q is none of auto, s, ms, us, ns", spec.Unit)
	}
	n := len(spec.Roles)
	return &Reader{spec: spec, index: map[string]int{}, found: make([]bool, n), largest: make([]int64, n),
		at: make([]int, n), row: Row{Roles: make([]Cell, n)}}, nil
}

// Columns lists the names of all columns seen so far: with Spec.All of all rows, otherwise of JSON lines of the first.
func (r *Reader) Columns() []string { return r.columns }

// Unit is that of a role's times, as far as the rows so far tell.
func (r *Reader) Unit(role int) string {
	if r.spec.Unit != Auto {
		return r.spec.Unit
	}
	return guessUnit(r.largest[role])
}

// Rows is how many rows were handed out, Skipped how many bad ones were not.
func (r *Reader) Rows() int64 { return r.rows }

// Skipped counts the bad rows; the first 20 are told.
func (r *Reader) Skipped() (n int64, first []string) {
	for _, fault := range r.faults[:min(len(r.faults), maxFaults)] {
		first = append(first, fault.Error())
	}
	return r.skipped, first
}

// Read hands out the rows of one file. An error of each ends it and is returned as it is, unless it is ErrStop.
func (r *Reader) Read(name string, in io.Reader, each func(*Row) error) error {
	r.file, r.each = name, each
	r.files = append(r.files, name)
	err := r.read(in)
	if errors.Is(err, ErrStop) {
		return nil
	}
	if err == nil && !r.spec.SkipBadRows {
		err = r.fault()
	}
	return err
}

func (r *Reader) read(in io.Reader) error {
	buffered := bufio.NewReaderSize(in, 1<<16)
	magic, err := buffered.Peek(4)
	if err != nil && err != io.EOF {
		return r.broken(err)
	}
	packed := true
	switch {
	case bytes.Equal(magic, parquetMagic):
		return r.readParquet(in, buffered)
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return r.broken(err)
		}
		buffered = bufio.NewReaderSize(unzipped, 1<<16)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		unzipped, err := zstd.NewReader(buffered, zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return r.broken(err)
		}
		defer unzipped.Close()
		buffered = bufio.NewReaderSize(unzipped, 1<<16)
	default:
		packed = false
	}
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\ufeff")) {
		buffered.Discard(3)
	}
	start, err := buffered.Peek(512)
	switch {
	case err != nil && err != io.EOF:
		return r.broken(err)
	case len(start) == 0:
		return fmt.Errorf("%s: the file is empty", r.file)
	case packed && bytes.HasPrefix(start, parquetMagic):
		return fmt.Errorf("%s: a Parquet file is packed in it; unpack it first", r.file)
	case bytes.IndexByte(start, 0) >= 0:
		return fmt.Errorf("%s: neither Parquet nor text: it begins with bytes that no CSV and no JSON has", r.file)
	case start[0] == '[':
		return fmt.Errorf("%s: begins with [; JSON must be an object a line, not a list of them", r.file)
	case start[0] == '{':
		return r.readJSON(buffered)
	}
	return r.readCSV(buffered)
}

// broken says that a file cannot be read on.
func (r *Reader) broken(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: the file is cut off: %w", r.file, err)
	}
	return fmt.Errorf("%s: %w", r.file, err)
}

// brokenAt is broken with a line.
func (r *Reader) brokenAt(line int64, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s:%d: the file is cut off: %w", r.file, line, err)
	}
	return fmt.Errorf("%s:%d: %w", r.file, line, err)
}

// bad notes a faulty row. The error is that of too many faults.
func (r *Reader) bad(format string, args ...any) error {
	r.skipped++
	if len(r.faults) <= maxFaults {
		r.faults = append(r.faults, fmt.Errorf(format, args...))
	}
	if !r.spec.SkipBadRows && len(r.faults) > maxFaults {
		return r.fault()
	}
	return nil
}

// fault joins the faults so far.
func (r *Reader) fault() error {
	if len(r.faults) > maxFaults {
		return errors.Join(append(slices.Clone(r.faults[:maxFaults]), errors.New("and more"))...)
	}
	return errors.Join(r.faults...)
}

// Finish says what only shows when all files are read: that there are no rows, or that a column is in none of them.
func (r *Reader) Finish() error {
	names := strings.Join(r.files, ", ")
	if r.rows == 0 {
		if r.skipped > 0 {
			return fmt.Errorf("all %d rows are bad:\n%w", r.skipped, r.fault())
		}
		return fmt.Errorf("%s: no rows", names)
	}
	return errors.Join(r.missing(names, r.columns, func(role int) bool { return r.found[role] })...)
}

// missing says which roles have no column in a file, or in all files.
func (r *Reader) missing(file string, columns []string, there func(role int) bool) []error {
	var faults []error
	for i, role := range r.spec.Roles {
		if !there(i) && !slices.Contains(r.spec.Roles[:i], role) {
			faults = append(faults, noColumn(file, role, columns))
		}
	}
	return faults
}

// noColumn names the columns that there are; of many the first.
func noColumn(file string, role Role, columns []string) error {
	there := strings.Join(columns[:min(len(columns), 50)], ", ")
	if len(columns) > 50 {
		there += fmt.Sprintf(", and %d more", len(columns)-50)
	}
	return fmt.Errorf("%s: %s: there is no column %q (there are: %s)", file, role.Name, role.Column, there)
}

// header checks the columns of a CSV file.
func (r *Reader) header(names []string) error {
	if len(names) > MaxColumns {
		return fmt.Errorf("%s: %d columns; there can be %d", r.file, len(names), MaxColumns)
	}
	var faults []error
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			faults = append(faults, fmt.Errorf("%s:1: column %q stands twice", r.file, name))
		}
		seen[name] = true
	}
	faults = append(faults, r.missing(r.file, names, func(role int) bool { return seen[r.spec.Roles[role].Column] })...)
	return errors.Join(faults...)
}

// column is the place of a column among those that are read; it is added if it is new and all are read.
func (r *Reader) column(name string) (place int, err error) {
	place, ok := r.index[name]
	if !ok && len(r.columns) >= MaxColumns {
		return 0, fmt.Errorf("%s: more than %d columns", r.file, MaxColumns)
	}
	if !ok {
		place = len(r.columns)
		r.index[name] = place
		r.columns = append(r.columns, name)
	}
	return place, nil
}

// value is a cell as a file holds it.
type value struct {
	kind valueKind
	text []byte
	n    int64
	at   Moment
}

type valueKind uint8

const (
	isNull valueKind = iota
	isText
	isWhole // n
	isMoment
)

// textOf is a value as it is written; its bytes are valid until the next row.
func (r *Reader) textOf(v *value) []byte {
	from := len(r.buffer)
	switch v.kind {
	case isNull:
		return nil
	case isText:
		return v.text
	case isWhole:
		r.buffer = strconv.AppendInt(r.buffer, v.n, 10)
	default:
		r.buffer = v.at.appendRFC3339(r.buffer)
	}
	return r.buffer[from:]
}

// add reads the values of a row by role and hands it out.
func (r *Reader) add(line int64) error {
	r.buffer = r.buffer[:0]
	for i := range r.spec.Roles {
		c, v := &r.row.Roles[i], &value{}
		if r.at[i] >= 0 {
			v = &r.values[r.at[i]]
		}
		c.Null = v.kind == isNull
		var err error
		switch r.spec.Roles[i].Kind {
		case Text, Label:
			c.Text = r.textOf(v)
			if c.Null && r.spec.Roles[i].Kind == Label {
				err = errors.New("a row needs this label")
			}
		case Partition:
			c.Number, err = r.partition(v)
		default:
			if c.Time, err = moment(v); err != nil {
				break
			}
			if c.Time.kind == number {
				r.largest[i] = max(r.largest[i], c.Time.whole, -c.Time.whole)
			}
			if r.spec.Nanos && (r.spec.Unit != Auto || c.Time.kind == absolute) {
				_, err = c.Time.Nanos(r.spec.Unit)
			}
			if c.Null && r.spec.Roles[i].Kind == Arrival {
				err = errors.New("a row needs an arrival")
			}
		}
		if err != nil {
			return r.bad("%s:%d:%s: %w", r.file, line, r.spec.Roles[i].Column, err)
		}
	}
	if r.spec.All {
		r.row.Columns = r.row.Columns[:0]
		for i := range r.columns {
			var c Cell
			if c.Null = i >= len(r.values) || r.values[i].kind == isNull; !c.Null {
				c.Text = r.textOf(&r.values[i])
			}
			r.row.Columns = append(r.row.Columns, c)
		}
	}
	r.rows++
	if len(r.faults) > 0 && !r.spec.SkipBadRows {
		return nil // nobody will use the rows
	}
	r.row.Line = line
	return r.each(&r.row)
}

func (r *Reader) partition(v *value) (uint16, error) {
	n, err := v.n, error(nil)
	if v.kind != isWhole {
		n, err = strconv.ParseInt(string(v.text), 10, 64)
	}
	if err != nil || n < 0 || n > maxPartition {
		return 0, fmt.Errorf("%q is not a partition, a whole number from 0 to %d", r.textOf(v), maxPartition)
	}
	return uint16(n), nil
}

func moment(v *value) (Moment, error) {
	switch v.kind {
	case isText:
		return ParseMoment(string(v.text))
	case isWhole:
		return Moment{whole: v.n, kind: number}, nil
	case isMoment:
		return v.at, nil
	}
	return Moment{}, nil
}

// UnitAbove is Unit if a number as large as the given one had been read too.
func (r *Reader) UnitAbove(role int, largest int64) string {
	if r.spec.Unit != Auto {
		return r.spec.Unit
	}
	return guessUnit(max(r.largest[role], largest))
}

// Largest is the largest number of a role's times so far.
func (r *Reader) Largest(role int) int64 { return r.largest[role] }
