package strategies

import (
	"cmp"
	"fmt"
	"slices"

	"deduplab/sim"
	"deduplab/stream"
)

// groupFunction is the user's function of flatMapGroupsWithState, called for a key with its rows of the batch, in order
// of their event time, rows of one time in the order in which they came. It is not called when a key has timed out: all
// functions here do the same then, they forget it.
type groupFunction func(g *groupCall, rows []stream.Row)

// groupState is what the functions keep of a key, and the timeout that Spark keeps beside it: spark
// per-key-horizon/basic.
type groupState struct {
	first   stream.Time // first_ts: event time of the first row
	last    stream.Time // last_ts: event time of the latest row, or when the horizon of the key ends
	count   int64       // suppressed: rows after the first
	timeout stream.Time // noTimeout: none
	timer   stream.Time // the latest timer that was set for the key
}

const noTimeout stream.Time = -1

// groupCall is Spark's GroupState during one call of the function.
type groupCall struct {
	c *sim.BatchCtx
	groupState
	exists, updated bool
	tag             stream.Tag // the row that the function means by the state
	failed          bool
}

// update writes the state. The timeout is no part of it.
func (g *groupCall) update(first, last stream.Time, count int64) {
	g.first, g.last, g.count = first, last, count
	g.exists, g.updated = true, true
}

// setTimeout is setTimeoutTimestamp. A moment before the watermark of the batch fails the query, the watermark itself
// is allowed: spark per-key-horizon/timeout-below-watermark, timeout-equal-watermark, timeout-not-positive.
func (g *groupCall) setTimeout(at stream.Time) {
	switch watermark := g.c.Batch.Watermark; {
	case at <= 0:
		g.fail("java.lang.IllegalArgumentException", "Timeout timestamp must be positive")
	case at < watermark:
		g.fail("java.lang.IllegalArgumentException", fmt.Sprintf(
			"Timeout timestamp (%d) cannot be earlier than the current watermark (%d)", at, watermark))
	default:
		g.timeout = at
	}
}

// fail is an exception that the function throws.
func (g *groupCall) fail(class, message string) {
	g.failed = true
	g.c.Fail(&sim.QueryError{
		Class: class, Message: message,
		Chain: []string{"org.apache.spark.sql.streaming.StreamingQueryException",
			"org.apache.spark.sql.execution.streaming.operators.stateful.flatmapgroupswithstate." +
				"FlatMapGroupsWithStateUserFuncException", class},
		Conditions: []string{"STREAM_FAILED", "FLATMAPGROUPSWITHSTATE_USER_FUNCTION_ERROR"},
	})
}

// emit returns a row from the function.
func (g *groupCall) emit(row *stream.Row, why string, count int64) {
	g.c.Emit(row)
	g.say(row, why, count)
}

// say tells what the function returns.
func (g *groupCall) say(row *stream.Row, why string, count int64) {
	g.c.Output(sim.Output{Tag: row.Tag, Event: row.Event, Why: why, Count: count})
}

// suppress does not let a row through. The recorded functions return it all the same, marked, for us to see it.
func (g *groupCall) suppress(row *stream.Row, count int64) {
	g.c.Drop(row, sim.Duplicate)
	g.say(row, "suppressed", count)
}

// flatMapGroups is flatMapGroupsWithState with GroupStateTimeout.EventTimeTimeout: Spark's FlatMapGroupsWithStateExec.
//
// Late rows never reach the function (spark per-key-horizon/late). Every call clears the timeout of its key unless it
// sets it again (spark per-key-horizon/duplicate-disarms-timeout). Rows come first, then the timeouts of keys without
// rows in the batch: a key that is due and has a row gets one call, with its row and its old state (spark
// per-key-horizon/rows-and-timeout-same-batch-no-rearm). A timeout fires when it is before the watermark, not at it
// (spark per-key-horizon/timeout-tie).
//
// An entry's Value is the number of its state; it is Pinned while it has a timeout, which its timer names it by.
type flatMapGroups struct {
	function groupFunction
	says     bool // a key that has timed out says so, in a row of its own
	bytes    int  // of an entry

	table  *sim.Table
	states slots[groupState]
	timers sim.Wheel[sim.Ref]
	armed  int // keys with a timeout
	inTime []stream.Row
}

func newFlatMapGroups(c *sim.BatchCtx, function groupFunction, says bool, bytes int) *flatMapGroups {
	return &flatMapGroups{function: function, says: says, bytes: bytes, table: c.NewTable()}
}

func (o *flatMapGroups) Batch(c *sim.BatchCtx, rows []stream.Row) {
	o.inTime = o.inTime[:0]
	for i := range rows {
		if c.IsLate(rows[i].Event) {
			c.Drop(&rows[i], sim.Late)
		} else {
			o.inTime = append(o.inTime, rows[i])
		}
	}
	goesOn := true
	c.ByKey(o.inTime, o.table, func(rows []stream.Row) bool {
		goesOn = o.call(c, rows)
		return goesOn
	})
	if !goesOn {
		return
	}
	o.timers.Advance(c.Batch.Watermark-1, func(at stream.Time, due []sim.Ref) {
		for _, ref := range due {
			o.timeOut(c, at, ref)
		}
	})
}

