package sim

import (
	"math"

	"deduplab/stream"
)

// Change is what an operator did, as it is handed to the ledger or to a test: a change that went out, or the
// disposition of a row that did not.
type Change struct {
	Tag stream.Tag  // the row it concerns
	At  stream.Time // processing time
	// Since, of a Release, is when the row began to wait if it was the first of its event, else NullTime.
	Since stream.Time
	// Old is the row that an update takes the place of.
	Old stream.Tag
	// Parts indexes the rows that a composed row was made of, 0 for a plain row: see Ctx.Parts.
	Parts int32
	Op    Op
	Kind  stream.Kind // but of Drop, Hold and DropHeld
	To    Disposition // of Drop and DropHeld
	First bool        // of Emit: the row is the first of its event
	Lone  bool        // of Emit and Release: its event has no other row; false where that is not known
	// SameBatch, of Release: another row of its micro-batch has the same key, and came through too.
	SameBatch bool
	// Behind, of a late row: its partition has been idle and has not caught up yet.
	Behind bool
	// Early: it went out before a crash that undid it, so that it is no disposition of its row, which is handled again.
	Early bool
}

// Op is what a Change is about.
type Op uint8

// The operations.
const (
	OpEmit     Op = iota // a row being handled goes out
	OpRelease            // a row that had been held goes out
	OpAgain              // a change about a row that came before: see Ctx.Again
	OpDrop               // a row being handled does not go out
	OpHold               // a row being handled waits
	OpDropHeld           // a row that had been held does not go out
	OpRewrite            // a row that has gone out is written once more, by a micro-batch that is run again
	OpRemove             // a row that has gone out is removed from the result as a copy
	OpRevive             // a row that did not go out is read again by another query, and goes out
)

// Ctx is an operator's view of the world: the clock, its watermark, state, timers, and where its output goes. There is
// one for each parallel instance.
type Ctx struct {
	Records stream.Records

	now       stream.Time
	watermark stream.Time
	opened    stream.Time // see Opened

	shared       *any // of the task
	readers      int
	checkpoints  stream.Time // the interval, 0 if unknown
	updateBefore bool        // the consumer wants -U
	tables       []*Table
	newTable     func(ttl stream.Time) *Table
	eventTimers  Wheel[Ref]
	procTimers   Wheel[stream.Key]
	timersFrom   func(arrival stream.Time) stream.Time // see TimersFrom; nil: no timers
	eventCount   timers                                // of eventTimers
	procCount    timers                                // of procTimers
	eventLive    int                                   // registered event-time timers that were not deleted
	service      int                                   // processing-time timers of the operator itself
	assigners    []assigner
	onTimer      func(TimerEvent)

	changes []Change
	keys    []stream.Key // of changes, one each
	err     error
	parts   [][]stream.Tag
	late    int64
}

// Now is the processing time of a timer, watermark or checkpoint. Rows bring their own: Row.Arrival.
func (c *Ctx) Now() stream.Time { return c.now }

// Watermark is the combined watermark of the subtask, MinTime before the first one.
func (c *Ctx) Watermark() stream.Time { return c.watermark }

// NewTable makes a keyed state with a TTL, 0 for none. Call it when the operator is made.
func (c *Ctx) NewTable(ttl stream.Time) *Table {
	t := c.newTable(ttl)
	c.tables = append(c.tables, t)
	return t
}

// Readers is the number of source readers.
func (c *Ctx) Readers() int { return c.readers }

// Shared returns what make made when the first subtask of the task asked: what Flink keeps not in the keyed operator
// but at the source, in front of the shuffle.
func (c *Ctx) Shared(make func() any) any {
	if *c.shared == nil {
		*c.shared = make()
	}
	return *c.shared
}

// CheckpointInterval is the time from one checkpoint to the next; 0 if it is not known, or there are none.
func (c *Ctx) CheckpointInterval() stream.Time { return c.checkpoints }

// TimerCount counts registered timers by time domain.
type TimerCount struct{ Event, Proc int }

// Timers counts the timers that are registered.
func (c *Ctx) Timers() TimerCount { return TimerCount{c.eventLive, c.procTimers.Len() - c.service} }

// LateDropped is the engine's counter numLateRecordsDropped.
func (c *Ctx) LateDropped() int64 { return c.late }

// UpdateBefore says whether -U is wanted, as Flink's generateUpdateBefore.
func (c *Ctx) UpdateBefore() bool { return c.updateBefore }

// Emit sends the row being handled; its disposition is Emitted.
func (c *Ctx) Emit(k stream.Kind, row *stream.Row) {
	c.changes = append(c.changes, Change{Tag: row.Tag, At: row.Arrival, Op: OpEmit, Kind: k,
		First: row.First, Lone: row.Lone})
	c.keys = append(c.keys, row.Key)
}

// Update sends the row being handled in place of old, which went out before: -U of old if the consumer wants it, then
// +U of the row.
func (c *Ctx) Update(old stream.Tag, row *stream.Row) {
	if c.updateBefore {
		c.Again(stream.UpdateBefore, row.Key, old, row.Arrival)
	}
	c.changes = append(c.changes, Change{Tag: row.Tag, At: row.Arrival, Old: old, Op: OpEmit,
		Kind: stream.UpdateAfter, First: row.First})
	c.keys = append(c.keys, row.Key)
}

// Again sends a change about a row that came before: one that went out is taken back by -U or -D or kept alive
// by a +U, and one that was dropped goes out after all, since what was better has been taken back.
func (c *Ctx) Again(k stream.Kind, key stream.Key, tag stream.Tag, at stream.Time) {
	c.changes = append(c.changes, Change{Tag: tag, At: at, Op: OpAgain, Kind: k})
	c.keys = append(c.keys, key)
}

