package scenarios

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"deduplab/gen"
	"deduplab/stream"
)

// defaultStart is when scenarios start: both engines treat times at or below 0 specially.
const defaultStart stream.Time = 1767225600000 // 2026-01-01T00:00Z

func (l *loader) workload(n *node) {
	if n.get("trace") != nil {
		l.trace(n)
		return
	}
	f, spec := &l.faults, &gen.Spec{Start: defaultStart, Partitions: 1}
	l.scenario.Workload.Spec = spec
	f.object(n,
		may("start", value(f, &spec.Start, moment)),
		must("duration", value(f, &spec.Duration, positive)),
		must("rate", value(f, &spec.Rate, rate)),
		must("fields", f.columns(&spec.Fields)),
		must("key", f.columnNames(&spec.Key, &spec.Fields)),
		must("event_time", f.eventTime(&spec.EventTime)),
		may("partitions", f.partitions(spec)),
		may("transport", f.delay(&spec.Transport)),
		may("silent", f.silences(&spec.Silent)),
		may("outage", f.outages(&spec.Outage)),
		may("duplicates", f.duplicates(spec)),
	)
	if spec.PartitionBy == "" && len(spec.Key) > 0 {
		spec.PartitionBy = spec.Key[0]
	}
	if events := spec.Rate * float64(spec.Duration) / 1000; events >= stream.MaxEvents {
		f.add(n.get("rate").at, "%s for %s makes %.1f billion events; there can be %.1f billion", n.get("rate").text,
			n.get("duration").text, events/1e9, float64(stream.MaxEvents)/1e9)
	}
	if len(spec.Fields) > 0 { // else what names a field would be blamed
		l.blame(n, n, "", spec.Validate())
	}
	l.scenario.Workload.Schema = schemaOf(spec)
	l.columnsKnown = l.sound(n, "fields") && l.sound(n, "event_time")
}

// schemaOf lists the columns of a generated workload: the fields, then the event time.
func schemaOf(spec *gen.Spec) stream.Schema {
	s := stream.Schema{Event: len(spec.Fields)}
	for _, fd := range spec.Fields {
		c := stream.Column{Name: fd.Name}
		switch {
		case fd.Int != nil:
			c.Type = stream.Int
		case fd.Decimal != nil:
			c.Type, c.Scale = stream.Decimal, 2
		}
		s.Columns = append(s.Columns, c)
	}
	s.Columns = append(s.Columns, stream.Column{Name: spec.EventTime.Field, Type: stream.Timestamp})
	for _, name := range spec.Key {
		s.Key = append(s.Key, s.Index(name))
	}
	return s
}

// columns reads the fields of the rows.
func (f *faults) columns(to *[]gen.Field) func(*node) {
	return func(n *node) {
		if f.is(n, mapping) && len(n.items) == 0 {
			f.add(n.at, "%s needs at least one column", n.name)
		}
		for _, v := range n.items {
			fd := gen.Field{Name: v.name}
			if _, err := column(v.name); err != nil {
				f.add(v.nameAt, "%v", err)
			}
			before := len(f.list)
			f.object(v,
				may("uuid", bare(f, &fd.UUID, boolean)),
				may("int", func(n *node) { fd.Int = new([2]int64); bounds(f, fd.Int, integer)(n) }),
				may("decimal", func(n *node) { fd.Decimal = new([2]int64); bounds(f, fd.Decimal, hundredths)(n) }),
				may("faker", value(f, &fd.Faker, nonEmpty)),
			)
			none := len(v.items) == 1 && v.items[0].name == "uuid" && !fd.UUID
			if len(f.list) == before && v.kind == mapping && (len(v.items) != 1 || none) {
				f.add(v.nameAt, "column %s must be one of {uuid: true}, {int: [1, 9]}, {decimal: [0.50, 9.99]} and "+
					"{faker: \"{firstname}\"}", v.name)
			}
			*to = append(*to, fd)
		}
	}
}

// columnNames reads names of fields, which stand in another part of the file.
func (f *faults) columnNames(to *[]string, fields *[]gen.Field) func(*node) {
	return func(n *node) { values(f, to, f.columnOf(fields))(n) }
}

