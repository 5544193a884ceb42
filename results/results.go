// Package results holds what a run measured: the types of results.json. The report reads nothing else. Field
// names are the names of the metrics: a metric is the path of its number, such as latency_ms.wait.p99.
package results

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Schema names the version of the file format.
const Schema = "deduplab/results/1"

// Run is one results.json: one scenario, run once through every strategy.
type Run struct {
	Schema   string `json:"schema"`
	Scenario string `json:"scenario"`
	About    string `json:"about,omitempty"`
	Seed     uint64 `json:"seed"`
	// Partial says that the run was interrupted: its numbers are those of the rows up to then.
	Partial bool `json:"partial,omitempty"`
	// Seeds are those of a run over several: the first is Seed, whose numbers stand in the run, and all of them have a
	// value in Strategy.Samples.
	Seeds    []uint64          `json:"seeds,omitempty"`
	Versions map[string]string `json:"versions"`
	Job      Job               `json:"job"`
	// After is what reads the result of every strategy, nil where nothing does.
	After    *AfterSpec    `json:"after_spec,omitempty"`
	Require  []Requirement `json:"require"`
	Workload Workload      `json:"workload"`
	Outages  []Outage      `json:"outages,omitempty"` // of the job, by its failures
	// Keys is what each key makes of the stream, the workload's own first; empty where the scenario names no others.
	Keys       []Key      `json:"keys,omitempty"`
	Strategies []Strategy `json:"strategies"`
	// Summary is the recommendation in sentences.
	Summary []string `json:"summary"`
}

// Job is the job that every strategy ran in.
type Job struct {
	Flink                string `json:"flink"`
	Input                string `json:"input"` // what the source declares to send: append or changelog
	Parallelism          int    `json:"parallelism"`
	WatermarkDelayMS     int64  `json:"watermark_delay_ms"`
	WatermarkIntervalMS  int64  `json:"watermark_interval_ms"`
	IdleAfterMS          int64  `json:"idle_after_ms"`
	CheckpointIntervalMS int64  `json:"checkpoint_interval_ms"`
	Delivery             string `json:"delivery"`
	Sink                 string `json:"sink"`
	State                string `json:"state"`
	WatermarkPer         string `json:"watermark_per"` // partition or reader
	Skew                 int    `json:"skew"`          // rows by which a partition may lead in an interleaving replay
	CatchUpRate          int64  `json:"catch_up_rate"` // rows a second and reader in a catch-up replay
	MiniBatchMS          int64  `json:"mini_batch_ms"` // allow-latency, 0: off
	MiniBatchSize        int    `json:"mini_batch_size"`
	RetentionMS          int64  `json:"retention_ms,omitempty"` // how long the source keeps a row, 0: for ever
	// Adds are columns that the query adds, by a function such as now.
	Adds []AddedColumn `json:"adds,omitempty"`
	// Table is what a sink's table is kept in: memory, pebble or postgres.
	Table   string `json:"table"`
	Shuffle string `json:"shuffle"` // what is shuffled: whole-row or key-first
	// Spark is what the queries of Spark ran in; nil where there were none.
	Spark    *SparkJob `json:"spark,omitempty"`
	Failures []Failure `json:"failures,omitempty"`
}

// AddedColumn is a column that the query adds by a function: now, uuid, rand or lookup.
type AddedColumn struct {
	Column   string `json:"column"`
	Function string `json:"function"`
}

// SparkJob is what the micro-batch queries of a job ran in.
type SparkJob struct {
	Version           string `json:"version"`
	Trigger           string `json:"trigger"`    // processing-time or available-now
	TriggerMS         int64  `json:"trigger_ms"` // interval; 0: as soon as the batch before has ended
	MaxRows           int    `json:"max_rows_per_trigger"`
	NoDataBatches     bool   `json:"no_data_batches"`
	WatermarkPolicy   string `json:"watermark_policy"`
	Inputs            int    `json:"inputs"`
	BatchCostMS       int64  `json:"batch_cost_ms"`
	CostRowsPerSecond int64  `json:"cost_rows_per_second"` // 0: rows cost nothing
	RestartMS         int64  `json:"restart_ms,omitempty"`
	// MigrateMS is when a new query with a new checkpoint took the place of each, OverlapMS what it read again.
	MigrateMS int64 `json:"migrate_ms,omitempty"`
	OverlapMS int64 `json:"overlap_ms,omitempty"`
}

