package strategies

import (
	"fmt"
	"strings"

	"deduplab/sim"
	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "changelog-normalize",
	Engine: "flink-sql",
	About:  "the planner's own step behind a source of changes with a primary key: repeated change events are suppressed",
	Loses: "It loses nothing, but keeps every row in state; after the TTL a repeated change event comes out as an " +
		"insert, and a delete goes unnoticed.",
	Facts: changelogNormalizeFacts,
	Params: []Param{ttlParam, {Name: "events_duplicate", Kind: Bool, Default: "true",
		About: "table.exec.source.cdc-events-duplicate: the source may repeat change events; false: they are believed"}},
	Plan: func(args Args, job Job) Plan {
		ttl := args.Duration("ttl")
		key := strings.Join(job.keyNames(), ", ")
		code := job.ddl("orders", "  PRIMARY KEY ("+key+") NOT ENFORCED")
		code = strings.Replace(code, "'kafka'", "'kafka', 'value.format' = 'debezium-json'", 1)
		if args.Bool("events_duplicate") {
			code += "\n\nSET 'table.exec.source.cdc-events-duplicate' = 'true';"
		}
		p := Plan{
			Changelog:  AllChanges,
			Operator:   "StreamExecChangelogNormalize",
			Node:       "ChangelogNormalize(key=[" + key + "])",
			Runtime:    "org.apache.flink.table.runtime.operators.deduplicate.ProcTimeDeduplicateKeepLastRowFunction",
			StateClass: perKeyUnless(ttl),
			Clock:      "processing time, for the TTL",
			TTL:        "the last insert or update of the key; with a TTL each one is sent, also where nothing changes",
			Leaks:      ByTTL,
			StateTTL:   ttl,
			InBatches:  job.MiniBatch.on(),
			New: func(c *sim.Ctx) sim.Operator {
				o := normalize{state: c.NewTable(ttl), ttl: ttl, entryBytes: job.keyBytes() + ttlBytes(ttl) + job.rowBytes()}
				if job.MiniBatch.on() {
					return job.MiniBatch.byClock(c, &normalizeBatch{normalize: o, rowBytes: job.rowBytes()})
				}
				return &o
			},
			Language: "sql",
			Code:     code + "\n\n" + ttlOption(ttl) + fmt.Sprintf("SELECT %s FROM orders;", job.allColumns()),
		}
		switch {
		case !job.changelog() || !args.Bool("events_duplicate"):
			// A source of inserts is never normalised, and one that sends -U and is believed is not either: flink-extra
			// changelog/primary-key-believed.
			p = job.passThroughPlan(p.Code)
			p.UpsertKey = SinkKey
		case job.MiniBatch.on():
			p.Runtime = "org.apache.flink.table.runtime.operators.deduplicate." +
				"ProcTimeMiniBatchDeduplicateKeepLastRowFunction"
		}
		return job.planned(p)
	},
})

// normalize is Flink's ProcTimeDeduplicateKeepLastRowFunction over a changelog, behind a DropUpdateBefore: it holds the
// last row of each key, and makes the changes from that, not from what it is told. A repeated row is suppressed, unless
// there is a TTL to be kept up; what is already deleted is not deleted again; the row of a -U or -D is the one in
// state: flink-extra changelog/normalize, changelog/normalize-ttl, FL-11.
type normalize struct {
	sim.Base
	state      *sim.Table
	ttl        stream.Time
	entryBytes int
}

func (o *normalize) Rows(c *sim.Ctx, rows []stream.Row) {
	last := o.state.Probe(rows)
	for i := range rows {
		row := &rows[i]
		if row.Kind == stream.UpdateBefore {
			c.Drop(row, sim.Retraction)
			continue
		}
		before := last.Get(i)
		content := int64(c.Records.Content(row.Tag))
		switch {
		case row.Kind == stream.Delete:
			if before != nil {
				c.Again(stream.Delete, row.Key, before.Tag, row.Arrival)
				last.Delete(i)
			}
			c.Drop(row, sim.Retraction)
			continue
		case before == nil:
			c.Emit(stream.Insert, row)
		case o.repeats(before, content):
			c.Drop(row, sim.Duplicate)
			continue
		default:
			c.Update(before.Tag, row)
		}
		last.Put(i, content, row.Tag, 0)
	}
}

