// Package scenarios reads the files that describe a run: the stream, the job, the strategies to compare and what is
// required of them. It also holds the scenarios that the lab ships.
//
// A scenario is YAML with a few sections, of which workload and strategies must be there:
//
//	scenario: orders            # its name
//	about: what it shows
//	seed: 42
//	workload: ...               # a generated stream, or the trace of a real one
//	job: ...                    # what the strategies run in; defaults are Flink's own
//	strategies: [ptf: {ttl: 2h}, ...]
//	after: ...                  # what reads the result: {window: {size: 1h, sum: price}, join: {on: user, within: 1h}}
//	require: {lost: <= 0, ...}  # one verdict each for every strategy
//	expect: {ptf: {verdict: pass}, ...}  # what lab check holds the strategies to
//
// In a generated workload the partitions of the source, the key and the event time can be as uneven as real ones:
//
//	partitions: {count: 4, by: order_id, share: [40%, 30%, 20%, 10%]}
//	silent:   [{partition: 0, from: 1h, for: 10m}]               # creates nothing
//	outage:   [{partition: 1, from: 3h, for: 10m, flush: 500/s}] # creates, and delivers afterwards
//	slow:     [{partition: 1, delay: {uniform: [1s, 5s]}, from: 2h, for: 1h}]  # from and for may be missing
//	finished: [{partition: 2, at: 1h}]                           # ends, and no longer holds back the watermark
//	clock:    [{partition: 3, skew: -30s, drift: 50ppm}]         # the device's, by which its event times are wrong
//	fields:   {customer: {int: [1, 1000], hot: {share: 20%, keys: 3}}}  # 20 % of the events have one of 3 values
//	event_time: {field: created_at, resolution: 1s, nulls: 0.1%} # floored to the second; some are NULL
//
// A job can fail. One that takes a record at a time goes back to its last completed checkpoint, a micro-batch query to its
// last committed batch:
//
//	failures:
//	  - {at: 30m, down: 1m}                           # a crash
//	  - {random: 3, down: 1m}                         # three, at moments that the seed draws
//	  - {kind: lost-checkpoint, at: 50m}              # the first one from then on never completes
//	  - {kind: slow-checkpoint, at: 1h, for: 5m}
//	  - {kind: sink, at: 2h, down: 1m}                # it fails between write and commit
//	  - {kind: rewind, at: 3h, down: 1m, by: 10m}     # the source reads from 10 minutes earlier than needed
//
// What was done since is undone. Under checkpoint.delivery: exactly-once no reader has seen it; under at-least-once it has
// gone out, and goes out again: write duplicates, unless sink: upsert overwrites the row with itself.
//
// [Load] is strict: whatever it does not know is a fault, and all faults of a file are reported at once, each with its
// place. [Scenario.Inspect] writes a scenario with everything that was left to the defaults.
package scenarios

import (
	"os"
	"path/filepath"

	"deduplab/gen"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
	"deduplab/trace"
	"deduplab/yml"
)

// Scenario is one file, complete and valid.
type Scenario struct {
	File       string
	Name       string
	About      string
	Seed       uint64
	Workload   Workload
	Job        Job
	Strategies []Entry
	After      After
	Require    []Requirement
	Expect     []Expectation
}

// After is what stands behind a strategy and reads its result: windows and a join, nil where there is none.
type After struct {
	Window *AfterWindow
	Join   *AfterJoin
}

// AfterWindow counts the rows of the result in tumbling windows of event time, and sums up a column.
type AfterWindow struct {
	Size stream.Time
	Sum  int // a numeric column, -1 for none
}

// AfterJoin joins the result with the events of the stream, each of which is there once: rows that agree in the column
// On, and whose event times are at most Within apart.
type AfterJoin struct {
	On     int
	Within stream.Time
}

// Workload is a generated stream or a trace; one of the two is set.
type Workload struct {
	Spec   *gen.Spec
	Trace  *Trace
	Schema stream.Schema
	Keys   []gen.Key // alternatives to the key that the workload comes with, in the order of the file
	Amount string    // the column of numbers that results are summed by; empty: none
}

