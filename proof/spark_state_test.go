package proof

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deduplab/harness"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// TestSparkState compares the strategies whose state is the user's with their functions as they were recorded, written
// over maps that are searched from end to end: what they return, count and store in each batch, the watermark, and the
// error that ends the query; through failed batches and restarts from the checkpoint.
func TestSparkState(t *testing.T) {
	for _, name := range []string{"flat-map-groups-with-state", "latest-wins", "latest-wins-aggregate",
		"transform-with-state"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { compareQueries(t, name) })
		})
	}
}

func compareQueries(t *rapid.T, name string) {
	w := &sparkWorld{t: t, name: name, noData: rapid.Bool().Draw(t, "no-data batches"),
		sorted: rapid.Bool().Draw(t, "sorted by the key's column"), records: harness.NewRecords(recorded)}
	w.params = w.drawParams()
	w.configure()
	clock := stream.Time(1_000_000)
	for range rapid.IntRange(1, 12).Draw(t, "batches") {
		clock += stream.Time(rapid.SampledFrom([]int{0, 1, 500, 999, 1000, 1001, 3000}).Draw(t, "clock"))
		switch rapid.IntRange(0, 9).Draw(t, "before the batch") {
		case 0: // the sink fails after the write: the batch is run again
			rows := w.drawRows()
			before := w.engine.Snapshot()
			w.engine.RunBatch(clock, w.add(rows), 1)
			w.engine = sim.RestoreBatchEngine(w.spec, before)
			if !w.step(clock, rows) {
				return
			}
		case 1:
			w.engine = sim.RestoreBatchEngine(w.spec, w.engine.Snapshot())
			fallthrough
		default:
			if !w.step(clock, w.drawRows()) {
				return
			}
		}
		for w.engine.NoDataBatchDue() {
			if !w.naive.due(w.noData) {
				t.Fatalf("a batch without rows would follow")
			}
			if !w.step(clock, nil) {
				return
			}
		}
		if w.naive.due(w.noData) {
			t.Fatalf("no batch without rows would follow")
		}
	}
}

// recorded is the table of the recordings.
var recorded = stream.Schema{
	Columns: []stream.Column{{Name: "event_id"}, {Name: "ts", Type: stream.Timestamp}, {Name: "kind"},
		{Name: "amount", Type: stream.Int}},
	Key: []int{0}, Event: 1,
}

// sparkWorld runs one query and its naive double.
type sparkWorld struct {
	t              *rapid.T
	name           string
	params         map[string]string
	noData, sorted bool
	records        *harness.Records
	spec           sim.BatchSpec
	engine         *sim.BatchEngine
	outputs        []sim.Output
	naive          naiveQuery
}

func (w *sparkWorld) drawParams() map[string]string {
	ms := func(label string, of ...int) string { return fmt.Sprint(rapid.SampledFrom(of).Draw(w.t, label), "ms") }
	params := map[string]string{}
	if w.name != "transform-with-state" {
		params["delay"] = ms("delay", 0, 5, 20)
	}
	switch w.name {
	case "flat-map-groups-with-state":
		params["variant"] = rapid.SampledFrom([]string{"printed", "rearm", "guarded", "safe"}).Draw(w.t, "variant")
		fallthrough
	case "latest-wins":
		params["kind"] = "kind"
		params["horizon"] = "payment: " + ms("payment", 30, 100) + ", click: " + ms("click", 0, 5, 10) + ", *: " +
			ms("*", 3, 10)
		if rapid.IntRange(0, 5).Draw(w.t, "negative") == 0 {
			params["horizon"] += ", fast: -3ms"
		}
		if w.name == "latest-wins" {
			params["mode"] = rapid.SampledFrom([]string{"append", "update"}).Draw(w.t, "mode")
		}
	case "latest-wins-aggregate":
		params["mode"] = rapid.SampledFrom([]string{"update", "complete"}).Draw(w.t, "mode")
	case "transform-with-state":
		params["ttl"] = ms("ttl", 1, 1000, 3000)
		params["copies"] = rapid.SampledFrom([]string{"read", "update"}).Draw(w.t, "copies")
	}
	return params
}

