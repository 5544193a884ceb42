package strategies

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"deduplab/sim"
	"deduplab/stream"
)

// topNPlan plans the first rows of a key: StreamExecRank with AppendOnlyTopNFunction. It is declared updating whatever
// the order, and has no upsert key: flink _acceptance.json.
func topNPlan(args Args, job Job, top int) Plan {
	ttl, order := args.Duration("ttl"), args.OrderBy()
	query := strings.Replace(job.rowNumber(job.orderText(order)), "rn = 1", fmt.Sprintf("rn <= %d", top), 1)
	code := job.ddl("orders") + "\n\n" + ttlOption(ttl) + query
	if job.changelog() {
		return job.retractPlan(rankQuery{top: top, ttl: ttl, order: order, node: job.orderText(order), code: code})
	}
	return job.planned(Plan{
		Changelog:   job.topOneMode(false),
		Operator:    "StreamExecRank",
		Node:        job.rankNode(top, job.orderText(order)),
		UpsertKey:   NoKey,
		Runtime:     "org.apache.flink.table.runtime.operators.rank.AppendOnlyTopNFunction",
		Clock:       "processing time, for the TTL",
		TTL:         "the last change among the rows of one sort key; the cache counts from when a key came into it",
		StateClass:  perKeyUnless(ttl),
		Leaks:       NoDeduplication, // the copies up to the n-th are kept
		StateTTL:    ttl,
		Order:       order,
		SharedCache: true,
		New: func(*sim.Ctx) sim.Operator {
			return newTopN(top, ttl, args.Int("cache"), newSorter(job.Schema, order), job)
		},
		Language: "sql",
		Code:     code,
	})
}

// topN is Flink's AppendOnlyTopNFunction: the first n rows of a key. A row that comes among them puts out -D of the
// one that it displaces, then its own +I: flink nontime-top2-price-asc/price-change.
//
// The rows of a key stand in state by their sort key, each list of equal rows with a TTL of its own, written whenever
// it changes. In front of it is a cache of keys that keeps the rows one TTL from when the key came into it.
type topN struct {
	sim.Base
	n      int
	ttl    stream.Time
	sorter sorter
	keys   *sim.LRU // the cached keys
	cache  map[stream.Key][]ranked
	state  map[stream.Key][]ties

	swept      int // keys in state after the last sweep
	entryBytes int
	rowBytes   int
}

// ranked is a row in its order.
type ranked struct {
	order int64
	tag   stream.Tag
}

// ties are the rows of one sort key in the order of their arrival.
type ties struct {
	rows    []ranked
	written stream.Time
}

func newTopN(n int, ttl stream.Time, cacheSize int, sorter sorter, job Job) *topN {
	o := &topN{
		n: n, ttl: ttl, sorter: sorter, cache: map[stream.Key][]ranked{}, state: map[stream.Key][]ties{},
		entryBytes: job.keyBytes(), rowBytes: job.rowBytes() + ttlBytes(ttl),
	}
	o.keys = sim.NewLRU(max(1, cacheSize/n), ttl, func(e *sim.Entry) { delete(o.cache, e.Key) })
	return o
}

func (o *topN) Rows(c *sim.Ctx, rows []stream.Row) {
	for i := range rows {
		o.row(c, &rows[i])
	}
}

func (o *topN) row(c *sim.Ctx, row *stream.Row) {
	buffer := o.load(row.Key, row.Arrival)
	at := len(buffer)
	for at > 0 && o.sorter.before(c.Records, row.Order, row.Tag, buffer[at-1].order, buffer[at-1].tag) {
		at--
	}
	if at == len(buffer) && len(buffer) >= o.n {
		c.Drop(row, sim.Duplicate)
		return
	}
	buffer = slices.Insert(buffer, at, ranked{row.Order, row.Tag})
	o.write(c.Records, row.Key, buffer, buffer[at], row.Arrival)
	if last := len(buffer) - 1; last == o.n {
		displaced := buffer[last]
		buffer = buffer[:last]
		o.write(c.Records, row.Key, buffer, displaced, row.Arrival)
		c.Again(stream.Delete, row.Key, displaced.tag, row.Arrival)
	}
	o.cache[row.Key] = buffer
	c.Emit(stream.Insert, row)
}

