package measure

import (
	"math"
	"slices"

	"deduplab/stream"
)

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

// lags is, by row, how far its event time lies behind the largest so far: over all rows, and of the partition whose
// largest is the smallest. It is negative ahead of them, and early where there is no such time yet, or no event time.
type lags struct{ reader, partition []nanos }

const early = nanos(math.MinInt64)

// lateness walks through the rows in their order.
func lateness(t *trace, known bool) lags {
	l := lags{make([]nanos, len(t.events)), make([]nanos, len(t.events))}
	tops := map[uint16]nanos{} // largest event time, by partition
	for _, p := range t.partitions {
		tops[p] = early
	}
	top, lowest := early, early
	for row, at := range t.events {
		l.reader[row], l.partition[row] = early, early
		if !known || t.nullEvents[row] {
			continue
		}
		if top != early {
			l.reader[row] = top - at
		}
		if lowest != early {
			l.partition[row] = lowest - at
		}
		top = max(top, at)
		if p := t.partitions[row]; at > tops[p] {
			was := tops[p]
			tops[p] = at
			if was == lowest {
				lowest = at
				for _, other := range tops {
					lowest = min(lowest, other)
				}
			}
		}
	}
	return l
}

func (l lags) disorder(order string, trace Span) Disorder {
	d := Disorder{Order: order}
	var late []nanos
	for _, lag := range l.reader {
		if lag > 0 {
			late = append(late, lag)
		}
		if lag != early {
			d.Rows++
		}
	}
	if d.Rows > 0 {
		d.Rows++ // the first row, which has none before it
	}
	d.OutOfOrder = len(late)
	d.Lateness = newDelays(late, trace)
	return d
}

// losses tries the usual delays, from none to the first that loses nothing, and those that were asked for.
func losses(l lags, ids []uint32, distinct int, delays []stream.Time) []Loss {
	reader, partition := newLate(l.reader, ids, distinct), newLate(l.partition, ids, distinct)
	var all []Loss
	try := func(delay stream.Time) bool {
		loss := Loss{delay, reader.under(delay), partition.under(delay)}
		all = append(all, loss)
		return loss.Reader.LostEvents+loss.Reader.LateCopies+loss.Partition.LostEvents+loss.Partition.LateCopies > 0
	}
	for _, delay := range append([]stream.Time{0}, spans...) {
		if !try(delay) {
			break
		}
	}
	for _, delay := range delays {
		if !slices.ContainsFunc(all, func(l Loss) bool { return l.Delay == delay }) {
			try(delay)
		}
	}
	slices.SortFunc(all, func(a, b Loss) int { return int(a.Delay - b.Delay) })
	return all
}

// lateRows holds the lateness of all rows, and of the row of each key that is the least late, both in order.
type lateRows struct{ rows, keys []nanos }

func newLate(lag []nanos, ids []uint32, distinct int) lateRows {
	l := lateRows{slices.Clone(lag), slices.Repeat([]nanos{math.MaxInt64}, distinct)}
	for row, id := range ids {
		l.keys[id] = min(l.keys[id], lag[row])
	}
	slices.Sort(l.rows)
	slices.Sort(l.keys)
	return l
}

func (l lateRows) under(delay stream.Time) Late {
	count := func(sorted []nanos) int {
		n, _ := slices.BinarySearch(sorted, int64(delay)*int64(millisecond))
		return len(sorted) - n
	}
	late := Late{LostEvents: count(l.keys)}
	late.LateCopies = count(l.rows) - late.LostEvents
	late.LostRate = float64(late.LostEvents) / float64(len(l.keys))
	return late
}
