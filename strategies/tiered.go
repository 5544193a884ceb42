package strategies

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"deduplab/sim"
	"deduplab/stream"
)

// threeTiers are the tiers of the article: in the stream, at the sink, and an audit.
const threeTiers = `[{"drop-duplicates-within-watermark":{"delay":"1h"}},{"merge-insert-only":{"lookback":"3d"}},` +
	`{"audit":{"over":"30d"}}]`

// Name of the strategy that is made of others.
const tieredName = "tiered"

// It is registered by init, since its parameter is checked against the register.
func init() {
	register(&Strategy{
		Name:   tieredName,
		Engine: "spark-delta",
		About:  "strategies behind one another, each of which takes what the one before has let through",
		Loses: "It lets through what all of its stages let through, and loses what any of them loses; what goes wrong at one " +
			"is shown stage by stage.",
		Facts: tieredFacts,
		Params: []Param{{Name: "stages", Kind: Tiers, Default: threeTiers,
			About: "the strategies in their order: those of Flink, then stateful operators of Spark, one sink, and an audit"}},
		Plan: func(args Args, job Job) Plan { return job.tieredPlan(args.Tiers()) },
	})
}

// Tier is one strategy of several.
type Tier struct {
	Strategy *Strategy
	Args     Args
}

// ParseTiers reads tiers: a list of objects with one member, the strategy's name with its parameters as texts, such as
// [{"merge-insert-only": {"lookback": "3d"}}, {"audit": {}}]. It returns the fault.
func ParseTiers(text string, schema stream.Schema) ([]Tier, string) {
	var list []map[string]map[string]string
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Sprintf("not a list of strategies: %v; write [{\"merge-insert-only\": {\"lookback\": \"3d\"}}]", err)
	}
	if len(list) == 0 {
		return nil, "the list is empty: a stage is a strategy"
	}
	var tiers []Tier
	var faults []string
	for i, entry := range list {
		if len(entry) != 1 {
			return nil, fmt.Sprintf("stage %d is not one strategy with its parameters", i+1)
		}
		for name, given := range entry {
			s, err := Find(name)
			switch {
			case err != nil:
				faults = append(faults, err.Error())
				continue
			case name == tieredName:
				faults = append(faults, "a stage cannot be tiered itself: write its stages here")
				continue
			}
			args, wrong := s.Resolve(given, schema)
			for _, fault := range wrong {
				faults = append(faults, name+": "+strings.TrimPrefix(fault.Error(), ": "))
			}
			tiers = append(tiers, Tier{s, args})
		}
	}
	return tiers, strings.Join(faults, "; ")
}

// tieredPlan plans strategies behind one another.
func (j Job) tieredPlan(tiers []Tier) Plan {
	p := Plan{
		Changelog: stream.InsertOnly, StateClass: Stateless, Clock: "that of each stage", TTL: "that of each stage",
		InBatches: true, SharedCache: true, Language: "python", Leaks: NoDeduplication,
		Batch: &BatchPlan{Delays: [2]stream.Time{sim.NoWatermark, sim.NoWatermark}},
	}
	var operators, code []string
	for i, tier := range tiers {
		sub := tier.Strategy.Plan(p.auditArgs(tier), j)
		if p.Refused = sub.Refused; p.Refused == "" {
			p.Refused = j.chain(&p, tier, sub)
		}
		if p.Refused != "" {
			p.Refused = fmt.Sprintf("stage %d, %s: %s", i+1, tier.Strategy.Name, p.Refused)
			return p
		}
		operators = append(operators, sub.Operator)
		code = append(code, tierCode(i, tier, sub, len(p.Front)))
		p.StateClass = StateClasses[max(slices.Index(StateClasses, p.StateClass), slices.Index(StateClasses, sub.StateClass))]
		if sub.Leaks != NoDeduplication && (sub.Leaks != ByRepair || p.Leaks == NoDeduplication) {
			p.Leaks, p.StateTTL, p.Timer, p.Window, p.Lookback = sub.Leaks, sub.StateTTL, sub.Timer, sub.Window, sub.Lookback
		}
		if sub.Promise != AnyRow {
			p.Promise, p.Order = sub.Promise, sub.Order
		}
	}
	p.Declared = p.Changelog
	p.Operator, p.Runtime = strings.Join(operators, " > "), "one after the other"
	p.Code = strings.Join(code, "\n\n")
	return p
}

// auditArgs lets an audit that is not told of a lookback know that of the MERGE before it.
func (p *Plan) auditArgs(tier Tier) Args {
	args := tier.Args
	_, told := args.Optional("lookback")
	if tier.Strategy.Name == "audit" && !told && p.Leaks == ByLookback && p.Lookback >= 0 {
		args.text = maps.Clone(args.text)
		args.text["lookback"] = fmt.Sprintf("%dd", p.Lookback)
	}
	return args
}

