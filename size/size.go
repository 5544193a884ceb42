// Package size tells how large a deduplication must be, and what it would still let through: the arithmetic behind
// tiers. A first tier remembers keys in the stream for a horizon; a second one is an insert-only MERGE at the sink that
// looks some days back; an audit counts, once a day over weeks, what both have missed.
//
// The horizon costs state, rate x horizon keys; the look-back costs reading, days + 1 dates of the table a batch, since
// date >= today - n touches n + 1 of them (spark sink-merge/backfill-beyond-lookback).
package size

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"deduplab/measure"
	"deduplab/stream"
)

// Schema names the version of the JSON.
const Schema = "deduplab/size/1"

// Stream is what must be known of a stream.
type Stream struct {
	Rate       float64 `json:"rows_per_second"`
	Duplicates float64 `json:"duplicates"` // share of the rows that are copies
	// NewKey is the share of the copies that carry another key than their original: no tier catches these.
	NewKey float64 `json:"new_key"`
	Delays []Point `json:"delays"` // in ascending order, to a share of 1
}

// Point of a distribution: this share of the copies comes at most so long after the first sighting of its key.
type Point struct {
	Within stream.Time `json:"within_ms"`
	Share  float64     `json:"share"`
}

// Options say what to plan with; what is 0, and a look-back of nil, is chosen.
type Options struct {
	Horizon      stream.Time // of the first tier; chosen: p99.9 of the delays, rounded up
	LookbackDays *int        // of the MERGE, 0 is the date of today alone; chosen: the longest delay, in days
	AuditDays    int         // chosen: 30, or ten look-backs
	BytesPerKey  float64     // of state; chosen: 100, the figure that planners use with RocksDB
	Partitions   int         // shuffle partitions that the state is spread over; chosen: 200, Spark's default
}

// Report is the plans for one stream.
type Report struct {
	Schema      string  `json:"schema"`
	Stream      Stream  `json:"stream"`
	BytesPerKey float64 `json:"bytes_per_key"`
	Partitions  int     `json:"partitions"`
	Plans       []Plan  `json:"plans"`
	// Measured is what a run took, if one was given.
	Measured []Measured `json:"measured,omitempty"`
}

// Plan is one way to spread the work over tiers.
type Plan struct {
	Tiers []Tier `json:"tiers"`
	// Left is the share of the copies that the last tier leaves at most, and LeftPerDay how many they are.
	Left       float64 `json:"left"`
	LeftPerDay float64 `json:"left_per_day"`
}

// Tier is one tier of a plan.
type Tier struct {
	Kind    Kind        `json:"kind"`
	Horizon stream.Time `json:"horizon_ms"` // how far it looks back
	// Of a tier in the stream: keys that are remembered at once, their bytes, and those of one shuffle partition.
	Keys              float64 `json:"keys,omitempty"`
	Bytes             float64 `json:"bytes,omitempty"`
	BytesPerPartition float64 `json:"bytes_per_partition,omitempty"`
	// Of a MERGE or an audit: dates of the table that are read each time, and the rows that these hold at most.
	Dates int     `json:"dates,omitempty"`
	Rows  float64 `json:"rows,omitempty"`
	// Left is the share of all copies that have not been caught behind the tier, at most.
	Left float64 `json:"left"`
}

// Kind is what a tier is.
type Kind string

// The kinds of tier.
const (
	InStream Kind = "stream"
	Merge    Kind = "merge"
	Audit    Kind = "audit"
)

const (
	daySeconds             = 24 * 3600
	day        stream.Time = daySeconds * 1000
)

// Plans plans for a stream: the first tier alone, one that holds the longest delay, the first tier with a MERGE behind
// it, and with an audit behind both.
func Plans(s Stream, o Options) (*Report, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	o.choose(s)
	r := &Report{Schema: Schema, Stream: s, BytesPerKey: o.BytesPerKey, Partitions: o.Partitions}
	first, whole := s.inStream(o.Horizon, o), s.inStream(max(measure.RoundUp(s.longest()), o.Horizon), o)
	merge, audit := s.merge(*o.LookbackDays), s.audit(o.AuditDays)
	r.add(s, first)
	if whole.Horizon != first.Horizon {
		r.add(s, whole)
	}
	r.add(s, first, merge)
	r.add(s, first, merge, audit)
	return r, nil
}

