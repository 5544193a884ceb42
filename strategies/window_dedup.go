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
	Facts: windowDedupFacts,
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
		return job.insertsOnly(job.planned(p), "StreamPhysicalWindowDeduplicate")
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

// windowDedupFacts is what is known of the strategy.
var windowDedupFacts = []Fact{
	{TopicState, "one row for each key and window, with one timer, until the end of the window: " +
		"time-bounded", "window-dedup/many-keys"},
	{TopicState, "rows wait in a memory buffer; a watermark that closes a window in it, or a checkpoint, moves " +
		"the whole buffer to keyed state", "window-dedup/checkpoint"},
	{TopicState, "table.exec.state.ttl does nothing: the end of the window removes the state, and a key lives " +
		"one window plus the watermark's delay", "window-dedup/ttl-ignored"},
	{TopicChangelog, "declared [I], and only +I comes out", "window-dedup/basic"},
	{TopicChangelog, "the planner knows no upsert key of it: an upsert sink wants ON CONFLICT", "_acceptance"},
	refusesChangelog,
	{TopicLate, "a row is late only once its window has fired, which is when the watermark is at window_end - 1 " +
		"ms or above; a row below the watermark in an open window is taken", "window-dedup/late"},
	{TopicLate, "numLateRecordsDropped counts each late row at once, copies and firsts " +
		"alike", "window-dedup/late-same-key"},
	{TopicLatency, "at the end of the window: when the watermark reaches window_end - 1 ms", "window-dedup/basic"},
	{TopicLatency, "with mini-batch watermarks reach the window at the ends of the intervals " +
		"only", "window-dedup/mini-batch"},
	commitLatency,
	{TopicDeterminism, "processing time: open for equal times: keep: first takes the first arrival, keep: last " +
		"the last one", "window-dedup/ties"},
	{TopicDeterminism, "watermarks: open; a row whose window is still open in one run is late in " +
		"another", "window-dedup/late"},
	opensIdleness,
	{TopicDeterminism, "state TTL: closed; table.exec.state.ttl does nothing here", "window-dedup/ttl-ignored"},
	opensReplay,
	callsNoFunction,
	{TopicLoses, "any row whose window has fired, the only row of its key among them", "window-dedup/late"},
	{TopicLeaks, "copies 1 ms apart come out twice if a window border lies between them", "window-dedup/two-windows"},
}
