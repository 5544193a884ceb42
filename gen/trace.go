package gen

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"deduplab/stream"
)

// TraceSpec says what the columns of a trace mean. Columns that play no role are kept as they are.
type TraceSpec struct {
	Columns TraceColumns
	// Unit is that of times written as numbers: "s", "ms", "us" or "ns". "auto", the default, goes by the largest number
	// of the column: below 1e11 it is seconds, below 1e14 milliseconds, below 1e17 microseconds. Fractions are welcome
	// in any unit, and RFC 3339 beside them.
	Unit string
	// Partitions is the number of source partitions, by hash of the key, if no column names them; 0 means 1.
	Partitions int
}

// TraceColumns names the columns that play a role.
type TraceColumns struct {
	Key       []string
	EventTime string // an empty cell is a NULL event time
	Arrival   string // default: EventTime
	Partition string // whole numbers from 0; default: none
}

// maxFaults bounds how many faults of a trace are listed.
const maxFaults = 20

// ReadTrace reads a workload from CSV with a header, or from JSON lines; either may be compressed with gzip. The rows
// are brought in order of arrival, those of one millisecond by partition, and otherwise stay as they stand. The key is
// taken for the truth: rows of equal key are one event, an empty key cell is NULL, and NULL equals NULL.
//
// Other columns become integers or decimals of constant scale if all their cells are written so, else text. The error
// joins the faults, at most 20, each as name:line:column-name.
func ReadTrace(name string, r io.Reader, spec TraceSpec) (Workload, error) {
	table, err := readTable(name, r)
	if err != nil {
		return nil, err
	}
	l := &traceLoader{table: table, spec: spec}
	l.columns()
	if l.faults.err() == nil {
		l.rows()
	}
	if err := l.faults.err(); err != nil {
		return nil, err
	}
	return l.trace()
}

// trace is a workload kept in memory, row by row in order of arrival.
type trace struct {
	schema     stream.Schema
	partitions int
	rows       []stream.Row
	cells      [][]stream.Value // by column and row
	contents   []uint64
	// The rows of event e, in order of arrival, are byEvent[starts[e]:starts[e+1]].
	starts, byEvent []uint32
}

func (t *trace) row(tag stream.Tag) uint32 { return t.byEvent[int(t.starts[tag.Event()])+tag.Copy()] }

func (t *trace) Schema() stream.Schema { return t.schema }

func (t *trace) Record(tag stream.Tag) stream.Record {
	row := t.row(tag)
	record := make(stream.Record, len(t.cells))
	for c := range t.cells {
		record[c] = t.cells[c][row]
	}
	return record
}

func (t *trace) Order(tag stream.Tag, column int) int64 {
	if t.schema.Columns[column].Type == stream.String {
		panic(fmt.Sprintf("gen: column %q is text and has no numeric order", t.schema.Columns[column].Name))
	}
	if v := t.cells[column][t.row(tag)]; !v.Null {
		return v.Int
	}
	return stream.NullOrder
}

func (t *trace) Content(tag stream.Tag) uint64 { return t.contents[t.row(tag)] }

func (t *trace) Partitions() int { return t.partitions }

// Span is from the first arrival to the last.
func (t *trace) Span() (from, to stream.Time) {
	return t.rows[0].Arrival, t.rows[len(t.rows)-1].Arrival
}

func (t *trace) Labelled() bool { return false }

func (t *trace) Origins() []string { return []string{"original", "repeat"} }

func (t *trace) Arrival(tag stream.Tag) stream.Time { return t.rows[t.row(tag)].Arrival }

func (t *trace) FirstArrival(event uint64) stream.Time { return t.Arrival(stream.NewTag(event, 0, 0)) }

func (t *trace) NewKey(int) bool { return false }

func (t *trace) Stream() Stream { return &replay{t.rows} }

// replay is a stream of a trace.
type replay struct{ rest []stream.Row }

