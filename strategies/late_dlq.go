package strategies

import (
	"fmt"
	"strings"

	"deduplab/results"
	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "late-dlq",
	Engine: "flink-sql",
	About:  "a statement set that diverts late rows to a dead letter queue, in front of a windowed strategy",
	Loses: "Rows at or behind the watermark are kept aside instead of lost, copies among them; without an IS NULL test " +
		"the main branch loses the rows that come before the first watermark.",
	Facts: lateDLQFacts,
	Params: []Param{
		{Name: "main", Kind: Enum, Values: []string{"tumble-agg", "window-dedup", "none"}, Default: "tumble-agg",
			About: "the windowed strategy of the main branch; none: the filter alone"},
		sizeParam,
		{Name: "null_check", Kind: Bool, Default: "true", About: "test CURRENT_WATERMARK IS NULL in the main branch"},
		{Name: "branch", Kind: Enum, Values: []string{"main", "dlq"}, Default: "main",
			About: "which branch of the statement set the result is"},
	},
	Check: checkSize,
	Plan: func(args Args, job Job) Plan {
		p := Plan{
			Changelog: job.inputMode(), Operator: "StreamExecCalc", Runtime: "none", Node: job.sourceNode(),
			StateClass: Stateless,
			Clock:      "event time", TTL: "no state", Leaks: NoDeduplication, Language: "sql", UpsertKey: NoKey,
			New: func(*sim.Ctx) sim.Operator { return passThrough{} },
		}
		if main := args.Text("main"); main != "none" {
			inner, _ := Lookup(main)
			innerArgs, _ := inner.Resolve(map[string]string{"size": args.Text("size")}, job.Schema)
			p = inner.Plan(innerArgs, job)
		}
		clock := stream.Time(0)
		if job.MiniBatch.on() && args.Text("main") == "none" && !job.MiniBatch.ByWatermark {
			clock, p.InBatches = job.MiniBatch.Latency, true
		}
		newInner := p.New
		p.New = func(c *sim.Ctx) sim.Operator {
			return &lateFilter{
				main:       newInner(c),
				watermarks: noWatermarks(c.Readers()),
				nullCheck:  args.Bool("null_check"),
				lateBranch: args.Text("branch") == "dlq",
				clock:      clock,
			}
		}
		p.Finding = lateDLQFinding
		p.Code = lateDLQCode(args, job, p.Code)
		inner := p.Refused
		if p = job.planned(p); inner != "" {
			p.Refused = inner
		}
		return p
	},
})

// lateDLQFinding tells why the filter does not catch what the windows behind it lose.
func lateDLQFinding(s *results.Strategy) string {
	if s.Fates.LateFirst == 0 {
		return ""
	}
	return fmt.Sprintf("the filter goes by CURRENT_WATERMARK of its own reader and diverted %s rows; the lost ones passed it "+
		"and were late only behind the shuffle, where the watermark of the other readers counts too",
		results.FormatCount(s.Fates.Diverted))
}

// lateFilter is a WHERE with CURRENT_WATERMARK in the source's chain: it goes by the watermark of the row's own reader,
// NULL before the first one. A row at the watermark is late by it: flink late-dlq/late-dlq, late-dlq/late-dlq-main.
type lateFilter struct {
	main       sim.Operator
	watermarks []stream.Time // by reader
	nullCheck  bool
	lateBranch bool // the result is the late rows
	// clock is the interval of mini-batch where nothing behind the filter goes by event time. The planner then puts a
	// MiniBatchAssigner in front of the filter that goes by the clock, and CURRENT_WATERMARK is the latest multiple of
	// the interval on the clock instead of an event time. Not recorded here, but seen in the engine.
	clock  stream.Time
	passed []stream.Row
}

func noWatermarks(readers int) []stream.Time {
	w := make([]stream.Time, readers)
	for i := range w {
		w[i] = stream.MinTime
	}
	return w
}

func (o *lateFilter) Rows(c *sim.Ctx, rows []stream.Row) {
	o.passed = o.passed[:0]
	for i := range rows {
		row := &rows[i]
		watermark := o.current(row)
		late := row.Event <= watermark
		switch {
		case watermark == stream.MinTime && o.lateBranch, watermark == stream.MinTime && !o.nullCheck:
			// Neither comparison with NULL holds: flink late-dlq/late-dlq-main-no-null-check.
			c.Drop(row, sim.Filtered)
		case watermark == stream.MinTime || late == o.lateBranch:
			o.passed = append(o.passed, *row)
		case o.lateBranch:
			c.Drop(row, sim.Filtered)
		default:
			c.Drop(row, sim.Diverted)
		}
	}
	if len(o.passed) > 0 {
		o.main.Rows(c, o.passed)
	}
}

