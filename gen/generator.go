package gen

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"deduplab/stream"
)

// generator is a generated workload. Whatever concerns an origin is indexed by its number, 0 for originals.
type generator struct {
	spec    Spec
	schema  stream.Schema
	columns []column   // one a field
	sources [][]source // by origin and field; a copy has one for each field that it draws anew
	keys    []int      // the fields of the key
	// id is the source of the key of originals if it is a UUID by itself that no other event has.
	id *source
	// partitionBy is the field that picks the partition, -1 for the key.
	partitionBy int
	shares      *weights // of the partitions; nil: equal ones

	transport  sampler
	transports []source // by origin
	outages    []outage
	slows      []slow
	finishes   []stream.Time // by partition, nil: none ends before the stream
	clocks     []clock       // by partition, nil: all are right
	nullTime   chance
	nullTimes  source
	// trueTimes says that event times are what happened, neither of a wrong clock nor coarse nor NULL.
	trueTimes bool
	rules     []rule // origin i+1 is rule i
	plural    bool   // a rule can make many copies of one event
	floods    bool   // when an event was created decides which copies it has
	perMs     uint64 // events a millisecond, a factor
	extents   extents
	// unique says that a field tells the events apart, so that rows of two events are never equal.
	unique bool
	sent   []int // fields that hold the moment when the row was sent
	made   []int // fields that are made of what the row is

	timeline *timeline

	walk sync.Once
	ends []End // known once the stream has been walked
}

// outage is an Outage made ready: rows of the partition sent from on arrive on a line that starts at end.
type outage struct {
	partition int
	from, end stream.Time
	slope     uint64 // milliseconds of delivery a millisecond of sending, a factor
}

// New makes a generated workload: a function of the spec and the seed alone. The spec must not be changed afterwards.
// The error joins all faults of the spec.
func New(spec Spec, seed uint64) (Workload, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	g := &generator{
		spec: spec, partitionBy: -1, transport: newSampler(spec.Transport), perMs: factor(spec.Rate / 1000),
	}
	for i, f := range spec.Fields {
		g.columns = append(g.columns, newColumn(f, seed))
		g.schema.Columns = append(g.schema.Columns, f.Column())
		g.unique = g.unique || f.unique()
		if f.Stamp == Sent {
			g.sent = append(g.sent, i)
		}
		if f.made() {
			g.made = append(g.made, i)
		}
		if f.Name == spec.PartitionBy {
			g.partitionBy = i
		}
	}
	g.schema.Event = len(g.schema.Columns)
	g.schema.Columns = append(g.schema.Columns, stream.Column{Name: spec.EventTime.Field, Type: stream.Timestamp})
	for _, name := range spec.Key {
		g.keys = append(g.keys, g.schema.Index(name))
	}
	g.schema.Key = slices.Clone(g.keys)

	g.addOrigin(seed, nil)
	if f := &g.columns[g.keys[0]]; len(g.keys) == 1 && f.UUID && f.unique() {
		g.id = &g.sources[0][g.keys[0]]
		if g.partitionBy == g.keys[0] { // which is the key, quicker to find
			g.partitionBy = -1
		}
	}
	for i := range spec.Duplicates {
		r := newRule(spec, i, seed, g.columns)
		g.rules = append(g.rules, r)
		g.plural, g.floods = g.plural || r.plural(), g.floods || r.flood != nil
		g.addOrigin(seed, r.redrawn)
	}
	g.addSources(seed)
	if g.plural {
		g.extents = make(extents, keptExtents)
	}
	for _, o := range spec.Outage {
		slope := factor(spec.highestRate(o.Partition) / o.Flush)
		g.outages = append(g.outages, outage{o.Partition, o.From, o.From + o.For, slope})
	}
	g.timeline = newTimeline(spec, seed, g.partition)
	return g, nil
}

// addOrigin makes the random streams of the next origin, whose rows draw some fields anew.
func (g *generator) addOrigin(seed uint64, redrawn []bool) {
	origin := len(g.sources)
	sources := make([]source, len(g.columns))
	for f, field := range g.spec.Fields {
		if origin > 0 && !redrawn[f] {
			continue
		}
		sources[f] = newSource(seed, fmt.Sprintf("field %s of origin %d", field.Name, origin))
	}
	g.sources = append(g.sources, sources)
	g.transports = append(g.transports, newSource(seed, fmt.Sprintf("transport of origin %d", origin)))
}

