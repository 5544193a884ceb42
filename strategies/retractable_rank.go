package strategies

import (
	"errors"
	"slices"

	"deduplab/sim"
	"deduplab/stream"
)

// rankQuery is a ROW_NUMBER query over a changelog.
type rankQuery struct {
	top   int
	ttl   stream.Time
	order []OrderBy // none: all rows of a key tie
	node  string    // the order as the planner's node shows it
	code  string
	// without are columns that the query leaves out, and so the planner too, before the Rank: rows that differ in them
	// alone are equal.
	without []int
}

// retractPlan plans the first rows of a key over a source that sends updates and deletes. Whatever the order, also by a
// time attribute, it stays StreamExecRank (FLINK-34702: Deduplicate takes inserts only), here with RetractStrategy and
// so RetractableTopNFunction; UpdateFastStrategy needs a sort key that changes in one direction only, which the planner
// knows of some aggregates, but of no source: flink-extra changelog/price-asc, changelog/rowtime-asc,
// changelog/primary-key. Mini-batch changes nothing: changelog/price-asc-mini-batch.
func (j Job) retractPlan(q rankQuery) Plan {
	p := Plan{
		Changelog:  AllChanges,
		Operator:   "StreamExecRank",
		Node:       j.rankNode(q.top, q.node),
		Runtime:    "org.apache.flink.table.runtime.operators.rank.RetractableTopNFunction",
		Clock:      "processing time, for the TTL",
		TTL:        "the last change of the key; the rows of one sort key have a TTL of their own, from their last change",
		StateClass: PerRecord,
		Leaks:      ByTTL,
		StateTTL:   q.ttl,
		Order:      q.order,
		Promise:    FirstByOrder,
		New: func(*sim.Ctx) sim.Operator {
			return newRetractableRank(q, j)
		},
		Language: "sql",
		Code:     q.code,
	}
	if len(newSorter(j.Schema, q.order).columns) == 0 {
		p.Promise = AnyRow
	}
	if q.top > 1 {
		p.UpsertKey, p.Leaks, p.Promise = NoKey, NoDeduplication, AnyRow
	}
	if q.ttl > 0 {
		p.StateClass = TimeBounded
	}
	return j.planned(p)
}

// retractableRank is Flink's RetractableTopNFunction for ROW_NUMBER without the number in the result. It keeps all rows
// of a key that were not taken back. Of the first n, what leaves them goes out as -D, what comes among them as +I;
// there is never a -U or +U: flink-extra changelog/price-asc, changelog/price-asc-upsert.
//
// Rows tie where their sort keys are equal, and stand in the order of their arrival. A processing-time attribute is
// NULL in every row until something reads it, so that ordered by it all rows of a key tie, and DESC keeps the first
// arrival too: changelog/proctime-asc, changelog/proctime-desc.
//
// State are two maps, and a retraction need not fit either: by sort key a count, and by sort key the rows. Both are
// lenient: what is not there is passed over with a warning. A row that is equal in its sort key only lowers the count,
// so that the count and the rows part; with a TTL they part as well, as each list of rows has its own. Then the engine
// leaves rows out or sends a wrong one, and so does this.
type retractableRank struct {
	sim.Base
	n       int
	ttl     stream.Time
	sorter  sorter
	without []int // see rankQuery
	keys    map[stream.Key]*rankedRows
	swept   int // keys after the last sweep

	entryBytes, rowBytes, countBytes int
}

// rankedRows is the state of one key.
type rankedRows struct {
	counts  []sortCount // the value state sorted-map, in the order of sort keys
	written stream.Time // of counts
	lists   []ties      // the map state data-state, in no order
}

// sortCount counts the rows of a sort key, that of one of its rows.
type sortCount struct {
	key ranked
	n   int
}

func newRetractableRank(q rankQuery, job Job) *retractableRank {
	return &retractableRank{
		n: q.top, ttl: q.ttl, sorter: newSorter(job.Schema, q.order), without: q.without, keys: map[stream.Key]*rankedRows{},
		entryBytes: job.keyBytes() + ttlBytes(q.ttl), rowBytes: job.rowBytes(), countBytes: rowHeaderBytes + 8 + 8,
	}
}

func (o *retractableRank) Rows(c *sim.Ctx, rows []stream.Row) {
	for i := range rows {
		row := &rows[i]
		k := o.load(row.Key, row.Arrival)
		if row.Kind == stream.Insert || row.Kind == stream.UpdateAfter {
			o.accumulate(c, k, row)
		} else {
			o.retract(c, k, row)
			c.Drop(row, sim.Retraction)
		}
		k.written = row.Arrival
	}
}

