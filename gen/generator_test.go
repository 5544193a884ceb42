package gen_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"deduplab/gen"
	"deduplab/stream"
)

const (
	second = stream.Time(1000)
	minute = 60 * second
	hour   = 60 * minute
)

// ordersSpec is the orders scenario: everything that a real stream does.
func ordersSpec() gen.Spec {
	return gen.Spec{
		Start:    1767225600000,
		Duration: 8 * hour,
		Rate:     10,
		Fields: []gen.Field{
			{Name: "order_id", UUID: true},
			{Name: "quantity", Int: &[2]int64{100, 9999}},
			{Name: "price", Decimal: &[2]int64{200, 50000}},
			{Name: "customer", Faker: "{firstname} {lastname}"},
		},
		Key:         []string{"order_id"},
		EventTime:   gen.EventTime{Field: "created_at"},
		Partitions:  2,
		PartitionBy: "order_id",
		Transport: gen.Delay{
			Kind: gen.Lognormal, Low: 40, High: 8 * second, P1: 0.5, P2: 0.999, Cap: 5 * minute,
		},
		Silent: []gen.Silence{{Partition: 0, From: 1 * hour, For: 10 * minute}},
		Outage: []gen.Outage{{Partition: 1, From: 3 * hour, For: 10 * minute, Flush: 500}},
		Duplicates: []gen.Duplicate{
			{Origin: "copy", Where: &gen.Where{Field: "price", Op: "<", Value: 10000}, Rate: 1},
			{Origin: "producer-retry", Rate: 0.004, Delay: gen.Delay{
				Kind: gen.Lognormal, Low: 2 * second, High: 40 * minute, P1: 0.5, P2: 0.999, Cap: 3 * hour,
			}},
			{Origin: "client-resend", Rate: 0.0002, Delay: gen.Delay{Kind: gen.Uniform, Low: 2 * hour, High: 3 * hour}},
			{Origin: "producer-retry", Rate: 0.0005, Delay: gen.Delay{Low: 5 * second}, NewID: true},
		},
	}
}

func newWorkload(t testing.TB, spec gen.Spec, seed uint64) gen.Workload {
	t.Helper()
	work, err := gen.New(spec, seed)
	if err != nil {
		t.Fatal(err)
	}
	return work
}

// collect delivers a whole workload.
func collect(t interface{ Fatal(...any) }, work gen.Workload) []stream.Row {
	var rows []stream.Row
	buffer := make([]stream.Row, 64)
	for in := work.Stream(); ; {
		n, err := in.Next(buffer)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return rows
		}
		rows = append(rows, buffer[:n]...)
	}
}

// format renders rows as lines of partition@arrival and the columns.
func format(work gen.Workload, rows []stream.Row) string {
	var text strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&text, "%d@%d%s\n", row.Partition, row.Arrival, formatRecord(work, row.Tag))
	}
	return text.String()
}

func formatRecord(work gen.Workload, tag stream.Tag) string {
	var text strings.Builder
	for c, value := range work.Record(tag) {
		text.WriteString(" " + value.Format(work.Schema().Columns[c]))
	}
	return text.String()
}

