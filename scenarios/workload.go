package scenarios

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"deduplab/gen"
	"deduplab/stream"
	"deduplab/yml"
)

// defaultStart is when scenarios start: both engines treat times at or below 0 specially.
const defaultStart stream.Time = 1767225600000 // 2026-01-01T00:00Z

func (l *loader) workload(n *yml.Node) {
	if n.Get("trace") != nil {
		if l.scale != 0 {
			l.Add(n.At, "a trace has the rows that it has: it cannot be scaled")
		}
		l.trace(n)
		return
	}
	spec := &gen.Spec{Start: defaultStart, Partitions: 1}
	l.scenario.Workload.Spec = spec
	scale := 1.0
	needs := yml.Must
	if n.Get("events") != nil {
		needs = yml.May
	}
	l.Object(n,
		yml.May("start", yml.Value(l.Reader, &spec.Start, moment)),
		yml.Must("duration", yml.Value(l.Reader, &spec.Duration, positive)),
		yml.Must("rate", yml.Value(l.Reader, &spec.Rate, rate)),
		yml.May("scale", yml.Value(l.Reader, &scale, factor)),
		yml.May("load", l.rateOverTime(&spec.Load)),
		yml.May("events", l.events(spec)),
		needs("fields", l.columns(&spec.Fields)),
		needs("key", func(n *yml.Node) { spec.Key = nil; l.columnNames(&spec.Key, &spec.Fields)(n) }),
		needs("event_time", l.eventTime(&spec.EventTime)),
		yml.May("partitions", l.partitions(spec)),
		yml.May("transport", l.delay(&spec.Transport)),
		yml.May("silent", l.silences(&spec.Silent)),
		yml.May("outage", l.outages(&spec.Outage)),
		yml.May("slow", l.slow(&spec.Slow)),
		yml.May("finished", l.finished(&spec.Finished)),
		yml.May("clock", l.clocks(&spec.Clock)),
		yml.May("duplicates", l.duplicates(spec)),
		yml.May("keys", later),
		yml.May("amount", later),
	)
	if l.scale != 0 {
		scale = l.scale
	}
	*spec = spec.Scaled(scale)
	if spec.PartitionBy == "" && len(spec.Key) > 0 {
		spec.PartitionBy = spec.Key[0]
	}
	if events := spec.Rate * float64(spec.Duration) / 1000; events >= stream.MaxEvents && n.Get("load") == nil {
		text := n.Get("rate").Text
		if scale != 1 {
			text = formatRate(spec.Rate)
		}
		l.Add(n.Get("rate").At, "%s for %s makes %.1f billion events; there can be %.1f billion", text,
			n.Get("duration").Text, events/1e9, float64(stream.MaxEvents)/1e9)
	}
	if len(spec.Fields) > 0 { // else what names a field would be blamed
		l.blame(n, n, spec.Validate())
	}
	l.scenario.Workload.Schema = schemaOf(spec)
	known := func(part string) bool { return l.sound(n, part) || n.Get(part) == nil && l.sound(n, "events") }
	l.columnsKnown = known("fields") && known("event_time")
	l.keys(n)
}

// schemaOf lists the columns of a generated workload: the fields, then the event time.
func schemaOf(spec *gen.Spec) stream.Schema {
	s := stream.Schema{Event: len(spec.Fields)}
	for _, fd := range spec.Fields {
		s.Columns = append(s.Columns, fd.Column())
	}
	s.Columns = append(s.Columns, stream.Column{Name: spec.EventTime.Field, Type: stream.Timestamp})
	for _, name := range spec.Key {
		s.Key = append(s.Key, s.Index(name))
	}
	return s
}

// columnNames reads names of fields, which stand in another part of the file.
func (l *loader) columnNames(to *[]string, fields *[]gen.Field) func(*yml.Node) {
	return func(n *yml.Node) { yml.Values(l.Reader, to, l.columnOf(fields))(n) }
}

// columnOf accepts the name of a field. Where there is none yet, that is reported elsewhere.
func (l *loader) columnOf(fields *[]gen.Field) func(string) (string, error) {
	return func(s string) (string, error) {
		if names := fieldNames(*fields); len(names) > 0 && !slices.Contains(names, s) {
			return "", noColumn(s, names)
		}
		return s, nil
	}
}

func (l *loader) eventTime(to *gen.EventTime) func(*yml.Node) {
	return func(n *yml.Node) {
		needs := yml.Must
		if to.Field != "" {
			needs = yml.May // a ready-made kind of event has one
		}
		l.Object(n,
			needs("field", yml.Value(l.Reader, &to.Field, column)),
			yml.May("log_append", yml.Bare(l.Reader, &to.LogAppend, yml.Boolean)),
			yml.May("resolution", yml.Value(l.Reader, &to.Resolution, positive)),
			yml.May("nulls", yml.Value(l.Reader, &to.Null, share)),
		)
	}
}

func (l *loader) partitions(spec *gen.Spec) func(*yml.Node) {
	return func(n *yml.Node) {
		l.Object(n,
			yml.Must("count", yml.Bare(l.Reader, &spec.Partitions, yml.Whole(1, 65535))),
			yml.May("by", yml.Value(l.Reader, &spec.PartitionBy, l.columnOf(&spec.Fields))),
			yml.May("share", l.shares(&spec.PartitionShare)),
		)
		if !l.sound(n, "count") {
			spec.Partitions = 65535 // so that no partition named elsewhere is a fault
			spec.PartitionShare = nil
		}
	}
}

