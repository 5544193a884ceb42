package gen_test

import (
	"encoding/binary"
	"testing"
	"time"

	"deduplab/gen"
	"deduplab/stream"
)

// benchSpec is a workload at 50,000 rows a second of virtual time in which one row in 250 is a copy.
func benchSpec(rows int) gen.Spec {
	const rate = 50_000
	s := ordersSpec()
	s.Rate = rate
	s.Duration = stream.Time(rows / rate * 1000)
	s.Partitions, s.Silent, s.Outage = 1, nil, nil
	retry := gen.Delay{Kind: gen.Lognormal, Low: 2 * second, High: 40 * minute, P1: 0.5, P2: 0.999, Cap: 3 * hour}
	s.Duplicates = []gen.Duplicate{{Origin: "producer-retry", Rate: 0.004, Delay: retry}}
	return s
}

// BenchmarkDelivery makes 10 million rows (key, event time, price) in arrival order and compares with a bare Go map
// that looks up and inserts the same keys.
func BenchmarkDelivery(b *testing.B) {
	const rows = 10_000_000
	work, err := gen.New(benchSpec(rows), 1)
	if err != nil {
		b.Fatal(err)
	}
	price := work.Schema().Index("price")
	buffer := make([]stream.Row, 64)
	var made, looped int
	var making, looping time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		for in := work.Stream(); ; {
			n, err := in.Next(buffer)
			if err != nil {
				b.Fatal(err)
			}
			if n == 0 {
				break
			}
			for i := range buffer[:n] {
				buffer[i].Order = work.Order(buffer[i].Tag, price)
			}
			made += n
		}
		making += time.Since(start)

		b.StopTimer()
		start = time.Now()
		looped += bareMap(rows)
		looping += time.Since(start)
		b.StartTimer()
	}
	perRow := float64(making.Nanoseconds()) / float64(made)
	perLoop := float64(looping.Nanoseconds()) / float64(looped)
	b.ReportMetric(perRow, "ns/row")
	b.ReportMetric(perLoop, "map-ns/row")
	b.ReportMetric(perRow/perLoop, "ratio")
}

// BenchmarkSizing makes the stream by which a job is sized: 50,000 events a second, one in 250 sent again, ids of 16
// bytes, lognormal delays, and of each row the key, the event time and one of two kinds: a number, read as an
// operator reads a column that it orders by, or a text that is part of the key.
func BenchmarkSizing(b *testing.B) {
	const rows = 2_000_000
	lognormal := gen.Delay{Kind: gen.Lognormal, Low: 40, High: 8 * second, P1: 0.5, P2: 0.999, Cap: 5 * minute}
	retry := gen.Delay{Kind: gen.Lognormal, Low: 2 * second, High: 40 * minute, P1: 0.5, P2: 0.999, Cap: 3 * hour}
	sizing := func(kind gen.Field, key ...string) gen.Workload {
		kind.Name = "kind"
		work, err := gen.New(gen.Spec{
			Start: 1767225600000, Duration: rows / 50, Rate: 50_000, Partitions: 1, Transport: lognormal,
			Fields: []gen.Field{{Name: "id", UUID: true}, kind}, Key: key, EventTime: gen.EventTime{Field: "ts"},
			Duplicates: []gen.Duplicate{{Origin: "retry", Rate: 0.004, Delay: retry}},
		}, 1)
		if err != nil {
			b.Fatal(err)
		}
		return work
	}
	number := gen.Field{Int: &[2]int64{0, 1}}
	text := gen.Field{Choice: []gen.Choice{{Text: "click", Weight: 1}, {Text: "view", Weight: 1}}}
	for _, c := range []struct {
		name string
		work gen.Workload
		read func(gen.Workload, *stream.Row)
	}{
		{"number", sizing(number, "id"), func(w gen.Workload, r *stream.Row) { r.Order = w.Order(r.Tag, 1) }},
		{"key", sizing(text, "id", "kind"), func(gen.Workload, *stream.Row) {}},
	} {
		b.Run("kind="+c.name, func(b *testing.B) {
			buffer := make([]stream.Row, 64)
			made := 0
			for b.Loop() {
				for in := c.work.Stream(); ; {
					n, err := in.Next(buffer)
					if err != nil {
						b.Fatal(err)
					}
					if n == 0 {
						break
					}
					for i := range buffer[:n] {
						c.read(c.work, &buffer[i])
					}
					made += n
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(made), "ns/row")
		})
	}
}

// bareMap is the yardstick: one row in 250 repeats the key of an earlier one.
func bareMap(rows int) int {
	seen := map[[16]byte]int64{}
	var key [16]byte
	for i := range rows {
		n := uint64(i)
		if i%250 == 249 {
			n -= 200
		}
		binary.LittleEndian.PutUint64(key[:8], stream.Mix(n))
		binary.LittleEndian.PutUint64(key[8:], stream.Mix(^n))
		if _, ok := seen[key]; !ok {
			seen[key] = int64(i)
		}
	}
	return rows
}

func BenchmarkContent(b *testing.B) {
	benchLookup(b, func(work gen.Workload, tag stream.Tag) { work.Content(tag) })
}

func BenchmarkArrival(b *testing.B) {
	benchLookup(b, func(work gen.Workload, tag stream.Tag) { work.Arrival(tag) })
}

func BenchmarkRecord(b *testing.B) {
	benchLookup(b, func(work gen.Workload, tag stream.Tag) { work.Record(tag) })
}

// benchLookup measures a look-up by tag, over the tags of a stream with silences and outages.
func benchLookup(b *testing.B, lookup func(gen.Workload, stream.Tag)) {
	work, err := gen.New(ordersSpec(), 1)
	if err != nil {
		b.Fatal(err)
	}
	tags := make([]stream.Tag, 0, 1<<16)
	buffer := make([]stream.Row, 64)
	for in := work.Stream(); len(tags)+64 <= cap(tags); {
		n, err := in.Next(buffer)
		if err != nil || n == 0 {
			b.Fatal(n, err)
		}
		for _, row := range buffer[:n] {
			tags = append(tags, row.Tag)
		}
	}
	i := 0
	for b.Loop() {
		lookup(work, tags[i%len(tags)])
		i++
	}
}