func (o *retractableRank) load(key stream.Key, now stream.Time) *rankedRows {
	o.sweep(now)
	k := o.keys[key]
	if k == nil {
		k = &rankedRows{}
		o.keys[key] = k
	}
	if o.expired(k.written, now) {
		k.counts = nil
	}
	return k
}

// errTooFewRows is what the engine fails with where a count is larger than its list: the rows of a sort key that
// expired and came again were counted before.
var errTooFewRows = errors.New("IndexOutOfBoundsException in RetractableTopNFunction: state has expired in part")

// accumulate takes a row in: emitRecordsWithoutRowNumber, then the data state.
func (o *retractableRank) accumulate(c *sim.Ctx, k *rankedRows, row *stream.Row) {
	r := ranked{row.Order, row.Tag}
	own := o.count(c.Records, k, r)
	if own < 0 {
		own = len(k.counts)
		for own > 0 && o.before(c.Records, r, k.counts[own-1].key) {
			own--
		}
		k.counts = slices.Insert(k.counts, own, sortCount{key: r})
	}
	k.counts[own].n++
	rank := 0
	for i := 0; i <= own; i++ {
		rank += k.counts[i].n
	}
	emit := rank <= o.n
	for i := own + 1; i < len(k.counts) && rank <= o.n; {
		list := o.list(c.Records, k, k.counts[i].key, row.Arrival)
		if list == nil {
			k.counts = slices.Delete(k.counts, i, i+1) // stale
			continue
		}
		if last := rank + k.counts[i].n; last <= o.n {
			rank = last
			i++
			continue
		}
		if o.n-rank >= len(list.rows) {
			c.Fail(errTooFewRows)
		} else {
			c.Again(stream.Delete, row.Key, list.rows[o.n-rank].tag, row.Arrival)
		}
		break
	}
	if emit {
		c.Emit(stream.Insert, row)
	} else {
		c.Drop(row, sim.Duplicate)
	}
	list := o.list(c.Records, k, r, row.Arrival)
	if list == nil {
		k.lists = append(k.lists, ties{})
		list = &k.lists[len(k.lists)-1]
	}
	list.rows, list.written = append(list.rows, r), row.Arrival
}

// retract takes a row out: retractRecordWithoutRowNumber, then the counts, then the data state.
func (o *retractableRank) retract(c *sim.Ctx, k *rankedRows, row *stream.Row) {
	r := ranked{row.Order, row.Tag}
	removed := o.emitRetraction(c, k, r, row)
	if own := o.count(c.Records, k, r); own >= 0 {
		if k.counts[own].n--; k.counts[own].n == 0 {
			k.counts = slices.Delete(k.counts, own, own+1)
		}
	}
	if list := o.list(c.Records, k, r, row.Arrival); !removed && list != nil {
		if i := o.find(c.Records, list, r); i >= 0 {
			list.rows = slices.Delete(list.rows, i, i+1)
		}
		o.put(k, list, row.Arrival)
	}
}

// emitRetraction sends what a retraction changes among the first n. It reports whether it has found and removed the
// row.
func (o *retractableRank) emitRetraction(c *sim.Ctx, k *rankedRows, r ranked, row *stream.Row) bool {
	next, found := 1, false // next: the rank of the next row
	insert := func(tag stream.Tag) { c.Again(stream.Insert, row.Key, tag, row.Arrival) }
	for i := 0; i < len(k.counts) && next <= o.n; {
		e := k.counts[i]
		own := !found && o.same(c.Records, e.key, r)
		if !own && !found {
			next += e.n
			i++
			continue
		}
		if last := next + e.n - 1; found && last < o.n {
			next = last + 1
			i++
			continue
		}
		list := o.list(c.Records, k, e.key, row.Arrival)
		if list == nil {
			k.counts = slices.Delete(k.counts, i, i+1) // stale
			continue
		}
		if found {
			if o.n-next >= len(list.rows) {
				c.Fail(errTooFewRows)
			} else {
				insert(list.rows[o.n-next].tag)
			}
			break
		}
		at := o.find(c.Records, list, r)
		if at >= 0 && next+at <= o.n {
			c.Again(stream.Delete, row.Key, list.rows[at].tag, row.Arrival)
			list.rows = slices.Delete(list.rows, at, at+1)
			found = true
			if last := o.n - next; last < len(list.rows) {
				insert(list.rows[last].tag)
			}
		}
		next += len(list.rows)
		o.put(k, list, row.Arrival)
		i++
	}
	return found
}