func (l *loader) silences(to *[]gen.Silence) func(*yml.Node) {
	return func(n *yml.Node) {
		for _, entry := range l.Entries(n) {
			var s gen.Silence
			l.Object(entry,
				yml.Must("partition", yml.Bare(l.Reader, &s.Partition, yml.Whole(0, 65534))),
				yml.Must("from", yml.Value(l.Reader, &s.From, span)),
				yml.Must("for", yml.Value(l.Reader, &s.For, positive)),
			)
			*to = append(*to, s)
		}
	}
}

func (l *loader) outages(to *[]gen.Outage) func(*yml.Node) {
	return func(n *yml.Node) {
		for _, entry := range l.Entries(n) {
			var o gen.Outage
			l.Object(entry,
				yml.Must("partition", yml.Bare(l.Reader, &o.Partition, yml.Whole(0, 65534))),
				yml.Must("from", yml.Value(l.Reader, &o.From, span)),
				yml.Must("for", yml.Value(l.Reader, &o.For, positive)),
				yml.Must("flush", yml.Value(l.Reader, &o.Flush, rate)),
			)
			*to = append(*to, o)
		}
	}
}

func (l *loader) where(to **gen.Where, fields []gen.Field) func(*yml.Node) {
	if len(fields) == 0 {
		return func(*yml.Node) {} // that there are none is reported elsewhere
	}
	return yml.Value(l.Reader, to, where(fields))
}

// trace reads a workload that is a file.
func (l *loader) trace(n *yml.Node) {
	t := &Trace{Spec: gen.TraceSpec{Unit: "auto", Partitions: 1}}
	l.scenario.Workload.Trace = t
	columns := &t.Spec.Columns
	l.Object(n,
		yml.Must("trace", yml.Values(l.Reader, &t.Files, yml.NonEmpty)),
		yml.May("start", yml.Value(l.Reader, &t.Spec.Start, moment)),
		yml.Must("columns", func(n *yml.Node) {
			l.Object(n,
				yml.Must("key", yml.Values(l.Reader, &columns.Key, yml.NonEmpty)),
				yml.Must("event_time", yml.Value(l.Reader, &columns.EventTime, yml.NonEmpty)),
				yml.May("arrival", yml.Value(l.Reader, &columns.Arrival, yml.NonEmpty)),
				yml.May("partition", yml.Value(l.Reader, &columns.Partition, yml.NonEmpty)),
				yml.May("event", yml.Value(l.Reader, &columns.Event, yml.NonEmpty)),
				yml.May("origin", yml.Value(l.Reader, &columns.Origin, yml.NonEmpty)),
			)
		}),
		yml.May("unit", yml.Value(l.Reader, &t.Spec.Unit, yml.OneOf("auto", "s", "ms", "us", "ns"))),
		yml.May("on_bad_row", func(n *yml.Node) {
			var choice string
			yml.Value(l.Reader, &choice, yml.OneOf("fail", "skip"))(n)
			t.Spec.SkipBadRows = choice == "skip"
		}),
		yml.May("partitions", func(n *yml.Node) {
			l.Object(n, yml.Must("count", yml.Bare(l.Reader, &t.Spec.Partitions, yml.Whole(1, 65535))))
		}),
		yml.May("keys", later),
		yml.May("amount", later),
	)
	if columns.Arrival == "" {
		columns.Arrival = columns.EventTime
	}
	if l.Faulty(n) {
		return
	}
	if l.open == nil {
		l.Add(n.Get("trace").At, "a trace cannot be opened here")
		return
	}
	var paths []string
	for _, file := range t.Files {
		paths = append(paths, beside(l.File, file))
	}
	rows, err := l.open(paths, t.Spec)
	if err != nil {
		l.blameTrace(n, err)
		return
	}
	t.Rows, l.scenario.Workload.Schema, l.columnsKnown = rows, rows.Schema(), true
	l.keys(n)
}

// blameTrace reports what is wrong with a trace: at the column that the scenario names, and the rest at the trace.
func (l *loader) blameTrace(n *yml.Node, err error) {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	var rest []string
	for _, err := range all {
		_, at, ok := strings.Cut(err.Error(), ": columns.")
		if !ok {
			rest = append(rest, err.Error())
			continue
		}
		l.blame(n, n.Get("trace"), errors.New("columns."+at))
	}
	if len(rest) > 0 {
		l.Add(n.Get("trace").At, "%s", strings.Join(rest, "\n"))
	}
}

// sound reports whether a field of a mapping is there and without faults.
func (l *loader) sound(n *yml.Node, name string) bool {
	v := n.Get(name)
	return v != nil && !l.Faulty(v)
}

// partFault is how gen names the part of a workload that is at fault: duplicates[0].rate: why.
var partFault = regexp.MustCompile(`(?s)^([a-z_.0-9\[\]]+)( "[^"]*")?: (.*)$`)

// blame reports the faults that gen finds in a workload, where the reader has not found one in the same place. Those
// that name no part go to rest.
func (l *loader) blame(workload, rest *yml.Node, err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			l.blame(workload, rest, err)
		}
		return
	}
	at, message := rest, err.Error()
	if m := partFault.FindStringSubmatch(message); m != nil {
		if part := find(workload, m[1]); part != workload {
			at, message = part, part.Name+": "+m[3]
		}
	}
	if !l.Faulty(at) {
		l.Add(at.At, "%s", message)
	}
}

// find follows a path such as duplicates[0].rate as far as it exists.
func find(n *yml.Node, path string) *yml.Node {
	for part := range strings.SplitSeq(path, ".") {
		name, index, _ := strings.Cut(strings.TrimSuffix(part, "]"), "[")
		next := n.Get(name)
		if next == nil {
			return n
		}
		n = next
		if i, err := strconv.Atoi(index); err == nil && i < len(n.Items) {
			n = n.Items[i]
		}
	}
	return n
}