// Next implements Stream. It never fails.
func (r *replay) Next(dst []stream.Row) (int, error) {
	n := copy(dst, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// traceLoader turns a table of cells into a trace.
type traceLoader struct {
	table  *table
	spec   TraceSpec
	faults faultList

	key                       []int
	event, arrival, partition int // columns; partition is -1 if none
	eventTimes, arrivals      []moment
	loaded                    []traceRow
}

// traceRow is a row and where it stands in the table.
type traceRow struct {
	stream.Row
	line int
}

// columns finds the columns that play a role.
func (l *traceLoader) columns() {
	find := func(role, name string) int {
		c := slices.Index(l.table.header, name)
		if c < 0 {
			l.faults.add("%s: %s: there is no column %q (there are: %s)", l.table.name, role, name,
				strings.Join(l.table.header, ", "))
		}
		return c
	}
	columns := l.spec.Columns
	if len(columns.Key) == 0 {
		l.faults.add("%s: columns.key: is missing", l.table.name)
	}
	for _, name := range columns.Key {
		l.key = append(l.key, find("columns.key", name))
	}
	l.event = find("columns.event_time", columns.EventTime)
	l.arrival, l.partition = l.event, -1
	if columns.Arrival != "" {
		l.arrival = find("columns.arrival", columns.Arrival)
	}
	if columns.Partition != "" {
		l.partition = find("columns.partition", columns.Partition)
	}
	if _, ok := unitDigits[l.spec.Unit]; !ok && l.spec.Unit != "" && l.spec.Unit != autoUnit {
		l.faults.add("%s: unit: %q is none of auto, s, ms, us, ns", l.table.name, l.spec.Unit)
	}
	if l.spec.Partitions < 0 || l.spec.Partitions > 1<<16-1 {
		l.faults.add("%s: partitions: %d must be from 1 to 65535", l.table.name, l.spec.Partitions)
	}
}

// rows makes the rows in order of arrival.
func (l *traceLoader) rows() {
	l.eventTimes = l.times(l.event)
	l.arrivals = l.eventTimes
	if l.arrival != l.event {
		l.arrivals = l.times(l.arrival)
	}
	for line := range l.table.lines {
		if l.arrivals[line].null {
			l.faults.add("%s: a row needs an arrival", l.table.at(line, l.arrival))
		}
		row := stream.Row{Key: l.keyOf(line), Event: stream.NullTime, Arrival: l.arrivals[line].at}
		if !l.eventTimes[line].null {
			row.Event = l.eventTimes[line].at
		}
		row.Partition = l.partitionOf(line, row.Key)
		l.loaded = append(l.loaded, traceRow{row, line})
	}
	slices.SortStableFunc(l.loaded, func(a, b traceRow) int {
		return cmp.Or(cmp.Compare(a.Arrival, b.Arrival), cmp.Compare(a.Partition, b.Partition))
	})
}

// times reads a column of times.
func (l *traceLoader) times(column int) []moment {
	cells := l.table.columns[column]
	unit := l.spec.Unit
	if unit == "" || unit == autoUnit {
		unit = guessUnit(cells)
	}
	moments := make([]moment, len(cells))
	for line, c := range cells {
		m, err := readMoment(c, unit)
		if err != nil {
			l.faults.add("%s: %w", l.table.at(line, column), err)
		}
		moments[line] = m
	}
	return moments
}

func (l *traceLoader) keyOf(line int) stream.Key {
	var scratch [128]byte
	hash := keyHash{scratch[:0]}
	for _, column := range l.key {
		if c := l.table.columns[column][line]; c.null {
			hash.null()
		} else {
			hash.text(c.text)
		}
	}
	return hash.key()
}

func (l *traceLoader) partitionOf(line int, key stream.Key) uint16 {
	if l.partition < 0 {
		return uint16(below(stream.Mix(key.Hi^key.Lo), uint64(max(1, l.spec.Partitions))))
	}
	c := l.table.columns[l.partition][line]
	n, ok := c.integer()
	if !ok || n < 0 || n >= 1<<16-1 {
		l.faults.add("%s: %q is not a partition, a whole number from 0 to 65534", l.table.at(line, l.partition), c.text)
	}
	return uint16(n)
}

// trace numbers the events and puts everything together.
func (l *traceLoader) trace() (Workload, error) {
	t := &trace{partitions: max(1, l.spec.Partitions), starts: []uint32{0}}
	numbers := map[stream.Key]uint64{}
	var copies []uint32 // rows so far, by event
	for _, row := range l.loaded {
		number, seen := numbers[row.Key]
		if !seen {
			number = uint64(len(copies))
			numbers[row.Key] = number
			copies = append(copies, 0)
		}
		if copies[number] == stream.MaxCopies {
			return nil, fmt.Errorf("%s: more than %d rows have this key", l.table.at(row.line, l.key[0]), stream.MaxCopies)
		}
		row.Tag = stream.NewTag(number, min(1, int(copies[number])), int(copies[number]))
		row.First = !seen
		copies[number]++
		t.rows = append(t.rows, row.Row)
		if l.partition >= 0 {
			t.partitions = max(t.partitions, int(row.Partition)+1)
		}
	}
	for e, n := range copies {
		t.starts = append(t.starts, t.starts[e]+n)
	}
	t.byEvent = make([]uint32, len(t.rows))
	for i := range t.rows {
		row := &t.rows[i]
		row.Lone = copies[row.Tag.Event()] == 1
		t.byEvent[int(t.starts[row.Tag.Event()])+row.Tag.Copy()] = uint32(i)
	}

	t.contents = make([]uint64, len(t.rows))
	for c := range l.table.header {
		column, values := l.column(c)
		t.schema.Columns = append(t.schema.Columns, column)
		cells := make([]stream.Value, len(t.rows))
		for i, row := range l.loaded {
			cells[i] = values[row.line]
			t.contents[i] = fold(t.contents[i], c, hashValue(cells[i]))
		}
		t.cells = append(t.cells, cells)
	}
	t.schema.Key, t.schema.Event = l.key, l.event
	return t, nil
}

// column types one column and converts its cells.
func (l *traceLoader) column(c int) (stream.Column, []stream.Value) {
	column := stream.Column{Name: l.table.header[c], Type: stream.Timestamp}
	var moments []moment
	switch {
	case c == l.event:
		moments = l.eventTimes
	case c == l.arrival:
		moments = l.arrivals
	default:
		return inferColumn(column.Name, l.table.columns[c])
	}
	values := make([]stream.Value, len(moments))
	for i, m := range moments {
		values[i] = stream.Value{Null: m.null, Int: int64(m.at)}
	}
	return column, values
}

// hashValue is equal for equal values of one column.
func hashValue(v stream.Value) uint64 {
	hash := keyHash{make([]byte, 0, 64)}
	switch {
	case v.Null:
		hash.null()
	case v.Text != "":
		hash.text(v.Text)
	default:
		return stream.Mix(uint64(v.Int))
	}
	return hash.key().Hi
}