// Fail ends the job with an error: of several the first one counts. What the operator does after it has no meaning.
func (c *Ctx) Fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// Drop does not send the row being handled.
func (c *Ctx) Drop(row *stream.Row, to Disposition) {
	if to == Late {
		c.late++
	}
	c.changes = append(c.changes, Change{Tag: row.Tag, At: row.Arrival, Op: OpDrop, To: to, First: row.First,
		Behind: row.Behind})
	c.keys = append(c.keys, row.Key)
}

// Hold keeps the row being handled in the operator.
func (c *Ctx) Hold(row *stream.Row) {
	c.changes = append(c.changes, Change{Tag: row.Tag, At: row.Arrival, Op: OpHold, First: row.First})
	c.keys = append(c.keys, row.Key)
}

// Wait is what the ledger needs to know of a row that was held.
type Wait struct {
	Since stream.Time // its arrival if it was the first row of its event, else NullTime
	Lone  bool        // its event has no other row
}

// WaitOf is the wait of a row that begins to be held.
func WaitOf(row *stream.Row) Wait {
	w := Wait{Since: stream.NullTime, Lone: row.Lone}
	if row.First {
		w.Since = row.Arrival
	}
	return w
}

// Release sends a row that had been held, now.
func (c *Ctx) Release(k stream.Kind, key stream.Key, tag stream.Tag, w Wait) {
	c.ReleaseAt(c.now, k, key, tag, w)
}

// ReleaseAt is Release at the arrival of a row being handled, which ended the wait.
func (c *Ctx) ReleaseAt(at stream.Time, k stream.Kind, key stream.Key, tag stream.Tag, w Wait) {
	c.changes = append(c.changes, Change{Tag: tag, At: at, Since: w.Since, Lone: w.Lone, Op: OpRelease, Kind: k})
	c.keys = append(c.keys, key)
}

// ReleaseUpdate sends a row that had been held in place of old, which went out before: -U of old if the consumer
// wants it, then +U of the row.
func (c *Ctx) ReleaseUpdate(at stream.Time, key stream.Key, old, tag stream.Tag) {
	if c.updateBefore {
		c.Again(stream.UpdateBefore, key, old, at)
	}
	c.changes = append(c.changes, Change{Tag: tag, At: at, Old: old, Op: OpRelease,
		Kind: stream.UpdateAfter})
	c.keys = append(c.keys, key)
}

// ReleaseParts sends a row that had been held and is composed of several: each column comes from the row of the part at
// its place.
func (c *Ctx) ReleaseParts(k stream.Kind, key stream.Key, tag stream.Tag, parts []stream.Tag) {
	c.parts = append(c.parts, parts)
	c.changes = append(c.changes, Change{Tag: tag, At: c.now, Since: stream.NullTime, Op: OpRelease, Kind: k,
		Parts: int32(len(c.parts))})
	c.keys = append(c.keys, key)
}

// DropHeld gives up a row that had been held, as a Duplicate or Replaced.
func (c *Ctx) DropHeld(key stream.Key, tag stream.Tag, to Disposition, at stream.Time) {
	c.changes = append(c.changes, Change{Tag: tag, At: at, Op: OpDropHeld, To: to})
	c.keys = append(c.keys, key)
}

// DropHeldLate gives up a row that had been held, as late.
func (c *Ctx) DropHeldLate(key stream.Key, tag stream.Tag, behind bool) {
	c.late++
	c.changes = append(c.changes, Change{Tag: tag, At: c.now, Op: OpDropHeld, To: Late, Behind: behind})
	c.keys = append(c.keys, key)
}

// EventTimer registers an event-time timer for an entry. A timer at or below the watermark fires with the next
// watermark that advances.
func (c *Ctx) EventTimer(at stream.Time, ref Ref) {
	c.eventLive++
	c.eventTimers.Add(at, ref)
	c.eventCount.set++
	c.tellTimer(at, true, false)
}

// ForgetEventTimer says that a timer registered before has no meaning any more. It still reaches the operator, which
// must recognise it as stale: its entry no longer has that time.
func (c *Ctx) ForgetEventTimer() { c.eventLive-- }

// TimersFrom says, for an operator that is new, which is the earliest processing-time timer that it sets for a row.
// Rows that come after it are not in one run with the row.
func (c *Ctx) TimersFrom(earliest func(arrival stream.Time) stream.Time) { c.timersFrom = earliest }

// ProcTimer registers a processing-time timer for a key. It must not be earlier than [Ctx.TimersFrom] says.
func (c *Ctx) ProcTimer(at stream.Time, key stream.Key) {
	c.procTimers.Add(at, key)
	c.procCount.set++
	c.tellTimer(at, false, false)
}

func (c *Ctx) tellTimer(at stream.Time, eventTime, fires bool) {
	if c.onTimer != nil {
		c.onTimer(TimerEvent{At: at, EventTime: eventTime, Fires: fires, Now: c.now})
	}
}

// ServiceKey is the key with which ProcTimer is called for a [Ctx.ServiceTimer]. No row has it.
var ServiceKey = stream.Key{Hi: math.MaxUint64, Lo: math.MaxUint64}

// ServiceTimer registers a processing-time timer of the operator itself, not of a key: Flink's ProcessingTimeService.
// It does not count among the registered timers, and the operator's ProcTimer is called for it with ServiceKey.
func (c *Ctx) ServiceTimer(at stream.Time) {
	c.service++
	c.procTimers.Add(at, ServiceKey)
	c.procCount.set++
}
