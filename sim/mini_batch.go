package sim

import (
	"math"

	"deduplab/stream"
)

// ServiceKey is the key with which ProcTimer is called for a [Ctx.ServiceTimer]. No row has it.
var ServiceKey = stream.Key{Hi: math.MaxUint64, Lo: math.MaxUint64}

// ServiceTimer registers a processing-time timer of the operator itself, not of a key: Flink's ProcessingTimeService.
// It does not count among the registered timers, and the operator's ProcTimer is called for it with ServiceKey.
func (c *Ctx) ServiceTimer(at stream.Time) {
	c.service++
	c.procTimers.Add(at, ServiceKey)
}

// ReleaseAt is Release at the arrival of a row being handled, which ended the wait.
func (c *Ctx) ReleaseAt(at stream.Time, k stream.Kind, key stream.Key, tag stream.Tag, w Wait) {
	c.changes = append(c.changes, Change{Tag: tag, At: at, Since: w.Since, Lone: w.Lone, Op: OpRelease, Kind: k})
	c.keys = append(c.keys, key)
}

// ReleaseUpdate sends a row that had been held in place of old, which went out before: -U of old if the consumer
// wants it, then +U of the row.
func (c *Ctx) ReleaseUpdate(at stream.Time, key stream.Key, old, tag stream.Tag) {
	if c.updateBefore {
		c.Again(stream.UpdateBefore, key, old, at)
	}
	c.changes = append(c.changes, Change{Tag: tag, At: at, Old: old, Op: OpRelease,
		Kind: stream.UpdateAfter})
	c.keys = append(c.keys, key)
}

// WatermarksEvery lets watermarks through only when they reach the last millisecond of an interval that none has
// reached before: Flink's MiniBatchAssigner in the mode of event time, which stands behind each source. Call it when
// the operator is made.
func (c *Ctx) WatermarksEvery(interval stream.Time) {
	c.assigners = make([]assigner, c.readers)
	for i := range c.assigners {
		c.assigners[i] = newAssigner(interval)
	}
}

// assigner is Flink's RowTimeMiniBatchAssginerOperator. It counts watermarks from 0: flink
// rowtime-asc/mini-batch-boundary.
type assigner struct {
	interval stream.Time
	seen     stream.Time // the latest watermark that came in
	sent     stream.Time // the latest one that went out
	next     stream.Time // the first one that will go out
}

func newAssigner(interval stream.Time) assigner {
	return assigner{interval: interval, seen: stream.MinTime, sent: stream.MinTime, next: interval - 1}
}

// watermark reports whether a watermark goes out.
func (a *assigner) watermark(w stream.Time) bool {
	a.seen = w
	if w < a.next {
		return false
	}
	a.sent = w
	if w < stream.MaxTime {
		if a.next = w.Floor(a.interval) + a.interval - 1; a.next == w {
			a.next += a.interval
		}
	}
	return true
}

// sourceWatermark reports whether the watermark of a reader goes on to the operator.
func (c *Ctx) sourceWatermark(reader int, w stream.Time) bool {
	return c.assigners == nil || c.assigners[reader].watermark(w)
}

// combined is the watermark that the operator gets when that of its inputs without assigners is w: the smallest of
// those that the assigners let through. A reader behind w is idle and does not count.
func (c *Ctx) combined(w stream.Time) stream.Time {
	if c.assigners == nil {
		return w
	}
	least := stream.MaxTime
	for i := range c.assigners {
		if a := &c.assigners[i]; a.seen >= w {
			least = min(least, a.sent)
		}
	}
	return min(w, least)
}
