package semantics

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"deduplab/harness"
	"deduplab/scenarios"
	"deduplab/strategies"
	"deduplab/stream"
	"deduplab/yml"
)

// maxRun bounds a generated run of rows.
const maxRun = 100_000

// Read loads a file of tests.
func Read(path string) (*File, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Load(path, src)
}

// Load reads tests. Path is the file's name in messages. The error is a [*yml.Error] with all that is wrong.
func Load(path string, src []byte) (*File, error) {
	l := &loader{Reader: yml.New(path, src), file: &File{Path: path}}
	root := l.Parse("file of tests", "a list: tests")
	l.Object(root, yml.Must("tests", func(n *yml.Node) {
		for _, entry := range l.Entries(n) {
			l.test(entry)
		}
	}))
	if err := l.Err(); err != nil {
		return nil, err
	}
	return l.file, nil
}

// loader reads one file.
type loader struct {
	*yml.Reader
	file *File

	current *Test // the one being read
	schema  stream.Schema
	last    stream.Time // the clock
	known   bool        // the result's columns are known
	sound   bool        // what stands before the steps has no faults
	ended   int         // the line in which the input ended; 0: it has not

	types map[string]string // of the columns of the table, as SQL writes them
}

// ordersTypes are the types of [harness.Orders] that are numbers.
func ordersTypes() map[string]string {
	return map[string]string{"quantity": "INT", "price": "DECIMAL(10, 2)"}
}

func (l *loader) test(n *yml.Node) {
	t := &Test{File: l.file.Path, Line: n.At.Line}
	l.current, l.schema, l.last, l.known, l.ended, l.types = t, harness.Orders(), 0, false, 0, ordersTypes()
	faults := l.Faults()
	t.config.Readers = 1
	if name := n.Get("name"); name != nil && name.Kind == yml.Scalar {
		n.Name = fmt.Sprintf("the test %q", name.Text)
	} else {
		n.Name = "a test"
	}
	var strategy, steps *yml.Node
	l.Object(n,
		yml.Must("name", yml.Value(l.Reader, &t.Name, yml.NonEmpty)),
		yml.May("about", yml.Value(l.Reader, &t.About, yml.NonEmpty)),
		yml.May("columns", l.columns),
		yml.May("key", l.key),
		yml.May("event_time", l.eventTime),
		yml.May("job", l.job),
		yml.May("refused", yml.Bare(l.Reader, &t.refused, yml.Boolean)),
		yml.May("declared", yml.Values(l.Reader, &t.declared, yml.OneOf("I", "UB", "UA", "D"))),
		yml.Must("strategy", func(n *yml.Node) { strategy = n }),
		yml.May("steps", func(n *yml.Node) { steps = n }),
	)
	if slices.ContainsFunc(l.file.Tests, func(other *Test) bool { return other.Name == t.Name }) && t.Name != "" {
		l.Add(n.Get("name").At, "there are two tests of this name")
	}
	schema := l.schema
	t.config.Schema = &schema
	if strategy != nil {
		l.strategy(strategy)
	}
	l.sound = l.Faults() == faults
	switch {
	case steps == nil && !t.refused && n.Kind == yml.Mapping && n.Get("steps") == nil && t.declared == nil:
		l.Add(n.NameAt, "%s needs the field steps", n.Name)
	case steps != nil && t.refused:
		l.Add(steps.NameAt, "a query that the planner refuses has no steps")
	case steps != nil:
		for _, entry := range l.Entries(steps) {
			l.step(entry)
		}
	}
	l.file.Tests = append(l.file.Tests, t)
}

// strategy reads the strategy and plans it.
func (l *loader) strategy(n *yml.Node) {
	before := l.Faults()
	s, args, _ := scenarios.Strategy(l.Reader, n, l.schema, true)
	if s == nil || l.Faults() > before {
		return
	}
	c := &l.current.config
	c.Strategy, c.Params = s.Name, args.Map()
	job := c.Job
	job.Schema = l.schema
	plan := s.Plan(args, job)
	if plan.Batch != nil {
		l.Add(n.At, "%s runs in micro-batches, and steps are for what runs a row at a time", s.Name)
		return
	}
	l.current.columns, l.known = harness.ResultColumns(plan, l.schema), true
}

