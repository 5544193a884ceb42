package measure

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"deduplab/gen"
)

// maxFaults bounds how many faults of a trace are listed.
const maxFaults = 20

// maxPartition is the largest number that a partition may have.
const maxPartition = 1<<16 - 2

// Reader takes in the rows of a trace, file by file. It keeps of a row its times, its partition and small numbers for
// its keys and origin: about 50 bytes, and the text of each key once.
type Reader struct {
	columns Columns
	skip    bool
	roles   []role
	keys    []*interner // by candidate key
	origins *interner

	events, arrivals   []moment
	eventLen, arrivLen int // the most digits of a number of the column
	partitions         []uint16
	seen               []string // names of all columns, for messages
	faults             []error
	skipped            int
	files              []string
	found              []bool // by role
	key                []byte
}

// role is a column that is read, and what for.
type role struct{ flag, column string } // "" is no column

// NewReader prepares to read traces whose columns mean what is said.
func NewReader(columns Columns, skipBadRows bool) (*Reader, error) {
	if columns.Arrival == "" && columns.EventTime == "" {
		return nil, errors.New("a trace needs a time: name the column with --arrival or --event-time")
	}
	if len(columns.Keys) == 0 {
		return nil, errors.New("a trace needs a key: name its column, or columns, with --key")
	}
	if columns.Unit == "" {
		columns.Unit = autoUnit
	}
	if _, ok := unitNanos[columns.Unit]; !ok && columns.Unit != autoUnit {
		return nil, fmt.Errorf("--unit: %q is none of auto, s, ms, us, ns", columns.Unit)
	}
	r := &Reader{columns: columns, skip: skipBadRows, origins: newInterner(), roles: []role{
		{"--event-time", columns.EventTime}, {"--arrival", columns.Arrival}, {"--partition", columns.Partition},
		{"--origin", columns.Origin},
	}}
	for _, key := range columns.Keys {
		for _, name := range key {
			r.roles = append(r.roles, role{"--key", name})
		}
		r.keys = append(r.keys, newInterner())
	}
	r.found = make([]bool, len(r.roles))
	return r, nil
}

// The first roles; those of the keys follow.
const (
	eventRole = iota
	arrivalRole
	partitionRole
	originRole
	keyRole
)

// Read takes in one file: Parquet, CSV with a header, or JSON lines, which begin with a brace; the latter two may be
// compressed with gzip or zstd. An empty cell, a missing name and null are NULL. The error joins the faults found so far,
// at most 20, each as name:line: or name:line:column:. With bad rows skipped only what makes a whole file unreadable is
// an error.
func (r *Reader) Read(name string, in io.Reader) error {
	r.files = append(r.files, name)
	buffered := bufio.NewReaderSize(in, 1<<16)
	switch magic, _ := buffered.Peek(4); {
	case bytes.Equal(magic, parquetMagic):
		if err := r.readParquet(name, in, buffered); err != nil {
			return err
		}
		if !r.skip && len(r.faults) > 0 {
			return r.fault()
		}
		return nil
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		buffered = bufio.NewReaderSize(unzipped, 1<<16)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		unzipped, err := zstd.NewReader(buffered)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		defer unzipped.Close()
		buffered = bufio.NewReaderSize(unzipped, 1<<16)
	}
	limit := gen.LimitRecords(buffered)
	buffered = bufio.NewReaderSize(limit, 1<<16)
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\ufeff")) {
		buffered.Discard(3)
	}
	start, err := buffered.Peek(1)
	switch {
	case err == io.EOF:
		return fmt.Errorf("%s: the file is empty", name)
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case start[0] == '{':
		err = r.readJSON(name, buffered, limit.Next)
	default:
		err = r.readCSV(name, buffered, limit.Next)
	}
	if err == nil && !r.skip && len(r.faults) > 0 {
		err = r.fault()
	}
	return err
}

// bad notes a faulty row, and reports whether it is no use to read on.
func (r *Reader) bad(format string, args ...any) (stop bool) {
	r.skipped++
	if len(r.faults) <= maxFaults {
		r.faults = append(r.faults, fmt.Errorf(format, args...))
	}
	return !r.skip && len(r.faults) > maxFaults
}

func (r *Reader) fault() error {
	if len(r.faults) > maxFaults {
		return errors.Join(append(slices.Clone(r.faults[:maxFaults]), errors.New("and more"))...)
	}
	return errors.Join(r.faults...)
}