// current is CURRENT_WATERMARK for a row.
func (o *lateFilter) current(row *stream.Row) stream.Time {
	if o.clock == 0 {
		return o.watermarks[row.Reader]
	}
	return ClockWatermark(row.Arrival, o.clock)
}

func (o *lateFilter) SourceWatermark(c *sim.Ctx, reader int, w stream.Time) {
	o.watermarks[reader] = w
	o.main.SourceWatermark(c, reader, w)
}

func (o *lateFilter) Watermark(c *sim.Ctx, w stream.Time) { o.main.Watermark(c, w) }

func (o *lateFilter) EventTimer(c *sim.Ctx, at stream.Time, due []sim.Ref) {
	o.main.EventTimer(c, at, due)
}

func (o *lateFilter) ProcTimer(c *sim.Ctx, at stream.Time, key stream.Key) {
	o.main.ProcTimer(c, at, key)
}

func (o *lateFilter) BeforeCheckpoint(c *sim.Ctx) { o.main.BeforeCheckpoint(c) }

func (o *lateFilter) Snapshot(c *sim.Ctx) any { return o.main.Snapshot(c) }

// Restore leaves CURRENT_WATERMARK NULL until the next watermark comes.
func (o *lateFilter) Restore(c *sim.Ctx, snapshot any) { o.main.Restore(c, snapshot) }

func (o *lateFilter) State(c *sim.Ctx) sim.State { return o.main.State(c) }

func lateDLQCode(args Args, job Job, main string) string {
	time := job.eventName()
	onTime := fmt.Sprintf("%s > CURRENT_WATERMARK(%s)", time, time)
	if args.Bool("null_check") {
		onTime = fmt.Sprintf("CURRENT_WATERMARK(%s) IS NULL OR %s", time, onTime)
	}
	query := strings.TrimSuffix(strings.TrimPrefix(main, job.ddl("orders")+"\n\n"), ";")
	if query == "" {
		query = "SELECT * FROM orders"
	}
	return fmt.Sprintf(`%s

CREATE VIEW orders AS
  SELECT * FROM all_orders
  WHERE %s;

-- late rows to the dead letter queue, the others to the main query
EXECUTE STATEMENT SET BEGIN
  INSERT INTO dlq
    SELECT * FROM all_orders WHERE %s <= CURRENT_WATERMARK(%s);
  INSERT INTO results
%s;
END;`, job.ddl("all_orders"), onTime, time, time, indent(indent(query)))
}

// lateDLQFacts is what is known of the strategy.
var lateDLQFacts = []Fact{
	{TopicState, "the filter holds none; the main branch holds what its windows hold", "late-dlq/late-dlq-main"},
	{TopicChangelog, "a filter declares what its input declares, [I]; the main branch declares what its windows " +
		"declare", "late-dlq/late-dlq-main"},
	{TopicChangelog, "the planner knows no upsert key of the filter alone: an upsert sink wants ON " +
		"CONFLICT", "_acceptance"},
	{TopicLate, "a row at the watermark is late by this filter, though rowtime-asc would take " +
		"it", "late-dlq/late-dlq"},
	{TopicLate, "so is a row below the watermark whose window is still open, which the window would " +
		"take", "tumble-agg/one-phase-late"},
	{TopicLate, "CURRENT_WATERMARK is NULL before the first watermark: nothing is late " +
		"then", "late-dlq/late-dlq-value"},
	{TopicLate, "numLateRecordsDropped of the windows behind it counts no row that the filter has taken " +
		"out", NotRecorded},
	{TopicLatency, "the filter: at once; the main branch: at the end of the window", "late-dlq/late-dlq-main"},
	commitLatency,
	{TopicDeterminism, "processing time: closed for the filter", "late-dlq/late-dlq-main"},
	{TopicDeterminism, "watermarks: open; what is late in one run is in time in another. Nothing is lost by it, " +
		"but the two branches differ", "late-dlq/late-dlq"},
	opensIdleness,
	{TopicDeterminism, "state TTL: closed; a filter has no state, and windows ignore it", "tumble-agg/ttl-ignored"},
	opensReplay,
	{TopicDeterminism, "non-deterministic functions: open; CURRENT_WATERMARK is one by its " +
		"nature", "late-dlq/late-dlq-value"},
	{TopicLoses, "without an IS NULL test neither branch gets the rows before the first " +
		"watermark", "late-dlq/late-dlq-main-no-null-check"},
	{TopicLoses, "with the test every row is in one of the branches", "late-dlq/late-dlq-main"},
	{TopicLeaks, "the dead letter queue gets late copies as well as late firsts: who reads it must deduplicate " +
		"again", "late-dlq/late-dlq"},
	{TopicLeaks, "the main branch leaks as its windows do: copies on both sides of a " +
		"border", "tumble-agg/two-windows"},
}
