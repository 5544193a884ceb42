package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"deduplab/trace"
)

// nanos is a moment since the Unix epoch, or a span, in nanoseconds.
type nanos = int64

// maxOrigins bounds the different values of the origin column.
const maxOrigins = 1 << 16

// Reader measures traces. It reads the files when the report is asked for: once, or again from the start if it turns
// out on the way that a time counts in a smaller unit than it seemed or that rows need a whole sort; and again up to
// the worst ids, whose texts it does not keep.
type Reader struct {
	columns Columns
	skip    bool
	files   []trace.File
	folder  string // for what does not fit into memory
	disks   []*disk
}

// NewReader prepares to read traces whose columns mean what is said.
func NewReader(columns Columns, skipBadRows bool) (*Reader, error) {
	if columns.Arrival == "" && columns.EventTime == "" {
		return nil, errors.New("a trace needs a time: name the column with --arrival or --event-time")
	}
	if len(columns.Keys) == 0 {
		return nil, errors.New("a trace needs a key: name its column, or columns, with --key")
	}
	if columns.Unit == "" {
		columns.Unit = trace.Auto
	}
	if _, err := trace.NewReader(trace.Spec{Unit: columns.Unit}); err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	return &Reader{columns: columns, skip: skipBadRows}, nil
}

// Add adds files to the trace. They are opened more than once.
func (r *Reader) Add(files ...trace.File) { r.files = append(r.files, files...) }

// Read adds what can be read once, by way of a temporary file as large as it is. Close removes that file.
func (r *Reader) Read(name string, in io.Reader) error {
	if err := r.temporary(); err != nil {
		return err
	}
	path := filepath.Join(r.folder, strconv.Itoa(len(r.files)))
	if err := copyTo(path, in); err != nil {
		return fmt.Errorf("%s: %w", name, temporaryError(err))
	}
	r.Add(trace.File{Name: name, Open: func() (io.ReadCloser, error) { return os.Open(path) }})
	return nil
}

func copyTo(path string, in io.Reader) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}

// temporary makes the folder for what does not fit into memory.
func (r *Reader) temporary() (err error) {
	if r.folder == "" {
		r.folder, err = os.MkdirTemp("", "deduplab-measure-")
	}
	return temporaryError(err)
}

// temporaryError says where temporary files go, if it is one of them that could not be written.
func temporaryError(err error) error {
	if path := new(fs.PathError); errors.As(err, &path) && path.Op != "read" {
		return fmt.Errorf("temporary files go to %s, see TMPDIR: %w", os.TempDir(), err)
	}
	return err
}

// Close removes the temporary files. The report's numbers stay; what is not among them, such as Delays.UpTo, cannot be
// asked for any more.
func (r *Reader) Close() error {
	var errs []error
	for _, d := range r.disks {
		errs = append(errs, d.close())
	}
	if r.folder != "" {
		errs = append(errs, os.RemoveAll(r.folder))
	}
	r.disks, r.folder = nil, ""
	return errors.Join(errs...)
}

// The first roles; those of the keys follow, and then the partition and the origin.
const (
	eventRole = iota
	arrivalRole
	keyRole
)

// roles lists the columns that are read. Partition and origin are -1 if there is no such column.
func (r *Reader) roles() (roles []trace.Role, partition, origin int) {
	c := r.columns
	event := trace.Role{Name: "--event-time", Column: c.EventTime, Kind: trace.Time}
	arrival := trace.Role{Name: "--arrival", Column: c.Arrival, Kind: trace.Arrival}
	if c.Arrival == "" {
		event.Kind = trace.Arrival
		arrival = event
	}
	if c.EventTime == "" {
		event = arrival
	}
	roles = []trace.Role{event, arrival}
	for _, key := range c.Keys {
		for _, name := range key {
			roles = append(roles, trace.Role{Name: "--key", Column: name})
		}
	}
	optional := func(name, column string, kind trace.Kind) int {
		if column == "" {
			return -1
		}
		roles = append(roles, trace.Role{Name: name, Column: column, Kind: kind})
		return len(roles) - 1
	}
	partition = optional("--partition", c.Partition, trace.Partition)
	origin = optional("--origin", c.Origin, trace.Text)
	return roles, partition, origin
}

