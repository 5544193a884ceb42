// Package strategies holds the ways of deduplicating, one file each: the operator, what the planner declares, when the
// strategy loses or leaks data, and the code that a user would deploy.
//
// To add one, write one file that declares a [Strategy] and hands it to register. Its parameters are then accepted in
// scenarios, its operator runs in the lab, and its facts stand in the report.
//
// The tests ask more of one that the lab ships: a fact on each of [Topics] and [DeterminismCauses] (facts_test.go), a
// story under scenarios/semantics unless it is Spark's, a line in the matrix of causes (lab/replays_test.go), and for
// Flink SQL that sqlshape knows its query again. They go through [Names], so that none is forgotten. What it does is
// held to its rule in proof/rules_test.go, and to recordings in conformance/ids.go; both have to be told of it.
package strategies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"deduplab/results"
	"deduplab/sim"
	"deduplab/stream"
)

// Strategy is one way of deduplicating.
type Strategy struct {
	Name   string
	Engine string // flink-sql, flink-datastream, spark or spark-delta
	About  string // one line: what it does
	Loses  string // one sentence: when it loses or leaks data
	Facts  []Fact // what is known of it, each with the recorded case that shows it
	Params []Param
	// Check tests parameters against each other and the schema; it returns the fault. Optional.
	Check func(args Args, schema stream.Schema) string
	// Plan is what the planner makes of the strategy in a job. Args are complete and valid.
	Plan func(args Args, job Job) Plan
}

// Job is what the planner knows beside the query: the table, the sink and the options.
type Job struct {
	Schema stream.Schema
	// ContentOf names the columns that the key is the hash of: it is then the last column of the schema, which the job
	// computes itself. Nil: the key comes with the rows.
	ContentOf []string
	Sink      Sink
	// Input is the changelog mode that the source declares; 0 is insert-only. What the rows really are the planner does
	// not know.
	Input stream.ChangelogMode
	// Version is the engine whose rules hold.
	Version Version
	// MiniBatch is table.exec.mini-batch.*: Latency 0 is off.
	MiniBatch MiniBatch
	// InsertInsensitive is table.exec.deduplicate.insert-update-after-sensitive-enabled = false.
	InsertInsensitive bool
	// CheckpointInterval is the time from one checkpoint to the next, 0 if there are none.
	CheckpointInterval stream.Time
	// WatermarkDelay is the d of WATERMARK FOR ts AS ts - d, for the code.
	WatermarkDelay stream.Time
}

// MiniBatch holds the table.exec.mini-batch options.
type MiniBatch struct {
	Latency stream.Time // allow-latency
	Size    int
	Compact bool // table.exec.deduplicate.mini-batch.compact-changes-enabled
	// ByWatermark says that a consumer goes by event time. Then the batches of all strategies end with watermarks.
	ByWatermark bool
}

// Sink is what consumes the result. To the planner an Append sink takes inserts only.
type Sink = stream.Sink

// The sinks of a job.
const (
	Retract = stream.RetractSink
	Append  = stream.AppendSink
	Upsert  = stream.UpsertSink
)

// ParseSink reads the name used in scenarios.
func ParseSink(s string) (Sink, bool) { return stream.ParseSink(s) }

