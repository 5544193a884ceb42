package sim

import (
	"slices"
	"unsafe"

	"deduplab/stream"
)

// Ref names an entry of a [Table]. It is valid while the entry lives and is Pinned, else until the next write.
type Ref uint32

// Flags say how an entry is to be treated.
type Flags uint8

const (
	// Pinned entries do not expire and are not moved: timers refer to them.
	Pinned Flags = 1 << iota
	// Marked and Marked2 are the operator's own.
	Marked
	Marked2

	// Gone is the tombstone of an entry that a [Cold] may still hold. Operators never see it.
	Gone Flags = 1 << 5

	shadowing Flags = 1 << 6 // the Cold may hold an older entry of the key
	dead      Flags = 1 << 7 // a place in the log without an entry
	flagBits        = 8
)

// Entry is what a table stores for a key.
type Entry struct {
	Key   stream.Key
	Value int64 // what the operator compares by
	Tag   stream.Tag
	meta  int64 // time of writing, then flags
}

// MakeEntry builds an entry, for a [Cold] that reads one back.
func MakeEntry(key stream.Key, written stream.Time, value int64, tag stream.Tag, f Flags) Entry {
	return Entry{Key: key, Value: value, Tag: tag, meta: int64(written)<<flagBits | int64(f)}
}

// Written is when the entry was last written: its TTL counts from there.
func (e *Entry) Written() stream.Time { return stream.Time(e.meta >> flagBits) }

// Flags returns the flags that the entry was written with.
func (e *Entry) Flags() Flags { return Flags(e.meta) &^ (shadowing | dead) }

// Has reports whether any of the flags is set.
func (e *Entry) Has(f Flags) bool { return Flags(e.meta)&f != 0 }

// Cold holds the entries that a table spilled, in buckets, one a Spill.
type Cold interface {
	// Spill stores entries, sorted by key (Hi, then Lo), each key once, as the newest bucket. It keeps nothing of the
	// slice. Pinned entries are never spilled.
	Spill(entries []Entry) error
	// Get returns the newest entry of a key, which may be expired or Gone.
	Get(key stream.Key) (Entry, bool, error)
	// DropBefore drops the buckets whose newest entry was written before that time.
	DropBefore(written stream.Time) error
	// Each visits the newest entry of every key in a deterministic order.
	Each(func(*Entry) error) error
	// Bytes is the physical size once everything is flushed and compacted: equal for equal contents and spills.
	Bytes() (int64, error)
	Close() error
}

// TableSpec says how a table behaves.
type TableSpec struct {
	TTL     stream.Time // 0: entries never expire. An entry is expired from exactly Written+TTL on.
	Sample  stream.Time // Live is asked at multiples of this (default 1 ms)
	Cold    Cold        // nil: all in memory
	SpillAt int         // with Cold: the number of unpinned entries in memory that are spilled (default 2,000,000)
}

// DefaultSpillAt is the number of entries that a table with a Cold keeps in memory.
const DefaultSpillAt = 2_000_000

// Table is keyed state with a TTL: a log of entries in about the order in which they were last written, and an index of
// small slots over it. Writing to a key that has an entry changes the entry in place, or moves it to the tail of the log
// where its place is older than an eighth of the TTL.
//
// The log is also the expiry queue. Every write sweeps a few entries at its head: expired ones are removed, those that
// were written again meanwhile move to the tail once the place they stand at is overdue, so that they do not hold up
// what stands behind them. Reads do not depend on it: an expired entry is absent, swept or not.
//
// With a Cold, whatever is not pinned is spilled now and then, always between two moments of writing: so the buckets'
// times of writing do not overlap, and the time of an entry tells its bucket. What is in memory shadows what is cold,
// and newer buckets shadow older ones; a deleted entry leaves a tombstone where a Cold may hold an older one.
//
// The time given to its methods never falls.
type Table struct {
	spec  TableSpec
	index index
	log   log
	live  expiries
	now   stream.Time // the latest time at which it wrote or removed something

	pinned, tombstones int // entries of the index that are so

	fragments [maxRun]uint32     // of the rows of the run that is probed
	leaving   [2 * maxRun]uint32 // those of the entries that a sweep looks after
	touched   uint64             // keeps the compiler from dropping loads
	spot      spot
	version   uint // of the places of slots and entries

	buckets []bucket
	held    int // of all buckets
	spilled []Entry
	err     error
}

