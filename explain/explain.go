// Package explain makes the page of one strategy: the code to deploy, what the planner makes of it, who accepts its
// result, and all that is known of it, point by point in the order of "How I Review Flink SQL Solutions", each with the
// recorded case that shows it.
package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"deduplab/strategies"
	"deduplab/strategies/sqlshape"
	"deduplab/stream"
)

// Page is what there is to say of one strategy in one job. It is also its JSON.
type Page struct {
	Query      *Query       `json:"query,omitempty"` // the query that was recognised as the strategy
	Strategy   string       `json:"strategy"`
	Engine     string       `json:"engine"`
	About      string       `json:"about"`
	Loses      string       `json:"loses"`
	Params     []Param      `json:"params"`
	Language   string       `json:"language,omitempty"`
	Code       string       `json:"code,omitempty"` // what a user would deploy; none where a query was given
	Plan       Plan         `json:"plan"`
	Declared   []Declared   `json:"declared"`   // empty, as Downstream, where no planner looks at the result or it refuses
	Downstream []Downstream `json:"downstream"` // the query
	Topics     []Topic      `json:"topics"`
}

// Query is how a query was recognised.
type Query struct {
	Why      []string `json:"why"`
	Notes    []string `json:"notes"`
	Job      string   `json:"scenario_job,omitempty"` // the job of a scenario that runs it; empty: the defaults
	Entry    string   `json:"scenario_entry"`         // the line of a scenario that runs it
	LeftOut  string   `json:"left_out,omitempty"`     // why the page has neither summary nor facts
	Consumer string   `json:"consumer,omitempty"`     // what the query does with the deduplicated rows
}

// Param is a parameter and its value.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	About string `json:"about"`
}

// Plan is what the planner makes of the strategy.
type Plan struct {
	Operator    string `json:"operator"`
	Runtime     string `json:"runtime"`
	Clock       string `json:"clock"`
	StateClass  string `json:"state_class"`
	TTL         string `json:"ttl_counts_from"`
	Misdeclared string `json:"misdeclared_by,omitempty"` // the planner's fault by which undeclared updates come out
	Flink       string `json:"flink,omitempty"`          // the version that it is the plan of
	Spark       string `json:"spark,omitempty"`          // or the one of Spark
	Input       string `json:"input,omitempty"`          // what a Flink source declares to send: append or changelog
	MiniBatch   string `json:"mini_batch,omitempty"`     // empty: off
	Sink        string `json:"sink,omitempty"`           // the one of the scenario, if there is one
	Refused     string `json:"refused,omitempty"`        // why the planner refuses the query, whoever reads its result
}

// Declared is the changelog mode for one sink, or why the planner refuses it.
type Declared struct {
	Sink      string   `json:"sink"`
	Changelog []string `json:"changelog,omitempty"`
	Refused   string   `json:"refused,omitempty"`
}

// Downstream is whether a consumer takes the result.
type Downstream struct {
	Consumer string `json:"consumer"`
	Accepts  bool   `json:"accepts"`
	Note     string `json:"note,omitempty"` // the planner's reason, or what to know beside a yes
	Source   string `json:"source"`
}

// Answer is yes or no, with the note.
func (d Downstream) Answer() string {
	switch {
	case !d.Accepts:
		return "no: " + d.Note
	case d.Note != "":
		return "yes, " + d.Note
	}
	return "yes"
}

// Topic holds the facts on one topic.
type Topic struct {
	Topic string `json:"topic"`
	Facts []Fact `json:"facts"`
}

// Fact is one fact and the recording that shows it.
type Fact struct {
	Text   string `json:"text"`
	Source string `json:"source"`
}

// Orders is the table of "Deduplicating Streams with Flink SQL".
var Orders = sqlshape.Orders

