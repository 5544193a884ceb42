package gen

import (
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/stat/distuv"

	"deduplab/stream"
)

// event is one logical event as the timeline makes it.
type event struct {
	number uint64 // dense, from 0
	// draw is the place of the event in every random stream. It is the number of the event, and above its 34 bits how
	// many candidates before it fell into a silence of their partition and were never created.
	draw uint64
	at   uint64 // creation in ticks from the start
	// clock is the creation on the clock of the load, which is at when the rate is constant.
	clock uint64
}

// created is the creation in milliseconds from the start.
func (e event) created() stream.Time { return stream.Time(e.at >> tickBits) }

const drawAttempt = stream.MaxEvents // what one more candidate adds to a draw

// timeline knows when events are created: a Poisson process that follows the load, thinned by the silences. It is
// walked event by event; a mark each few events makes any place of it quick to find.
type timeline struct {
	gaps      quantiles // between two candidates, in ticks
	gapSource source
	warp      *warp // nil for a constant rate
	silences  []silence
	partition func(event) int // of a candidate

	mu    sync.Mutex   // held to add a mark
	known atomic.Int64 // how many marks there are
	marks []*markChunk // made when needed
}

// Mark i is the creation of event i*markEvery-1 on the clock. Marks take a quarter of a byte for each event.
const (
	markEvery  = 32
	chunkMarks = 4096
)

type markChunk [chunkMarks]uint64

// silence is a span in ticks in which a partition creates no events.
type silence struct {
	partition int
	from, to  uint64
}

// silences are the spans in which a partition creates no events, be it for a while or for good.
func (s Spec) silences() []silence {
	var all []silence
	for _, silent := range s.Silent {
		from, to := uint64(silent.From)<<tickBits, uint64(silent.From+silent.For)<<tickBits
		all = append(all, silence{silent.Partition, from, to})
	}
	for _, f := range s.Finished {
		all = append(all, silence{f.Partition, uint64(f.At) << tickBits, uint64(s.Duration) << tickBits})
	}
	return all
}

func newTimeline(s Spec, seed uint64, partition func(event) int) *timeline {
	perTick := s.Rate / 1000 / tickPerMs
	t := &timeline{
		gaps:      newQuantiles(distuv.Exponential{Rate: perTick}.Quantile, float64(longest)*tickPerMs),
		gapSource: newSource(seed, "gap"),
		warp:      newWarp(s.Load),
		partition: partition,
	}
	t.silences = s.silences()
	// Room for 2 % and ten marks more than are expected; past the last mark the timeline is walked, only slower.
	expected := s.expected() / markEvery
	t.marks = make([]*markChunk, int(expected*1.02+10)/chunkMarks+1)
	t.marks[0] = new(markChunk)
	t.known.Store(1)
	return t
}

// first is the place before event 0: next leads to it.
func first() event { return event{number: ^uint64(0)} }

// next is the event after e.
func (t *timeline) next(e event) event {
	e.number++
	if e.number%markEvery == 0 {
		t.mark(int64(e.number/markEvery), e.clock)
	}
	e.draw = e.number
	t.proceed(&e)
	for t.silences != nil && t.silent(e) {
		e.draw += drawAttempt
		t.proceed(&e)
	}
	return e
}

// proceed moves a candidate on by the gap of its draw.
func (t *timeline) proceed(e *event) {
	e.clock += t.gaps.at(t.gapSource.at(e.draw))
	e.at = e.clock
	if t.warp != nil {
		e.at = t.warp.real(e.clock)
	}
}

// silent reports whether the partition of a candidate is silent when it would be created.
func (t *timeline) silent(e event) bool {
	for _, s := range t.silences {
		if s.from <= e.at && e.at < s.to && s.partition == t.partition(e) {
			return true
		}
	}
	return false
}

// event finds an event by its number.
func (t *timeline) event(number uint64) event {
	mark := min(int64(number/markEvery), t.known.Load()-1)
	e := event{number: uint64(mark)*markEvery - 1, clock: t.marked(mark)}
	for e = t.next(e); e.number < number; {
		e = t.next(e)
	}
	return e
}

// draw finds the draw of an event; unlike event it does so at once unless a silence is near.
func (t *timeline) draw(number uint64) uint64 {
	if t.silences == nil {
		return number
	}
	mark := int64(number / markEvery)
	if mark+1 >= t.known.Load() {
		return t.event(number).draw
	}
	from, to := t.marked(mark), t.marked(mark+1)
	if t.warp != nil {
		from, to = t.warp.real(from), t.warp.real(to)
	}
	for _, s := range t.silences {
		if s.from <= to && from < s.to {
			return t.event(number).draw
		}
	}
	return number
}

// marked reads one of the known marks.
func (t *timeline) marked(mark int64) uint64 { return t.marks[mark/chunkMarks][mark%chunkMarks] }

// mark notes the creation of the event before a mark, if nobody has before and there is room.
func (t *timeline) mark(mark int64, at uint64) {
	if mark != t.known.Load() || mark/chunkMarks >= int64(len(t.marks)) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if mark != t.known.Load() {
		return
	}
	if mark%chunkMarks == 0 {
		t.marks[mark/chunkMarks] = new(markChunk)
	}
	t.marks[mark/chunkMarks][mark%chunkMarks] = at
	t.known.Store(mark + 1)
}