// maxRun is the greatest number of rows in a run.
const maxRun = 64

// spot is where a key was last looked for, so that a write after a read need not search again.
type spot struct {
	key     stream.Key
	version uint
	at      int
	ref     Ref   // 0: not in memory
	cold    bool  // the Cold has old for it
	old     Entry // valid if cold
}

// bucket is one spill.
type bucket struct {
	newest stream.Time // the latest time of writing
	held   int         // entries that nothing newer shadowed while they were alive
}

// NewTable makes an empty table.
func NewTable(spec TableSpec) *Table {
	if spec.Sample == 0 {
		spec.Sample = 1
	}
	if spec.SpillAt == 0 {
		spec.SpillAt = DefaultSpillAt
	}
	t := &Table{spec: spec, live: newExpiries(spec.TTL, spec.Sample), now: stream.MinTime, version: 1}
	t.log.reuse = spec.TTL == 0
	t.reserve(maxRun)
	return t
}

// Cursor answers for the rows of one run, until the next Probe of its table.
type Cursor struct {
	t    *Table
	rows []stream.Row
}

// Probe starts a run of at most 64 rows. It hashes all keys and touches the places they have in the index, so that the
// cache misses overlap, and makes room for them; the cursor then answers row by row and sees the writes of earlier
// rows.
func (t *Table) Probe(rows []stream.Row) Cursor {
	if len(rows) == 0 {
		return Cursor{t: t}
	}
	t.prepare(rows[0].Arrival, len(rows))
	fragments := t.fragments[:len(rows)]
	for i := range fragments {
		fragments[i] = fragment(rows[i].Key)
	}
	touched := uint64(0)
	for _, f := range fragments {
		touched += t.index.slots[t.index.home(f)]
	}
	t.touched = touched
	return Cursor{t: t, rows: rows}
}

// Touch makes the cache misses of looking for the keys of some rows overlap, before they are looked for one by one.
func (t *Table) Touch(rows []stream.Row) {
	touched := uint64(0)
	for i := range rows {
		touched += t.index.slots[t.index.home(fragment(rows[i].Key))]
	}
	t.touched = touched
}

// touchRefs is Touch for entries that are about to be removed.
func (t *Table) touchRefs(refs []Ref) {
	touched := uint64(0)
	for _, ref := range refs {
		touched += t.index.slots[t.index.home(fragment(t.log.at(ref).Key))]
	}
	t.touched = touched
}

// Get returns the entry of rows[i].Key, nil when it is absent or expired at rows[i].Arrival; an expired one is removed.
// The pointer is valid until the next call.
func (c *Cursor) Get(i int) *Entry {
	row := &c.rows[i]
	return c.t.get(row.Key, c.t.fragments[i], row.Arrival)
}

// Put writes the entry of rows[i].Key at rows[i].Arrival.
func (c *Cursor) Put(i int, value int64, tag stream.Tag, f Flags) Ref {
	row := &c.rows[i]
	return c.t.put(row.Key, c.t.fragments[i], row.Arrival, value, tag, f)
}

// Delete removes the entry of rows[i].Key, if there is one.
func (c *Cursor) Delete(i int) { c.t.delete(c.rows[i].Key, c.t.fragments[i]) }

// Get returns the entry of a key, nil when it is absent or expired; an expired one is removed. The pointer is valid
// until the next call.
func (t *Table) Get(key stream.Key, now stream.Time) *Entry { return t.get(key, fragment(key), now) }

// Put writes the entry of a key.
func (t *Table) Put(key stream.Key, now stream.Time, value int64, tag stream.Tag, f Flags) Ref {
	t.prepare(now, 1)
	return t.put(key, fragment(key), now, value, tag, f)
}

// Delete removes the entry of a key, if there is one.
func (t *Table) Delete(key stream.Key) {
	t.reserve(1)
	t.delete(key, fragment(key))
}

// At returns the entry that a valid Ref names. The pointer is valid until the next write.
func (t *Table) At(ref Ref) *Entry { return t.log.at(ref) }