// Requirement is one line of the scenario's require section, as it was resolved.
type Requirement struct {
	Name  string `json:"name"`  // a metric, or append_only, same_under, state.class
	Bound string `json:"bound"` // such as "<= 0.1%"
}

// Workload is what the stream turned out to be.
type Workload struct {
	// Spec is a fingerprint of the workload as the scenario describes it, without the seed: equal for equal ones.
	Spec     string           `json:"spec"`
	Rows     int64            `json:"rows"`
	Distinct int64            `json:"distinct"` // logical events
	Copies   int64            `json:"copies"`   // rows - distinct
	ByOrigin map[string]int64 `json:"by_origin"`
	// Labelled says that the truth is known beyond the key. A trace without labels is not, and swallowed is unknown.
	Labelled bool `json:"labelled"`
	// Skipped counts the bad rows of a trace that were left out; the first 20 of them are told.
	Skipped    int64     `json:"skipped"`
	BadRows    []string  `json:"bad_rows"`
	Partitions int       `json:"partitions"`
	StartMS    int64     `json:"start_ms"`    // epoch ms
	SpanMS     int64     `json:"span_ms"`     // virtual time from the start to the last original; of a partial run to its end
	DisorderMS Quantiles `json:"disorder_ms"` // event time behind the largest one seen so far in the partition
	// HorizonMS is the delay of a copy after the first arrival of its event.
	HorizonMS Quantiles `json:"horizon_ms"`
	// Arrivals is a thinned-out scatter of event time against arrival, with the watermark's staircase.
	Arrivals  []Arrival   `json:"arrivals"`
	Watermark []Staircase `json:"watermark"`
}

// Quantiles of a distribution in milliseconds; N is the number of values.
type Quantiles struct {
	N     int64 `json:"n"`
	P50   int64 `json:"p50"`
	P90   int64 `json:"p90"`
	P99   int64 `json:"p99"`
	P999  int64 `json:"p999"`
	P9999 int64 `json:"p9999"`
	Max   int64 `json:"max"`
}

// Arrival is one row of the scatter; both times count from the start of the scenario.
type Arrival struct {
	AtMS      int64  `json:"at_ms"`
	EventMS   int64  `json:"event_ms"`
	Partition int    `json:"partition"`
	Origin    string `json:"origin"`
	Late      bool   `json:"late"` // below the combined watermark when it arrived
}

// Staircase is one step of the combined watermark: from AtMS on it is WatermarkMS, both from the start.
type Staircase struct {
	AtMS        int64 `json:"at_ms"`
	WatermarkMS int64 `json:"watermark_ms"`
}

// Key is what becomes of the stream when the first row of each key is kept, with perfect memory and whatever the
// strategy: the faults of the key alone.
type Key struct {
	Name    string   `json:"name"` // default is the key that the workload comes with
	Columns []string `json:"columns"`
	Content bool     `json:"content"` // the key is the hash of the columns
	Rows    int64    `json:"rows"`
	Keys    int64    `json:"keys"`   // distinct ones, so many rows are kept
	Missed  int64    `json:"missed"` // kept rows whose event was kept before, under another key
	Merged  int64    `json:"merged"` // events of which no row is kept: all of them have keys of other events
	// MissedByOrigin counts the missed rows by how they came about.
	MissedByOrigin map[string]int64 `json:"missed_by_origin"`
	Amount         *Amount          `json:"amount,omitempty"`
	Examples       []KeyExample     `json:"examples"`
}

