package sim

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"deduplab/stream"
)

// sourceSignals writes down what a source reports: "r1=5" for a reader, "5" for all of them.
type sourceSignals struct{ signals }

func (s *sourceSignals) SourceWatermark(reader int, w stream.Time) {
	s.signals = append(s.signals, fmt.Sprintf("r%d=%d", reader, w))
}

func TestSourceMakesWatermarksPerPartition(t *testing.T) {
	var out sourceSignals
	s := NewSource(SourceSpec{Partitions: 3, Readers: 2, Delay: 10, Interval: 200}, &out)
	s.Row(0, 100)
	s.Row(1, 200)
	s.Row(2, 300)
	s.Row(2, stream.NullTime)
	out.expect(t, "") // on the tick only
	s.Tick(200)
	out.expect(t, "r0=90 r1=190 90")
	s.Row(0, 400)
	s.Tick(400)
	out.expect(t, "r0=290 190")
	s.Tick(600)
	out.expect(t, "")
	s.End()
	out.expect(t, "r0=9223372036854775807 r1=9223372036854775807 9223372036854775807")
}

func TestSourceMakesWatermarksPerReader(t *testing.T) {
	var out sourceSignals
	s := NewSource(SourceSpec{Partitions: 4, Readers: 2, Interval: 200, PerReader: true}, &out)
	s.Row(0, 1000)
	out.expect(t, "r0=1000")
	s.Row(2, 500) // late within its reader
	s.Row(3, 800)
	out.expect(t, "r1=800 800")
	s.Row(1, 900)
	out.expect(t, "")
	s.Tick(200)
	out.expect(t, "r1=900 900")
}

func TestSourceReaderWithoutPartitionIsIdle(t *testing.T) {
	for _, perReader := range []bool{false, true} {
		var out sourceSignals
		s := NewSource(SourceSpec{Partitions: 1, Readers: 3, Interval: 200, PerReader: perReader}, &out)
		s.Row(0, 1000)
		s.Tick(200)
		out.expect(t, "r0=1000 1000")
	}
}

func TestSourceIdlePartitionFreesTheOthers(t *testing.T) {
	const start = 1_000_000
	var out sourceSignals
	s := NewSource(SourceSpec{Partitions: 2, Readers: 1, Interval: 200, IdleAfter: 1000, Start: start}, &out)
	s.Row(0, 100)
	s.Row(1, 100)
	s.Tick(start + 200)
	out.expect(t, "r0=100 100")
	for now := stream.Time(start + 400); now <= start+1400; now += 200 {
		s.Row(0, now)
		s.Tick(now)
	}
	out.expect(t, "") // partition 1 holds it back: its idle clock runs from 400 and needs more than a second
	s.Tick(start + 1600)
	out.expect(t, "r0=1001400 1001400")
	s.Row(1, 200)
	s.Tick(start + 1800)
	out.expect(t, "") // back and behind: it stays where it is
}

func TestSourceFinishedPartitionFreesTheOthers(t *testing.T) {
	var out sourceSignals
	s := NewSource(SourceSpec{Partitions: 4, Readers: 2, Interval: 200}, &out)
	for p, event := range []stream.Time{100, 200, 300, 400} {
		s.Row(p, event)
	}
	s.Tick(200)
	out.expect(t, "r0=100 r1=200 100")
	s.Row(0, 5000) // the split is gone before it makes a watermark of its last row
	s.Finish(0)
	out.expect(t, "")
	s.Tick(400)
	out.expect(t, "r0=300 200")
	s.Finish(2) // the last one of its reader
	out.expect(t, "r0=9223372036854775807")
	s.Finish(1)
	s.Row(3, 600)
	s.Tick(600)
	out.expect(t, "r1=600 600")
	s.Finish(3)
	out.expect(t, "r1=9223372036854775807 9223372036854775807")
	s.Tick(800)
	s.End()
	out.expect(t, "")
}

// One assigner stands behind a reader, whatever its partitions do: it ends with the last of them.
func TestSourceReaderEndsWithItsLastPartition(t *testing.T) {
	var out sourceSignals
	s := NewSource(SourceSpec{Partitions: 3, Readers: 2, Interval: 200, PerReader: true}, &out)
	s.Row(0, 1000)
	s.Row(1, 500)
	out.expect(t, "r0=1000 r1=500 500")
	s.Finish(0)
	out.expect(t, "")
	s.Finish(1)
	out.expect(t, "r1=9223372036854775807 1000")
	s.Row(2, 1500)
	out.expect(t, "r0=1500 1500")
}

