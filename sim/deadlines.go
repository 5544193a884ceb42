package sim

import "deduplab/stream"

// Deadlines holds entries of a table, by their Refs, until time reaches the deadline that each has as its Value. It
// costs about 4 bytes an entry, because entries wait in buckets of a second: an eviction looks at what it removes and
// at the rest of one bucket, never at all the state. The zero value is empty.
//
// An entry must be Pinned, and may neither be removed nor get another Value while it waits.
type Deadlines struct {
	wheel   Wheel[int64]     // the numbers of the buckets, at their start
	buckets map[int64]uint32 // their lists
	// bucket and list are those that were added to last; list 0: none.
	bucket int64
	list   uint32
	// reached is the bucket that time is in, and near what waits in it or was late when it came.
	reached int64
	near    []Ref

	pages []*[pageSize]deadlines
	used  uint32 // places that were ever taken, from 1 on
	freed uint32 // pieces that are not in use, linked by next
	size  int
}

// deadlines is a piece of a bucket's list. All but the first piece of a list are full.
type deadlines struct {
	refs [14]Ref
	n    uint32
	next uint32
}

const (
	bucketSpan = 1000 // ms
	pageSize   = 1024
)

func secondOf(at stream.Time) int64 { return int64(at.Floor(bucketSpan) / bucketSpan) }

func (d *Deadlines) at(id uint32) *deadlines { return &d.pages[id/pageSize][id%pageSize] }

// Add lets an entry wait for its deadline. One whose deadline is over is taken by the next [Deadlines.Take].
func (d *Deadlines) Add(ref Ref, deadline stream.Time) {
	d.size++
	bucket := secondOf(deadline)
	if bucket <= d.reached && d.buckets != nil {
		d.near = append(d.near, ref)
		return
	}
	if d.list == 0 || bucket != d.bucket {
		d.open(bucket)
	}
	p := d.at(d.list)
	if p.n == uint32(len(p.refs)) {
		d.list = d.piece(d.list)
		p = d.at(d.list)
	}
	p.refs[p.n] = ref
	p.n++
}

// open makes a bucket the one that is added to.
func (d *Deadlines) open(bucket int64) {
	if d.buckets == nil {
		d.buckets, d.reached = map[int64]uint32{}, secondOf(stream.MinTime+bucketSpan)
	}
	d.close()
	list, ok := d.buckets[bucket]
	if !ok {
		list = d.piece(0)
		d.wheel.Add(stream.Time(bucket*bucketSpan), bucket)
	}
	d.bucket, d.list = bucket, list
}

func (d *Deadlines) close() {
	if d.list != 0 {
		d.buckets[d.bucket], d.list = d.list, 0
	}
}

// piece takes an empty piece, linked to another.
func (d *Deadlines) piece(next uint32) uint32 {
	id := d.freed
	if id != 0 {
		d.freed = d.at(id).next
	} else {
		d.used++
		if id = d.used; int(id/pageSize) >= len(d.pages) {
			d.pages = append(d.pages, new([pageSize]deadlines))
		}
	}
	p := d.at(id)
	p.n, p.next = 0, next
	return id
}

// Take calls back for each entry whose deadline is at or before to, in an order that depends on nothing but the calls
// so far. To never falls. The callback may remove the entry from the table.
func (d *Deadlines) Take(table *Table, to stream.Time, due func(Ref)) {
	if d.size == 0 {
		return
	}
	waiting := d.near
	d.near = d.near[:0]
	for _, ref := range waiting {
		d.decide(table, ref, to, due)
	}
	d.close()
	d.wheel.Advance(to, func(_ stream.Time, buckets []int64) {
		for _, bucket := range buckets {
			for id := d.buckets[bucket]; id != 0; {
				p := d.at(id)
				table.touchRefs(p.refs[:p.n])
				for _, ref := range p.refs[:p.n] {
					d.decide(table, ref, to, due)
				}
				next := p.next
				p.next, d.freed = d.freed, id
				id = next
			}
			delete(d.buckets, bucket)
		}
	})
	d.reached = max(d.reached, secondOf(to))
}

// decide takes an entry, or keeps it near.
func (d *Deadlines) decide(table *Table, ref Ref, to stream.Time, due func(Ref)) {
	if stream.Time(table.At(ref).Value) > to {
		d.near = append(d.near, ref)
		return
	}
	d.size--
	due(ref)
}

// Len counts the entries that wait.
func (d *Deadlines) Len() int { return d.size }
