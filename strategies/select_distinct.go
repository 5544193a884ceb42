package strategies

import (
	"fmt"
	"strings"

	"deduplab/results"
	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "select-distinct",
	Engine: "flink-sql",
	About:  "SELECT DISTINCT over the whole row: removes exact copies only",
	Loses: "It lets through every copy that differs in any column, and with a TTL sends -U/+U for each exact copy to " +
		"keep downstream state alive.",
	Facts:  selectDistinctFacts,
	Params: []Param{ttlParam, hintParam, phasesParam},
	Plan: func(args Args, job Job) Plan {
		p := groupPlan(args, job, job.rowBytes(), -1)
		p.Code = distinctCode(args, job, job.allColumns())
		p.Key, p.Leaks, p.UpsertKey = ByRow, ByContent, WholeRowKey
		p.Node, p.Time = "GroupAggregate(groupBy=["+job.allColumns()+"])", Materialized
		p.Finding = distinctFinding
		return job.plannedGroup(p)
	},
})

// distinctFinding counts the updates that keep state downstream alive.
func distinctFinding(s *results.Strategy) string {
	if s.Updates == 0 {
		return ""
	}
	return results.FormatCount(s.Updates) +
		" updates that change nothing: with a TTL every copy sends -U/+U of the row that stands"
}

func distinctCode(args Args, job Job, columns string) string {
	return job.ddl("orders") + "\n\n" + job.groupOptions(args) +
		fmt.Sprintf("SELECT %sDISTINCT %s\nFROM orders;", hintText(args), columns)
}

// groupOptions renders the options of a GROUP BY.
func (j Job) groupOptions(args Args) string {
	if !j.MiniBatch.on() || args.Text("phases") == "two" {
		return ttlOption(args.Duration("ttl"))
	}
	return onePhaseOption + ttlOption(args.Duration("ttl"))
}

// groupPlan plans a GROUP BY with the MIN of a column, or with none, -1, as SELECT DISTINCT is one.
func groupPlan(args Args, job Job, keyBytes, minimum int) Plan {
	const packageName = "org.apache.flink.table.runtime.operators.aggregate."
	ttl := args.Duration("ttl")
	if hint := args.Duration("hint"); hint > 0 {
		// The STATE_TTL hint wins over table.exec.state.ttl: flink select-distinct/state-ttl-hint-over-config.
		ttl = hint
	}
	var replaces replaces
	if minimum >= 0 {
		replaces = smaller(job.Schema, minimum)
	}
	p := Plan{
		// Declared updating with or without a TTL.
		Changelog: stream.Mode(stream.Insert, stream.UpdateBefore, stream.UpdateAfter),
		Operator:  "StreamExecGroupAggregate",
		Runtime:   packageName + "GroupAggFunction",
		Node:      "GroupAggregate(groupBy=[" + strings.Join(job.keyNames(), ", ") + "])",
		Clock:     "none",
		TTL:       "the last copy: each one extends it, so a key seen often enough never expires",
		Leaks:     ByTTL,
		StateTTL:  ttl,
		New: func(c *sim.Ctx) sim.Operator {
			if job.changelog() {
				return newChangelogGroup(c, ttl, minimum, keyBytes, job.Schema)
			}
			o := &groupAggregate{
				state: c.NewTable(ttl), ttl: ttl, replaces: replaces, entryBytes: keyBytes + ttlBytes(ttl),
			}
			switch {
			case !job.MiniBatch.on():
				return o
			case args.Text("phases") == "one":
				return job.MiniBatch.byClock(c, &batchAggregate{groupAggregate: *o, keyBytes: keyBytes})
			}
			return newTwoPhaseAggregate(c, job.MiniBatch, *o, keyBytes)
		},
		Language: "sql",
	}
	switch {
	case !job.MiniBatch.on():
	case args.Text("phases") == "one":
		p.Runtime = packageName + "MiniBatchGroupAggFunction"
	default:
		p.Operator = "StreamExecLocalGroupAggregate, StreamExecGlobalGroupAggregate"
		p.Runtime = packageName + "MiniBatchGlobalGroupAggFunction"
	}
	p.StateClass, p.InBatches = perKeyUnless(ttl), job.MiniBatch.on()
	if job.changelog() {
		p.Changelog = AllChanges
	}
	return p
}

// plannedGroup fits the plan of a GROUP BY to the job's sink.
func (j Job) plannedGroup(p Plan) Plan {
	p = j.planned(p)
	if j.MiniBatch.on() {
		return j.notModelled(p, "an aggregate in mini-batches that takes rows back")
	}
	return p
}

