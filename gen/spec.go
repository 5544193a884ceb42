package gen

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"deduplab/stream"
)

// Spec describes a generated workload. The zero value of a part means that the part is absent.
type Spec struct {
	Start    stream.Time // the moment the scenario starts
	Duration stream.Time // span in which originals are created
	// Rate is the mean number of originals a second over all partitions (a Poisson process).
	Rate float64
	Load Load // how the rate changes; its multiples of Rate need not have a mean of 1

	Fields []Field
	Key    []string // columns of the deduplication key

	EventTime EventTime

	Partitions  int    // number of source partitions, at least 1
	PartitionBy string // field whose hash picks the original's partition, "": the key
	// PartitionShare is, by partition, the share of all hashes that picks it; shares add up to 1. Nil: equal shares. A
	// field of few values fills the partitions only as evenly as its values hash.
	PartitionShare []float64

	Transport Delay // from creation to arrival, drawn for each row by itself: this is what makes disorder
	Silent    []Silence
	Outage    []Outage
	Slow      []Slow
	Finished  []Finish
	Clock     []Clock

	Duplicates []Duplicate
}

// Scaled is the spec of a stream with so many times the events, spread over the same time.
func (s Spec) Scaled(times float64) Spec {
	s.Rate *= times
	s.Outage = slices.Clone(s.Outage)
	for i := range s.Outage {
		s.Outage[i].Flush *= times
	}
	return s
}

// EventTime says where a row's own timestamp comes from.
type EventTime struct {
	Field string // name of the column
	// LogAppend stamps every row, copies too, with the moment it arrives at the log (transport delay included), so
	// that an original and its copy differ. Otherwise the event time is the creation of the original.
	LogAppend bool
	// Resolution floors event times to its multiples since 1970, so that rows tie: 1 s for a column in seconds.
	// 0: milliseconds.
	Resolution stream.Time
	// Null is the share of events in whose rows the event time is NULL. Flink's watermark assigner fails the job on
	// NULL (watermark/sql-null-rowtime), Spark takes such a row and never holds it for late.
	Null float64
}

// Silence is a span in which a partition creates no events.
type Silence struct {
	Partition int
	From, For stream.Time // From counts from the start of the scenario
}

// Outage is a span in which the events of a partition are created but not delivered. They arrive in order of creation
// after it, at Flush rows a second, so that they can be late. Flush must exceed the partition's share of the highest
// rate, or the backlog might never end.
type Outage struct {
	Partition int
	From, For stream.Time
	Flush     float64
}

// Duplicate is a rule that copies originals. Rules are independent of each other.
type Duplicate struct {
	Origin string  // how the copy came about: copy, producer-retry, client-resend, ...
	Where  *Where  // which originals it concerns; nil: all
	Rate   float64 // share of those that are copied, 0 to 1
	Copies Copies  // how many copies each of them has
	// Delay counts from the creation of the original, or from when Flood gets to it; the copy then has a transport
	// delay of its own, unless SameTransport says otherwise. Each copy draws its own, so that many copies of one event spread out as the distribution does,
	// its tail included; the copy with the higher number is not always the later one.
	Delay Delay
	// SameTransport gives the copy its original's transport delay, so that Delay lies between their arrivals.
	SameTransport bool
	// Flood re-sends the originals of a range of time, and no others, at one moment.
	Flood *Flood
	// NewID draws the UUIDs of the key anew for each copy: a retry that makes a new id. With ConstantID all copies of
	// all events carry one id, that of Reuse.Constant.
	NewID, ConstantID bool
	// Restamp gives the copy its own event time: the moment it was sent.
	Restamp bool
	// OtherPartition sends each copy to another partition than its original's; by default it stays there.
	OtherPartition bool
	// SameOffset says that the original was read again from its place in the log, so that the fields that say where it
	// was read from, when it was sent and how often are the original's. Otherwise the copy was written to the log anew.
	SameOffset bool
	// Change lists the fields, none of them of the key, that are drawn anew for the copy, so that its payload differs.
	Change []string
}

// Where compares a numeric field of the original with a constant.
type Where struct {
	Field string
	Op    string // <, <=, >, >=, ==, !=
	Value int64  // in hundredths for a Decimal field
}

// Validate reports everything that is wrong with the spec, each fault naming its part.
func (s Spec) Validate() error {
	c := &checker{spec: s}
	c.shape()
	c.fields()
	c.partitions()
	c.duplicates()
	c.horizon()
	return errors.Join(c.faults...)
}

