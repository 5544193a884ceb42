package sim

import (
	"errors"
	"slices"

	"deduplab/stream"
)

// WatermarkOutput takes what a generator, a split or a channel puts out beside its rows: Flink's WatermarkOutput.
type WatermarkOutput interface {
	Watermark(w stream.Time)
	Idle()
	Active()
}

// ErrNullRowtime fails a job whose SQL watermark meets a NULL event time (watermark/sql-null-rowtime).
var ErrNullRowtime = errors.New("RowTime field should not be null, please convert it to a non-null long value")

// SQLAssigner is Flink's WatermarkAssignerOperator: `WATERMARK FOR ts AS ts - delay` where the source does not take
// the clause itself, so that one operator stands behind each reader. The watermark is the largest event time less the
// delay; it goes out with the row that moves it more than the interval past the last one sent, else with a periodic
// timer (watermark/sql-no-delay, watermark/sql-5s).
type SQLAssigner struct {
	out                        WatermarkOutput
	delay, interval, idleAfter stream.Time

	current, sent stream.Time // both start from 0: a watermark at or below 0 is never sent (watermark/sql-negative)
	timer         stream.Time // the next timer
	periodic      stream.Time // the last timer that could send a watermark

	// The idle clock starts at the first timer after a row; IDLE goes out at the first timer a timeout or more after
	// that, ACTIVE before the next row (watermark/sql-idle).
	rows      bool // there were rows since the last timer
	idleSince stream.Time
	idle      bool
}

// NewSQLAssigner makes the operator as it is opened at a moment. An interval or idleAfter of 0 turns that timer off.
func NewSQLAssigner(delay, interval, idleAfter, now stream.Time, out WatermarkOutput) *SQLAssigner {
	a := &SQLAssigner{out: out, delay: delay, interval: interval, idleAfter: idleAfter, periodic: now, rows: true}
	a.timer = now + a.Period()
	return a
}

// Period is the time between two timers, 0 when there are none. Flink serves the watermark interval and the idle
// timeout with one timer: the shorter of them when they are far apart, else a fifth of the shorter.
func (a *SQLAssigner) Period() stream.Time {
	short, long := min(a.interval, a.idleAfter), max(a.interval, a.idleAfter)
	switch {
	case long <= 0:
		return 0
	case short <= 0:
		return long
	case short*5 < long:
		return short
	}
	return max(short/5, 1)
}

// Row handles a row: ACTIVE goes out before it, a watermark after it. A row that fails is not passed on.
func (a *SQLAssigner) Row(event stream.Time) error {
	a.rows = true
	a.wake()
	if event == stream.NullTime {
		return ErrNullRowtime
	}
	a.current = max(a.current, event-a.delay)
	if a.current-a.sent > a.interval {
		a.send()
	}
	return nil
}

// Tick moves the clock. The timer that has come due fires once, at now, and sets the next one from there.
func (a *SQLAssigner) Tick(now stream.Time) {
	period := a.Period()
	if period == 0 || now < a.timer {
		return
	}
	a.timer = now + period
	if a.interval > 0 && now-a.periodic >= a.interval {
		a.periodic = now
		a.send()
	}
	if a.rows {
		a.rows, a.idleSince = false, now
	}
	if a.idleAfter > 0 && !a.idle && now-a.idleSince >= a.idleAfter {
		a.idle = true
		a.out.Idle()
	}
}

// End sends the watermark that ends the stream.
func (a *SQLAssigner) End() {
	a.wake()
	a.current = stream.MaxTime
	a.send()
}

func (a *SQLAssigner) send() {
	if a.current > a.sent {
		a.sent = a.current
		a.out.Watermark(a.current)
	}
}

func (a *SQLAssigner) wake() {
	if a.idle {
		a.idle = false
		a.out.Active()
	}
}

// Generator is a watermark generator that only works at the periodic check: the largest event time less its lag, put
// out moved or not, MinTime before the first event (watermark/datastream-bounded-5000ms).
type Generator struct {
	lag, largest stream.Time

	// WatermarksWithIdleness: the idle clock starts at the first check that sees no new event, and IDLE goes out at the
	// first one more than the timeout after that; then nothing until an event comes (watermark/datastream-idleness).
	idleAfter stream.Time
	events    bool        // there were events since the last check
	idleSince stream.Time // 0: the clock does not run, as in Flink
	idle      bool
}

// NewBounded is Flink's BoundedOutOfOrdernessWatermarks, in WatermarksWithIdleness when idleAfter is not 0: the largest
// event time less the delay and 1 ms.
func NewBounded(delay, idleAfter stream.Time) *Generator {
	return newGenerator(delay+1, idleAfter)
}

// newPushedDown is the generator of one split when Flink pushes `WATERMARK FOR ts AS ts - delay` down into the source:
// as in all of SQL, the largest event time less the delay.
func newPushedDown(delay, idleAfter stream.Time) *Generator {
	return newGenerator(delay, idleAfter)
}

func newGenerator(lag, idleAfter stream.Time) *Generator {
	return &Generator{lag: lag, largest: stream.MinTime + lag, idleAfter: idleAfter}
}

// Row tells the generator the event time of a row.
func (g *Generator) Row(event stream.Time) {
	g.largest = max(g.largest, event)
	g.events = true
}