// columns reads the table.
func (l *loader) columns(n *yml.Node) {
	if !l.Is(n, yml.Mapping) {
		return
	}
	schema := stream.Schema{Key: []int{0}, Event: -1}
	types := map[string]string{}
	for _, v := range n.Items {
		if v.Name == "at" || v.Name == "kind" {
			l.Add(v.NameAt, "a column cannot be named %s here: in a row that is something else", v.Name)
		}
		var c stream.Column
		yml.Value(l.Reader, &c, func(s string) (stream.Column, error) { return harness.ParseType(v.Name, s) })(v)
		if c.Type == stream.Timestamp && schema.Event < 0 {
			schema.Event = len(schema.Columns)
		}
		c.Name = v.Name
		types[v.Name] = v.Text
		schema.Columns = append(schema.Columns, c)
	}
	if schema.Event < 0 {
		if !l.Faulty(n) {
			l.Add(n.NameAt, "a table needs a column of the type TIMESTAMP_LTZ(3) as its event time")
		}
		schema.Event = 0
	}
	if len(schema.Columns) > 0 {
		l.schema, l.types = schema, types
	}
}

func (l *loader) key(n *yml.Node) {
	var key []int
	yml.Values(l.Reader, &key, l.column)(n)
	if len(key) > 0 {
		l.schema.Key = key
	}
}

func (l *loader) eventTime(n *yml.Node) {
	yml.Value(l.Reader, &l.schema.Event, func(name string) (int, error) {
		i, err := l.column(name)
		if err == nil && l.schema.Columns[i].Type != stream.Timestamp {
			return 0, fmt.Errorf("column %s is no TIMESTAMP", name)
		}
		return i, err
	})(n)
}

func (l *loader) column(name string) (int, error) {
	i := l.schema.Index(name)
	if i < 0 {
		return 0, noColumn(name, l.schema.Columns)
	}
	return i, nil
}

func noColumn(name string, columns []stream.Column) error {
	return fmt.Errorf("there is no column %q%s", name, yml.Nearest(name, harness.Names(columns), "there are"))
}

func (l *loader) job(n *yml.Node) {
	c := &l.current.config
	sensitive := true
	l.Object(n,
		yml.May("flink", yml.Value(l.Reader, &c.Job.Version, strategies.ParseVersion)),
		yml.May("input", yml.Value(l.Reader, &c.Job.Input, strategies.ParseInput)),
		yml.May("sink", yml.Value(l.Reader, &c.Job.Sink, l.sink)),
		yml.May("mini_batch", func(n *yml.Node) {
			l.Object(n,
				yml.Must("latency", yml.Value(l.Reader, &c.Job.MiniBatch.Latency, positive)),
				yml.Must("size", yml.Bare(l.Reader, &c.Job.MiniBatch.Size, yml.Whole(1, 1<<31-1))),
				yml.May("compact", yml.Bare(l.Reader, &c.Job.MiniBatch.Compact, yml.Boolean)),
			)
		}),
		yml.May("insert_update_after_sensitive", yml.Bare(l.Reader, &sensitive, yml.Boolean)),
		yml.May("readers", yml.Bare(l.Reader, &c.Readers, yml.Whole(1, 1024))),
	)
	c.Job.InsertInsensitive = !sensitive
}

// upsertKafka is an upsert sink of which the topic is looked at.
const upsertKafka = "upsert-kafka"

var sinkName = yml.OneOf(strategies.Retract.String(), strategies.Append.String(), strategies.Upsert.String(),
	upsertKafka)

// sink reads the name of a sink, that of a scenario or upsert-kafka.
func (l *loader) sink(s string) (strategies.Sink, error) {
	name, err := sinkName(s)
	if name == upsertKafka {
		l.current.topic = true
		return strategies.Upsert, nil
	}
	sink, _ := strategies.ParseSink(name)
	return sink, err
}

func positive(s string) (stream.Time, error) {
	t, err := stream.ParseDuration(s)
	if err == nil && t == 0 {
		return 0, fmt.Errorf("duration %q must be longer than 0", s)
	}
	return t, err
}

// actions are the things that a step can do.
var actions = []string{"row", "rows", "watermark", "clock", "checkpoint", "restore", "idle", "end"}

