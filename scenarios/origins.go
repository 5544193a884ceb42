package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"deduplab/gen"
	"deduplab/stream"
	"deduplab/yml"
)

// origins are the ready-made origins of duplicates: what a rule that names one need not say itself. A rule with another
// name starts from nothing: one exact copy at once. The sources are those of the published accounts; where they give a
// range and no distribution, the distribution is ours.
var origins = map[string]gen.Duplicate{
	// The broker's acknowledgement is lost and the producer sends the batch again: milliseconds to seconds
	// (redpanda#3039, librdkafka#4953), and never after Kafka's delivery.timeout.ms of two minutes.
	"producer-retry": {Delay: gen.Delay{
		Kind: gen.Lognormal, Low: 200, P1: 0.5, High: 30 * second, P2: 0.99, Cap: 2 * minute,
	}},
	// A client gets no response and sends again: seconds to minutes, and days where it was offline (Segment's account of
	// exactly-once delivery; Snowplow's of late data).
	"client-resend": {Delay: gen.Delay{Kind: gen.Mixture, Mixture: []gen.Part{
		{Share: 0.95, Delay: gen.Delay{
			Kind: gen.Lognormal, Low: 5 * second, P1: 0.5, High: 10 * minute, P2: 0.99, Cap: hour,
		}},
		{Share: 0.05, Delay: gen.Delay{Kind: gen.Uniform, Low: hour, High: 72 * hour}},
	}}},
	// A device sends its whole buffer again when it is back: minutes, the next day (a message is cut at midnight) or
	// after a weekend. Mozilla: most within 30 minutes, 90 % within 4 to 8 hours, a step at 24 hours, 95 % within two
	// days; a mobile design allows 72 hours.
	"offline-flush": {Delay: gen.Delay{Kind: gen.Mixture, Cap: 72 * hour, Mixture: []gen.Part{
		{Share: 0.75, Delay: gen.Delay{
			Kind: gen.Lognormal, Low: 10 * minute, P1: 0.5, High: 8 * hour, P2: 0.99, Cap: 24 * hour,
		}},
		{Share: 0.20, Delay: gen.Delay{
			Kind: gen.Step, Low: 24 * hour, Then: &gen.Delay{Kind: gen.Exponential, Low: 2 * hour, Cap: 24 * hour},
		}},
		{Share: 0.05, Delay: gen.Delay{Kind: gen.Uniform, Low: 48 * hour, High: 72 * hour}},
	}}},
	// A connector restarts and reads again what it had not committed, of at most one interval: Kafka Connect's
	// offset.flush.interval.ms is a minute. The record is the same one, at the same place in the log.
	"connector-replay": {SameOffset: true, Delay: gen.Delay{Kind: gen.Uniform, Low: second, High: minute}},
	// Two agents capture one log for availability: milliseconds to seconds apart, the source position is equal
	// (noxdafox/rabbitmq-message-deduplication#122).
	"dual-capture": {SameOffset: true, Delay: gen.Delay{Kind: gen.Uniform, High: second}},
	// A standby region sends what it cannot know to have been sent: the same id under a new offset, after seconds to
	// minutes, or after the hours of an outage (pulsar#23697).
	"failover-replay": {Delay: gen.Delay{Kind: gen.Mixture, Mixture: []gen.Part{
		{Share: 0.95, Delay: gen.Delay{
			Kind: gen.Lognormal, Low: 10 * second, P1: 0.5, High: 5 * minute, P2: 0.99, Cap: 30 * minute,
		}},
		{Share: 0.05, Delay: gen.Delay{Kind: gen.Uniform, Low: hour, High: 4 * hour}},
	}}},
	// A nightly bug or a re-import sends a range of the past again: same id and event time, a flood
	// (mozilla/bigquery-etl#376, #413). There is no default for when, of what and how fast.
	floodOrigin: {},
	// A bot replays the requests of others under one id of its own, at the time of the replay: milliseconds to minutes
	// (Snowplow's account of duplicate ids). For a bot's own events there is reuse.
	"bot-constant-id": {ConstantID: true, Restamp: true, Delay: gen.Delay{
		Kind: gen.Lognormal, Low: second, P1: 0.5, High: 5 * minute, P2: 0.99, Cap: 30 * minute,
	}},
}

