package measure

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"deduplab/stream"
)

// keyParts is how many parts the rows of a key are dealt out to, by hash; each is then measured by itself.
const keyParts = 256

// A sighting is a row in the part of its key.
const (
	sightingHi = iota
	sightingLo
	sightingArrival
	sightingEvent
	sightingFlags // of the record, above 32 bits of its rank in order of arrival
	sightingIndex // as listed, where lateness follows that order
	sightingWords
)

// pass is one way through all rows: from the files by way of the order of arrival to what is measured of the stream,
// and to the parts of the keys.
type pass struct {
	*intake
	disk   *disk
	sorter *sorter
	byFile bool // whether lateness follows the order of the files, since there is no arrival

	lag       lagging
	delays    []stream.Time // watermark delays to try, ascending
	lateness  *values
	late      int
	withEvent int
	known     bool // whether there are event times

	n           int64
	first, last nanos
	sameArrival int64
	unit        int // of resolutions
	events      *distinct
	partitions  []*silence // by number, nil where there is no row
	arrivals    *spool     // in milliseconds
	parts       [][]*spool // by key and part
	sighting    [sightingWords]int64
}

// silence is what is measured of a partition.
type silence struct {
	rows        int
	first, last nanos
	longest     nanos
	longestAt   nanos
	gaps        *values
}

// read passes over all rows, again where a pass had the wrong settings.
func (r *Reader) read(ctx context.Context, o Options) (*pass, error) {
	var begin settings
	for {
		d := newDisk(r.folder, o.Memory/2) // as much again takes the sorting of a window, and tables
		r.disks = append(r.disks, d)
		p, err := r.newPass(ctx, begin, d, o)
		if err != nil {
			return nil, err
		}
		err = p.run()
		begin = p.begin
		switch {
		case errors.Is(err, errUnordered):
			begin.whole = true
		case !errors.Is(err, errUnit):
			return p, err
		}
		r.disks = r.disks[:len(r.disks)-1]
		if err := d.close(); err != nil {
			return nil, err
		}
	}
}

func (r *Reader) newPass(ctx context.Context, begin settings, d *disk, o Options) (*pass, error) {
	p := &pass{disk: d, byFile: r.columns.Arrival == "", known: r.columns.EventTime != "", lag: newLagging(),
		partitions: make([]*silence, 1<<16), arrivals: d.newSpool(), lateness: d.newValues()}
	p.delays = append(append([]stream.Time{0}, spans...), o.Delays...)
	slices.Sort(p.delays)
	p.delays = slices.Compact(p.delays)
	if p.known && !p.byFile {
		p.events = d.newDistinct(1)
	}
	for range r.columns.Keys {
		parts := make([]*spool, keyParts)
		for i := range parts {
			parts[i] = d.newSpool()
		}
		p.parts = append(p.parts, parts)
	}
	var err error
	if p.intake, err = r.newIntake(ctx, begin, p.listed); err != nil {
		return nil, err
	}
	width := recordKeys + 2*len(r.columns.Keys)
	p.sorter = &sorter{disk: d, width: width, whole: begin.whole, each: p.arrived,
		limit: max(int(o.Memory/8)/(width*wordBytes), 2)}
	return p, nil
}

func (p *pass) run() error {
	if err := p.intake.run(); err != nil {
		return err
	}
	return p.sorter.finish()
}

// listed takes in a row in the order of the files.
func (p *pass) listed(rec []int64) error {
	if p.byFile {
		p.classify(rec)
	}
	return p.sorter.add(rec)
}

// classify notes in a row how far it lies behind.
func (p *pass) classify(rec []int64) {
	if !p.known {
		return
	}
	reader, partition := p.lag.step(rec[recordEvent], rec[recordEvent] != early, uint16(rec[recordPartition]),
		rec[recordIndex])
	if reader > 0 {
		p.late++
		p.lateness.add(reader)
	}
	rec[recordFlags] |= p.class(reader)<<readerShift | p.class(partition)<<partitionShift
}

// class is how many of the watermark delays a row is late under.
func (p *pass) class(lag nanos) int64 {
	if lag < 0 {
		return 0
	}
	n := int64(0)
	for _, delay := range p.delays {
		if lag < int64(delay)*int64(millisecond) {
			break
		}
		n++
	}
	return n
}

