package strategies

import (
	"fmt"
	"slices"
	"strings"

	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "ptf",
	Engine: "flink-sql",
	About:  "a process table function that collects the first row of a key",
	Loses: "It leaks one copy each TTL: the article says that the TTL counts from when the key was last seen, the engine " +
		"counts from the first row, because unchanged state is not written back.",
	Facts: ptfFacts,
	Params: []Param{{Name: "ttl", Kind: Duration, Default: "2h", Expires: true,
		About: "@StateHint(ttl), which wins over table.exec.state.ttl"}},
	Plan: func(args Args, job Job) Plan {
		ttl := args.Duration("ttl")
		p := Plan{
			Changelog: stream.InsertOnly,
			Operator:  "StreamExecProcessTableFunction",
			Runtime:   "org.apache.flink.table.runtime.operators.process.ProcessSetTableOperator",
			Clock:     "processing time, for the TTL",
			TTL:       "the first row; copies do not extend it, since unchanged state is not written back",
			Leaks:     ByTTL,
			StateTTL:  ttl,
			New: func(c *sim.Ctx) sim.Operator {
				return &firstSeen{keepFirst{state: c.NewTable(ttl), entryBytes: job.keyBytes() + ttlBytes(ttl) + 1}}
			},
			Language: "sql",
			Code:     ptfCode(job, ttl),
		}
		p.StateClass = perKeyUnless(ttl)
		p.UpsertKey, p.Time = NoKey, PlainTime
		p = job.insertsOnly(job.planned(p), "StreamPhysicalProcessTableFunction")
		return p.refusedFor(job.Version.processTableFunctions())
	},
})

// firstSeen is keepFirst with its state named as the framework names it.
type firstSeen struct{ keepFirst }

func (o *firstSeen) State(c *sim.Ctx) sim.State {
	s := o.keepFirst.State(c)
	s.Named = map[string]int{"state": s.Entries, "internal-named-timers-map": 0}
	return s
}

func ptfCode(job Job, ttl stream.Time) string {
	hint := "@StateHint SeenState state"
	if ttl > 0 {
		hint = fmt.Sprintf("@StateHint(ttl = %q) SeenState state", flinkDuration(ttl))
	}
	var types, values []string
	for i, c := range job.Schema.Columns {
		if !slices.Contains(job.Schema.Key, i) {
			types = append(types, c.Name+" "+sqlType(c))
			values = append(values, fmt.Sprintf("input.getField(%q)", c.Name))
		}
	}
	return job.ddl("orders") + `

-- Java, to be compiled with javac -parameters: Flink takes the names of state and input from there.
-- The framework puts the key in front of what is collected, so the output is without it.
--
-- package com.example;
--
-- import static org.apache.flink.table.annotation.ArgumentTrait.SET_SEMANTIC_TABLE;
--
-- import org.apache.flink.table.annotation.ArgumentHint;
-- import org.apache.flink.table.annotation.DataTypeHint;
-- import org.apache.flink.table.annotation.FunctionHint;
-- import org.apache.flink.table.annotation.StateHint;
-- import org.apache.flink.table.functions.ProcessTableFunction;
-- import org.apache.flink.types.Row;
--
-- @FunctionHint(output = @DataTypeHint("ROW<` + strings.Join(types, ", ") + `>"))
-- public class ExactDeduplication extends ProcessTableFunction<Row> {
--   public static class SeenState { public boolean seen = false; }
--
--   public void eval(` + hint + `,
--                    @ArgumentHint(SET_SEMANTIC_TABLE) Row input) {
--     if (!state.seen) {
--       state.seen = true;
--       collect(Row.of(` + strings.Join(values, ", ") + `));
--     }
--   }
-- }

CREATE FUNCTION ExactDeduplication AS 'com.example.ExactDeduplication';

SELECT * FROM ExactDeduplication(
  input => TABLE orders PARTITION BY ` + strings.Join(job.keyNames(), ", ") + `,
  uid   => 'exact-deduplication');`
}

// ptfFacts is what is known of the strategy.
var ptfFacts = []Fact{
	{TopicState, "one flag a key, kept by the framework", "ptf/many-keys"},
	{TopicState, "the TTL runs from the first row: unchanged state is not written back, so copies do not extend " +
		"it and a key lives exactly one TTL. The article says from when the key was last seen", "ptf/ttl-chain"},
	{TopicState, "a copy does not refresh it, at whatever distance", "ptf/ttl-refresh"},
	{TopicState, "@StateHint(ttl) wins over table.exec.state.ttl", "ptf/ttl-hint-over-config"},
	{TopicState, "an expired entry stays in memory until the operator uses its state " +
		"again", "ptf/ttl-physical-cleanup"},
	{TopicChangelog, "declared [I], and only +I comes out: an append-only sink takes it", "ptf/append"},
	{TopicChangelog, "the planner knows no upsert key and no time attribute of its result: an upsert sink wants " +
		"ON CONFLICT, and windows, MATCH_RECOGNIZE and temporal joins refuse it", "_acceptance"},
	{TopicLate, "no lateness test: rows below the watermark are taken", "ptf/late"},
	{TopicLatency, "at once, with the first arrival of a key", "ptf/in-order-dup"},
	commitLatency,
	{TopicDeterminism, "processing time: open; the first to arrive is kept, whatever its event time or price. " +
		"Closed for copies that equal their original", "ptf/out-of-order"},
	{TopicDeterminism, "watermarks: closed; they are not asked", "ptf/late"},
	{TopicDeterminism, "idleness: closed, as the watermark is not asked", "ptf/late"},
	{TopicDeterminism, "state TTL: open; under steady copies one comes through each TTL", "ptf/ttl-chain"},
	opensReplay,
	{TopicDeterminism, "non-deterministic functions: none in the article's function; yours is as deterministic " +
		"as its Java", ArticleOnly},
	{TopicLoses, "nothing: the first row of each key is in the result, if not the earliest", "ptf/late"},
	{TopicLeaks, "one copy each TTL under steady copies, since they do not extend it", "ptf/ttl-chain"},
	{TopicLeaks, "at exactly one TTL after the first row a copy is new again", "ptf/ttl-at"},
}