// KeyExample is a row that a key gets wrong, and the row that shows it.
type KeyExample struct {
	// Row has the fate missed, and Other is an earlier row of its event; or merged, and Other is the row of another event
	// that came first with its key.
	Row   Example `json:"row"`
	Other Example `json:"other"`
}

// Amount is the sum of a column over a result, held against the sum over the originals of all events. Sums are in the
// column's unit. What is neither counted twice nor gone comes from events that end with another row's amount.
type Amount struct {
	Expected  float64 `json:"expected"`
	Result    float64 `json:"result"`
	Twice     float64 `json:"twice"`      // of rows beside another one of their event
	Gone      float64 `json:"gone"`       // of events that are not in the result
	TwiceRate float64 `json:"twice_rate"` // twice / expected
	GoneRate  float64 `json:"gone_rate"`  // gone / expected
	Error     float64 `json:"error"`      // |result - expected| / |expected|
}

// Strategy is one strategy's run.
type Strategy struct {
	ID     string            `json:"id"`
	Name   string            `json:"name"`
	Params map[string]string `json:"params"`
	Key    string            `json:"key,omitempty"` // the name of its key; empty: the workload's own
	Engine string            `json:"engine"`
	About  string            `json:"about"`
	// Loses is one sentence: when this strategy loses or leaks data.
	Loses string `json:"loses"`
	// Code is what a user would deploy; Language is sql or java.
	Code     string   `json:"code"`
	Language string   `json:"language"`
	Declared Declared `json:"declared"`
	// Refused is the planner's reason; such a strategy did not run and has no numbers.
	Refused string `json:"refused,omitempty"`
	// Failed is the error with which the query ended before its input did. Rows that came after it are pending.
	Failed string `json:"failed,omitempty"`

	RowsIn        int64            `json:"rows_in"`
	Fates         Fates            `json:"fates"`
	WrongVersion  int64            `json:"wrong_version"` // events whose final row is not the promised one
	Synthesized   int64            `json:"synthesized"`   // emitted rows that are none of the input's
	LeaksByCause  map[string]int64 `json:"leaks_by_cause"`
	LossesByCause map[string]int64 `json:"losses_by_cause"`
	Lost          int64            `json:"lost"` // late_first + swallowed
	// Leaked are the rows of the result beside another one of their event: fates.leaked, the data duplicates, and
	// write_duplicates.
	Leaked int64 `json:"leaked"`
	// WriteDuplicates are rows of the result that were written a second time: by a batch that was run again, or after a
	// crash.
	WriteDuplicates int64 `json:"write_duplicates"`
	// LeakedWithinTTL counts leaks though a row of the same key had come within the TTL: a TTL that copies extend would
	// have caught them.
	LeakedWithinTTL int64   `json:"leaked_within_ttl"`
	LeakRate        float64 `json:"leak_rate"` // leaked / copies in
	Residual        float64 `json:"residual"`  // leaked / rows in the result
	ResultRows      int64   `json:"result_rows"`
	// Amount is what the result sums up to; nil where the scenario names no column, or the result does not have it.
	Amount      *Amount `json:"amount,omitempty"`
	Changes     Changes `json:"changes"`
	LateDropped int64   `json:"late_dropped"` // the engine's own counter, numLateRecordsDropped
	Undeclared  int64   `json:"undeclared_changes"`
	Updates     int64   `json:"updates"`
	// AppendOnlyViol counts what an insert-only consumer cannot take: updates and undeclared changes. Every declaration
	// has inserts, so that an undeclared change is an update too, and this is the number of updates.
	AppendOnlyViol int64      `json:"append_only_violations"`
	InsertOnly     InsertOnly `json:"insert_only_consumer"`
	Latency        Latency    `json:"latency_ms"`
	State          State      `json:"state"`
	// Failures is what those of the job did to the strategy; nil where it has none.
	Failures *Failures `json:"failures,omitempty"`
	// Spark is what the micro-batches of a query of Spark did; nil for other engines.
	Spark    *Spark    `json:"spark,omitempty"`
	Subtasks []Subtask `json:"subtasks"`
	// After is what comes out behind the strategy; nil where the scenario has nothing there, or the result holds keys alone.
	After *After `json:"after,omitempty"`
	// Stages are those of a micro-batch query, and of tiers.
	Stages      []Stage       `json:"stages"`
	Determinism []Determinism `json:"determinism"`
	Verdicts    []Verdict     `json:"verdicts"`
	Examples    []Example     `json:"examples"`
	// Stories are those of the example rows.
	Stories []Story `json:"stories,omitempty"`
	// Samples holds the values of the metrics that vary over Run.Seeds, by metric, in the order of the seeds.
	Samples map[string][]float64 `json:"samples,omitempty"`
	// Findings are notes that the measurement itself brought up, each with its number, such as a difference to the
	// article.
	Findings []string `json:"findings"`
}

