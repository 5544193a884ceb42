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
// slab has its size.
type wheel struct {
	now    stream.Time
	levels [4]wheelLevel
	slab   []pending
	free   uint32 // first unused place of the slab
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

// list is a chain of rows in the slab; it is empty where its slot is not occupied.
type list struct{ head, tail uint32 }

// pending is a row under way.
type pending struct {
	key       stream.Key
	event     stream.Time
	arrival   stream.Time
	tag       stream.Tag
	next      uint32
	partition uint16
	first     bool
}

func newWheel() *wheel { return &wheel{free: none} }

// add makes room for a row that arrives at a moment, not before now, and returns its place to be filled.
func (w *wheel) add(arrival stream.Time) *pending {
	at := w.free
	if at == none {
		at = uint32(len(w.slab))
		w.slab = append(w.slab, pending{next: none})
	}
	row := &w.slab[at]
	w.free = row.next
	row.arrival = arrival
	w.link(at, row)
	return row
}

// link puts a row at the end of the slot for its arrival.
func (w *wheel) link(at uint32, row *pending) {
	row.next = none
	level := 0
	if ahead := uint64(row.arrival ^ w.now); ahead >= slots {
		level = (bits.Len64(ahead) - 1) / slotBits
	}
	l := &w.levels[level]
	slot := int(row.arrival>>(level*slotBits)) % slots
	chain := &l.slots[slot]
	if word, bit := &l.occupied[slot/64], uint64(1)<<(slot%64); *word&bit == 0 {
		*word |= bit
		chain.head = at
	} else {
		w.slab[chain.tail].next = at
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
	w.slab[l.tail].next = w.free
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
			row := &w.slab[at]
			next := row.next
			w.link(at, row)
			ok, at = at != chain.tail, next
		}
	}
}

// sortByPartition orders a list by partition and keeps the order of the rows of each. parts has an entry for each
// partition and is left undefined.
func (w *wheel) sortByPartition(l list, parts []list) list {
	sorted := true
	for at := l.head; at != l.tail && sorted; at = w.slab[at].next {
		sorted = w.slab[at].partition <= w.slab[w.slab[at].next].partition
	}
	if sorted {
		return l
	}
	for i := range parts {
		parts[i].head = none
	}
	for at := l.head; at != none; at = w.slab[at].next {
		part := &parts[w.slab[at].partition]
		if part.head == none {
			part.head = at
		} else {
			w.slab[part.tail].next = at
		}
		part.tail = at
	}
	all := list{head: none}
	for _, part := range parts {
		if part.head == none {
			continue
		}
		if all.head == none {
			all.head = part.head
		} else {
			w.slab[all.tail].next = part.head
		}
		all.tail = part.tail
	}
	w.slab[all.tail].next = none
	return all
}
