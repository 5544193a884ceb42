package strategies

import (
	"slices"
	"strings"

	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "nontime",
	Engine: "flink-sql",
	About:  "ROW_NUMBER ordered by plain columns: the row that sorts first, corrected when a better one comes",
	Loses: "Ordered by anything but one descending column it is declared insert-only and yet sends +U without -U " +
		"(FLINK-40368): a consumer that trusts the planner stores both rows. Each checkpoint restarts the TTL of " +
		"cached keys.",
	Facts: nontimeFacts,
	Params: append([]Param{{Name: "top", Kind: Int, Default: "1", About: "how many rows of a key: rn <= top"}},
		rankParams...),
	Check: func(args Args, schema stream.Schema) string {
		if args.Int("top") > 1 {
			return "" // a Rank whatever the order
		}
		return checkRank(args, schema)
	},
	Plan: func(args Args, job Job) Plan {
		if top := args.Int("top"); top > 1 {
			return topNPlan(args, job, top)
		}
		return rankPlan(args, job, job.rowNumber(job.orderText(args.OrderBy())))
	},
})

var rankParams = []Param{
	{Name: "order_by", Kind: Order, About: "columns with a direction, such as \"price asc\""},
	ttlParam,
	{Name: "cache", Kind: Int, Default: "10000", About: "table.exec.rank.topn-cache-size, entries a subtask"},
}

// checkRank refuses orders that the planner does not turn into a Rank.
func checkRank(args Args, schema stream.Schema) string {
	if order := args.OrderBy(); len(order) == 1 && order[0].Column == schema.Event {
		return "ordered by the event-time column alone the planner makes a Deduplicate, not a Rank: " +
			"use rowtime-asc or rowtime-desc"
	}
	return ""
}

// rankPlan plans a Top-1 by columns that are no time attribute: StreamExecRank with FastTop1Function. The query leaves
// some columns out.
func rankPlan(args Args, job Job, query string, without ...int) Plan {
	ttl, order := args.Duration("ttl"), args.OrderBy()
	code := job.ddl("orders") + "\n\n" + ttlOption(ttl) + query
	if job.changelog() {
		return job.retractPlan(rankQuery{
			top: 1, ttl: ttl, order: order, node: job.orderText(order), code: code, without: without,
		})
	}
	// The planner takes any top-1 whose order is not one single descending column for insert-only: FLINK-40368, flink
	// nontime-price-asc/price-change, nontime-price-key-desc/price-change. With mini-batch the fault is gone:
	// nontime-price-asc/mini-batch.
	insertOnly := job.Version.mistakesRank() && !job.MiniBatch.on() && !(len(order) == 1 && order[0].Desc)
	p := Plan{
		Changelog: job.topOneMode(insertOnly),
		Operator:  "StreamExecRank",
		Node:      job.rankNode(1, job.orderText(order)),
		Runtime:   "org.apache.flink.table.runtime.operators.rank.FastTop1Function",
		Clock:     "processing time, for the TTL",
		TTL: "the last write to the cache (the first row or a better one), then once more from the last checkpoint " +
			"or eviction: up to twice the TTL",
		Leaks:       ByTTL,
		StateTTL:    ttl,
		Promise:     FirstByOrder,
		Order:       order,
		SharedCache: true, AtCheckpoints: ttl > 0,
		New: func(c *sim.Ctx) sim.Operator {
			return newTopOne(c, ttl, args.Int("cache"), newSorter(job.Schema, order), job)
		},
		Language: "sql",
		Code:     code,
	}
	switch {
	case len(newSorter(job.Schema, order).columns) == 0:
		p.Promise = AnyRow // all rows of a key tie, and none is ever better
	case insertOnly:
		p.Misdeclared = "FLINK-40368"
	}
	p.StateClass = perKeyUnless(ttl)
	return job.planned(p)
}

// topOne is Flink's FastTop1Function. The current row of a key lives in a cache; keyed state is written only when the
// cache evicts by size, or at a checkpoint, which writes all cached rows anew and so restarts their TTL: flink
// nontime-price-asc/ttl-cache-checkpoint, nontime-price-asc/cache-size-1.
type topOne struct {
	sim.Base
	cache  *sim.LRU
	state  *sim.Table
	sorter sorter
	ttl    stream.Time
	now    stream.Time // of the row or checkpoint being handled, for evictions
	saved  stream.Time // the last checkpoint

	entryBytes int
	ttlBytes   int
}

func newTopOne(c *sim.Ctx, ttl stream.Time, cacheSize int, sorter sorter, job Job) *topOne {
	o := &topOne{state: c.NewTable(ttl), sorter: sorter, ttl: ttl, saved: stream.MinTime,
		entryBytes: job.keyBytes() + job.rowBytes(), ttlBytes: ttlBytes(ttl)}
	o.cache = sim.NewLRU(cacheSize, ttl, o.write)
	return o
}

// write moves a cached row to keyed state.
func (o *topOne) write(e *sim.Entry) { o.state.Put(e.Key, o.now, e.Value, e.Tag, 0) }