// Plan is a strategy planned for one job.
type Plan struct {
	Changelog  stream.ChangelogMode // declared, for what feeds the sink
	Operator   string               // ExecNode, such as StreamExecDeduplicate
	Runtime    string               // runtime class
	StateClass StateClass
	Clock      string      // what time the strategy goes by: event time, processing time or none
	TTL        string      // what its TTL counts from, and what refreshes it
	StateTTL   stream.Time // how long an entry of its state lives, 0: for ever
	// Misdeclared names the planner's fault by which updates come out that Changelog does not have; empty: none do.
	Misdeclared string
	// Refused is the planner's reason not to feed this sink; empty where it does.
	Refused string
	// Declared is the mode for a consumer that takes all changes; Node, UpsertKey and Time are what else decides which
	// consumers take the query: see Accepts.
	Declared  stream.ChangelogMode
	Node      string
	UpsertKey UpsertKey
	Time      TimeColumn

	// Key says what the operator groups by; Order fills Row.Order.
	Key   KeyBy
	Order []OrderBy
	// Output names what the result's rows hold; Column is the column of KeyAndColumn.
	Output Output
	Column int
	// ToChangelog turns every change of Input into an inserted row with an op column.
	ToChangelog bool
	Input       stream.ChangelogMode
	// Leaks says how copies can come through, for the ledger's causes. Timer and Window are the spans it goes by.
	Leaks         Leak
	Timer, Window stream.Time
	// Compared are the columns in which two rows must agree to be copies, and Window too if it is not 0; nil: the key.
	Compared []int
	// Promise is the version of an event that the strategy promises to end with.
	Promise Promise
	// InBatches says that rows wait for the end of a batch, in which the engine's order of keys is that of a hash map.
	InBatches bool
	// SharedCache says that what becomes of a key also depends on the rows of other keys, beside the watermark.
	SharedCache bool
	// AtCheckpoints says that what comes out depends on when checkpoints are: one restarts a TTL, or hands on what waits
	// in a buffer.
	AtCheckpoints bool
	// New makes one parallel instance of the operator. Nil where the strategy is a micro-batch query.
	New func(*sim.Ctx) sim.Operator
	// Batch is the micro-batch query, nil where the engine takes a record at a time.
	Batch *BatchPlan
	// Front are strategies in front of the query that take a record at a time, each with its own New.
	Front []Front
	// Lookback is how many days back a merge searches the table; negative: all.
	Lookback sim.Date
	// Finding says what a run shows of this strategy only, each with its number; empty: nothing. Nil: never anything.
	Finding func(*results.Strategy) string

	Language string // sql or java
	Code     string // what a user would deploy
}

// Front is a strategy in front of a micro-batch query.
type Front struct {
	Name, Engine string
	Plan         Plan
}

// KeyBy is what rows are grouped by.
type KeyBy uint8

// The groupings.
const (
	ByKey KeyBy = iota // the key of the workload
	ByRow              // all columns
)

// Output is the shape of the result's rows.
type Output uint8

// The outputs.
const (
	WholeRow     Output = iota
	KeyOnly             // the key columns
	Windowed            // window_start, window_end, then the row
	DropEvent           // the row without its event-time column, as the article's TO_CHANGELOG query
	KeyAndColumn        // the key columns and one more
)

// Leak is the way in which copies come through a strategy.
type Leak uint8

// The leaks.
const (
	ByTTL           Leak = iota // state has expired
	NoDeduplication             // nothing is removed
	ByContent                   // only equal rows are copies
	ByWindow                    // another window does not know the key
	ByTimer                     // a timer has cleared the state
	ByHorizon                   // the watermark has removed the key
	ByVersion                   // a newer row goes out beside the older one
	ByLookback                  // the table is not searched far enough back, or not the batch itself
	ByRepair                    // nothing is removed but by an audit, later
	ByColumns                   // only rows that agree in Plan.Compared are copies
)

// Promise is which of several rows of one key a strategy promises to end with.
type Promise uint8

// The promises.
const (
	AnyRow       Promise = iota
	LastByEvent          // the row with the largest event time
	FirstByOrder         // the row that sorts first by Plan.Order
)

// StateClass is how a strategy's state grows, in the words of the article on reviewing Flink SQL.
type StateClass string

// The state classes, from cheap to dear.
const (
	Stateless   StateClass = "stateless"
	Constant    StateClass = "constant"
	TimeBounded StateClass = "time-bounded"
	PerKey      StateClass = "per key"
	PerRecord   StateClass = "per record"
)

// StateClasses lists the classes from cheap to dear.
var StateClasses = []StateClass{Stateless, Constant, TimeBounded, PerKey, PerRecord}

