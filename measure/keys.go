package measure

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"deduplab/stream"
)

// sighted is what is known of a key.
type sighted struct {
	hash
	first, last nanos // arrivals
	firstRank   int64
	event       nanos // of the first row, early for none
	rows        int64
	reader      uint8 // class of its row that is the least late
	partition   uint8
	copied      int32 // number among those with copies from 1, 0 for none
}

// sightings is a hash table of the keys of one part.
type sightings struct {
	keys  []sighted // in order of appearance
	index []uint64  // the number of a key from 1 and half of its hash, by the other half; 0 is empty
}

// find returns what is known of a key, rows 0 for a new one. It is valid until the next key is looked for.
func (s *sightings) find(h hash) *sighted {
	if 2*len(s.keys) >= len(s.index) {
		s.index = make([]uint64, max(64, 2*len(s.index)))
		for i := range s.keys {
			s.put(s.keys[i].hash, i)
		}
	}
	mask, tag := uint64(len(s.index)-1), uint64(h.lo)>>32
	for at := uint64(h.lo) & mask; s.index[at] != 0; at = (at + 1) & mask {
		if s.index[at]>>32 != tag {
			continue
		}
		if key := &s.keys[uint32(s.index[at])-1]; key.hash == h {
			return key
		}
	}
	s.keys = append(s.keys, sighted{hash: h})
	s.put(h, len(s.keys)-1)
	return &s.keys[len(s.keys)-1]
}

// put takes a key that is not there yet into the index.
func (s *sightings) put(h hash, number int) {
	mask := uint64(len(s.index) - 1)
	at := uint64(h.lo) & mask
	for s.index[at] != 0 {
		at = (at + 1) & mask
	}
	s.index[at] = uint64(h.lo)>>32<<32 | uint64(number+1)
}

// measuring is one key while it is measured.
type measuring struct {
	*pass
	report        *KeyReport
	table         sightings
	fromFirst     *values
	fromPrevious  *values
	transport     *values
	pairs         *distinct // key and event time, of keys with copies
	pairsIn       int64
	lastFirst     nanos
	origins       []Origin
	originDelays  []*values
	readerLate    []int64 // rows by class, then keys
	partitionLate []int64
	readerKeys    []int64
	partitionKeys []int64
	ids           []IDBucket
	worst         []worst
	forecast      *forecasting
}

// worst is a key with many rows.
type worst struct {
	hash
	rows, firstRank int64
}

// measureKey measures one candidate key.
func (p *pass) measureKey(k int, span Span, o Options) (KeyReport, error) {
	key := KeyReport{Key: p.columns.Keys[k], NullKeys: p.nullKeys[k]}
	d := p.disk
	d.settle()
	classes := len(p.delays) + 1
	m := &measuring{pass: p, report: &key, fromFirst: d.newValues(), fromPrevious: d.newValues(), transport: d.newValues(),
		pairs: d.newDistinct(2), lastFirst: p.first, readerLate: make([]int64, classes),
		partitionLate: make([]int64, classes), readerKeys: make([]int64, classes), partitionKeys: make([]int64, classes),
		forecast: newForecasting(d, p.arrivals, o)}
	for _, name := range p.names {
		if name == "" {
			name = "null"
		}
		m.origins, m.originDelays = append(m.origins, Origin{Name: name}), append(m.originDelays, d.newValues())
	}
	for _, upTo := range idBuckets {
		m.ids = append(m.ids, IDBucket{UpTo: upTo})
	}
	for _, part := range p.parts[k] {
		if err := p.ctx.Err(); err != nil {
			return key, err
		}
		if err := m.part(part); err != nil {
			return key, err
		}
		part.drop()
	}
	return key, m.finish(span, o)
}

// part measures the keys of one part.
func (m *measuring) part(part *spool) error {
	table := &m.table
	table.keys = table.keys[:0]
	clear(table.index) // which is as long as the part before needed, and this one will
	m.forecast.begin()
	err := part.records(m.sightingWidth(), func(row []int64) error {
		slot := table.find(hash{row[sightingHi], row[sightingLo]})
		flags, rank := row[sightingFlags]>>32, row[sightingFlags]&maxRows
		index := rank
		if m.byFile {
			index = row[sightingIndex]
		}
		reader := uint8(flags >> readerShift)
		partition := uint8(0)
		if m.lag.counts(index) {
			partition = uint8(flags >> partitionShift)
		}
		m.readerLate[reader]++
		m.partitionLate[partition]++
		at := row[sightingArrival]
		if len(m.origins) > 0 {
			m.origin(int(flags>>originShift&(maxOrigins-1)), slot, at)
		}
		if slot.rows == 0 {
			*slot = sighted{hash: hash{row[sightingHi], row[sightingLo]}, first: at, last: at, firstRank: rank,
				event: row[sightingEvent], rows: 1, reader: reader, partition: partition}
			m.lastFirst = max(m.lastFirst, at)
			if slot.event != early {
				m.transport.add(max(0, at-slot.event))
			}
			return nil
		}
		if slot.rows == 1 {
			m.pair(slot.hash, slot.event)
			slot.copied = m.forecast.first(slot.firstRank, slot.first)
		}
		m.fromFirst.add(at - slot.first)
		m.fromPrevious.add(at - slot.last)
		m.pair(slot.hash, row[sightingEvent])
		m.forecast.copy(slot.copied, rank, slot.last, at)
		slot.last = at
		slot.rows++
		slot.reader, slot.partition = min(slot.reader, reader), min(slot.partition, partition)
		return nil
	})
	if err != nil {
		return err
	}
	m.forecast.end()
	for i := range table.keys {
		m.key(&table.keys[i])
	}
	return nil
}

