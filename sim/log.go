package sim

import "deduplab/stream"

// log keeps entries in the order in which they were appended, in chunks that never move. A chunk without entries is
// freed, wherever it stands, and used again. Ref = number of the chunk, then place in it; chunk 0 is not used.
type log struct {
	chunks      []chunk
	first, last uint32 // chunks, in order of appending; 0: none
	swept       uint32 // places of the first chunk that were passed
	taken       uint32 // places of the last chunk that are in use or dead
	freed       uint32 // chunks that are not in use, linked by next

	reuse bool // give dead places to new entries, where the order does not matter
	holes Ref  // dead places, linked by Value
}

const (
	chunkBits = 10
	chunkSize = 1 << chunkBits
)

type chunk struct {
	entries    *[chunkSize]Entry
	started    stream.Time // when its first place was taken
	live       uint32      // entries
	next, prev uint32
}

func (l *log) at(ref Ref) *Entry { return &l.chunks[ref>>chunkBits].entries[ref%chunkSize] }

// started is a time at or before the one at which an entry's place was taken; never for the last chunk, behind which
// there is no better place.
func (l *log) started(ref Ref) stream.Time {
	if id := uint32(ref >> chunkBits); id != l.last {
		return l.chunks[id].started
	}
	return stream.MaxTime / 2
}

// append takes the place for a new entry, which the caller fills.
func (l *log) append(now stream.Time) (Ref, *Entry) {
	if l.holes != 0 {
		ref := l.holes
		e := l.at(ref)
		l.holes = Ref(e.Value)
		l.chunks[ref>>chunkBits].live++
		return ref, e
	}
	if l.last == 0 || l.taken == chunkSize {
		l.extend(now)
	}
	c := &l.chunks[l.last]
	c.live++
	ref := Ref(l.last<<chunkBits | l.taken)
	l.taken++
	return ref, &c.entries[ref%chunkSize]
}

// extend adds a chunk at the tail.
func (l *log) extend(now stream.Time) {
	id := l.freed
	if id == 0 {
		if l.chunks == nil {
			l.chunks = make([]chunk, 1)
		}
		id = uint32(len(l.chunks))
		l.chunks = append(l.chunks, chunk{entries: new([chunkSize]Entry)})
	}
	c := &l.chunks[id]
	l.freed = c.next
	c.started, c.next, c.prev = now, 0, l.last
	if l.last == 0 {
		l.first, l.swept = id, 0
	} else {
		l.chunks[l.last].next = id
	}
	l.last, l.taken = id, 0
}

// remove makes the place of an entry dead.
func (l *log) remove(ref Ref) {
	e := l.at(ref)
	e.meta = int64(dead)
	c := &l.chunks[ref>>chunkBits]
	c.live--
	switch {
	case l.reuse:
		e.Value, l.holes = int64(l.holes), ref
	case c.live == 0:
		l.free(uint32(ref >> chunkBits))
	}
}

// free takes a chunk without entries out of the order.
func (l *log) free(id uint32) {
	c := &l.chunks[id]
	if c.prev == 0 {
		l.first, l.swept = c.next, 0
	} else {
		l.chunks[c.prev].next = c.next
	}
	if c.next == 0 {
		l.last, l.taken = c.prev, chunkSize
	} else {
		l.chunks[c.next].prev = c.prev
	}
	c.next, l.freed = l.freed, id
}

// head returns at most n places of the first chunk that were not passed, and a time at or before they were taken.
func (l *log) head(n int) ([]Entry, stream.Time) {
	if l.first == 0 {
		return nil, 0
	}
	c := &l.chunks[l.first]
	return c.entries[l.swept:min(l.swept+uint32(n), l.end(l.first))], c.started
}

// pass goes on by n places, whose entries are dead or about to be removed.
func (l *log) pass(n int) { l.swept += uint32(n) }

func (l *log) end(id uint32) uint32 {
	if id == l.last {
		return l.taken
	}
	return chunkSize
}

// each visits all entries in order. They may be removed meanwhile.
func (l *log) each(f func(Ref, *Entry)) {
	for id := l.first; id != 0; {
		next, end := l.chunks[id].next, l.end(id)
		entries := l.chunks[id].entries
		for i := range end {
			if e := &entries[i]; !e.Has(dead) {
				f(Ref(id<<chunkBits|i), e)
			}
		}
		id = next
	}
}
