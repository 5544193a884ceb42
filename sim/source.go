package sim

import "deduplab/stream"

// SourceSpec describes how a source makes its watermarks.
type SourceSpec struct {
	// Partition p is read by reader p % Readers. A reader without a partition is idle from the start.
	Partitions, Readers int
	// Delay is what a watermark stays behind the largest event time, Interval the auto-watermark interval, IdleAfter
	// the idle timeout (0: never idle).
	Delay, Interval, IdleAfter stream.Time
	// PerReader puts one WatermarkAssigner behind each reader; otherwise the watermark clause is pushed down into the
	// source, which makes watermarks per partition.
	PerReader bool
	// Start is the moment at which the source is opened.
	Start stream.Time
}

// SourceOutput takes the watermarks of a source.
type SourceOutput interface {
	// SourceWatermark is told the watermark of one reader, before the combined one that may follow from it.
	SourceWatermark(reader int, w stream.Time)
	// Watermark is told the watermark that all readers together have at the tasks behind the shuffle.
	Watermark(w stream.Time)
}

// Source makes the watermarks of all readers of a source and combines them. No network delay is modelled, so one
// [Valve] stands for those of all tasks behind the shuffle.
type Source struct {
	period  stream.Time
	readers []*reader
	valve   *Valve

	// By partition, one or the other; the generator of a finished partition is nil.
	assigners  []*SQLAssigner
	generators []*Generator
	splits     []*Split // of the generators
}

// reader is one source subtask, and the output of what makes its watermarks (Flink's WatermarkToDataOutput).
type reader struct {
	source    *Source
	out       SourceOutput
	index     int
	watermark stream.Time
	idle      bool
	reading   int // partitions that are not finished

	assigner    *SQLAssigner // per reader, or else:
	multiplexer *Multiplexer
}

// NewSource opens a source.
func NewSource(spec SourceSpec, out SourceOutput) *Source {
	s := &Source{period: spec.Interval, readers: make([]*reader, spec.Readers)}
	s.valve = NewValve(spec.Readers, combined{out})
	for i := range s.readers {
		r := &reader{source: s, out: out, index: i, watermark: stream.MinTime}
		r.multiplexer = NewMultiplexer(r)
		s.readers[i] = r
	}
	for p := range spec.Partitions {
		r := s.readers[p%spec.Readers]
		r.reading++
		if spec.PerReader {
			if r.assigner == nil {
				r.assigner = NewSQLAssigner(spec.Delay, spec.Interval, spec.IdleAfter, spec.Start, r)
				s.period = r.assigner.Period()
			}
			s.assigners = append(s.assigners, r.assigner)
			continue
		}
		s.generators = append(s.generators, newPushedDown(spec.Delay, spec.IdleAfter))
		s.splits = append(s.splits, r.multiplexer.Register())
	}
	for _, r := range s.readers[min(spec.Partitions, spec.Readers):] {
		r.Idle()
	}
	return s
}

// Period is how often the runtime is to call Tick, counted from SourceSpec.Start; 0: never.
func (s *Source) Period() stream.Time { return s.period }

// Row tells the event time of the row that a partition delivers. The runtime passes the row on first: a watermark that
// goes out here follows the row. NULL is ignored, since whether it fails the job is not for the source to say.
func (s *Source) Row(partition int, event stream.Time) {
	switch {
	case event == stream.NullTime:
	case s.assigners != nil:
		s.assigners[partition].Row(event) // fails on NULL only
	default:
		s.generators[partition].Row(event)
	}
}

// Tick is the periodic timer of all readers.
func (s *Source) Tick(now stream.Time) {
	for i, r := range s.readers {
		if r.reading == 0 {
			continue
		}
		if r.assigner != nil {
			r.assigner.Tick(now)
			continue
		}
		for p := i; p < len(s.generators); p += len(s.readers) {
			if g := s.generators[p]; g != nil {
				g.Periodic(now, s.splits[p])
			}
		}
		r.multiplexer.Periodic()
	}
}

// Finish tells that the last row of a partition has been read. Its split leaves the reader, which goes on with the
// others and ends with its last one: it sends MaxTime, for the source is one that finds no new partitions. (With
// partition discovery a reader of Flink 2.3 stays where it is when it is left without a split: FLINK-39586.) A channel
// that has ended is not idle, so that the watermark goes to MaxTime when all others are: FLINK-38477.
func (s *Source) Finish(partition int) {
	r := s.readers[partition%len(s.readers)]
	if r.assigner == nil {
		r.multiplexer.Unregister(s.splits[partition])
		s.generators[partition] = nil
	}
	if r.reading--; r.reading == 0 {
		r.Watermark(stream.MaxTime)
	}
}

// End ends the stream: every reader sends MaxTime.
func (s *Source) End() {
	for _, r := range s.readers {
		r.Watermark(stream.MaxTime)
	}
}

// Watermark passes a watermark on if it advances; it makes an idle reader active. So a reader whose splits are back
// from idle stays idle until their combined watermark advances.
func (r *reader) Watermark(w stream.Time) {
	if w <= r.watermark {
		return
	}
	r.watermark = w
	r.Active()
	r.out.SourceWatermark(r.index, w)
	r.source.valve.Watermark(r.index, w)
}

// Idle marks the reader idle.
func (r *reader) Idle() {
	if !r.idle {
		r.idle = true
		r.source.valve.Idle(r.index)
	}
}

// Active marks the reader active.
func (r *reader) Active() {
	if r.idle {
		r.idle = false
		r.source.valve.Active(r.index)
	}
}

// combined is the output of the valve. Whether all readers are idle makes no difference to a task.
type combined struct{ out SourceOutput }

func (c combined) Watermark(w stream.Time) { c.out.Watermark(w) }
func (combined) Idle()                     {}
func (combined) Active()                   {}