// call calls the function for the rows of one key and stores what it leaves. It reports whether the query goes on.
func (o *flatMapGroups) call(c *sim.BatchCtx, rows []stream.Row) bool {
	g := groupCall{c: c, groupState: groupState{timeout: noTimeout, timer: noTimeout}}
	entry := o.table.Get(rows[0].Key, c.Batch.At)
	if entry != nil {
		g.groupState, g.tag, g.exists = *o.states.at(entry.Value), entry.Tag, true
	}
	before := g.timeout
	g.timeout = noTimeout
	for i := range rows {
		if rows[i].Event == stream.NullTime {
			// Both the sort and the function ask the row for its time.
			g.fail("java.lang.NullPointerException", `Cannot invoke "java.sql.Timestamp.getTime()" because the return value `+
				`of "org.apache.spark.sql.Row.getTimestamp(int)" is null`)
			return false
		}
	}
	if len(rows) > 1 {
		slices.SortStableFunc(rows, func(a, b stream.Row) int { return cmp.Compare(a.Event, b.Event) })
	}
	o.function(&g, rows)
	if g.failed {
		return false
	}
	if g.updated || g.timeout != before {
		c.Progress.RowsUpdated++
		o.store(c, &g, entry, rows[0].Key, before)
	}
	return true
}

// store writes the state of a key and sets its timer.
func (o *flatMapGroups) store(c *sim.BatchCtx, g *groupCall, entry *sim.Entry, key stream.Key, before stream.Time) {
	flags := sim.Flags(0)
	if g.timeout != noTimeout {
		flags = sim.Pinned
		o.armed++
	}
	if before != noTimeout {
		o.armed--
	}
	sets := g.timeout != noTimeout && g.timeout != g.timer
	if sets {
		g.timer = g.timeout
	}
	var number int64
	if entry == nil {
		number = o.states.add(g.groupState)
	} else {
		number = entry.Value
		*o.states.at(number) = g.groupState
		if !sets && entry.Tag == g.tag && entry.Has(sim.Pinned) == (flags != 0) {
			return
		}
	}
	ref := o.table.Put(key, c.Batch.At, number, g.tag, flags)
	if sets {
		o.timers.Add(g.timeout, ref)
	}
}

// timeOut is the call of the function for a key that has timed out: it removes the state.
func (o *flatMapGroups) timeOut(c *sim.BatchCtx, at stream.Time, ref sim.Ref) {
	e := o.table.At(ref)
	if !e.Has(sim.Pinned) || o.states.at(e.Value).timeout != at {
		return // the timeout was cleared or moved since
	}
	if s := o.states.at(e.Value); o.says {
		c.Output(sim.Output{Tag: e.Tag, Keys: true, Event: s.first, Why: "expired", Count: s.count})
	}
	c.Progress.RowsRemoved++
	o.armed--
	o.states.remove(e.Value)
	o.table.Remove(ref)
}

func (o *flatMapGroups) Snapshot(*sim.BatchCtx) any {
	states := o.states.clone()
	return &states
}

func (o *flatMapGroups) Restore(_ *sim.BatchCtx, snapshot any) {
	o.states = snapshot.(*slots[groupState]).clone()
	o.table.EachPinned(func(ref sim.Ref, e *sim.Entry) {
		s := o.states.at(e.Value)
		s.timer = s.timeout
		o.timers.Add(s.timeout, ref)
		o.armed++
	})
}

func (o *flatMapGroups) State(*sim.BatchCtx) sim.State {
	held := o.table.Held()
	return sim.State{Entries: held, LiveKeys: held, Timers: o.armed, Bytes: int64(held * o.bytes)}
}

// Stored visits the state of every key.
func (o *flatMapGroups) Stored(f func(sim.Stored)) {
	o.table.Each(func(e *sim.Entry) {
		s := o.states.at(e.Value)
		f(sim.Stored{Tag: e.Tag, First: s.first, Last: s.last, Count: s.count, Timeout: s.timeout})
	})
}

// slots keeps what belongs to a key where that is more than one number: the entry of the key holds the number of its
// slot.
type slots[T any] struct {
	all   []T
	freed []int64
}

func (s *slots[T]) at(number int64) *T { return &s.all[number] }

func (s *slots[T]) add(v T) int64 {
	if n := len(s.freed); n > 0 {
		number := s.freed[n-1]
		s.freed = s.freed[:n-1]
		s.all[number] = v
		return number
	}
	s.all = append(s.all, v)
	return int64(len(s.all) - 1)
}

func (s *slots[T]) remove(number int64) { s.freed = append(s.freed, number) }

func (s *slots[T]) clone() slots[T] { return slots[T]{slices.Clone(s.all), slices.Clone(s.freed)} }
