package strategies

import (
	"fmt"

	"deduplab/stream"
)

// Consumer is what reads the result of a query.
type Consumer string

// The consumers of flink _acceptance.json.
const (
	AppendSink        Consumer = "append-sink"
	UpsertSink        Consumer = "upsert-sink"
	UpsertSinkMerging Consumer = "upsert-sink-on-conflict-deduplicate" // with ON CONFLICT DO DEDUPLICATE
	RetractSink       Consumer = "retract-sink"
	IntervalJoin      Consumer = "interval-join"
	WindowAggregate   Consumer = "window-aggregate"
	MatchRecognize    Consumer = "match-recognize"
	TemporalSort      Consumer = "temporal-sort"
	GroupAggregate    Consumer = "group-aggregate"
	TemporalJoin      Consumer = "event-time-temporal-join-left"
	ToChangelogInput  Consumer = "to-changelog"
)

// Consumers lists them in the order of the recording.
var Consumers = []Consumer{AppendSink, UpsertSink, UpsertSinkMerging, RetractSink, IntervalJoin, WindowAggregate,
	MatchRecognize, TemporalSort, GroupAggregate, TemporalJoin, ToChangelogInput}

var sinkConsumers = map[Sink]Consumer{Retract: RetractSink, Append: AppendSink, Upsert: UpsertSink}

// UpsertKey is what the planner knows to identify a row of a result.
type UpsertKey uint8

// The upsert keys. An upsert sink has the key of the workload as its primary key, of windows with their bounds.
const (
	SinkKey     UpsertKey = iota // the primary key of the sink
	WholeRowKey                  // all columns
	NoKey                        // the planner knows none
)

// TimeColumn is what has become of the source's event-time attribute in a result.
type TimeColumn uint8

// The states of the event-time column.
const (
	TimeAttribute TimeColumn = iota // still one
	Materialized                    // a plain timestamp once the query is planned, though it passes the validation
	PlainTime                       // a plain timestamp
)

// Accepts tells whether a consumer takes the query, with the changelog mode declared for what feeds the sink, or else
// the planner's reason: flink _acceptance.json. Only what the planner takes for an update matters: all consumers that
// refuse updates accept the rank queries that are wrongly declared insert-only (FLINK-40368).
func Accepts(p Plan, by Consumer) (ok bool, declared stream.ChangelogMode, reason string) {
	if reason := refusal(p, by); reason != "" {
		return false, 0, reason
	}
	return true, declaredBehind(p, by), ""
}

// refusal is the planner's reason for which a consumer does not take the query; empty where it does.
func refusal(p Plan, by Consumer) string {
	switch by {
	case AppendSink:
		return refusesUpdates(p, "Table sink")
	case UpsertSink:
		switch p.UpsertKey {
		case WholeRowKey:
			return "the query has an upsert key, the whole row, that differs from the primary key of the sink table: " +
				"specify an ON CONFLICT clause"
		case NoKey:
			return "the query has no upsert key, so it differs from the primary key of the sink table: specify an " +
				"ON CONFLICT clause"
		}
	case IntervalJoin:
		// Without a time attribute Flink plans a regular join, which takes updates.
		if p.Time == TimeAttribute {
			return refusesUpdates(p, "StreamPhysicalIntervalJoin")
		}
	case WindowAggregate:
		if p.Time != TimeAttribute {
			return "The window function requires the timecol is a time attribute type, but is " +
				"TIMESTAMP_WITH_LOCAL_TIME_ZONE(3)"
		}
	case MatchRecognize:
		if reason := refusesUpdates(p, "Match Recognize"); reason != "" {
			return reason
		}
		if p.Time != TimeAttribute {
			return "You must specify either rowtime or proctime for order by as the first one"
		}
	case TemporalSort:
		if p.Time != TimeAttribute {
			return "Sort on a non-time-attribute field is not supported"
		}
		return refusesUpdates(p, "StreamPhysicalTemporalSort")
	case TemporalJoin:
		if p.Time == PlainTime {
			return "Temporal table join currently only supports 'FOR SYSTEM_TIME AS OF' left table's time attribute field"
		}
	}
	return ""
}

// refusesUpdates is the reason of a consumer that takes inserts only.
func refusesUpdates(p Plan, consumer string) string {
	if p.Declared == stream.InsertOnly {
		return ""
	}
	return fmt.Sprintf("%s doesn't support consuming %s changes which is produced by node %s", consumer,
		changesOf(p.Declared), p.Node)
}

// declaredBehind is the mode declared for what feeds the sink, of a consumer that takes the query.
func declaredBehind(p Plan, by Consumer) stream.ChangelogMode {
	switch {
	case by == UpsertSink, by == UpsertSinkMerging && p.UpsertKey == SinkKey:
		return p.Declared.Without(stream.UpdateBefore)
	case by == WindowAggregate, by == ToChangelogInput:
		return stream.InsertOnly
	case by == GroupAggregate && p.Declared == stream.InsertOnly:
		return stream.Mode(stream.Insert, stream.UpdateBefore, stream.UpdateAfter)
	case by == GroupAggregate:
		return AllChanges
	}
	return p.Declared
}

// changesOf names the changes of a mode as the planner does.
func changesOf(m stream.ChangelogMode) string {
	if m.Has(stream.Delete) {
		return "update and delete"
	}
	return "update"
}
