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
		return job.planned(p)
	},
})