func (l *loader) step(n *yml.Node) {
	s := step{node: n, what: "nothing fed"}
	n.Name = "a step"
	mark := func(name string, feed func(*harness.Harness) error) yml.Field {
		return yml.May(name, func(n *yml.Node) {
			l.mark(n)
			s.feed = feed
		})
	}
	fields := []yml.Field{
		yml.May("at", func(n *yml.Node) { s.at = l.clock(n) }),
		yml.May("reader", yml.Bare(l.Reader, &s.from, yml.Whole(0, l.current.config.Readers-1))),
		yml.May("row", func(n *yml.Node) { s.feed = l.row(n).feed }),
		yml.May("rows", func(n *yml.Node) { s.feed = l.rows(n) }),
		yml.May("watermark", func(n *yml.Node) {
			var w stream.Time
			yml.Value(l.Reader, &w, harness.ParseTime)(n)
			s.feed = func(h *harness.Harness) error { return h.Watermark(w) }
		}),
		yml.May("clock", func(n *yml.Node) {
			if n := l.clock(n); n != nil {
				s.feed = func(h *harness.Harness) error { return h.Clock(*n) }
			}
		}),
		mark("checkpoint", (*harness.Harness).Checkpoint),
		mark("restore", (*harness.Harness).Restore),
		mark("idle", (*harness.Harness).Idle),
		mark("end", (*harness.Harness).End),
		yml.May("emits", func(n *yml.Node) { l.expect(n, &s.emits, l.current.columns) }),
		yml.May("emits_any_order", yml.Bare(l.Reader, &s.emits.anyOrder, yml.Boolean)),
		yml.May("side_output", func(n *yml.Node) { l.expect(n, &s.side, l.schema.Columns) }),
		yml.May("state", func(n *yml.Node) { s.state = n; l.state(n) }),
		yml.May("error", yml.Bare(l.Reader, &s.fails, yml.Boolean)),
	}
	s.emits.count, s.side.count = -1, -1
	l.Object(n, fields...)
	s.side.anyOrder = s.emits.anyOrder
	var done []string
	for _, v := range n.Items {
		if slices.Contains(actions, v.Name) {
			done = append(done, v.Name)
			s.what = strings.TrimSpace(v.Name + " " + v.Text)
			if v.Text == "true" {
				s.what = v.Name
			}
		}
	}
	if len(done) > 1 {
		l.Add(n.At, "a step does one thing; this one has %s", strings.Join(done, " and "))
	}
	if s.fails && s.state != nil {
		l.Add(s.state.NameAt, "a job that has failed has no state")
	}
	if before := l.current.steps; len(before) > 0 && before[len(before)-1].fails {
		l.Add(n.At, "the job has failed in the step before: there can be no other")
	}
	l.afterEnd(n)
	l.current.steps = append(l.current.steps, s)
}

// afterEnd refuses a step of a job that has finished. Only a restore starts it again.
func (l *loader) afterEnd(n *yml.Node) {
	switch {
	case l.ended > 0 && n.Get("restore") == nil:
		l.Add(n.At, "the input ended in line %d and the job has finished: only restore: true can follow", l.ended)
		return
	case l.ended > 0 && n.Get("at") != nil:
		l.Add(n.Get("at").NameAt, "the input ended in line %d and the job has finished: move the clock after the "+
			"restore", l.ended)
	}
	l.ended = 0
	if n.Get("end") != nil {
		l.ended = n.At.Line
	}
}

// mark reads the value of a step that needs none.
func (l *loader) mark(n *yml.Node) {
	if n.Kind == yml.Empty {
		return
	}
	yml.Bare(l.Reader, new(bool), func(s string) (bool, error) {
		if s != "true" {
			return false, fmt.Errorf("%s has nothing to say: write %s: true", n.Name, n.Name)
		}
		return true, nil
	})(n)
}

// clock reads a moment of processing time.
func (l *loader) clock(n *yml.Node) *stream.Time {
	var at *stream.Time
	yml.Value(l.Reader, &at, func(s string) (*stream.Time, error) {
		t, err := harness.ParseTime(s)
		if err == nil && t < l.last {
			return nil, fmt.Errorf("the clock cannot go back from %s to %s", harness.FormatTime(l.last), s)
		}
		l.last = max(l.last, t)
		return &t, err
	})(n)
	return at
}

// input is a row to feed.
type input struct {
	at     *stream.Time
	kind   stream.Kind
	values harness.Columns
}

