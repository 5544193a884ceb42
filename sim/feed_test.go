package sim

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deduplab/gen"
	"deduplab/stream"
)

// arriving makes a workload of rows that arrive at given moments, in one partition each, with their arrival as event
// time. Every row is an event of its own.
func arriving(end stream.Time, at []stream.Time, partition []uint16) *handmade {
	w := rowsOf(end, nil, nil)
	for i := range at {
		w.rows = append(w.rows, stream.Row{Key: stream.Key{Lo: uint64(i)}, Event: at[i], Arrival: at[i],
			Tag: stream.NewTag(uint64(i), 0, 0), Partition: partition[i], First: true})
		w.partitions = max(w.partitions, int(partition[i])+1)
	}
	return w
}

// What happens at one instant, and in which order.
func TestFeedOrder(t *testing.T) {
	for _, c := range []struct {
		story     string
		spec      FeedSpec
		end       stream.Time
		at        []stream.Time
		partition []uint16
		last      []int // by partition that is finished: its last row, -1 if it has none
		want      string
	}{
		{
			story: "a partition that is finished with its last row does not hold back the watermark any longer",
			spec:  FeedSpec{Source: SourceSpec{Readers: 1, Interval: 200}},
			end:   500, at: []stream.Time{100, 150, 300}, partition: []uint16{0, 1, 1}, last: []int{0},
			want: "p0@100 p1@150 r0=150 watermark=150 p1@300 r0=300 watermark=300 span@500 r0=max watermark=max end@500",
		},
		{
			story: "a reader ends with the last row of its last partition",
			spec:  FeedSpec{Source: SourceSpec{Readers: 2, Interval: 200}},
			end:   500, at: []stream.Time{100, 150, 300}, partition: []uint16{0, 1, 1}, last: []int{0},
			want: "p0@100 r0=max p1@150 r1=150 watermark=150 p1@300 r1=300 watermark=300 span@500 r1=max " +
				"watermark=max end@500",
		},
		{
			story: "a partition that is finished before its first row",
			spec:  FeedSpec{Source: SourceSpec{Readers: 2, Interval: 200}},
			end:   500, at: []stream.Time{150}, partition: []uint16{1}, last: []int{-1},
			want: "r0=max p1@150 r1=150 watermark=150 span@500 r1=max watermark=max end@500",
		},
		{
			story: "rows by partition, then the watermark tick, the checkpoint, the sample, the end of span",
			spec:  FeedSpec{Source: SourceSpec{Readers: 1, Interval: 200}, Checkpoint: 200, Sample: 200},
			end:   200, at: []stream.Time{100, 200, 200}, partition: []uint16{0, 0, 1},
			want: "p0@100 p0@200 p1@200 r0=200 watermark=200 checkpoint@200 sample@200 span@200 " +
				"r0=max watermark=max checkpoint@400 end@400",
		},
		{
			story: "a row after the end of the span belongs to the drain: no sample is taken there",
			spec:  FeedSpec{Source: SourceSpec{Readers: 1, Interval: 200}, Sample: 100},
			end:   100, at: []stream.Time{50, 350}, partition: []uint16{0, 0},
			want: "p0@50 sample@100 span@100 r0=50 watermark=50 p0@350 r0=max watermark=max end@350",
		},
		{
			story: "where the rows end early, time goes on to the end of the span",
			spec:  FeedSpec{Source: SourceSpec{Readers: 1, Interval: 200}, Checkpoint: 200},
			end:   500, at: []stream.Time{10}, partition: []uint16{0},
			want: "p0@10 r0=10 watermark=10 checkpoint@200 checkpoint@400 span@500 " +
				"r0=max watermark=max checkpoint@600 end@600",
		},
		{
			story: "without checkpoints the watermark's maximum is the last thing that happens",
			spec:  FeedSpec{Source: SourceSpec{Readers: 2, Interval: 200}},
			end:   100, at: []stream.Time{10, 20}, partition: []uint16{0, 1},
			want: "p0@10 p1@20 span@100 r0=max r1=max watermark=max end@100",
		},
		{
			story: "one reader's watermark is told although the other one holds back the combined one",
			spec:  FeedSpec{Source: SourceSpec{Readers: 2, Interval: 200}},
			end:   300, at: []stream.Time{10, 250}, partition: []uint16{0, 1},
			want: "p0@10 r0=10 p1@250 span@300 r0=max r1=max watermark=max end@300",
		},
	} {
		w := arriving(c.end, c.at, c.partition)
		for p, row := range c.last {
			w.ends = append(w.ends, gen.End{Partition: p, Rows: min(row+1, 1), Last: stream.NewTag(uint64(max(row, 0)), 0, 0)})
		}
		c.spec.Workload = w
		got, err := told(NewFeed(c.spec))
		if err != nil {
			t.Fatal(err)
		}
		if line := strings.Join(got, " "); line != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.story, line, c.want)
		}
	}
}

