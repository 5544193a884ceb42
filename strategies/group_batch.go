package strategies

import (
	"deduplab/sim"
	"deduplab/stream"
)

// batchAggregate is groupAggregate in batches, Flink's MiniBatchGroupAggFunction: what a batch leaves of a group counts
// as one row at the batch's end, however many rows it was: flink select-distinct-key/mini-batch-ttl.
type batchAggregate struct {
	groupAggregate
	batch    byKey[waiting]
	keyBytes int
}

func (o *batchAggregate) add(c *sim.Ctx, row *stream.Row) {
	c.Hold(row)
	o.merge(c, waitingRow(row), row.Arrival)
}

// merge takes a row that is held into the batch.
func (o *batchAggregate) merge(c *sim.Ctx, row waiting, at stream.Time) {
	stands := o.batch.get(row.key)
	switch {
	case stands == nil:
		o.batch.add(row.key, row)
	case o.replaces.does(c.Records, stands.tag, row.tag):
		c.DropHeld(row.key, stands.tag, sim.Replaced, at)
		*stands = row
	default:
		c.DropHeld(row.key, row.tag, sim.Duplicate, at)
	}
}

func (o *batchAggregate) finish(c *sim.Ctx, at stream.Time) {
	o.batch.drain(func(row waiting) {
		before := o.state.Get(row.key, at)
		switch {
		case before == nil:
			o.state.Put(row.key, at, 0, row.tag, 0)
			c.ReleaseAt(at, stream.Insert, row.key, row.tag, row.wait)
		case o.replaces.does(c.Records, before.Tag, row.tag):
			c.ReleaseUpdate(at, row.key, before.Tag, row.tag)
			o.state.Put(row.key, at, 0, row.tag, 0)
		default:
			c.DropHeld(row.key, row.tag, sim.Duplicate, at)
			if tag := before.Tag; o.ttl > 0 {
				o.keepAlive(c, before, at)
				o.state.Put(row.key, at, 0, tag, 0)
			}
		}
	})
}

func (o *batchAggregate) State(c *sim.Ctx) sim.State {
	return o.batch.state(c, o.state, o.entryBytes, len(o.batch.values), o.keyBytes)
}

// twoPhaseAggregate batches twice: at each source, where a batch counts rows and hands on one entry a group, and
// behind the shuffle, where it counts those entries: flink select-distinct-key/mini-batch-size. Both end by the clock
// and before a checkpoint, the ones at the sources first.
//
// A source's batch holds rows of all subtasks; here each subtask sees its own rows, so that with several of them a
// batch ends by size after its share of the rows.
type twoPhaseAggregate struct {
	miniBatch // behind the shuffle
	global    *batchAggregate
	local     []localBatch // one a reader
	localSize int
	split     bool
}

type localBatch struct {
	batch byKey[waiting]
	rows  int
}

func newTwoPhaseAggregate(c *sim.Ctx, m MiniBatch, o groupAggregate, keyBytes int) *twoPhaseAggregate {
	global := &batchAggregate{groupAggregate: o, keyBytes: keyBytes}
	return &twoPhaseAggregate{
		miniBatch: *m.byClock(c, global), global: global,
		local: make([]localBatch, c.Readers()), localSize: max(1, m.Size/c.Readers()),
	}
}

func (o *twoPhaseAggregate) Rows(c *sim.Ctx, rows []stream.Row) {
	for i := range rows {
		row := &rows[i]
		if o.clock != nil && o.clock.row(c, row.Arrival) {
			o.end(c, row.Arrival)
		}
		local := &o.local[row.Reader]
		stands := local.batch.get(row.Key)
		switch {
		case stands == nil:
			c.Hold(row)
			local.batch.add(row.Key, waitingRow(row))
		case o.global.replaces.does(c.Records, stands.tag, row.Tag):
			c.DropHeld(row.Key, stands.tag, sim.Replaced, row.Arrival)
			c.Hold(row)
			*stands = waitingRow(row)
		default:
			c.Drop(row, sim.Duplicate)
		}
		if local.rows++; local.rows >= o.localSize {
			o.handOn(c, local, row.Arrival)
		}
	}
}

// handOn sends the groups of a source's batch through the shuffle.
func (o *twoPhaseAggregate) handOn(c *sim.Ctx, local *localBatch, at stream.Time) {
	local.rows = 0
	left := len(local.batch.values)
	local.batch.drain(func(row waiting) {
		left--
		o.global.merge(c, row, at)
		if o.rows++; o.rows >= o.size {
			o.finish(c, at)
			o.split = o.split || left > 0
		}
	})
}

// Split reports whether a batch behind the shuffle has ended between two groups of one batch of a source. From then on
// the engine's output depends on the order of a hash map.
func (o *twoPhaseAggregate) Split() bool { return o.split }

// end ends all batches.
func (o *twoPhaseAggregate) end(c *sim.Ctx, at stream.Time) {
	for i := range o.local {
		o.handOn(c, &o.local[i], at)
	}
	o.finish(c, at)
}

func (o *twoPhaseAggregate) Watermark(c *sim.Ctx, w stream.Time) {
	if o.clock == nil || w == stream.MaxTime {
		o.end(c, c.Now())
	}
}

func (o *twoPhaseAggregate) ProcTimer(c *sim.Ctx, at stream.Time, _ stream.Key) {
	if o.clock.ends(at) {
		o.end(c, c.Now())
	}
}

func (o *twoPhaseAggregate) BeforeCheckpoint(c *sim.Ctx) { o.end(c, c.Now()) }

func (o *twoPhaseAggregate) State(c *sim.Ctx) sim.State {
	s := o.global.State(c)
	for i := range o.local {
		batch := &o.local[i].batch
		s.Buffered += len(batch.values)
		s.Bytes += int64(len(batch.values) * o.global.keyBytes)
		for _, key := range batch.keys {
			if o.global.batch.get(key) == nil && !o.global.state.Has(key, c.Now()) {
				s.LiveKeys++
			}
		}
	}
	return s
}