// OrderBy is one column of an ORDER BY.
type OrderBy struct {
	Column int // index in the schema
	Desc   bool
}

// Param is one parameter of a strategy.
type Param struct {
	Name    string
	Kind    ParamKind
	Values  []string // of an Enum
	Default string   // as it would be written; empty: required, unless Kind says otherwise
	About   string
	Expires bool // a Duration of processing time after which state goes: a TTL, or the timer that clears it
}

// ParamKind is the type of a parameter.
type ParamKind uint8

// The kinds of parameter.
const (
	Duration         ParamKind = iota // a span; 0 switches the thing off
	Int                               // a whole number, at least 1
	Bool                              // true or false
	Enum                              // one of Values
	Order                             // columns with a direction, such as "price asc, order_id desc"
	Column                            // the name of a column
	Columns                           // the names of columns, or KeyColumns, AllColumns or SameColumns
	OptionalDuration                  // a span, or None
	OptionalColumn                    // the name of a column, or None
	Spans                             // a span, or one by name, such as "payment: 7d, *: 1h"
	Tiers                             // strategies that stand behind one another, as JSON: see ParseTiers
)

// Values that stand for others.
const (
	KeyColumns = "key" // the columns of the workload's key
	AllColumns = "all" // all columns
	// SameColumns are those of before, where a query is restarted.
	SameColumns = "same"
	None        = "none" // no span, no column
)

// NamesColumns reports whether the parameter's value is checked against the columns of the workload.
func (p Param) NamesColumns() bool {
	return p.Kind == Order || p.Kind == Column || p.Kind == Columns || p.Kind == OptionalColumn
}

// Args are the parameters of one strategy in a scenario, as written or by default.
type Args struct {
	text  map[string]string
	order []OrderBy
	tiers []Tier
}

// Duration returns a Duration parameter.
func (a Args) Duration(name string) stream.Time {
	t, _ := stream.ParseDuration(a.text[name])
	return t
}

// Optional returns an OptionalDuration or Duration parameter; ok is false for None and where there is no such
// parameter.
func (a Args) Optional(name string) (t stream.Time, ok bool) {
	t, err := stream.ParseDuration(a.text[name])
	return t, err == nil
}

// Int returns an Int parameter.
func (a Args) Int(name string) int {
	var n int
	_, _ = fmt.Sscan(a.text[name], &n)
	return n
}

// Spans returns a Spans parameter in the order in which it was written.
func (a Args) Spans(name string) []Span {
	spans, _ := parseSpans(a.text[name])
	return spans
}

// Bool returns a Bool parameter.
func (a Args) Bool(name string) bool { return a.text[name] == "true" }

// Text returns a parameter as it was written.
func (a Args) Text(name string) string { return a.text[name] }

// OrderBy returns the Order parameter.
func (a Args) OrderBy() []OrderBy { return a.order }

// Tiers returns the Tiers parameter.
func (a Args) Tiers() []Tier { return a.tiers }

// Map returns all parameters by name, as written.
func (a Args) Map() map[string]string { return a.text }

// ParamError is one fault in a strategy's parameters.
type ParamError struct {
	Param   string // the parameter; empty when one is missing
	Message string // what is wrong and what was expected
}

// Error names the parameter and the fault.
func (e ParamError) Error() string { return e.Param + ": " + e.Message }

// Resolve checks the parameters given and completes them with the defaults. All faults are returned at once.
func (s *Strategy) Resolve(given map[string]string, schema stream.Schema) (Args, []ParamError) {
	args := Args{text: map[string]string{}}
	var faults []ParamError
	for _, name := range sortedKeys(given) {
		i := slices.IndexFunc(s.Params, func(p Param) bool { return p.Name == name })
		if i < 0 {
			faults = append(faults, ParamError{name, s.unknownParam(name)})
			continue
		}
		if fault := args.set(s.Params[i], given[name], schema); fault != "" {
			faults = append(faults, ParamError{name, fault})
		}
	}
	for _, p := range s.Params {
		if _, ok := given[p.Name]; ok {
			continue
		}
		if p.Default == "" {
			faults = append(faults, ParamError{"", fmt.Sprintf("%s needs %s: %s", s.Name, p.Name, p.About)})
			continue
		}
		if fault := args.set(p, p.Default, schema); fault != "" {
			faults = append(faults, ParamError{"", fmt.Sprintf("%s: %s", p.Name, fault)})
		}
	}
	if len(faults) == 0 && s.Check != nil {
		if fault := s.Check(args, schema); fault != "" {
			faults = append(faults, ParamError{"", fault})
		}
	}
	return args, faults
}

