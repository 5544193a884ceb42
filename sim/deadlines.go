package sim

import "deduplab/stream"

// Deadlines holds entries of a table, by their Refs, until time reaches the deadline that each has as its Value. It costs
// about 4 bytes an entry, because entries wait in buckets of a second and are looked at only when time enters theirs: so
// an eviction looks at what it removes and the rest of one bucket, never at all the state. The zero value is empty.
//
// An entry must be Pinned, and may neither be removed nor get another Value while it waits.
type Deadlines struct {
	wheel   Wheel[int64] // buckets by their number, at their start
	buckets map[int64]uint32
	last    int64  // the bucket that was added to last, number and list
	list    uint32 // 0: none
	pages   []*[pageSize]deadlines
	used    uint32 // places that were ever taken, from 1 on
	freed   uint32 // lists that are not in use, linked by next
	size    int
}

// deadlines is a piece of a bucket's list: 64 bytes. All but the first piece are full.
type deadlines struct {
	refs [14]Ref
	n    uint32
	next uint32
}

const (
	bucketSpan = 1000 // ms
	pageSize   = 1024
)

func (d *Deadlines) at(id uint32) *deadlines { return &d.pages[id/pageSize][id%pageSize] }

// Add lets an entry wait for its deadline. One whose deadline is over is taken by the next [Deadlines.Take].
func (d *Deadlines) Add(ref Ref, deadline stream.Time) {
	d.size++
	bucket := int64(deadline.Floor(bucketSpan) / bucketSpan)
	if d.list == 0 || bucket != d.last {
		if d.buckets == nil {
			d.buckets = map[int64]uint32{}
		}
		if d.list != 0 {
			d.buckets[d.last] = d.list
		}
		list, ok := d.buckets[bucket]
		if !ok {
			list = d.piece(0)
			d.wheel.Add(stream.Time(bucket*bucketSpan), bucket)
		}
		d.last, d.list = bucket, list
	}
	p := d.at(d.list)
	if p.n == uint32(len(p.refs)) {
		d.list = d.piece(d.list)
		p = d.at(d.list)
	}
	p.refs[p.n] = ref
	p.n++
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
// so far. The callback may remove the entry from the table.
func (d *Deadlines) Take(table *Table, to stream.Time, due func(Ref)) {
	if d.list != 0 {
		d.buckets[d.last], d.list = d.list, 0
	}
	var again []int64 // buckets of which something is left
	d.wheel.Advance(to, func(_ stream.Time, numbers []int64) {
		for _, number := range numbers {
			list := d.buckets[number]
			delete(d.buckets, number)
			whole := stream.Time(number+1)*bucketSpan-1 <= to
			left := uint32(0)
			for id := list; id != 0; {
				p := d.at(id)
				refs, next := p.refs[:p.n], p.next
				kept := uint32(0)
				for _, ref := range refs {
					if whole || stream.Time(table.At(ref).Value) <= to {
						d.size--
						due(ref)
					} else {
						p.refs[kept] = ref
						kept++
					}
				}
				p.n = kept
				if kept == 0 {
					p.next, d.freed = d.freed, id
				} else {
					p.next, left = left, id
				}
				id = next
			}
			if left != 0 {
				d.buckets[number] = left
				again = append(again, number)
			}
		}
	})
	for _, number := range again {
		d.wheel.Add(stream.Time(number*bucketSpan), number)
	}
}

// Len counts the entries that wait.
func (d *Deadlines) Len() int { return d.size }