// checkLookups holds what the workload says about its rows against the rows of a delivery.
func checkLookups(t interface {
	Errorf(string, ...any)
}, work gen.Workload, rows []stream.Row) {
	firsts, tags := map[uint64]stream.Time{}, map[uint64][]stream.Tag{}
	contents, records := map[uint64]string{}, map[string]uint64{}
	schema := work.Schema()
	for i, row := range rows {
		event := row.Tag.Event()
		if i > 0 && (row.Arrival < rows[i-1].Arrival ||
			row.Arrival == rows[i-1].Arrival && row.Partition < rows[i-1].Partition) {
			t.Errorf("row %d arrives before the row before it", i)
		}
		if int(row.Partition) >= work.Partitions() {
			t.Errorf("row %d is in partition %d of %d", i, row.Partition, work.Partitions())
		}
		if got := work.Arrival(row.Tag); got != row.Arrival {
			t.Errorf("row %d: Arrival is %v, but it arrived at %v", i, got, row.Arrival)
		}
		tags[event] = append(tags[event], row.Tag)
		_, seen := firsts[event]
		if row.First == seen {
			t.Errorf("row %d of event %d: First is %v", i, event, row.First)
		}
		if row.First {
			firsts[event] = row.Arrival
			if got := work.FirstArrival(event); got != row.Arrival {
				t.Errorf("event %d: FirstArrival is %v, want %v", event, got, row.Arrival)
			}
		}
		record, content := formatRecord(work, row.Tag), work.Content(row.Tag)
		if other, ok := contents[content]; ok && other != record {
			t.Errorf("one content for two rows:%s and%s", other, record)
		}
		if other, ok := records[record]; ok && other != content {
			t.Errorf("two contents for the row%s", record)
		}
		contents[content], records[record] = record, content
		values := work.Record(row.Tag)
		if row.Event != stream.NullTime && values[schema.Event].Int != int64(row.Event) {
			t.Errorf("row %d: event time %v, but the record has %d", i, row.Event, values[schema.Event].Int)
		}
		for c, column := range schema.Columns {
			want := values[c].Int
			if values[c].Null {
				want = stream.NullOrder
			}
			if column.Type != stream.String && work.Order(row.Tag, c) != want {
				t.Errorf("row %d: Order(%s) is %d, want %d", i, column.Name, work.Order(row.Tag, c), want)
			}
		}
	}
	for event := range uint64(len(firsts)) {
		if _, ok := firsts[event]; !ok {
			t.Errorf("event %d is missing: numbers are not dense", event)
		}
		if got := work.Rows(nil, event); !slices.Equal(got, tags[event]) {
			t.Errorf("event %d: Rows are %x, but %x arrived", event, got, tags[event])
		}
	}
}

func TestDelivery(t *testing.T) {
	work := newWorkload(t, ordersSpec(), 42)
	rows := collect(t, work)
	checkLookups(t, work, rows)
	if from, to := work.Span(); from != 1767225600000 || to-from != 8*hour {
		t.Errorf("span from %v to %v", from, to)
	}
	perOrigin := make([]int, len(work.Origins()))
	perPartition := make([]int, work.Partitions())
	for _, row := range rows {
		perOrigin[row.Tag.Origin()]++
		if row.Tag.Origin() == 0 {
			perPartition[row.Partition]++
		}
		created := row.Event - 1767225600000
		if row.Partition == 0 && created >= 1*hour && created < 1*hour+10*minute {
			t.Fatalf("an event was created at %v, in the silence of partition 0", row.Event)
		}
		if arrived := row.Arrival - 1767225600000; row.Partition == 1 && row.Tag.Origin() == 0 &&
			created >= 3*hour && created < 3*hour+10*minute && arrived < 3*hour+10*minute {
			t.Fatalf("an event of %v arrived at %v, in the outage of partition 1", row.Event, row.Arrival)
		}
	}
	originals := 10. * (8*3600 - 600*0.5)
	near(t, "originals", perOrigin[0], originals)
	near(t, "copies under 100", perOrigin[1], originals*9800/49801)
	near(t, "retries", perOrigin[2], originals*0.004)
	near(t, "resends", perOrigin[3], originals*0.0002)
	near(t, "retries with a new id", perOrigin[4], originals*0.0005)
	near(t, "originals of partition 0", perPartition[0], 5*(8*3600-600))
	near(t, "originals of partition 1", perPartition[1], 5*8*3600)
}

// near accepts counts within four standard deviations of what is expected.
func near(t *testing.T, what string, got int, want float64) {
	t.Helper()
	if math.Abs(float64(got)-want) > 4*math.Sqrt(want) {
		t.Errorf("%d %s, want about %.0f", got, what, want)
	}
}