// missing says that a column is not there.
func (r *Reader) missing(name string, role role, columns []string) error {
	return fmt.Errorf("%s: %s: there is no column %q (there are: %s)", name, role.flag, role.column,
		strings.Join(columns, ", "))
}

func (r *Reader) readCSV(name string, in io.Reader, next func()) error {
	rows := csv.NewReader(in)
	rows.FieldsPerRecord = -1
	rows.ReuseRecord = true
	record, err := rows.Read()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	header := slices.Clone(record)
	var faults []error
	for i, column := range header {
		if slices.Contains(header[:i], column) {
			faults = append(faults, fmt.Errorf("%s:1: column %q stands twice", name, column))
		}
	}
	at := make([]int, len(r.roles))
	for i, role := range r.roles {
		at[i] = slices.Index(header, role.column)
		if role.column == "" {
			at[i] = -1
		} else if at[i] < 0 {
			faults = append(faults, r.missing(name, role, header))
		}
		r.found[i] = true
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	cells := make([]string, len(r.roles))
	for {
		next()
		record, err := rows.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err) // names the line, and the reader is lost from here on
		}
		line, _ := rows.FieldPos(0)
		if len(record) != len(header) {
			if r.bad("%s:%d: %d cells, but the header has %d", name, line, len(record), len(header)) {
				return r.fault()
			}
			continue
		}
		for i, c := range at {
			if c >= 0 {
				cells[i] = record[c]
			}
		}
		if r.add(name, line, cells) {
			return r.fault()
		}
	}
}