// columnOf accepts the name of a field. Where there is none yet, that is reported elsewhere.
func (f *faults) columnOf(fields *[]gen.Field) func(string) (string, error) {
	return func(s string) (string, error) {
		if names := fieldNames(*fields); len(names) > 0 && !slices.Contains(names, s) {
			return "", noColumn(s, names)
		}
		return s, nil
	}
}

func (f *faults) eventTime(to *gen.EventTime) func(*node) {
	return func(n *node) {
		f.object(n,
			must("field", value(f, &to.Field, column)),
			may("log_append", bare(f, &to.LogAppend, boolean)),
		)
	}
}

func (f *faults) partitions(spec *gen.Spec) func(*node) {
	return func(n *node) {
		f.object(n,
			must("count", bare(f, &spec.Partitions, whole(1, 65535))),
			may("by", value(f, &spec.PartitionBy, f.columnOf(&spec.Fields))),
		)
		if !f.sound(n, "count") {
			spec.Partitions = 65535 // so that no partition named elsewhere is a fault
		}
	}
}

func (f *faults) silences(to *[]gen.Silence) func(*node) {
	return func(n *node) {
		for _, entry := range f.entries(n) {
			var s gen.Silence
			f.object(entry,
				must("partition", bare(f, &s.Partition, whole(0, 65534))),
				must("from", value(f, &s.From, span)),
				must("for", value(f, &s.For, positive)),
			)
			*to = append(*to, s)
		}
	}
}

func (f *faults) outages(to *[]gen.Outage) func(*node) {
	return func(n *node) {
		for _, entry := range f.entries(n) {
			var o gen.Outage
			f.object(entry,
				must("partition", bare(f, &o.Partition, whole(0, 65534))),
				must("from", value(f, &o.From, span)),
				must("for", value(f, &o.For, positive)),
				must("flush", value(f, &o.Flush, rate)),
			)
			*to = append(*to, o)
		}
	}
}

func (f *faults) duplicates(spec *gen.Spec) func(*node) {
	return func(n *node) {
		for _, entry := range f.entries(n) {
			d := gen.Duplicate{Rate: 1}
			f.object(entry,
				must("origin", value(f, &d.Origin, slug)),
				may("where", f.where(&d.Where, spec.Fields)),
				may("rate", value(f, &d.Rate, share)),
				may("delay", f.delay(&d.Delay)),
				may("new_id", bare(f, &d.NewID, boolean)),
				may("restamp", bare(f, &d.Restamp, boolean)),
				may("change", f.columnNames(&d.Change, &spec.Fields)),
			)
			if d.Origin == "original" {
				f.add(entry.get("origin").at, "original is what is copied, not the origin of a copy")
			}
			spec.Duplicates = append(spec.Duplicates, d)
		}
	}
}

func (f *faults) where(to **gen.Where, fields []gen.Field) func(*node) {
	if len(fields) == 0 {
		return func(*node) {} // that there are none is reported elsewhere
	}
	return value(f, to, where(fields))
}

// delay reads a span, or a distribution of spans.
func (f *faults) delay(to *gen.Delay) func(*node) {
	return func(n *node) {
		if n.kind != mapping && n.kind != broken {
			value(f, &to.Low, span)(n)
			return
		}
		f.object(n,
			may("uniform", func(n *node) {
				var b [2]stream.Time
				bounds(f, &b, span)(n)
				to.Kind, to.Low, to.High = gen.Uniform, b[0], b[1]
			}),
			may("lognormal", f.lognormal(to)),
			may("cap", value(f, &to.Cap, positive)),
		)
		if n.kind == mapping && (n.get("uniform") == nil) == (n.get("lognormal") == nil) {
			f.add(n.at, "%s must be a duration, {uniform: [2h, 3h]} or {lognormal: {p50: 2s, p99.9: 40m}, cap: 3h}", n.name)
		}
	}
}

// quantileName is the name of a quantile in percent.
var quantileName = regexp.MustCompile(`^p([0-9]{1,2}(\.[0-9]{1,6})?)$`)