// Periodic is one check, every watermark interval.
func (g *Generator) Periodic(now stream.Time, out WatermarkOutput) {
	switch {
	case g.idleAfter <= 0:
	case g.events:
		g.events, g.idleSince, g.idle = false, 0, false
	case g.idleSince == 0:
		g.idleSince = now
	case now-g.idleSince > g.idleAfter:
		if !g.idle {
			g.idle = true
			out.Idle()
		}
		return
	}
	out.Watermark(g.largest - g.lag)
}

// Multiplexer is Flink's WatermarkOutputMultiplexer: it combines the splits of one reader. The splits only note what
// they are told; [Multiplexer.Periodic] puts out the least watermark of the active ones. It never goes back: a split
// back from idle and behind holds it where it is (watermark/multiplexer-two-partitions).
type Multiplexer struct {
	out      WatermarkOutput
	splits   []*Split
	combined stream.Time
}

// NewMultiplexer makes one without splits.
func NewMultiplexer(out WatermarkOutput) *Multiplexer {
	return &Multiplexer{out: out, combined: stream.MinTime}
}

// Split is the deferred output of one split.
type Split struct {
	watermark stream.Time
	idle      bool
}

// Register adds a split.
func (m *Multiplexer) Register() *Split {
	s := &Split{watermark: stream.MinTime}
	m.splits = append(m.splits, s)
	return s
}

// Unregister takes a split out that is finished, so that it no longer holds the others back: their least watermark
// goes out with the next Periodic. That is WatermarkOutputMultiplexer.unregisterOutput, which Flink's SourceOperator
// calls through ReaderOutput.releaseOutputForSplit once the reader has handed out the last row of a split.
func (m *Multiplexer) Unregister(s *Split) {
	m.splits = slices.DeleteFunc(m.splits, func(other *Split) bool { return other == s })
}

// Watermark notes the watermark of the split, which makes it active.
func (s *Split) Watermark(w stream.Time) {
	s.watermark, s.idle = max(s.watermark, w), false
}

// Idle marks the split idle.
func (s *Split) Idle() { s.idle = true }

// Active marks the split active.
func (s *Split) Active() { s.idle = false }

// Periodic puts out the combined watermark if it moved, and IDLE while all splits are idle: then the combined
// watermark is the largest of all.
func (m *Multiplexer) Periodic() {
	if len(m.splits) == 0 {
		return
	}
	idle, least, largest := true, stream.MaxTime, stream.MinTime
	for _, s := range m.splits {
		largest = max(largest, s.watermark)
		if !s.idle {
			idle, least = false, min(least, s.watermark)
		}
	}
	if idle {
		least = largest
	}
	if least > m.combined {
		m.combined = least
		m.out.Watermark(least)
	}
	if idle {
		m.out.Idle()
	}
}

// Valve is Flink's StatusWatermarkValve: it combines the input channels of one task. Its output is the least watermark
// of the aligned channels. A channel that is idle is not aligned, nor is one back from idle that has not caught up
// with the output yet (watermark/valve-two-channels).
type Valve struct {
	out      WatermarkOutput
	channels []channel
	last     stream.Time // the last watermark put out
	idle     bool
}

type channel struct {
	watermark     stream.Time
	idle, aligned bool
}

// NewValve makes the valve of a task with a number of input channels, all active and before their first watermark.
func NewValve(channels int, out WatermarkOutput) *Valve {
	v := &Valve{out: out, channels: make([]channel, channels), last: stream.MinTime}
	for i := range v.channels {
		v.channels[i] = channel{watermark: stream.MinTime, aligned: true}
	}
	return v
}

// Watermark takes the watermark of a channel. That of an idle channel is ignored, and so is one that does not advance.
func (v *Valve) Watermark(channel int, w stream.Time) {
	c := &v.channels[channel]
	if c.idle || w <= c.watermark {
		return
	}
	c.watermark = w
	c.aligned = c.aligned || w >= v.last
	v.advance()
}

// Idle takes IDLE from a channel, which frees the others at once. When all are idle, the largest watermark of them
// goes out, then IDLE (watermark/valve-all-idle). The largest does not go out when the last channel to fall idle lags
// behind the output, nor does the output move when a channel ahead of it comes back as the only aligned one: so it is
// in Flink 2.3.0 (FLINK-40475).
func (v *Valve) Idle(channel int) {
	c := &v.channels[channel]
	if c.idle {
		return
	}
	c.idle, c.aligned = true, false

	v.idle = true
	largest := stream.MinTime
	for _, c := range v.channels {
		v.idle = v.idle && c.idle
		largest = max(largest, c.watermark)
	}
	switch {
	case v.idle:
		if c.watermark == v.last {
			v.send(largest)
		}
		v.out.Idle()
	case c.watermark == v.last: // it may be the one that held the output back
		v.advance()
	}
}

// Active takes ACTIVE from a channel; the first of a valve that was idle is passed on.
func (v *Valve) Active(channel int) {
	c := &v.channels[channel]
	if !c.idle {
		return
	}
	c.idle, c.aligned = false, c.watermark >= v.last
	if v.idle {
		v.idle = false
		v.out.Active()
	}
}

// advance puts out the least watermark of the aligned channels if it moved.
func (v *Valve) advance() {
	least, aligned := stream.MaxTime, false
	for _, c := range v.channels {
		if c.aligned {
			least, aligned = min(least, c.watermark), true
		}
	}
	if aligned {
		v.send(least)
	}
}

func (v *Valve) send(w stream.Time) {
	if w > v.last {
		v.last = w
		v.out.Watermark(w)
	}
}