// Rewrite writes over the entry that a valid Ref names.
func (t *Table) Rewrite(ref Ref, now stream.Time, value int64, tag stream.Tag, f Flags) {
	t.overwrite(t.log.at(ref), now, value, tag, f)
}

// Remove removes the entry that a valid Ref names.
func (t *Table) Remove(ref Ref) {
	key := t.log.at(ref).Key
	t.delete(key, fragment(key))
}

// Has reports whether the table holds an unexpired entry of the key, and changes nothing.
func (t *Table) Has(key stream.Key, now stream.Time) bool {
	e, ok := t.Peek(key)
	return ok && !t.expired(&e, now)
}

// Peek returns the entry of a key, which may have expired, and changes nothing.
func (t *Table) Peek(key stream.Key) (Entry, bool) {
	if _, ref := t.find(key, fragment(key)); ref != 0 {
		e := t.log.at(ref)
		return *e, !e.Has(Gone)
	}
	if t.spec.Cold == nil {
		return Entry{}, false
	}
	e, ok, err := t.spec.Cold.Get(key)
	if err != nil {
		t.fail(err)
	}
	return e, ok && !e.Has(Gone)
}

// TTL is the time after a write from which on an entry is expired, 0 for never.
func (t *Table) TTL() stream.Time { return t.spec.TTL }

// Held counts the entries held, including expired ones that are not yet removed. How many of these there are depends on
// whether there is a Cold, which removes them a bucket at a time.
func (t *Table) Held() int { return t.index.used - t.tombstones + t.held }

// Live counts the entries that are not expired at now, a multiple of Sample. Pinned ones are alive.
func (t *Table) Live(now stream.Time) int {
	if t.spec.TTL == 0 {
		return t.Held()
	}
	t.live.advance(now)
	return t.live.live + t.pinned
}

// Each visits all entries held, in memory and cold, a key once, in a deterministic order. Some may be expired.
func (t *Table) Each(f func(*Entry)) {
	t.log.each(func(ref Ref, e *Entry) {
		if !e.Has(Gone) {
			f(e)
		}
	})
	if len(t.buckets) == 0 {
		return
	}
	t.fail(t.spec.Cold.Each(func(e *Entry) error {
		if _, ref := t.find(e.Key, fragment(e.Key)); ref == 0 && !e.Has(Gone) {
			f(e)
		}
		return nil
	}))
}

// Cold is what the table spills to; nil: nothing.
func (t *Table) Cold() Cold { return t.spec.Cold }

// Pinned counts the entries that stay in memory, even with a Cold.
func (t *Table) Pinned() int { return t.pinned }

// Memory is the bytes that the table takes in memory: places for entries, taken or not, and the index.
func (t *Table) Memory() int64 {
	entries := max(len(t.log.chunks)-1, 0) * chunkSize
	return int64(entries)*int64(unsafe.Sizeof(Entry{})) + int64(len(t.index.slots))*8
}

// Err returns the first error of the Cold. What the table answered after it is not to be trusted.
func (t *Table) Err() error { return t.err }

func (t *Table) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

func (t *Table) expired(e *Entry, now stream.Time) bool {
	return t.spec.TTL != 0 && !e.Has(Pinned) && e.Written()+t.spec.TTL <= now
}

// find searches memory: for the place in the index, and for the entry's number, 0 if there is none.
func (t *Table) find(key stream.Key, fragment uint32) (int, Ref) {
	at := t.index.seek(fragment)
	for p := at; ; p++ {
		slot := t.index.slots[p]
		if uint32(slot>>32) != fragment {
			return at, 0
		}
		if t.log.at(Ref(slot)).Key == key {
			return p, Ref(slot)
		}
	}
}

// look finds a key in memory and, failing that, in the cold.
func (t *Table) look(key stream.Key, fragment uint32) *spot {
	s := &t.spot
	if s.version == t.version && s.key == key {
		return s
	}
	s.at, s.ref = t.find(key, fragment)
	s.key, s.version, s.cold = key, t.version, false
	if s.ref == 0 && len(t.buckets) > 0 {
		var err error
		s.old, s.cold, err = t.spec.Cold.Get(key)
		t.fail(err)
	}
	return s
}

