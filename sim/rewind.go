package sim

import (
	"slices"

	"deduplab/stream"
)

// rewinder reads the rows of a job that crashes: it keeps those that are read again, and reads them, and what has come
// meanwhile, as a reader catches up: at most pollRows of a partition in turn, at a rate.
type rewinder struct {
	rows    reordered
	readers int
	rate    int64 // rows a second of a reader

	// log holds, by partition, the rows that are read again and those that are still to be read; read is the index of
	// the first of these, and kept what it was at the checkpoint that the next crash goes back to.
	log        [][]stream.Row
	read, kept []int
	// keepFrom is the arrival of the first row that may be read again; MaxTime: none is.
	keepFrom stream.Time

	catching bool
	clocks   []readerClock
	ahead    stream.Row // read from rows, not yet in the log
	hasAhead bool
	ended    bool
}

// readerClock is a reader that catches up.
type readerClock struct {
	base         stream.Time // since when it has been busy
	done         int64       // rows handled since
	turn, polled int         // its partition, by place, and how many rows of it have been read in turn
}

func newRewinder(rows reordered, partitions, readers int) *rewinder {
	return &rewinder{
		rows: rows, readers: readers, log: make([][]stream.Row, partitions), read: make([]int, partitions),
		kept: make([]int, partitions), clocks: make([]readerClock, readers), keepFrom: stream.MaxTime,
	}
}

// look makes sure that the next row in order of arrival is known, if there is one.
func (w *rewinder) look() error {
	if w.hasAhead || w.ended {
		return nil
	}
	row, ok, err := w.rows.next()
	w.ahead, w.hasAhead, w.ended = row, ok, !ok
	return err
}

// pull takes the rows into the log that have arrived by now, and returns how many.
func (w *rewinder) pull(now stream.Time) (int, error) {
	for n := 0; ; n++ {
		if err := w.look(); err != nil || !w.hasAhead || w.ahead.Arrival > now {
			return n, err
		}
		p := w.ahead.Partition
		w.log[p] = append(w.log[p], w.ahead)
		w.hasAhead = false
	}
}

func (w *rewinder) next() (stream.Row, bool, error) {
	for w.catching {
		reader, partition, at := w.first()
		if reader < 0 {
			w.catching = false
			if w.keepFrom == stream.MaxTime {
				clear(w.log)
				clear(w.read)
			}
			break
		}
		n, err := w.pull(at)
		if err != nil {
			return stream.Row{}, false, err
		}
		if n > 0 {
			continue
		}
		c := &w.clocks[reader]
		row := w.log[partition][w.read[partition]]
		if at > w.free(c) {
			c.base, c.done = at, 0
		}
		row.Arrival = at
		w.read[partition]++
		c.done++
		if turn := partition / w.readers; turn != c.turn {
			c.turn, c.polled = turn, 0
		}
		if c.polled++; c.polled == pollRows { // firstOf goes on from here, round and round
			c.polled, c.turn = 0, c.turn+1
		}
		return row, true, nil
	}
	if err := w.look(); err != nil || !w.hasAhead {
		return stream.Row{}, false, err
	}
	w.hasAhead = false
	row := w.ahead
	if p := row.Partition; row.Arrival >= w.keepFrom {
		w.log[p] = append(w.log[p], row)
		w.read[p]++
	}
	return row, true, nil
}

// free is when a reader can handle its next row.
func (w *rewinder) free(c *readerClock) stream.Time { return c.base + stream.Time(c.done*1000/w.rate) }

// first returns the reader that is the first to read a row of the log, the row's partition, and the moment; -1 if there
// is none.
func (w *rewinder) first() (reader, partition int, at stream.Time) {
	reader, at = -1, stream.MaxTime
	for i := range w.clocks {
		if p, t, ok := w.firstOf(i); ok && t < at {
			reader, partition, at = i, p, t
		}
	}
	return reader, partition, at
}

// firstOf returns the partition that a reader reads next, and when: in turn while rows of several have arrived.
func (w *rewinder) firstOf(reader int) (partition int, at stream.Time, ok bool) {
	c := &w.clocks[reader]
	own := (len(w.log) - reader + w.readers - 1) / w.readers // partitions
	partition, free, soonest := -1, w.free(c), stream.MaxTime
	for i := 0; i < own && soonest > free; i++ {
		p := reader + (c.turn+i)%own*w.readers
		if w.read[p] == len(w.log[p]) {
			continue
		}
		if t := max(free, w.log[p][w.read[p]].Arrival); t < soonest {
			partition, soonest = p, t
		}
	}
	return partition, soonest, partition >= 0
}

// keep notes where a checkpoint stands that a crash goes back to. Pending is a row that has been taken and not been
// handled. Rows that arrived before from are read again only where the checkpoint does not hold them.
func (w *rewinder) keep(pending *stream.Row, from stream.Time) {
	for p := range w.log {
		stands := w.read[p]
		if pending != nil && int(pending.Partition) == p {
			stands--
		}
		first := 0
		for first < stands && w.log[p][first].Arrival < from {
			first++
		}
		w.log[p] = slices.Delete(w.log[p], 0, first)
		w.read[p] -= first
		w.kept[p] = stands - first
	}
}

// rewind goes back to the checkpoint that was kept, and further to the rows that arrived from a moment on. It returns
// how many rows are read again.
func (w *rewinder) rewind(pending *stream.Row, from, restart stream.Time) (again int64) {
	if pending != nil {
		again--
	}
	for p := range w.log {
		to := w.kept[p]
		for to > 0 && w.log[p][to-1].Arrival >= from {
			to--
		}
		again += int64(w.read[p] - to)
		w.read[p] = to
	}
	clear(w.clocks)
	for i := range w.clocks {
		w.clocks[i].base = restart
	}
	w.catching = true
	return again
}

// backlog counts the rows that wait.
func (w *rewinder) backlog() (rows int64) {
	for p := range w.log {
		rows += int64(len(w.log[p]) - w.read[p])
	}
	return rows
}
