package sim

import "deduplab/stream"

// LRU is a bounded cache whose entries expire one TTL after their last write, as Guava's expireAfterWrite with a
// maximumSize in a single segment: reading makes an entry the most recently used, writing does so and starts its TTL
// anew; a write first removes what has expired, and then, if there is one entry too many, the least recently used one.
// The time given to its methods never falls.
type LRU struct {
	size    int
	ttl     stream.Time
	evict   func(*Entry)
	entries []cached // entries[0] closes the rings of both orders
	heads   []uint32 // chains of entries by the leading bits of their hash; a power of two of them
	shift   int      // how many bits of a hash do not lead
	freed   uint32   // entries not in use, linked by next
	held    int

	key  stream.Key // the last one hashed, as a write often follows a read
	hash uint32
}

// cached is an entry in a chain and in two rings, by use and by write. In a ring, what is newer than entries[0] is the
// oldest.
type cached struct {
	Entry
	hash, next    uint32
	used, written link
}

type link struct{ older, newer uint32 }

// NewLRU makes an empty cache. A TTL of 0 means that entries do not expire. evict is called for an entry that leaves
// because there are too many; it may not use the cache.
func NewLRU(size int, ttl stream.Time, evict func(e *Entry)) *LRU {
	l := &LRU{size: size, ttl: ttl, evict: evict, entries: make([]cached, 1, 16)}
	l.rehash(4)
	l.hash = fragment(l.key)
	return l
}

// Get returns the entry of a key and makes it the most recently used; nil when it is absent or expired. The pointer is
// valid until the next write.
func (l *LRU) Get(key stream.Key, now stream.Time) *Entry {
	id := l.find(key)
	if id == 0 {
		return nil
	}
	e := &l.entries[id]
	if l.expired(&e.Entry, now) {
		l.expire(now)
		return nil
	}
	if e.used.newer != 0 {
		l.unlinkUsed(id)
		l.linkUsed(id)
	}
	return &e.Entry
}

// Put writes the entry of a key and makes it the most recently used.
func (l *LRU) Put(key stream.Key, now stream.Time, value int64, tag stream.Tag, f Flags) {
	l.expire(now)
	id := l.find(key)
	if id == 0 {
		id = l.add()
	} else {
		l.unlinkUsed(id)
		l.unlinkWritten(id)
	}
	l.entries[id].Entry = MakeEntry(key, now, value, tag, f)
	l.linkUsed(id)
	l.linkWritten(id)
	if l.held > l.size {
		oldest := l.entries[0].used.newer
		l.evict(&l.entries[oldest].Entry)
		l.remove(oldest)
	}
}

// Foresee touches the places that the n least recently used entries would take in a table, so that the cache misses of
// writing there what the next n writes evict overlap. It changes nothing.
func (l *LRU) Foresee(t *Table, n int) {
	n = min(n, l.held, l.held+n-l.size) // so many are evicted at most
	touched := uint64(0)
	id := l.entries[0].used.newer
	for ; n > 0; n-- {
		touched += t.index.slots[t.index.home(l.entries[id].hash)]
		id = l.entries[id].used.newer
	}
	t.touched = touched
}

// Each visits the unexpired entries, the least recently used first.
func (l *LRU) Each(now stream.Time, f func(*Entry)) {
	for id := l.entries[0].used.newer; id != 0; id = l.entries[id].used.newer {
		if e := &l.entries[id].Entry; !l.expired(e, now) {
			f(e)
		}
	}
}

// WrittenAfter visits the unexpired entries written after a moment, the newest first.
func (l *LRU) WrittenAfter(t, now stream.Time, f func(*Entry)) {
	for id := l.entries[0].written.older; id != 0; id = l.entries[id].written.older {
		e := &l.entries[id].Entry
		if e.Written() <= t || l.expired(e, now) {
			return
		}
		f(e)
	}
}

// WrittenUntil visits the unexpired entries written up to and including a moment, the oldest first.
func (l *LRU) WrittenUntil(t, now stream.Time, f func(*Entry)) {
	l.expire(now)
	for id := l.entries[0].written.newer; id != 0; id = l.entries[id].written.newer {
		e := &l.entries[id].Entry
		if e.Written() > t {
			return
		}
		f(e)
	}
}

// Len counts the unexpired entries.
func (l *LRU) Len(now stream.Time) int {
	l.expire(now)
	return l.held
}

func (l *LRU) expired(e *Entry, now stream.Time) bool { return l.ttl != 0 && e.Written()+l.ttl <= now }

// expire removes what has expired.
func (l *LRU) expire(now stream.Time) {
	for {
		id := l.entries[0].written.newer
		if id == 0 || !l.expired(&l.entries[id].Entry, now) {
			return
		}
		l.remove(id)
	}
}

// find returns the number of a key's entry, 0 if there is none, and leaves the hash of the key in l.hash.
func (l *LRU) find(key stream.Key) uint32 {
	if l.key != key {
		l.key, l.hash = key, fragment(key)
	}
	id := l.heads[l.hash>>l.shift]
	for id != 0 && l.entries[id].Key != key {
		id = l.entries[id].next
	}
	return id
}

// add makes an entry for the key that find did not find. It is in no ring yet.
func (l *LRU) add() uint32 {
	id := l.freed
	if id != 0 {
		l.freed = l.entries[id].next
	} else {
		if len(l.entries) > len(l.heads)/2 {
			l.rehash(32 - l.shift + 1)
		}
		id = uint32(len(l.entries))
		l.entries = append(l.entries, cached{})
	}
	l.entries[id].hash = l.hash
	l.chain(id)
	l.held++
	return id
}

func (l *LRU) chain(id uint32) {
	e := &l.entries[id]
	head := &l.heads[e.hash>>l.shift]
	e.next, *head = *head, id
}

// rehash makes chains for so many leading bits. All entries are in use.
func (l *LRU) rehash(bits int) {
	l.heads, l.shift = make([]uint32, 1<<bits), 32-bits
	for id := range l.entries[1:] {
		l.chain(uint32(id + 1))
	}
}

func (l *LRU) remove(id uint32) {
	e := &l.entries[id]
	at := &l.heads[e.hash>>l.shift]
	for *at != id {
		at = &l.entries[*at].next
	}
	*at = e.next
	l.unlinkUsed(id)
	l.unlinkWritten(id)
	e.next, l.freed = l.freed, id
	l.held--
}

func (l *LRU) linkUsed(id uint32) {
	newest := l.entries[0].used.older
	l.entries[id].used = link{older: newest}
	l.entries[newest].used.newer = id
	l.entries[0].used.older = id
}

func (l *LRU) unlinkUsed(id uint32) {
	e := l.entries[id].used
	l.entries[e.older].used.newer = e.newer
	l.entries[e.newer].used.older = e.older
}

func (l *LRU) linkWritten(id uint32) {
	newest := l.entries[0].written.older
	l.entries[id].written = link{older: newest}
	l.entries[newest].written.newer = id
	l.entries[0].written.older = id
}

func (l *LRU) unlinkWritten(id uint32) {
	e := l.entries[id].written
	l.entries[e.older].written.newer = e.newer
	l.entries[e.newer].written.older = e.older
}