func (r *Reader) readJSON(name string, in *bufio.Reader, next func()) error {
	cells := make([]string, len(r.roles))
	for line := 1; ; line++ {
		next()
		text, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return fmt.Errorf("%s:%d: %w", name, line, err)
		}
		if len(bytes.TrimSpace(text)) > 0 {
			stop := false
			if fault := r.object(text, cells); fault != nil {
				stop = r.bad("%s:%d: %w", name, line, fault)
			} else {
				stop = r.add(name, line, cells)
			}
			if stop {
				return r.fault()
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// object reads the cells of a row from a JSON object. A nested value is its text.
func (r *Reader) object(text []byte, cells []string) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return fmt.Errorf("not a JSON object: %w", err)
	}
	for i, role := range r.roles {
		value, ok := object[role.column]
		r.found[i] = r.found[i] || ok || role.column == ""
		cells[i] = ""
		switch {
		case !ok || role.column == "" || string(value) == "null":
		case value[0] == '"':
			if err := json.Unmarshal(value, &cells[i]); err != nil {
				return fmt.Errorf("%s: %w", role.column, err)
			}
		default:
			cells[i] = string(value)
		}
	}
	if len(r.seen) == 0 {
		for column := range object {
			r.seen = append(r.seen, column)
		}
		slices.Sort(r.seen)
	}
	return nil
}

// add takes in one row, its cells by role. It reports true if there are too many faults to go on.
func (r *Reader) add(name string, line int, cells []string) (stop bool) {
	fault := func(role int, err error) bool {
		return r.bad("%s:%d:%s: %w", name, line, r.roles[role].column, err)
	}
	event, eventLen, err := parseMoment(cells[eventRole])
	if err != nil {
		return fault(eventRole, err)
	}
	arrival, arrivLen := event, eventLen
	arrivedBy := eventRole
	if r.columns.Arrival != "" {
		arrivedBy = arrivalRole
		if arrival, arrivLen, err = parseMoment(cells[arrivalRole]); err != nil {
			return fault(arrivalRole, err)
		}
	}
	if arrival.kind == null {
		return fault(arrivedBy, errors.New("a row needs an arrival"))
	}
	partition := uint64(0)
	if r.columns.Partition != "" {
		partition, err = strconv.ParseUint(cells[partitionRole], 10, 16)
		if err != nil || partition > maxPartition {
			return fault(partitionRole, fmt.Errorf("%q is not a partition, a whole number from 0 to %d",
				cells[partitionRole], maxPartition))
		}
	}
	r.events, r.arrivals = append(r.events, event), append(r.arrivals, arrival)
	r.eventLen, r.arrivLen = max(r.eventLen, eventLen), max(r.arrivLen, arrivLen)
	r.partitions = append(r.partitions, uint16(partition))
	if r.columns.Origin != "" {
		r.origins.add([]byte(cells[originRole]))
	}
	rest := cells[keyRole:]
	for k, columns := range r.columns.Keys {
		r.key = r.key[:0]
		for i := range columns {
			r.key = appendPart(r.key, rest[i])
		}
		r.keys[k].add(r.key)
		rest = rest[len(columns):]
	}
	return false
}

// interner numbers texts in order of appearance.
type interner struct {
	numbers map[string]uint32
	names   []string
	rows    []uint32 // by row
}

func newInterner() *interner { return &interner{numbers: map[string]uint32{}} }

func (n *interner) add(text []byte) {
	id, ok := n.numbers[string(text)]
	if !ok {
		id = uint32(len(n.names))
		name := string(text)
		n.numbers[name] = id
		n.names = append(n.names, name)
	}
	n.rows = append(n.rows, id)
}

// appendPart adds one part of a key, so that no two keys read the same: its length, a colon and its text, or a tilde
// for NULL.
func appendPart(key []byte, part string) []byte {
	if part == "" {
		return append(key, '~')
	}
	key = strconv.AppendInt(key, int64(len(part)), 10)
	return append(append(key, ':'), part...)
}

// keyParts undoes appendPart; NULL is written null.
func keyParts(key string) []string {
	var parts []string
	for key != "" {
		if key[0] == '~' {
			parts, key = append(parts, "null"), key[1:]
			continue
		}
		length, rest, _ := strings.Cut(key, ":")
		n, _ := strconv.Atoi(length)
		parts, key = append(parts, rest[:n]), rest[n:]
	}
	return parts
}

// hasNull reports whether a part of the key is NULL.
func hasNull(key string) bool {
	for key != "" {
		if key[0] == '~' {
			return true
		}
		length, rest, _ := strings.Cut(key, ":")
		n, _ := strconv.Atoi(length)
		key = rest[n:]
	}
	return false
}

// trace is the rows of all files, in one order.
type trace struct {
	events     []nanos
	nullEvents []bool
	arrivals   []nanos
	partitions []uint16
	origins    []uint32 // nil without an origin column
	ids        [][]uint32
}

// finish turns what was read into a trace in the order of the files.
func (r *Reader) finish() (*trace, error) {
	if len(r.arrivals) == 0 {
		if r.skipped > 0 {
			return nil, fmt.Errorf("all %d rows are bad:\n%w", r.skipped, r.fault())
		}
		return nil, fmt.Errorf("%s: no rows", strings.Join(r.files, ", "))
	}
	for i, role := range r.roles {
		if !r.found[i] {
			return nil, r.missing(strings.Join(r.files, ", "), role, r.seen)
		}
	}
	t := &trace{nullEvents: make([]bool, len(r.events)), partitions: r.partitions}
	var err error
	if t.events, err = r.convert(eventRole, r.events, r.eventLen); err != nil {
		return nil, err
	}
	for i, m := range r.events {
		t.nullEvents[i] = m.kind == null
	}
	t.arrivals = t.events
	if r.columns.Arrival != "" {
		if t.arrivals, err = r.convert(arrivalRole, r.arrivals, r.arrivLen); err != nil {
			return nil, err
		}
	}
	if r.columns.Origin != "" {
		t.origins = r.origins.rows
	}
	for _, key := range r.keys {
		t.ids = append(t.ids, key.rows)
	}
	r.events, r.arrivals = nil, nil
	return t, nil
}

func (r *Reader) convert(role int, moments []moment, digits int) ([]nanos, error) {
	unit := r.columns.Unit
	if unit == autoUnit {
		unit = guessUnit(digits)
	}
	all := make([]nanos, len(moments))
	for i, m := range moments {
		n, err := m.nanos(unit)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.roles[role].flag, r.roles[role].column, err)
		}
		all[i] = n
	}
	return all, nil
}

// byArrival is the trace in order of arrival; rows of one instant stand by partition, else as they were.
func (t *trace) byArrival() *trace {
	order := make([]uint32, len(t.arrivals))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortStableFunc(order, func(a, b uint32) int {
		switch {
		case t.arrivals[a] != t.arrivals[b]:
			if t.arrivals[a] < t.arrivals[b] {
				return -1
			}
			return 1
		}
		return int(t.partitions[a]) - int(t.partitions[b])
	})
	sorted := &trace{events: pick(t.events, order), nullEvents: pick(t.nullEvents, order),
		arrivals: pick(t.arrivals, order), partitions: pick(t.partitions, order)}
	if t.origins != nil {
		sorted.origins = pick(t.origins, order)
	}
	for _, ids := range t.ids {
		sorted.ids = append(sorted.ids, pick(ids, order))
	}
	return sorted
}

func pick[T any](from []T, order []uint32) []T {
	to := make([]T, len(order))
	for i, j := range order {
		to[i] = from[j]
	}
	return to
}