func (w *sparkWorld) configure() {
	s, _ := strategies.Lookup(w.name)
	args, faults := s.Resolve(w.params, recorded)
	if len(faults) > 0 {
		w.t.Fatal(faults)
	}
	plan := s.Plan(args, strategies.Job{Schema: recorded, Sink: strategies.Upsert})
	w.spec = plan.Batch.Spec(sim.BatchSpec{
		Records: w.records, NoDataBatches: w.noData,
		NullKey:  func(row *stream.Row) bool { return w.records.Record(row.Tag)[0].Null },
		OnOutput: func(o sim.Output) { w.outputs = append(w.outputs, o) },
	}, 1)
	if w.sorted {
		w.spec.CompareKeys = func(a, b *stream.Row) int {
			return w.records.Record(a.Tag)[0].Compare(w.records.Record(b.Tag)[0], stream.String)
		}
	}
	w.engine = sim.NewBatchEngine(w.spec)
	w.naive = naiveQuery{args: args, name: w.name, delay: args.Duration("delay"), state: map[string]*naiveState{}}
}

// drawRows makes a batch. Times are around the largest one so far, so that some are late and some keys are due.
func (w *sparkWorld) drawRows() []stream.Record {
	keys := []string{"", "a", "b", "c", "c"}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) stream.Record {
		kinds := []string{"click", "click", "payment", "fast", "other"}
		row := stream.Record{
			{Text: rapid.SampledFrom(keys).Draw(t, "key")},
			{Int: int64(w.naive.largest) + int64(rapid.SampledFrom([]int{-30, -20, -6, -5, -1, 0, 1, 2, 10, 40}).Draw(t, "ts"))},
			{Text: rapid.SampledFrom(kinds).Draw(t, "kind")},
			{Int: int64(rapid.IntRange(1, 9).Draw(t, "amount"))},
		}
		if w.naive.largest == 0 {
			row[1].Int += 50
		}
		for i, odds := range []int{30, 60, 20, 20} {
			if i == 1 && w.name == "latest-wins-aggregate" {
				odds = 6
			}
			if rapid.IntRange(1, odds).Draw(t, "null") == 1 {
				row[i] = stream.Value{Null: true}
			}
		}
		return row
	}), 0, 6).Draw(w.t, "rows")
}

func (w *sparkWorld) add(rows []stream.Record) []stream.Row {
	added := make([]stream.Row, len(rows))
	for i, row := range rows {
		added[i] = w.records.Add(stream.Insert, row)
	}
	return added
}

// step runs a batch in both and compares. It reports whether the query goes on.
func (w *sparkWorld) step(at stream.Time, rows []stream.Record) bool {
	w.outputs = nil
	progress := w.engine.RunBatch(at, w.add(rows), 1)
	want := w.naive.batch(at, rows)
	if err := w.engine.Err(); err != nil || want.failure != "" {
		got := ""
		if err != nil {
			got = err.Error()
		}
		// Which of several groups fails first depends on their order.
		if got != want.failure && (w.sorted || got == "" || want.failure == "") {
			w.t.Fatalf("failed with %q, want %q", got, want.failure)
		}
		return false
	}
	stage := progress.Stages[0]
	var got outcomeOfBatch
	for _, o := range w.outputs {
		text := w.spell(o)
		if o.Why == "expired" {
			got.expired = append(got.expired, text)
		} else {
			got.rows = append(got.rows, text)
		}
	}
	w.engine.Operators(func(_ int, op sim.BatchOperator) {
		op.(sim.StoredState).Stored(func(s sim.Stored) {
			got.state = append(got.state, fmt.Sprint(spellValue(w.records.Record(s.Tag)[0]), " ", spellTime(s.First), " ",
				spellTime(s.Last), " ", s.Count, " ", s.Timeout))
		})
	})
	got.updated, got.removed, got.late = stage.RowsUpdated, stage.RowsRemoved, stage.DroppedByWatermark
	got.watermark = progress.WatermarkAfter
	if !w.sorted { // the order of the groups is another one
		slices.Sort(got.rows)
		slices.Sort(want.rows)
	}
	for _, o := range []*outcomeOfBatch{&got, &want} {
		slices.Sort(o.expired)
		slices.Sort(o.state)
	}
	if got, want := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); got != want {
		w.t.Fatalf("%s %v\ngot  %s\nwant %s", w.name, w.params, got, want)
	}
	if stage.RowsTotal != int64(len(want.state)) {
		w.t.Fatalf("%d rows in state, want %d", stage.RowsTotal, len(want.state))
	}
	return true
}

func (w *sparkWorld) spell(o sim.Output) string {
	row := w.records.Record(o.Tag)
	if o.Keys {
		row = stream.Record{row[0], {Int: int64(o.Event), Null: o.Event == stream.NullTime}, {Null: true}, {Null: true}}
	}
	return spellRow(row, o.Why, o.Count)
}

