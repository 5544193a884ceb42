package gen

import "deduplab/stream"

// delivery is a stream of a generated workload. It holds the rows that are under way and nothing else.
type delivery struct {
	g        *generator
	next     event  // the first event that is not yet made
	until    uint64 // ticks from the start, after which no event is made
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
		wheel: newWheel(g.spec.Start),
		parts: make([]list, g.spec.Partitions),
	}
}

// MostUnderWay delivers a workload and tells how many rows of it were made and had not arrived, at most.
func MostUnderWay(w Workload) (int, error) {
	d, ok := w.Stream().(*delivery)
	if !ok {
		return 0, nil // a trace
	}
	for buffer := make([]stream.Row, 256); ; {
		if n, err := d.Next(buffer); n == 0 || err != nil {
			return len(d.wheel.rows), err
		}
	}
}

// Next implements Stream. It never fails.
func (d *delivery) Next(dst []stream.Row) (int, error) {
	n := 0
	for n < len(dst) && (d.rest || d.proceed()) {
		n += d.deliver(dst[n:])
	}
	return n, nil
}

// proceed moves on to the next moment at which rows arrive. It reports false at the end of the stream.
func (d *delivery) proceed() bool {
	for !d.rest {
		now := d.wheel.upcoming()
		if d.next.at < d.until {
			now = min(now, d.next.created())
		}
		if now == stream.MaxTime {
			return false
		}
		d.wheel.advance(now)
		for d.next.created() == now && d.next.at < d.until {
			d.make(d.next)
			d.next = d.g.timeline.next(d.next)
		}
		d.arriving, d.rest = d.wheel.due()
	}
	if len(d.parts) > 1 {
		d.arriving = d.wheel.sortByPartition(d.arriving, d.parts)
	}
	return true
}

// make puts the rows of an event under way.
func (d *delivery) make(e event) {
	g := d.g
	key, partition := g.key(e), 0
	if len(d.parts) > 1 {
		partition = g.partitionOf(e, key)
	}
	d.sendings = g.sendings(d.sendings[:0], e, partition)
	first := 0
	for i := range d.sendings {
		if !d.sendings[first].before(&d.sendings[i]) {
			first = i
		}
	}
	for i := range d.sendings {
		s := &d.sendings[i]
		to := d.wheel.add(s.arrival)
		to.Key = key
		if g.NewKey(int(s.origin)) {
			to.Key = g.keyOf(&row{e, int(s.origin), int(s.copy), s.own})
		}
		if to.Event = g.spec.Start + g.stamped(e, s); !g.trueTimes {
			to.Event = g.eventTime(e, s)
		}
		to.Arrival = g.spec.Start + s.arrival
		to.Tag = s.tag(e.number)
		to.Partition = uint16(s.partition)
		to.First = i == first
		to.Lone = len(d.sendings) == 1
	}
}

// deliver hands out rows that arrive now and returns how many.
func (d *delivery) deliver(dst []stream.Row) int {
	given := list{head: d.arriving.head}
	n := 0
	for d.rest && n < len(dst) {
		given.tail = d.arriving.head
		dst[n] = d.wheel.rows[given.tail]
		n++
		d.arriving.head = d.wheel.next[given.tail]
		d.rest = given.tail != d.arriving.tail
	}
	d.wheel.release(given)
	return n
}