const floodOrigin = "backfill-flood"

const (
	second stream.Time = 1000
	minute             = 60 * second
	hour               = 60 * minute
)

// ready is a rule as its origin makes it.
func ready(origin string) gen.Duplicate {
	d := origins[origin]
	d.Origin, d.Rate = origin, 1
	return d
}

func (l *loader) duplicates(spec *gen.Spec) func(*yml.Node) {
	return func(n *yml.Node) {
		for _, entry := range l.Entries(n) {
			d := gen.Duplicate{Rate: 1}
			if origin := entry.Get("origin"); origin != nil {
				d = ready(origin.Text)
			}
			flood := gen.Flood{}
			floods := yml.May
			if d.Origin == floodOrigin || entry.Get("at") != nil || entry.Get("range") != nil || entry.Get("speed") != nil {
				d.Flood, floods = &flood, yml.Must
			}
			l.Object(entry,
				yml.Must("origin", yml.Value(l.Reader, &d.Origin, slug)),
				yml.May("where", l.where(&d.Where, spec.Fields)),
				yml.May("rate", yml.Value(l.Reader, &d.Rate, share)),
				yml.May("copies", l.copies(&d.Copies)),
				floods("at", yml.Value(l.Reader, &flood.At, span)),
				floods("range", func(n *yml.Node) {
					var bounds [2]stream.Time
					yml.Bounds(l.Reader, &bounds, span)(n)
					flood.From, flood.To = bounds[0], bounds[1]
				}),
				floods("speed", yml.Value(l.Reader, &flood.Speed, rate)),
				yml.May("delay", func(n *yml.Node) { d.Delay = gen.Delay{}; l.delay(&d.Delay)(n) }),
				yml.May("transport", yml.Value(l.Reader, &d.SameTransport, either("own", "same"))),
				yml.May("new_id", l.newID(&d)),
				yml.May("restamp", yml.Bare(l.Reader, &d.Restamp, yml.Boolean)),
				yml.May("partition", yml.Value(l.Reader, &d.OtherPartition, either("same", "other"))),
				yml.May("offset", yml.Value(l.Reader, &d.SameOffset, either("new", "same"))),
				yml.May("change", l.columnNames(&d.Change, &spec.Fields)),
			)
			if d.Origin == "original" {
				l.Add(entry.Get("origin").At, "original is what is copied, not the origin of a copy")
			}
			l.misspelt(entry, d)
			spec.Duplicates = append(spec.Duplicates, d)
		}
	}
}

// misspelt finds a rule that leaves to a ready-made origin what it does not say itself, but is up to two letters off the
// origin's name.
func (l *loader) misspelt(entry *yml.Node, d gen.Duplicate) {
	name := stream.Nearest(d.Origin, slices.Sorted(maps.Keys(origins)), 2)
	by := origins[name] // nothing, if there is no such name
	for _, given := range []struct {
		field string
		ready bool
	}{
		{"at", name == floodOrigin && d.Flood == nil},
		{"delay", !by.Delay.IsZero()},
		{"offset", by.SameOffset},
		{"new_id", by.NewID || by.ConstantID},
		{"restamp", by.Restamp},
	} {
		if name != d.Origin && given.ready && entry.Get(given.field) == nil {
			l.Add(entry.Get("origin").At, "origin %s is not a ready-made one, did you mean %s? "+
				"Else the rule needs the field %s", d.Origin, name, given.field)
			return
		}
	}
}

// either reads a choice of two as false and true.
func either(no, yes string) func(string) (bool, error) {
	return func(s string) (bool, error) {
		_, err := yml.OneOf(no, yes)(s)
		return s == yes, err
	}
}