// key is the key of an original.
func (g *generator) key(e event) stream.Key {
	if g.id != nil {
		return uuid(g.id.at(e.draw))
	}
	return g.keyOf(&row{event: e, own: e.draw})
}

// keyOf is the key of any row.
func (g *generator) keyOf(r *row) stream.Key {
	var scratch [128]byte
	hash := keyHash{scratch[:0]}
	for _, f := range g.keys {
		c := &g.columns[f]
		from, draw := g.draws(r, f)
		switch {
		case c.null(from, draw):
			hash.null()
		case c.UUID:
			id := uuid(c.at(from, draw))
			if len(g.keys) == 1 && c.Null == 0 {
				return id
			}
			hash.number(int64(id.Hi))
			hash.number(int64(id.Lo))
		case c.made():
			hash.number(g.integer(r, f))
		case c.numeric():
			hash.number(c.number(from, draw))
		default:
			hash.text(c.text(c.at(from, draw)))
		}
	}
	return hash.key()
}

// partition is where the original of an event goes; only the number and the draw of the event matter.
func (g *generator) partition(e event) int {
	if g.spec.Partitions == 1 {
		return 0
	}
	if g.partitionBy >= 0 {
		return g.partitionOf(e, stream.Key{})
	}
	return g.partitionOf(e, g.key(e))
}

// partitionOf is where an original with the given key goes, which decides if no other field picks the partition.
func (g *generator) partitionOf(e event, key stream.Key) int {
	hash := stream.Mix(key.Hi ^ key.Lo) // as the column hashes it, if it is the key
	if f := g.partitionBy; f >= 0 {
		hash = g.hash(&row{event: e, own: e.draw}, f)
	}
	if g.shares != nil {
		return int(g.shares.pick(hash)) - 1
	}
	return int(below(hash, uint64(g.spec.Partitions)))
}

// hash is that of the value of a field that is no moment.
func (g *generator) hash(r *row, f int) uint64 {
	c := &g.columns[f]
	from, draw := g.draws(r, f)
	if c.made() && !c.null(from, draw) {
		return stream.Mix(uint64(g.integer(r, f)))
	}
	return c.hash(from, draw)
}

// sending is where a row of an event is sent to and when, and when it arrives, in milliseconds from the start.
type sending struct {
	origin, copy, partition int32
	own                     uint64 // as of a row
	sent, arrival           stream.Time
}

// send finds the times of the row that an event has of an origin at a place of the origin's random streams. The
// original goes to the given partition.
func (g *generator) send(e event, origin int, own uint64, partition int) sending {
	sent := e.created()
	transport := g.transports[origin].at(own)
	if origin > 0 {
		r := &g.rules[origin-1]
		if r.same {
			transport = g.transports[0].at(e.draw)
		}
		if r.flood != nil {
			sent = r.flood.sends(e)
		}
		sent += r.delay.draw(r.delays.at(own))
		if r.other {
			others := uint64(g.spec.Partitions - 1)
			partition = (partition + 1 + int(below(r.moves.at(own), others))) % g.spec.Partitions
		}
	}
	arrival := sent + g.transport.draw(transport)
	for i := range g.slows {
		arrival += g.slows[i].delay(own, origin, partition, sent)
	}
	for i := range g.outages {
		if o := &g.outages[i]; o.partition == partition && sent >= o.from {
			arrival = max(arrival, o.end+stream.Time(times(uint64(sent-o.from), o.slope)))
		}
	}
	return sending{origin: int32(origin), partition: int32(partition), own: own, sent: sent, arrival: arrival}
}

// sending finds the times of a row.
func (g *generator) sending(r *row) sending {
	return g.send(r.event, r.origin, r.own, g.partition(r.event))
}

// before reports whether a row is delivered before another one of its event with a higher copy number.
func (s *sending) before(other *sending) bool {
	return s.arrival < other.arrival || s.arrival == other.arrival && s.partition <= other.partition
}

