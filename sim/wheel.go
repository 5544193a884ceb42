package sim

import (
	"cmp"
	"math/bits"
	"slices"

	"deduplab/stream"
)

// Wheel holds timers until time reaches them: a hierarchy of eight wheels of 256 slots, one wheel for each byte of a
// time. A timer waits on the wheel of the highest byte in which its time differs from the position, in the slot of
// that byte; when the position enters that slot, its timers move to lower wheels. So a timer moves at most seven times,
// one of the near future once, and the cost of an advance does not depend on how far it goes. Timers of one moment fire
// in the order in which they were added. The zero value is empty, before all time.
type Wheel[T any] struct {
	next   uint64 // all moments before it are over
	wheels [8]wheel
	nodes  []timer[T] // nodes[0] is not used
	freed  uint32     // nodes that are not in use, linked by next
	late   []lateTimer[T]
	due    []T
	size   int
}

type wheel struct {
	first, last [256]uint32 // lists of nodes; 0: none
	used        [4]uint64   // a bit for each slot that has a list
}

type timer[T any] struct {
	at   uint64
	next uint32
	what T
}

// lateTimer was added when its time was over.
type lateTimer[T any] struct {
	at   stream.Time
	what T
}

// moment maps times to numbers in their order: MinTime+1 to 0 and MaxTime to the last but one, so that there is a
// position after each of them.
func moment(at stream.Time) uint64 { return uint64(at) ^ 1<<63 - 1 }

func timeOf(moment uint64) stream.Time { return stream.Time((moment + 1) ^ 1<<63) }

// Add sets a timer. One whose time is over already fires with the next Advance that goes further.
func (w *Wheel[T]) Add(at stream.Time, what T) {
	w.size++
	m := moment(at)
	if at == stream.MinTime || m < w.next {
		w.late = append(w.late, lateTimer[T]{at, what})
		return
	}
	id := w.freed
	if id != 0 {
		w.freed = w.nodes[id].next
	} else {
		if w.nodes == nil {
			w.nodes = make([]timer[T], 1, 16)
		}
		id = uint32(len(w.nodes))
		w.nodes = append(w.nodes, timer[T]{})
	}
	w.nodes[id] = timer[T]{at: m, what: what}
	w.place(id)
}

// place links a timer, whose next is 0, to the end of its slot.
func (w *Wheel[T]) place(id uint32) {
	at := w.nodes[id].at
	level := max(bits.Len64(at^w.next)-1, 0) / 8
	slot := byte(at >> (8 * level))
	l := &w.wheels[level]
	if l.first[slot] == 0 {
		l.first[slot] = id
		l.used[slot/64] |= 1 << (slot % 64)
	} else {
		w.nodes[l.last[slot]].next = id
	}
	l.last[slot] = id
}

// take empties a slot and returns its list.
func (l *wheel) take(slot byte) uint32 {
	id := l.first[slot]
	l.first[slot] = 0
	l.used[slot/64] &^= 1 << (slot % 64)
	return id
}

// from returns the first slot at or after one that has a list.
func (l *wheel) from(slot byte) (byte, bool) {
	word := l.used[slot/64] >> (slot % 64) << (slot % 64)
	for i := slot / 64; ; i++ {
		if word != 0 {
			return i*64 + byte(bits.TrailingZeros64(word)), true
		}
		if i == 3 {
			return 0, false
		}
		word = l.used[i+1]
	}
}

// Advance fires the timers of all moments up to and including to, in ascending order. The callback gets those of one
// moment together, in a slice that it may not keep. It may add timers: those after the moment that fires take part in
// this advance, others are late. An advance to where the wheel already is does nothing.
func (w *Wheel[T]) Advance(to stream.Time, fire func(at stream.Time, due []T)) {
	if to == stream.MinTime || moment(to) < w.next {
		return
	}
	w.fireLate(fire)
	end := moment(to) + 1
	for {
		m, ok := w.upcoming(end)
		if !ok {
			break
		}
		list := w.wheels[0].take(byte(m))
		last := w.wheels[0].last[byte(m)]
		w.due = w.due[:0]
		for id := list; id != 0; id = w.nodes[id].next {
			w.due = append(w.due, w.nodes[id].what)
		}
		w.nodes[last].next, w.freed = w.freed, list
		w.size -= len(w.due)
		w.move(m + 1)
		fire(timeOf(m), w.due)
	}
	w.move(end)
}

// upcoming finds the first moment before end that has timers, entering slots on the way.
func (w *Wheel[T]) upcoming(end uint64) (uint64, bool) {
	for level := 0; level < len(w.wheels); {
		slot, ok := w.wheels[level].from(byte(w.next >> (8 * level)))
		if !ok {
			level++
			continue
		}
		m := w.next>>(8*level)&^255 | uint64(slot)
		m <<= 8 * level
		if m >= end {
			return 0, false
		}
		if level == 0 {
			return m, true
		}
		w.move(m)
		level = 0
	}
	return 0, false
}

// move sets the position, before which no timer may be left, and enters the slots that it falls into.
func (w *Wheel[T]) move(next uint64) {
	level := max(bits.Len64(next^w.next)-1, 0) / 8
	w.next = next
	for ; level > 0; level-- {
		slot := byte(next >> (8 * level))
		for id := w.wheels[level].take(slot); id != 0; {
			node := &w.nodes[id]
			following := node.next
			node.next = 0
			w.place(id)
			id = following
		}
	}
}

func (w *Wheel[T]) fireLate(fire func(at stream.Time, due []T)) {
	late := w.late
	w.late = nil
	slices.SortStableFunc(late, func(a, b lateTimer[T]) int { return cmp.Compare(a.at, b.at) })
	for len(late) > 0 {
		at := late[0].at
		w.due = w.due[:0]
		for len(late) > 0 && late[0].at == at {
			w.due = append(w.due, late[0].what)
			late = late[1:]
		}
		w.size -= len(w.due)
		fire(at, w.due)
	}
}

// Due reports whether a timer is set for a moment up to and including at, which may not be before an earlier advance.
func (w *Wheel[T]) Due(at stream.Time) bool {
	_, ok := w.upcoming(moment(at) + 1)
	return ok || len(w.late) > 0
}

// Len counts the timers that have not fired.
func (w *Wheel[T]) Len() int { return w.size }
