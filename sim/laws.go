package sim

import (
	"fmt"

	"deduplab/stream"
)

// The laws of a task hold in every run: no watermark falls, and a timer fires once, not before its time, and in order.
// One that is broken is a fault of the lab, and ends the run as an InternalError. The ledger has two more: the
// conservation of rows, and what is visible under exactly-once.

// laws watches over one task.
type laws struct {
	combined stream.Time
	sources  []stream.Time // by reader
	fired    stream.Time   // the last timer of an advance
	err      error         // the first breach
}

func newLaws(readers int) laws {
	l := laws{combined: stream.MinTime, sources: make([]stream.Time, readers)}
	for i := range l.sources {
		l.sources[i] = stream.MinTime
	}
	return l
}

func (l *laws) broken(format string, args ...any) {
	if l.err == nil {
		l.err = InternalError(fmt.Sprintf(format, args...))
	}
}

// source holds that the watermark of a reader does not fall.
func (l *laws) source(reader int, w stream.Time) {
	if w < l.sources[reader] {
		l.broken("the watermark of reader %d falls from %s to %s", reader, l.sources[reader], w)
	}
	l.sources[reader] = w
}

// watermark holds that the combined watermark does not fall.
func (l *laws) watermark(w stream.Time) {
	if w < l.combined {
		l.broken("the watermark falls from %s to %s", l.combined, w)
	}
	l.combined = w
}

// advance begins an advance of timers.
func (l *laws) advance() { l.fired = stream.MinTime }

// firing holds that the timers of one advance fire in order, and none before its time.
func (l *laws) firing(at, now stream.Time) {
	if at > now {
		l.broken("a timer of %s fires at %s", at, now)
	}
	if at <= l.fired && l.fired != stream.MinTime {
		l.broken("a timer of %s fires after one of %s", at, l.fired)
	}
	l.fired = at
}

// timers counts the timers that have been set and that have fired.
type timers struct{ set, fired int }

// timers holds that each timer that was set has fired once or waits.
func (l *laws) timers(domain string, n timers, waiting int) {
	if n.set != n.fired+waiting {
		l.broken("%d timers of %s were set, %d have fired and %d wait", n.set, domain, n.fired, waiting)
	}
}