// drawn is a random workload of up to 4 partitions, with many rows at one instant.
func drawn(t *rapid.T) *handmade {
	n := rapid.IntRange(1, 300).Draw(t, "rows")
	gap := rapid.SampledFrom([]int64{0, 1, 100, 8000}).Draw(t, "longest gap")
	partitions := rapid.IntRange(1, 4).Draw(t, "partitions")
	at, partition := make([]stream.Time, n), make([]uint16, n)
	now := stream.Time(0)
	for i := range at {
		now += stream.Time(rapid.Int64Range(0, gap).Draw(t, "gap"))
		at[i], partition[i] = now, uint16(rapid.IntRange(0, partitions-1).Draw(t, "partition"))
	}
	w := arriving(now, at, partition)
	w.partitions = partitions
	slices.SortStableFunc(w.rows, func(a, b stream.Row) int {
		return cmp.Or(cmp.Compare(a.Arrival, b.Arrival), cmp.Compare(a.Partition, b.Partition))
	})
	return w
}

// read delivers all rows of a workload under a perturbation, and checks what holds under all of them: no row is lost
// or made, each partition keeps its order, and time never falls.
func read(t *rapid.T, w gen.Workload, readers int, p Perturbation) []stream.Row {
	feed := NewFeed(FeedSpec{Workload: w, Source: SourceSpec{Readers: readers, Interval: 200}, Perturbation: p})
	var rows []stream.Row
	for batch := (&Batch{}); ; {
		ok, err := feed.Next(batch)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		rows = append(rows, batch.Rows...)
	}
	for i := 1; i < len(rows); i++ {
		if rows[i].Arrival < rows[i-1].Arrival {
			t.Fatalf("row %d is read at %d, the one before it at %d", i, rows[i].Arrival, rows[i-1].Arrival)
		}
	}
	for p := range w.Partitions() {
		if got, want := tagsOf(rows, p), tagsOf(w.(*handmade).rows, p); !slices.Equal(got, want) {
			t.Fatalf("partition %d is read as\n%v, it holds\n%v", p, got, want)
		}
	}
	return rows
}

func tagsOf(rows []stream.Row, partition int) (tags []stream.Tag) {
	for _, r := range rows {
		if int(r.Partition) == partition {
			tags = append(tags, r.Tag)
		}
	}
	return tags
}

func TestFeedInterleaving(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawn(t)
		skew := rapid.SampledFrom([]int{1, 2, 10, 100, 10_000}).Draw(t, "skew")
		seed := rapid.Uint64().Draw(t, "seed")
		p := Perturbation{Interleave: true, Seed: seed, Skew: skew}
		rows := read(t, w, rapid.IntRange(1, 3).Draw(t, "readers"), p)
		for _, r := range rows {
			due := w.of(r.Tag).Arrival
			if r.Arrival < due || r.Arrival > due+longestLead {
				t.Fatalf("a row that arrives at %d is read at %d", due, r.Arrival)
			}
		}
		if lead := longestLeadOf(w.rows, rows); lead > skew {
			t.Fatalf("a partition leads by %d rows, the skew is %d", lead, skew)
		}
	})
}