func (o *topOne) Rows(c *sim.Ctx, rows []stream.Row) {
	inState := o.state.Probe(rows)
	o.cache.Foresee(o.state, len(rows))
	for i := range rows {
		row := &rows[i]
		o.now = row.Arrival
		current := o.cache.Get(row.Key, row.Arrival)
		if current == nil {
			current = inState.Get(i)
		}
		switch {
		case current == nil:
			c.Emit(stream.Insert, row)
		case o.sorter.before(c.Records, row.Order, row.Tag, current.Value, current.Tag):
			c.Update(current.Tag, row)
		default:
			// A row that is no better leaves a state row out of the cache: flink nontime-price-asc/cache-size-1.
			c.Drop(row, sim.Duplicate)
			continue
		}
		o.cache.Put(row.Key, row.Arrival, row.Order, row.Tag, 0)
	}
}

// BeforeCheckpoint writes the cached rows to state. A row that the checkpoint before has written, and that will still
// be cached at the next one, can do without: while it is cached nobody looks at the time of its state.
func (o *topOne) BeforeCheckpoint(c *sim.Ctx) {
	o.now = c.Now()
	if c.CheckpointInterval() == 0 {
		o.cache.Each(o.now, o.write)
		return
	}
	o.cache.WrittenAfter(o.saved, o.now, o.write)
	if o.ttl > 0 {
		expired := min(o.now+c.CheckpointInterval()-o.ttl, o.saved)
		o.cache.WrittenUntil(expired, o.now, o.write)
	}
	o.saved = o.now
}

// Snapshot writes what BeforeCheckpoint left out: to a restored operator, whose cache is empty, the time of the state
// matters.
func (o *topOne) Snapshot(c *sim.Ctx) any {
	o.now = c.Now()
	o.cache.Each(o.now, o.write)
	return nil
}

func (o *topOne) State(c *sim.Ctx) sim.State {
	now := c.Now()
	cached, both := o.cache.Len(now), 0
	o.cache.Each(now, func(e *sim.Entry) {
		if o.state.Has(e.Key, now) {
			both++
		}
	})
	held := o.state.Held()
	return sim.State{
		Entries:  held,
		Cached:   cached,
		LiveKeys: o.state.Live(now) + cached - both,
		Bytes:    int64(held*(o.entryBytes+o.ttlBytes) + cached*o.entryBytes),
	}
}

// sorter compares rows of one key by the columns of an ORDER BY. Columns of the key are left out: they tie.
type sorter struct {
	schema  stream.Schema
	columns []OrderBy
	// inRow says that the first column is a number, which Row.Order and Entry.Value hold.
	inRow bool
}

func newSorter(schema stream.Schema, order []OrderBy) sorter {
	s := sorter{schema: schema}
	for _, by := range order {
		if !isKey(schema, by.Column) {
			s.columns = append(s.columns, by)
		}
	}
	s.inRow = len(s.columns) > 0 && schema.Columns[s.columns[0].Column].Type != stream.String
	return s
}

func isKey(schema stream.Schema, column int) bool {
	for _, k := range schema.Key {
		if k == column {
			return true
		}
	}
	return false
}

// before reports whether row a sorts strictly before row b; equal in all columns is no better.
func (s sorter) before(records stream.Records, orderA int64, a stream.Tag, orderB int64, b stream.Tag) bool {
	rest := s.columns
	if s.inRow {
		if orderA != orderB {
			return (orderA < orderB) != s.columns[0].Desc
		}
		rest = rest[1:]
	}
	if len(rest) == 0 || a == b {
		return false
	}
	rowA, rowB := records.Record(a), records.Record(b)
	for _, by := range rest {
		cmp := rowA[by.Column].Compare(rowB[by.Column], s.schema.Columns[by.Column].Type)
		if cmp != 0 {
			return (cmp < 0) != by.Desc
		}
	}
	return false
}

// orderText renders an order as SQL.
func (j Job) orderText(order []OrderBy) string {
	parts := make([]string, len(order))
	for i, by := range order {
		parts[i] = j.Schema.Columns[by.Column].Name + " ASC"
		if by.Desc {
			parts[i] = j.Schema.Columns[by.Column].Name + " DESC"
		}
	}
	return strings.Join(parts, ", ")
}

// Before compares two rows by the plan's order: whether a sorts strictly before b.
func (p Plan) Before(records stream.Records) func(a, b stream.Tag) bool {
	s := newSorter(records.Schema(), p.Order)
	order := func(tag stream.Tag) int64 {
		if s.inRow {
			return records.Order(tag, s.columns[0].Column)
		}
		return 0
	}
	return func(a, b stream.Tag) bool { return s.before(records, order(a), a, order(b), b) }
}

