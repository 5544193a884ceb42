package sim

import (
	"cmp"
	"slices"

	"deduplab/stream"
)

// Snapshot is what a checkpoint stores of a task: keyed state with the times at which it was written and its flags, the
// processing-time timers of keys, and what the operators keep beside that. It holds no cache, buffer, batch or counter,
// and shares nothing with the task that it was taken of, so that any number of tasks can be restored from it.
type Snapshot struct{ subtasks []subtaskSnapshot }

type subtaskSnapshot struct {
	now      stream.Time
	tables   [][]Entry // one each, in the order of writing
	timers   []keyTimer
	operator any
}

type keyTimer struct {
	at  stream.Time
	key stream.Key
}

// Snapshot takes what a checkpoint stores. Call it right after Checkpoint, which has flushed everything else.
func (t *Task) Snapshot() *Snapshot {
	s := &Snapshot{subtasks: make([]subtaskSnapshot, len(t.subtasks))}
	for i := range t.subtasks {
		c := &t.subtasks[i].ctx
		// The operator comes first, as it may still have to write to its tables.
		sub := subtaskSnapshot{now: c.now, operator: t.subtasks[i].op.Snapshot(c)}
		for _, table := range c.tables {
			sub.tables = append(sub.tables, table.snapshot())
		}
		c.procTimers.each(func(at stream.Time, key stream.Key) {
			if key != ServiceKey {
				sub.timers = append(sub.timers, keyTimer{at, key})
			}
		})
		s.subtasks[i] = sub
	}
	return s
}

// RestoreTask makes a task that goes on from a snapshot of one with the same operator and parallelism. As after a
// restart of the job, operators are new, caches and buffers empty, counters at 0, timers registered again, and TTLs run
// from when the state was written. No operator knows a watermark, but for those that keep it in their state: see
// Ctx.RestoreWatermark. The job starts again at now; timers that are due by then fire with the next call.
func RestoreTask(spec TaskSpec, s *Snapshot, now stream.Time) *Task {
	t := NewTask(spec)
	for i := range t.subtasks {
		c, sub := &t.subtasks[i].ctx, &s.subtasks[i]
		c.now, c.opened = sub.now, now
		for j, table := range c.tables {
			table.restore(sub.now, sub.tables[j])
		}
		for _, timer := range sub.timers {
			c.ProcTimer(timer.at, timer.key)
		}
		t.subtasks[i].op.Restore(c, sub.operator)
	}
	return t
}

// RestoreWatermark is for the Restore of an operator that keeps its watermark in its state, as Flink's
// WindowAggOperator does. Others know none until the next one comes.
func (c *Ctx) RestoreWatermark(w stream.Time) { c.watermark = w }

// Opened is when a restored job started again, for the Restore of an operator that counts from then.
func (c *Ctx) Opened() stream.Time { return c.opened }

// snapshot copies the entries, those that expired and were not removed yet among them, in the order of writing.
func (t *Table) snapshot() []Entry {
	entries := make([]Entry, 0, t.Held())
	t.Each(func(e *Entry) {
		entries = append(entries, MakeEntry(e.Key, e.Written(), e.Value, e.Tag, e.Flags()))
	})
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Written(), b.Written()) })
	return entries
}

// restore fills an empty table.
func (t *Table) restore(now stream.Time, entries []Entry) {
	t.reserve(len(entries))
	for _, e := range entries {
		f := fragment(e.Key)
		t.append(t.index.seek(f), e.Key, f, e.Written(), e.Value, e.Tag, e.Flags())
	}
	t.now = now
}

// EachPinned visits the entries that are Pinned, with the Refs that timers name them by.
func (t *Table) EachPinned(f func(Ref, *Entry)) {
	t.log.each(func(ref Ref, e *Entry) {
		if e.Has(Pinned) {
			f(ref, e)
		}
	})
}

// each visits the timers in the order in which they would fire.
func (w *Wheel[T]) each(f func(at stream.Time, what T)) {
	timers := slices.Clone(w.late)
	for level := range w.wheels {
		for _, id := range w.wheels[level].lists() {
			for ; id != 0; id = w.nodes[id].next {
				timers = append(timers, lateTimer[T]{timeOf(w.nodes[id].at), w.nodes[id].what})
			}
		}
	}
	slices.SortStableFunc(timers, func(a, b lateTimer[T]) int { return cmp.Compare(a.at, b.at) })
	for _, timer := range timers {
		f(timer.at, timer.what)
	}
}

// lists returns the lists of the wheel's slots. Timers of one moment stand in one of them, in the order of adding.
func (l *wheel) lists() []uint32 {
	var lists []uint32
	for slot, id := range l.first {
		if l.used[slot/64]>>(slot%64)&1 != 0 {
			lists = append(lists, id)
		}
	}
	return lists
}
