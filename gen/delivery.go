package gen

import "deduplab/stream"

// delivery is a stream of a generated workload. It holds the rows that are under way and nothing else.
type delivery struct {
	g        *generator
	next     event // the first event that is not yet made
	until    uint64
	wheel    *wheel
	arriving list // what is left of the rows that arrive now
	rest     bool // whether anything is left of them
	parts    []list
	sendings []sending
}

// Stream implements Workload.
func (g *generator) Stream() Stream {
	return &delivery{
		g:     g,
		next:  g.timeline.next(first()),
		until: uint64(g.spec.Duration) << tickBits,
		wheel: newWheel(),
		parts: make([]list, g.spec.Partitions),
	}
}

// Next implements Stream. It never fails.
func (d *delivery) Next(dst []stream.Row) (int, error) {
	n := 0
	for n < len(dst) {
		if d.rest {
			n += d.deliver(dst[n:])
			continue
		}
		now := d.wheel.upcoming()
		if d.next.at < d.until {
			now = min(now, d.next.created())
		}
		if now == stream.MaxTime {
			break
		}
		d.wheel.advance(now)
		for d.next.created() == now && d.next.at < d.until {
			d.make(d.next)
			d.next = d.g.timeline.next(d.next)
		}
		if d.arriving, d.rest = d.wheel.due(); d.rest && len(d.parts) > 1 {
			d.arriving = d.wheel.sortByPartition(d.arriving, d.parts)
		}
	}
	return n, nil
}

// make puts the rows of an event under way.
func (d *delivery) make(e event) {
	g := d.g
	key, partition := g.key(0, e.draw), 0
	if len(d.parts) > 1 {
		partition = g.partitionOf(e.draw, key)
	}
	d.sendings = g.sendings(d.sendings[:0], e, partition)
	first := 0
	for i, s := range d.sendings {
		if s.arrival < d.sendings[first].arrival {
			first = i
		}
	}
	for i, s := range d.sendings {
		row := d.wheel.add(s.arrival)
		row.key = key
		if s.origin > 0 && g.rules[s.origin-1].newKey {
			row.key = g.key(s.origin, e.draw)
		}
		row.event = g.spec.Start + g.eventTime(e, s)
		row.tag = stream.NewTag(e.number, s.origin, i)
		row.partition = uint16(partition)
		row.first = i == first
	}
}

// deliver hands out rows that arrive now and returns how many.
func (d *delivery) deliver(dst []stream.Row) int {
	arrival := d.g.spec.Start + d.wheel.now
	given := list{head: d.arriving.head}
	for i := range dst {
		at := d.arriving.head
		row := &d.wheel.slab[at]
		dst[i] = stream.Row{
			Key:       row.key,
			Event:     row.event,
			Arrival:   arrival,
			Tag:       row.tag,
			Partition: row.partition,
			First:     row.first,
		}
		given.tail = at
		d.arriving.head = row.next
		if at == d.arriving.tail {
			d.rest = false
			d.wheel.release(given)
			return i + 1
		}
	}
	d.wheel.release(given)
	return len(dst)
}