// nontimeFacts is what is known of the strategy.
var nontimeFacts = slices.Concat(rankState, []Fact{
	{TopicChangelog, "any top-1 order but one single DESC column is declared [I], and yet a better row is sent " +
		"as +U, without the -U of the one before: a fault of the planner " +
		"(FLINK-40368)", "nontime-price-asc/price-change"},
	{TopicChangelog, "so is any order of two columns, both DESC too " +
		"(FLINK-39966)", "nontime-price-key-desc/price-change"},
	{TopicChangelog, "one DESC column is declared [I,UB,UA,D] and sends -U/+U: " +
		"right", "nontime-price-desc/price-change"},
	{TopicChangelog, "ordered by the key all rows tie, the first arrival stays, and no update is ever sent; ASC " +
		"is declared [I]", "nontime-key-asc/price-change"},
	{TopicChangelog, "ordered by the key DESC the same, but declared [I,UB,UA,D]", "nontime-key-desc/price-change"},
	{TopicChangelog, "with mini-batch the fault is gone: declared [I,UB,UA,D], -U comes with +U, and no row " +
		"waits", "nontime-price-asc/mini-batch"},
	{TopicChangelog, "an append-only sink accepts the wrong declaration and is handed " +
		"+U", "nontime-price-asc/append-price-change"},
	{TopicChangelog, "an interval join accepts it, keeps both rows and joins " +
		"each", "downstream/nontime-price-asc-then-interval-join"},
	{TopicChangelog, "a COUNT behind it counts every +U as one more row", "downstream/nontime-price-asc-then-count"},
	{TopicChangelog, "a window aggregate behind it does, too", "downstream/nontime-price-asc-then-window-count"},
	{TopicChangelog, "an upsert sink happens to be right: it keeps the last row of a " +
		"key", "nontime-price-asc/upsert-price-change"},
	{TopicChangelog, "rn <= 2 and more is another operator: a row among the first puts out -D of the one that it " +
		"displaces, then its own +I", "nontime-top2-price-asc/price-change"},
	overChangelog("flink-extra/changelog/price-asc"),
	{TopicChangelog, "so over a changelog an upsert sink gets a delete with each change: a tombstone in an " +
		"upsert-kafka topic", "flink-extra/changelog/price-asc-upsert"},
	{TopicLate, "no lateness test: rows below the watermark are taken, though the ORDER BY may hold the event " +
		"time", "rowtime-asc-tiebreak/late"},
	{TopicLatency, "at once, with the first row of a key and with each better one", "nontime-price-asc/price-change"},
	{TopicLatency, "mini-batch holds nothing back here", "nontime-key-asc/mini-batch"},
	commitLatency,
}, rankDeterminism, []Fact{
	opensReplay,
	callsNoFunction,
	{TopicLoses, "nothing: every key is in the result", "nontime-price-asc/late"},
	{TopicLoses, "NULL sorts lowest: ordered ASC a row without a price takes the place of all " +
		"others", "nontime-price-asc/null-price"},
	{TopicLeaks, "where the declaration is wrong, each better row is one more row to all that believe the " +
		"planner", "nontime-price-asc/append-price-change"},
	{TopicLeaks, "one copy each TTL under steady copies, since they do not extend it", "nontime-key-asc/ttl-chain"},
	{TopicLeaks, "without checkpoints the TTL is one; with them a copy that comes between one and two TTLs may " +
		"be stopped still", "nontime-key-asc/ttl-cache-checkpoint"},
	{TopicLeaks, "rn <= n keeps n - 1 copies of each key on purpose", "nontime-top2-price-asc/price-change"},
})

// rankState and rankDeterminism hold for all that run on this Rank.
var rankState = []Fact{
	{TopicState, "the current row of each key, in a cache of table.exec.rank.topn-cache-size entries a subtask; " +
		"keyed state gets it only at a checkpoint or when the cache is full", "nontime-price-asc/cache-size-1"},
	{TopicState, "a full cache gives up the entry used least recently, and any row of a key is a use. The " +
		"engine's cache does so segment by segment; the lab's is one exact LRU", "nontime-key-asc/cache-size-2"},
	{TopicState, "a cached row lives one TTL from its last write, which is the first row or a better one; copies " +
		"do not extend it, and nothing writes an expired one to " +
		"state", "nontime-price-asc/ttl-cache-no-checkpoint"},
	{TopicState, "a checkpoint writes all cached rows to state, with a TTL of their own from there: a key lives " +
		"up to twice the TTL", "nontime-price-asc/ttl-cache-checkpoint"},
	{TopicState, "a row evicted by size has its TTL restarted in the same way", "nontime-key-asc/cache-size-1-ttl"},
	ignoresHint("state-ttl-hint/hint-rank-price-asc"),
	confluentTTL,
}

var rankDeterminism = []Fact{
	{TopicDeterminism, "processing time: open for rows that tie in all sort columns, of which the first arrival " +
		"is kept, and for the changes on the way; ordered by the key all rows tie", "rowtime-asc-tiebreak/ties"},
	{TopicDeterminism, "watermarks: closed; they are not asked", "nontime-price-asc/late"},
	{TopicDeterminism, "idleness: closed, as the watermark is not asked", "nontime-price-asc/late"},
	{TopicDeterminism, "state TTL: open, and it depends on when checkpoints come and, with a full cache, on " +
		"other keys", "nontime-price-asc/ttl-cache-checkpoint"},
}