// lognormal reads two quantiles, in any order.
func (f *faults) lognormal(to *gen.Delay) func(*node) {
	return func(n *node) {
		to.Kind = gen.Lognormal
		if !f.is(n, mapping) {
			return
		}
		if len(n.items) != 2 {
			f.add(n.at, "lognormal needs two quantiles, such as {p50: 2s, p99.9: 40m}")
			return
		}
		var p [2]float64
		var at [2]stream.Time
		before := len(f.list)
		for i, v := range n.items {
			percent := quantileName.FindStringSubmatch(v.name)
			if percent == nil || strings.Trim(percent[1], "0.") == "" {
				f.add(v.nameAt, "%q is not a quantile: write one like p50 or p99.9", v.name)
				continue
			}
			p[i], _ = share(percent[1] + "%")
			value(f, &at[i], positive)(v)
		}
		if p[0] > p[1] {
			p[0], p[1], at[0], at[1] = p[1], p[0], at[1], at[0]
		}
		if len(f.list) == before && (p[0] == p[1] || at[0] >= at[1]) {
			f.add(n.at, "the higher quantile must be the longer span")
		}
		to.P1, to.P2, to.Low, to.High = p[0], p[1], at[0], at[1]
	}
}

// trace reads a workload that is a file.
func (l *loader) trace(n *node) {
	f, t := &l.faults, &Trace{Spec: gen.TraceSpec{Unit: "auto", Partitions: 1}}
	l.scenario.Workload.Trace = t
	columns := &t.Spec.Columns
	f.object(n,
		must("trace", value(f, &t.File, nonEmpty)),
		must("columns", func(n *node) {
			f.object(n,
				must("key", values(f, &columns.Key, nonEmpty)),
				must("event_time", value(f, &columns.EventTime, nonEmpty)),
				may("arrival", value(f, &columns.Arrival, nonEmpty)),
				may("partition", value(f, &columns.Partition, nonEmpty)),
			)
		}),
		may("unit", value(f, &t.Spec.Unit, oneOf("auto", "s", "ms", "us", "ns"))),
		may("partitions", func(n *node) {
			f.object(n, must("count", bare(f, &t.Spec.Partitions, whole(1, 65535))))
		}),
	)
	if columns.Arrival == "" {
		columns.Arrival = columns.EventTime
	}
	if f.faulty(n) {
		return
	}
	if l.open == nil {
		f.add(n.get("trace").at, "a trace cannot be opened here")
		return
	}
	path := beside(l.file, t.File)
	rows, err := l.open(path, t.Spec)
	if err != nil {
		l.blame(n, n.get("trace"), path+": ", err)
		return
	}
	t.Rows, l.scenario.Workload.Schema, l.columnsKnown = rows, rows.Schema(), true
}

// sound reports whether a field of a mapping is there and without faults.
func (f *faults) sound(n *node, name string) bool {
	v := n.get(name)
	return v != nil && !f.faulty(v)
}

// faulty reports whether a fault has been found in a node or below it.
func (f *faults) faulty(n *node) bool {
	if n.kind == broken {
		return true
	}
	for _, fault := range f.list {
		if at := (position{fault.Line, fault.Column}); at == n.at || at == n.nameAt {
			return true
		}
	}
	return slices.ContainsFunc(n.items, f.faulty)
}

// partFault is how gen names the part of a workload that is at fault: duplicates[0].rate: why.
var partFault = regexp.MustCompile(`(?s)^([a-z_.0-9\[\]]+)( "[^"]*")?: (.*)$`)

// blame reports the faults that gen finds in a workload, where the reader has not found one in the same place. Those
// that name no part go to rest. A prefix before the names of parts is cut off.
func (l *loader) blame(workload, rest *node, prefix string, err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			l.blame(workload, rest, prefix, err)
		}
		return
	}
	at, message := rest, err.Error()
	if m := partFault.FindStringSubmatch(strings.TrimPrefix(message, prefix)); m != nil {
		if part := workload.find(m[1]); part != workload {
			at, message = part, part.name+": "+m[3]
		}
	}
	if !l.faulty(at) {
		l.add(at.at, "%s", message)
	}
}

// find follows a path such as duplicates[0].rate as far as it exists.
func (n *node) find(path string) *node {
	for part := range strings.SplitSeq(path, ".") {
		name, index, _ := strings.Cut(strings.TrimSuffix(part, "]"), "[")
		next := n.get(name)
		if next == nil {
			return n
		}
		n = next
		if i, err := strconv.Atoi(index); err == nil && i < len(n.items) {
			n = n.items[i]
		}
	}
	return n
}
