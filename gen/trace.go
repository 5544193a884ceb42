package gen

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"deduplab/stream"
	"deduplab/trace"
)

// TraceSpec says what the columns of a trace mean. Columns that play no role are kept as they are.
type TraceSpec struct {
	Columns TraceColumns
	// Unit is that of times written as numbers: "s", "ms", "us", "ns", or "auto", the default, which goes by the largest
	// number of the column; see [trace.Spec].
	Unit string
	// Partitions is the number of source partitions, by hash of the key, if no column names them; 0 means 1.
	Partitions int
	// Start is when the scenario starts, from which watermarks and checkpoints tick; 0 is the first arrival.
	Start       stream.Time
	SkipBadRows bool
}

// TraceColumns names the columns that play a role.
type TraceColumns struct {
	Key       []string
	EventTime string // an empty cell is a NULL event time
	Arrival   string // default: EventTime
	Partition string // whole numbers from 0; default: none
	// Event and Origin are the truth, if the trace has it: what is equal in the rows of one logical event whatever their
	// key, and how each row came about ("original", or the name of a rule). Strategies do not see these columns.
	Event, Origin string
}

// maxCells bounds a trace that is kept in memory: rows times columns.
const maxCells = 1 << 27

// ReadTrace reads a workload from one file; see [ReadTraces].
func ReadTrace(name string, r io.Reader, spec TraceSpec) (*Trace, error) {
	return ReadTraces([]trace.File{trace.Of(name, r)}, spec)
}

// ReadTraces reads a workload from files of any form that package trace reads. The rows are brought in order of
// arrival, those of one millisecond by partition, and otherwise stay as they stand. Without a column for the event the
// key is taken for the truth: rows of equal key are one event, an empty key cell is NULL, and NULL equals NULL.
//
// Other columns become integers or decimals of constant scale if all their cells are written so, else text. The columns
// of the arrival and the partition are columns of the rows too, unless their names begin with an underscore, as those
// that lab gen adds: these are the log's. The error joins the faults, at most 20, each as name:line:column-name.
func ReadTraces(files []trace.File, spec TraceSpec) (*Trace, error) {
	l := &traceLoader{spec: spec}
	if err := l.read(files); err != nil {
		return nil, err
	}
	if err := l.rows(); err != nil {
		return nil, err
	}
	return l.trace()
}

// Trace is a workload kept in memory, row by row in order of arrival.
type Trace struct {
	schema     stream.Schema
	partitions int
	rows       []stream.Row
	cells      [][]stream.Value // by column and row
	contents   []uint64
	// The rows of event e, in order of arrival, are byEvent[starts[e]:starts[e+1]].
	starts, byEvent []uint32

	start    stream.Time
	labelled bool
	origins  []string
	newKeys  []bool // by origin
	skipped  int64
	faults   []string
}

// Skipped counts the bad rows that are not in the workload; the first 20 are told.
func (t *Trace) Skipped() (n int64, first []string) { return t.skipped, t.faults }

func (t *Trace) row(tag stream.Tag) uint32 { return t.byEvent[int(t.starts[tag.Event()])+tag.Copy()] }

func (t *Trace) Schema() stream.Schema { return t.schema }

func (t *Trace) Record(tag stream.Tag) stream.Record {
	row := t.row(tag)
	record := make(stream.Record, len(t.cells))
	for c := range t.cells {
		record[c] = t.cells[c][row]
	}
	return record
}

func (t *Trace) Order(tag stream.Tag, column int) int64 {
	if t.schema.Columns[column].Type == stream.String {
		panic(fmt.Sprintf("gen: column %q is text and has no numeric order", t.schema.Columns[column].Name))
	}
	if v := t.cells[column][t.row(tag)]; !v.Null {
		return v.Int
	}
	return stream.NullOrder
}

func (t *Trace) Content(tag stream.Tag) uint64 { return t.contents[t.row(tag)] }

func (t *Trace) Partitions() int { return t.partitions }

// Span is from the start, by default the first arrival, to the last arrival.
func (t *Trace) Span() (from, to stream.Time) {
	return t.start, t.rows[len(t.rows)-1].Arrival
}

func (t *Trace) Labelled() bool { return t.labelled }

func (t *Trace) Origins() []string { return t.origins }

func (t *Trace) Arrival(tag stream.Tag) stream.Time { return t.rows[t.row(tag)].Arrival }

func (t *Trace) FirstArrival(event uint64) stream.Time { return t.Arrival(stream.NewTag(event, 0, 0)) }

func (t *Trace) NewKey(origin int) bool { return t.newKeys[origin] }

func (t *Trace) Stream() Stream { return &replay{t.rows} }

// replay is a stream of a trace.
type replay struct{ rest []stream.Row }