// count finds the place of a sort key among the counts, -1 if it is not there.
func (o *retractableRank) count(records stream.Records, k *rankedRows, r ranked) int {
	return slices.IndexFunc(k.counts, func(e sortCount) bool { return o.same(records, e.key, r) })
}

// list finds the unexpired rows of a sort key, nil if there are none.
func (o *retractableRank) list(records stream.Records, k *rankedRows, of ranked, now stream.Time) *ties {
	k.lists = slices.DeleteFunc(k.lists, func(t ties) bool { return o.expired(t.written, now) })
	for i := range k.lists {
		if o.same(records, k.lists[i].rows[0], of) {
			return &k.lists[i]
		}
	}
	return nil
}

// find finds the first row of a list that is equal to r, -1 if none is.
func (o *retractableRank) find(records stream.Records, list *ties, r ranked) int {
	return slices.IndexFunc(list.rows, func(other ranked) bool { return o.equal(records, other.tag, r.tag) })
}

// equal reports whether two rows are equal in all columns that the query does not leave out.
func (o *retractableRank) equal(records stream.Records, a, b stream.Tag) bool {
	if len(o.without) == 0 {
		return records.Content(a) == records.Content(b)
	}
	rowB := records.Record(b)
	for i, v := range records.Record(a) {
		if v != rowB[i] && !slices.Contains(o.without, i) {
			return false
		}
	}
	return true
}

// put writes a list of k back, which restarts its TTL also where nothing was removed.
func (o *retractableRank) put(k *rankedRows, list *ties, now stream.Time) {
	list.written = now
	k.lists = slices.DeleteFunc(k.lists, func(t ties) bool { return len(t.rows) == 0 })
}

func (o *retractableRank) before(records stream.Records, a, b ranked) bool {
	return o.sorter.before(records, a.order, a.tag, b.order, b.tag)
}

func (o *retractableRank) same(records stream.Records, a, b ranked) bool {
	return !o.before(records, a, b) && !o.before(records, b, a)
}

func (o *retractableRank) expired(written, now stream.Time) bool {
	return o.ttl > 0 && written+o.ttl <= now
}

// TTL is that of each list of rows.
func (o *retractableRank) TTL() stream.Time { return o.ttl }

// sweep removes what has expired once as much may have done so as is alive.
func (o *retractableRank) sweep(now stream.Time) {
	const few = 1024
	if o.ttl == 0 || len(o.keys) < max(few, 2*o.swept) {
		return
	}
	for key, k := range o.keys {
		if o.expired(k.written, now) {
			delete(o.keys, key)
		}
	}
	o.swept = len(o.keys)
}

// Snapshot copies the state.
func (o *retractableRank) Snapshot(*sim.Ctx) any { return cloneRanked(o.keys) }

// Restore takes the state over.
func (o *retractableRank) Restore(_ *sim.Ctx, snapshot any) {
	o.keys = cloneRanked(snapshot.(map[stream.Key]*rankedRows))
}

func cloneRanked(keys map[stream.Key]*rankedRows) map[stream.Key]*rankedRows {
	clones := make(map[stream.Key]*rankedRows, len(keys))
	for key, k := range keys {
		clone := &rankedRows{slices.Clone(k.counts), k.written, slices.Clone(k.lists)}
		for i := range clone.lists {
			clone.lists[i].rows = slices.Clone(clone.lists[i].rows)
		}
		clones[key] = clone
	}
	return clones
}

// State counts a key's sorted-map, which stays when the last row is taken back, and its data-state.
func (o *retractableRank) State(c *sim.Ctx) sim.State {
	withRows, rows, counts := 0, 0, 0
	s := sim.State{}
	for _, k := range o.keys {
		counts += len(k.counts)
		if len(k.lists) > 0 {
			withRows++
		}
		live := false
		for _, t := range k.lists {
			rows += len(t.rows)
			live = live || !o.expired(t.written, c.Now())
		}
		if live {
			s.LiveKeys++
		}
	}
	s.Entries = len(o.keys) + withRows
	s.Named = map[string]int{"sorted-map": len(o.keys), "data-state": withRows}
	s.Bytes = int64(s.Entries*o.entryBytes + rows*o.rowBytes + counts*o.countBytes)
	return s
}