func (i input) feed(h *harness.Harness) error {
	if i.at != nil {
		if err := h.Clock(*i.at); err != nil {
			return err
		}
	}
	return h.Change(i.kind, i.values)
}

// row reads a row.
func (l *loader) row(n *yml.Node) input {
	in := input{values: harness.Columns{}}
	if !l.Is(n, yml.Mapping) {
		return in
	}
	for _, v := range n.Items {
		switch i := l.schema.Index(v.Name); {
		case v.Name == "at":
			in.at = l.clock(v)
		case v.Name == "kind":
			yml.Value(l.Reader, &in.kind, kind)(v)
		case i < 0:
			l.Add(v.NameAt, "there is no column %q%s", v.Name,
				yml.Nearest(v.Name, append(harness.Names(l.schema.Columns), "at", "kind"), "there are"))
		default:
			in.values[v.Name] = l.value(v, l.schema.Columns[i])
			l.name(v.Name)
		}
	}
	for _, c := range l.schema.Columns {
		if n.Get(c.Name) == nil && !l.holds(harness.Default(c, 0), c) {
			l.Add(n.At, "the row must name %s: its default 1 is no %s", c.Name, l.types[c.Name])
		}
	}
	return in
}

// name notes that a row names a column.
func (l *loader) name(column string) {
	if !slices.Contains(l.current.named, column) {
		l.current.named = append(l.current.named, column)
	}
}

// value reads the value of a column. Null is NULL, but for the text in quotes.
func (l *loader) value(n *yml.Node, c stream.Column) stream.Value {
	if n.Kind == yml.Empty {
		return stream.Value{Null: true}
	}
	var v stream.Value
	yml.Value(l.Reader, &v, func(s string) (stream.Value, error) {
		v, err := harness.ParseValue(s, c)
		if err == nil && !l.holds(v, c) {
			err = fmt.Errorf("%s is out of the range of %s, which is %s", s, c.Name, l.types[c.Name])
		}
		return v, err
	})(n)
	return v
}

// holds reports whether the type of a column holds a value.
func (l *loader) holds(v stream.Value, c stream.Column) bool {
	sql := l.types[c.Name]
	limit, ok := harness.Limit(sql)
	lowest := -limit
	if strings.HasSuffix(sql, "INT") {
		lowest--
	}
	return !ok || v.Null || lowest <= v.Int && v.Int <= limit
}

func kind(s string) (stream.Kind, error) {
	k, ok := stream.ParseKind(s)
	if !ok {
		return 0, fmt.Errorf("%q is not one of +I, -U, +U, -D", s)
	}
	return k, nil
}

// rows reads a list of rows, or a generated run of them.
func (l *loader) rows(n *yml.Node) func(*harness.Harness) error {
	if n.Kind == yml.Mapping {
		return l.run(n)
	}
	var rows []input
	for _, entry := range l.Entries(n) {
		rows = append(rows, l.row(entry))
	}
	return func(h *harness.Harness) error {
		for _, row := range rows {
			if err := row.feed(h); err != nil {
				return err
			}
		}
		return nil
	}
}

// placeholder stands for the number of the row in the values of a run.
const placeholder = "{i}"

// run reads a generated run of rows.
func (l *loader) run(n *yml.Node) func(*harness.Harness) error {
	count, every := 1, stream.Time(0)
	var template *yml.Node
	l.Object(n,
		yml.Must("count", yml.Bare(l.Reader, &count, yml.Whole(1, maxRun))),
		yml.May("every", yml.Value(l.Reader, &every, stream.ParseDuration)),
		yml.Must("row", func(n *yml.Node) { template = n }),
	)
	if template == nil || l.Faulty(template) {
		return nil
	}
	numbered := func(i int) *yml.Node {
		row := *template
		row.Items = make([]*yml.Node, len(template.Items))
		for j, v := range template.Items {
			copied := *v
			copied.Text = strings.ReplaceAll(v.Text, placeholder, strconv.Itoa(i))
			row.Items[j] = &copied
		}
		return &row
	}
	before := l.Faults()
	first := l.row(numbered(1))
	if l.Faults() == before {
		l.row(numbered(count)) // it may be the only one whose values are too large
	}
	l.last += every * stream.Time(count-1)
	schema := l.schema
	return func(h *harness.Harness) error {
		next := h.Now()
		if first.at != nil {
			next = *first.at
		}
		quiet := &loader{Reader: yml.New("", nil), schema: schema, current: &Test{}}
		for i := range count {
			row := quiet.row(numbered(i + 1))
			row.at = &next
			if err := row.feed(h); err != nil {
				return err
			}
			next += every
		}
		return nil
	}
}