// Next implements Stream. It never fails.
func (r *replay) Next(dst []stream.Row) (int, error) {
	n := copy(dst, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// traceLoader makes a trace of the rows of files. Its tables are by row as they stand in the files.
type traceLoader struct {
	spec    TraceSpec
	reader  *trace.Reader
	columns [][]cell          // by column
	times   [2][]trace.Moment // event times and arrivals
	loaded  []traceRow
	origins []string
}

// traceRow is a row and its number in the files.
type traceRow struct {
	stream.Row
	number int
	event  stream.Key // what its event is known by
	origin int
}

// The first roles; those of the key follow, and then those there may be.
const (
	eventTimeRole = iota
	arrivalRole
	keyRole
)

// roles lists the columns that play a role. Partition, event and origin are -1 if there is no such column.
func (l *traceLoader) roles() (roles []trace.Role, partition, event, origin int) {
	c := l.spec.Columns
	arrival := trace.Role{Name: "columns.arrival", Column: c.Arrival, Kind: trace.Arrival}
	time := trace.Role{Name: "columns.event_time", Column: c.EventTime, Kind: trace.Time}
	if c.Arrival == "" || c.Arrival == c.EventTime {
		time.Kind = trace.Arrival
		arrival = time
	}
	roles = []trace.Role{time, arrival}
	for _, name := range c.Key {
		roles = append(roles, trace.Role{Name: "columns.key", Column: name})
	}
	optional := func(name, column string, kind trace.Kind) int {
		if column == "" {
			return -1
		}
		roles = append(roles, trace.Role{Name: name, Column: column, Kind: kind})
		return len(roles) - 1
	}
	partition = optional("columns.partition", c.Partition, trace.Partition)
	event = optional("columns.event", c.Event, trace.Label)
	origin = optional("columns.origin", c.Origin, trace.Label)
	return roles, partition, event, origin
}

// read takes in the files.
func (l *traceLoader) read(files []trace.File) error {
	if len(l.spec.Columns.Key) == 0 {
		return errors.New("columns.key: is missing")
	}
	if l.spec.Partitions < 0 || l.spec.Partitions > 1<<16-1 {
		return fmt.Errorf("partitions: %d must be from 1 to 65535", l.spec.Partitions)
	}
	roles, partition, event, origin := l.roles()
	reader, err := trace.NewReader(trace.Spec{Roles: roles, All: true, Unit: l.spec.Unit, SkipBadRows: l.spec.SkipBadRows})
	if err != nil {
		return err
	}
	l.reader = reader
	l.origins = []string{"original"}
	return reader.ReadAll(files, func(r *trace.Row) error {
		row := traceRow{number: len(l.loaded)}
		row.Key = keyOf(r.Roles[keyRole : keyRole+len(l.spec.Columns.Key)])
		row.event = row.Key
		if partition >= 0 {
			row.Partition = r.Roles[partition].Number
		} else {
			row.Partition = uint16(below(stream.Mix(row.Key.Hi^row.Key.Lo), uint64(max(1, l.spec.Partitions))))
		}
		if event >= 0 {
			row.event = keyOf(r.Roles[event : event+1])
		}
		if origin >= 0 {
			if row.origin, err = l.origin(string(r.Roles[origin].Text)); err != nil {
				return err
			}
		}
		for i := range l.times {
			l.times[i] = append(l.times[i], r.Roles[i].Time)
		}
		for len(l.columns) < len(r.Columns) {
			l.columns = append(l.columns, slices.Repeat([]cell{{null: true}}, len(l.loaded)))
		}
		l.loaded = append(l.loaded, row)
		if len(l.loaded)*len(l.columns) > maxCells {
			return fmt.Errorf("the trace has more than %d cells, which is all that a run keeps in memory; lab measure takes "+
				"any number", maxCells)
		}
		for c := range l.columns {
			cell := cell{null: true}
			if c < len(r.Columns) && !r.Columns[c].Null {
				cell.text, cell.null = string(r.Columns[c].Text), false
			}
			l.columns[c] = append(l.columns[c], cell)
		}
		return nil
	})
}

// origin numbers the origins in order of appearance.
func (l *traceLoader) origin(name string) (int, error) {
	i := slices.Index(l.origins, name)
	if i < 0 {
		if i = len(l.origins); i == stream.MaxOrigins {
			return 0, fmt.Errorf("columns.origin: more than %d different origins", stream.MaxOrigins)
		}
		l.origins = append(l.origins, name)
	}
	return i, nil
}

// keyOf makes a key of cells. A UUID alone is its own 128 bits, as the generator's are.
func keyOf(cells []trace.Cell) stream.Key {
	if len(cells) == 1 {
		if key, ok := parseUUID(cells[0].Text); ok {
			return key
		}
	}
	var scratch [128]byte
	hash := keyHash{scratch[:0]}
	for _, c := range cells {
		if c.Null {
			hash.null()
		} else {
			hash.text(string(c.Text))
		}
	}
	return hash.key()
}

// rows brings the rows in order of arrival.
func (l *traceLoader) rows() error {
	for i := range l.loaded {
		row := &l.loaded[i]
		for role, to := range []*stream.Time{&row.Event, &row.Arrival} {
			at, err := l.times[role][i].Millis(l.reader.Unit(role))
			if err != nil {
				return fmt.Errorf("%s: %w", []string{l.spec.Columns.EventTime, l.spec.Columns.Arrival}[role], err)
			}
			*to = at
		}
	}
	slices.SortStableFunc(l.loaded, func(a, b traceRow) int {
		return cmp.Or(cmp.Compare(a.Arrival, b.Arrival), cmp.Compare(a.Partition, b.Partition))
	})
	return nil
}

// trace numbers the events and puts everything together.
func (l *traceLoader) trace() (*Trace, error) {
	t := &Trace{partitions: max(1, l.spec.Partitions), starts: []uint32{0}, labelled: l.spec.Columns.Event != "",
		origins: l.origins}
	t.skipped, t.faults = l.reader.Skipped()
	if l.spec.Columns.Origin == "" {
		t.origins = []string{"original", "repeat"}
	}
	t.newKeys = make([]bool, len(t.origins))
	numbers := map[stream.Key]uint64{}
	var copies []uint32   // rows so far, by event
	var keys []stream.Key // of the original, by event, else of the first row
	for _, row := range l.loaded {
		number, seen := numbers[row.event]
		if !seen {
			number = uint64(len(copies))
			numbers[row.event] = number
			copies, keys = append(copies, 0), append(keys, row.Key)
		}
		if copies[number] == stream.MaxCopies {
			return nil, fmt.Errorf("more than %d rows are of one event", stream.MaxCopies)
		}
		origin := row.origin
		if l.spec.Columns.Origin == "" {
			origin = min(1, int(copies[number]))
		}
		if origin == 0 {
			keys[number] = row.Key
		}
		row.Tag = stream.NewTag(number, origin, int(copies[number]))
		row.First = !seen
		copies[number]++
		t.rows = append(t.rows, row.Row)
		if l.spec.Columns.Partition != "" {
			t.partitions = max(t.partitions, int(row.Partition)+1)
		}
	}
	for e, n := range copies {
		t.starts = append(t.starts, t.starts[e]+n)
	}
	t.byEvent = make([]uint32, len(t.rows))
	for i := range t.rows {
		row := &t.rows[i]
		event := row.Tag.Event()
		row.Lone = copies[event] == 1
		t.byEvent[int(t.starts[event])+row.Tag.Copy()] = uint32(i)
		if row.Tag.Origin() > 0 && row.Key != keys[event] {
			t.newKeys[row.Tag.Origin()] = true
		}
	}
	if t.start = l.spec.Start; t.start == 0 {
		t.start = t.rows[0].Arrival
	}
	if t.start > t.rows[0].Arrival {
		return nil, fmt.Errorf("start: %v lies after the first arrival, %v", t.start, t.rows[0].Arrival)
	}
	l.fill(t)
	return t, nil
}

// fill adds the columns of the rows.
func (l *traceLoader) fill(t *Trace) {
	t.contents = make([]uint64, len(t.rows))
	for c, name := range l.reader.Columns() {
		if l.ofTheLog(name) {
			continue
		}
		column, values := l.column(name, l.columns[c])
		place := len(t.schema.Columns)
		t.schema.Columns = append(t.schema.Columns, column)
		cells := make([]stream.Value, len(t.rows))
		for i, row := range l.loaded {
			cells[i] = values[row.number]
			t.contents[i] = fold(t.contents[i], place, hashValue(cells[i]))
		}
		t.cells = append(t.cells, cells)
	}
	for _, name := range l.spec.Columns.Key {
		t.schema.Key = append(t.schema.Key, t.schema.Index(name))
	}
	t.schema.Event = t.schema.Index(l.spec.Columns.EventTime)
}

// ofTheLog reports whether a column is none of the rows': the truth, and what lab gen adds.
func (l *traceLoader) ofTheLog(name string) bool {
	c := l.spec.Columns
	switch {
	case slices.Contains(c.Key, name), name == c.EventTime:
		return false
	case name == c.Event, name == c.Origin:
		return true
	}
	return strings.HasPrefix(name, "_") && (name == c.Arrival || name == c.Partition)
}

// column types one column and converts its cells.
func (l *traceLoader) column(name string, cells []cell) (stream.Column, []stream.Value) {
	column := stream.Column{Name: name, Type: stream.Timestamp}
	role := slices.Index([]string{l.spec.Columns.EventTime, l.spec.Columns.Arrival}, name)
	if role < 0 {
		return inferColumn(name, cells)
	}
	values := make([]stream.Value, len(cells))
	for _, row := range l.loaded {
		at := []stream.Time{row.Event, row.Arrival}[role]
		values[row.number] = stream.Value{Null: at == stream.NullTime}
		if at != stream.NullTime {
			values[row.number].Int = int64(at)
		}
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