// Declared is what the planner says before any row has come.
type Declared struct {
	Changelog  []string `json:"changelog"` // I, UB, UA, D
	Operator   string   `json:"operator"`  // ExecNode
	Runtime    string   `json:"runtime"`   // runtime class
	StateClass string   `json:"state_class"`
	Clock      string   `json:"clock"`
	TTL        string   `json:"ttl"` // what the TTL counts from
}

// Fates counts rows in by what became of them; their sum is rows_in.
type Fates struct {
	Kept       int64 `json:"kept"`
	Suppressed int64 `json:"suppressed"`
	Leaked     int64 `json:"leaked"`
	LateCopy   int64 `json:"late_copy"`
	LateFirst  int64 `json:"late_first"`
	// Swallowed is -1, and null in JSON, where it is unknown: in a trace without labels.
	Swallowed int64 `json:"swallowed"`
	Replaced  int64 `json:"replaced"`
	Diverted  int64 `json:"diverted"`
	Pending   int64 `json:"pending"`
}

// MarshalJSON writes an unknown number of swallowed rows as null.
func (f Fates) MarshalJSON() ([]byte, error) {
	type plain Fates
	if f.Swallowed >= 0 {
		return json.Marshal(plain(f))
	}
	return json.Marshal(struct {
		plain
		Swallowed *int64 `json:"swallowed"`
	}{plain: plain(f)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (f *Fates) UnmarshalJSON(data []byte) error {
	type plain Fates
	read := struct {
		*plain
		Swallowed *int64 `json:"swallowed"`
	}{plain: (*plain)(f)}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	f.Swallowed = -1
	if read.Swallowed != nil {
		f.Swallowed = *read.Swallowed
	}
	return nil
}

// Changes counts what came out by kind.
type Changes struct {
	Insert       int64 `json:"insert"`
	UpdateBefore int64 `json:"update_before"`
	UpdateAfter  int64 `json:"update_after"`
	Delete       int64 `json:"delete"`
}

// InsertOnly is what a consumer that understands only inserts would store: every +I and +U as a row.
type InsertOnly struct {
	Rows  int64 `json:"rows"`
	Extra int64 `json:"extra"` // rows beyond one an event
}

// Latency per event, in its three parts.
type Latency struct {
	Wait   Quantiles `json:"wait"`   // first emission - first arrival of any row of the event
	Settle Quantiles `json:"settle"` // last change of the event's row - first arrival
	Commit Quantiles `json:"commit"` // visible - emission, per change
}

// State over time. Keys are summed over subtasks; a peak is the largest sample of the series.
type State struct {
	KeysLivePeak int64 `json:"keys_live_peak"`
	KeysLiveEnd  int64 `json:"keys_live_end"`
	KeysHeldPeak int64 `json:"keys_held_peak"`
	TimersPeak   int64 `json:"timers_peak"`
	BytesPeak    int64 `json:"bytes_peak"` // logical bytes, as the lab counts them
	BytesEnd     int64 `json:"bytes_end"`
	// PhysicalBytes is what the state backend holds on disk after flush and compaction; 0 for memory. Never gated.
	PhysicalBytes int64 `json:"physical_bytes"`
	// BytesPerKey is what a live key takes: on disk at the end, or in the lab's memory at the peak, where places of keys
	// that are gone wait for new ones. LogicalBytesPerKey is the same of BytesPeak. 0: there are no keys.
	BytesPerKey        float64       `json:"bytes_per_key"`
	LogicalBytesPerKey float64       `json:"logical_bytes_per_key"`
	Class              string        `json:"class"` // measured
	Series             []StateSample `json:"series"`
}

// StateSample is the state at one moment, in ms from the start. Rows and Keys are what had come in by then.
type StateSample struct {
	AtMS     int64 `json:"at_ms"`
	KeysLive int64 `json:"keys_live"`
	KeysHeld int64 `json:"keys_held"`
	Timers   int64 `json:"timers"`
	Bytes    int64 `json:"bytes"`
	Rows     int64 `json:"rows"`
	Keys     int64 `json:"keys"`
}

// Spark is what the micro-batches of a query did. Counters that Spark has are named as it names them, and sum up all
// stateful operators and batches; a batch that was run again counts once.
type Spark struct {
	Batches       int64 `json:"batches"`         // those without data among them
	NoDataBatches int64 `json:"no_data_batches"` // those that had no rows
	Reruns        int64 `json:"reruns"`          // batches that failed and were run again
	// FellBehind counts the batches that took longer than the trigger's interval.
	FellBehind         int64      `json:"fell_behind"`
	RowsTotal          RowsTotal  `json:"numRowsTotal"`
	RowsUpdated        int64      `json:"numRowsUpdated"`
	RowsRemoved        int64      `json:"numRowsRemoved"`
	DroppedByWatermark int64      `json:"numRowsDroppedByWatermark"`
	DroppedDuplicates  int64      `json:"numDroppedDuplicateRows"`
	Standstill         Standstill `json:"standstill"`
	// DroppedByInput is numRowsDroppedByWatermark by the input that the rows came from, where there are several.
	DroppedByInput []int64 `json:"dropped_by_input,omitempty"`
	// Operators are the stateful operators one by one, where there are several.
	Operators []SparkOperator `json:"operators,omitempty"`
}

// RowsTotal is numRowsTotal, the keys in the state.
type RowsTotal struct {
	Peak int64 `json:"peak"`
	End  int64 `json:"end"`
	// PerHour is how much it rises in an hour, over the second half of the run; below 0 where it falls.
	PerHour int64 `json:"per_hour"`
}

// Standstill is the longest time for which no batch moved the watermark, within the span of the run.
type Standstill struct {
	Millis    int64 `json:"ms"`
	FromMS    int64 `json:"from_ms"`      // from the start
	RowsTotal int64 `json:"numRowsTotal"` // at its end
	// Input is the number of the input that held the watermark back while another one went on, counted from 1; 0 where
	// none did.
	Input int64 `json:"input"`
}

// SparkOperator is one stateful operator of several.
type SparkOperator struct {
	Name               string    `json:"name"`
	RowsIn             int64     `json:"rows_in"`
	RowsOut            int64     `json:"rows_out"`
	RowsTotal          RowsTotal `json:"numRowsTotal"`
	RowsUpdated        int64     `json:"numRowsUpdated"`
	RowsRemoved        int64     `json:"numRowsRemoved"`
	DroppedByWatermark int64     `json:"numRowsDroppedByWatermark"`
	DroppedDuplicates  int64     `json:"numDroppedDuplicateRows"`
}

// Subtask shows skew between the parallel instances of the operator. What is read again counts again where no crash undid
// it: see Failure.
type Subtask struct {
	Rows         int64 `json:"rows"`
	KeysLivePeak int64 `json:"keys_live_peak"`
}

// Determinism is one cause of difference and what N replays under it showed.
type Determinism struct {
	Cause string `json:"cause"` // such as interleaving, catch-up or watermarks
	// ByConstruction says why the strategy cannot be open to the cause: it was not replayed under it. Empty where it can.
	ByConstruction string `json:"by_construction,omitempty"`

	Replays     int `json:"replays"`
	SameTable   int `json:"same_table"`
	SameChanges int `json:"same_changes"`
	SameOrder   int `json:"same_order"`
	// Example tells the first difference found, in words; empty where all replays agree.
	Example string `json:"example,omitempty"`
	// Stories are two of the key that the example is about: in the run, and in the replay that differs. None were told
	// where all replays agree, or the key has very many changes.
	Stories []Story `json:"stories,omitempty"`
	// RowsGone counts the rows that the source no longer had in a replay, by the job's retention. LossesByCause counts,
	// as retention, the events that had no other row; those of the run itself are not among them.
	RowsGone      int64            `json:"rows_gone,omitempty"`
	LossesByCause map[string]int64 `json:"losses_by_cause,omitempty"`
}

// Same says in how many replays the final table was the same, such as 4/5, or that it is so by construction.
func (d Determinism) Same() string {
	if d.Replays == 0 {
		return "by construction"
	}
	return fmt.Sprintf("%d/%d", d.SameTable, d.Replays)
}

// Verdict of one requirement.
type Verdict struct {
	Requirement string `json:"requirement"`
	Bound       string `json:"bound"`
	Verdict     string `json:"verdict"` // pass, fail, refused, not applicable, undetermined
	Value       string `json:"value"`
	Evidence    string `json:"evidence,omitempty"` // one example row, or why
	// Passed counts the seeds, of a run over several, under which the requirement is met.
	Passed int `json:"passed,omitempty"`
}

// The verdicts.
const (
	Pass          = "pass"
	Fail          = "fail"
	Refused       = "refused"
	NotApplicable = "not applicable"
	Undetermined  = "undetermined"
)

// Example is one row that shows a fate.
type Example struct {
	Fate string `json:"fate"`
	// EventNumber is the logical event that the row stands for: lab trace --event tells its story.
	EventNumber uint64 `json:"event"`
	// Story is the one of Strategy.Stories that the row is part of, from 1; 0: none was told.
	Story     int               `json:"story,omitempty"`
	Cause     string            `json:"cause,omitempty"`
	Origin    string            `json:"origin"`
	AtMS      int64             `json:"at_ms"` // when its fate was sealed, ms from the start
	ArrivalMS int64             `json:"arrival_ms"`
	Event     string            `json:"event_time"`
	Partition int               `json:"partition"`
	Row       map[string]string `json:"row"`
}

// Score counts the requirements that a strategy meets, and those that apply to it.
func (s *Strategy) Score() (met, of int) {
	for _, v := range s.Verdicts {
		if v.Verdict == NotApplicable {
			continue
		}
		of++
		if v.Verdict == Pass {
			met++
		}
	}
	return met, of
}

// Ranked returns the strategies best first: those that ran before those refused, then by the fewest requirements
// missed, the fewest rows lost and leaked, and the id.
func (r *Run) Ranked() []*Strategy {
	order := make([]*Strategy, len(r.Strategies))
	for i := range r.Strategies {
		order[i] = &r.Strategies[i]
	}
	slices.SortStableFunc(order, func(a, b *Strategy) int {
		metA, ofA := a.Score()
		metB, ofB := b.Score()
		return cmp.Or(
			cmp.Compare(min(1, len(a.Refused)), min(1, len(b.Refused))),
			cmp.Compare(ofA-metA, ofB-metB),
			cmp.Compare(a.Lost+a.Leaked, b.Lost+b.Leaked),
			cmp.Compare(a.ID, b.ID),
		)
	})
	return order
}
