// Package scenarios reads the files that describe a run: the stream, the job, the strategies to compare and what is
// required of them. It also holds the scenarios that the lab ships.
//
// A scenario is YAML with seven sections, of which workload and strategies must be there:
//
//	scenario: orders            # its name
//	about: what it shows
//	seed: 42
//	workload: ...               # a generated stream, or the trace of a real one
//	job: ...                    # what the strategies run in; defaults are Flink's own
//	strategies: [ptf: {ttl: 2h}, ...]
//	require: {lost: <= 0, ...}  # one verdict each for every strategy
//	expect: {ptf: {verdict: pass}, ...}  # what lab check holds the strategies to
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
	Require    []Requirement
	Expect     []Expectation
}

// Workload is a generated stream or a trace; one of the two is set.
type Workload struct {
	Spec   *gen.Spec
	Trace  *Trace
	Schema stream.Schema
}

// Trace is a recorded stream.
type Trace struct {
	File string // as written; relative to the scenario
	Spec gen.TraceSpec
	Rows gen.Workload
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
	Skew        int // rows by which an interleaving replay lets one partition lead
	Spark       Spark
}

// Spark is what the micro-batch queries of a job run in. Defaults are Spark's own, but for the trigger: Spark's starts a
// batch as soon as the one before has ended, and how many there are depends on how long they take.
type Spark struct {
	Trigger sim.Trigger
	Cost    sim.BatchCost
	// NoDataBatches is spark.sql.streaming.noDataMicroBatches.enabled.
	NoDataBatches bool
	// Policy is spark.sql.streaming.multipleWatermarkPolicy.
	Policy sim.WatermarkPolicy
	// Inputs is the number of sources that the query is a union of: partition p belongs to input p mod Inputs.
	Inputs int
	// Failures are moments from the start: the batch that ends then fails after the write, and is run again.
	Failures []stream.Time
}

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
var Causes = []string{"interleaving", "catch-up"}

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
type Open func(path string, spec gen.TraceSpec) (gen.Workload, error)

// Load reads a scenario. The file is its name in messages, and traces are looked for beside it; open may be nil where
// no trace is expected. The error is an [*Error] with all that is wrong.
func Load(file string, src []byte, open Open) (*Scenario, error) {
	l := &loader{
		Reader:   yml.New(file, src),
		scenario: &Scenario{File: file, Seed: 1, Job: defaultJob()},
		open:     open,
	}
	l.load(l.Parse("scenario", "a name (scenario), a workload and strategies"))
	if err := l.Err(); err != nil {
		return nil, err
	}
	return l.scenario, nil
}

// Read loads a scenario from a file, and its trace.
func Read(path string) (*Scenario, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Load(path, src, openTrace)
}

func openTrace(path string, spec gen.TraceSpec) (gen.Workload, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return gen.ReadTrace(path, file, spec)
}

// loader reads one file into a scenario.
type loader struct {
	*yml.Reader
	scenario *Scenario
	open     Open
	// columnsKnown says that the workload's schema can be trusted to judge the columns that strategies name.
	columnsKnown bool
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
		yml.May("require", l.require),
		yml.May("expect", l.expect),
	)
}

// beside resolves a path that a scenario names.
func beside(scenario, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(scenario), path)
}