func (t *Table) get(key stream.Key, fragment uint32, now stream.Time) *Entry {
	s := t.look(key, fragment)
	e := &s.old
	switch {
	case s.ref != 0:
		e = t.log.at(s.ref)
	case !s.cold:
		return nil
	}
	if e.Has(Gone) {
		return nil
	}
	if t.expired(e, now) {
		if s.ref != 0 {
			t.now = now
			t.drop(s.at, s.ref)
		}
		return nil
	}
	return e
}

func (t *Table) put(key stream.Key, fragment uint32, now stream.Time, value int64, tag stream.Tag, f Flags) Ref {
	s := t.look(key, fragment)
	if s.ref != 0 {
		t.overwrite(t.log.at(s.ref), now, value, tag, f)
		if t.spec.TTL != 0 && f&Pinned == 0 && t.log.started(s.ref)+t.slack() <= now {
			return t.move(s.at, s.ref, now)
		}
		return s.ref
	}
	if s.cold {
		f |= shadowing
		t.shadow(&s.old, now)
	}
	return t.append(s.at, key, fragment, now, value, tag, f)
}

func (t *Table) delete(key stream.Key, fragment uint32) {
	s := t.look(key, fragment)
	switch {
	case s.ref != 0:
		e := t.log.at(s.ref)
		if e.Has(shadowing) {
			t.overwrite(e, t.now, 0, 0, Gone)
		} else {
			t.drop(s.at, s.ref)
		}
	case s.cold && !s.old.Has(Gone):
		t.shadow(&s.old, t.now)
		t.append(s.at, key, fragment, t.now, 0, 0, Gone|shadowing)
	}
}

// append writes the entry of a key that has none in memory.
func (t *Table) append(at int, key stream.Key, fragment uint32, now stream.Time, value int64, tag stream.Tag,
	f Flags) Ref {
	t.now = now
	ref, e := t.log.append(now)
	*e = MakeEntry(key, now, value, tag, f)
	t.count(e)
	t.index.insert(at, fragment, uint32(ref))
	t.version++
	return ref
}

// overwrite writes an entry of memory in place.
func (t *Table) overwrite(e *Entry, now stream.Time, value int64, tag stream.Tag, f Flags) {
	t.now = now
	t.uncount(e)
	*e = MakeEntry(e.Key, now, value, tag, f|Flags(e.meta)&shadowing)
	t.count(e)
}

// move gives an entry a place at the tail of the log.
func (t *Table) move(at int, ref Ref, now stream.Time) Ref {
	e := *t.log.at(ref)
	moved, to := t.log.append(now)
	*to = e
	t.index.renumber(at, uint32(moved))
	t.log.remove(ref)
	t.version++
	return moved
}

// drop removes an entry from memory without a trace.
func (t *Table) drop(at int, ref Ref) {
	t.uncount(t.log.at(ref))
	t.index.remove(at)
	t.log.remove(ref)
	t.version++
}

func (t *Table) count(e *Entry) {
	switch {
	case e.Has(Gone):
		t.tombstones++
	case e.Has(Pinned):
		t.pinned++
	case t.spec.TTL != 0:
		t.live.add(e.Written())
	}
}

func (t *Table) uncount(e *Entry) {
	switch {
	case e.Has(Gone):
		t.tombstones--
	case e.Has(Pinned):
		t.pinned--
	case t.spec.TTL != 0:
		t.live.remove(e.Written())
	}
}

// prepare makes room for n entries: it spills, sweeps twice as many entries as may come, and grows the index.
func (t *Table) prepare(now stream.Time, n int) {
	if t.spec.Cold != nil && now > t.now {
		t.spill(now, t.spec.SpillAt)
	}
	t.now = now
	t.sweep(now, 2*n)
	t.reserve(n)
}

func (t *Table) reserve(n int) {
	if t.index.reserve(n) {
		t.version++
	}
}

// slack is how long an entry may be written again without being moved: few entries are, and few are held beyond their
// time.
func (t *Table) slack() stream.Time { return t.spec.TTL / 8 }

// overdue is how long after a place in the log was taken the entry there has surely expired or was written again.
func (t *Table) overdue() stream.Time { return t.spec.TTL + t.slack() }