// Complete adds an example for each parameter that a strategy requires and that is not given: the last column that is
// neither key nor event time. It returns the names of those parameters too, for [Page.Example].
func Complete(s *strategies.Strategy, given map[string]string, schema stream.Schema) (all map[string]string,
	examples []string) {
	example := ""
	for i, c := range schema.Columns {
		if i != schema.Event && !slices.Contains(schema.Key, i) {
			example = c.Name
		}
	}
	all = map[string]string{}
	maps.Copy(all, given)
	for _, p := range s.Params {
		if _, ok := all[p.Name]; ok || p.Default != "" || !p.NamesColumns() {
			continue
		}
		all[p.Name] = example
		if p.Kind == strategies.Order {
			all[p.Name] += " asc"
		}
		examples = append(examples, p.Name)
	}
	return all, examples
}

// Example marks parameters whose values were made up.
func (p *Page) Example(names []string) {
	for i := range p.Params {
		if slices.Contains(names, p.Params[i].Name) {
			p.Params[i].About += " (an example)"
		}
	}
}

// New makes the page of a strategy in a job. The sink of the job is of no account: the page tells of all of them.
func New(s *strategies.Strategy, args strategies.Args, job strategies.Job) *Page {
	job.Sink = strategies.Retract
	if strings.HasPrefix(s.Engine, "spark") {
		job.Sink = strategies.Upsert // which takes whatever an output mode sends
	}
	return newPage(s, args, job, s.Plan(args, job))
}

func newPage(s *strategies.Strategy, args strategies.Args, job strategies.Job, plan strategies.Plan) *Page {
	p := &Page{
		Strategy: s.Name, Engine: s.Engine, About: s.About, Loses: s.Loses,
		Params: []Param{}, Declared: []Declared{}, Downstream: []Downstream{},
		Language: plan.Language, Code: plan.Code,
		Plan: Plan{
			Operator: plan.Operator, Runtime: plan.Runtime, Clock: plan.Clock,
			StateClass: string(plan.StateClass), TTL: plan.TTL, Misdeclared: plan.Misdeclared,
			Flink: job.Version.String(), Input: strategies.InputName(job.Input), Refused: plan.Refused,
		},
	}
	if b := job.MiniBatch; b.Latency > 0 {
		p.Plan.MiniBatch = fmt.Sprintf("%s or %d rows", stream.FormatDuration(b.Latency), b.Size)
	}
	for _, param := range s.Params {
		p.Params = append(p.Params, Param{param.Name, args.Text(param.Name), param.About})
	}
	if plan.Batch != nil {
		p.Plan.Flink, p.Plan.Input, p.Plan.MiniBatch, p.Plan.Spark = "", "", "", strategies.Spark
		p.Downstream = batchConsumers(plan.Batch)
	}
	if s.Engine == "flink-sql" && plan.Refused == "" {
		p.Declared, p.Downstream = declared(plan), downstream(plan, acceptance(s, job))
	}
	for _, topic := range strategies.Topics {
		t := Topic{Topic: string(topic)}
		for _, f := range s.FactsOn(topic) {
			t.Facts = append(t.Facts, Fact{f.Text, f.Source()})
		}
		p.Topics = append(p.Topics, t)
	}
	return p
}

// batchConsumers are the consumers of a micro-batch query.
func batchConsumers(plan *strategies.BatchPlan) []Downstream {
	all := []Downstream{}
	for _, c := range plan.Consumers {
		all = append(all, Downstream{c.Name, c.Accepts, c.Note, strategies.Fact{Case: c.Case}.Source()})
	}
	return all
}

// declared asks the planner about the three sinks.
func declared(plan strategies.Plan) []Declared {
	var all []Declared
	for _, sink := range []struct {
		name string
		by   strategies.Consumer
	}{
		{"retract", strategies.RetractSink}, {"append", strategies.AppendSink}, {"upsert", strategies.UpsertSink},
	} {
		ok, mode, reason := strategies.Accepts(plan, sink.by)
		d := Declared{Sink: sink.name, Refused: reason}
		if ok {
			d.Changelog = mode.Names()
		}
		all = append(all, d)
	}
	return all
}