func spellRow(row stream.Record, why string, count int64) string {
	parts := make([]string, len(row))
	for i, v := range row {
		parts[i] = spellValue(v)
	}
	return fmt.Sprint(strings.Join(parts, " "), " ", why, " ", count)
}

func spellValue(v stream.Value) string {
	switch {
	case v.Null:
		return "null"
	case v.Text != "":
		return v.Text
	}
	return fmt.Sprint(v.Int)
}

func spellTime(t stream.Time) string {
	if t == stream.NullTime {
		return "null"
	}
	return fmt.Sprint(int64(t))
}

// outcomeOfBatch is what a batch did.
type outcomeOfBatch struct {
	rows, expired, state   []string
	updated, removed, late int64
	watermark              stream.Time
	failure                string
}

// naiveQuery is the double: state is a map from the spelling of the key.
type naiveQuery struct {
	name            string
	args            strategies.Args
	delay           stream.Time
	largest         stream.Time
	watermark, late stream.Time
	state           map[string]*naiveState

	out outcomeOfBatch
}

type naiveState struct {
	key         stream.Value
	first, last stream.Time
	count       int64
	timeout     stream.Time
	row         stream.Record // of the aggregate
	written     stream.Time
}

// due reports whether a batch without rows follows.
func (q *naiveQuery) due(enabled bool) bool {
	return enabled && q.watermark > q.late && q.args.Text("mode") != "complete"
}

func (q *naiveQuery) batch(at stream.Time, rows []stream.Record) outcomeOfBatch {
	q.out = outcomeOfBatch{}
	groups := map[string][]stream.Record{}
	var keys []stream.Value
	for _, row := range rows {
		// Of the four the aggregate has no event time in its key, and transformWithState no watermark.
		if strings.HasPrefix(q.name, "flat") || q.name == "latest-wins" {
			if !row[1].Null && stream.Time(row[1].Int) <= q.late {
				q.out.late++
				continue
			}
		}
		key := spellValue(row[0]) + fmt.Sprint(row[0].Null)
		if groups[key] == nil {
			keys = append(keys, row[0])
		}
		groups[key] = append(groups[key], row)
	}
	slices.SortFunc(keys, func(a, b stream.Value) int {
		if a.Null != b.Null {
			return map[bool]int{true: -1, false: 1}[a.Null]
		}
		return cmp.Compare(a.Text, b.Text)
	})
	for _, key := range keys {
		id := spellValue(key) + fmt.Sprint(key.Null)
		switch q.name {
		case "latest-wins-aggregate":
			q.aggregate(id, groups[id])
		case "transform-with-state":
			q.transform(at, id, groups[id])
		default:
			q.group(id, groups[id])
		}
		if q.out.failure != "" {
			return q.out
		}
	}
	q.after(at, keys)
	if q.name != "transform-with-state" {
		q.advance(rows)
	}
	for _, s := range q.state {
		q.out.state = append(q.out.state, fmt.Sprint(spellValue(s.key), " ", spellTime(s.first), " ", spellTime(s.last), " ",
			s.count, " ", s.timeout))
	}
	q.out.watermark = q.watermark
	return q.out
}

// advance moves the watermark.
func (q *naiveQuery) advance(rows []stream.Record) {
	q.late = q.watermark
	for _, row := range rows {
		if !row[1].Null {
			q.largest = max(q.largest, stream.Time(row[1].Int))
		}
	}
	q.watermark = max(q.watermark, q.largest-q.delay)
}

// after is what happens to keys without rows.
func (q *naiveQuery) after(at stream.Time, touched []stream.Value) {
	var ids []string
	for id := range q.state {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		ka, kb := q.state[a].key, q.state[b].key
		return ka.Compare(kb, stream.String)
	})
	for _, id := range ids {
		s := q.state[id]
		switch q.name {
		case "latest-wins-aggregate":
			if q.args.Text("mode") == "complete" {
				q.out.rows = append(q.out.rows, spellRow(s.row, "", s.count))
			}
		case "transform-with-state":
			if s.written+q.args.Duration("ttl") <= at {
				q.out.removed++
				delete(q.state, id)
			}
		default:
			if slices.Contains(touched, s.key) || s.timeout == -1 || s.timeout >= q.watermark {
				continue
			}
			if q.name != "latest-wins" {
				q.out.expired = append(q.out.expired, spellRow(stream.Record{s.key, {Int: int64(s.first)}, {Null: true},
					{Null: true}}, "expired", s.count))
			}
			q.out.removed++
			delete(q.state, id)
		}
	}
}

