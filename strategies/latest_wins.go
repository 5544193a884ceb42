package strategies

import (
	"fmt"

	"deduplab/results"
	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "latest-wins",
	Engine: "spark",
	About:  "flatMapGroupsWithState that emits a row again when it is newer than all before it: the last version of a key",
	Loses: "Every newer version is a further row: a sink that appends keeps them all, and a sink that does not take the " +
		"last one " +
		"per key ends wrong. It loses events behind the watermark, and a copy that is not newer clears the timeout of its " +
		"key.",
	Facts: latestWinsFacts,
	Params: []Param{
		watermarkDelay,
		horizonParam,
		kindParam,
		{Name: "mode", Kind: Enum, Values: []string{"append", "update"}, Default: "append",
			About: "the output mode: the same rows leave, but an update is meant to replace the row of its key"},
	},
	Check: checkHorizon,
	Plan: func(args Args, job Job) Plan {
		horizon := args.horizon(job.Schema)
		update := args.Text("mode") == "update"
		p := Plan{
			Changelog:  stream.InsertOnly,
			Operator:   "FlatMapGroupsWithState",
			Runtime:    flatMapGroupsExec,
			StateClass: PerKey,
			Clock:      "event time",
			TTL: "the event time of the latest row and the horizon of its kind; a row that is not newer clears it, until a " +
				"newer " +
				"one sets it again",
			Leaks:     ByVersion,
			InBatches: true, SharedCache: true,
			Promise:  LastByEvent,
			Finding:  keysWithoutTimeout,
			Language: "scala",
			Code:     latestWinsCode(args, job),
			Batch: job.stateful(args.delays(), "flatMapGroupsWithState", func(c *sim.BatchCtx) sim.BatchOperator {
				latest := latestWins{horizon: horizon.of(c.Records), update: update}
				return newFlatMapGroups(c, latest.call, false, job.groupBytes())
			}),
		}
		p.Batch.Consumers = versionConsumers
		if update {
			p = job.updateMode(p)
		}
		p.Declared = p.Changelog
		return p
	},
})

// versionConsumers are what takes the result of an operator that emits every newer version.
var versionConsumers = []BatchConsumer{
	{"output mode append", true, "with a row for every version", "spark/latest-wins-append"},
	{"output mode update", true, "with the same rows", "spark/latest-wins-update"},
	{"output mode complete", false, "there is no aggregation to write out whole", NotRecorded},
	{"file, Kafka or Delta sink", true, "in append mode, with all versions", NotRecorded},
	{"foreachBatch", true, "a MERGE on the key; several versions in one batch fail it: take the last one first",
		"spark/sink-merge-upsert-latest"},
	{"aggregate, join", true, "in append mode: what stands behind it sees every version", NotRecorded},
}

// keysWithoutTimeout says how many keys are kept until a newer row comes.
func keysWithoutTimeout(s *results.Strategy) string {
	n := withoutTimeout(s)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s keys have lost their timeout: a row came that was not newer, and the call for it did "+
		"not set the "+
		"timeout again; only a newer row would", results.FormatCount(n), results.FormatCount(s.State.KeysLiveEnd))
}

// latestWins is recorded as fmgws-latest: spark latest-wins/append, latest-wins/update.
type latestWins struct {
	horizon func(*stream.Row) stream.Time
	update  bool
}

func (f latestWins) call(g *groupCall, rows []stream.Row) {
	for i := range rows {
		row := &rows[i]
		switch {
		case !g.exists:
			g.update(row.Event, row.Event, 0)
			g.emit(row, "first", 0)
		case row.Event <= g.last:
			g.c.Drop(row, sim.Duplicate)
			continue
		default:
			g.update(g.first, row.Event, g.count+1)
			if f.update {
				g.c.Update(g.tag, row)
				g.say(row, "newer", g.count)
			} else {
				g.emit(row, "newer", g.count)
			}
		}
		g.tag = row.Tag
		if g.setTimeout(row.Event + f.horizon(row)); g.failed {
			return
		}
	}
}

// updateMode fits a plan to a query in update mode: a row takes the place of the one of its key, and nothing takes that
// one back.
func (j Job) updateMode(p Plan) Plan {
	p.Changelog = stream.Mode(stream.Insert, stream.UpdateAfter)
	if j.Sink != Upsert {
		p.Refused = "in update mode a row takes the place of the one of its key, and no row takes that one back: the sink " +
			"must " +
			"upsert (job.sink: upsert)"
	}
	return p
}

var latestWinsFacts = []Fact{
	{TopicState, "one object a key, with the event times of its first and its latest row and the number of versions, " +
		"and the " +
		"timeout that Spark keeps beside it", "spark/latest-wins-append"},
	everyCallClears("a row that is not newer leaves its key without one, and it stays until a newer row sets it "+
		"again", "spark/latest-wins-append"),
	{TopicState, "a newer row moves the timeout: the horizon counts from the latest one, and is that of its " +
		"kind", "spark/latest-wins-append"},
	timeoutFires, rowsBeforeTimeouts,
	{TopicChangelog, "append: a newer version is a further row, and a sink that appends keeps them " +
		"all", "spark/latest-wins-append"},
	{TopicChangelog, "update: the same rows leave, every step of a batch among them; the sink must take the last " +
		"one", "spark/latest-wins-update"},
	{TopicChangelog, "a batch comes out in the order of the keys, rows of a key in the order of their event " +
		"time", "spark/latest-wins-append"},
	{TopicLate, "with an event-time timeout late rows never reach the function, newer versions among " +
		"them", "spark/per-key-horizon-late"},
	lateInBatches, lateWithinBatch,
	slowerInput,
	waitsForBatch,
	{TopicLatency, "the last version of an event settles with the batch that it arrives in", "spark/latest-wins-append"},
	batchesByTheClock,
	{TopicDeterminism, "processing time: closed for the version of two different event times; of equal ones the first " +
		"to arrive " +
		"stays", "spark/latest-wins-append"},
	watermarkByBatches, quietInput,
	{TopicDeterminism, "state TTL: there is none; what ends a key is its timeout, which the watermark " +
		"fires", "spark/latest-wins-append"},
	replayedGroups,
	{TopicDeterminism, "non-deterministic functions: none in the function; yours is as deterministic as its " +
		"Scala", NotRecorded},
	{TopicLoses, "late firsts, and versions that come late", "spark/per-key-horizon-late"},
	timeoutInThePast, noEventTimeFails,
	{TopicLeaks, "append: every newer version stands beside the ones before it", "spark/latest-wins-append"},
	{TopicLeaks, "once its key has timed out any version is a first one again, an older one " +
		"too", "spark/latest-wins-append"},
}
