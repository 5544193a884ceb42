// Package gen makes workloads: streams of rows in the order in which they arrive, each labelled with the truth.
//
// A generated workload is a pure function of its [Spec] and seed. Nothing about a row is kept once it has been
// delivered: its columns, arrival and origin are computed again from its tag when somebody asks. A trace is read from a
// file and kept in memory; the chosen key is then the truth.
package gen

import "deduplab/stream"

// Workload is a stream that can be delivered any number of times, and the truth about it.
// Its methods are safe for concurrent use.
type Workload interface {
	stream.Records

	// Stream starts a delivery from the first row.
	Stream() Stream
	// Partitions is the number of source partitions.
	Partitions() int
	// Span returns the moment the scenario starts and the moment the last original is due; latency and state are
	// measured within it, and copies may arrive after it.
	Span() (from, to stream.Time)
	// Labelled reports whether the truth is known beyond the key: false for a trace without labels.
	Labelled() bool
	// Origins names the duplicate rules in the order of Tag.Origin; the first is "original".
	Origins() []string

	// Partition is the source partition of a row.
	Partition(stream.Tag) int
	// Arrival is the moment a row can be read from its partition.
	Arrival(stream.Tag) stream.Time
	// FirstArrival is the earliest arrival of any row of the event.
	FirstArrival(event uint64) stream.Time
	// LastArrival is the latest arrival of any row of the event.
	LastArrival(event uint64) stream.Time
	// Rows appends the rows of an event in order of arrival.
	Rows(to []stream.Tag, event uint64) []stream.Tag
	// Ends lists, in order, the partitions that end before the stream does. The first call may cost a delivery.
	Ends() []End
	// NewKey reports whether rows of this origin carry another key than their original (a retry with a new id).
	NewKey(origin int) bool
	// ReusedID reports whether the key of an event holds an id that the workload gives to different events, so that
	// equal keys of two events come from that.
	ReusedID(event uint64) bool
}

// End is the end of a source partition that is finished: no row follows its last one.
type End struct {
	Partition int
	Rows      int        // how many there are
	Last      stream.Tag // the last of them, if there are any
}

// Stream delivers the rows of a workload in order of (arrival, partition, offset).
type Stream interface {
	// Next fills dst from the front and returns how many rows it wrote, 0 at the end. Key, Event, Arrival, Tag,
	// Partition, First and Lone are set; Kind is Insert.
	Next(dst []stream.Row) (int, error)
}