// load returns the rows of a key in their order, from the cache or else from state.
func (o *topN) load(key stream.Key, now stream.Time) []ranked {
	if o.keys.Get(key, now) != nil {
		return o.cache[key]
	}
	o.sweep(now)
	o.keys.Put(key, now, 0, 0, 0)
	var buffer []ranked
	for _, t := range o.state[key] {
		if !o.expired(t, now) {
			buffer = append(buffer, t.rows...)
		}
	}
	o.cache[key] = buffer
	return buffer
}

// write brings the rows of the sort key of one row to state as they stand in the buffer.
func (o *topN) write(records stream.Records, key stream.Key, buffer []ranked, of ranked, now stream.Time) {
	equal := func(r ranked) bool { return o.same(records, r, of) }
	kept := slices.DeleteFunc(o.state[key], func(t ties) bool { return o.expired(t, now) || equal(t.rows[0]) })
	rows := slices.DeleteFunc(slices.Clone(buffer), func(r ranked) bool { return !equal(r) })
	if len(rows) > 0 {
		at := len(kept)
		for at > 0 && o.before(records, of, kept[at-1].rows[0]) {
			at--
		}
		kept = slices.Insert(kept, at, ties{rows, now})
	}
	o.state[key] = kept
}

func (o *topN) before(records stream.Records, a, b ranked) bool {
	return o.sorter.before(records, a.order, a.tag, b.order, b.tag)
}

func (o *topN) same(records stream.Records, a, b ranked) bool {
	return !o.before(records, a, b) && !o.before(records, b, a)
}

// TTL is that of each list of equal rows.
func (o *topN) TTL() stream.Time { return o.ttl }

func (o *topN) expired(t ties, now stream.Time) bool { return o.ttl > 0 && t.written+o.ttl <= now }

// sweep removes what has expired once as much may have done so as is alive.
func (o *topN) sweep(now stream.Time) {
	const few = 1024
	if o.ttl == 0 || len(o.state) < max(few, 2*o.swept) {
		return
	}
	for key, lists := range o.state {
		if !slices.ContainsFunc(lists, func(t ties) bool { return !o.expired(t, now) }) {
			delete(o.state, key)
		}
	}
	cache := make(map[stream.Key][]ranked, o.keys.Len(now))
	o.keys.Each(now, func(e *sim.Entry) { cache[e.Key] = o.cache[e.Key] })
	o.cache, o.swept = cache, len(o.state)
}

// Snapshot copies the state. The cache is lost, and with it the time from which its TTL counts.
func (o *topN) Snapshot(*sim.Ctx) any { return o.cloneState() }

func (o *topN) Restore(_ *sim.Ctx, snapshot any) {
	o.state = snapshot.(map[stream.Key][]ties)
	o.state = o.cloneState()
}

func (o *topN) cloneState() map[stream.Key][]ties {
	state := maps.Clone(o.state)
	for key, lists := range state {
		state[key] = slices.Clone(lists)
	}
	return state
}

func (o *topN) State(c *sim.Ctx) sim.State {
	now, s := c.Now(), sim.State{Cached: o.keys.Len(c.Now())}
	inState := func(key stream.Key) bool {
		return slices.ContainsFunc(o.state[key], func(t ties) bool { return !o.expired(t, now) })
	}
	rows := 0
	for key, lists := range o.state {
		s.Entries++
		for _, t := range lists {
			rows += len(t.rows)
		}
		if inState(key) {
			s.LiveKeys++
		}
	}
	o.keys.Each(now, func(e *sim.Entry) {
		rows += len(o.cache[e.Key])
		if !inState(e.Key) {
			s.LiveKeys++
		}
	})
	s.Bytes = int64(s.Entries*o.entryBytes + rows*o.rowBytes)
	return s
}