// checker collects the faults of a spec.
type checker struct {
	spec   Spec
	faults []error
}

func (c *checker) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

// field finds a field by name.
func (c *checker) field(name string) (Field, bool) {
	i := slices.IndexFunc(c.spec.Fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return c.spec.Fields[i], true
}

// fieldNames lists the fields for a message.
func (c *checker) fieldNames() string {
	var names []string
	for _, f := range c.spec.Fields {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// maxRate keeps the mean gap between originals well above the resolution of time.
const maxRate = 1e6

func (c *checker) shape() {
	s := c.spec
	if s.Start < 0 {
		c.fault("start: %v lies before 1970", s.Start)
	}
	if s.Duration <= 0 {
		c.fault("duration: %d ms must be positive", s.Duration)
	}
	if !(s.Rate > 0 && s.Rate <= maxRate) {
		c.fault("rate: %v rows a second must be above 0 and at most %.0f", s.Rate, maxRate)
	} else if faults := s.Load.check(); faults != nil {
		c.faults = append(c.faults, faults...)
	} else if w := newWarp(s.Load); w != nil && s.Duration < longest/8 && uint64(s.Duration)<<tickBits > w.limit() {
		c.fault("load: the rate is too many times the plain one for %d ms; raise the plain one", s.Duration)
	} else if events := s.expected(); s.Duration > 0 && s.Duration < longest/8 && events > 0.99*stream.MaxEvents {
		c.fault("rate: %v rows a second for %d ms make %.3g events, more than %.3g", s.Rate, s.Duration, events,
			float64(stream.MaxEvents))
	}
	if s.EventTime.Field == "" {
		c.fault("event_time: the field has no name")
	}
	if s.EventTime.Resolution < 0 || s.EventTime.Resolution >= longest/8 {
		c.fault("event_time.resolution: %d ms must be from 0 to 4 years", s.EventTime.Resolution)
	}
	if !(s.EventTime.Null >= 0 && s.EventTime.Null <= 1) {
		c.fault("event_time.nulls: the share %v must be from 0 to 1", s.EventTime.Null)
	}
	if err := s.Transport.check("transport"); err != nil {
		c.faults = append(c.faults, err)
	}
}

func (c *checker) partitions() {
	s := c.spec
	if s.Partitions < 1 || s.Partitions > 1<<16-1 {
		c.fault("partitions: %d must be from 1 to 65535", s.Partitions)
	}
	if f, ok := c.field(s.PartitionBy); !ok && s.PartitionBy != "" {
		c.fault("partitions.by: there is no field %q (there are: %s)", s.PartitionBy, c.fieldNames())
	} else if f.Stamp != "" {
		c.fault("partitions.by: field %q is a moment, which cannot pick a partition", s.PartitionBy)
	} else if f.Retry {
		c.fault("partitions.by: field %q is 0 in all originals, so it cannot pick a partition", s.PartitionBy)
	}
	c.shares()
	span := func(name string, partition int, from, length stream.Time) {
		c.partition(name, partition)
		if from < 0 {
			c.fault("%s.from: %d ms is negative", name, from)
		}
		if length <= 0 {
			c.fault("%s.for: %d ms must be positive", name, length)
		}
	}
	for i, silent := range s.Silent {
		span(fmt.Sprintf("silent[%d]", i), silent.Partition, silent.From, silent.For)
	}
	for i, outage := range s.Outage {
		name := fmt.Sprintf("outage[%d]", i)
		span(name, outage.Partition, outage.From, outage.For)
		if own := s.highestRate(outage.Partition); !(outage.Flush > own) {
			c.fault("%s.flush: %v rows a second must exceed the partition's own %v, or the backlog never ends", name,
				outage.Flush, own)
		}
	}
	c.thinned()
	c.slow()
	c.finished()
	c.clocks()
}

// thinned refuses what would take for ever to look up: which events a silent partition has left out decides whose id an
// event has, and its id decides whether it is left out.
func (c *checker) thinned() {
	s := c.spec
	by := s.Key
	if s.PartitionBy != "" {
		by = []string{s.PartitionBy}
	}
	if s.Partitions < 2 || len(s.Silent)+len(s.Finished) == 0 {
		return
	}
	for _, name := range by {
		if f, _ := c.field(name); f.Reuse != nil && !f.Reuse.Constant {
			c.fault("partitions.by: %q is an id that is used again, which cannot pick the partition where one is silent "+
				"or finished; name another field", name)
		}
	}
}

func (c *checker) duplicates() {
	s := c.spec
	if len(s.Duplicates) >= stream.MaxOrigins {
		c.fault("duplicates: %d rules are more than the %d that there can be", len(s.Duplicates), stream.MaxOrigins-1)
	}
	most := int64(1)
	for i, d := range s.Duplicates {
		name := fmt.Sprintf("duplicates[%d]", i)
		if d.Origin == "" {
			c.fault("%s.origin: is missing", name)
		}
		if !(d.Rate >= 0 && d.Rate <= 1) {
			c.fault("%s.rate: %v must be from 0 to 1", name, d.Rate)
		}
		if err := d.Delay.check(name + ".delay"); err != nil {
			c.faults = append(c.faults, err)
		}
		faults := d.Copies.check(name + ".copies")
		if faults == nil {
			most += d.Copies.Most()
		}
		if d.Flood != nil {
			faults = append(faults, d.Flood.check(name)...)
		}
		c.faults = append(c.faults, faults...)
		if d.Where != nil {
			c.where(name+".where", *d.Where)
		}
		if d.OtherPartition && s.Partitions == 1 {
			c.fault("%s.partition: there is no other partition", name)
		}
		isID := func(key string) bool { f, _ := c.field(key); return f.UUID && f.Null == 0 && f.Hot == nil }
		if (d.NewID || d.ConstantID) && !slices.ContainsFunc(s.Key, isID) {
			c.fault("%s.new_id: the key has no uuid field that could be made anew, never NULL and never hot", name)
		}
		for _, change := range d.Change {
			switch f, ok := c.field(change); {
			case change == s.EventTime.Field:
				c.fault("%s.change: %q is the event time, for which there is restamp", name, change)
			case !ok:
				c.fault("%s.change: there is no field %q (there are: %s)", name, change, c.fieldNames())
			case slices.Contains(s.Key, change):
				c.fault("%s.change: %q is part of the key, for which there is new_id", name, change)
			case !f.drawn():
				c.fault("%s.change: %q is not drawn by chance, so a copy cannot draw it anew", name, change)
			}
		}
	}
	if most > stream.MaxCopies {
		c.fault("duplicates: the rules can make %d rows of one event, more than %d", most, stream.MaxCopies)
	}
}

func (c *checker) where(name string, w Where) {
	f, ok := c.field(w.Field)
	switch {
	case !ok:
		c.fault("%s: there is no field %q (there are: %s)", name, w.Field, c.fieldNames())
	case !f.numeric():
		c.fault("%s: field %q is not a number", name, w.Field)
	}
	if !slices.Contains(operators, w.Op) {
		c.fault("%s: unknown operator %q (there are: %s)", name, w.Op, strings.Join(operators, " "))
	}
}

var operators = []string{"<", "<=", ">", ">=", "==", "!="}

// holds applies the comparison.
func (w Where) holds(v int64) bool {
	switch w.Op {
	case "<":
		return v < w.Value
	case "<=":
		return v <= w.Value
	case ">":
		return v > w.Value
	case ">=":
		return v >= w.Value
	case "==":
		return v == w.Value
	}
	return v != w.Value
}

// horizon checks that the last row arrives within what times are kept in.
func (c *checker) horizon() {
	if len(c.faults) > 0 {
		return
	}
	s := c.spec
	spans := []stream.Time{s.Duration, limitOf(s.Transport)}
	for _, d := range s.Duplicates {
		spans = append(spans, limitOf(d.Delay))
		if d.Flood != nil {
			spans = append(spans, d.Flood.end(s))
		}
	}
	for _, f := range s.Fields {
		if f.Reuse != nil {
			spans = append(spans, limitOf(f.Reuse.After))
		}
	}
	for _, silent := range s.Silent {
		spans = append(spans, silent.From, silent.For)
	}
	for _, outage := range s.Outage {
		spans = append(spans, outage.From, outage.For)
	}
	for _, slow := range s.Slow {
		spans = append(spans, slow.From, slow.For, limitOf(slow.Delay))
	}
	for _, span := range spans {
		if span >= longest/8 {
			c.fault("duration: a span of %d ms is longer than 2^37 ms, about 4 years; a long delay needs a cap", span)
			return
		}
	}
}