// longestLeadOf is the largest number of rows that were read while an earlier one was still waiting.
func longestLeadOf(arrived, read []stream.Row) int {
	position := map[stream.Tag]int{}
	for i, r := range arrived {
		position[r.Tag] = i
	}
	done, oldest, ahead, most := make([]bool, len(arrived)), 0, 0, 0
	for _, r := range read {
		done[position[r.Tag]] = true
		ahead++
		for oldest < len(arrived) && done[oldest] {
			oldest++
			ahead--
		}
		most = max(most, ahead)
	}
	return most
}

// The same seed reads in the same order, and some seed in another one.
func TestFeedInterleavingGoesByItsSeed(t *testing.T) {
	at, partition := make([]stream.Time, 200), make([]uint16, 200)
	for i := range at {
		at[i], partition[i] = stream.Time(i), uint16(i%2)
	}
	order := func(seed uint64) string {
		w := arriving(200, at, partition)
		got, err := told(NewFeed(FeedSpec{Workload: w, Source: SourceSpec{Readers: 1, Interval: 200},
			Perturbation: Perturbation{Interleave: true, Seed: seed, Skew: 100}}))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(got, " ")
	}
	first, again := order(1), order(1)
	if first != again {
		t.Error("one seed gives two orders")
	}
	if first == order(2) {
		t.Error("two seeds give the same order")
	}
}

func TestFeedCatchUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawn(t)
		readers := rapid.IntRange(1, 3).Draw(t, "readers")
		rate := rapid.SampledFrom([]int64{1, 7, 1000, 1_000_000}).Draw(t, "rows a second")
		rows := read(t, w, readers, Perturbation{CatchUp: rate})
		done := make([]int64, readers)
		for _, r := range rows {
			reader := int(r.Partition) % readers
			if want := stream.Time(done[reader] * 1000 / rate); r.Arrival != want {
				t.Fatalf("row %d of reader %d is read at %d, at %d rows a second it should be %d", done[reader], reader,
					r.Arrival, rate, want)
			}
			done[reader]++
		}
	})
}

// A reader polls at most 500 rows of a partition before it turns to its next one.
func TestFeedCatchUpTakesTurns(t *testing.T) {
	const n = 1400
	at, partition := make([]stream.Time, n), make([]uint16, n)
	for i := range at {
		at[i], partition[i] = stream.Time(i), uint16(i%2)
	}
	got, err := told(NewFeed(FeedSpec{Workload: arriving(n, at, partition), Source: SourceSpec{Readers: 1},
		Perturbation: Perturbation{CatchUp: 1_000_000}}))
	if err != nil {
		t.Fatal(err)
	}
	var turns []int
	last := ""
	for _, event := range got {
		p, _, isRow := strings.Cut(event, "@")
		if !isRow || p[0] != 'p' {
			continue
		}
		if p != last {
			turns = append(turns, 0)
		}
		turns[len(turns)-1]++
		last = p
	}
	if want := []int{500, 500, 200, 200}; !slices.Equal(turns, want) {
		t.Errorf("turns of %v rows, want %v", turns, want)
	}
}

