package lab

import (
	"cmp"
	"math/bits"
	"slices"

	"deduplab/gen"
	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/stream"
)

// survey measures the stream itself while it is delivered.
type survey struct {
	workload gen.Workload
	from, to stream.Time

	rows, firsts int64
	digest       uint64 // of the rows in their order
	byOrigin     []int64
	newest       []stream.Time // by partition
	disorder     sim.Histogram
	horizon      sim.Histogram

	watermark stream.Time
	advanced  stream.Time // when the watermark came to be what it is
	stairs    []results.Staircase
	nextStair stream.Time

	dots    []results.Arrival
	nextDot []stream.Time // by partition
	late    lateDots

	keys     []*keyCount
	amount   func(stream.Tag) int64 // nil: nothing is summed
	column   stream.Column          // that is summed
	expected int64
}

// How finely the stream is drawn over the span: dots of all partitions together, and steps of the watermark.
const (
	arrivalDots  = 1500
	watermarkLen = 600
)

func newSurvey(w gen.Workload, scenario scenarios.Workload) *survey {
	from, to := w.Span()
	s := &survey{
		workload: w, from: from, to: to, byOrigin: make([]int64, len(w.Origins())),
		newest: make([]stream.Time, w.Partitions()), watermark: stream.MinTime, nextStair: from,
		nextDot: make([]stream.Time, w.Partitions()), late: newLateDots(to - from), keys: newKeyCounts(scenario, w),
	}
	if schema := w.Schema(); scenario.Amount != "" {
		column := schema.Index(scenario.Amount)
		s.amount, s.column = amountOf(w, column), schema.Columns[column]
	}
	for i := range s.newest {
		s.newest[i], s.nextDot[i] = stream.MinTime, from
	}
	return s
}

// read measures a batch.
func (s *survey) read(b *sim.Batch) {
	row := 0
	for _, m := range b.Marks {
		s.measure(b.Rows[row:m.Before])
		row = m.Before
		switch m.Kind {
		case sim.CombinedWatermark:
			s.advance(m)
		case sim.Sample:
			for _, k := range s.keys {
				k.sample()
			}
		}
	}
	s.measure(b.Rows[row:])
}

// advance draws a step of the watermark, one in a while; and where it stood still for long, the end of its stand, so
// that the drawing shows how far behind it fell.
func (s *survey) advance(m sim.Mark) {
	every, drawn := (s.to-s.from)/watermarkLen, m.At <= s.to
	if drawn && s.watermark != stream.MinTime && m.At-s.advanced > max(every/4, 1) {
		s.step(m.At - 1)
	}
	s.watermark, s.advanced = m.Watermark, m.At
	if drawn && m.At >= s.nextStair {
		s.step(m.At)
		s.nextStair = m.At + every
	}
}

func (s *survey) step(at stream.Time) {
	s.stairs = append(s.stairs, results.Staircase{
		AtMS: int64(at - s.from), WatermarkMS: int64(s.watermark - s.from),
	})
}

func (s *survey) measure(rows []stream.Row) {
	for i := range rows {
		r := &rows[i]
		s.rows++
		for _, part := range [...]uint64{
			r.Key.Hash(), uint64(r.Event), uint64(r.Arrival), uint64(r.Partition), uint64(r.Tag),
		} {
			s.digest = stream.Mix(s.digest ^ part)
		}
		s.byOrigin[r.Tag.Origin()]++
		if r.First {
			s.firsts++
			if s.amount != nil {
				s.expected += s.amount(stream.NewTag(r.Tag.Event(), 0, 0))
			}
		} else {
			s.horizon.Add(r.Arrival - s.workload.FirstArrival(r.Tag.Event()))
		}
		if newest := s.newest[r.Partition]; newest != stream.MinTime && r.Event != stream.NullTime {
			s.disorder.Add(max(newest-r.Event, 0))
		}
		s.newest[r.Partition] = max(s.newest[r.Partition], r.Event)
		if r.Arrival <= s.to && r.Event != stream.NullTime {
			s.draw(r)
		}
		for _, k := range s.keys {
			k.read(r)
		}
	}
}

