package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"deduplab/stream"
)

// recorder is a stage that lets every row through, but for those of key 0, which it drops as copies. It keeps rows in a
// table of its own, and appends all that it was ever given to the query's target.
type recorder struct{ table *Table }

func newRecorder(c *BatchCtx) BatchOperator { return &recorder{c.NewTable()} }

func (o *recorder) Batch(c *BatchCtx, rows []stream.Row) {
	for i := range rows {
		if _, err := c.Target().Write(&TargetWrite{Batch: c.Batch.ID, Rows: []TargetRow{{Key: rows[i].Key}}}); err != nil {
			c.Fail(err)
		}
		if rows[i].Key.Lo == 0 {
			c.Drop(&rows[i], Duplicate)
			continue
		}
		o.table.Put(rows[i].Key, c.Batch.End, 0, 0, 0)
		c.Emit(&rows[i])
	}
}

func (o *recorder) Snapshot(*BatchCtx) any { return nil }
func (o *recorder) Restore(*BatchCtx, any) {}
func (o *recorder) State(*BatchCtx) State  { return State{Entries: o.table.Held()} }

// TestTriggers tells when batches start and end, and what they hold. A row is its arrival; its event time is the same.
func TestTriggers(t *testing.T) {
	for _, c := range []struct {
		name     string
		trigger  Trigger
		cost     BatchCost
		noData   bool
		delay    stream.Time
		failures []Failure
		arrivals []stream.Time
		want     []string
	}{
		{
			name: "at each multiple of the interval if rows have come", trigger: Trigger{Every: 10}, delay: NoWatermark,
			arrivals: []stream.Time{1, 10, 11, 35},
			want:     []string{"0: 10-10 2 rows", "1: 20-20 1 rows", "2: 40-40 1 rows"},
		},
		{
			name: "a batch without data follows one that moved the watermark", trigger: Trigger{Every: 10}, noData: true,
			arrivals: []stream.Time{1, 35}, delay: 2,
			want: []string{"0: 10-10 1 rows", "1: 40-40 1 rows", "2: 50-50 0 rows"},
		},
		{
			name: "unless rows have come", trigger: Trigger{Every: 10}, noData: true, arrivals: []stream.Time{5, 15, 16},
			want: []string{"0: 10-10 1 rows", "1: 20-20 2 rows", "2: 30-30 0 rows"},
		},
		{
			name: "or they are off", trigger: Trigger{Every: 10}, arrivals: []stream.Time{5},
			want: []string{"0: 10-10 1 rows"},
		},
		{
			name: "rows come out at the end of a batch that takes time", trigger: Trigger{Every: 10}, delay: NoWatermark,
			cost: BatchCost{Batch: 3, RowsPerSecond: 1000}, arrivals: []stream.Time{1, 2, 12},
			want: []string{"0: 10-15 2 rows", "1: 20-24 1 rows"},
		},
		{
			name: "one that takes longer than the interval is followed at once, then by the next multiple",
			cost: BatchCost{RowsPerSecond: 100}, arrivals: []stream.Time{1, 2, 14, 31, 51}, trigger: Trigger{Every: 10},
			delay: NoWatermark,
			want:  []string{"0: 10-30 2 rows", "1: 30-40 1 rows", "2: 40-50 1 rows", "3: 60-70 1 rows"},
		},
		{
			name: "at most so many rows, those that waited longest", trigger: Trigger{Every: 10, MaxRows: 2}, delay: NoWatermark,
			arrivals: []stream.Time{1, 2, 3, 4, 5},
			want:     []string{"0: 10-10 2 rows", "1: 20-20 2 rows", "2: 30-30 1 rows"},
		},
		{
			name: "available-now: batch after batch when all is there, and a last one without data",
			cost: BatchCost{Batch: 7}, trigger: Trigger{AvailableNow: true, MaxRows: 2}, noData: true,
			arrivals: []stream.Time{1, 20, 30},
			want:     []string{"0: 100-107 2 rows", "1: 107-114 1 rows", "2: 114-121 0 rows"},
		},
		{
			name: "without an interval a batch starts when the one before has ended", cost: BatchCost{Batch: 30},
			delay: NoWatermark, arrivals: []stream.Time{5, 12, 13},
			want: []string{"0: 5-35 1 rows", "1: 35-65 2 rows"},
		},
		{
			name: "one that fails is run again with the same id", trigger: Trigger{Every: 10}, failures: []Failure{{Kind: SinkFailure, At: 15}},
			cost: BatchCost{Batch: 2}, arrivals: []stream.Time{1, 15, 16}, delay: NoWatermark,
			want: []string{"0: 10-12 1 rows", "1: 20-24 2 rows, attempt 2"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			m := NewBatchEngine(BatchSpec{
				Stages:  []BatchStage{{Name: "recorder", Shuffled: true, New: newRecorder}},
				Trigger: c.trigger, Cost: c.cost, NoDataBatches: c.noData, Inputs: []stream.Time{c.delay}, Failures: c.failures,
				OnBatch: func(p *BatchProgress) {
					text := fmt.Sprintf("%d: %d-%d %d rows", p.ID, p.At, p.End, p.InputRows)
					if p.Attempt > 1 {
						text += fmt.Sprintf(", attempt %d", p.Attempt)
					}
					got = append(got, text)
				},
			})
			for i, at := range c.arrivals {
				m.Row(&stream.Row{Key: stream.Key{Lo: uint64(i + 1)}, Event: at, Arrival: at})
			}
			m.End(100)
			if !slices.Equal(got, c.want) {
				t.Errorf("batches\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			last := stream.Time(0)
			m.Drain(func(c *Change, _ stream.Key, _ []stream.Tag) {
				if c.At < last {
					t.Errorf("a change at %d comes after one at %d", c.At, last)
				}
				last = c.At
			})
		})
	}
}

// TestRerun runs a batch twice: state is as if it had run once, what is durable is not, and rows that went out are told
// again, but not those that did not.
func TestRerun(t *testing.T) {
	m := NewBatchEngine(BatchSpec{
		Stages:  []BatchStage{{Name: "recorder", Shuffled: true, New: newRecorder}},
		Trigger: Trigger{Every: 10}, Inputs: []stream.Time{NoWatermark}, Failures: []Failure{{Kind: SinkFailure, At: 20}},
	})
	for i, at := range []stream.Time{1, 12, 13} {
		m.Row(&stream.Row{Key: stream.Key{Lo: uint64(2 - i)}, Arrival: at, Tag: stream.NewTag(uint64(i), 0, 0)})
	}
	m.End(20)
	var got []string
	m.Drain(func(c *Change, _ stream.Key, _ []stream.Tag) {
		if c.Op != OpHold {
			what := map[Op]string{OpRelease: "out", OpRewrite: "again", OpDropHeld: "dropped"}[c.Op]
			got = append(got, fmt.Sprintf("%s of %d", what, c.Tag.Event()))
		}
	})
	want := []string{"out of 0", "dropped of 2", "out of 1", "again of 1"}
	if !slices.Equal(got, want) {
		t.Errorf("changes %v, want %v", got, want)
	}
	if state := m.Subtasks()[0]; state.State.Entries != 2 || state.Rows != 3 {
		t.Errorf("%d entries of %d rows, want 2 of 3", state.State.Entries, state.Rows)
	}
	if written := m.spec.Target.Partitions()[0].Rows; written != 5 {
		t.Errorf("%d rows in the target, want 5: two rows came twice", written)
	}
}

// TestRestoredBatchEngine goes on from a snapshot: the watermark stays, and what the inputs have said is forgotten.
func TestRestoredBatchEngine(t *testing.T) {
	spec := BatchSpec{
		Stages: []BatchStage{{Name: "recorder", Shuffled: true, New: newRecorder}}, Inputs: []stream.Time{10, 10},
		InputOf: func(row *stream.Row) int { return int(row.Partition) }, NoDataBatches: true,
	}
	row := func(input int, event stream.Time) stream.Row {
		return stream.Row{Key: stream.Key{Lo: uint64(event)}, Event: event, Partition: uint16(input)}
	}
	m := NewBatchEngine(spec)
	m.RunBatch(1, []stream.Row{row(0, 100), row(1, 50)}, 1)
	if !m.NoDataBatchDue() {
		t.Error("no batch without data follows, though the watermark moved")
	}
	restored := RestoreBatchEngine(spec, m.Snapshot())
	if !restored.NoDataBatchDue() || restored.Subtasks()[0].State.Entries != 2 {
		t.Error("the restored engine has forgotten its state")
	}
	p := restored.RunBatch(2, []stream.Row{row(0, 200)}, 1)
	if p.ID != 1 || p.Watermark != 40 || p.Late != 0 || p.WatermarkAfter != 40 {
		t.Errorf("batch %d with watermarks %d, %d, then %d; want 1 with 40, 0, then 40: input 1 counts as 0 until it "+
			"speaks", p.ID, p.Watermark, p.Late, p.WatermarkAfter)
	}
	if p = restored.RunBatch(3, []stream.Row{row(1, 150)}, 1); p.WatermarkAfter != 140 {
		t.Errorf("watermark %d after both have spoken, want 140", p.WatermarkAfter)
	}
}