// sendings appends the original and the copies of an event in the order of their copy number.
func (g *generator) sendings(to []sending, e event, partition int) []sending {
	to = append(to, g.send(e, 0, e.draw, partition))
	for i := range g.rules {
		r := &g.rules[i]
		if !r.hits(e.draw) { // in most cases, so this comes first
			continue
		}
		for n := range g.copiesIfHit(r, e) {
			s := g.send(e, i+1, ownDraw(e.draw, n), partition)
			s.copy = int32(len(to))
			to = append(to, s)
		}
	}
	if g.finishes != nil {
		return g.untilFinish(to)
	}
	return to
}

// stamped is the moment, in milliseconds from the start, for which the row's own timestamp stands.
func (g *generator) stamped(e event, s *sending) stream.Time {
	switch {
	case g.spec.EventTime.LogAppend:
		return s.arrival
	case s.origin > 0 && g.rules[s.origin-1].restamp:
		return s.sent
	}
	return e.created()
}

// eventTime is the row's own timestamp, NullTime for NULL. A copy that is not stamped anew shows what the clock of its
// original's partition showed, wherever it goes.
func (g *generator) eventTime(e event, s *sending) stream.Time {
	at := g.stamped(e, s)
	if g.trueTimes {
		return g.spec.Start + at
	}
	partition := int(s.partition)
	if g.clocks != nil && s.origin > 0 {
		if r := &g.rules[s.origin-1]; r.other && !r.restamp {
			partition = g.partition(e)
		}
	}
	return g.shown(at, e.draw, partition)
}

func (g *generator) Schema() stream.Schema { return g.schema }

func (g *generator) Partitions() int { return g.spec.Partitions }

func (g *generator) Span() (from, to stream.Time) {
	return g.spec.Start, g.spec.Start + g.spec.Duration
}

func (g *generator) Labelled() bool { return true }

func (g *generator) Origins() []string {
	names := []string{"original"}
	for _, d := range g.spec.Duplicates {
		names = append(names, d.Origin)
	}
	return names
}

func (g *generator) NewKey(origin int) bool { return origin > 0 && g.rules[origin-1].newKey }

// ReusedID implements Workload.
func (g *generator) ReusedID(number uint64) bool {
	draw := g.timeline.draw(number)
	return slices.ContainsFunc(g.keys, func(f int) bool {
		c := &g.columns[f]
		return c.Reuse != nil && !c.null(g.draws(&row{event: event{number: number, draw: draw}, own: draw}, f))
	})
}

// Record implements stream.Records. A faker field costs microseconds, the rest nanoseconds.
func (g *generator) Record(tag stream.Tag) stream.Record {
	r := g.row(tag)
	record := make(stream.Record, 0, len(g.columns)+1)
	for f := range g.columns {
		c := &g.columns[f]
		from, draw := g.draws(&r, f)
		switch {
		case c.null(from, draw):
			record = append(record, stream.Value{Null: true})
		case c.Stamp != "":
			record = append(record, stream.Value{Int: int64(g.stamp(&r, f))})
		case c.made():
			record = append(record, stream.Value{Int: g.integer(&r, f)})
		default:
			record = append(record, c.value(from, draw))
		}
	}
	at := g.rowTime(&r)
	return append(record, stream.Value{Null: at == stream.NullTime, Int: int64(at)})
}

// stamp is the value of a field that holds a moment, if it is not NULL.
func (g *generator) stamp(r *row, f int) stream.Time {
	if g.columns[f].Stamp == Created || r.origin == 0 || g.rules[r.origin-1].again {
		return g.spec.Start + r.created()
	}
	return g.spec.Start + g.sending(r).sent
}

// rowTime is the row's own timestamp, NullTime for NULL.
func (g *generator) rowTime(r *row) stream.Time {
	s := g.sending(r)
	return g.eventTime(r.event, &s)
}

// Order implements stream.Records.
func (g *generator) Order(tag stream.Tag, column int) int64 {
	if column == g.schema.Event {
		r := g.row(tag)
		return int64(g.rowTime(&r)) // NullTime is NullOrder
	}
	c := &g.columns[column]
	if g.schema.Columns[column].Type == stream.String {
		panic(fmt.Sprintf("gen: column %q is text and has no numeric order", c.Name))
	}
	if c.plain && !g.redraws(tag.Origin(), column) {
		return c.ranged(g.sources[0][column].at(g.timeline.draw(tag.Event())))
	}
	r := g.row(tag)
	from, draw := g.draws(&r, column)
	switch {
	case c.null(from, draw):
		return stream.NullOrder
	case c.made():
		return g.integer(&r, column)
	case c.Stamp != "":
		return int64(g.stamp(&r, column))
	}
	return c.number(from, draw)
}

