package measure

import "deduplab/stream"

// Disorder says how far event times lie behind the largest event time before them.
type Disorder struct {
	Order      string `json:"order"` // which order of the rows: by arrival, or as in the file
	Rows       int    `json:"rows"`  // with an event time
	OutOfOrder int    `json:"out_of_order"`
	Lateness   Delays `json:"lateness"` // of those out of order
}

// Loss is what a watermark delay would cost: rows at or behind the watermark, if one followed every row. Engines make
// watermarks less often, so it is the most that can be lost. With the watermark generator of the DataStream API a row
// may be 1 ms later.
type Loss struct {
	Delay stream.Time `json:"delay_ms"`
	// Reader is with one watermark over all rows, Partition with one a partition, of which the smallest counts.
	Reader    Late `json:"per_reader"`
	Partition Late `json:"per_partition"`
}

// Late counts late rows: one for each key none of whose rows is on time, and the rest, which are copies.
type Late struct {
	LostEvents int     `json:"lost_events"`
	LateCopies int     `json:"late_copies"`
	LostRate   float64 `json:"lost_rate"` // of the keys
}
