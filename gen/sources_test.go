package gen_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"deduplab/gen"
	"deduplab/stream"
)

// sourcesSpec is a plain stream of an hour in four partitions, ten originals a second, with one retry in ten. Its rows
// tell when they were created and sent.
func sourcesSpec() gen.Spec {
	return gen.Spec{
		Start: 1767225600000, Duration: hour, Rate: 10,
		Fields: []gen.Field{
			{Name: "id", UUID: true}, {Name: "made", Stamp: gen.Created}, {Name: "sent", Stamp: gen.Sent},
			{Name: "city", Zipf: &gen.Zipf{N: 1000, S: 0.5}},
		},
		Key: []string{"id"}, EventTime: gen.EventTime{Field: "ts"}, Partitions: 4,
		Transport: gen.Delay{Kind: gen.Uniform, Low: 20, High: 400},
		Duplicates: []gen.Duplicate{
			{Origin: "retry", Rate: 0.1, Delay: gen.Delay{Kind: gen.Exponential, Low: minute, Cap: 30 * minute}},
		},
	}
}

// The columns of sourcesSpec.
const madeColumn, sentColumn = 1, 2

func TestPartitionShare(t *testing.T) {
	spec := sourcesSpec()
	spec.PartitionShare = []float64{0.4, 0.3, 0.2, 0.1}
	spec.Silent = []gen.Silence{{Partition: 3, From: 30 * minute, For: minute}}
	spec.Outage = []gen.Outage{{Partition: 0, From: 10 * minute, For: minute, Flush: 20}}
	for _, by := range []string{"", "id", "city"} {
		spec.PartitionBy = by
		work := newWorkload(t, spec, 1)
		rows := collect(t, work)
		checkLookups(t, work, rows)
		if by == "city" {
			continue // a city is in one partition, and there are too few of them to make the shares exact
		}
		counts := make([]int, 4)
		for _, row := range rows {
			if row.Tag.Origin() == 0 {
				counts[row.Partition]++
			}
		}
		for partition, n := range counts {
			seconds := 3600.
			if partition == 3 {
				seconds -= 60
			}
			near(t, "originals of a partition by "+by, n, 10*seconds*spec.PartitionShare[partition])
		}
	}
	even := sourcesSpec()
	unchanged := collect(t, newWorkload(t, even, 1))
	even.PartitionShare = []float64{0.25, 0.25, 0.25, 0.25}
	if !slices.Equal(collect(t, newWorkload(t, even, 1)), unchanged) {
		t.Error("equal shares make another stream than none")
	}
}

// TestSlowPartition holds a stream against the same one without the slowness.
func TestSlowPartition(t *testing.T) {
	spec := sourcesSpec()
	plain := newWorkload(t, spec, 2)
	spec.Slow = []gen.Slow{
		{Partition: 1, Delay: gen.Delay{Kind: gen.Uniform, Low: second, High: 5 * second},
			From: 10 * minute, For: 20 * minute},
		{Partition: 2, Delay: gen.Delay{Low: 7}},
		{Partition: 1, Delay: gen.Delay{Low: minute}, From: 50 * minute},
	}
	work := newWorkload(t, spec, 2)
	rows := collect(t, work)
	checkLookups(t, work, rows)
	spanned, total, originals := 0, stream.Time(0), 0
	for _, row := range rows {
		added := row.Arrival - plain.Arrival(row.Tag)
		sent := stream.Time(work.Order(row.Tag, sentColumn)) - spec.Start
		switch {
		case row.Partition == 1 && sent >= 50*minute:
			if added != minute {
				t.Fatalf("a row sent at %v takes %v longer", sent, added)
			}
		case row.Partition == 1 && sent >= 10*minute && sent < 30*minute:
			if added < second || added > 5*second {
				t.Fatalf("a row sent at %v takes %v longer", sent, added)
			}
			spanned, total = spanned+1, total+added
			if row.Tag.Origin() == 0 {
				originals++
			}
		case row.Partition == 2:
			if added != 7 {
				t.Fatalf("a row sent at %v takes %v longer", sent, added)
			}
		case added != 0:
			t.Fatalf("a row of partition %d sent at %v takes %v longer", row.Partition, sent, added)
		}
	}
	near(t, "originals in the span", originals, 2.5*20*60)
	if mean := total / stream.Time(spanned); mean < 2920 || mean > 3080 { // four standard deviations are 80 ms
		t.Errorf("rows take %v ms longer in the mean, want 3000", mean)
	}
}

