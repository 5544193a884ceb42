package report

import "strings"

// entry explains one word of the report in one sentence. Metrics are the names in results.json that speak of it.
type entry struct {
	Term    string
	Meaning string
	Metrics []string
}

// ID is the entry's anchor in the page.
func (e entry) ID() string {
	return "term-" + strings.NewReplacer(" ", "-", "/", "-", "+", "plus-").Replace(e.Term)
}

// glossary explains every word that the report uses, in the order in which a reader meets them.
var glossary = []entry{
	{"event", "One thing that happened, however many rows tell of it.", []string{"workload.distinct"}},
	{"copy", "A row of an event that an earlier row stands for already.", []string{"workload.copies"}},
	{"origin", "How a row came to be: the original, or the kind of repetition that made the copy.",
		[]string{"workload.by_origin"}},
	{"event time", "The row's own timestamp.", nil},
	{"arrival", "The processing time at which a row can be read from its source partition.", nil},
	{"disorder", "How far a row's event time is behind the largest one seen before it in its partition.",
		[]string{"workload.disorder_ms"}},
	{"horizon", "How long after the first arrival of its event a copy comes: a TTL below it lets copies through.",
		[]string{"workload.horizon_ms"}},
	{"watermark", "The operator's promise that no row with an event time at or below it is still to come.", nil},
	{"late", "A row is late when its event time is below the watermark as the operator gets it; for a window, once " +
		"the window has fired. A row exactly at the watermark is late only to a filter by CURRENT_WATERMARK.", nil},

	{"dups left", "Copies that are in the result beside their original, the same as leaked.",
		[]string{"leaked"}},
	{"leaked", "A copy in the result beside its original. Causes tell why.",
		[]string{"fates.leaked", "leaks_by_cause"}},
	{"write duplicates", "Rows of the result that were written twice, by a micro-batch that failed after the write and was " +
		"run again, or after a crash: the same row, not a copy of the stream.", []string{"write_duplicates"}},
	{"outage", "A time for which the job was down, after a crash. It goes back to its last completed checkpoint, or to its " +
		"last committed micro-batch.", []string{"failures.outages"}},
	{"undone", "Changes that a crash undid: those since the checkpoint that the job goes back to. Under exactly-once no " +
		"reader has seen them, under at-least-once they have gone out.", []string{"failures.undone_changes"}},
	{"written again", "Rows that stood in the result when they were written once more. What still stands there twice at the " +
		"end is a write duplicate.", []string{"failures.written_again"}},
	{"wait in outages", "Latency of the events whose first row came after the checkpoint that a crash went back to, and " +
		"before the restart.", []string{"failures.wait_ms"}},
	{"leaked by outage", "Copies that had come within the TTL, and came through because it ran out before they were " +
		"handled.", []string{"failures.leaked_by_ttl"}},
	{"leak rate", "Leaked rows among the copies that came in.", []string{"leak_rate"}},
	{"leaked within TTL", "Leaked copies whose key had been seen within the TTL: a TTL that copies extend would have " +
		"caught them.", []string{"leaked_within_ttl"}},
	{"residual", "Leaked rows among the rows of the result.", []string{"residual"}},
	{"lost", "Events that are not in the result at all: late firsts and swallowed ones. Causes tell why.",
		[]string{"lost", "losses_by_cause"}},
	{"amount", "The sum of a column over the result, held against the sum over the originals of all events; the error " +
		"is how far the two are apart, as a part of the latter.", []string{"amount"}},
	{"counted twice", "Of the amount: what rows beside another one of their event add.",
		[]string{"amount.twice", "amount.twice_rate"}},
	{"gone", "Of the amount: what events lack that are not in the result.", []string{"amount.gone", "amount.gone_rate"}},
	{"key", "What of a row tells events apart: by the default key of the workload, unless a strategy names another.", nil},
	{"duplicates missed", "Rows that stand beside another one of their event because they have another key.", nil},
	{"events merged", "Events of which no row is kept, because other events have their keys.", nil},
	{"rows in", "Rows that the strategy was given; its fates add up to them.", []string{"rows_in"}},
	{"result rows", "Rows that the reader of the sink holds at the end.", []string{"result_rows"}},
	{"kept", "The event is in the result through this row.", []string{"fates.kept"}},
	{"suppressed", "A copy that was rightly dropped.", []string{"fates.suppressed"}},
	{"late first", "A row dropped as late whose event never got through: a loss.", []string{"fates.late_first"}},
	{"late copy", "A row dropped as late whose event got through another row: harmless.",
		[]string{"fates.late_copy"}},
	{"swallowed", "A distinct event taken for a duplicate; unknown in a trace without labels.",
		[]string{"fates.swallowed"}},
	{"replaced", "A row superseded by a better version, as the strategy promises.", []string{"fates.replaced"}},
	{"diverted", "A row sent elsewhere instead of the result: a dead letter queue or a side output.",
		[]string{"fates.diverted"}},
	{"pending", "A row that the operator still held when the run ended.", []string{"fates.pending"}},
	{"version", "Required: which version of an event the result must end with, the first or the last by event time.",
		[]string{"version"}},
	{"wrong version", "An event whose final row is not the version that is required, or else promised by the strategy.",
		[]string{"wrong_version"}},
	{"story", "What became of the rows of one event in one strategy, step by step.", nil},
	{"slowest", "The event that waited longest from its first arrival to its first emission.", nil},
	{"synthesized", "An emitted row that never existed: an aggregate takes the minimum of each column by itself, and " +
		"they came from different rows.", []string{"synthesized"}},
	{"filtered", "A row dropped by a filter in front of the operator, such as one by CURRENT_WATERMARK: a late first " +
		"if its event never got through, else a late copy.", nil},
	{"engine's late counter", "Flink's numLateRecordsDropped: it adds harmless late copies to lost late firsts.",
		[]string{"late_dropped"}},

	{"micro-batch", "What a query of Spark handles at once: the rows that have come by a trigger, or none where the " +
		"watermark alone has work to do. One that failed is run again.",
		[]string{"spark.batches", "spark.no_data_batches", "spark.reruns", "spark.fell_behind"}},
	{"numRowsTotal", "Keys in the state of Spark's stateful operators at the end of a batch; per hour over the second " +
		"half of the run.", []string{"spark.numRowsTotal"}},
	{"numRowsUpdated", "Entries that batches wrote to the state.", []string{"spark.numRowsUpdated"}},
	{"numRowsRemoved", "Entries that batches removed from the state.", []string{"spark.numRowsRemoved"}},
	{"numRowsDroppedByWatermark", "Rows that Spark's late filter dropped: late copies, which are harmless, and late " +
		"firsts, which are lost.", []string{"spark.numRowsDroppedByWatermark"}},
	{"numDroppedDuplicateRows", "Rows that Spark dropped because their key was in the state.",
		[]string{"spark.numDroppedDuplicateRows"}},
	{"standstill", "The longest time in which no batch moved the watermark, so that nothing left the state.",
		[]string{"spark.standstill"}},

	{"after", "What a query behind the strategy makes of its result: a count and a sum by windows of event time, and a join " +
		"with the stream's events. The truth is what it makes of every event once, with the row that arrived first.",
		[]string{"after"}},
	{"equal rows", "Rows of the windows that equal another one: all that a deduplication behind them could remove.",
		[]string{"after.window.equal"}},
	{"worst window", "The largest error of any window; 100 % where a window should not be there at all.",
		[]string{"after.window.worst"}},

	{"stage", "One of the strategies that stand one behind the other: a row goes on to the next if this one lets it through.",
		[]string{"stages"}},
	{"let through", "Rows that a stage handed to the next one, or to the result.", nil},
	{"copies left", "Of the rows let through: those that stand beside another one of their event.", nil},
	{"repaired", "Rows that an audit took out of the table because another one of their key stands there.", nil},
	{"shuffled", "What goes over the network to a stage: the key and the event time alone if the payload is joined back later.",
		nil},
	{"rows read", "Rows of the table that a batch of a sink, or a run of an audit, compares with its own.", nil},
	{"partitions read", "Partitions of the table, one a date, that a batch of a sink or a run of an audit reads.", nil},

	{"wait", "From the first arrival of any row of an event to its first emission.", []string{"latency_ms.wait"}},
	{"settle", "From the first arrival of an event to the last change of its row.", []string{"latency_ms.settle"}},
	{"commit", "From the emission of a change to the moment a downstream reader can see it.",
		[]string{"latency_ms.commit"}},
	{"percentile", "p99 is the value that 99 of 100 events do not exceed; lost events have no latency, so survivors " +
		"flatter.", nil},

	{"p50", "The median: half of the events do not exceed it.", nil},
	{"p90", "The value that 90 of 100 events do not exceed.", nil},
	{"p99", "The value that 99 of 100 events do not exceed.", nil},
	{"p99.9", "The value that 999 of 1,000 events do not exceed.", nil},
	{"Pareto front", "The strategies that no other one beats: none is better in wait p99, in keys live at the peak or in " +
		"events lost, and at least as good in the other two.", nil},

	{"keys live", "Distinct keys in unexpired state, caches and buffers of the operator; where SELECT DISTINCT " +
		"groups by the whole row, that is the key. Peaks are the largest of about 240 samples over the run.",
		[]string{"state.keys_live_peak", "state.keys_live_end"}},
	{"keys held", "Live keys together with those that have expired but are not removed yet.",
		[]string{"state.keys_held_peak"}},
	{"timers", "Callbacks that the operator has registered and that have not fired.", []string{"state.timers_peak"}},
	{"logical bytes", "The size of the state as the lab counts it, the same on every machine.",
		[]string{"state.bytes_peak", "state.bytes_end"}},
	{"physical bytes", "What the state backend holds on disk after flush and compaction; shown, never judged.",
		[]string{"state.physical_bytes"}},
	{"bytes a key", "What a live key takes: on disk at the end, or in the lab's memory at the peak; and by the logical " +
		"size of its state.",
		[]string{"state.bytes_per_key", "state.logical_bytes_per_key"}},
	{"state class", "How state grows: stateless, constant, time-bounded, per key or per record.",
		[]string{"state.class"}},
	{"TTL", "Time to live: how long an entry of the state counts before it has expired.", nil},
	{"subtask", "One of the parallel instances of the operator, each with its own keys.", []string{"subtasks"}},

	{"changelog", "The kinds of changes in a stream: +I insert, -U and +U update, -D delete.", []string{"changes"}},
	{"+I", "An insert: a row that was not there before.", nil},
	{"-U", "The row as it was before an update, taken back.", nil},
	{"+U", "The row as it is after an update.", nil},
	{"-D", "A delete: the row is gone.", nil},
	{"declared", "What the planner says of a query before any row has come.", []string{"declared"}},
	{"update", "Any change that is not an insert: -U, +U or -D.", []string{"updates"}},
	{"append-only violation", "A change that an insert-only consumer cannot take, in a job that must be append-only.",
		[]string{"append_only", "append_only_violations"}},
	{"undeclared change", "A change of a kind that the planner had not declared: its contract is broken.",
		[]string{"undeclared_changes"}},
	{"insert-only consumer", "A reader that stores every +I and every +U as a row of its own.",
		[]string{"insert_only_consumer"}},

	{"replay", "The same input run again under a change that must not matter.",
		[]string{"same_under", "determinism"}},
	{"interleaving", "A cause of difference: the partitions are read in another relative order.", nil},
	{"catch-up", "A cause of difference: all rows are readable at the start, as after a long pause.", nil},
	{"watermarks", "A cause of difference: the periodic watermark has another interval and phase.", nil},
	{"idleness", "A cause of difference: partitions are found idle after another time, or never.", nil},
	{"state-ttl", "A cause of difference: state is kept longer or shorter, as in a replay that is faster or slower.", nil},
	{"lookup", "A cause of difference: a column that the query looks up elsewhere has another answer by then.", nil},
	{"functions", "A cause of difference: now, uuid or rand give another value to a column of the query.", nil},
	{"batches", "A cause of difference: batches and checkpoints come at other moments, or a batch holds a backlog.", nil},
	{"parallelism", "A cause of difference: the job has more or fewer subtasks and readers.", nil},
	{"by construction", "Nothing in the plan can be open to the cause, so that no replay is needed.", nil},
	{"same table", "The final table of the replay is equal.", nil},
	{"same changes", "The replay emits the same changes, in whatever order.", nil},
	{"same order", "The replay emits the same changes per key in the same order.", nil},

	{"pass", "The requirement is met, by the number shown.", nil},
	{"fail", "The requirement is missed, by the number shown.", nil},
	{"undetermined", "The run was too short to tell.", nil},
	{"not applicable", "The requirement says nothing about this strategy.", nil},
	{"refused", "The planner does not accept the strategy for this sink, so it did not run.", nil},

	{"no_dedup", "Leak: the strategy removes nothing.", nil},
	{"unretracted", "Leak: a +U went out without its -U, which leaves the row before it in the result of a reader " +
		"that retracts (FLINK-40368).", nil},
	{"regenerated_id", "Leak: the copy has another key, as when a producer makes a new id for a retry.", nil},
	{"payload_differs", "Leak: the whole row is compared, and another column differs.", nil},
	{"ttl", "Leak: the state of the event had expired when the copy came.", nil},
	{"horizon (cause)", "Leak: the copy came after the time for which the strategy remembers.", nil},
	{"window_boundary", "Leak: the copy fell into another window than its original.", nil},
	{"stale_timer", "Leak: a timer set for an earlier row cleared the state too soon.", nil},
	{"cache_eviction", "Leak: the entry was pushed out of a full cache.", nil},
	{"lookback", "Leak: the copy came beyond the part of the table that is compared.", nil},
	{"null_key", "Leak: a column of the key is NULL, and the join of the MERGE takes no two of them for equal.", nil},
	{"same_batch", "Leak: both copies were in one batch, which is not compared with itself.", nil},
	{"late (cause)", "Loss: the event came late, and none of its rows got through.", nil},
	{"late_after_idle", "Loss: late because the watermark went on while the partition was marked idle.", nil},
	{"key_merge", "Loss: the key strategy gave two events one key.", nil},
	{"id_reuse", "Loss: the producer used an id again for another event.", nil},
	{"null_watermark", "Loss: CURRENT_WATERMARK was NULL before the first watermark, and a comparison with " +
		"NULL is not true, so the filter dropped the row.", nil},
	{"retention", "Loss, and a cause of difference: the row was gone from the broker before it was read.", nil},
	{"restart", "Leak or loss, and a cause of difference, the job crashing at some moment: what happened since the last checkpoint was done again, or not at all.", nil},
	{"unexplained", "No cause of the list applies: please report it.", nil},
}

// term looks up the entry of a word. It panics on a word that the glossary lacks: the template's words are ours.
func term(word string) entry {
	for _, e := range glossary {
		if e.Term == word {
			return e
		}
	}
	panic("report: no glossary entry for " + word)
}

// causeTerm looks up the entry of a cause; it is empty for a cause that the glossary lacks.
func causeTerm(cause string) entry {
	for _, e := range glossary {
		if e.Term == cause+" (cause)" || e.Term == cause && len(e.Metrics) == 0 {
			return e
		}
	}
	return entry{}
}

// fateTerm looks up the entry of what an example row shows; it is empty for what the glossary lacks.
func fateTerm(fate string) entry {
	if e := metricTerm("fates." + fate); e.Term != "" {
		return e
	}
	for _, e := range glossary {
		if e.Term == spaced(fate) {
			return e
		}
	}
	return entry{}
}

// metricTerm looks up the entry that explains a metric: the one with the longest name that metric is, or begins with.
func metricTerm(metric string) entry {
	var best entry
	longest := 0
	for _, e := range glossary {
		for _, name := range e.Metrics {
			if len(name) > longest && (metric == name || strings.HasPrefix(metric, name+".")) {
				best, longest = e, len(name)
			}
		}
	}
	return best
}
