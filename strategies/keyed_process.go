package strategies

import (
	"fmt"
	"maps"
	"strings"

	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "keyed-process",
	Engine: "flink-datastream",
	About:  "a KeyedProcessFunction that emits the first row of a key and remembers it",
	Loses: "With a timer on every event the timer of the first one clears the state however recent the last copy is, " +
		"and stale timers go on clearing the states of later firsts.",
	Facts: keyedProcessFacts,
	Params: []Param{
		{Name: "ttl", Kind: Duration, Default: "0s", Expires: true,
			About: "StateTtlConfig of the state, written by the first row only; 0s: none"},
		{Name: "timer", Kind: Duration, Default: "0s", Expires: true,
			About: "processing-time timer that clears the state; 0s: none"},
		{Name: "timer_on", Kind: Enum, Values: []string{"every", "first"}, Default: "every",
			About: "which events register the timer: every one, as the article does, or the first one only"},
		{Name: "side_output", Kind: Bool, Default: "false", About: "send copies to a side output instead of dropping them"},
		{Name: "state", Kind: Enum, Values: []string{"row", "flag"}, Default: "row",
			About: "what is remembered of a key: the whole row, as the article does, or a flag"},
	},
	Plan: func(args Args, job Job) Plan {
		ttl, timer := args.Duration("ttl"), args.Duration("timer")
		everyEvent := args.Text("timer_on") == "every"
		p := Plan{
			Changelog:  job.inputMode(), // what it can emit: rows pass with their kind. No planner declares it,
			Declared:   job.inputMode(), // and none refuses a sink
			Operator:   "KeyedProcess",
			Runtime:    "org.apache.flink.streaming.api.operators.KeyedProcessOperator",
			StateClass: perKeyUnless(max(ttl, timer)),
			Clock:      "processing time",
			TTL:        "the first row; copies do not extend it",
			Leaks:      ByTTL,
			StateTTL:   ttl,
			Timer:      timer,
			Language:   "java",
			Code:       keyedProcessCode(args, job),
		}
		stateBytes := 1
		if args.Text("state") == "row" {
			stateBytes = job.rowBytes()
		}
		if timer > 0 {
			p.TTL = "the timer of the first event: it clears the state however recent the last copy is"
			p.Leaks = ByTimer
		}
		to := sim.Duplicate
		if args.Bool("side_output") {
			to = sim.Aside
		}
		p.New = func(c *sim.Ctx) sim.Operator {
			if timer > 0 {
				c.TimersFrom(func(arrival stream.Time) stream.Time { return arrival + timer })
			}
			return &keyedProcess{
				state: c.NewTable(ttl), timer: timer, everyEvent: everyEvent, copies: to,
				instant: stream.MinTime, registered: map[stream.Key]bool{},
				entryBytes: job.keyBytes() + ttlBytes(ttl) + stateBytes, timerBytes: job.timerBytes(),
			}
		}
		return p
	},
})

// keyedProcess is the DataStream function of the article. Its timers belong to the key, not to the entry: one that was
// registered for an earlier first clears the state of a later one: flink keyed-process-timer/old-timer-clears-early.
type keyedProcess struct {
	sim.Base
	state      *sim.Table
	timer      stream.Time
	everyEvent bool
	copies     sim.Disposition

	instant    stream.Time // the keys below registered a timer at it
	registered map[stream.Key]bool

	entryBytes, timerBytes int
}

func (o *keyedProcess) Rows(c *sim.Ctx, rows []stream.Row) {
	seen := o.state.Probe(rows)
	for i := range rows {
		row := &rows[i]
		first := seen.Get(i) == nil
		if first {
			seen.Put(i, 0, row.Tag, 0)
			c.Emit(row.Kind, row) // it sees rows as they come, whatever their kind
		} else {
			c.Drop(row, o.copies)
		}
		if o.timer > 0 && (first || o.everyEvent) {
			o.register(c, row)
		}
	}
}

// register sets the timer of a row. Flink keeps timers as a set: one per key and millisecond. flink
// keyed-process-timer/same-ms
func (o *keyedProcess) register(c *sim.Ctx, row *stream.Row) {
	if row.Arrival != o.instant {
		o.instant = row.Arrival
		clear(o.registered)
	}
	if !o.registered[row.Key] {
		o.registered[row.Key] = true
		c.ProcTimer(row.Arrival+o.timer, row.Key)
	}
}

func (o *keyedProcess) ProcTimer(_ *sim.Ctx, _ stream.Time, key stream.Key) { o.state.Delete(key) }

// registration names the keys that registered a timer at one instant.
type registration struct {
	instant stream.Time
	keys    map[stream.Key]bool
}

func (o *keyedProcess) Snapshot(*sim.Ctx) any {
	return registration{o.instant, maps.Clone(o.registered)}
}

// Restore takes over which timers the instant of the checkpoint has, so that none is registered twice.
func (o *keyedProcess) Restore(_ *sim.Ctx, snapshot any) {
	r := snapshot.(registration)
	o.instant, o.registered = r.instant, maps.Clone(r.keys)
}

func (o *keyedProcess) State(c *sim.Ctx) sim.State {
	s := tableState(c, o.state, o.entryBytes)
	s.Bytes += int64(c.Timers().Proc * o.timerBytes)
	return s
}