func (s *Strategy) unknownParam(name string) string {
	if len(s.Params) == 0 {
		return fmt.Sprintf("%s takes no parameters", s.Name)
	}
	names := make([]string, len(s.Params))
	for i, p := range s.Params {
		names[i] = p.Name
	}
	return fmt.Sprintf("unknown parameter of %s%s; it takes %s",
		s.Name, stream.DidYouMean(name, names), strings.Join(names, ", "))
}

func (a *Args) set(p Param, value string, schema stream.Schema) string {
	a.text[p.Name] = value
	switch p.Kind {
	case OptionalDuration, Duration:
		if p.Kind == OptionalDuration && value == None {
			break
		}
		t, err := stream.ParseDuration(value)
		if err != nil && p.Kind == OptionalDuration {
			return err.Error() + "; or write " + None
		}
		if err != nil {
			return err.Error()
		}
		a.text[p.Name] = stream.FormatDuration(t)
	case Int:
		var n int
		if _, err := fmt.Sscanf(value, "%d", &n); err != nil || n < 1 || fmt.Sprint(n) != value {
			return fmt.Sprintf("%q is not a whole number of at least 1", value)
		}
	case Bool:
		if value != "true" && value != "false" {
			return fmt.Sprintf("%q is neither true nor false", value)
		}
	case Enum:
		if !slices.Contains(p.Values, value) {
			return fmt.Sprintf("%q is not one of %s%s", value, strings.Join(p.Values, ", "),
				stream.DidYouMean(value, p.Values))
		}
	case Spans:
		spans, fault := parseSpans(value)
		if fault != "" {
			return fault
		}
		a.text[p.Name] = formatSpans(spans)
	case OptionalColumn:
		if value != None && schema.Index(value) < 0 {
			return unknownColumn(value, schema)
		}
	case Column:
		if schema.Index(value) < 0 {
			return unknownColumn(value, schema)
		}
	case Columns:
		names, fault := parseColumns(value, schema)
		a.text[p.Name] = names
		return fault
	case Tiers:
		tiers, fault := ParseTiers(value, schema)
		a.tiers = tiers
		var compact bytes.Buffer
		if json.Compact(&compact, []byte(value)) == nil {
			a.text[p.Name] = compact.String()
		}
		return fault
	case Order:
		order, fault := parseOrder(value, schema)
		a.order = order
		return fault
	}
	return ""
}

func unknownColumn(name string, schema stream.Schema) string {
	names := make([]string, len(schema.Columns))
	for i, c := range schema.Columns {
		names[i] = c.Name
	}
	return fmt.Sprintf("no column %q%s; there are %s", name, stream.DidYouMean(name, names), strings.Join(names, ", "))
}

// parseColumns reads a list of columns, each once, and spells it anew.
func parseColumns(text string, schema stream.Schema) (string, string) {
	var names []string
	for part := range strings.SplitSeq(text, ",") {
		name := strings.TrimSpace(part)
		switch {
		case schema.Index(name) < 0 && name == text &&
			slices.Contains([]string{KeyColumns, AllColumns, SameColumns, None}, name):
			return name, ""
		case schema.Index(name) < 0:
			return text, unknownColumn(name, schema)
		case slices.Contains(names, name):
			return text, fmt.Sprintf("column %s stands there twice", name)
		}
		names = append(names, name)
	}
	return strings.Join(names, ", "), ""
}

