package strategies

import (
	"fmt"
	"strings"

	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "window-dedup",
	Engine: "flink-sql",
	About:  "ROW_NUMBER within a tumbling window: the first or last row of a key in each window, at its end",
	Loses: "It loses events that arrive after their window has fired, and leaks every copy whose event time falls into " +
		"another window.",
	Params: []Param{sizeParam, {Name: "keep", Kind: Enum, Values: []string{"first", "last"}, Default: "first",
		About: "the row with the smallest or the largest event time of a window"}},
	Check: checkSize,
	Plan: func(args Args, job Job) Plan {
		m, order := merge(keepFirstInWindow), "ASC"
		promise := AnyRow
		if args.Text("keep") == "last" {
			m, order, promise = keepLastInWindow, "DESC", LastByEvent
		}
		p := windowPlan(args, job, "StreamExecWindowDeduplicate", m)
		p.Promise = promise
		p.Code = job.windowRowNumber(args.Duration("size"), job.eventName()+" "+order)
		return job.planned(p)
	},
})

// keepFirstInWindow keeps the smallest event time; equal times keep the row that came first: flink window-dedup/ties.
func keepFirstInWindow(_ stream.Records, stands, later group) (group, stream.Tag, sim.Disposition) {
	if later.event < stands.event {
		return later, stands.tag, sim.Replaced
	}
	return stands, later.tag, sim.Duplicate
}

// keepLastInWindow keeps the largest event time; of equal times the row that came last: flink window-dedup-desc/ties.
func keepLastInWindow(_ stream.Records, stands, later group) (group, stream.Tag, sim.Disposition) {
	if later.event >= stands.event {
		return later, stands.tag, sim.Replaced
	}
	return stands, later.tag, sim.Duplicate
}

// windowRowNumber renders the top-1 query within a window.
func (j Job) windowRowNumber(size stream.Time, order string) string {
	return j.ddl("orders") + fmt.Sprintf(`

SELECT window_start, window_end, %s
FROM (
  SELECT *, ROW_NUMBER() OVER (
    PARTITION BY window_start, window_end, %s ORDER BY %s) AS rn
  FROM %s)
WHERE rn = 1;`, j.allColumns(), strings.Join(j.keyNames(), ", "), order, j.tumble(size))
}