// draw keeps a row of each partition at regular intervals, and of the late rows beside them one for each place in the
// picture.
func (s *survey) draw(r *stream.Row) {
	late, due := r.Event < s.watermark, r.Arrival >= s.nextDot[r.Partition]
	if !late && !due {
		return
	}
	dot := results.Arrival{
		AtMS: int64(r.Arrival - s.from), EventMS: int64(r.Event - s.from), Partition: int(r.Partition),
		Origin: s.workload.Origins()[r.Tag.Origin()], Late: late,
	}
	if due {
		s.dots = append(s.dots, dot)
		s.nextDot[r.Partition] = r.Arrival + (s.to-s.from)*stream.Time(len(s.nextDot))/arrivalDots
	} else {
		s.late.add(dot)
	}
}

// lateDots thins out late rows: of those that stand at one place in the picture, which is their arrival by how far they
// are behind on a logarithmic scale, it keeps the first. When there are too many, places grow.
type lateDots struct {
	span  stream.Time
	grown int
	taken map[place]bool
	dots  []results.Arrival
}

// place is a cell of the picture, and what else tells rows in it apart.
type place struct {
	column, octave, step int64
	partition            int
	origin               string
}

// The finest grid of places, and how many may be taken before it is made coarser.
const (
	lateColumns  = 1000 // over the span
	lateStepBits = 3    // 8 steps each time that a row is twice as far behind
	lateLimit    = 1000
)

func newLateDots(span stream.Time) lateDots {
	return lateDots{span: max(span, 1), taken: map[place]bool{}}
}

func (l *lateDots) place(a results.Arrival) place {
	lag := uint64(max(a.AtMS-a.EventMS, 1))
	octave := bits.Len64(lag)
	return place{
		column: a.AtMS * lateColumns / int64(l.span) >> l.grown,
		octave: int64(octave), step: int64(lag >> max(octave-1-max(lateStepBits-l.grown, 0), 0)),
		partition: a.Partition, origin: a.Origin,
	}
}

func (l *lateDots) add(a results.Arrival) {
	p := l.place(a)
	if l.taken[p] {
		return
	}
	l.taken[p] = true
	l.dots = append(l.dots, a)
	if len(l.dots) > lateLimit {
		l.grown++
		all := l.dots
		l.dots = all[:0:0]
		clear(l.taken)
		for _, a := range all {
			l.add(a)
		}
	}
}

func (s *survey) result() results.Workload {
	w := results.Workload{
		Rows: s.rows, Distinct: s.firsts, Copies: s.rows - s.firsts, ByOrigin: map[string]int64{},
		Labelled: s.workload.Labelled(), Partitions: s.workload.Partitions(),
		StartMS: int64(s.from), SpanMS: int64(s.to - s.from),
		DisorderMS: s.disorder.Quantiles(), HorizonMS: s.horizon.Quantiles(),
		Arrivals: append(s.dots, s.late.dots...), Watermark: s.stairs,
	}
	slices.SortStableFunc(w.Arrivals, func(a, b results.Arrival) int { return cmp.Compare(a.AtMS, b.AtMS) })
	for i, origin := range s.workload.Origins() {
		w.ByOrigin[origin] += s.byOrigin[i]
	}
	return w
}

// keyResults are what each key makes of the stream.
func (s *survey) keyResults() []results.Key {
	var out []results.Key
	for _, k := range s.keys {
		out = append(out, k.result(s.expected, s.column))
	}
	return out
}

// keysAt is the number of distinct keys by sample of the state; nil for the workload's own key.
func (s *survey) keysAt(key *gen.Key) []int64 {
	for _, k := range s.keys {
		if key != nil && k.key.Name == key.Name {
			return k.distinct
		}
	}
	return nil
}