// arrived takes in a row in order of arrival.
func (p *pass) arrived(rec []int64) error {
	at := rec[recordArrival]
	if p.n == 0 {
		p.first = at
	} else if at == p.last {
		p.sameArrival++
	}
	p.last = at
	rank := p.n
	p.n++
	if p.n&0xffff == 0 {
		if err := cmp.Or(p.ctx.Err(), p.disk.err); err != nil {
			return err
		}
	}
	if !p.byFile {
		rec[recordIndex] = rank
		p.classify(rec)
	}
	p.silence(uint16(rec[recordPartition]), at)
	if event := rec[recordEvent]; event != early {
		p.withEvent++
		for event%resolutions[p.unit] != 0 {
			p.unit++
		}
		if p.events != nil {
			p.events.add(event, 0)
		}
	}
	p.arrivals.put(millis(at))
	s := &p.sighting
	s[sightingArrival], s[sightingEvent] = at, rec[recordEvent]
	s[sightingFlags], s[sightingIndex] = rec[recordFlags]<<32|rank, rec[recordIndex]
	words := s[:p.sightingWidth()]
	for k, parts := range p.parts {
		s[sightingHi], s[sightingLo] = rec[recordKeys+2*k], rec[recordKeys+2*k+1]
		parts[uint64(s[sightingHi])>>56].add(words...)
	}
	return nil
}

// sightingWidth is the number of words of a sighting.
func (p *pass) sightingWidth() int {
	if p.byFile {
		return sightingWords
	}
	return sightingIndex
}

func (p *pass) silence(partition uint16, at nanos) {
	s := p.partitions[partition]
	if s == nil {
		p.partitions[partition] = &silence{rows: 1, first: at, last: at, longest: -1, longestAt: at, gaps: p.disk.newValues()}
		return
	}
	gap := at - s.last
	if gap > s.longest {
		s.longest, s.longestAt = gap, s.last
	}
	s.gaps.add(gap)
	s.rows++
	s.last = at
}

// lagging walks through the rows in their order and says how far each lies behind the largest event time before it.
type lagging struct {
	top, lowest nanos    // over all rows, and of the partition whose largest is the smallest
	tops        []nanos  // largest, by partition
	seen        []bool   // by partition
	there       []uint16 // the partitions that were seen
	complete    int64    // number of the row that gave the last of the partitions a largest
}

func newLagging() lagging {
	return lagging{top: early, lowest: early, complete: -1, tops: slices.Repeat([]nanos{early}, 1<<16),
		seen: make([]bool, 1<<16)}
}

// step is how far a row lies behind: behind all rows, and behind the partition that is the least far. It is negative
// ahead of them, and early where there is no such time yet, or no event time.
func (l *lagging) step(at nanos, known bool, partition uint16, index int64) (reader, slowest nanos) {
	if !l.seen[partition] {
		l.seen[partition] = true
		l.there = append(l.there, partition)
		l.lowest = early // a partition that says nothing holds the watermark back from the start
	}
	reader, slowest = early, early
	if !known {
		return reader, slowest
	}
	if l.top != early {
		reader = l.top - at
	}
	if l.lowest != early {
		slowest = l.lowest - at
	}
	l.top = max(l.top, at)
	was := l.tops[partition]
	if at <= was {
		return reader, slowest
	}
	l.tops[partition] = at
	if was == l.lowest {
		low := at
		for _, other := range l.there {
			low = min(low, l.tops[other])
		}
		if l.lowest == early && low != early {
			l.complete = index
		}
		l.lowest = low
	}
	return reader, slowest
}

// counts reports whether a row comes after the first rows of all partitions: before, their watermark stands at nothing.
func (l *lagging) counts(index int64) bool { return l.lowest != early && index > l.complete }

// idleness is what is measured of the partitions, in order of their numbers.
func (p *pass) idleness(span Span) ([]Idle, error) {
	var all []Idle
	for number, s := range p.partitions {
		if s == nil {
			continue
		}
		gaps, err := newDelays(s.gaps, span)
		if err != nil {
			return nil, err
		}
		all = append(all, Idle{Partition: number, Rows: s.rows, Gaps: gaps, LongestAt: formatMoment(s.longestAt),
			Silent: Span(p.last - s.last)})
	}
	return all, nil
}

func (p *pass) disorder(span Span) (d Disorder, err error) {
	d = Disorder{Order: "arrival", OutOfOrder: p.late}
	if p.byFile {
		d.Order = "file"
	}
	if p.withEvent > 1 {
		d.Rows = p.withEvent
	}
	d.Lateness, err = newDelays(p.lateness, span)
	return d, err
}

// resolutions are the units that a clock may count in.
var resolutions = []nanos{86400e9, 3600e9, 60e9, 1e9, 1e6, 1e3, 1}

func (p *pass) ties() (Ties, error) {
	ties := Ties{SameArrival: int(p.sameArrival)}
	if !p.known {
		return ties, nil
	}
	if p.withEvent > 0 {
		ties.Resolution = Span(resolutions[p.unit])
	}
	if p.byFile { // the event time is the arrival
		ties.SameEvent = ties.SameArrival
		return ties, nil
	}
	different, err := p.events.count()
	ties.SameEvent = p.withEvent - int(different)
	return ties, err
}