// expect reads what is to be sent.
func (l *loader) expect(n *yml.Node, e *expectation, columns []stream.Column) {
	e.node = n
	if n.Kind == yml.Scalar {
		yml.Bare(l.Reader, e, func(s string) (expectation, error) {
			if s == "any" {
				e.any = true
				return *e, nil
			}
			count, err := yml.Whole(0, maxRun)(s)
			if err != nil {
				return *e, fmt.Errorf("%s must be a list of rows such as [\"+I {order_id: a}\"], "+
					"a number of rows, or any", n.Name)
			}
			e.count = count
			return *e, nil
		})(n)
		return
	}
	if !l.Is(n, yml.List) {
		return
	}
	for _, entry := range l.Each(n) {
		var want row
		yml.Value(l.Reader, &want, func(s string) (row, error) { return l.expected(s, columns) })(entry)
		e.rows = append(e.rows, want)
	}
}

// expected reads a row such as +I {order_id: a, price: 4}.
func (l *loader) expected(text string, columns []stream.Column) (row, error) {
	first, rest, _ := strings.Cut(text, " ")
	k, err := kind(first)
	if err != nil || !strings.HasPrefix(rest, "{") {
		return row{}, fmt.Errorf("%q is not a row: write one like \"+I {order_id: a, price: 4}\"", text)
	}
	want := row{kind: k}
	inner := &loader{Reader: yml.New("", []byte(rest)), types: l.types}
	fields := inner.Parse("row", "columns")
	if inner.Is(fields, yml.Mapping) && l.known {
		for _, v := range fields.Items {
			i := slices.IndexFunc(columns, func(c stream.Column) bool { return c.Name == v.Name })
			if i < 0 {
				inner.Add(v.NameAt, "%v", noColumn(v.Name, columns))
				continue
			}
			want.columns = append(want.columns, v.Name)
			want.values = append(want.values, inner.value(v, columns[i]))
		}
	}
	if err := inner.Err(); err != nil {
		return want, fmt.Errorf("%s: %s", text, err.(*yml.Error).Faults[0].Message)
	}
	return want, nil
}

// state reads what is to be held.
func (l *loader) state(n *yml.Node) {
	count := func(n *yml.Node) { yml.Bare(l.Reader, new(int), canonical)(n) }
	split := func(parts ...string) func(*yml.Node) {
		return func(n *yml.Node) {
			switch {
			case n.Kind == yml.Scalar:
				count(n)
			case parts != nil:
				l.Object(n, yml.May(parts[0], count), yml.May(parts[1], count))
			case l.Is(n, yml.Mapping):
				l.stateNames(n)
				for _, v := range n.Items {
					count(v)
				}
			}
		}
	}
	fields := []yml.Field{
		yml.May("entries", split()),
		yml.May("cached", count),
		yml.May("buffered", count),
		yml.May("live", count),
		yml.May("timers", split("event", "proc")),
		yml.May("late_dropped", count),
	}
	if l.current.topic {
		fields = append(fields, yml.May("records", count), yml.May("tombstones", count))
	}
	l.Object(n, fields...)
}

// stateNames asks for the names of the states that the operator has, which may depend on the job.
func (l *loader) stateNames(n *yml.Node) {
	if !l.sound {
		return
	}
	h, err := harness.New(l.current.config)
	if err != nil {
		return // the run tells
	}
	names := slices.Sorted(maps.Keys(h.State().Named))
	for _, v := range n.Items {
		switch strategy := l.current.config.Strategy; {
		case len(names) == 0:
			l.Add(v.NameAt, "%s does not name its states here: write %s as one number", strategy, n.Name)
			return
		case !slices.Contains(names, v.Name):
			l.Add(v.NameAt, "%s has no state %q%s", strategy, v.Name, yml.Nearest(v.Name, names, "it has"))
		}
	}
}

// canonical reads a count that is written in the one way in which it is compared.
func canonical(s string) (int, error) {
	v, err := yml.Whole(0, 1<<53)(s)
	if err == nil && strconv.Itoa(v) != s {
		return 0, fmt.Errorf("write %d", v)
	}
	return v, err
}