// Trace is a recorded stream.
type Trace struct {
	Files []string // as written: paths and patterns, relative to the scenario, or "-" (in quotes), the standard input
	Spec  gen.TraceSpec
	Rows  *gen.Trace
}

// Job is what every strategy runs in.
type Job struct {
	Flink       strategies.Version   // whose rules hold
	Input       stream.ChangelogMode // what the source declares: inserts only, or strategies.AllChanges
	Parallelism int
	Watermark   Watermark
	Checkpoint  Checkpoint
	Sink        strategies.Sink
	State       string // memory or pebble
	MiniBatch   strategies.MiniBatch
	// CatchUpRate is the number of rows a second that a reader handles in a catch-up replay; 0 is 100 times the
	// stream's mean.
	CatchUpRate float64
	// Table is what the target of a sink is kept in: memory, pebble, or the address of a Postgres database.
	Table string
	Skew  int // rows by which an interleaving replay lets one partition lead
	// Retention is how long the source keeps a row from its arrival; 0: for ever. A replay that begins at the end of the
	// span lacks the rows that are older, one by one (Kafka deletes whole segments): the cause retention. The run itself
	// reads every row as it arrives.
	Retention stream.Time
	// Adds are columns that the query adds to the rows in front of the strategies, each by a function.
	Adds     []stream.Column
	Spark    Spark
	Failures []Failure
}

// Failure is what goes wrong in a job, from the start of the stream on. A replay that is to crash has one more in its Job;
// see [Job.PlanFailures] for what becomes of them.
type Failure struct {
	sim.Failure
	// Random is how many there are, each at a moment that the seed draws; At means nothing then. 0: one, At.
	Random int
}

// Spark is what the micro-batch queries of a job run in. Defaults are Spark's own, but for the trigger: Spark's starts
// a batch as soon as the one before has ended, and how many there are depends on how long they take.
type Spark struct {
	Trigger sim.Trigger
	Cost    sim.BatchCost
	// NoDataBatches is spark.sql.streaming.noDataMicroBatches.enabled.
	NoDataBatches bool
	// Policy is spark.sql.streaming.multipleWatermarkPolicy.
	Policy sim.WatermarkPolicy
	// Inputs is the number of sources that the query is a union of: partition p belongs to input p mod Inputs.
	Inputs int
	// Shuffle says what is moved to a stage by key: whole-row, or key-first: the key and the event time, and the payload is
	// joined back to what the stage lets through.
	Shuffle string
	// Restart is a moment from the start, 0 for none: the queries are stopped and started again from their checkpoints,
	// with other columns where a strategy has restart_columns.
	Restart stream.Time
	// Migrate replaces the queries by new ones.
	Migrate Migration
}

// Migration is the replacement of a query by a new one with a new checkpoint, At from the start, 0 for none. The new one
// reads from where the rows of the span Overlap before that begin.
type Migration struct{ At, Overlap stream.Time }

// Watermark says how watermarks are made.
type Watermark struct {
	Delay     stream.Time // how far the watermark stays behind the largest event time
	Interval  stream.Time // pipeline.auto-watermark-interval
	IdleAfter stream.Time // table.exec.source.idle-timeout; 0 is off
	Per       string      // partition (the generator is in the source) or reader (WatermarkAssigner)
}

// Checkpoint says when checkpoints are made and what becomes visible when.
type Checkpoint struct {
	Interval stream.Time // 0 is off
	Delivery string      // at-least-once: visible at emission; exactly-once: visible at the commit
}

// Entry is one strategy with its parameters.
type Entry struct {
	ID       string
	Strategy *strategies.Strategy
	Args     strategies.Args
	Key      *gen.Key // one of Workload.Keys; nil: the key that the workload comes with
}

// Requirement is one line of the section require. Its name is a metric with Op and Value, or state.class with Class,
// or same_under with Causes, or append_only, or version with the bound first or last.
type Requirement struct {
	Name   string
	Bound  string // as written, such as "<= 0.1%"
	Op     string // <, <=, >, >=, == or !=
	Value  float64
	Class  strategies.StateClass
	Causes []string
}

// The requirements that are not numbers.
const (
	AppendOnly = "append_only"
	StateClass = "state.class"
	SameUnder  = "same_under"
	Version    = "version" // which version of an event the result must end with, by event time
)

