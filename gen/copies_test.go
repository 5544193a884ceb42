package gen_test

import (
	"math"
	"slices"
	"testing"

	"deduplab/gen"
	"deduplab/stream"
)

// copiesSpec is a short workload with one rule and a column of each kind that tells rows apart.
func copiesSpec(d gen.Duplicate) gen.Spec {
	d.Origin = "copy"
	return gen.Spec{
		Start: 1767225600000, Duration: 10 * minute, Rate: 10, Partitions: 3,
		Fields: []gen.Field{
			{Name: "id", UUID: true},
			{Name: "amount", Int: &[2]int64{0, 1 << 40}},
			{Name: "attempt", Retry: true},
			{Name: "position", Position: true},
			{Name: "sent_at", Stamp: gen.Sent},
		},
		Key: []string{"id"}, EventTime: gen.EventTime{Field: "ts"},
		Transport:  gen.Delay{Kind: gen.Uniform, High: second},
		Duplicates: []gen.Duplicate{d},
	}
}

// TestCopiesPerEvent holds the number of copies against its distribution.
func TestCopiesPerEvent(t *testing.T) {
	for name, test := range map[string]struct {
		copies    gen.Copies
		mean      float64
		most      int64
		deviation float64 // of the number of copies of one event
	}{
		"one":       {gen.Copies{}, 1, 1, 0},
		"three":     {gen.Copies{Count: 3}, 3, 3, 0},
		"geometric": {gen.Copies{Geometric: 1.5}, 1.5, 21, math.Sqrt(0.75)},
		"zipf":      {gen.Copies{Zipf: &gen.Zipf{N: 50, S: 2}}, 4.4992 / 1.62513, 50, 5},
	} {
		t.Run(name, func(t *testing.T) {
			spec := copiesSpec(gen.Duplicate{Rate: 0.5, Copies: test.copies,
				Delay: gen.Delay{Kind: gen.Uniform, High: minute}, NewID: true, Change: []string{"amount"}})
			spec.Duplicates = append(spec.Duplicates, spec.Duplicates[0])
			spec.Duplicates[1].Where = &gen.Where{Field: "amount", Op: "<", Value: 1 << 39}
			work := newWorkload(t, spec, 9)
			rows := collect(t, work)
			checkLookups(t, work, rows)
			if got := test.copies.Mean(); math.Abs(got-test.mean) > 0.001*test.mean || test.copies.Most() != test.most {
				t.Errorf("mean %v, most %d, want %v and %d", got, test.copies.Most(), test.mean, test.most)
			}
			perEvent := map[uint64]int{}
			for _, row := range rows {
				if row.Tag.Origin() == 1 {
					perEvent[row.Tag.Event()]++
				}
			}
			copies := 0
			for _, n := range perEvent {
				copies += n
			}
			mean := float64(copies) / float64(len(perEvent))
			if math.Abs(mean-test.mean) > 4*test.deviation/math.Sqrt(float64(len(perEvent))) {
				t.Errorf("%v copies of an event, want %v", mean, test.mean)
			}
		})
	}
}

// TestCopiesOfOneRule states what the copies that a rule makes of one event have in common, and what they have not.
func TestCopiesOfOneRule(t *testing.T) {
	id, amount, attempt, position, sent := 0, 1, 2, 3, 4
	for _, test := range []struct {
		name     string
		d        gen.Duplicate
		distinct map[int]int // of three copies and the original, by column
		other    bool
	}{
		{"written anew", gen.Duplicate{},
			map[int]int{id: 1, amount: 1, attempt: 4, position: 4, sent: 4}, false},
		{"read again", gen.Duplicate{SameOffset: true},
			map[int]int{id: 1, amount: 1, attempt: 1, position: 1, sent: 1}, false},
		{"new ids", gen.Duplicate{NewID: true, Change: []string{"amount"}},
			map[int]int{id: 4, amount: 4, attempt: 4, position: 4, sent: 4}, false},
		{"a constant id", gen.Duplicate{ConstantID: true, OtherPartition: true},
			map[int]int{id: 2, amount: 1, attempt: 4, position: 4, sent: 4}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.d.Rate, test.d.Copies.Count = 1, 3
			test.d.Delay = gen.Delay{Kind: gen.Uniform, Low: second, High: 1 << 30}
			work := newWorkload(t, copiesSpec(test.d), 4)
			rows := collect(t, work)
			checkLookups(t, work, rows)
			constant := ""
			for event := range uint64(100) {
				tags := work.Rows(nil, event)
				for column, want := range test.distinct {
					values := map[stream.Value]bool{}
					for _, tag := range tags {
						values[work.Record(tag)[column]] = true
					}
					if len(values) != want {
						t.Fatalf("event %d: %d values of column %d in 4 rows, want %d", event, len(values), column, want)
					}
				}
				original := work.Partition(stream.NewTag(event, 0, 0))
				for _, tag := range tags {
					if other := work.Partition(tag) != original; tag.Copy() > 0 && other != test.other {
						t.Fatalf("copy %d is in partition %d, the original in %d", tag.Copy(), work.Partition(tag), original)
					}
					text := work.Record(tag)[id].Text
					if tag.Copy() > 0 && test.d.ConstantID && constant != "" && text != constant {
						t.Fatalf("ids %s and %s", text, constant)
					} else if tag.Copy() > 0 {
						constant = text
					}
				}
			}
		})
	}
}