// hash is a key, told from others by 128 bits.
type hash struct{ hi, lo int64 }

func hashOf(key []byte) hash {
	hi := xxhash.Sum64(key)
	return hash{int64(hi), int64(xxhash.Sum64(append(key, 1)))}
}

// appendKey writes a key so that no two read the same: of each part its length, a colon and its text, or a tilde for
// NULL.
func appendKey(to []byte, parts []trace.Cell) []byte {
	for _, part := range parts {
		if part.Null {
			to = append(to, '~')
			continue
		}
		to = strconv.AppendInt(to, int64(len(part.Text)), 10)
		to = append(append(to, ':'), part.Text...)
	}
	return to
}

// A record is a row on its way: what it is sorted by, then the rest, then two words for each key.
const (
	recordArrival = iota
	recordPartition
	recordEvent // early for none
	recordFlags
	recordIndex // number of the row as listed
	recordKeys
)

// The flags of a record are numbers of a few bits, 32 in all.
const (
	readerShift    = 0 // class of the lateness
	partitionShift = 8 // the same under a watermark per partition
	originShift    = 16
)

// maxRows bounds a trace, whose rows are numbered in 32 bits.
const maxRows = 1<<32 - 1

// settings are what a pass takes for granted. If it turns out to be wrong, the next pass knows better.
type settings struct {
	largest [2]int64 // number of an event time, of an arrival: tells the unit
	whole   bool     // sort
}

// errUnit says that a time counts in a smaller unit than it seemed.
var errUnit = errors.New("the unit of a time is another one")

// head is how many rows are read before the units of times are taken for known.
const headRows = 1 << 16

// intake reads the files of a trace into records.
type intake struct {
	*Reader
	ctx     context.Context
	rows    *trace.Reader
	begin   settings
	units   [2]string // once they are known
	waiting []waiting // rows whose times are not known yet
	each    func(record []int64) error
	record  []int64
	key     []byte

	partition, origin int
	origins           map[string]int
	names             []string // of the origins
	nullKeys          []int    // rows, by key
	index             int64
}

// waiting is a row whose times are not known yet.
type waiting struct {
	times  [2]trace.Moment
	record []int64
}

func (r *Reader) newIntake(ctx context.Context, begin settings, each func([]int64) error) (*intake, error) {
	in := &intake{Reader: r, ctx: ctx, begin: begin, each: each, origins: map[string]int{},
		nullKeys: make([]int, len(r.columns.Keys)), record: make([]int64, recordKeys+2*len(r.columns.Keys))}
	var roles []trace.Role
	roles, in.partition, in.origin = r.roles()
	var err error
	in.rows, err = trace.NewReader(trace.Spec{Roles: roles, Unit: r.columns.Unit, Nanos: true,
		SkipBadRows: r.skip})
	return in, err
}

func (in *intake) run() error {
	if err := in.rows.ReadAll(in.files, in.row); err != nil {
		return err
	}
	return in.settleUnits()
}

// row makes a record of a row.
func (in *intake) row(row *trace.Row) error {
	if in.index&0xfff == 0 {
		if err := in.ctx.Err(); err != nil {
			return err
		}
	}
	if in.index > maxRows {
		return fmt.Errorf("more than %d rows", maxRows)
	}
	rec := in.record
	rec[recordPartition], rec[recordFlags], rec[recordIndex] = 0, 0, in.index
	in.index++
	if in.partition >= 0 {
		rec[recordPartition] = int64(row.Roles[in.partition].Number)
	}
	if in.origin >= 0 {
		origin, err := in.originOf(row.Roles[in.origin].Text)
		if err != nil {
			return err
		}
		rec[recordFlags] = int64(origin) << originShift
	}
	at := keyRole
	for k, names := range in.columns.Keys {
		parts := row.Roles[at : at+len(names)]
		at += len(names)
		in.key = appendKey(in.key[:0], parts)
		h := hashOf(in.key)
		rec[recordKeys+2*k], rec[recordKeys+2*k+1] = h.hi, h.lo
		if slices.ContainsFunc(parts, func(c trace.Cell) bool { return c.Null }) {
			in.nullKeys[k]++
		}
	}
	times := [2]trace.Moment{row.Roles[eventRole].Time, row.Roles[arrivalRole].Time}
	if in.columns.EventTime == "" {
		times[eventRole] = trace.Moment{}
	}
	if in.units[0] != "" {
		return in.hand(times, rec)
	}
	in.waiting = append(in.waiting, waiting{times, slices.Clone(rec)})
	if len(in.waiting) < headRows {
		return nil
	}
	return in.settleUnits()
}