// consumerNames are the consumers as a page names them.
var consumerNames = map[strategies.Consumer]string{
	strategies.AppendSink:        "append-only sink",
	strategies.UpsertSink:        "upsert sink",
	strategies.UpsertSinkMerging: "upsert sink, ON CONFLICT",
	strategies.RetractSink:       "retract sink",
	strategies.IntervalJoin:      "interval join",
	strategies.WindowAggregate:   "window aggregate",
	strategies.MatchRecognize:    "MATCH_RECOGNIZE",
	strategies.TemporalSort:      "temporal sort",
	strategies.GroupAggregate:    "group aggregate",
	strategies.TemporalJoin:      "temporal join, left side",
	strategies.ToChangelogInput:  "TO_CHANGELOG",
}

// ofTheArticle are consumers that the article on reviewing names and no recording has. None takes updates, and windows
// need a time attribute.
var ofTheArticle = []struct {
	name    string
	windows bool
}{
	{"window rank, window dedup", true}, {"window join", true}, {"ML_PREDICT, VECTOR_SEARCH", false},
	{"lateral snapshot join", false},
}

// downstream asks the planner about every consumer.
func downstream(plan strategies.Plan, source string) []Downstream {
	var all []Downstream
	for _, by := range strategies.Consumers {
		all = append(all, consumed(plan, by, source))
	}
	for _, by := range ofTheArticle {
		d := Downstream{Consumer: by.name, Source: strategies.ArticleOnly}
		switch {
		case plan.Declared != stream.InsertOnly:
			d.Note = "it does not take updates"
		case by.windows && (plan.Time != strategies.TimeAttribute || !hasTime(plan)):
			d.Note = "the result has no time attribute"
		default:
			d.Accepts, d.Note = true, misdeclared(plan, "")
		}
		all = append(all, d)
	}
	return all
}

// acceptance names the recording of who takes the result of a strategy, or the rule that was drawn from it for
// those that are not in it.
func acceptance(s *strategies.Strategy, job strategies.Job) string {
	const recording = "flink " + strategies.Acceptance
	switch s.Name {
	case "pass-through", "group-by-min", "changelog-normalize":
		return "rule of " + recording
	}
	if job.Input != 0 || job.Version.String() != string(strategies.Flink23) {
		return "rule of " + recording
	}
	return recording
}

// consumed asks the planner about one consumer.
func consumed(plan strategies.Plan, by strategies.Consumer, source string) Downstream {
	d := Downstream{Consumer: consumerNames[by], Source: source}
	if needsTime(by) && !hasTime(plan) {
		d.Note, d.Source = "the result has no time column to go by", strategies.NotRecorded
		return d
	}
	d.Accepts, _, d.Note = strategies.Accepts(plan, by)
	if plan.ToChangelog && by == strategies.ToChangelogInput {
		d.Source = strategies.NotRecorded
	}
	if !d.Accepts {
		return d
	}
	if by == strategies.IntervalJoin && plan.Time != strategies.TimeAttribute {
		d.Note = "as a regular join: the time column is no time attribute any more"
		return d
	}
	d.Note = misdeclared(plan, by)
	return d
}

// needsTime reports whether a consumer goes by a time column.
func needsTime(by strategies.Consumer) bool {
	switch by {
	case strategies.IntervalJoin, strategies.WindowAggregate, strategies.MatchRecognize, strategies.TemporalSort,
		strategies.TemporalJoin:
		return true
	}
	return false
}

// hasTime reports whether a result has one.
func hasTime(plan strategies.Plan) bool {
	switch plan.Output {
	case strategies.KeyOnly, strategies.KeyAndColumn, strategies.DropEvent:
		return false
	}
	return true
}

// misdeclared warns of a yes that rests on a fault of the planner.
func misdeclared(plan strategies.Plan, by strategies.Consumer) string {
	switch {
	case plan.Misdeclared == "":
		return ""
	case plan.ToChangelog:
		return "but UPDATE_AFTER comes without UPDATE_BEFORE: " + plan.Misdeclared
	case by == strategies.UpsertSink || by == strategies.UpsertSinkMerging:
		return "and happens to be right: it keeps the last row of a key"
	}
	return "but +U comes undeclared: " + plan.Misdeclared
}