// TestSameTransport: a copy that travels as long as its original arrives after it by the delay, and one that does not,
// by another span.
func TestSameTransport(t *testing.T) {
	for _, same := range []bool{true, false} {
		spec := copiesSpec(gen.Duplicate{Rate: 1, SameTransport: same, Delay: gen.Delay{Low: minute}})
		spec.Transport = gen.Delay{Kind: gen.Uniform, Low: second, High: 30 * second}
		work := newWorkload(t, spec, 4)
		rows := collect(t, work)
		checkLookups(t, work, rows)
		first, others := map[uint64]stream.Time{}, 0
		for _, row := range rows {
			if row.Tag.Origin() == 0 {
				first[row.Tag.Event()] = row.Arrival
			} else if row.Arrival-first[row.Tag.Event()] != minute {
				others++
			}
		}
		if (others == 0) != same || len(first) == 0 {
			t.Errorf("same transport %v: %d copies of %d arrive after another span than the delay", same, others, len(first))
		}
	}
}

// TestPositionKey: under a key of the position in the log a record that is read again has its original's key, one that
// is written anew does not.
func TestPositionKey(t *testing.T) {
	for _, again := range []bool{false, true} {
		spec := copiesSpec(gen.Duplicate{Rate: 1, SameOffset: again, Copies: gen.Copies{Count: 2}})
		spec.Key = []string{"position"}
		work := newWorkload(t, spec, 4)
		keys := map[stream.Key]bool{}
		rows := collect(t, work)
		for _, row := range rows {
			keys[row.Key] = true
		}
		if want := map[bool]int{true: len(rows) / 3, false: len(rows)}[again]; len(keys) != want || work.NewKey(1) == again {
			t.Errorf("read again %v: %d keys in %d rows, new key %v", again, len(keys), len(rows), work.NewKey(1))
		}
	}
}

// TestFlood re-sends minutes 2 to 6 from minute 8 on, at 200 rows a second.
func TestFlood(t *testing.T) {
	flood := gen.Flood{At: 8 * minute, From: 2 * minute, To: 6 * minute, Speed: 200}
	spec := copiesSpec(gen.Duplicate{Rate: 1, Flood: &flood})
	spec.Transport = gen.Delay{}
	spec.Load = gen.Load{Steps: []gen.LoadStep{{From: 3 * minute, Times: 2}}}
	work := newWorkload(t, spec, 4)
	rows := collect(t, work)
	checkLookups(t, work, rows)
	var last stream.Time
	halves := [2]int{}
	rowsOfMinutes := 10. * (60 + 3*120)
	for _, row := range rows {
		if row.Tag.Origin() == 0 {
			continue
		}
		created, arrival := row.Event-spec.Start, row.Arrival-spec.Start
		if created < 2*minute || created >= 6*minute || arrival < 8*minute || row.Event < last-20 { // ties
			t.Fatalf("a copy of %d ms at %d ms, after that of %d ms", created, arrival, last-spec.Start)
		}
		last = row.Event
		halves[min(int((arrival-8*minute)*200*2/1000)/int(rowsOfMinutes), 1)]++
	}
	near(t, "copies in the first half of the flood", halves[0], rowsOfMinutes/2)
	near(t, "copies in the second half", halves[1], rowsOfMinutes/2)
}

// TestReuse: events with an id that is not their own are events of their own.
func TestReuse(t *testing.T) {
	for name, reuse := range map[string]gen.Reuse{
		"an earlier id": {Rate: 0.1, After: gen.Delay{Kind: gen.Uniform, Low: minute, High: 2 * minute}},
		"a constant id": {Rate: 0.1, Constant: true},
	} {
		t.Run(name, func(t *testing.T) {
			spec := copiesSpec(gen.Duplicate{Rate: 0.2})
			spec.Fields[0].Reuse = &reuse
			spec.Silent = []gen.Silence{{Partition: 1, From: minute, For: minute}}
			spec.PartitionBy = "amount" // as an id that is used again cannot pick a partition that is silent
			work := newWorkload(t, spec, 4)
			rows := collect(t, work)
			checkLookups(t, work, rows)
			created := map[stream.Key][]stream.Time{}
			events := 0
			for event := range uint64(len(rows)) {
				i := slices.IndexFunc(rows, func(r stream.Row) bool { return r.Tag == stream.NewTag(event, 0, 0) })
				if i < 0 {
					break
				}
				events++
				created[rows[i].Key] = append(created[rows[i].Key], rows[i].Event-spec.Start)
				if !work.ReusedID(event) {
					t.Fatal("the key holds an id that is reused")
				}
			}
			most := 0
			for _, at := range created {
				most = max(most, len(at))
				for i := 1; i < len(at) && !reuse.Constant && at[i-1] > 3*minute; i++ {
					if age := at[i] - at[i-1]; age > 150*second {
						t.Errorf("an id was used again after %d ms", age)
					}
				}
			}
			near(t, "ids that are not new", events-len(created), float64(events)/10)
			if few := most < 10; few == reuse.Constant {
				t.Errorf("%d events have the most frequent id", most)
			}
		})
	}
}
