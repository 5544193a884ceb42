package gen

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"

	"deduplab/stream"
)

// generator is a generated workload. Whatever concerns an origin is indexed by its number, 0 for originals.
type generator struct {
	spec    Spec
	schema  stream.Schema
	columns []column   // one a field
	sources [][]source // by origin and field; a copy shares the source of each field that it does not change
	keys    []int      // the fields of the key
	// uuids has the source of the key by origin if the key is a UUID by itself; otherwise it is nil.
	uuids []source
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
	// unique says that a field tells the events apart, so that rows of two events are never equal.
	unique bool
	sent   []int // fields that hold the moment when the row was sent

	timeline *timeline

	walk sync.Once
	ends []End // known once the stream has been walked
}

// rule is a Duplicate made ready.
type rule struct {
	where   *Where
	field   int // that where compares
	chance  chance
	picks   source
	delay   sampler
	delays  source
	restamp bool
	newKey  bool
	redrawn []int // fields that are drawn anew
}

// outage is an Outage made ready: rows of the partition sent from on arrive on a line that starts at end.
type outage struct {
	partition int
	from, end stream.Time
	slope     uint64 // milliseconds of delivery a millisecond of sending, in units of 2^-32
}

// New makes a generated workload: a function of the spec and the seed alone. The spec must not be changed afterwards.
// The error joins all faults of the spec.
func New(spec Spec, seed uint64) (Workload, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	g := &generator{spec: spec, partitionBy: -1, transport: newSampler(spec.Transport)}
	for i, f := range spec.Fields {
		g.columns = append(g.columns, newColumn(f, newSource(seed, "hot values of "+f.Name)))
		g.schema.Columns = append(g.schema.Columns, f.Column())
		g.unique = g.unique || f.unique()
		if f.Stamp == Sent {
			g.sent = append(g.sent, i)
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
	for i, d := range spec.Duplicates {
		purpose := fmt.Sprintf("duplicate %d: ", i)
		r := rule{
			where:   d.Where,
			chance:  newChance(d.Rate),
			picks:   newSource(seed, purpose+"rate"),
			delay:   newSampler(d.Delay),
			delays:  newSource(seed, purpose+"delay"),
			restamp: d.Restamp,
			newKey:  d.NewID,
		}
		if d.Where != nil {
			r.field = g.schema.Index(d.Where.Field)
		}
		for f, field := range spec.Fields {
			newID := d.NewID && field.UUID && slices.Contains(g.keys, f)
			if newID || slices.Contains(d.Change, field.Name) {
				r.redrawn = append(r.redrawn, f)
			}
		}
		g.rules = append(g.rules, r)
		g.addOrigin(seed, r.redrawn)
	}
	g.addSources(seed)
	for _, o := range spec.Outage {
		slope := uint64(math.Round(math.Ldexp(spec.highestRate(o.Partition)/o.Flush, 32)))
		g.outages = append(g.outages, outage{o.Partition, o.From, o.From + o.For, slope})
	}
	g.timeline = newTimeline(spec, seed, g.partition)
	return g, nil
}

// addOrigin makes the random streams of the next origin, whose rows draw some fields anew.
func (g *generator) addOrigin(seed uint64, redrawn []int) {
	origin := len(g.sources)
	sources := make([]source, len(g.columns))
	for f, field := range g.spec.Fields {
		if origin > 0 && !slices.Contains(redrawn, f) {
			sources[f] = g.sources[0][f]
			continue
		}
		sources[f] = newSource(seed, fmt.Sprintf("field %s of origin %d", field.Name, origin))
	}
	g.sources = append(g.sources, sources)
	if f := &g.columns[g.keys[0]]; len(g.keys) == 1 && f.UUID && f.Null == 0 && f.Hot == nil {
		g.uuids = append(g.uuids, sources[g.keys[0]])
	}
	g.transports = append(g.transports, newSource(seed, fmt.Sprintf("transport of origin %d", origin)))
}

// key is the key of an event's row.
func (g *generator) key(origin int, draw uint64) stream.Key {
	if g.uuids != nil {
		return uuid(g.uuids[origin].at(draw))
	}
	return g.hashedKey(origin, draw)
}

// hashedKey is the key where it is not just a UUID.
func (g *generator) hashedKey(origin int, draw uint64) stream.Key {
	var scratch [128]byte
	hash := keyHash{scratch[:0]}
	for _, f := range g.keys {
		c, from := &g.columns[f], g.sources[origin][f]
		switch {
		case c.null(from, draw):
			hash.null()
		case c.UUID:
			id := uuid(c.at(from, draw))
			hash.number(int64(id.Hi))
			hash.number(int64(id.Lo))
		case c.numeric():
			hash.number(c.number(from, draw))
		default:
			hash.text(c.text(c.at(from, draw)))
		}
	}
	return hash.key()
}

// partition is where the rows of an event go.
func (g *generator) partition(draw uint64) int {
	if g.spec.Partitions == 1 {
		return 0
	}
	return g.partitionOf(draw, g.key(0, draw))
}

// partitionOf is where the rows of an event go whose original has the given key.
func (g *generator) partitionOf(draw uint64, key stream.Key) int {
	hash := stream.Mix(key.Hi ^ key.Lo) // as the column hashes it, if it is the key
	if f := g.partitionBy; f >= 0 && !(g.uuids != nil && f == g.keys[0]) {
		hash = g.columns[f].hash(g.sources[0][f], draw)
	}
	if g.shares != nil {
		return int(g.shares.pick(hash)) - 1
	}
	return int(below(hash, uint64(g.spec.Partitions)))
}

// concerns reports whether an event is one of those that a rule copies its share of.
func (g *generator) concerns(r *rule, draw uint64) bool {
	if r.where == nil {
		return true
	}
	n := g.columns[r.field].number(g.sources[0][r.field], draw)
	return n != stream.NullOrder && r.where.holds(n)
}

// sending is when a row is sent and when it arrives, in milliseconds from the start.
type sending struct {
	origin        int
	sent, arrival stream.Time
}

// send finds the times of the row that an event has of an origin.
func (g *generator) send(e event, origin, partition int) sending {
	sent := e.created()
	if origin > 0 {
		r := &g.rules[origin-1]
		sent += r.delay.draw(r.delays.at(e.draw))
	}
	arrival := sent + g.transport.draw(g.transports[origin].at(e.draw))
	for i := range g.slows {
		arrival += g.slows[i].delay(e.draw, origin, partition, sent)
	}
	for i := range g.outages {
		if o := &g.outages[i]; o.partition == partition && sent >= o.from {
			hi, lo := bits.Mul64(uint64(sent-o.from), o.slope)
			arrival = max(arrival, o.end+stream.Time(hi<<32|lo>>32))
		}
	}
	return sending{origin, sent, arrival}
}

// sendings appends the original and the copies of an event in the order of their copy number.
func (g *generator) sendings(to []sending, e event, partition int) []sending {
	to = append(to, g.send(e, 0, partition))
	for i := range g.rules {
		r := &g.rules[i]
		if r.chance.hits(r.picks.at(e.draw)) && g.concerns(r, e.draw) {
			to = append(to, g.send(e, i+1, partition))
		}
	}
	if g.finishes != nil {
		return g.untilFinish(to, partition)
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

// eventTime is the row's own timestamp, NullTime for NULL.
func (g *generator) eventTime(e event, s *sending, partition int) stream.Time {
	at := g.stamped(e, s)
	if g.trueTimes {
		return g.spec.Start + at
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

// Record implements stream.Records. A faker field costs microseconds, the rest nanoseconds.
func (g *generator) Record(tag stream.Tag) stream.Record {
	e, origin := g.timeline.event(tag.Event()), tag.Origin()
	record := make(stream.Record, 0, len(g.columns)+1)
	for f := range g.columns {
		if c := &g.columns[f]; c.Stamp == "" {
			record = append(record, c.value(g.sources[origin][f], e.draw))
		} else {
			at := g.stamp(e, origin, f)
			record = append(record, stream.Value{Null: at == stream.NullTime, Int: int64(at)})
		}
	}
	at := g.eventTimeOf(e, origin)
	return append(record, stream.Value{Null: at == stream.NullTime, Int: int64(at)})
}

// stamp is the value of a field that holds a moment, NullTime for NULL.
func (g *generator) stamp(e event, origin, f int) stream.Time {
	c := &g.columns[f]
	switch {
	case c.null(g.sources[origin][f], e.draw):
		return stream.NullTime
	case c.Stamp == Sent:
		return g.spec.Start + g.send(e, origin, g.partition(e.draw)).sent
	}
	return g.spec.Start + e.created()
}

// eventTimeOf is the timestamp of the row that an event has of an origin, NullTime for NULL.
func (g *generator) eventTimeOf(e event, origin int) stream.Time {
	partition := g.partition(e.draw)
	s := g.send(e, origin, partition)
	return g.eventTime(e, &s, partition)
}

// Order implements stream.Records.
func (g *generator) Order(tag stream.Tag, column int) int64 {
	if column == g.schema.Event {
		return int64(g.eventTimeOf(g.timeline.event(tag.Event()), tag.Origin())) // NullTime is NullOrder
	}
	switch g.schema.Columns[column].Type {
	case stream.String:
		panic(fmt.Sprintf("gen: column %q is text and has no numeric order", g.schema.Columns[column].Name))
	case stream.Timestamp:
		at := g.stamp(g.timeline.event(tag.Event()), tag.Origin(), column)
		if at == stream.NullTime {
			return stream.NullOrder
		}
		return int64(at)
	}
	c, from, draw := &g.columns[column], g.sources[tag.Origin()][column], g.timeline.draw(tag.Event())
	if c.plain {
		return c.ranged(from.at(draw))
	}
	return c.number(from, draw)
}

// Content implements stream.Records. Where a UUID tells the events apart it takes nanoseconds: the event, and what in
// a copy differs from the original. Otherwise it hashes all columns.
func (g *generator) Content(tag stream.Tag) uint64 {
	number, origin := tag.Event(), tag.Origin()
	if !g.unique {
		return g.contentOfAll(number, origin)
	}
	content := stream.Mix(number)
	if origin == 0 {
		return content
	}
	r := &g.rules[origin-1]
	if len(r.redrawn) > 0 {
		draw := g.timeline.draw(number)
		for _, f := range r.redrawn {
			c := &g.columns[f]
			was, is := c.hash(g.sources[0][f], draw), c.hash(g.sources[origin][f], draw)
			if is != was {
				content = fold(content, f, is)
			}
		}
	}
	if r.restamp || g.sent != nil || g.spec.EventTime.LogAppend {
		// When it was created matters to an outage, to a span of slowness, and to a wrong or coarse clock.
		e := event{draw: g.timeline.draw(number)}
		if g.outages != nil || g.slows != nil || !g.trueTimes {
			e = g.timeline.event(number)
		}
		partition := g.partition(e.draw)
		original, copied := g.send(e, 0, partition), g.send(e, origin, partition)
		for _, f := range g.sent {
			if copied.sent != original.sent && !g.columns[f].null(g.sources[0][f], e.draw) {
				content = fold(content, f, stream.Mix(uint64(copied.sent-original.sent)))
			}
		}
		if was, is := g.eventTime(e, &original, partition), g.eventTime(e, &copied, partition); is != was {
			content = fold(content, g.schema.Event, stream.Mix(uint64(is-was)))
		}
	}
	return content
}

func (g *generator) contentOfAll(number uint64, origin int) uint64 {
	e := g.timeline.event(number)
	content := stream.Mix(uint64(g.eventTimeOf(e, origin)))
	for f := range g.columns {
		if g.columns[f].Stamp != "" {
			content = fold(content, f, stream.Mix(uint64(g.stamp(e, origin, f))))
		} else {
			content = fold(content, f, g.columns[f].hash(g.sources[origin][f], e.draw))
		}
	}
	return content
}

// fold adds the hash of a column to the content of a row.
func fold(content uint64, column int, hash uint64) uint64 {
	return stream.Mix(content ^ stream.Mix(hash+uint64(column)+1))
}

func (g *generator) Arrival(tag stream.Tag) stream.Time {
	e := g.timeline.event(tag.Event())
	return g.spec.Start + g.send(e, tag.Origin(), g.partition(e.draw)).arrival
}

func (g *generator) FirstArrival(number uint64) stream.Time {
	first, _ := g.arrivals(number)
	return first
}

func (g *generator) LastArrival(number uint64) stream.Time {
	_, last := g.arrivals(number)
	return last
}

// arrivals are the first and the last arrival of the rows of an event.
func (g *generator) arrivals(number uint64) (first, last stream.Time) {
	var room [4]sending
	e := g.timeline.event(number)
	first, last = stream.MaxTime, stream.MinTime
	for _, s := range g.sendings(room[:0], e, g.partition(e.draw)) {
		first, last = min(first, s.arrival), max(last, s.arrival)
	}
	return g.spec.Start + first, g.spec.Start + last
}