// TestGolden holds the bytes of a workload. They may change with the generator, but not between processors:
// run it with GOAMD64=v3 too, where the compiler fuses multiplication and addition.
func TestGolden(t *testing.T) {
	work := newWorkload(t, ordersSpec(), 42)
	rows := collect(t, work)
	digest := uint64(0)
	for _, row := range rows {
		for _, part := range []uint64{row.Key.Hi, row.Key.Lo, uint64(row.Event), uint64(row.Arrival), uint64(row.Tag)} {
			digest = stream.Mix(digest ^ part)
		}
	}
	if want := uint64(0x4240931b520ac381); digest != want {
		t.Errorf("digest of %d rows is %#x, want %#x", len(rows), digest, want)
	}
}

func TestWhere(t *testing.T) {
	tests := []struct {
		op   string
		want func(price int64) bool
	}{
		{"<", func(price int64) bool { return price < 10000 }},
		{"<=", func(price int64) bool { return price <= 10000 }},
		{">", func(price int64) bool { return price > 10000 }},
		{">=", func(price int64) bool { return price >= 10000 }},
		{"==", func(price int64) bool { return price == 10000 }},
		{"!=", func(price int64) bool { return price != 10000 }},
	}
	for _, test := range tests {
		spec := ordersSpec()
		spec.Fields[2].Decimal = &[2]int64{9990, 10010}
		spec.Duration = 10 * minute
		spec.Duplicates = spec.Duplicates[:1]
		spec.Duplicates[0].Where.Op = test.op
		work := newWorkload(t, spec, 1)
		copied := map[uint64]bool{}
		rows := collect(t, work)
		for _, row := range rows {
			if row.Tag.Origin() == 1 {
				copied[row.Tag.Event()] = true
			}
		}
		for _, row := range rows {
			if price := work.Order(row.Tag, 2); copied[row.Tag.Event()] != test.want(price) {
				t.Errorf("price %d %s 10000: copied is %v", price, test.op, copied[row.Tag.Event()])
			}
		}
	}
}

// TestCopies states what each kind of copy shares with its original.
func TestCopies(t *testing.T) {
	tests := []struct {
		name      string
		duplicate gen.Duplicate
		logAppend bool
		differs   string // the columns in which copies differ
	}{
		{name: "exact"},
		{name: "new id", duplicate: gen.Duplicate{NewID: true}, differs: "order_id"},
		{name: "restamp", duplicate: gen.Duplicate{Restamp: true}, differs: "created_at"},
		{name: "change", duplicate: gen.Duplicate{Change: []string{"price", "customer"}}, differs: "price customer"},
		{name: "log append", logAppend: true, differs: "created_at"},
		{
			name:      "everything",
			duplicate: gen.Duplicate{NewID: true, Restamp: true, Change: []string{"quantity", "price", "customer"}},
			differs:   "order_id quantity price customer created_at",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := ordersSpec()
			spec.Duration = 10 * minute
			spec.Transport = gen.Delay{Low: 7}
			spec.EventTime.LogAppend = test.logAppend
			test.duplicate.Origin, test.duplicate.Rate, test.duplicate.Delay = "copy", 0.3, gen.Delay{Low: 5 * second}
			spec.Duplicates = []gen.Duplicate{test.duplicate}
			spec.Fields[1].Int, spec.Fields[2].Decimal = &[2]int64{0, 1 << 40}, &[2]int64{0, 1 << 40}
			work := newWorkload(t, spec, 3)
			rows := collect(t, work)
			checkLookups(t, work, rows)
			originals := map[uint64]stream.Row{}
			copies := 0
			for _, row := range rows {
				if row.Tag.Origin() == 0 {
					originals[row.Tag.Event()] = row
					continue
				}
				copies++
				original := originals[row.Tag.Event()]
				if row.Arrival != original.Arrival+5*second || row.Partition != original.Partition {
					t.Fatalf("the copy %+v does not follow its original %+v", row, original)
				}
				if newKey := row.Key != original.Key; newKey != work.NewKey(1) {
					t.Fatalf("NewKey is %v, but the keys are %x and %x", work.NewKey(1), row.Key, original.Key)
				}
				was, is := work.Record(original.Tag), work.Record(row.Tag)
				for c, column := range work.Schema().Columns {
					differs := slices.Contains(strings.Fields(test.differs), column.Name)
					if (was[c] != is[c]) != differs && column.Name != "customer" { // names may be equal by chance
						t.Fatalf("column %s: %v was %v", column.Name, is[c], was[c])
					}
				}
			}
			near(t, "copies", copies, 6000*0.3)
		})
	}
}

