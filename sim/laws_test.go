package sim

import (
	"errors"
	"strings"
	"testing"

	"deduplab/stream"
)

// setter is an operator that sets a timer of each domain for each row.
type setter struct {
	Base
	table *Table
}

func (o *setter) Rows(c *Ctx, rows []stream.Row) {
	for i := range rows {
		row := &rows[i]
		c.Emit(stream.Insert, row)
		c.ProcTimer(row.Arrival+10, row.Key)
		c.EventTimer(row.Event, o.table.Put(row.Key, row.Arrival, 0, row.Tag, Pinned))
	}
}

// State is of no interest.
func (o *setter) State(*Ctx) State { return State{} }

// TestBrokenLaws breaks each law on purpose, and holds that the run ends with an internal error that says which.
func TestBrokenLaws(t *testing.T) {
	for _, c := range []struct {
		name   string
		breaks func(*Task, *Ledger)
		want   string // empty: no law is broken
	}{
		{"none", func(*Task, *Ledger) {}, ""},
		{"the watermark stays", func(task *Task, _ *Ledger) { task.Watermark(5, 12) }, ""},
		{"the watermark falls", func(task *Task, _ *Ledger) { task.Watermark(4, 12) }, "the watermark falls from"},
		{"the watermark of a reader falls", func(task *Task, _ *Ledger) { task.SourceWatermark(1, 4, 12) },
			"the watermark of reader 1 falls from"},
		{"a timer fires twice", func(task *Task, _ *Ledger) {
			task.subtasks[0].ctx.procTimers.Add(15, stream.Key{Lo: 1}) // as a wheel that forgets to take it off would
		}, "1 timers of processing time were set, 2 have fired and 0 wait"},
		{"a timer is lost", func(task *Task, _ *Ledger) { task.subtasks[0].ctx.eventTimers = Wheel[Ref]{} },
			"1 timers of event time were set, 0 have fired and 0 wait"},
		{"a timer fires before its time", func(task *Task, _ *Ledger) {
			w := &task.subtasks[0].ctx.procTimers
			w.late = append(w.late, lateTimer[stream.Key]{at: 90})
		}, "a timer of 1970-01-01T00:00:00.090Z fires at"},
		{"timers fire out of order", func(task *Task, _ *Ledger) {
			w := &task.subtasks[0].ctx.procTimers
			w.late = append(w.late, lateTimer[stream.Key]{at: 20})
		}, "a timer of 1970-01-01T00:00:00.011Z fires after one of"},
		{"a row gets lost", func(_ *Task, ledger *Ledger) { ledger.Rows(1) }, "2 rows went in, but 1 were accounted for"},
		{"a row that is not there is taken back", func(_ *Task, ledger *Ledger) {
			ledger.Book(&Change{Tag: stream.NewTag(1, 0, 0), At: 12, Op: OpAgain, Kind: stream.Delete}, stream.Key{}, nil)
		}, "1 retractions of rows that the result does not hold"},
		{"a change comes too late for its checkpoint", func(_ *Task, ledger *Ledger) {
			ledger.Committed(20)
			ledger.Book(&Change{Tag: stream.NewTag(0, 0, 0), At: 12, Op: OpAgain, Kind: stream.UpdateAfter}, stream.Key{}, nil)
		}, "comes after the checkpoint of"},
		{"what a crash undid is visible", func(_ *Task, ledger *Ledger) {
			ledger.Book(&Change{Tag: stream.NewTag(0, 0, 0), At: 12, Op: OpAgain, Kind: stream.UpdateAfter, Early: true},
				stream.Key{}, nil)
		}, "is visible though a crash has undone it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := rowsOf(50, []string{"a1", "b1"}, []stream.Row{{Key: stream.Key{Lo: 1}, Event: 7, Arrival: 1},
				{Key: stream.Key{Lo: 2}, Event: 8, Arrival: 2}})
			task := NewTask(TaskSpec{Parallelism: 1, Readers: 2, Records: w, New: func(c *Ctx) Operator {
				return &setter{table: c.NewTable(0)}
			}})
			ledger := NewLedger(LedgerSpec{Workload: w, CommitEvery: 10})
			task.SourceWatermark(1, 5, 0)
			task.Watermark(5, 0)
			task.Row(w.row("a1"))
			task.Clock(1)
			ledger.Rows(1)
			c.breaks(task, ledger)
			task.Checkpoint(30)
			task.Drain(ledger.Book)
			task.End(40)
			err := errors.Join(task.Err(), ledger.Check())
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			internal, ok := errors.AsType[InternalError](err)
			if !ok || !strings.Contains(string(internal), c.want) {
				t.Errorf("%v, want an internal error: %s", err, c.want)
			}
		})
	}
}
