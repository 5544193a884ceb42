package sim

import "deduplab/stream"

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