func (s *Stream) validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	check(s.Rate > 0 && s.Rate <= 1e12, "the rate of %v rows a second must be above 0 and at most 1e12", s.Rate)
	check(s.Duplicates >= 0 && s.Duplicates < 1, "a share of %v of copies must be at least 0 and below 1", s.Duplicates)
	check(s.NewKey >= 0 && s.NewKey <= 1, "a share of %v of copies with a new key must be from 0 to 1", s.NewKey)
	check(len(s.Delays) > 0 && s.Delays[len(s.Delays)-1].Share == 1, "the delays do not say what the longest one is")
	byTime := func(a, b Point) int { return cmp.Compare(a.Within, b.Within) }
	sorted := slices.IsSortedFunc(s.Delays, byTime)
	for i, p := range s.Delays {
		sorted = sorted && p.Within >= 0 && p.Share >= 0 && (i == 0 || p.Share >= s.Delays[i-1].Share)
	}
	check(sorted, "delays must grow with their shares")
	return errors.Join(faults...)
}

// choose fills in what is left open.
func (o *Options) choose(s Stream) {
	if o.Horizon == 0 {
		o.Horizon = measure.RoundUp(s.quantile(0.999))
	}
	if o.LookbackDays == nil {
		o.LookbackDays = new(int((s.longest() + day - 1) / day))
	}
	if o.AuditDays == 0 {
		o.AuditDays = max(30, 10**o.LookbackDays)
	}
	if o.BytesPerKey == 0 {
		o.BytesPerKey = 100
	}
	if o.Partitions == 0 {
		o.Partitions = 200
	}
}

// add adds a plan. What one tier leaves the next one may catch.
func (r *Report) add(s Stream, tiers ...Tier) {
	tiers = slices.Clone(tiers)
	left := 1.0
	for i := range tiers {
		left = min(left, tiers[i].Left)
		tiers[i].Left = left
	}
	perDay := left * s.Rate * s.Duplicates * daySeconds
	r.Plans = append(r.Plans, Plan{Tiers: tiers, Left: left, LeftPerDay: perDay})
}

func (s *Stream) inStream(horizon stream.Time, o Options) Tier {
	keys := s.Rate * float64(horizon) / 1000
	bytes := keys * o.BytesPerKey
	return Tier{Kind: InStream, Horizon: horizon, Keys: keys, Bytes: bytes,
		BytesPerPartition: bytes / float64(o.Partitions), Left: s.beyond(horizon)}
}

func (s *Stream) merge(days int) Tier {
	return Tier{Kind: Merge, Horizon: stream.Time(days) * day, Dates: days + 1,
		Rows: s.Rate * daySeconds * float64(days+1), Left: s.beyond(stream.Time(days) * day)}
}

func (s *Stream) audit(days int) Tier {
	return Tier{Kind: Audit, Horizon: stream.Time(days) * day, Dates: days,
		Rows: s.Rate * daySeconds * float64(days), Left: s.beyond(stream.Time(days-1) * day)}
}

// beyond is the share of the copies that no memory of their key for so long would catch, as far as the points tell: at
// most that. At the very millisecond engines differ: a TTL of Flink has expired, Spark still knows the key.
func (s *Stream) beyond(within stream.Time) float64 {
	caught := 0.0
	for _, p := range s.Delays {
		if p.Within <= within {
			caught = p.Share
		}
	}
	return s.NewKey + (1-s.NewKey)*(1-caught)
}

// quantile is the shortest known span within which the share comes.
func (s *Stream) quantile(share float64) stream.Time {
	for _, p := range s.Delays {
		if p.Share >= share {
			return p.Within
		}
	}
	return s.longest()
}

func (s *Stream) longest() stream.Time { return s.Delays[len(s.Delays)-1].Within }