func keyedProcessCode(args Args, job Job) string {
	var b strings.Builder
	line := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	timer := args.Duration("timer")
	valueType, remember := "Order", "order"
	if args.Text("state") == "flag" {
		valueType, remember = "Boolean", "true"
	}
	line("public class Deduplicate extends KeyedProcessFunction<String, Order, Order> {")
	if args.Bool("side_output") {
		line("  public static final OutputTag<Order> DUPLICATES = new OutputTag<>(\"duplicates\") {};")
	}
	line("  private transient ValueState<%s> seen;", valueType)
	line("")
	line("  @Override")
	line("  public void open(OpenContext context) {")
	line("    var descriptor = new ValueStateDescriptor<>(\"seen\", %s.class);", valueType)
	if ttl := args.Duration("ttl"); ttl > 0 {
		line("    descriptor.enableTimeToLive(StateTtlConfig.newBuilder(Duration.ofMillis(%d)).build());", ttl)
	}
	line("    seen = getRuntimeContext().getState(descriptor);")
	line("  }")
	line("")
	line("  @Override")
	line("  public void processElement(Order order, Context context, Collector<Order> out) throws Exception {")
	register := func(indent string) {
		line("%svar timers = context.timerService();", indent)
		line("%stimers.registerProcessingTimeTimer(timers.currentProcessingTime() + %d);", indent, timer)
	}
	line("    if (seen.value() == null) {")
	line("      seen.update(%s);", remember)
	line("      out.collect(order);")
	if timer > 0 && args.Text("timer_on") == "first" {
		register("      ")
	}
	if args.Bool("side_output") {
		line("    } else {")
		line("      context.output(DUPLICATES, order);")
	}
	line("    }")
	if timer > 0 && args.Text("timer_on") == "every" {
		register("    ")
	}
	line("  }")
	if timer > 0 {
		line("")
		line("  @Override")
		line("  public void onTimer(long at, OnTimerContext context, Collector<Order> out) {")
		line("    seen.clear();")
		line("  }")
	}
	line("}")
	line("")
	b.WriteString("orders.keyBy(order -> order." + strings.Join(job.keyNames(), " + order.") +
		").process(new Deduplicate());")
	return b.String()
}

// keyedProcessFacts is what is known of the strategy.
var keyedProcessFacts = []Fact{
	{TopicState, "the first row of each key, kept in a ValueState; without a TTL or a timer for " +
		"ever", "keyed-process/many-keys"},
	{TopicState, "ttl: StateTtlConfig, written by the first row only; copies do not extend it and a key lives " +
		"exactly one TTL", "keyed-process-ttl/ttl-refresh"},
	{TopicState, "ttl: an expired entry stays in memory until the operator uses its state " +
		"again", "keyed-process-ttl/ttl-physical-cleanup"},
	{TopicState, "timer on every event, as the article does it: the first one clears the state, however recent " +
		"the last copy; none is deleted, so timers grow with events, not keys", "keyed-process-timer/many-keys"},
	{TopicState, "timers are a set: one for each key and millisecond", "keyed-process-timer/same-ms"},
	{TopicState, "timer on the first event only: one timer a key, and a life of exactly its " +
		"span", "keyed-process-timer-on-first/basic"},
	{TopicChangelog, "insert-only: only +I comes out; there is no planner to declare " +
		"anything", "keyed-process/price-change"},
	{TopicChangelog, "over a source of updates and deletes (job.input: changelog) the first row of a key goes on with " +
		"its kind, a -D too, into whatever stands behind it: DataStream API, nobody checks", NotRecorded},
	{TopicChangelog, "side_output gets exactly the rows that are not " +
		"emitted", "keyed-process-side-output/price-change"},
	{TopicLate, "no lateness test: rows below the watermark are taken", "keyed-process/late"},
	{TopicLatency, "at once, with the first arrival of a key", "keyed-process/in-order-dup"},
	commitLatency,
	{TopicDeterminism, "processing time: open; the first to arrive is kept, and timers go by the " +
		"clock", "keyed-process/out-of-order"},
	{TopicDeterminism, "watermarks: closed; they are not asked", "keyed-process/late"},
	{TopicDeterminism, "idleness: closed, as the watermark is not asked", "keyed-process/late"},
	{TopicDeterminism, "state TTL: open, with a ttl as with a timer", "keyed-process-ttl/ttl-at"},
	opensReplay,
	{TopicDeterminism, "non-deterministic functions: none in the article's function; yours is as deterministic " +
		"as its Java", ArticleOnly},
	{TopicLoses, "nothing: the first row of each key is in the result, if not the earliest", "keyed-process/late"},
	{TopicLoses, "a NULL key fails the job; SQL would group NULLs as one key", "keyed-process/null-key"},
	{TopicLeaks, "ttl: at exactly one TTL after the first row a copy is new again", "keyed-process-ttl/ttl-at"},
	{TopicLeaks, "timer on every event: the next copy after the first timer, and stale timers clear the states " +
		"of later firsts: 5 rows of one order in 50 min", "keyed-process-timer/old-timer-clears-early"},
	{TopicLeaks, "timer on the first event: one copy each span", "keyed-process-timer-on-first/basic"},
}