// chain adds a tier to the plan. It returns the reason why it cannot stand where it stands.
func (j Job) chain(p *Plan, tier Tier, sub Plan) string {
	name := tier.Strategy.Name
	if sub.Batch == nil {
		return j.chainBefore(p, tier, sub)
	}
	if sub.Batch.Restarted != nil {
		return "its columns change with a restart, which is not for a stage: run it by itself"
	}
	writes := slices.ContainsFunc(p.Batch.Stages, func(s Stage) bool { return s.Writes })
	if slices.ContainsFunc(p.Batch.Stages, func(s Stage) bool { return s.Audits }) {
		return "it stands behind an audit, which is a job of its own beside the query: put the audit last"
	}
	if d := sub.Batch.Delays; d[0] != sim.NoWatermark {
		if before := p.Batch.Delays; before[0] != sim.NoWatermark && before != d {
			return fmt.Sprintf("its watermark delay is %s, that of a stage before it %s: a query has one watermark, and Spark "+
				"refuses to redefine it; give both stages the same delay", stream.FormatDuration(d[0]),
				stream.FormatDuration(before[0]))
		}
		p.Batch.Delays = d
	}
	for _, stage := range sub.Batch.Stages {
		switch {
		case stage.Writes && writes && slices.ContainsFunc(sub.Batch.Stages, func(s Stage) bool { return s.Audits }):
			continue // an audit runs over what the sink before it has written
		case stage.Writes && writes:
			return "a sink before it writes the table already, and a query has one"
		case writes && !stage.Audits:
			return "it stands behind a sink: what foreachBatch has written is no stream any more"
		}
		if stage.Strategy == "" {
			stage.Strategy, stage.Engine = name, tier.Strategy.Engine
			if stage.Writes && len(sub.Batch.Stages) > 1 {
				stage.Strategy = stage.Name
			}
		}
		p.Batch.Stages = append(p.Batch.Stages, stage)
	}
	if !writes || sub.Changelog != stream.InsertOnly { // else an audit that changes nothing
		p.Batch.Consumers = sub.Batch.Consumers
	}
	for _, kind := range []stream.Kind{stream.UpdateBefore, stream.UpdateAfter, stream.Delete} {
		if sub.Changelog.Has(kind) {
			p.Changelog |= stream.Mode(kind)
		}
	}
	return ""
}

// chainBefore adds a strategy that takes a record at a time.
func (j Job) chainBefore(p *Plan, tier Tier, sub Plan) string {
	switch {
	case len(p.Batch.Stages) > 0:
		return "it takes a record at a time and stands behind a micro-batch query: put the stages of Flink first"
	case sub.Changelog != stream.InsertOnly:
		return fmt.Sprintf("it sends updates (%s), which the next stage would take for new rows: only a stage that sends nothing "+
			"but inserts can stand in front", strings.Join(sub.Changelog.Names(), ", "))
	case sub.Key != ByKey || sub.Output != WholeRow || sub.ToChangelog:
		return "it sends other rows than it was given, or goes by whole rows: the stages behind it would not find the key"
	case j.CheckpointInterval == 0:
		return "the next stage sees its rows with each checkpoint, and there are none: set job.checkpoint.interval"
	}
	p.Front = append(p.Front, Front{tier.Strategy.Name, tier.Strategy.Engine, sub})
	return ""
}

// tierCode renders the code of one stage.
func tierCode(i int, tier Tier, sub Plan, front int) string {
	head := fmt.Sprintf("# Stage %d: %s (%s)", i+1, tier.Strategy.Name, sub.Language)
	if i > 0 && i == front {
		head += "; events is the table that the stage before it writes, and its trigger the checkpoint interval"
	}
	code := sub.Code
	if i > front { // it takes what the query's stages before it have let through
		code = strings.ReplaceAll(code, "(events\n", "(deduped\n")
		code = strings.ReplaceAll(code, "(events.writeStream", "(deduped.writeStream")
	}
	if sub.Language != "python" {
		code = "# " + strings.ReplaceAll(code, "\n", "\n# ")
	}
	return head + "\n" + code
}

var tieredFacts = []Fact{
	{TopicState, "that of its stages; in the stream a key costs state for the whole horizon, at the sink a join with the " +
		"dates of the lookback, in the audit a read of its weeks once a day", ArticleOnly},
	{TopicState, "a lookback of 3 days touches four dates", "spark/sink-merge-backfill-beyond-lookback"},
	{TopicChangelog, "inserts, unless a stage updates or an audit repairs", NotRecorded},
	{TopicChangelog, "a stage of Flink that retracts is refused: the next one would take its updates for new rows",
		NotRecorded},
	{TopicLate, "that of its stages: a row that the first one drops as late is seen by none behind it", "spark/within-watermark-late"},
	{TopicLatency, "a row waits for its batch; behind a stage of Flink for the checkpoint that shows it", NotRecorded},
	{TopicDeterminism, "processing time: open, as in its stages: batches are made of what has come", NotRecorded},
	{TopicDeterminism, "watermarks: open, if a stage drops late rows", "spark/within-watermark-late"},
	{TopicDeterminism, "idleness: open, if a stage goes by a watermark", "spark/within-watermark-no-data-batches"},
	{TopicDeterminism, "state TTL: as in its stages", NotRecorded},
	{TopicDeterminism, "source replay: closed for a batch that is run again, if the sink is a MERGE or keyed on the batch id",
		"spark/sink-merge-replay"},
	{TopicDeterminism, "non-deterministic functions: none in the stages", NotRecorded},
	{TopicLoses, "what any of its stages loses", NotRecorded},
	{TopicLeaks, "a copy that comes after the horizon and whose first row is dated before the lookback",
		"spark/sink-merge-backfill-beyond-lookback"},
	{TopicLeaks, "copies under new ids: every tier is blind to them", ArticleOnly},
	{TopicLeaks, "two copies that pass the first stage in one batch, if the MERGE takes its batch as it is",
		"spark/sink-merge-source-duplicates"},
}
