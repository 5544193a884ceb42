package strategies

import (
	"maps"

	"deduplab/sim"
	"deduplab/stream"
)

// changelogGroup is Flink's GroupAggFunction over a source that sends updates and deletes: it counts the rows of a group
// (COUNT_RETRACT) and sends -D when none is left; -U and -D of a group that it does not know are passed over. With a
// column it holds the column's MIN (MIN_RETRACT), whose values are all kept: flink-extra changelog/distinct,
// changelog/distinct-key, changelog/group-by-min.
type changelogGroup struct {
	sim.Base
	ttl    stream.Time
	column int // of MIN; -1: none
	kind   stream.Type
	groups map[stream.Key]*countedGroup
	swept  int

	entryBytes int
}

// countedGroup is the state of one group.
type countedGroup struct {
	rows    int // COUNT_RETRACT
	stands  stream.Tag
	since   stream.Time
	written stream.Time
	minimum minRetract
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

func newChangelogGroup(ttl stream.Time, column, entryBytes int, schema stream.Schema) *changelogGroup {
	o := &changelogGroup{ttl: ttl, column: column, groups: map[stream.Key]*countedGroup{}, entryBytes: entryBytes + 8}
	if column >= 0 {
		o.kind = schema.Columns[column].Type
	}
	return o
}

func (o *changelogGroup) Rows(c *sim.Ctx, rows []stream.Row) {
	for i := range rows {
		o.row(c, &rows[i])
	}
}

func (o *changelogGroup) row(c *sim.Ctx, row *stream.Row) {
	retracts := row.Kind == stream.UpdateBefore || row.Kind == stream.Delete
	g := o.load(row.Key, row.Arrival)
	if g == nil && retracts {
		c.Drop(row, sim.Retraction)
		return
	}
	first := g == nil
	if first {
		g = &countedGroup{stands: row.Tag, since: row.Arrival,
			minimum: minRetract{values: map[stream.Value]valueCount{}, min: stream.Value{Null: true}}}
		o.groups[row.Key] = g
	}
	before := g.minimum.min
	if retracts {
		g.rows--
	} else {
		g.rows++
	}
	if o.column >= 0 {
		o.aggregate(c.Records, g, row.Tag, retracts)
	}
	g.written = row.Arrival
	switch {
	case g.rows == 0:
		c.Again(stream.Delete, row.Key, g.stands, g.since, row.Arrival)
		delete(o.groups, row.Key)
	case first:
		c.Emit(stream.Insert, row)
		return
	case before != g.minimum.min || o.ttl > 0:
		now := g.stands
		if o.column >= 0 {
			now = g.minimum.stands()
		}
		old, since := g.stands, g.since
		g.stands, g.since = now, row.Arrival
		if now == row.Tag && !retracts {
			c.Update(old, since, row)
			return
		}
		if c.UpdateBefore() {
			c.Again(stream.UpdateBefore, row.Key, old, since, row.Arrival)
		}
		c.Again(stream.UpdateAfter, row.Key, now, since, row.Arrival)
	}
	if retracts {
		c.Drop(row, sim.Retraction)
	} else {
		c.Drop(row, sim.Duplicate)
	}
}

// aggregate takes a row into the minimum or out of it. MIN leaves NULL out.
func (o *changelogGroup) aggregate(records stream.Records, g *countedGroup, tag stream.Tag, retracts bool) {
	v, m := records.Record(tag)[o.column], &g.minimum
	switch {
	case v.Null:
		if !retracts {
			m.nullTag = tag
		}
	case retracts:
		m.retract(v, tag, o.kind)
	default:
		m.accumulate(v, tag, o.kind)
	}
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

// load finds an unexpired group, nil if there is none.
func (o *changelogGroup) load(key stream.Key, now stream.Time) *countedGroup {
	const few = 1024
	if o.ttl > 0 && len(o.groups) >= max(few, 2*o.swept) {
		maps.DeleteFunc(o.groups, func(_ stream.Key, g *countedGroup) bool { return o.expired(g, now) })
		o.swept = len(o.groups)
	}
	g := o.groups[key]
	if g != nil && o.expired(g, now) {
		return nil
	}
	return g
}

func (o *changelogGroup) expired(g *countedGroup, now stream.Time) bool {
	return o.ttl > 0 && g.written+o.ttl <= now
}

// Snapshot copies the state.
func (o *changelogGroup) Snapshot(*sim.Ctx) any { return cloneGroups(o.groups) }

// Restore takes the state over.
func (o *changelogGroup) Restore(_ *sim.Ctx, snapshot any) {
	o.groups = cloneGroups(snapshot.(map[stream.Key]*countedGroup))
}

func cloneGroups(groups map[stream.Key]*countedGroup) map[stream.Key]*countedGroup {
	clones := make(map[stream.Key]*countedGroup, len(groups))
	for key, g := range groups {
		clone := *g
		clone.minimum.values = maps.Clone(g.minimum.values)
		clones[key] = &clone
	}
	return clones
}

// State counts the accumulator of each group and, with a MIN, the map of its values.
func (o *changelogGroup) State(c *sim.Ctx) sim.State {
	s := sim.State{Entries: len(o.groups)}
	for _, g := range o.groups {
		if !o.expired(g, c.Now()) {
			s.LiveKeys++
		}
		if n := len(g.minimum.values); n > 0 {
			s.Entries++
			s.Bytes += int64(n * (rowHeaderBytes + 8 + 8))
		}
	}
	s.Bytes += int64(len(o.groups) * o.entryBytes)
	return s
}
