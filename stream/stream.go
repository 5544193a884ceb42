// Package stream is the vocabulary of the lab: rows, changes, changelog modes, keys and times. It imports nothing of
// the project, and every other package speaks in its words.
//
// A [Row] is small and flat because a run moves millions of them: it carries what deduplication decides by, and a
// [Tag] through which the rest of the row (its columns, its origin, the event it stands for) can be looked up in the
// workload that made it.
package stream

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"
)

// Time is a moment, or a span, in integer milliseconds. Moments count from the Unix epoch in UTC.
type Time int64

const (
	// MinTime is the watermark before the first watermark, Flink's Long.MIN_VALUE.
	MinTime Time = math.MinInt64
	// MaxTime is the watermark that ends a stream, Flink's Long.MAX_VALUE.
	MaxTime Time = math.MaxInt64
	// NullTime is the event time of a row whose time column is NULL.
	NullTime Time = math.MinInt64
)

// String renders a moment as RFC 3339 with milliseconds in UTC; the three constants have names of their own.
func (t Time) String() string {
	switch t {
	case MinTime:
		return "none"
	case MaxTime:
		return "end"
	}
	return time.UnixMilli(int64(t)).UTC().Format("2006-01-02T15:04:05.000Z")
}

// Floor is the largest multiple of size at or below t, also for negative times.
func (t Time) Floor(size Time) Time {
	if rest := t % size; rest < 0 {
		return t - rest - size
	}
	return t - t%size
}

// Key identifies what a strategy groups rows by. Generated UUIDs are their own 128 bits; other keys are hashed.
type Key struct{ Hi, Lo uint64 }

// Hash spreads a key over 64 bits. It is a fixed function: results that depend on it are the same on every machine.
func (k Key) Hash() uint64 {
	return Mix(k.Hi ^ Mix(k.Lo))
}

// Compare orders keys as their bytes are ordered.
func (k Key) Compare(l Key) int { return cmp.Or(cmp.Compare(k.Hi, l.Hi), cmp.Compare(k.Lo, l.Lo)) }

// With derives the key of one part of k's state, such as one window of a key. For one k it is injective.
func (k Key) With(part int64) Key {
	return Key{Hi: k.Hi ^ 0x9e3779b97f4a7c15, Lo: k.Lo ^ Mix(uint64(part))}
}

// Mix is the finalizer of SplitMix64: a bijection that makes every output bit depend on every input bit.
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Tag is the identity of a row within its workload. Strategies carry it and store it with a row, but cannot look
// through it: what it stands for is the truth, which only the ledger may see.
//
// It packs the logical event (34 bits), the number of the duplicate rule that made the copy (6 bits, 0 for an
// original) and the number of the copy within its event (24 bits, 0 for an original).
type Tag uint64

const (
	originBits = 6
	copyBits   = 24

	// MaxEvents, MaxOrigins and MaxCopies bound what a Tag can name.
	MaxEvents  = 1 << (64 - originBits - copyBits)
	MaxOrigins = 1 << originBits
	MaxCopies  = 1 << copyBits
)

// NewTag packs a tag; each part must be below its Max constant.
func NewTag(event uint64, origin, copy int) Tag {
	return Tag(event<<(originBits+copyBits) | uint64(origin)<<copyBits | uint64(copy))
}

// Event is the dense number of the logical event that the row stands for.
func (t Tag) Event() uint64 { return uint64(t) >> (originBits + copyBits) }

// Origin is the number of the duplicate rule that made the row, 0 for an original.
func (t Tag) Origin() int { return int(t>>copyBits) & (MaxOrigins - 1) }

// Copy numbers the rows of one event, 0 for the original.
func (t Tag) Copy() int { return int(t) & (MaxCopies - 1) }

// Row is one row as a source partition delivers it.
type Row struct {
	Key     Key
	Event   Time  // event time, NullTime where the column is NULL
	Arrival Time  // processing time at which it is handled
	Tag     Tag   // what the row is; opaque to strategies
	Order   int64 // the first column that the strategy orders by; NullOrder where NULL, which sorts lowest
	// Partition is the source partition, Reader the source subtask that reads it.
	Partition, Reader uint16
	Kind              Kind
	// First says that no row of the same event arrived before this one.
	First bool
	// Lone says that its event has no other row. Like First it is for the ledger: no operator decides by it.
	Lone bool
	// Behind says that the row's partition has been idle and has not caught up with the combined watermark yet.
	Behind bool
}

// NullOrder is the value of Row.Order for a NULL column. NULL sorts lowest, as in Flink.
const NullOrder int64 = math.MinInt64

// Kind is the kind of a change.
type Kind uint8

// The four kinds of a changelog, named as Flink's RowKind.
const (
	Insert Kind = iota
	UpdateBefore
	UpdateAfter
	Delete
)

var kindNames = [...]string{"+I", "-U", "+U", "-D"}

