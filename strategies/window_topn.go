package strategies

import (
	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "window-topn",
	Engine: "flink-sql",
	About:  "ROW_NUMBER within a tumbling window ordered by plain columns: the row that sorts first, at the window's end",
	Loses: "It loses events that arrive after their window has fired, and leaks every copy whose event time falls into " +
		"another window.",
	Facts:  windowTopNFacts,
	Params: []Param{sizeParam, {Name: "order_by", Kind: Order, About: "columns with a direction, such as \"price asc\""}},
	Check: func(args Args, schema stream.Schema) string {
		if order := args.OrderBy(); len(order) == 1 && order[0].Column == schema.Event {
			return "ordered by the event-time column alone the planner makes a window deduplication: use window-dedup"
		}
		return checkSize(args, schema)
	},
	Plan: func(args Args, job Job) Plan {
		s := newSorter(job.Schema, args.OrderBy())
		// Ties keep the first arrival, NULL sorts lowest: flink window-topn-price-asc/ties, /null-price.
		m := func(records stream.Records, stands, later group) (group, stream.Tag, sim.Disposition) {
			if s.before(records, later.order, later.tag, stands.order, stands.tag) {
				return later, stands.tag, sim.Replaced
			}
			return stands, later.tag, sim.Duplicate
		}
		p := windowPlan(args, job, "StreamExecWindowRank", m)
		p.UpsertKey = SinkKey // unlike window-dedup: flink _acceptance.json
		p.Order, p.Promise = args.OrderBy(), FirstByOrder
		p.Code = job.windowRowNumber(args.Duration("size"), job.orderText(args.OrderBy()))
		return job.insertsOnly(job.planned(p), "StreamPhysicalWindowRank")
	},
})

// windowTopNFacts is what is known of the strategy.
var windowTopNFacts = []Fact{
	{TopicState, "one row for each key and window, with one timer, until the end of the window: " +
		"time-bounded", "window-topn-price-asc/many-keys"},
	{TopicState, "rows wait in a memory buffer; a watermark that closes a window in it, or a checkpoint, moves " +
		"the whole buffer to keyed state", "window-dedup/checkpoint"},
	{TopicState, "table.exec.state.ttl does nothing: the end of the window removes the state, and a key lives " +
		"one window plus the watermark's delay", "window-topn-price-asc/ttl-ignored"},
	{TopicChangelog, "declared [I], and only +I comes out: the smallest row of a window once, at its end; an " +
		"upsert sink takes it as it is", "window-topn-price-asc/two-windows"},
	refusesChangelog,
	{TopicLate, "a row is late only once its window has fired, which is when the watermark is at window_end - 1 " +
		"ms or above; a row below the watermark in an open window is taken", "window-topn-price-asc/late"},
	{TopicLate, "numLateRecordsDropped counts each late row, copies and firsts alike", "window-topn-price-asc/late"},
	{TopicLatency, "at the end of the window: when the watermark reaches window_end - 1 " +
		"ms", "window-topn-price-asc/basic"},
	commitLatency,
	{TopicDeterminism, "processing time: open for rows that tie, of which the first arrival is " +
		"kept", "window-topn-price-asc/ties"},
	{TopicDeterminism, "watermarks: open; a row whose window is still open in one run is late in " +
		"another", "window-topn-price-asc/late"},
	opensIdleness,
	{TopicDeterminism, "state TTL: closed; table.exec.state.ttl does nothing " +
		"here", "window-topn-price-asc/ttl-ignored"},
	opensReplay,
	callsNoFunction,
	{TopicLoses, "any row whose window has fired, the only row of its key among them", "window-topn-price-asc/late"},
	{TopicLoses, "NULL sorts lowest: ordered ASC a row without a price takes the place of all others of its " +
		"window", "window-topn-price-asc/null-price"},
	{TopicLeaks, "copies 1 ms apart come out twice if a window border lies between " +
		"them", "window-topn-price-asc/two-windows"},
}
