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
	refuse := func(format string, args ...any) (bool, stream.ChangelogMode, string) {
		return false, 0, fmt.Sprintf(format, args...)
	}
	refuseUpdates := func(consumer string) (bool, stream.ChangelogMode, string) {
		return refuse("%s doesn't support consuming %s changes which is produced by node %s",
			consumer, changesOf(p.Declared), p.Node)
	}
	updates := p.Declared != stream.InsertOnly
	switch by {
	case AppendSink:
		if updates {
			return refuseUpdates("Table sink")
		}
	case UpsertSink:
		switch p.UpsertKey {
		case WholeRowKey:
			return refuse("the query has an upsert key, the whole row, that differs from the primary key of the sink " +
				"table: specify an ON CONFLICT clause")
		case NoKey:
			return refuse("the query has no upsert key, so it differs from the primary key of the sink table: specify " +
				"an ON CONFLICT clause")
		}
		return true, p.Declared.Without(stream.UpdateBefore), ""
	case UpsertSinkMerging:
		if p.UpsertKey == SinkKey {
			return true, p.Declared.Without(stream.UpdateBefore), ""
		}
	case IntervalJoin:
		// Without a time attribute Flink plans a regular join, which takes updates.
		if p.Time == TimeAttribute && updates {
			return refuseUpdates("StreamPhysicalIntervalJoin")
		}
	case WindowAggregate:
		if p.Time != TimeAttribute {
			return refuse("The window function requires the timecol is a time attribute type, but is " +
				"TIMESTAMP_WITH_LOCAL_TIME_ZONE(3)")
		}
		return true, stream.InsertOnly, ""
	case MatchRecognize:
		if updates {
			return refuseUpdates("Match Recognize")
		}
		if p.Time != TimeAttribute {
			return refuse("You must specify either rowtime or proctime for order by as the first one")
		}
	case TemporalSort:
		if p.Time != TimeAttribute {
			return refuse("Sort on a non-time-attribute field is not supported")
		}
		if updates {
			return refuseUpdates("StreamPhysicalTemporalSort")
		}
	case GroupAggregate:
		mode := stream.Mode(stream.Insert, stream.UpdateBefore, stream.UpdateAfter)
		if updates {
			mode |= stream.Mode(stream.Delete)
		}
		return true, mode, ""
	case TemporalJoin:
		if p.Time == PlainTime {
			return refuse("Temporal table join currently only supports 'FOR SYSTEM_TIME AS OF' left table's time " +
				"attribute field")
		}
	case ToChangelogInput:
		return true, stream.InsertOnly, ""
	}
	return true, p.Declared, ""
}

// changesOf names the changes of a mode as the planner does.
func changesOf(m stream.ChangelogMode) string {
	if m.Has(stream.Delete) {
		return "update and delete"
	}
	return "update"
}