func TestOutageDeliversInOrderOfCreation(t *testing.T) {
	spec := ordersSpec()
	spec.Duration, spec.Partitions, spec.Duplicates, spec.Silent = 40*minute, 1, nil, nil
	spec.Outage = []gen.Outage{{From: 10 * minute, For: 10 * minute, Flush: 100}}
	rows := collect(t, newWorkload(t, spec, 5))
	// 10 minutes of 10 rows a second at 100 a second, and those that are created meanwhile: 1/9 of the outage.
	from, to := spec.Start+20*minute, spec.Start+20*minute+67*second
	flushed, last := 0, stream.Time(0)
	for _, row := range rows {
		created := row.Event - spec.Start
		if row.Arrival >= from && row.Arrival < to && created >= 10*minute && created < 20*minute {
			if row.Event < last {
				t.Fatalf("the event of %v arrived after that of %v", row.Event, last)
			}
			flushed, last = flushed+1, row.Event
		}
	}
	near(t, "rows delivered on return", flushed, 6000)
	for _, row := range rows {
		if row.Arrival > to && row.Event < spec.Start+20*minute {
			t.Fatalf("the event of %v arrived only at %v", row.Event, row.Arrival)
		}
	}
}

func TestSilenceOfAllPartitions(t *testing.T) {
	spec := ordersSpec()
	spec.Duration, spec.Outage = 20*minute, nil
	spec.Silent = []gen.Silence{{Partition: 0, From: 0, For: 5 * minute}, {Partition: 1, From: 0, For: 5 * minute}}
	work := newWorkload(t, spec, 5)
	rows := collect(t, work)
	checkLookups(t, work, rows)
	if rows[0].Arrival < spec.Start+5*minute {
		t.Errorf("a row arrived at %v", rows[0].Arrival)
	}
	near(t, "rows", len(rows), 15*60*10*1.2)
}

// TestConcurrentUse looks rows up while others deliver them; the race detector listens.
func TestConcurrentUse(t *testing.T) {
	spec := ordersSpec()
	spec.Duration = 2 * hour
	want := collect(t, newWorkload(t, spec, 8))
	work := newWorkload(t, spec, 8) // with no marks yet
	var wait sync.WaitGroup
	for g := range 4 {
		wait.Go(func() {
			if g%2 == 0 {
				if !slices.Equal(collect(t, work), want) {
					t.Error("a concurrent delivery differs")
				}
				return
			}
			for i := len(want) - 1; i >= 0; i -= 7 {
				if got := work.Arrival(want[i].Tag); got != want[i].Arrival {
					t.Errorf("row %d: arrival %v, want %v", i, got, want[i].Arrival)
				}
				work.Content(want[i].Tag)
			}
		})
	}
	wait.Wait()
}

func TestDeliveryDoesNotAllocate(t *testing.T) {
	in := newWorkload(t, benchSpec(10_000_000), 1).Stream()
	buffer := make([]stream.Row, 64)
	deliver := func() {
		for range 10_000 {
			if n, err := in.Next(buffer); n == 0 || err != nil {
				t.Fatal(n, err)
			}
		}
	}
	for range 5 {
		deliver()
	}
	if allocated := testing.AllocsPerRun(1, deliver); allocated > 20 { // marks, and copies that are still to come
		t.Errorf("%v allocations for 640,000 rows", allocated)
	}
}