// replaces reports whether a later row takes the place of the one that stands for its group. Nil: never.
type replaces func(records stream.Records, stands, later stream.Tag) bool

func (r replaces) does(records stream.Records, stands, later stream.Tag) bool {
	return r != nil && r(records, stands, later)
}

// groupAggregate is Flink's GroupAggFunction, for aggregates that one row stands for. Without a TTL a row that changes
// nothing sends nothing; with one every row sends -U/+U of what stands, and restarts the TTL: flink
// select-distinct-key/retract-ttl-chain, select-distinct-key/group-by-min-hint.
type groupAggregate struct {
	sim.Base
	state      *sim.Table
	ttl        stream.Time
	replaces   replaces
	entryBytes int
}

func (o *groupAggregate) Rows(c *sim.Ctx, rows []stream.Row) {
	seen := o.state.Probe(rows)
	for i := range rows {
		row := &rows[i]
		before := seen.Get(i)
		switch {
		case before == nil:
			seen.Put(i, 0, row.Tag, 0)
			c.Emit(stream.Insert, row)
		case o.replaces.does(c.Records, before.Tag, row.Tag):
			c.Update(before.Tag, row)
			seen.Put(i, 0, row.Tag, 0)
		default:
			c.Drop(row, sim.Duplicate)
			if tag := before.Tag; o.ttl > 0 {
				o.keepAlive(c, before, row.Arrival)
				seen.Put(i, 0, tag, 0)
			}
		}
	}
}

// keepAlive sends what stands once more.
func (o *groupAggregate) keepAlive(c *sim.Ctx, e *sim.Entry, at stream.Time) {
	if c.UpdateBefore() {
		c.Again(stream.UpdateBefore, e.Key, e.Tag, at)
	}
	c.Again(stream.UpdateAfter, e.Key, e.Tag, at)
}

func (o *groupAggregate) State(c *sim.Ctx) sim.State { return tableState(c, o.state, o.entryBytes) }

// selectDistinctFacts is what is known of the strategy.
var selectDistinctFacts = []Fact{
	{TopicState, "every distinct row, whole: per record, if events differ at all", "select-distinct/many-keys"},
	{TopicState, "each copy restarts the TTL, so a row that is seen often enough never " +
		"expires", "select-distinct/ttl-chain"},
	{TopicState, "a STATE_TTL hint is honoured, and wins over " +
		"table.exec.state.ttl", "select-distinct/state-ttl-hint-over-config"},
	confluentTTL,
	{TopicChangelog, "declared [I,UB,UA], for an upsert sink [I,UA], with or without a TTL; an append-only sink " +
		"refuses it", "select-distinct/upsert-ttl-refresh"},
	{TopicChangelog, "without a TTL a copy sends nothing", "select-distinct/in-order-dup"},
	{TopicChangelog, "with a TTL each copy sends -U/+U of the same row, to keep it alive " +
		"downstream", "select-distinct/ttl-chain"},
	{TopicChangelog, "its upsert key is the whole row: an upsert sink with another key wants ON " +
		"CONFLICT", "_acceptance"},
	{TopicChangelog, "a PRIMARY KEY NOT ENFORCED on the source does not make the planner drop " +
		"it", "pk-not-enforced/select-distinct"},
	{TopicLate, "no lateness test: rows below the watermark are taken", "select-distinct/late"},
	{TopicLatency, "at once, with the first arrival of a row", "select-distinct/in-order-dup"},
	{TopicLatency, "with mini-batch when the clock reaches a multiple of the interval; two phases, of which the " +
		"second counts what the first hands on", "select-distinct-key/mini-batch-size"},
	commitLatency,
	{TopicDeterminism, "processing time: closed; the result is a set, whatever the order of " +
		"arrival", "select-distinct/out-of-order"},
	{TopicDeterminism, "watermarks: closed; they are not asked", "select-distinct/late"},
	{TopicDeterminism, "idleness: closed, as the watermark is not asked", "select-distinct/late"},
	{TopicDeterminism, "state TTL: open; whether a key is sent as +U or as +I again depends on " +
		"it", "select-distinct/ttl-refresh"},
	opensReplay,
	callsNoFunction,
	{TopicLoses, "nothing: every distinct row is in the result", "select-distinct/late"},
	{TopicLeaks, "every copy that differs in any column, be it the time of the " +
		"retry", "select-distinct/price-change"},
	{TopicLeaks, "a row that rested for one TTL comes out as +I again", "select-distinct/ttl-at"},
	{TopicLeaks, "with a TTL, whatever stores each change it is handed as a row holds every " +
		"copy", "select-distinct/ttl-chain"},
}
