package gen

import (
	"math/bits"

	"deduplab/stream"
)

// wheel holds rows until they arrive. It is a hierarchical timing wheel: level 0 has a slot for each millisecond of
// the second that lies ahead, a slot of each further level is as long as the whole level below it. A row stands at the
// lowest level whose span around now holds its arrival and moves down as now draws near, four levels at most, which
// reach 2^40 ms. Rows of a slot keep the order in which they were added.
//
// Rows live in one slab and are linked by their places in it, so adding and taking them allocates nothing once the
// slab has its size. The links stand beside the rows: they are few bytes, and following them waits for no row.
type wheel struct {
	start  stream.Time // from which all other times count
	now    stream.Time
	levels [4]wheelLevel
	rows   []stream.Row
	next   []uint32 // by place: the place of the row behind
	free   uint32   // first unused place
}

const (
	slotBits = 10
	slots    = 1 << slotBits
	none     = ^uint32(0)
)

// wheelLevel has its slots and, as bits, which of them are occupied.
type wheelLevel struct {
	slots    [slots]list
	occupied [slots / 64]uint64
}

// list is a chain of rows in the slab.
type list struct{ head, tail uint32 }

func newWheel(start stream.Time) *wheel { return &wheel{start: start, free: none} }

// add makes room for a row that arrives now or later. The caller fills it, before it adds another.
func (w *wheel) add(arrival stream.Time) *stream.Row {
	at := w.free
	if at == none {
		at = uint32(len(w.rows))
		w.rows = append(w.rows, stream.Row{})
		w.next = append(w.next, none)
	} else {
		w.free = w.next[at]
	}
	w.link(at, arrival)
	return &w.rows[at]
}

// link puts a row at the end of the slot for its arrival.
func (w *wheel) link(at uint32, arrival stream.Time) {
	level := 0
	if ahead := uint64(arrival ^ w.now); ahead >= slots {
		level = (bits.Len64(ahead) - 1) / slotBits
	}
	l := &w.levels[level]
	slot := int(arrival>>(level*slotBits%64)) % slots
	chain := &l.slots[slot]
	if word, bit := &l.occupied[slot/64], uint64(1)<<(slot%64); *word&bit == 0 {
		*word |= bit
		chain.head = at
	} else {
		w.next[chain.tail] = at
	}
	chain.tail = at
}

// due takes the rows that arrive now.
func (w *wheel) due() (list, bool) { return w.take(0) }

// take empties the slot of a level that now lies in.
func (w *wheel) take(level int) (list, bool) {
	l := &w.levels[level]
	slot := int(w.now>>(level*slotBits)) % slots
	word, bit := &l.occupied[slot/64], uint64(1)<<(slot%64)
	if *word&bit == 0 {
		return list{}, false
	}
	*word &^= bit
	return l.slots[slot], true
}

// release returns the rows of a list to the unused ones.
func (w *wheel) release(l list) {
	w.next[l.tail] = w.free
	w.free = l.head
}

// upcoming is a moment after now before which no row arrives, MaxTime if there are no rows.
func (w *wheel) upcoming() stream.Time {
	for level := range w.levels {
		shift := level * slotBits
		slot := int(w.now>>shift)%slots + 1
		if next, ok := w.levels[level].from(slot); ok {
			return (w.now>>(shift+slotBits)<<slotBits | stream.Time(next)) << shift
		}
	}
	return stream.MaxTime
}

// from finds the first occupied slot from a given one on.
func (l *wheelLevel) from(slot int) (int, bool) {
	if slot >= slots {
		return 0, false
	}
	word := l.occupied[slot/64] >> (slot % 64) << (slot % 64)
	for i := slot / 64; ; word = l.occupied[i] {
		if word != 0 {
			return i*64 + bits.TrailingZeros64(word), true
		}
		if i++; i == len(l.occupied) {
			return 0, false
		}
	}
}

// advance moves now on, at most to upcoming, and brings the rows of the slots that it enters to lower levels.
func (w *wheel) advance(to stream.Time) {
	was := w.now
	w.now = to
	for level := len(w.levels) - 1; level > 0; level-- {
		if to>>(level*slotBits) == was>>(level*slotBits) {
			continue
		}
		chain, ok := w.take(level)
		for at := chain.head; ok; {
			next := w.next[at]
			w.link(at, w.rows[at].Arrival-w.start)
			ok, at = at != chain.tail, next
		}
	}
}

// sortByPartition orders a list by partition and keeps the order of the rows of each. parts is scratch space with an
// entry for each partition.
func (w *wheel) sortByPartition(l list, parts []list) list {
	sorted := true
	for at := l.head; at != l.tail && sorted; at = w.next[at] {
		sorted = w.rows[at].Partition <= w.rows[w.next[at]].Partition
	}
	if sorted {
		return l
	}
	for i := range parts {
		parts[i].head = none
	}
	for at := l.head; ; at = w.next[at] {
		w.join(&parts[w.rows[at].Partition], list{at, at})
		if at == l.tail {
			break
		}
	}
	all := list{head: none}
	for _, part := range parts {
		if part.head != none {
			w.join(&all, part)
		}
	}
	return all
}

// join puts a list behind another, which may be empty.
func (w *wheel) join(l *list, behind list) {
	if l.head == none {
		*l = behind
		return
	}
	w.next[l.tail] = behind.head
	l.tail = behind.tail
}
