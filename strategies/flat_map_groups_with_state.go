package strategies

import (
	"fmt"
	"slices"

	"deduplab/results"
	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "flat-map-groups-with-state",
	Engine: "spark",
	About:  "flatMapGroupsWithState with an event-time timeout: the first row of a key, for a horizon that depends on its kind",
	Loses: "It leaks copies after the horizon of their key and loses events behind the watermark. As printed one copy makes " +
		"a key immortal, because a call that does not set the timeout clears it; set again, a copy that comes when its key is " +
		"due fails the query.",
	Facts: flatMapGroupsFacts,
	Params: []Param{
		watermarkDelay,
		horizonParam,
		kindParam,
		{Name: "variant", Kind: Enum, Values: []string{"printed", "rearm", "guarded", "safe"}, Default: "printed",
			About: "printed: as in the article, a copy clears the timeout; rearm: a copy sets it again; guarded: printed, but a first row whose " +
				"horizon is over is not remembered; safe: rearm, and a horizon that is over ends with the next watermark"},
	},
	Check: checkHorizon,
	Plan: func(args Args, job Job) Plan {
		variant := args.Text("variant")
		horizon := args.horizon(job.Schema)
		p := Plan{
			Changelog:  stream.InsertOnly,
			Declared:   stream.InsertOnly,
			Operator:   "FlatMapGroupsWithState",
			Runtime:    flatMapGroupsExec,
			StateClass: TimeBounded,
			Clock:      "event time",
			TTL:        "the event time of the first row and the horizon of its kind; fires when the watermark has passed it",
			Leaks:      ByHorizon,
			Language:   "scala",
			Code:       flatMapGroupsCode(args, job),
			Batch: job.stateful(args.delays(), "flatMapGroupsWithState", func(c *sim.BatchCtx) sim.BatchOperator {
				first := firstWins{horizon: horizon.of(c.Records), variant: variant}
				return newFlatMapGroups(c, first.call, true, job.groupBytes())
			}),
		}
		if variant == "printed" || variant == "guarded" {
			p.StateClass = PerKey
			p.TTL += "; a copy clears it for ever"
			p.Finding = immortalKeys
		}
		return p
	},
})

const flatMapGroupsExec = "org.apache.spark.sql.execution.streaming.operators.stateful.flatmapgroupswithstate." +
	"FlatMapGroupsWithStateExec"

// groupBytes is the logical size of a key with first_ts, suppressed, last_ts and timeoutTimestamp.
func (j Job) groupBytes() int {
	return unsafeRowBytes(j.pick(j.Schema.Key)) + unsafeRowBytes(slices.Repeat([]stream.Column{{Type: stream.Int}}, 4))
}

// firstWins is the function of the article, "When the built-in operator is not enough", with what was recorded beside it.
type firstWins struct {
	horizon func(*stream.Row) stream.Time
	variant string
}

func (f firstWins) call(g *groupCall, rows []stream.Row) {
	for i := range rows {
		row := &rows[i]
		if !g.exists {
			until := row.Event + f.horizon(row)
			g.emit(row, "first", 0)
			last := row.Event
			switch f.variant {
			case "guarded": // spark per-key-horizon/timeout-below-watermark-guarded
				if until < g.c.Batch.Watermark {
					continue
				}
			case "rearm", "safe":
				last = until
			}
			g.update(row.Event, last, 0)
			g.tag = row.Tag
			if f.variant == "printed" || f.variant == "guarded" {
				g.setTimeout(until)
			}
		} else {
			g.update(g.first, g.last, g.count+1)
			g.suppress(row, g.count)
		}
		switch f.variant {
		case "rearm": // spark per-key-horizon/rearm
			g.setTimeout(g.last)
		case "safe":
			g.setTimeout(max(g.last, g.c.Batch.Watermark))
		}
		if g.failed {
			return
		}
	}
}

// immortalKeys says how many keys are kept for ever.
func immortalKeys(s *results.Strategy) string {
	n := s.State.KeysLiveEnd - s.State.TimersEnd
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s keys have lost their timeout and will stay for ever: a copy came, and the call for it did not "+
		"set the timeout again", results.FormatCount(n), results.FormatCount(s.State.KeysLiveEnd))
}