// group is a call of the recorded functions firstWins, firstWinsRearm and latestWins.
func (q *naiveQuery) group(id string, rows []stream.Record) {
	const illegal = "java.lang.IllegalArgumentException: "
	before := q.state[id]
	var s *naiveState
	if before != nil {
		clone := *before
		s = &clone
	}
	updated, timeout := false, stream.Time(-1)
	set := func(at stream.Time) bool {
		switch {
		case at <= 0:
			q.out.failure = illegal + "Timeout timestamp must be positive"
		case at < q.watermark:
			q.out.failure = fmt.Sprintf("%sTimeout timestamp (%d) cannot be earlier than the current watermark (%d)", illegal,
				at, q.watermark)
		default:
			timeout = at
		}
		return q.out.failure == ""
	}
	for _, row := range rows {
		if row[1].Null {
			q.out.failure = `java.lang.NullPointerException: Cannot invoke "java.sql.Timestamp.getTime()" because the return ` +
				`value of "org.apache.spark.sql.Row.getTimestamp(int)" is null`
			return
		}
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b stream.Record) int { return cmp.Compare(a[1].Int, b[1].Int) })
	variant := q.args.Text("variant")
	for _, row := range rows {
		ts, until := stream.Time(row[1].Int), stream.Time(row[1].Int)+q.horizon(row[2])
		if q.name == "latest-wins" {
			if s != nil && ts <= s.last {
				continue
			}
			why := "newer"
			if s == nil {
				s, why = &naiveState{key: row[0], first: ts, count: -1}, "first"
			}
			s.count, s.last, updated = s.count+1, ts, true
			if !set(until) {
				return
			}
			q.out.rows = append(q.out.rows, spellRow(row, why, s.count))
			continue
		}
		if s == nil {
			q.out.rows = append(q.out.rows, spellRow(row, "first", 0))
			if variant == "guarded" && until < q.watermark {
				continue
			}
			s, updated = &naiveState{key: row[0], first: ts, last: ts}, true
			if variant == "rearm" || variant == "safe" {
				s.last = until
			} else if !set(until) {
				return
			}
		} else {
			s.count, updated = s.count+1, true
			q.out.rows = append(q.out.rows, spellRow(row, "suppressed", s.count))
		}
		if variant == "rearm" && !set(s.last) || variant == "safe" && !set(max(s.last, q.watermark)) {
			return
		}
	}
	if s == nil {
		return
	}
	if s.timeout = timeout; updated || before == nil || before.timeout != timeout {
		q.out.updated++
	}
	q.state[id] = s
}

func (q *naiveQuery) horizon(kind stream.Value) stream.Time {
	any := stream.Time(0)
	for _, s := range q.args.Spans("horizon") {
		switch s.Name {
		case kind.Text:
			return s.Span
		case "*":
			any = s.Span
		}
	}
	return any
}

// aggregate is max_by(struct(ts, kind, amount), ts) and count(*).
func (q *naiveQuery) aggregate(id string, rows []stream.Record) {
	s := q.state[id]
	if s == nil {
		s = &naiveState{key: rows[0][0], last: stream.NullTime, row: stream.Record{rows[0][0], {Null: true}, {Null: true},
			{Null: true}}}
		q.state[id] = s
	}
	for _, row := range rows {
		s.count++
		if ts := stream.Time(row[1].Int); !row[1].Null && ts >= s.last {
			s.last, s.row = ts, row
		}
	}
	q.out.updated++
	if q.args.Text("mode") == "update" {
		q.out.rows = append(q.out.rows, spellRow(s.row, "", s.count))
	}
}

// transform is the recorded TtlFirst.
func (q *naiveQuery) transform(at stream.Time, id string, rows []stream.Record) {
	if rows[0][0].Null {
		q.out.failure = "org.apache.spark.SparkException: [INTERNAL_ERROR_TWS] Implicit key not found in state store for " +
			"stateName=seen SQLSTATE: XX000"
		return
	}
	for _, row := range rows {
		s := q.state[id]
		if s == nil || s.written+q.args.Duration("ttl") <= at {
			q.state[id] = &naiveState{key: row[0], written: at}
			q.out.updated++
			q.out.rows = append(q.out.rows, spellRow(row, "first", 0))
			continue
		}
		q.out.rows = append(q.out.rows, spellRow(row, "suppressed", s.count+1))
		if q.args.Text("copies") == "update" {
			s.count, s.written = s.count+1, at
			q.out.updated++
		}
	}
}
