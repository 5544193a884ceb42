package strategies

import (
	"fmt"
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
	Params: []Param{{Name: "ttl", Kind: Duration, Default: "2h", About: "@StateHint(ttl), which wins over table.exec.state.ttl"}},
	Plan: func(args Args, job Job) Plan {
		ttl := args.Duration("ttl")
		p := Plan{
			Changelog: stream.InsertOnly,
			Operator:  "StreamExecProcessTableFunction",
			Runtime:   "org.apache.flink.table.runtime.operators.process.ProcessSetTableOperator",
			Clock:     "processing time, for the TTL",
			TTL:       "the first row; copies do not extend it, since unchanged state is not written back",
			Leaks:     ByTTL,
			New: func(c *sim.Ctx) sim.Operator {
				return &firstSeen{keepFirst{state: c.NewTable(ttl), entryBytes: job.keyBytes() + ttlBytes(ttl) + 1}}
			},
			Language: "sql",
			Code:     ptfCode(job, ttl),
		}
		p.StateClass = perKeyUnless(ttl)
		p.UpsertKey, p.Time = NoKey, PlainTime
		return job.planned(p)
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
	return job.ddl("orders") + `

-- Java:
--
-- public class ExactDeduplication extends ProcessTableFunction<Row> {
--   public static class SeenState { public boolean seen = false; }
--
--   public void eval(` + hint + `,
--                    @ArgumentHint(SET_SEMANTIC_TABLE) Row input) {
--     if (!state.seen) {
--       state.seen = true;
--       collect(input);
--     }
--   }
-- }

CREATE FUNCTION ExactDeduplication AS 'com.example.ExactDeduplication';

SELECT * FROM ExactDeduplication(
  input => TABLE orders PARTITION BY ` + strings.Join(job.keyNames(), ", ") + `,
  uid   => 'exact-deduplication');`
}