// Versions are the bounds of the requirement version.
var Versions = []string{"first", "last"}

// Causes lists what must not change a result: the perturbations under which a run is replayed.
var Causes = []string{"interleaving", "catch-up", "watermarks", "idleness", "state-ttl", "restart", "retention",
	"lookup", "functions", "batches", "parallelism"}

// Version is the version of an event that the result must end with, first or last by event time; empty if any will do.
func (s *Scenario) Version() string {
	for _, r := range s.Require {
		if r.Name == Version {
			return r.Bound
		}
	}
	return ""
}

// Holds reports whether the value of the metric keeps within the bound.
func (r Requirement) Holds(value float64) bool {
	switch r.Op {
	case "<":
		return value < r.Value
	case "<=":
		return value <= r.Value
	case ">":
		return value > r.Value
	case ">=":
		return value >= r.Value
	case "==":
		return value == r.Value
	}
	return value != r.Value
}

// Error is all that is wrong with a scenario, in the order of the file.
type Error = yml.Error

// Open opens the trace of a scenario. The loader calls it because the columns of a trace stand in the trace.
type Open func(paths []string, spec gen.TraceSpec) (*gen.Trace, error)

// Load reads a scenario. The file is its name in messages, and traces are looked for beside it; open may be nil where
// no trace is expected. The error is an [*Error] with all that is wrong.
func Load(file string, src []byte, open Open) (*Scenario, error) {
	return load(file, src, &Reading{Open: open})
}

func load(file string, src []byte, how *Reading) (*Scenario, error) {
	l := &loader{
		Reader:   yml.New(file, src),
		scenario: &Scenario{File: file, Seed: 1, Job: defaultJob()},
		open:     how.Open,
		scale:    how.Scale,
	}
	l.load(l.Parse("scenario", "a name (scenario), a workload and strategies"))
	if err := l.Err(); err != nil {
		return nil, err
	}
	return l.scenario, nil
}

// Read loads a scenario from a file, and its trace.
func Read(path string) (*Scenario, error) { return ReadWith(path, Reading{}) }

// Reading says how a scenario is read.
type Reading struct {
	Open  Open    // nil: traces are opened as the scenario says
	Scale float64 // instead of the scenario's own workload.scale; 0: that one
}

// ReadWith is Read in another way.
func ReadWith(path string, how Reading) (*Scenario, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if how.Open == nil {
		how.Open = openTrace
	}
	return load(path, src, &how)
}

func openTrace(paths []string, spec gen.TraceSpec) (*gen.Trace, error) {
	files, err := trace.Files(paths, os.Stdin)
	if err != nil {
		return nil, err
	}
	return gen.ReadTraces(files, spec)
}

// SkipBadRows opens a trace and skips its bad rows or not, whatever the scenario says.
func SkipBadRows(skip bool) Open {
	return func(paths []string, spec gen.TraceSpec) (*gen.Trace, error) {
		spec.SkipBadRows = skip
		return openTrace(paths, spec)
	}
}

// loader reads one file into a scenario.
type loader struct {
	*yml.Reader
	scenario *Scenario
	open     Open
	scale    float64 // instead of the file's; 0: that one
	// columnsKnown says that the workload's schema can be trusted to judge the columns that strategies name.
	columnsKnown bool
	keysKnown    bool // the same of the alternative keys
}

func (l *loader) load(root *yml.Node) {
	s := l.scenario
	l.Object(root,
		yml.Must("scenario", yml.Value(l.Reader, &s.Name, slug)),
		yml.May("about", yml.Value(l.Reader, &s.About, yml.NonEmpty)),
		yml.May("seed", yml.Bare(l.Reader, &s.Seed, seed)),
		yml.Must("workload", l.workload),
		yml.May("job", l.job),
		yml.Must("strategies", l.strategies),
		yml.May("after", l.after),
		yml.May("require", l.require),
		yml.May("expect", l.expect),
	)
}

// beside resolves a path that a scenario names.
func beside(scenario, path string) string {
	if filepath.IsAbs(path) || path == trace.Stdin {
		return path
	}
	return filepath.Join(filepath.Dir(scenario), path)
}