// newID reads true, false, or constant: one id for all.
func (l *loader) newID(d *gen.Duplicate) func(*yml.Node) {
	return func(n *yml.Node) {
		kind := ""
		yml.Value(l.Reader, &kind, yml.OneOf("true", "false", "constant"))(n)
		d.NewID, d.ConstantID = kind == "true", kind == "constant"
	}
}

// copies reads a number of copies, or a distribution of it.
func (l *loader) copies(to *gen.Copies) func(*yml.Node) {
	return func(n *yml.Node) {
		*to = gen.Copies{}
		if n.Kind != yml.Mapping && n.Kind != yml.Broken {
			yml.Bare(l.Reader, &to.Count, yml.Whole(1, stream.MaxCopies-1))(n)
			if to.Count == 1 {
				to.Count = 0 // the default
			}
			return
		}
		l.Object(n,
			yml.May("geometric", func(n *yml.Node) {
				l.Object(n, yml.Must("mean", yml.Bare(l.Reader, &to.Geometric, number)))
			}),
			yml.May("zipf", func(n *yml.Node) {
				to.Zipf = &gen.Zipf{S: 1}
				l.Object(n,
					yml.May("s", yml.Bare(l.Reader, &to.Zipf.S, number)),
					yml.Must("cap", yml.Bare(l.Reader, &to.Zipf.N, integer)),
				)
			}),
		)
		if n.Kind == yml.Mapping && len(n.Items) != 1 {
			l.Add(n.At, "copies must be a number or one of {geometric: {mean: 1.5}} and {zipf: {s: 1.2, cap: 100000}}")
		}
	}
}

func formatCopies(c gen.Copies) string {
	switch {
	case c.Zipf != nil:
		return fmt.Sprintf("{zipf: {s: %s, cap: %d}}", formatNumber(c.Zipf.S), c.Zipf.N)
	case c.Geometric > 0:
		return fmt.Sprintf("{geometric: {mean: %s}}", formatNumber(c.Geometric))
	}
	return fmt.Sprint(max(c.Count, 1))
}

// duplicate writes a rule.
func (p *printer) duplicate(d gen.Duplicate, fields []gen.Field) {
	by := ready(d.Origin) // the default
	p.field(2, "- origin", quoted(d.Origin))
	if d.Where != nil {
		p.field(3, "where", quoted(formatWhere(d.Where, fields)))
	}
	p.orDefault(3, "rate", d.Rate == by.Rate, formatShare(d.Rate))
	text := func(name string, is, was string) { p.orDefault(3, name, is == was, is) }
	text("copies", formatCopies(d.Copies), formatCopies(by.Copies))
	if d.Flood != nil {
		p.field(3, "at", dur(d.Flood.At))
		p.field(3, "range", fmt.Sprintf("[%s, %s]", dur(d.Flood.From), dur(d.Flood.To)))
		p.field(3, "speed", formatRate(d.Flood.Speed))
	}
	text("delay", formatDelay(d.Delay), formatDelay(by.Delay))
	name := func(yes bool, names string) string {
		no, other, _ := strings.Cut(names, " ")
		if yes {
			return other
		}
		return no
	}
	text("transport", name(d.SameTransport, "own same"), name(by.SameTransport, "own same"))
	newID := func(d gen.Duplicate) string {
		if d.ConstantID {
			return "constant"
		}
		return fmt.Sprint(d.NewID)
	}
	text("new_id", newID(d), newID(by))
	p.orDefault(3, "restamp", d.Restamp == by.Restamp, d.Restamp)
	text("partition", name(d.OtherPartition, "same other"), name(by.OtherPartition, "same other"))
	text("offset", name(d.SameOffset, "new same"), name(by.SameOffset, "new same"))
	if len(d.Change) > 0 {
		p.field(3, "change", names(d.Change))
	}
}
