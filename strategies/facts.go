package strategies

import "strings"

// Fact is one thing to know of a strategy, with the recorded case that shows it.
type Fact struct {
	Topic Topic
	Text  string
	// Case is the recorded case, such as rowtime-asc/late, or the recording _acceptance, or one of ArticleOnly and
	// NotRecorded. One that begins with flink-extra/ is a recording of our own, one with spark/ one of Spark.
	Case string
}

// Topic is what a fact is about. The topics stand in the order of the five-point review of "How I Review Flink SQL
// Solutions", and what follows from the five.
type Topic string

// The topics.
const (
	TopicState       Topic = "state"
	TopicChangelog   Topic = "changelog"
	TopicLate        Topic = "late events"
	TopicLatency     Topic = "latency"
	TopicDeterminism Topic = "determinism"
	TopicLoses       Topic = "loses"
	TopicLeaks       Topic = "leaks"
)

// Topics lists the topics in their order.
var Topics = []Topic{TopicState, TopicChangelog, TopicLate, TopicLatency, TopicDeterminism, TopicLoses, TopicLeaks}

// What stands for a case where no recording shows the fact.
const (
	ArticleOnly = "article only" // an article says so
	NotRecorded = "not recorded" // it follows from the rules
)

// Acceptance is the recording of which consumers take which queries.
const Acceptance = "_acceptance"

// DeterminismCauses are the causes of non-determinism of the article on reviewing. Each strategy has a fact on each,
// which begins with the cause and a colon.
var DeterminismCauses = []string{"processing time", "watermarks", "idleness", "state TTL", "source replay",
	"non-deterministic functions"}

// Facts that hold for several strategies.
var (
	confluentTTL = Fact{TopicState, "the TTL is table.exec.state.ttl; Confluent Cloud calls it sql.state-ttl", ArticleOnly}

	commitLatency = Fact{TopicLatency, "with exactly-once delivery a reader sees nothing before the checkpoint that " +
		"commits it", ArticleOnly}

	noProcessingTime = Fact{TopicDeterminism, "Confluent Cloud has no processing time: this query does not run there",
		ArticleOnly}

	opensIdleness = Fact{TopicDeterminism, "idleness: open; a partition that comes back from idle may be behind the " +
		"watermark, which has gone on without it", "watermark/valve-two-channels"}

	opensReplay = Fact{TopicDeterminism, "source replay: open, as anywhere; a topic that has lost its oldest rows is " +
		"another input", ArticleOnly}

	callsNoFunction = Fact{TopicDeterminism, "non-deterministic functions: none in the query; now(), uuid() or rand() " +
		"added to it would open it", ArticleOnly}
)

// ignoresHint says that a STATE_TTL hint does nothing.
func ignoresHint(shownBy string) Fact {
	return Fact{TopicState, "a STATE_TTL hint is silently ignored", shownBy}
}

// overChangelog says what the planner makes of a top-1 over a source that sends updates and deletes.
func overChangelog(shownBy string) Fact {
	return Fact{TopicChangelog, "over a source of updates and deletes (job.input: changelog) it is a Rank that " +
		"retracts, RetractableTopNFunction, declared [I,UB,UA,D]: it sends -D and +I, never -U or +U", shownBy}
}

// refusesChangelog is for the nodes that take inserts only.
var refusesChangelog = Fact{TopicChangelog, "the planner refuses it over a source of updates and deletes (job.input: " +
	"changelog)", "flink-extra/_refused"}

// Recording is the path of the recording below conformance/testdata, without its ending; empty where there is none.
func (f Fact) Recording() string {
	switch {
	case f.Case == ArticleOnly || f.Case == NotRecorded:
		return ""
	case strings.HasPrefix(f.Case, "flink-extra/"), strings.HasPrefix(f.Case, "spark/"):
		return f.Case
	}
	return "flink/" + f.Case
}

// Source names what shows the fact, as pages print it: flink rowtime-asc/late.
func (f Fact) Source() string {
	if recording := f.Recording(); recording != "" {
		return strings.Replace(recording, "/", " ", 1)
	}
	return f.Case
}

// FactsOn returns the strategy's facts on a topic.
func (s *Strategy) FactsOn(topic Topic) []Fact {
	var facts []Fact
	for _, f := range s.Facts {
		if f.Topic == topic {
			facts = append(facts, f)
		}
	}
	return facts
}