// OfQuery makes the page of a query that was recognised.
func OfQuery(shape sqlshape.Shape) (*Page, error) {
	s, err := strategies.Find(shape.Strategy)
	if err != nil {
		return nil, err
	}
	args, faults := s.Resolve(shape.Params, shape.Job.Schema)
	if len(faults) > 0 {
		return nil, faults[0]
	}
	job := shape.Job
	job.Sink = strategies.Retract
	plan := s.Plan(args, job)
	if shape.ToChangelog && !plan.ToChangelog {
		plan = strategies.ToChangelog(plan, job)
	}
	if shape.NoTimeAttribute {
		plan.Time = strategies.PlainTime
	}
	p := newPage(s, args, job, plan)
	p.Code = "" // the reader has it
	p.Query = &Query{Why: shape.Why, Notes: shape.Notes, Job: jobLine(shape), Entry: entry(shape)}
	if why := otherJob(shape); why != "" {
		p.Query.LeftOut = "summary and facts are left out: those of " + s.Name + " were recorded without " + why +
			", and need not hold with it. A run of the scenario above tells what holds"
		p.About, p.Loses, p.Topics = "", "", []Topic{}
	}
	if by := shape.Params["order_by"]; shape.NoTimeAttribute && by != "" {
		p.Query.Notes = append(p.Query.Notes, "the event time of a scenario is a time attribute: to run the line below, "+
			"give event_time a field that ORDER BY "+by+" does not name")
	}
	if job.MiniBatch.Compact {
		p.Query.Notes = append(p.Query.Notes, "a scenario cannot set "+
			"table.exec.deduplicate.mini-batch.compact-changes-enabled: it runs without")
	}
	if job.InsertInsensitive {
		p.Query.Notes = append(p.Query.Notes, "a scenario cannot set "+
			"table.exec.deduplicate.insert-update-after-sensitive-enabled = false: it runs with true")
	}
	if shape.Consumer != "" && plan.Refused == "" {
		d := consumed(plan, shape.Consumer, acceptance(s, job))
		p.Query.Consumer = d.Consumer + ": " + d.Answer()
	}
	return p, nil
}

// otherJob tells by what the job of a query differs from the one that the facts were recorded in.
func otherJob(shape sqlshape.Shape) string {
	var all []string
	if shape.Job.Input != 0 && shape.Strategy != "changelog-normalize" {
		all = append(all, "a source of changes")
	}
	if shape.Job.MiniBatch.Latency > 0 {
		all = append(all, "mini-batch")
	}
	return strings.Join(all, " and ")
}

// jobLine is the job of a scenario in which the query becomes the same operator; empty where the defaults do.
func jobLine(shape sqlshape.Shape) string {
	var given []string
	if shape.Job.Input != 0 {
		given = append(given, "input: "+strategies.InputName(shape.Job.Input))
	}
	if d := shape.Job.WatermarkDelay; d > 0 {
		given = append(given, "watermark: {delay: "+stream.FormatDuration(d)+"}")
	}
	if b := shape.Job.MiniBatch; b.Latency > 0 {
		given = append(given,
			fmt.Sprintf("mini_batch: {latency: %s, size: %d}", stream.FormatDuration(b.Latency), b.Size))
	}
	switch shape.Consumer {
	case strategies.AppendSink:
		given = append(given, "sink: append")
	case strategies.UpsertSink, strategies.UpsertSinkMerging:
		given = append(given, "sink: upsert")
	}
	if len(given) == 0 {
		return ""
	}
	if v := shape.Job.Version.String(); v != string(strategies.Flink23) {
		given = append(given, "flink: "+v)
	}
	return "job: {" + strings.Join(given, ", ") + "}"
}

// entry is the line of a scenario that runs the query.
func entry(shape sqlshape.Shape) string {
	s, _ := strategies.Lookup(shape.Strategy)
	var given []string
	for _, p := range s.Params {
		if value, ok := shape.Params[p.Name]; ok {
			if strings.Contains(value, ",") {
				value = `"` + value + `"`
			}
			given = append(given, p.Name+": "+value)
		}
	}
	if len(given) == 0 {
		return "- " + s.Name
	}
	return "- " + s.Name + ": {" + strings.Join(given, ", ") + "}"
}