// pair notes the event time of a row whose key has copies.
func (m *measuring) pair(h hash, event nanos) {
	if event != early {
		m.pairsIn++
		m.pairs.add(h.hi^int64(mix(event, h.lo)), h.lo^int64(bits.Reverse64(mix(h.hi, event))))
	}
}

func (m *measuring) origin(n int, slot *sighted, at nanos) {
	m.origins[n].Rows++
	if slot.rows > 0 {
		m.origins[n].Copies++
		m.originDelays[n].add(at - slot.first)
	}
}

// key counts a key all of whose rows are known.
func (m *measuring) key(s *sighted) {
	m.report.Distinct++
	m.readerKeys[s.reader]++
	m.partitionKeys[s.partition]++
	m.report.PerID.Max = max(m.report.PerID.Max, int(s.rows))
	i, _ := slices.BinarySearch(idBuckets, int(s.rows))
	m.ids[i].IDs++
	m.ids[i].Rows += int(s.rows)
	if s.rows == 1 || len(m.worst) == worstIDs && worse(m.worst[worstIDs-1], worst{s.hash, s.rows, s.firstRank}) < 0 {
		return
	}
	m.worst = append(m.worst, worst{s.hash, s.rows, s.firstRank})
	slices.SortFunc(m.worst, worse)
	m.worst = m.worst[:min(len(m.worst), worstIDs)]
}

// worse puts the key with more rows first, and of two with as many the one that came first.
func worse(a, b worst) int {
	return cmp.Or(cmp.Compare(b.rows, a.rows), cmp.Compare(a.firstRank, b.firstRank))
}

// finish puts the report together.
func (m *measuring) finish(span Span, o Options) (err error) {
	key := m.report
	key.Copies = int(m.n) - key.Distinct
	m.disk.settle()
	if key.FromFirst, err = newDelays(m.fromFirst, span); err != nil {
		return err
	}
	if key.FromPrevious, err = newDelays(m.fromPrevious, span); err != nil {
		return err
	}
	if key.transport, err = newDelays(m.transport, span); err != nil {
		return err
	}
	key.firsts = Span(m.lastFirst - m.first)
	pairs, err := m.pairs.count()
	if err != nil {
		return err
	}
	key.SameEvent = int(m.pairsIn - pairs)
	for i, delays := range m.originDelays {
		if m.origins[i].Delays, err = newDelays(delays, span); err != nil {
			return err
		}
	}
	if len(m.origins) > 0 {
		slices.SortStableFunc(m.origins, func(a, b Origin) int { return b.Copies - a.Copies })
		key.ByOrigin = m.origins
	}
	m.perID()
	if err := m.nameWorst(); err != nil {
		return err
	}
	if m.known {
		key.Losses = m.losses(o.Delays)
	}
	key.Forecasts, err = m.forecast.forecasts(m.ctx, key, span, o)
	return err
}

func (m *measuring) perID() {
	p := &m.report.PerID
	p.Mean = float64(m.n) / float64(m.report.Distinct)
	for i, bucket := range m.ids {
		if i > 0 && m.ids[i-1].UpTo >= p.Max {
			break
		}
		p.Histogram = append(p.Histogram, bucket)
	}
	copies := int64(0)
	for _, w := range m.worst {
		copies += w.rows - 1
	}
	if m.report.Copies > 0 {
		p.WorstShare = float64(copies) / float64(m.report.Copies)
	}
}

// nameWorst finds out how the worst keys are written.
func (m *measuring) nameWorst() error {
	wanted := map[hash]string{}
	for _, w := range m.worst {
		wanted[w.hash] = ""
	}
	if err := m.texts(m.ctx, wanted, m.report.Key); err != nil {
		return fmt.Errorf("reading again: %w", err)
	}
	for _, w := range m.worst {
		m.report.PerID.Worst = append(m.report.PerID.Worst, ID{wanted[w.hash], int(w.rows)})
	}
	return nil
}

// losses tries the usual delays, from none to the first that loses nothing, and those that were asked for.
func (m *measuring) losses(asked []stream.Time) []Loss {
	var all []Loss
	lost := true // with the usual delays so far
	for i, delay := range m.delays {
		late := func(rows, keys []int64) Late {
			l := Late{}
			for class := i + 1; class < len(rows); class++ {
				l.LostEvents += int(keys[class])
				l.LateCopies += int(rows[class])
			}
			l.LateCopies -= l.LostEvents
			l.LostRate = float64(l.LostEvents) / float64(m.report.Distinct)
			return l
		}
		usual := delay == 0 || slices.Contains(spans, delay)
		if !(usual && lost) && !slices.Contains(asked, delay) {
			continue
		}
		loss := Loss{delay, late(m.readerLate, m.readerKeys), late(m.partitionLate, m.partitionKeys)}
		all = append(all, loss)
		if usual && lost {
			lost = loss.Reader.LostEvents+loss.Reader.LateCopies+loss.Partition.LostEvents+loss.Partition.LateCopies > 0
		}
	}
	return all
}
