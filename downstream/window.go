package downstream

import (
	"slices"

	"deduplab/stream"
)

// WindowAggregate is SELECT COUNT(*), SUM(column) in tumbling windows, in the two phases that Flink plans: a buffer in
// the chain of the deduplication, a buffer behind the shuffle, keyed state. As in tumble-agg, late rows are
// pre-aggregated first, so that the counter of late rows counts windows.
type WindowAggregate struct {
	outbox
	spec      WindowSpec
	watermark stream.Time
	next      stream.Time // the watermark from which on the first phase looks again
	local     buffer
	global    buffer
	state     map[stream.Time]sums // by window end
	late      int64
}

// WindowSpec says what a WindowAggregate does.
type WindowSpec struct {
	Size   stream.Time
	Time   int // the event-time column
	Column int
	// Retracts says that its input is declared to have more than inserts: then a window from which everything was taken
	// back sends nothing.
	Retracts bool
	// OnePhase leaves the first phase out: then the counter of late rows counts rows.
	OnePhase bool
}

// buffer holds what waits in memory, by window end.
type buffer map[stream.Time]sums

// ends lists the windows in their order.
func (b buffer) ends() []stream.Time {
	ends := make([]stream.Time, 0, len(b))
	for end := range b {
		ends = append(ends, end)
	}
	slices.Sort(ends)
	return ends
}

func (b buffer) add(end stream.Time, s sums) {
	s.merge(b[end])
	b[end] = s
}

// NewWindowAggregate makes a WindowAggregate.
func NewWindowAggregate(spec WindowSpec) *WindowAggregate {
	return &WindowAggregate{spec: spec, watermark: stream.MinTime, local: buffer{}, global: buffer{},
		state: map[stream.Time]sums{}}
}

// Change handles one change.
func (a *WindowAggregate) Change(kind stream.Kind, row stream.Record, _ stream.Time) {
	var s sums
	s.add(kind, row[a.spec.Column])
	end := stream.Time(row[a.spec.Time].Int).Floor(a.spec.Size) + a.spec.Size
	if a.spec.OnePhase {
		a.receive(end, s)
	} else {
		a.local.add(end, s)
	}
}

// receive takes what belongs to a window into the buffer behind the shuffle, unless the window has fired.
func (a *WindowAggregate) receive(end stream.Time, s sums) {
	if end-1 <= a.watermark {
		a.late++
	} else {
		a.global.add(end, s)
	}
}

// Watermark fires the windows that end by it. The first phase counts watermarks from 0: flink tumble-agg/negative-time.
func (a *WindowAggregate) Watermark(w, _ stream.Time) {
	if w > 0 && w >= a.next {
		if fires(a.local, w) {
			a.handOn()
		}
		a.next = w
		if w < stream.MaxTime {
			if a.next = w.Floor(a.spec.Size) + a.spec.Size - 1; a.next <= w {
				a.next += a.spec.Size
			}
		}
	}
	if fires(a.global, w) {
		a.flush()
	}
	a.watermark = w
	for _, end := range buffer(a.state).ends() {
		if end-1 > w {
			break
		}
		s := a.state[end]
		delete(a.state, end)
		if !a.spec.Retracts || s.count != 0 {
			bounds := []stream.Value{{Int: int64(end - a.spec.Size)}, {Int: int64(end)}}
			a.send(stream.Insert, append(bounds, s.values()...)...)
		}
	}
}

// fires reports whether a watermark ends a window of the buffer.
func fires(b buffer, w stream.Time) bool {
	for end := range b {
		if end-1 <= w {
			return true
		}
	}
	return false
}

// Checkpoint moves both buffers to keyed state.
func (a *WindowAggregate) Checkpoint(stream.Time) {
	a.handOn()
	a.flush()
}

// handOn sends the first phase's windows through the shuffle.
func (a *WindowAggregate) handOn() {
	for _, end := range a.local.ends() {
		a.receive(end, a.local[end])
	}
	clear(a.local)
}

func (a *WindowAggregate) flush() {
	for end, s := range a.global {
		buffer(a.state).add(end, s)
	}
	clear(a.global)
}

// State tells what the operator holds: one timer for each window in keyed state.
func (a *WindowAggregate) State() State {
	return State{Entries: map[string]int{"window-aggs": len(a.state)}, Timers: len(a.state), LateDropped: a.late}
}