// Content implements stream.Records. Where a UUID tells the events apart it takes nanoseconds: the event, and what in
// a copy differs from the original. Otherwise it hashes all columns.
func (g *generator) Content(tag stream.Tag) uint64 {
	if !g.unique {
		return g.contentOfAll(tag)
	}
	content := stream.Mix(tag.Event())
	if tag.Origin() == 0 {
		return content
	}
	rule := &g.rules[tag.Origin()-1]
	timed := rule.restamp || g.sent != nil || g.spec.EventTime.LogAppend
	if rule.changes == nil && g.made == nil && !timed {
		return content
	}
	r := g.undated(tag)
	if timed && (g.outages != nil || g.slows != nil || g.floods || !g.trueTimes) {
		r = g.row(tag) // else the moment of creation does not matter to what differs
	}
	original := row{event: r.event, own: r.draw}
	for _, fields := range [][]int{rule.changes, g.made} {
		for _, f := range fields {
			if was, is := g.hash(&original, f), g.hash(&r, f); is != was {
				content = fold(content, f, is)
			}
		}
	}
	if timed {
		partition := g.partition(r.event)
		first, copied := g.send(r.event, 0, r.draw, partition), g.send(r.event, r.origin, r.own, partition)
		for _, f := range g.sent {
			if copied.sent != first.sent && !rule.again && !g.columns[f].null(g.sources[0][f], r.draw) {
				content = fold(content, f, stream.Mix(uint64(copied.sent-first.sent)))
			}
		}
		if was, is := g.eventTime(r.event, &first), g.eventTime(r.event, &copied); is != was {
			content = fold(content, g.schema.Event, stream.Mix(uint64(is-was)))
		}
	}
	return content
}

func (g *generator) contentOfAll(tag stream.Tag) uint64 {
	r := g.row(tag)
	content := stream.Mix(uint64(g.rowTime(&r)))
	for f := range g.columns {
		hash := uint64(nullHash)
		if g.columns[f].Stamp == "" {
			hash = g.hash(&r, f)
		} else if !g.columns[f].null(g.draws(&r, f)) {
			hash = stream.Mix(uint64(g.stamp(&r, f)))
		}
		content = fold(content, f, hash)
	}
	return content
}

// fold adds the hash of a column to the content of a row.
func fold(content uint64, column int, hash uint64) uint64 {
	return stream.Mix(content ^ stream.Mix(hash+uint64(column)+1))
}

// Partition implements Workload.
func (g *generator) Partition(tag stream.Tag) int {
	r := g.undated(tag)
	if r.origin > 0 && g.rules[r.origin-1].other {
		return int(g.sending(&r).partition)
	}
	return g.partition(r.event)
}

func (g *generator) Arrival(tag stream.Tag) stream.Time {
	r := g.row(tag)
	return g.spec.Start + g.sending(&r).arrival
}

func (g *generator) FirstArrival(number uint64) stream.Time {
	return g.spec.Start + g.extent(number).first
}

func (g *generator) LastArrival(number uint64) stream.Time {
	return g.spec.Start + g.extent(number).last
}

// extent is from when until when the rows of an event arrive, from the start.
type extent struct {
	event       uint64
	first, last stream.Time
}

// extents keep those of events with many rows, each at the place that its number gives it, so that a look-up for every
// row of such an event is not a look at all of its rows every time.
type extents []atomic.Pointer[extent]

const (
	keptExtents = 1 << 12
	manyRows    = 16
)

func (g *generator) extent(number uint64) extent {
	var kept *atomic.Pointer[extent]
	if g.plural {
		kept = &g.extents[number%keptExtents]
		if known := kept.Load(); known != nil && known.event == number {
			return *known
		}
	}
	var room [4]sending
	e := g.timeline.event(number)
	found := extent{number, stream.MaxTime, stream.MinTime}
	sendings := g.sendings(room[:0], e, g.partition(e))
	for i := range sendings {
		found.first, found.last = min(found.first, sendings[i].arrival), max(found.last, sendings[i].arrival)
	}
	if kept != nil && len(sendings) >= manyRows {
		kept.Store(&found)
	}
	return found
}