// TestFinishedPartition states that nothing is sent in a partition after its end, and which row is its last.
func TestFinishedPartition(t *testing.T) {
	spec := sourcesSpec()
	spec.Finished = []gen.Finish{{Partition: 2, At: 20 * minute}, {Partition: 0, At: 0}}
	work := newWorkload(t, spec, 3)
	rows := collect(t, work)
	checkLookups(t, work, rows)
	counts, copies, last := make([]int, 4), make([]int, 4), make([]stream.Tag, 4)
	for _, row := range rows {
		if row.Partition == 2 && stream.Time(work.Order(row.Tag, sentColumn)) >= spec.Start+20*minute {
			t.Fatalf("a row of origin %d was sent after the end", row.Tag.Origin())
		}
		last[row.Partition] = row.Tag
		if row.Tag.Origin() == 0 {
			counts[row.Partition]++
		} else {
			copies[row.Partition]++
		}
	}
	near(t, "originals of partition 1", counts[1], 2.5*3600)
	near(t, "originals of partition 2", counts[2], 2.5*20*60)
	near(t, "copies of partition 2", copies[2], 0.1*2.5*19*60) // the last minute's are cut off in the mean
	if counts[0] != 0 {
		t.Errorf("partition 0 has %d rows", counts[0])
	}
	ends := work.Ends()
	if want := []gen.End{{}, {Partition: 2, Rows: counts[2] + copies[2], Last: last[2]}}; !slices.Equal(ends, want) {
		t.Errorf("ends are %+v, want %+v", ends, want)
	}
	if ends := newWorkload(t, sourcesSpec(), 3).Ends(); len(ends) > 0 {
		t.Errorf("partitions that are not finished end: %+v", ends)
	}
}

// TestClock holds event times against the true moments of rows.
func TestClock(t *testing.T) {
	spec := sourcesSpec()
	spec.Duplicates[0].Restamp = true
	plain := collect(t, newWorkload(t, spec, 4))
	spec.Clock = []gen.Clock{
		{Partition: 0, Skew: 30 * second, Drift: 50}, {Partition: 1, Skew: -30 * second}, {Partition: 2, Drift: -0.5},
	}
	work := newWorkload(t, spec, 4)
	rows := collect(t, work)
	checkLookups(t, work, rows)
	for i, row := range rows {
		if row.Arrival != plain[i].Arrival || row.Tag != plain[i].Tag || row.Key != plain[i].Key {
			t.Fatalf("row %d: a clock changes more than event times", i)
		}
		moment := stream.Time(work.Order(row.Tag, madeColumn))
		if row.Tag.Origin() > 0 {
			moment = stream.Time(work.Order(row.Tag, sentColumn)) // restamped
		}
		since := moment - spec.Start
		faults := []stream.Time{30*second + since*50/1_000_000, -30 * second, (-since - 1_999_999) / 2_000_000, 0}
		want := moment + faults[row.Partition]
		if row.Event != want {
			t.Fatalf("a row of partition %d at %v has the event time %v, want %v", row.Partition, moment, row.Event, want)
		}
	}

	spec.EventTime.LogAppend = true
	for _, row := range collect(t, newWorkload(t, spec, 4)) {
		if row.Event != row.Arrival {
			t.Fatalf("the log stamps a row that arrives at %v with %v", row.Arrival, row.Event)
		}
	}
}

func TestEventTimeResolution(t *testing.T) {
	for _, restamp := range []bool{false, true} {
		spec := sourcesSpec()
		spec.Start += 437 // not on a whole second
		spec.Duplicates[0].Restamp = restamp
		spec.Duplicates[0].Delay = gen.Delay{Kind: gen.Uniform, High: 2 * second}
		spec.EventTime.Resolution = second
		work := newWorkload(t, spec, 5)
		rows := collect(t, work)
		times := map[stream.Time]int{}
		for _, row := range rows {
			moment := work.Order(row.Tag, madeColumn)
			if restamp && row.Tag.Origin() > 0 {
				moment = work.Order(row.Tag, sentColumn)
			}
			if row.Event != stream.Time(moment/1000*1000) {
				t.Fatalf("%d has the event time %d", moment, row.Event)
			}
			if row.Tag.Origin() == 0 {
				times[row.Event]++
			}
		}
		if len(times) != 3601 {
			t.Errorf("%d event times in an hour that begins within a second", len(times))
		}
		// Where nothing else tells, a copy that is restamped within its original's second equals it.
		spec.Fields = spec.Fields[:2]
		work = newWorkload(t, spec, 5)
		checkLookups(t, work, collect(t, work))
	}
}

