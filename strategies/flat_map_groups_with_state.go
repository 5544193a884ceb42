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
	About: "flatMapGroupsWithState with an event-time timeout: the first row of a key, for a horizon that depends on " +
		"its kind",
	Loses: "It leaks copies after the horizon of their key and loses events behind the watermark. As printed one copy " +
		"makes " +
		"a key immortal, because a call that does not set the timeout clears it; set again, a copy that comes when its key " +
		"is " +
		"due fails the query.",
	Facts: flatMapGroupsFacts,
	Params: []Param{
		watermarkDelay,
		horizonParam,
		kindParam,
		{Name: "variant", Kind: Enum, Values: []string{"printed", "rearm", "guarded", "safe"}, Default: "printed",
			About: "printed: as in the article, a copy clears the timeout; rearm: a copy sets it again; guarded: printed, but " +
				"a first row whose " +
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
			InBatches:  true, SharedCache: true,
			Language: "scala",
			Code:     flatMapGroupsCode(args, job),
			Batch: job.stateful(args.delays(), "flatMapGroupsWithState", func(c *sim.BatchCtx) sim.BatchOperator {
				first := firstWins{horizon: horizon.of(c.Records), variant: variant}
				return newFlatMapGroups(c, first.call, true, job.groupBytes())
			}),
		}
		p.Batch.Consumers = appendConsumers
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

// firstWins is the function of the article, "When the built-in operator is not enough", with what was recorded beside
// it.
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

// withoutTimeout counts the keys that had no timeout at the end.
func withoutTimeout(s *results.Strategy) int64 {
	if len(s.State.Series) == 0 {
		return 0
	}
	end := s.State.Series[len(s.State.Series)-1]
	return end.KeysLive - end.Timers
}

// immortalKeys says how many keys are kept for ever.
func immortalKeys(s *results.Strategy) string {
	n := withoutTimeout(s)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s keys have lost their timeout and will stay for ever: a copy came, and the call for it "+
		"did not "+
		"set the timeout again", results.FormatCount(n), results.FormatCount(s.State.KeysLiveEnd))
}

var flatMapGroupsFacts = []Fact{
	{TopicState, "one object a key, with the event time of the first row and the number of rows suppressed, and the " +
		"timeout that " +
		"Spark keeps beside it", "spark/per-key-horizon-basic"},
	everyCallClears("a copy handled without setTimeoutTimestamp makes its key immortal, and the state grows for "+
		"ever", "spark/per-key-horizon-duplicate-disarms-timeout"),
	{TopicState, "rearm: set again on every call, to the same moment, the timeout stays", "spark/per-key-horizon-rearm"},
	{TopicState, "rearm: but in the batch in which a key is due its row comes first, and to set the old moment again " +
		"fails the " +
		"query", "spark/per-key-horizon-rearm-after-due"},
	{TopicState, "guarded: a first row whose horizon is over goes out and is not remembered; copies still clear the " +
		"timeout", "spark/per-key-horizon-timeout-below-watermark-guarded"},
	{TopicState, "safe: the timeout is set again, and never before the watermark. It is the only variant here that " +
		"neither keeps " +
		"keys for ever nor fails", NotRecorded},
	timeoutFires,
	{TopicState, "so in event time a key is held until a row comes that is newer than its first by more than the " +
		"horizon and the " +
		"delay", "spark/per-key-horizon-timeout-tie"},
	{TopicState, "the horizon is that of the kind of the first row, whatever kind its copies are " +
		"of", "spark/per-key-horizon-sort-in-batch"},
	rowsBeforeTimeouts,
	{TopicState, "timeouts survive a restart", "spark/per-key-horizon-restart"},
	{TopicChangelog, "append-only: the first row of a key goes out with all its columns, nothing is taken " +
		"back", "spark/per-key-horizon-basic"},
	{TopicChangelog, "the number of suppressed rows is known when the key times out: a function that wants it in the " +
		"result must " +
		"return a row then", "spark/per-key-horizon-suppressed-count"},
	groupsInKeyOrder,
	{TopicLate, "with an event-time timeout late rows never reach the function", "spark/per-key-horizon-late"},
	lateInBatches, lateWithinBatch,
	slowerInput,
	waitsForBatch,
	batchesByTheClock,
	{TopicDeterminism, "watermarks: open; they move batch by batch, and with them what is late and which keys are " +
		"forgotten", "spark/per-key-horizon-rows-and-timeout-same-batch"},
	quietInput,
	{TopicDeterminism, "state TTL: there is none; what ends a key is its timeout, which the watermark " +
		"fires", "spark/per-key-horizon-timeout-tie"},
	replayedGroups,
	{TopicDeterminism, "non-deterministic functions: none in the article's function; yours is as deterministic as its " +
		"Scala", ArticleOnly},
	{TopicLoses, "late firsts", "spark/per-key-horizon-late"},
	timeoutInThePast,
	{TopicLoses, "null is a key like any other: all rows without an id are copies of the first " +
		"one", "spark/per-key-horizon-null-key"},
	noEventTimeFails,
	{TopicLeaks, "a copy with a newer event time, once its key has timed out; an exact copy never, as it is late by " +
		"then", "spark/per-key-horizon-timeout-tie"},
	{TopicLeaks, "guarded: of a key whose horizon is over all rows of a batch go " +
		"out", "spark/per-key-horizon-timeout-below-watermark-guarded"},
}

// Facts that hold for several queries with flatMapGroupsWithState.
var (
	timeoutFires = Fact{TopicState, "a timeout fires in the first batch whose watermark is greater than it, not yet at " +
		"it", "spark/per-key-horizon-timeout-tie"}

	rowsBeforeTimeouts = Fact{TopicState, "rows come first, then the timeouts of keys without rows in the batch: a key " +
		"that is due " +
		"and has a row still meets its old state", "spark/per-key-horizon-rows-and-timeout-same-batch-no-rearm"}

	groupsInKeyOrder = Fact{TopicChangelog, "a batch comes out in the order of the keys, rows of a key in the order of " +
		"their " +
		"event time: of one batch the smallest wins, of equal ones the first to " +
		"arrive", "spark/per-key-horizon-sort-in-batch"}

	replayedGroups = Fact{TopicDeterminism, "source replay: closed for a batch that failed, which is run again with the " +
		"same id, " +
		"rows and watermark, and state as if it had run once; what the sink had written by then is written " +
		"twice", "spark/batch-replay-per-key-horizon"}

	timeoutInThePast = Fact{TopicLoses, "the whole query, for good: setTimeoutTimestamp with a moment before the " +
		"watermark throws, " +
		"and a restart runs into the same batch; the watermark itself is " +
		"allowed", "spark/per-key-horizon-timeout-below-watermark"}

	noEventTimeFails = Fact{TopicLoses, "the whole query on a row without event time: the function asks it for its " +
		"time", NotRecorded}
)

// everyCallClears is what the article's function does not know.
func everyCallClears(then, shownBy string) Fact {
	return Fact{TopicState, "every call of the function clears the timeout unless it sets it again: " + then, shownBy}
}
