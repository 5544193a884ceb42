package sim

import "deduplab/stream"

// Operator is one parallel instance of a strategy: a pure step machine. It knows no wall clock, starts no goroutine,
// does no I/O and holds no random source; all it sees of the world comes in through these calls and its [Ctx].
//
// At one instant the runtime calls, in this order: ProcTimer, Rows, SourceWatermark, Watermark and each EventTimer that
// it makes due, BeforeCheckpoint. Embed [Base] for the calls that a strategy has no use for.
type Operator interface {
	// Rows handles a run of rows in order. No timer, watermark or checkpoint falls inside a run. Row.Arrival is the
	// processing time at which a row is handled and never falls. Every row must be given exactly one disposition, by
	// Emit, Update, Drop or Hold.
	Rows(c *Ctx, rows []stream.Row)
	// SourceWatermark tells the watermark of one source reader, before the combined one that may follow from it.
	// Stages that run in the reader's own chain (a filter, a local aggregate) go by it.
	SourceWatermark(c *Ctx, reader int, w stream.Time)
	// Watermark tells that the combined watermark advanced to w; event-time timers up to w are called after it.
	Watermark(c *Ctx, w stream.Time)
	// EventTimer handles the timers of one moment of event time.
	EventTimer(c *Ctx, at stream.Time, due []Ref)
	// ProcTimer handles one processing-time timer of a key.
	ProcTimer(c *Ctx, at stream.Time, key stream.Key)
	// BeforeCheckpoint flushes what the engine flushes before a snapshot: caches, buffers, batches.
	BeforeCheckpoint(c *Ctx)
	// Snapshot returns what a checkpoint stores of the operator beside its tables and the processing-time timers of
	// keys, nil for nothing. It is called after BeforeCheckpoint and shares nothing with the operator.
	Snapshot(c *Ctx) any
	// Restore is called once, before anything else, in a new operator whose tables and processing-time timers are those
	// of a checkpoint, with what Snapshot returned. It may change none of that, and registers the event-time timers.
	Restore(c *Ctx, snapshot any)
	// State tells what the operator holds, for metrics and for the comparison with recordings.
	State(c *Ctx) State
}

// Base is an Operator without timers, watermarks or buffers, to be embedded.
type Base struct{}

// SourceWatermark does nothing.
func (Base) SourceWatermark(*Ctx, int, stream.Time) {}

// Watermark does nothing.
func (Base) Watermark(*Ctx, stream.Time) {}

// EventTimer does nothing.
func (Base) EventTimer(*Ctx, stream.Time, []Ref) {}

// ProcTimer does nothing.
func (Base) ProcTimer(*Ctx, stream.Time, stream.Key) {}

// BeforeCheckpoint does nothing.
func (Base) BeforeCheckpoint(*Ctx) {}

// Snapshot stores nothing.
func (Base) Snapshot(*Ctx) any { return nil }

// Restore has nothing to do.
func (Base) Restore(*Ctx, any) {}

// State is what an operator holds at one moment.
type State struct {
	// Entries are keyed state entries held, expired ones included; by state name where an operator has several.
	Entries int
	Named   map[string]int
	// Cached counts rows in a cache in front of the state, Buffered those in a batch or window buffer.
	Cached, Buffered int
	// LiveKeys counts distinct keys in unexpired state, cache or buffer.
	LiveKeys int
	// Timers counts the keys of a BatchOperator that have a timeout.
	Timers int
	// Bytes is the logical size: what the columns and bookkeeping of the state take by the lab's own count.
	Bytes int64
}

// Disposition is what an operator does with a row.
type Disposition uint8

// The dispositions. Rows in = their sum.
const (
	Emitted    Disposition = iota
	Duplicate              // dropped as a copy
	Late                   // dropped behind the watermark, counted by numLateRecordsDropped
	Replaced               // had been held, and a better row took its place before it went out
	Aside                  // sent to a side output as a copy
	Diverted               // sent to a dead letter queue
	Filtered               // let through by no branch of a query
	Retraction             // a -U or -D of the input: it takes back a row that came before, if that is known
	Held                   // waits in the operator
	dispositions
)

var dispositionNames = [dispositions]string{
	"emitted", "as a copy", "late", "replaced by a better row", "aside, as a copy", "diverted", "let through by no branch",
	"a retraction", "held",
}

// String says in words what becomes of the row.
func (d Disposition) String() string { return dispositionNames[d] }
