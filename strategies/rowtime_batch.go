package strategies

import (
	"deduplab/sim"
	"deduplab/stream"
)

// rowtimeRuntime is the runtime class of a deduplication by event time; plain is the one without mini-batch.
func (j Job) rowtimeRuntime(plain string) string {
	const packageName = "org.apache.flink.table.runtime.operators.deduplicate."
	switch {
	case !j.MiniBatch.on():
		return plain
	case j.MiniBatch.Compact:
		return packageName + "RowTimeMiniBatchLatestChangeDeduplicateFunction"
	}
	return packageName + "RowTimeMiniBatchDeduplicateFunction"
}

// inBatches is the operator's way of handling rows in batches.
func (o *keepByTime) inBatches(job Job) bundle {
	if job.MiniBatch.Compact {
		return &bestOfBatch{keepByTime: *o, rowBytes: job.rowBytes()}
	}
	return &wholeBatch{keepByTime: *o, rowBytes: job.rowBytes()}
}

// wholeBatch handles all rows of a batch, one key after the other: Flink's RowTimeMiniBatchDeduplicateFunction. It
// restarts the TTL of every key in the batch, though no row of it is taken: flink rowtime-asc/mini-batch,
// rowtime-asc/mini-batch-ttl.
type wholeBatch struct {
	keepByTime
	batch    byKey[[]waiting]
	rows     int
	rowBytes int
}

func (o *wholeBatch) add(c *sim.Ctx, row *stream.Row) {
	c.Hold(row)
	o.rows++
	if rows := o.batch.get(row.Key); rows != nil {
		*rows = append(*rows, waitingRow(row))
		return
	}
	o.batch.add(row.Key, []waiting{waitingRow(row)})
}

func (o *wholeBatch) finish(c *sim.Ctx, at stream.Time) {
	o.rows = 0
	o.batch.drain(func(rows []waiting) {
		var kept sim.Entry
		before := o.state.Get(rows[0].key, at)
		if before != nil {
			kept = *before
		}
		for i, row := range rows {
			if o.decide(c, row, &kept, before != nil || i > 0, at) {
				kept = sim.MakeEntry(row.key, at, int64(row.event), row.tag, 0)
			}
		}
		o.state.Put(kept.Key, at, kept.Value, kept.Tag, 0)
	})
}

// decide sends a row at the end of its batch, or drops it, and reports which. Kept is what the row has to beat, if
// there is something.
func (o *keepByTime) decide(c *sim.Ctx, row waiting, kept *sim.Entry, any bool, at stream.Time) bool {
	switch {
	case !any:
		c.ReleaseAt(at, o.first, row.key, row.tag, row.wait)
	case o.better(int64(row.event), kept.Value):
		c.ReleaseUpdate(at, row.key, kept.Tag, row.tag)
	default:
		c.DropHeld(row.key, row.tag, sim.Duplicate, at)
		return false
	}
	return true
}

func (o *wholeBatch) State(c *sim.Ctx) sim.State {
	return o.batch.state(c, o.state, o.entryBytes, o.rows, o.rowBytes)
}

// bestOfBatch handles the best row of each key in a batch: Flink's RowTimeMiniBatchLatestChangeDeduplicateFunction.
// Only if that row is taken does the TTL restart: flink rowtime-asc/mini-batch-compact,
// rowtime-asc/mini-batch-compact-ttl.
type bestOfBatch struct {
	keepByTime
	batch    byKey[waiting]
	rowBytes int
}

func (o *bestOfBatch) add(c *sim.Ctx, row *stream.Row) {
	best := o.batch.get(row.Key)
	switch {
	case best == nil:
		o.batch.add(row.Key, waitingRow(row))
	case o.better(int64(row.Event), int64(best.event)):
		c.DropHeld(row.Key, best.tag, sim.Replaced, row.Arrival)
		*best = waitingRow(row)
	default:
		c.Drop(row, sim.Duplicate)
		return
	}
	c.Hold(row)
}

func (o *bestOfBatch) finish(c *sim.Ctx, at stream.Time) {
	o.batch.drain(func(row waiting) {
		kept := o.state.Get(row.key, at)
		if o.decide(c, row, kept, kept != nil, at) {
			o.state.Put(row.key, at, int64(row.event), row.tag, 0)
		}
	})
}

func (o *bestOfBatch) State(c *sim.Ctx) sim.State {
	return o.batch.state(c, o.state, o.entryBytes, len(o.batch.values), o.rowBytes)
}
