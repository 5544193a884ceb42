package strategies

import (
	"deduplab/sim"
	"deduplab/stream"
)

// bundle is what a batch does with its rows: Flink's MapBundleFunction. The engine ends a batch key by key in the order
// of a hash map; here it is the order in which the keys came.
type bundle interface {
	// add takes a row into the batch.
	add(c *sim.Ctx, row *stream.Row)
	// finish ends the batch. What it writes and sends bears the time at.
	finish(c *sim.Ctx, at stream.Time)
	State(c *sim.Ctx) sim.State
}

// miniBatch holds rows back until their batch ends: Flink's KeyedMapBundleOperator behind a MiniBatchAssigner. A batch
// ends after so many rows, before a checkpoint, and: by the clock when that reaches a multiple of the interval,
// whenever its first row came (flink proctime-asc/mini-batch); else with a watermark that reaches the end of an
// interval (flink rowtime-asc/mini-batch-boundary).
type miniBatch struct {
	sim.Base
	bundle bundle
	size   int
	rows   int         // of the batch
	clock  *batchClock // nil: watermarks end batches
}

// byClock makes the operator of a strategy whose batches end by the clock, unless a consumer goes by event time.
func (m MiniBatch) byClock(c *sim.Ctx, b bundle) *miniBatch {
	if m.ByWatermark {
		return m.byWatermark(c, b)
	}
	return &miniBatch{bundle: b, size: m.Size, clock: newBatchClock(c, m.Latency)}
}

// byWatermark makes the operator of a strategy whose batches end by watermarks.
func (m MiniBatch) byWatermark(c *sim.Ctx, b bundle) *miniBatch {
	c.WatermarksEvery(m.Latency)
	return &miniBatch{bundle: b, size: m.Size}
}

func (o *miniBatch) Rows(c *sim.Ctx, rows []stream.Row) {
	for i := range rows {
		if o.clock != nil {
			if o.clock.row(c, rows[i].Arrival) {
				o.finish(c, rows[i].Arrival)
			}
		}
		o.bundle.add(c, &rows[i])
		if o.rows++; o.rows >= o.size {
			o.finish(c, rows[i].Arrival)
		}
	}
}

func (o *miniBatch) finish(c *sim.Ctx, at stream.Time) {
	if o.rows > 0 {
		o.rows = 0
		o.bundle.finish(c, at)
	}
}

// Watermark ends the batch. By the clock the assigner lets no watermark through but the last one.
func (o *miniBatch) Watermark(c *sim.Ctx, w stream.Time) {
	if o.clock == nil || w == stream.MaxTime {
		o.finish(c, c.Now())
	}
}

// ProcTimer ends the batch at the time that the clock shows by then: flink select-distinct-key/mini-batch-time-jump.
func (o *miniBatch) ProcTimer(c *sim.Ctx, at stream.Time, _ stream.Key) {
	if o.clock.ends(at) {
		o.finish(c, c.Now())
	}
}

// BeforeCheckpoint ends the batch: flink proctime-desc/mini-batch-checkpoint.
func (o *miniBatch) BeforeCheckpoint(c *sim.Ctx) { o.finish(c, c.Now()) }

// Restore tells the clock when the job has started again.
func (o *miniBatch) Restore(c *sim.Ctx, _ any) {
	if o.clock != nil {
		o.clock.restored(c.Opened())
	}
}

func (o *miniBatch) State(c *sim.Ctx) sim.State { return o.bundle.State(c) }

// batchClock sets a timer for the end of every interval in which a row came: Flink's ProcTimeMiniBatchAssignerOperator.
// That one sets its first timer an interval after the job has started, and the others at multiples. So after a restore
// the interval of the start ends later, unless a row of the next one comes before: proctime-asc in scenarios/semantics.
// A job that was not restored is taken to have started at a multiple.
type batchClock struct {
	interval stream.Time
	opened   stream.Time // when a restored job has started
	next     stream.Time // the end of the latest interval in which a row came
	timer    stream.Time // of that end
}

func newBatchClock(c *sim.Ctx, interval stream.Time) *batchClock {
	c.TimersFrom(func(arrival stream.Time) stream.Time { return arrival.Floor(interval) + interval })
	return &batchClock{interval: interval, opened: stream.MinTime, next: stream.MinTime, timer: stream.MinTime}
}

func (b *batchClock) restored(at stream.Time) { b.opened = at }

// row sets the timer that ends the batch of a row, and reports whether the row ends the batch before it.
func (b *batchClock) row(c *sim.Ctx, at stream.Time) bool {
	if at < b.next {
		return false
	}
	overdue := at < b.timer
	start := at.Floor(b.interval)
	b.next = start + b.interval
	b.timer = b.next
	if b.opened > start && b.opened < b.next {
		b.timer = b.opened + b.interval
	}
	c.ServiceTimer(b.timer)
	return overdue
}

// ends reports whether a timer ends the batch: not one whose batch a row has ended.
func (b *batchClock) ends(timer stream.Time) bool { return timer == b.timer }

// waiting is a row in a batch.
type waiting struct {
	key   stream.Key
	tag   stream.Tag
	event stream.Time
	wait  sim.Wait
}

func waitingRow(row *stream.Row) waiting {
	return waiting{key: row.Key, tag: row.Tag, event: row.Event, wait: sim.WaitOf(row)}
}

// byKey is what a batch holds of each key, in the order in which the keys came.
type byKey[V any] struct {
	index  map[stream.Key]int
	keys   []stream.Key
	values []V
}

// get returns what is held of a key, nil if nothing is.
func (b *byKey[V]) get(key stream.Key) *V {
	if i, ok := b.index[key]; ok {
		return &b.values[i]
	}
	return nil
}

// add puts in a key that is not held.
func (b *byKey[V]) add(key stream.Key, v V) {
	if b.index == nil {
		b.index = map[stream.Key]int{}
	}
	b.index[key] = len(b.values)
	b.keys = append(b.keys, key)
	b.values = append(b.values, v)
}

// drain empties the batch, key by key.
func (b *byKey[V]) drain(f func(v V)) {
	for _, v := range b.values {
		f(v)
	}
	clear(b.index)
	clear(b.values)
	b.keys, b.values = b.keys[:0], b.values[:0]
}

// state is that of an operator with one table and a batch of so many rows in front of it.
func (b *byKey[V]) state(c *sim.Ctx, t *sim.Table, entryBytes, rows, rowBytes int) sim.State {
	s := tableState(c, t, entryBytes)
	s.Buffered = rows
	s.Bytes += int64(rows * rowBytes)
	for _, key := range b.keys {
		if !t.Has(key, c.Now()) {
			s.LiveKeys++
		}
	}
	return s
}

// ClockWatermark is the watermark that a MiniBatchAssigner sends by the clock: the latest multiple of the interval
// after 0, none before the first.
func ClockWatermark(now, interval stream.Time) stream.Time {
	if start := now.Floor(interval); start > 0 {
		return start
	}
	return stream.MinTime
}