// TestWorkloadProperties checks the promises of Workload on random specs.
func TestWorkloadProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, seed := drawSpec(t), rapid.Uint64().Draw(t, "seed")
		work, err := gen.New(spec, seed)
		if err != nil {
			t.Fatal(err)
		}
		rows := collect(t, work)
		checkLookups(t, work, rows)
		again, err := gen.New(spec, seed)
		if err != nil {
			t.Fatal(err)
		}
		checkLookups(t, again, rows) // before its own delivery has made marks
		if !slices.Equal(collect(t, again), rows) {
			t.Error("the same seed makes other rows")
		}
		copies := map[uint64]int{}
		for _, row := range rows {
			copies[row.Tag.Event()] = max(copies[row.Tag.Event()], row.Tag.Copy())
		}
		events := len(copies)
		for _, n := range copies {
			events += n
		}
		if spec.Finished == nil && events != len(rows) { // a finished partition leaves gaps
			t.Errorf("%d rows, but the copy numbers make %d", len(rows), events)
		}
	})
}

// drawSpec makes small workloads of every shape. Values collide often.
func drawSpec(t *rapid.T) gen.Spec {
	partitions := rapid.IntRange(1, 4).Draw(t, "partitions")
	span := func(name string, low, high stream.Time) stream.Time {
		return stream.Time(rapid.Int64Range(int64(low), int64(high)).Draw(t, name))
	}
	delay := func(name string) gen.Delay {
		return rapid.SampledFrom([]gen.Delay{
			{},
			{Low: 3},
			{Kind: gen.Uniform, Low: 0, High: 5000, Cap: 4000},
			{Kind: gen.Lognormal, Low: 40, High: 8000, P1: 0.5, P2: 0.999, Cap: 20_000},
			{Kind: gen.Lognormal, Low: 2000, High: 40 * minute, P1: 0.5, P2: 0.99},
			{Kind: gen.Mixture, Mixture: []gen.Part{
				{Share: 0.9, Delay: gen.Delay{Kind: gen.Exponential, Low: 300}},
				{Share: 0.1, Delay: gen.Delay{Kind: gen.Step, Low: 5000, Then: &gen.Delay{
					Kind: gen.Pareto, Low: 10, High: 900, P2: 0.9, Cap: 60_000}}},
			}},
		}).Draw(t, name)
	}
	spec := gen.Spec{
		Start:    1767225600000,
		Duration: span("duration", 1, 60*second),
		Rate:     rapid.Float64Range(0.01, 5).Draw(t, "rate"),
		Load: rapid.SampledFrom([]gen.Load{
			{}, {}, {Sine: &gen.Sine{Period: 20 * second, Amplitude: 1}},
			{Burst: &gen.Burst{Every: 10 * second, For: second, Times: 8}},
			{Steps: []gen.LoadStep{{From: 0, Times: 0.5}, {From: 30 * second, Times: 3}}},
		}).Draw(t, "load"),
		Fields: []gen.Field{
			{Name: "user", Int: &[2]int64{-1, 2}},
			{Name: "price", Decimal: &[2]int64{100, 104}},
			{Name: "color", Faker: "{bool}"},
		},
		EventTime:   gen.EventTime{Field: "ts", LogAppend: rapid.Bool().Draw(t, "log append")},
		Partitions:  partitions,
		PartitionBy: rapid.SampledFrom([]string{"", "user", "color"}).Draw(t, "partition by"),
		Transport:   delay("transport"),
	}
	for _, field := range []gen.Field{
		{Name: "rank", Zipf: &gen.Zipf{N: 3, S: 1}, Null: 0.3}, {Name: "sent", Stamp: gen.Sent, Null: 0.3},
		{Name: "made", Stamp: gen.Created}, {Name: "kind", Choice: []gen.Choice{{"a", 1}, {"b", 2}}, Null: 0.3},
		{Name: "fill", Text: 1}, {Name: "number", Sequence: new(int64)}, {Name: "attempt", Retry: true},
		{Name: "place", Position: true, Null: rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "no place")},
	} {
		if rapid.Bool().Draw(t, field.Name) {
			spec.Fields = append(spec.Fields, field)
		}
	}
	keys := [][]string{{"user"}, {"user", "color"}, {"color"}}
	for _, field := range spec.Fields[3:] {
		if field.Stamp == "" {
			keys = append(keys, []string{field.Name}, []string{"user", field.Name})
		}
	}
	if rapid.Bool().Draw(t, "unique") {
		id := gen.Field{Name: "id", UUID: true}
		id.Reuse = rapid.SampledFrom([]*gen.Reuse{
			nil, nil, {Rate: 0.5}, {Rate: 0.3, After: delay("reused after")}, {Rate: 0.7, Constant: true},
		}).Draw(t, "reuse")
		spec.Fields = append(spec.Fields, id)
		keys = [][]string{{"id"}, {"user", "id"}}
	}
	spec.Key = rapid.SampledFrom(keys).Draw(t, "key")
	for range rapid.IntRange(0, 2).Draw(t, "silences") {
		spec.Silent = append(spec.Silent, gen.Silence{
			Partition: rapid.IntRange(0, partitions-1).Draw(t, "silent"),
			From:      span("from", 0, 60*second),
			For:       span("for", 1, 30*second),
		})
	}
	for range rapid.IntRange(0, 2).Draw(t, "outages") {
		spec.Outage = append(spec.Outage, gen.Outage{
			Partition: rapid.IntRange(0, partitions-1).Draw(t, "out"),
			From:      span("from", 0, 60*second),
			For:       span("for", 1, 30*second),
			Flush:     200,
		})
	}
	for range rapid.IntRange(0, 3).Draw(t, "rules") {
		d := gen.Duplicate{
			Origin:  "copy",
			Rate:    rapid.SampledFrom([]float64{0, 0.1, 1}).Draw(t, "share"),
			Delay:   delay("delay"),
			Restamp: rapid.Bool().Draw(t, "restamp"),
			NewID:   spec.Key[len(spec.Key)-1] == "id" && rapid.Bool().Draw(t, "new id"),
			Copies: rapid.SampledFrom([]gen.Copies{
				{}, {}, {Count: 3}, {Geometric: 2}, {Zipf: &gen.Zipf{N: 30, S: 1}},
			}).Draw(t, "copies"),
			OtherPartition: partitions > 1 && rapid.Bool().Draw(t, "other partition"),
			SameOffset:     rapid.Bool().Draw(t, "same offset"),
			SameTransport:  rapid.Bool().Draw(t, "same transport"),
		}
		d.ConstantID = d.NewID && rapid.Bool().Draw(t, "constant id")
		if rapid.IntRange(0, 3).Draw(t, "flood") == 0 {
			d.Flood = &gen.Flood{From: span("range from", 0, 30*second), To: span("range to", 30*second+1, 60*second),
				At: span("at", 60*second, 90*second), Speed: rapid.SampledFrom([]float64{0.1, 100}).Draw(t, "speed")}
		}
		for _, field := range []string{"user", "price", "color", "rank", "kind", "fill"} {
			there := slices.ContainsFunc(spec.Fields, func(f gen.Field) bool { return f.Name == field })
			if there && !slices.Contains(spec.Key, field) && rapid.Bool().Draw(t, "change") {
				d.Change = append(d.Change, field)
			}
		}
		spec.Duplicates = append(spec.Duplicates, d)
	}
	drawSources(t, &spec)
	if last := spec.Fields[len(spec.Fields)-1]; last.Reuse != nil && spec.PartitionBy == "" {
		spec.Silent, spec.Finished = nil, nil
	}
	return spec
}