func (o *normalize) repeats(before *sim.Entry, content int64) bool {
	return o.ttl == 0 && before.Value == content
}

func (o *normalize) State(c *sim.Ctx) sim.State { return tableState(c, o.state, o.entryBytes) }

// normalizeBatch is normalize in batches, ProcTimeMiniBatchDeduplicateKeepLastRowFunction: of a batch it takes the last
// change of a key: flink-extra changelog/normalize-mini-batch.
type normalizeBatch struct {
	normalize
	batch    byKey[waitingChange]
	rowBytes int
}

type waitingChange struct {
	waiting
	deletes bool
}

func (o *normalizeBatch) add(c *sim.Ctx, row *stream.Row) {
	if row.Kind == stream.UpdateBefore {
		c.Drop(row, sim.Retraction)
		return
	}
	c.Hold(row)
	change := waitingChange{waitingRow(row), row.Kind == stream.Delete}
	if earlier := o.batch.get(row.Key); earlier != nil {
		to := sim.Replaced
		if earlier.deletes {
			to = sim.Retraction
		}
		c.DropHeld(row.Key, earlier.tag, to, row.Arrival)
		*earlier = change
		return
	}
	o.batch.add(row.Key, change)
}

func (o *normalizeBatch) finish(c *sim.Ctx, at stream.Time) {
	o.batch.drain(func(row waitingChange) {
		before := o.state.Get(row.key, at)
		content := int64(c.Records.Content(row.tag))
		switch {
		case row.deletes:
			if before != nil {
				c.Again(stream.Delete, row.key, before.Tag, at)
				o.state.Delete(row.key)
			}
			c.DropHeld(row.key, row.tag, sim.Retraction, at)
			return
		case before == nil:
			c.ReleaseAt(at, stream.Insert, row.key, row.tag, row.wait)
		case o.repeats(before, content):
			c.DropHeld(row.key, row.tag, sim.Duplicate, at)
			return
		default:
			c.ReleaseUpdate(at, row.key, before.Tag, row.tag)
		}
		o.state.Put(row.key, at, content, row.tag, 0)
	})
}

func (o *normalizeBatch) State(c *sim.Ctx) sim.State {
	return o.batch.state(c, o.state, o.entryBytes, len(o.batch.values), o.rowBytes)
}

// changelogNormalizeFacts is what is known of the strategy.
var changelogNormalizeFacts = []Fact{
	{TopicState, "the last row of each key, whole", "flink-extra/changelog/normalize"},
	{TopicState, "each insert or update restarts the TTL, and a delete clears the " +
		"key", "flink-extra/changelog/normalize-ttl"},
	confluentTTL,
	{TopicChangelog, "over a source of changes declared [I,UB,UA,D]: a repeated row is suppressed, a second delete is " +
		"ignored, and -U comes from state, not from the source (FLINK-19795)", "flink-extra/changelog/normalize"},
	{TopicChangelog, "an upsert sink gets no -U", "flink-extra/changelog/normalize-upsert"},
	{TopicChangelog, "with a TTL a repeated row goes out as -U/+U, to keep state downstream " +
		"alive", "flink-extra/changelog/normalize-ttl"},
	{TopicChangelog, "without table.exec.source.cdc-events-duplicate the source is believed, and over a source of " +
		"inserts there is no such step at all", "flink-extra/changelog/primary-key-believed"},
	{TopicLate, "no lateness test", "flink-extra/changelog/normalize"},
	{TopicLatency, "at once; with mini-batch the last change of each key when the batch " +
		"ends", "flink-extra/changelog/normalize-mini-batch"},
	commitLatency,
	{TopicDeterminism, "processing time: closed but for the TTL, as long as the changes of a key come in their " +
		"order", "flink-extra/changelog/normalize"},
	{TopicDeterminism, "watermarks: closed; they are not asked", "flink-extra/changelog/normalize"},
	{TopicDeterminism, "idleness: closed, as the watermark is not asked", "flink-extra/changelog/normalize"},
	{TopicDeterminism, "state TTL: open; after it an update comes out as an insert", "flink-extra/random/normalize-ttl-1"},
	opensReplay,
	callsNoFunction,
	{TopicLoses, "nothing, but a delete that comes after the TTL has no effect", NotRecorded},
	{TopicLeaks, "a repeat that comes after the TTL is an insert again", "flink-extra/random/normalize-ttl-1"},
}