// A reader that has ended counts as one at MaxTime, not as an idle one: it wins as soon as all others are idle.
func TestSourceEndedReaderWinsOverIdleOnes(t *testing.T) {
	const start = 1_000_000
	var out sourceSignals
	s := NewSource(SourceSpec{Partitions: 2, Readers: 2, Interval: 200, IdleAfter: 1000, Start: start}, &out)
	s.Row(0, 100)
	s.Row(1, 100)
	s.Tick(start + 200)
	s.Finish(0)
	out.expect(t, "r0=100 r1=100 100 r0=9223372036854775807")
	for now := stream.Time(start + 400); now <= start+1400; now += 200 {
		s.Tick(now)
	}
	out.expect(t, "")
	s.Tick(start + 1600)
	out.expect(t, "9223372036854775807")
}

func TestSourceIdleReaderFreesTheOthersUntilItsWatermarkAdvances(t *testing.T) {
	for _, perReader := range []bool{false, true} {
		const start = 1_000_000
		var out sourceSignals
		s := NewSource(SourceSpec{Partitions: 2, Readers: 2, Interval: 200, IdleAfter: 1000, Start: start,
			PerReader: perReader}, &out)
		now := stream.Time(start)
		tickTo := func(end stream.Time) {
			for now < end {
				now += s.Period()
				s.Tick(now)
			}
		}
		s.Row(0, 100)
		s.Row(1, 50)
		tickTo(start + 200)
		s.Row(0, 1000)
		out.signals = nil
		tickTo(start + 1000)
		s.Row(0, 1001) // keeps reader 0 active
		tickTo(start + 1600)
		if got := out.signals[len(out.signals)-1]; got != "1001" {
			t.Errorf("per reader %v: the combined watermark is %s", perReader, got)
		}
		out.signals = nil
		s.Row(1, 40)
		tickTo(start + 1800)
		out.expect(t, "")
	}
}

func TestSourceCombinedIsNeverAheadOfAnActiveReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := SourceSpec{
			Partitions: rapid.IntRange(1, 5).Draw(t, "partitions"),
			Readers:    rapid.IntRange(1, 4).Draw(t, "readers"),
			Delay:      stream.Time(rapid.IntRange(0, 100).Draw(t, "delay")),
			Interval:   200,
			PerReader:  rapid.Bool().Draw(t, "per reader"),
			Start:      1_000_000,
		}
		out := least{readers: make([]watermarks, spec.Readers)}
		s := NewSource(spec, &out)
		for now := spec.Start; now < spec.Start+4000; now += 200 {
			for range rapid.IntRange(0, 4).Draw(t, "rows") {
				p := rapid.IntRange(0, spec.Partitions-1).Draw(t, "partition")
				s.Row(p, now-stream.Time(rapid.IntRange(0, 1000).Draw(t, "age")))
			}
			s.Tick(now)
			for r := range min(spec.Readers, spec.Partitions) {
				if out.readers[r].fell || out.readers[r].last() < out.last() {
					t.Fatalf("reader %d is at %v, all at %v", r, out.readers[r].all, out.all)
				}
			}
		}
		s.End()
		if out.fell || out.last() != stream.MaxTime {
			t.Fatalf("put out %v", out.all)
		}
	})
}

// least remembers the watermarks of a source.
type least struct {
	watermarks
	readers []watermarks
}

func (l *least) SourceWatermark(reader int, w stream.Time) { l.readers[reader].Watermark(w) }

func BenchmarkSourceRow(b *testing.B) {
	for _, perReader := range []bool{false, true} {
		b.Run(fmt.Sprintf("per-reader=%v", perReader), func(b *testing.B) {
			s := NewSource(SourceSpec{Partitions: 8, Readers: 4, Interval: 200, PerReader: perReader}, &sourceSignals{})
			b.ReportAllocs()
			for i := range b.N {
				s.Row(i&7, 1000)
			}
		})
	}
}
