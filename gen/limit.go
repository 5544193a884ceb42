package gen

import (
	"fmt"
	"io"
)

// MaxRecord bounds a record of a trace, in bytes. A quote that is never closed, a file that is no trace or a compressed
// bomb would otherwise fill the memory. maxTrace bounds a trace that is kept in memory.
const (
	MaxRecord = 16 << 20
	maxTrace  = 4 << 30
)

// RecordLimit reads a file, and fails when a record of it is too long. Next must be called after every record.
type RecordLimit struct {
	in          io.Reader
	total, most int64 // bytes of all records, and how many there may be; most 0: any number
	record      int64
}

// LimitRecords reads in, of which all records together may have any size.
func LimitRecords(in io.Reader) *RecordLimit { return &RecordLimit{in: in} }

// Next begins a record.
func (l *RecordLimit) Next() { l.record = 0 }

// Read implements io.Reader.
func (l *RecordLimit) Read(p []byte) (int, error) {
	if l.record > MaxRecord {
		return 0, fmt.Errorf("a record is longer than %d MB: is a quote not closed, or is this no trace?", MaxRecord>>20)
	}
	if l.most > 0 && l.total > l.most {
		return 0, fmt.Errorf("the trace is larger than %d GB, and would be kept in memory: take a part of it", l.most>>30)
	}
	n, err := l.in.Read(p)
	l.record, l.total = l.record+int64(n), l.total+int64(n)
	return n, err
}