// TestNullEventTime states that an event time is NULL in all rows of an event or in none.
func TestNullEventTime(t *testing.T) {
	for _, logAppend := range []bool{false, true} {
		spec := sourcesSpec()
		spec.Fields = spec.Fields[:2] // a copy is exact
		plain := collect(t, newWorkload(t, spec, 6))
		spec.EventTime.Null, spec.EventTime.LogAppend = 0.02, logAppend
		work := newWorkload(t, spec, 6)
		rows := collect(t, work)
		checkLookups(t, work, rows)
		events, copied, nulls := map[uint64]bool{}, map[uint64]bool{}, 0
		for i, row := range rows {
			if row.Tag != plain[i].Tag || row.Arrival != plain[i].Arrival {
				t.Fatalf("row %d is another one", i)
			}
			if value := work.Record(row.Tag)[2]; value.Null != (row.Event == stream.NullTime) {
				t.Fatalf("row %d has the event time %v, but the record says %v", i, row.Event, value)
			}
			if row.Tag.Origin() == 0 {
				events[row.Tag.Event()] = row.Event == stream.NullTime
			} else {
				copied[row.Tag.Event()] = row.Event == stream.NullTime
			}
		}
		for event, null := range events {
			if is, ok := copied[event]; ok && is != null {
				t.Fatalf("event %d: NULL is %v for the original and %v for its copy", event, null, is)
			}
			if null {
				nulls++
			}
		}
		near(t, "events without event time", nulls, 0.02*36_000)
	}
}

// TestHot counts the values of a field of which a share of the events has one of three.
func TestHot(t *testing.T) {
	tests := []struct {
		name   string
		field  gen.Field
		others int // how many events another value has at most, in the mean
	}{
		{"uuid", gen.Field{UUID: true}, 1},
		{"int", gen.Field{Int: &[2]int64{1, 1000}}, 80},
		{"zipf", gen.Field{Zipf: &gen.Zipf{N: 1_000_000, S: 0.2}}, 5},
		{"text", gen.Field{Text: 12}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			const events, share, keys = 100_000, 0.2, 3
			spec := sourcesSpec()
			spec.Duration *= 4
			test.field.Name, test.field.Hot = "hot", &gen.Hot{Share: share, Keys: keys}
			spec.Fields, spec.Key = append(spec.Fields, test.field), []string{"hot"}
			work := newWorkload(t, spec, 7)
			byKey, byValue := map[stream.Key]int{}, map[stream.Value]int{}
			for _, row := range collect(t, work) {
				if row.Tag.Origin() == 0 && row.Tag.Event() < events {
					byKey[row.Key]++
					byValue[work.Record(row.Tag)[4]]++
				}
			}
			counts := slices.SortedFunc(maps.Values(byValue), func(a, b int) int { return b - a })
			if !slices.Equal(slices.SortedFunc(maps.Values(byKey), func(a, b int) int { return b - a }), counts) {
				t.Error("keys and values are not alike")
			}
			for _, n := range counts[:keys] {
				near(t, "events of a hot value", n, share/keys*events)
			}
			if most := counts[keys]; most > 2*test.others+10 {
				t.Errorf("the first value that is not hot has %d events", most)
			}
		})
	}
}

// drawSources adds to a random spec what sets its partitions and event times apart.
func drawSources(t *rapid.T, s *gen.Spec) {
	maybe := func(name string) bool { return rapid.IntRange(0, 2).Draw(t, name) == 0 }
	partition := func() int { return rapid.IntRange(0, s.Partitions-1).Draw(t, "partition") }
	span := func(low, high stream.Time) stream.Time {
		return stream.Time(rapid.Int64Range(int64(low), int64(high)).Draw(t, "span"))
	}
	if maybe("shares") {
		s.PartitionShare = make([]float64, s.Partitions)
		rest := 1.0
		for i := range s.PartitionShare[1:] {
			s.PartitionShare[i] = rest / 4
			rest -= rest / 4
		}
		s.PartitionShare[s.Partitions-1] = rest
	}
	if maybe("slow") {
		s.Slow = append(s.Slow,
			gen.Slow{Partition: partition(), Delay: gen.Delay{Kind: gen.Uniform, Low: 1, High: 9000}, From: span(0, 60*second)},
			gen.Slow{Partition: partition(), Delay: gen.Delay{Low: 700}, From: span(0, 60*second), For: span(0, 60*second)})
	}
	if maybe("finished") {
		s.Finished = []gen.Finish{{Partition: partition(), At: span(0, s.Duration-1)}}
	}
	if maybe("clock") {
		s.Clock = []gen.Clock{{Partition: partition(), Skew: span(-5*second, 5*second),
			Drift: rapid.Float64Range(-10_000, 10_000).Draw(t, "drift")}}
	}
	if maybe("resolution") {
		s.EventTime.Resolution = rapid.SampledFrom([]stream.Time{1, 10, second, 7 * second}).Draw(t, "size")
	}
	if maybe("null") {
		s.EventTime.Null = rapid.SampledFrom([]float64{0.2, 1}).Draw(t, "nulls")
	}
	renewed := slices.ContainsFunc(s.Duplicates, func(d gen.Duplicate) bool { return d.NewID })
	for i := range s.Fields {
		f := &s.Fields[i]
		drawn := f.Sequence == nil && f.Stamp == "" && !f.Retry && !f.Position
		if drawn && f.Reuse == nil && !(f.UUID && renewed) && maybe("hot") {
			f.Hot = &gen.Hot{Share: rapid.SampledFrom([]float64{0.3, 1}).Draw(t, "hot share"), Keys: 2}
		}
	}
}
