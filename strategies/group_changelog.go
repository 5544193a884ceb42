package strategies

import (
	"maps"

	"deduplab/sim"
	"deduplab/stream"
)

// changelogGroup is Flink's GroupAggFunction over a source that sends updates and deletes: it counts the rows of a
// group (COUNT_RETRACT) and sends -D when none is left; -U and -D of a group that it does not know are passed over.
// With a column it holds the column's MIN (MIN_RETRACT), whose values are all kept: flink-extra changelog/distinct,
// changelog/distinct-key, changelog/group-by-min.
type changelogGroup struct {
	sim.Base
	state    *sim.Table // the count, and the row that stands for the group
	ttl      stream.Time
	column   int // of MIN; -1: none
	kind     stream.Type
	minimums map[stream.Key]*minRetract
	swept    int // minimums after the last sweep

	entryBytes int
}

// minRetract is Flink's MinWithRetractAggFunction: the values with how often each is there, which may fall below 0.
type minRetract struct {
	values   map[stream.Value]valueCount
	distinct int // mapSize
	min      stream.Value
	tag      stream.Tag // a row with that value
	nullTag  stream.Tag // a row without one
}

type valueCount struct {
	n   int
	tag stream.Tag
}

func newChangelogGroup(c *sim.Ctx, ttl stream.Time, column, entryBytes int, schema stream.Schema) *changelogGroup {
	o := &changelogGroup{state: c.NewTable(ttl), ttl: ttl, column: column, minimums: map[stream.Key]*minRetract{},
		entryBytes: entryBytes + ttlBytes(ttl) + 8}
	if column >= 0 {
		o.kind = schema.Columns[column].Type
	}
	return o
}

func (o *changelogGroup) Rows(c *sim.Ctx, rows []stream.Row) {
	known := o.state.Probe(rows)
	for i := range rows {
		row := &rows[i]
		retracts := row.Kind == stream.UpdateBefore || row.Kind == stream.Delete
		group := known.Get(i)
		if group == nil {
			if retracts {
				c.Drop(row, sim.Retraction)
				continue
			}
			delete(o.minimums, row.Key) // of a group that expired
			o.aggregate(c.Records, row, false)
			c.Emit(stream.Insert, row)
			known.Put(i, 1, row.Tag, 0)
			continue
		}
		before, count := group.Tag, group.Value+1
		if retracts {
			count -= 2
		}
		now, changed := before, false
		if o.column >= 0 {
			now, changed = o.aggregate(c.Records, row, retracts)
		}
		if count == 0 {
			c.Again(stream.Delete, row.Key, before, row.Arrival)
			c.Drop(row, sim.Retraction)
			known.Delete(i)
			delete(o.minimums, row.Key)
			continue
		}
		if !changed {
			now = before
		}
		o.update(c, row, before, now, changed || o.ttl > 0)
		known.Put(i, count, now, 0)
	}
}

// update settles a row of a group that goes on. With a TTL what stands is sent once more though nothing changes.
func (o *changelogGroup) update(c *sim.Ctx, row *stream.Row, before, now stream.Tag,
	sends bool) {
	if sends && now == row.Tag {
		c.Update(before, row)
		return
	}
	if sends && c.UpdateBefore() {
		c.Again(stream.UpdateBefore, row.Key, before, row.Arrival)
	}
	if sends {
		c.Again(stream.UpdateAfter, row.Key, now, row.Arrival)
	}
	if row.Kind == stream.UpdateBefore || row.Kind == stream.Delete {
		c.Drop(row, sim.Retraction)
	} else {
		c.Drop(row, sim.Duplicate)
	}
}

// aggregate takes a row into the minimum of its group or out of it. MIN leaves NULL out. It returns a row that holds
// the minimum, and whether that has changed.
func (o *changelogGroup) aggregate(records stream.Records, row *stream.Row, retracts bool) (stream.Tag, bool) {
	if o.column < 0 {
		return row.Tag, false
	}
	m := o.minimums[row.Key]
	if m == nil {
		o.sweep(row.Arrival)
		m = &minRetract{values: map[stream.Value]valueCount{}, min: stream.Value{Null: true}}
		o.minimums[row.Key] = m
	}
	before, v := m.min, records.Record(row.Tag)[o.column]
	switch {
	case v.Null:
		if !retracts {
			m.nullTag = row.Tag
		}
	case retracts:
		m.retract(v, row.Tag, o.kind)
	default:
		m.accumulate(v, row.Tag, o.kind)
	}
	return m.stands(), m.min != before
}

func (m *minRetract) accumulate(v stream.Value, tag stream.Tag, kind stream.Type) {
	if m.distinct == 0 || v.Compare(m.min, kind) < 0 {
		m.min, m.tag = v, tag
	}
	e := m.values[v]
	if e.n == 0 {
		e.tag = tag
	}
	e.n++
	m.store(v, e)
	if e.n == 1 {
		m.distinct++
	}
}

func (m *minRetract) retract(v stream.Value, tag stream.Tag, kind stream.Type) {
	e, known := m.values[v]
	if !known {
		e.tag = tag
	}
	e.n--
	m.store(v, e)
	if e.n != 0 {
		return
	}
	if m.distinct--; m.distinct == 0 {
		m.min = stream.Value{Null: true}
	} else if v == m.min {
		m.min = stream.Value{Null: true}
		for other, e := range m.values {
			if m.min.Null || other.Compare(m.min, kind) < 0 {
				m.min, m.tag = other, e.tag
			}
		}
	}
}

func (m *minRetract) store(v stream.Value, e valueCount) {
	if e.n == 0 {
		delete(m.values, v)
	} else {
		m.values[v] = e
	}
}

// stands is a row that holds the minimum.
func (m *minRetract) stands() stream.Tag {
	if m.min.Null {
		return m.nullTag
	}
	return m.tag
}

// sweep removes the minimums of groups that have expired once as many may have done so as are alive.
func (o *changelogGroup) sweep(now stream.Time) {
	const few = 1024
	if o.ttl > 0 && len(o.minimums) >= max(few, 2*o.swept) {
		maps.DeleteFunc(o.minimums, func(key stream.Key, _ *minRetract) bool { return !o.state.Has(key, now) })
		o.swept = len(o.minimums)
	}
}

// Snapshot copies the minimums.
func (o *changelogGroup) Snapshot(*sim.Ctx) any { return cloneMinimums(o.minimums) }

// Restore takes the minimums over.
func (o *changelogGroup) Restore(_ *sim.Ctx, snapshot any) {
	o.minimums = cloneMinimums(snapshot.(map[stream.Key]*minRetract))
}

func cloneMinimums(minimums map[stream.Key]*minRetract) map[stream.Key]*minRetract {
	clones := make(map[stream.Key]*minRetract, len(minimums))
	for key, m := range minimums {
		clone := *m
		clone.values = maps.Clone(m.values)
		clones[key] = &clone
	}
	return clones
}

// State counts the accumulator of each group and, with a MIN, the map of its values.
func (o *changelogGroup) State(c *sim.Ctx) sim.State {
	s := tableState(c, o.state, o.entryBytes)
	for _, m := range o.minimums {
		if n := len(m.values); n > 0 {
			s.Entries++
			s.Bytes += int64(n * (rowHeaderBytes + 8 + 8))
		}
	}
	return s
}