// A row is behind while its partition, back from idle, has not caught up with the combined watermark.
func TestFeedBehind(t *testing.T) {
	w := arriving(10_000, []stream.Time{100, 100, 2000, 3000, 4000, 4100, 4200}, []uint16{0, 1, 0, 0, 0, 1, 1})
	w.rows[5].Event, w.rows[6].Event = 150, 4200 // the first one back is old, the next one is not
	feed := NewFeed(FeedSpec{Workload: w, Source: SourceSpec{Readers: 1, Interval: 200, IdleAfter: 1000}})
	var behind []bool
	for batch := (&Batch{}); ; {
		if ok, err := feed.Next(batch); err != nil {
			t.Fatal(err)
		} else if !ok {
			break
		}
		for _, r := range batch.Rows {
			behind = append(behind, r.Behind)
		}
	}
	// Partition 0 was quiet for as long as the idle timeout too, but nothing had passed it meanwhile.
	if want := []bool{false, false, false, false, false, true, true}; !slices.Equal(behind, want) {
		t.Errorf("behind: %v, want %v", behind, want)
	}
}

// A backlog is read from the end of the span on. What arrived longer before it than the retention is gone, and with it
// the events that have no other row.
func TestFeedCatchUpAfterRetention(t *testing.T) {
	rows := []stream.Row{
		{Event: 100, Arrival: 100}, {Event: 200, Arrival: 200}, {Event: 250, Arrival: 300, Partition: 1},
		{Event: 100, Arrival: 499}, {Event: 200, Arrival: 500}, {Event: 800, Arrival: 800},
	}
	for _, c := range []struct {
		story     string
		retention stream.Time
		last      []gen.End
		want      string
		missing   Missing
	}{
		{"no limit", 0, nil, "p0@0 p0@1 p0@2 p0@3 p0@4 p1@5 r0=250 watermark=250 span@1000 r0=max watermark=max end@1000",
			Missing{}},
		{"all within it", 900, nil, "p0@0 p0@1 p0@2 p0@3 p0@4 p1@5 r0=250 watermark=250 span@1000 r0=max " +
			"watermark=max end@1000", Missing{}},
		{"event b has a row left, a and c have none", 500, nil, "p0@0 p0@1 span@1000 r0=max watermark=max end@1000",
			Missing{Rows: 4, Events: 2}},
		{"a finished partition of which nothing is left does not hold back the watermark", 500,
			[]gen.End{{Partition: 1, Rows: 1, Last: stream.NewTag(2, 0, 0)}},
			"p0@0 p0@1 r0=800 watermark=800 span@1000 r0=max watermark=max end@1000", Missing{Rows: 4, Events: 2}},
		{"everything is older", 1, nil, "span@1000 r0=max watermark=max end@1000", Missing{Rows: 6, Events: 4}},
	} {
		w := rowsOf(1000, []string{"a1", "b1", "c1", "a2", "b2", "d1"}, rows)
		w.ends = c.last
		feed := NewFeed(FeedSpec{Workload: w, Source: SourceSpec{Readers: 1, Interval: 200},
			Perturbation: Perturbation{CatchUp: 1000, Retention: c.retention}})
		got, err := told(feed)
		if err != nil {
			t.Fatal(err)
		}
		if line := strings.Join(got, " "); line != c.want || feed.Missing() != c.missing {
			t.Errorf("%s:\n got %s, missing %+v\nwant %s, missing %+v", c.story, line, feed.Missing(), c.want, c.missing)
		}
	}
}

// A row without event time fails the feed unless an engine takes it; the watermark does not see it then.
func TestFeedNullTimes(t *testing.T) {
	w := arriving(500, []stream.Time{100, 300}, []uint16{0, 0})
	w.rows[1].Event = stream.NullTime
	spec := FeedSpec{Workload: w, Source: SourceSpec{Readers: 1, Interval: 200}}
	if _, err := told(NewFeed(spec)); err == nil || err.Error() != NoEventTime(&w.rows[1]).Error() {
		t.Errorf("got the error %v", err)
	}
	spec.NullTimes = true
	got, err := told(NewFeed(spec))
	want := "p0@100 r0=100 watermark=100 p0@300 span@500 r0=max watermark=max end@500"
	if line := strings.Join(got, " "); line != want || err != nil {
		t.Errorf("got %s, %v\nwant %s", line, err, want)
	}
}
