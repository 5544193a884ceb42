package sim

import (
	"math"

	"deduplab/stream"
)

// Target is the table that a sink writes to. It outlives restarts of the query: what a batch has written stays, whether
// or not the query commits the batch. All implementations give the same rows; a table that cannot be reached is an
// error, after which nothing of the call's change is in the table.
type Target interface {
	// Write applies one batch in one transaction, in which it also records the batch's id.
	Write(w *TargetWrite) (TargetOutcome, error)
	// Last is the id of the last batch recorded, -1 before the first.
	Last() int64
	// Partitions are the dates that have rows, ascending.
	Partitions() []Partition
	// Scan visits the rows ordered by date, key and ID.
	Scan(f func(*TargetRow)) error
	// Repeated visits the keys that have more than one row dated from or later, in the order of the keys, each with its
	// rows in the order of their IDs. Keys with a NULL in them are left out: no two of them are equal.
	Repeated(from Date, f func(rows []TargetRow)) error
	// Remove removes rows, which it knows by Date, Key and ID, in one transaction.
	Remove(rows []TargetRow) error
	// Close lets go of the table; what was written stays where it is on disk.
	Close() error
}

// TargetRow is one row of a target.
type TargetRow struct {
	Date    Date // of Event, by which the table is partitioned
	Key     stream.Key
	NullKey bool // a column of the key is NULL
	// ID numbers the rows in the order in which they came, those among them that were not inserted. An updated row
	// keeps it. It is set by the target.
	ID      uint64
	Event   stream.Time
	Tag     stream.Tag
	Batch   int64 // the batch that wrote it
	Written Date  // when that was, by processing time
}

// TargetWrite is one batch for a target.
type TargetWrite struct {
	Batch int64
	Today Date // the date that the query puts into the statement
	Mode  WriteMode
	// Since bounds what a merge is joined with, `t.date >= Since`. NullDate: the whole table, which also takes the rows
	// without a date.
	Since Date
	// NullSafe joins with <=>, to which NULL equals NULL. With = it equals nothing: spark sink-merge/null-key.
	NullSafe bool
	Rows     []TargetRow // Date, ID, Batch and Written are set by the target
}

// WriteMode is the statement that a batch is written with.
type WriteMode uint8

// The modes.
const (
	// Append inserts all rows: spark sink-append/replay.
	Append WriteMode = iota
	// AppendOnce is Append but for a batch that is recorded already, of which nothing is written. Delta: txnAppId with
	// txnVersion = batch id, spark sink-append/replay-keyed-on-batch-id.
	AppendOnce
	// MergeInsert inserts the rows whose key does not match: MERGE ... WHEN NOT MATCHED THEN INSERT *. It does not look
	// for copies among the batch's own rows: spark sink-merge/source-duplicates.
	MergeInsert
	// MergeUpsert also updates matched rows to a row that is newer by event time: WHEN MATCHED AND s.ts > t.ts. Two rows
	// of the batch that match one row of the table fail it: spark sink-merge/upsert-one-qualifies.
	MergeUpsert
)

// TargetOutcome is what a write has done.
type TargetOutcome struct {
	// Committed says that the table has a new version. A merge that changes nothing makes none: spark sink-merge/replay.
	Committed bool
	Inserted  int
	Updated   int
	// Fates holds one entry a row of the write.
	Fates []RowFate
	// Replaced are the rows of the table as they were before they were updated, By the index of the row that was put in
	// their place.
	Replaced []ReplacedRow
	// JoinedRows and JoinedDates are what the statement read of the table: all rows of the partitions that its date
	// condition leaves.
	JoinedRows, JoinedDates int64
}

// RowFate is what became of one row of a write.
type RowFate uint8

// The fates.
const (
	RowInserted RowFate = iota
	RowMatched          // the table has the key: not written
	RowUpdated          // written in place of the row of the table
	RowSkipped          // the batch had been written before
)

// ReplacedRow is a row of a target that was updated.
type ReplacedRow struct {
	By  int
	Old TargetRow
}

// Partition is one date of a target.
type Partition struct {
	Date Date
	Rows int64
}

// MultipleMatches is the error of an upsert of which two source rows match one row of the table.
type MultipleMatches struct{}

// Error says what to do about it.
func (MultipleMatches) Error() string {
	return "two rows of the batch match the same row of the table: leave one row a key before the MERGE"
}

// Date is a day in UTC, counted from 1970-01-01.
type Date int32

// NullDate is the date of a row without event time; it sorts before all others.
const NullDate Date = math.MinInt32

// Day is the length of a day.
const Day stream.Time = 86_400_000

// DateOf is the date of a moment.
func DateOf(t stream.Time) Date {
	if t == stream.NullTime {
		return NullDate
	}
	return Date(t.Floor(Day) / Day)
}

// Time is the start of the day.
func (d Date) Time() stream.Time {
	if d == NullDate {
		return stream.NullTime
	}
	return stream.Time(d) * Day
}

// String renders the day as 2006-01-02.
func (d Date) String() string {
	if d == NullDate {
		return "null"
	}
	return d.Time().String()[:len("2006-01-02")]
}
