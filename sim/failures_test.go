package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"deduplab/stream"
)

// TestPlanFailures tells, for checkpoints at 10, 20, 30 ..., what a job goes back to and when changes become visible.
func TestPlanFailures(t *testing.T) {
	for _, c := range []struct {
		name     string
		interval stream.Time
		failures []Failure
		want     string // outages: checkpoint, crash, restart
		visible  string // changes of 5, 25, 45 and 65
	}{
		{"none", 10, nil, "", "10 30 50 70"},
		{"a crash goes back to the checkpoint before it", 10, []Failure{{At: 35, Down: 7}}, "30 35-42", "10 30 50 70"},
		{"at the moment of a checkpoint it comes first", 10, []Failure{{At: 30, Down: 7}}, "20 30-37", "10 40 50 70"},
		{"before the first checkpoint there is nothing to go back to", 10, []Failure{{At: 5, Down: 1}}, "start 5-6",
			"10 30 50 70"},
		{"without checkpoints neither", 0, []Failure{{At: 35, Down: 7}}, "start 35-42", ""},
		{"a second crash while it is down", 10, []Failure{{At: 35, Down: 7}, {At: 40, Down: 9}}, "30 35-49", "10 30 50 70"},
		{"a second crash before the next checkpoint", 10, []Failure{{At: 35, Down: 2}, {At: 39, Down: 2}},
			"30 35-37, 30 39-41", "10 30 50 70"},
		{"a checkpoint is lost", 10, []Failure{{Kind: LostCheckpoint, At: 25}, {At: 35, Down: 7}}, "20 35-42", "10 50 50 70"},
		{"but not the one before", 10, []Failure{{Kind: LostCheckpoint, At: 31}, {At: 35, Down: 7}}, "30 35-42",
			"10 30 60 70"},
		{"a slow checkpoint that a crash comes before", 10, []Failure{{Kind: SlowCheckpoint, At: 25, For: 15},
			{At: 41, Down: 1}}, "20 41-42", ""},
		{"and one that it comes after", 10, []Failure{{Kind: SlowCheckpoint, At: 25, For: 15}, {At: 46, Down: 1}}, "30 46-47",
			"10 45 50 70"},
		{"while a checkpoint is slow none is begun", 10, []Failure{{Kind: SlowCheckpoint, At: 35, For: 25}}, "",
			"10 30 70 70"},
		{"the sink fails at a checkpoint", 10, []Failure{{Kind: SinkFailure, At: 25, Down: 4}}, "20 30-34", "10 40 50 70"},
		{"without checkpoints at once", 0, []Failure{{Kind: SinkFailure, At: 25, Down: 4}}, "start 25-29", ""},
		{"what comes first happens first", 10, []Failure{{Kind: LostCheckpoint, At: 1}, {At: 5, Down: 1}, {At: 15, Down: 1}},
			"start 5-6, start 15-16", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := PlanFailures(c.failures, 0, c.interval)
			var got []string
			for _, o := range p.outages {
				kept := "start"
				if o.kept != stream.MinTime {
					kept = fmt.Sprint(int64(o.kept))
				}
				got = append(got, fmt.Sprintf("%s %d-%d", kept, o.crash, o.restart))
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("outages %s, want %s", text, c.want)
			}
			if c.visible == "" {
				return
			}
			var visible []string
			for _, at := range []stream.Time{5, 25, 45, 65} {
				visible = append(visible, fmt.Sprint(int64(p.CommitAt(at))))
			}
			if text := strings.Join(visible, " "); text != c.visible {
				t.Errorf("visible at %s, want %s", text, c.visible)
			}
		})
	}
}

// TestFeedRecovers tells what a job reads that crashes at 35, goes back to the checkpoint of 30 and is up again at 42,
// at 500 rows a second: a row of each partition every 8 ms.
func TestFeedRecovers(t *testing.T) {
	var rows []stream.Row
	var names []string
	for i := range 12 {
		rows = append(rows, stream.Row{Key: stream.Key{Lo: uint64(i)}, Event: stream.Time(4 * i), Arrival: stream.Time(4 * i),
			Partition: uint16(i % 2)})
		names = append(names, string(rune('a'+i))+"1")
	}
	w := rowsOf(60, names, rows)
	for _, c := range []struct {
		name    string
		failure Failure
		want    string // rows with the moment at which they are read
	}{
		{"a crash", Failure{At: 35, Down: 7},
			"a0 b4 c8 d12 e16 f20 g24 h28 kept i32 crash restart i42 k44 j46 l48"},
		{"the source rewinds further than needed", Failure{Kind: RewindFailure, At: 35, Down: 7, By: 7},
			"a0 b4 c8 d12 e16 f20 g24 h28 kept i32 crash restart g42 i44 k46 h48 j50 l52"},
	} {
		t.Run(c.name, func(t *testing.T) {
			feed := NewFeed(FeedSpec{Workload: w, Source: SourceSpec{Readers: 1, Interval: 5}, Checkpoint: 10, CatchUpRate: 500,
				Failures: PlanFailures([]Failure{c.failure}, 0, 10)})
			var got []string
			arriving := 0
			batch := &Batch{}
			for {
				ok, err := feed.Next(batch)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				arriving += len(batch.Plain().Rows)
				watermark, row := stream.MinTime, 0
				for _, m := range append(slices.Clone(batch.Marks), Mark{Before: len(batch.Rows), Kind: EndOfInput}) {
					for ; row < m.Before; row++ {
						got = append(got, fmt.Sprintf("%c%d", names[rows[batch.Rows[row].Key.Lo].Key.Lo][0], batch.Rows[row].Arrival))
					}
					switch m.Kind {
					case Kept:
						got = append(got, "kept")
					case Crashed:
						got = append(got, "crash")
					case Restarted:
						got, watermark = append(got, "restart"), stream.MinTime
					case CombinedWatermark:
						if m.Watermark < watermark {
							t.Errorf("the watermark falls from %d to %d", watermark, m.Watermark)
						}
						watermark = m.Watermark
					}
				}
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("read %s\nwant %s", text, c.want)
			}
			if arriving != len(rows) {
				t.Errorf("%d rows arrive, want %d", arriving, len(rows))
			}
		})
	}
}