// unit tells the unit of a time by the largest number so far, or of an earlier pass.
func (in *intake) unit(role int) string { return in.rows.UnitAbove(role, in.begin.largest[role]) }

// settleUnits takes the units for known, and hands out the rows that wait for it.
func (in *intake) settleUnits() error {
	if in.units[0] != "" {
		return nil
	}
	in.units = [2]string{in.unit(eventRole), in.unit(arrivalRole)}
	for _, w := range in.waiting {
		if err := in.hand(w.times, w.record); err != nil {
			return err
		}
	}
	in.waiting = nil
	return nil
}

func (in *intake) hand(times [2]trace.Moment, rec []int64) error {
	for role := range in.units {
		if in.unit(role) != in.units[role] {
			in.begin.largest = [2]int64{in.rows.Largest(eventRole), in.rows.Largest(arrivalRole)}
			return errUnit
		}
	}
	arrival, err := times[arrivalRole].Nanos(in.units[arrivalRole])
	if err != nil {
		name := "--arrival " + in.columns.Arrival
		if in.columns.Arrival == "" {
			name = "--event-time " + in.columns.EventTime
		}
		return fmt.Errorf("%s: row %d: %w (say in --unit what it counts in)", name, rec[recordIndex]+1, err)
	}
	rec[recordArrival], rec[recordEvent] = arrival, early
	if times[eventRole].Null() {
		return in.each(rec)
	}
	if rec[recordEvent], err = times[eventRole].Nanos(in.units[eventRole]); err != nil {
		return fmt.Errorf("--event-time %s: row %d: %w (say in --unit what it counts in)", in.columns.EventTime,
			rec[recordIndex]+1, err)
	}
	return in.each(rec)
}

func (in *intake) originOf(name []byte) (int, error) {
	i, ok := in.origins[string(name)]
	if !ok {
		if i = len(in.names); i == maxOrigins {
			return 0, fmt.Errorf("--origin: column %q has more than %d different values", in.columns.Origin, maxOrigins)
		}
		in.origins[string(name)] = i
		in.names = append(in.names, string(name))
	}
	return i, nil
}

// texts reads the files again, as far as the keys go that are asked for, and tells how they are written.
func (r *Reader) texts(ctx context.Context, wanted map[hash]string, names []string) error {
	roles := make([]trace.Role, len(names))
	for i, name := range names {
		roles[i] = trace.Role{Name: "--key", Column: name}
	}
	rows, err := trace.NewReader(trace.Spec{Roles: roles, SkipBadRows: true})
	if err != nil {
		return err
	}
	missing := len(wanted)
	var key []byte
	n := 0
	for _, file := range r.files {
		if missing == 0 {
			return nil
		}
		in, err := file.Open()
		if err != nil {
			return err
		}
		err = rows.Read(file.Name, in, func(row *trace.Row) error {
			if n++; n&0xfff == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			key = appendKey(key[:0], row.Roles)
			h := hashOf(key)
			if text, ok := wanted[h]; !ok || text != "" {
				return nil
			}
			wanted[h] = keyText(row.Roles)
			if missing--; missing == 0 {
				return trace.ErrStop
			}
			return nil
		})
		if err := errors.Join(err, in.Close()); err != nil {
			return err
		}
	}
	return nil
}

// keyText writes a key for people.
func keyText(parts []trace.Cell) string {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = string(part.Text)
		if part.Null {
			texts[i] = "null"
		}
	}
	return strings.Join(texts, " | ")
}

func formatMoment(n nanos) string { return time.Unix(0, n).UTC().Format(time.RFC3339Nano) }

// millis rounds to whole milliseconds, halves away from 0, as the lab's clock does.
func millis(n nanos) int64 {
	if n < 0 {
		return -millis(-n)
	}
	return (n + 5e5) / 1e6
}

// early stands for a row that is not behind any other.
const early = nanos(math.MinInt64)