// sweep looks after at most n places at the head of the log, first touching what they have in the index.
func (t *Table) sweep(now stream.Time, n int) {
	if t.spec.TTL == 0 {
		return
	}
	places, taken := t.log.head(n)
	overdue := taken+t.overdue() <= now
	passed, touched := 0, uint64(0)
	for passed < len(places) {
		e := &places[passed]
		if !e.Has(dead) {
			if e.Has(Pinned) || !overdue && !t.expired(e, now) {
				break
			}
			f := fragment(e.Key)
			t.leaving[passed] = f
			touched += t.index.slots[t.index.home(f)]
		}
		passed++
	}
	t.touched = touched
	t.log.pass(passed)
	for i := range places[:passed] {
		e := &places[i]
		if e.Has(dead) {
			continue
		}
		at, ref := t.find(e.Key, t.leaving[i])
		if !t.expired(e, now) {
			t.move(at, ref, now)
		} else {
			t.drop(at, ref)
		}
	}
}

// Flush moves all that is not pinned to the Cold, so that its size is that of the state.
func (t *Table) Flush(now stream.Time) {
	if t.spec.Cold != nil {
		t.spill(now, 1)
	}
}

// SpillPinned writes a copy of the pinned entries to a Cold of its own, which then has their size. They stay in memory.
func (t *Table) SpillPinned(cold Cold) error {
	var err error
	bucket := make([]Entry, 0, min(t.pinned, t.spec.SpillAt))
	spill := func() {
		slices.SortFunc(bucket, compareKeys)
		if err == nil && len(bucket) > 0 {
			err = cold.Spill(bucket)
		}
		bucket = bucket[:0]
	}
	t.EachPinned(func(_ Ref, e *Entry) {
		if bucket = append(bucket, *e); len(bucket) == cap(bucket) {
			spill()
		}
	})
	spill()
	return err
}

// spill moves all that is not pinned to the Cold if there is enough of it, and drops the buckets that have expired.
func (t *Table) spill(now stream.Time, enough int) {
	if t.index.used-t.pinned >= enough {
		b := bucket{newest: stream.MinTime}
		t.spilled = slices.Grow(t.spilled[:0], t.index.used-t.pinned)
		t.log.each(func(ref Ref, e *Entry) {
			switch {
			case e.Has(Pinned):
				return
			case e.Has(Gone):
				t.tombstones--
			case !t.expired(e, now):
				b.held++
			}
			if !t.expired(e, now) {
				t.spilled = append(t.spilled, *e)
				b.newest = max(b.newest, e.Written())
			}
		})
		t.index.retain(func(ref uint32) bool { return t.log.at(Ref(ref)).Has(Pinned) })
		t.log.each(func(ref Ref, e *Entry) {
			if !e.Has(Pinned) {
				t.log.remove(ref)
			}
		})
		t.version++
		if len(t.spilled) > 0 {
			slices.SortFunc(t.spilled, compareKeys)
			t.fail(t.spec.Cold.Spill(t.spilled))
			t.buckets = append(t.buckets, b)
			t.held += b.held
		}
	}
	expired := 0
	for t.spec.TTL != 0 && expired < len(t.buckets) && t.buckets[expired].newest+t.spec.TTL <= now {
		t.held -= t.buckets[expired].held
		expired++
	}
	if expired > 0 {
		t.buckets = slices.Delete(t.buckets, 0, expired)
		t.fail(t.spec.Cold.DropBefore(now - t.spec.TTL + 1))
		t.version++
	}
}

// shadow takes a cold entry out of the counts: something newer now stands for its key. An expired one stays in them
// until its bucket is dropped, as it may have been taken out before, by an entry that has expired as well.
func (t *Table) shadow(e *Entry, now stream.Time) {
	if e.Has(Gone) || t.expired(e, now) {
		return
	}
	i, _ := slices.BinarySearchFunc(t.buckets, e.Written(), func(b bucket, written stream.Time) int {
		return int(b.newest - written)
	})
	t.buckets[i].held--
	t.held--
	if t.spec.TTL != 0 {
		t.live.remove(e.Written())
	}
}

func compareKeys(a, b Entry) int { return a.Key.Compare(b.Key) }
