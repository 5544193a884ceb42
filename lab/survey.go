package lab

import (
	"deduplab/gen"
	"deduplab/results"
	"deduplab/sim"
	"deduplab/stream"
)

// survey measures the stream itself while it is delivered.
type survey struct {
	workload gen.Workload
	from, to stream.Time

	rows, firsts int64
	byOrigin     []int64
	newest       []stream.Time // by partition
	disorder     sim.Histogram
	horizon      sim.Histogram

	watermark stream.Time
	stairs    []results.Staircase
	nextStair stream.Time
	dots      []results.Arrival
	nextDot   stream.Time
	lastLate  stream.Time // event time of the last late row drawn
	lateDots  int
}

// How finely the stream is drawn: dots and steps over the span, and late rows beside the regular dots, apart in event
// time, so that a backlog delivered at once shows as a column.
const (
	arrivalDots  = 600
	lateRowDots  = 900
	lateApart    = 2000
	watermarkLen = 600
)

func newSurvey(w gen.Workload) *survey {
	from, to := w.Span()
	s := &survey{
		workload: w, from: from, to: to, byOrigin: make([]int64, len(w.Origins())),
		newest: make([]stream.Time, w.Partitions()), watermark: stream.MinTime, nextStair: from, nextDot: from,
	}
	for i := range s.newest {
		s.newest[i] = stream.MinTime
	}
	return s
}

// take measures a batch.
func (s *survey) take(b *sim.Batch) {
	row := 0
	for _, m := range b.Marks {
		s.measure(b.Rows[row:m.Before])
		row = m.Before
		if m.Kind == sim.CombinedWatermark {
			s.advance(m)
		}
	}
	s.measure(b.Rows[row:])
}

func (s *survey) advance(m sim.Mark) {
	s.watermark = m.Watermark
	if m.At >= s.nextStair && m.At <= s.to {
		s.stairs = append(s.stairs, results.Staircase{
			AtMS: int64(m.At - s.from), WatermarkMS: int64(m.Watermark - s.from),
		})
		s.nextStair = m.At + (s.to-s.from)/watermarkLen
	}
}

func (s *survey) measure(rows []stream.Row) {
	for i := range rows {
		r := &rows[i]
		s.rows++
		s.byOrigin[r.Tag.Origin()]++
		if r.First {
			s.firsts++
		} else {
			s.horizon.Add(r.Arrival - s.workload.FirstArrival(r.Tag.Event()))
		}
		if newest := s.newest[r.Partition]; newest != stream.MinTime && r.Event != stream.NullTime {
			s.disorder.Add(max(newest-r.Event, 0))
		}
		s.newest[r.Partition] = max(s.newest[r.Partition], r.Event)
		apart := max(r.Event-s.lastLate, s.lastLate-r.Event) >= (s.to-s.from)/lateApart
		late := r.Event < s.watermark && apart && s.lateDots < lateRowDots
		if (r.Arrival >= s.nextDot || late) && r.Arrival <= s.to && r.Event != stream.NullTime {
			s.draw(r, late)
		}
	}
}

func (s *survey) draw(r *stream.Row, late bool) {
	if late {
		s.lateDots++
		s.lastLate = r.Event
	}
	s.dots = append(s.dots, results.Arrival{
		AtMS: int64(r.Arrival - s.from), EventMS: int64(r.Event - s.from), Partition: int(r.Partition),
		Origin: s.workload.Origins()[r.Tag.Origin()], Late: r.Event < s.watermark,
	})
	if r.Arrival >= s.nextDot {
		s.nextDot = r.Arrival + (s.to-s.from)/arrivalDots
	}
}

func (s *survey) result() results.Workload {
	w := results.Workload{
		Rows: s.rows, Distinct: s.firsts, Copies: s.rows - s.firsts, ByOrigin: map[string]int64{},
		Labelled: s.workload.Labelled(), Partitions: s.workload.Partitions(),
		StartMS: int64(s.from), SpanMS: int64(s.to - s.from),
		DisorderMS: s.disorder.Quantiles(), HorizonMS: s.horizon.Quantiles(),
		Arrivals: s.dots, Watermark: s.stairs,
	}
	for i, origin := range s.workload.Origins() {
		w.ByOrigin[origin] += s.byOrigin[i]
	}
	return w
}