func parseOrder(text string, schema stream.Schema) ([]OrderBy, string) {
	var order []OrderBy
	for part := range strings.SplitSeq(text, ",") {
		words := strings.Fields(part)
		if len(words) == 0 || len(words) > 2 {
			return nil, fmt.Sprintf("%q is not an order: write columns with a direction, such as \"price asc\"", text)
		}
		column := schema.Index(words[0])
		if column < 0 {
			return nil, unknownColumn(words[0], schema)
		}
		by := OrderBy{Column: column}
		if len(words) == 2 {
			switch strings.ToLower(words[1]) {
			case "asc":
			case "desc":
				by.Desc = true
			default:
				return nil, fmt.Sprintf("%q is not a direction: asc or desc", words[1])
			}
		}
		order = append(order, by)
	}
	return order, ""
}

var registry = map[string]*Strategy{}

// register adds a strategy; it returns it so that a file can register in a variable declaration.
func register(s *Strategy) *Strategy {
	if _, ok := registry[s.Name]; ok {
		panic("strategies: " + s.Name + " is registered twice")
	}
	plan := s.Plan
	s.Plan = func(args Args, job Job) Plan { return job.withAdded(plan(args, job)) }
	registry[s.Name] = s
	return s
}

// withAdded puts in front of a micro-batch query's code the columns that the query adds, once.
func (j Job) withAdded(p Plan) Plan {
	comment, ok := map[string]string{"python": "#", "scala": "//"}[p.Language]
	if !ok { // they stand in the table's definition
		return p
	}
	for _, c := range slices.Backward(j.Schema.Columns) {
		if c.Function != stream.NoFunction {
			line := fmt.Sprintf("%s events is source.withColumn(%q, expr(%q))\n", comment, c.Name, j.sparkCall(c.Function))
			p.Code = line + strings.ReplaceAll(p.Code, line, "")
		}
	}
	return p
}

// Register adds a strategy of your own: from then on scenarios and semantics tests know it by its name. It belongs into
// a function init, because nothing guards the list. Put it through [deduplab/suite] first.
func Register(s *Strategy) error {
	switch {
	case !validName.MatchString(s.Name):
		return fmt.Errorf("strategies: %q is not a name of lower-case letters, digits and -", s.Name)
	case registry[s.Name] != nil:
		return fmt.Errorf("strategies: %s is registered already", s.Name)
	case s.About == "" || s.Loses == "":
		return fmt.Errorf("strategies: %s must say what it does (About), and when it loses or leaks data (Loses)",
			s.Name)
	case s.Plan == nil:
		return fmt.Errorf("strategies: %s has no Plan", s.Name)
	}
	register(s)
	return nil
}

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,99}$`)

// Lookup finds a strategy by name.
func Lookup(name string) (*Strategy, bool) {
	s, ok := registry[name]
	return s, ok
}

// Find is Lookup with an error that suggests the nearest name.
func Find(name string) (*Strategy, error) {
	if s, ok := registry[name]; ok {
		return s, nil
	}
	return nil, fmt.Errorf("unknown strategy %q%s; there are %s", name, stream.DidYouMean(name, Names()),
		strings.Join(Names(), ", "))
}

// Names lists all strategies in alphabetical order.
func Names() []string { return sortedKeys(registry) }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// Prepare returns what fills in a row for this plan beside what the source gives: another key, the order column. It is
// nil where there is nothing to do.
func (p Plan) Prepare(records stream.Records) func(*stream.Row) {
	order, schema := -1, records.Schema()
	if s := newSorter(schema, p.Order); s.inRow {
		order = s.columns[0].Column
	}
	byRow := p.Key == ByRow
	if !byRow && order < 0 {
		return nil
	}
	return func(row *stream.Row) {
		if byRow {
			content := records.Content(row.Tag)
			row.Key = stream.Key{Hi: content, Lo: stream.Mix(content)}
		}
		if order >= 0 {
			row.Order = records.Order(row.Tag, order)
		}
	}
}
