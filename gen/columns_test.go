package gen_test

import (
	"math"
	"testing"

	"deduplab/gen"
	"deduplab/stream"
)

// TestFieldShares states how often a field has a value.
func TestFieldShares(t *testing.T) {
	harmonic := 0.0 // of the 10,000 ranks
	for rank := 1; rank <= 10_000; rank++ {
		harmonic += 1 / float64(rank)
	}
	tests := []struct {
		name  string
		field gen.Field
		is    func(stream.Value) bool
		share float64
	}{
		{"weighted choice", gen.Field{Choice: []gen.Choice{{"a", 3}, {"b", 1}}},
			func(v stream.Value) bool { return v.Text == "b" }, 0.25},
		{"first rank", gen.Field{Zipf: &gen.Zipf{N: 10_000, S: 1}},
			func(v stream.Value) bool { return v.Int == 1 }, 1 / harmonic},
		{"tenth rank", gen.Field{Zipf: &gen.Zipf{N: 10_000, S: 1}},
			func(v stream.Value) bool { return v.Int == 10 }, 0.1 / harmonic},
		{"ranks above 5000", gen.Field{Zipf: &gen.Zipf{N: 10_000, S: 1}},
			func(v stream.Value) bool { return v.Int > 5000 }, math.Ln2 / harmonic},
		{"flat zipf", gen.Field{Zipf: &gen.Zipf{N: 10_000}}, func(v stream.Value) bool { return v.Int > 9000 }, 0.1},
		{"ranks beyond the last", gen.Field{Zipf: &gen.Zipf{N: 1 << 40, S: 0.5}},
			func(v stream.Value) bool { return v.Int < 1 || v.Int > 1<<40 }, 0},
		{"quarter of many ranks", gen.Field{Zipf: &gen.Zipf{N: 1 << 40, S: 0.5}},
			func(v stream.Value) bool { return v.Int <= 1<<38 }, 0.5},
		{"null", gen.Field{Int: &[2]int64{1, 4}, Null: 0.2}, func(v stream.Value) bool { return v.Null }, 0.2},
		{"one of four unless null", gen.Field{Int: &[2]int64{1, 4}, Null: 0.2},
			func(v stream.Value) bool { return v.Int == 1 }, 0.2},
		{"always null", gen.Field{Text: 5, Null: 1}, func(v stream.Value) bool { return v.Null }, 1},
		{"text of a size", gen.Field{Text: 200}, func(v stream.Value) bool { return len(v.Text) == 200 }, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			const events = 40_000
			test.field.Name = "x"
			spec := ordersSpec()
			spec.Fields = append(spec.Fields, test.field)
			work := newWorkload(t, spec, 9)
			found := 0
			for event := range uint64(events) {
				if test.is(work.Record(stream.NewTag(event, 0, 0))[len(spec.Fields)-1]) {
					found++
				}
			}
			if test.share == 0 || test.share == 1 {
				if float64(found) != test.share*events {
					t.Errorf("%d of %d", found, events)
				}
				return
			}
			near(t, "values", found, test.share*events)
		})
	}
}

// TestSequence states that each event has the number after that of the event before it, also where a silence has kept
// others from being created.
func TestSequence(t *testing.T) {
	spec := ordersSpec()
	spec.Fields = append(spec.Fields, gen.Field{Name: "n", Sequence: new(int64(1000))})
	spec.Key = []string{"n"}
	spec.Duplicates = spec.Duplicates[:1]
	work := newWorkload(t, spec, 9)
	rows := collect(t, work)
	for _, row := range rows {
		if got, want := work.Order(row.Tag, 4), 1000+int64(row.Tag.Event()); got != want {
			t.Fatalf("event %d has the number %d, want %d", row.Tag.Event(), got, want)
		}
	}
}

// TestStamps states that a copy knows when it was sent, and when its original was created.
func TestStamps(t *testing.T) {
	spec := ordersSpec()
	spec.Duration, spec.Transport = 10*minute, gen.Delay{Low: 7}
	spec.Silent, spec.Outage = nil, nil
	made, sent := gen.Field{Name: "made", Stamp: gen.Created}, gen.Field{Name: "sent", Stamp: gen.Sent}
	spec.Fields = append(spec.Fields, made, sent)
	spec.Duplicates = []gen.Duplicate{{Origin: "copy", Rate: 1, Delay: gen.Delay{Low: 5 * second}}}
	work := newWorkload(t, spec, 9)
	for _, row := range collect(t, work) {
		made, sent := work.Order(row.Tag, 4), work.Order(row.Tag, 5)
		if made != int64(row.Event) || sent != int64(row.Arrival-7) {
			t.Fatalf("%+v was made at %d and sent at %d", row, made, sent)
		}
	}
}