// String is the short form, such as +I.
func (k Kind) String() string { return kindNames[k] }

// ParseKind reads the short form.
func ParseKind(s string) (Kind, bool) {
	for i, name := range kindNames {
		if name == s {
			return Kind(i), true
		}
	}
	return 0, false
}

// ChangelogMode is the set of kinds that a node of a plan declares it may emit.
type ChangelogMode uint8

// Mode builds a changelog mode.
func Mode(kinds ...Kind) ChangelogMode {
	var m ChangelogMode
	for _, k := range kinds {
		m |= 1 << k
	}
	return m
}

// InsertOnly is the mode of an append-only stream.
var InsertOnly = Mode(Insert)

// Has reports whether the mode contains the kind.
func (m ChangelogMode) Has(k Kind) bool { return m&(1<<k) != 0 }

// Without returns the mode less one kind.
func (m ChangelogMode) Without(k Kind) ChangelogMode { return m &^ (1 << k) }

// Names lists the mode as the recordings do: I, UB, UA, D.
func (m ChangelogMode) Names() []string {
	var names []string
	for i, name := range [...]string{"I", "UB", "UA", "D"} {
		if m.Has(Kind(i)) {
			names = append(names, name)
		}
	}
	return names
}

// Type is the type of a column.
type Type uint8

// The column types that workloads and recordings use.
const (
	String Type = iota
	Int
	Decimal   // a number scaled by 10^Column.Scale
	Timestamp // milliseconds
)

// Column describes one column of a workload.
type Column struct {
	Name  string
	Type  Type
	Scale int // of a Decimal: digits after the point
	// Nullable says that the column can be NULL.
	Nullable bool
	// Function gives a column that comes not from the source but from the query, and may be another when it is asked
	// again.
	Function Function
}

// Function is one whose value is another one when it is asked again.
type Function uint8

// The functions.
const (
	NoFunction Function = iota
	Now                 // the processing time of the row
	UUID
	Rand
	Lookup // a table or service elsewhere, asked for the row's key
)

// Functions are the names used in scenarios, of all but NoFunction.
var Functions = []string{"now", "uuid", "rand", "lookup"}

// String is the name used in scenarios, empty for NoFunction.
func (f Function) String() string {
	if f == NoFunction {
		return ""
	}
	return Functions[f-1]
}

// ParseFunction reads the name used in scenarios.
func ParseFunction(s string) (Function, bool) {
	i := slices.Index(Functions, s)
	return Function(i + 1), i >= 0
}

// Value is one column of one row. Text holds strings, Int everything else.
type Value struct {
	Null bool
	Int  int64
	Text string
}

// Compare orders two values of one column type; NULL is lowest, as in Flink's ORDER BY.
func (v Value) Compare(w Value, t Type) int {
	switch {
	case v.Null && w.Null:
		return 0
	case v.Null:
		return -1
	case w.Null:
		return 1
	case t == String && v.Text != w.Text:
		if v.Text < w.Text {
			return -1
		}
		return 1
	case v.Int < w.Int:
		return -1
	case v.Int > w.Int:
		return 1
	}
	return 0
}

// Format renders the value as people read it: decimals with their point, moments as RFC 3339, NULL as null.
func (v Value) Format(c Column) string {
	switch {
	case v.Null:
		return "null"
	case c.Type == String:
		return v.Text
	case c.Type == Timestamp:
		return Time(v.Int).String()
	case c.Type == Decimal:
		return FormatDecimal(v.Int, c.Scale)
	}
	return strconv.FormatInt(v.Int, 10)
}

// FormatDecimal renders an unscaled integer with scale digits after the point.
func FormatDecimal(unscaled int64, scale int) string {
	s := strconv.FormatInt(unscaled, 10)
	if scale <= 0 {
		return s
	}
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for len(s) <= scale {
		s = "0" + s
	}
	return sign + s[:len(s)-scale] + "." + s[len(s)-scale:]
}

// Record is a whole row, one value a column of its Schema.
type Record []Value

// Schema names the columns of a workload and the roles some of them play.
type Schema struct {
	Columns []Column
	Key     []int // the columns of the deduplication key
	Event   int   // the event-time column
}

// Index returns the position of a column, or -1.
func (s Schema) Index(name string) int {
	for i, c := range s.Columns {
		if c.Name == name {
			return i
		}
	}
	return -1
}

// Records looks up whole rows by tag. It is what operators see of a workload: columns, never the truth.
type Records interface {
	Schema() Schema
	// Record returns the columns of the row in the order of the schema. The slice is the caller's.
	Record(Tag) Record
	// Order returns one column as a number to sort by, NullOrder for NULL. It must not be asked for a String column.
	Order(tag Tag, column int) int64
	// Content identifies the tuple of all columns: equal for equal rows, different for different ones.
	Content(Tag) uint64
}
