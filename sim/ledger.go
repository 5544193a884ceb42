package sim

import (
	"fmt"
	"slices"

	"deduplab/gen"
	"deduplab/results"
	"deduplab/stream"
)

// LedgerSpec says what a ledger is to know of the job and the strategy.
type LedgerSpec struct {
	Workload gen.Workload
	// Sink is what the result's reader makes of the changes.
	Sink stream.Sink
	// CommitEvery is the checkpoint interval under exactly-once: a change is visible at the next multiple. 0: at once.
	CommitEvery stream.Time
	// Failures are those of a job that takes a record at a time; nil for none.
	Failures *Failures
	// Result says what its rows hold.
	Result Result
	// Retracts says that rows of the result can be taken back: the causes of leaks are then kept by event.
	Retracts bool
	// ToChangelog says that every change reaches the sink as an inserted row.
	ToChangelog bool
	// Amount is a number of a row, of which the ledger keeps the sums of the result; of a composed row its parts are
	// given. Nil: there are no sums.
	Amount func(tag stream.Tag, parts []stream.Tag) int64
	// Cause finds the cause of a leak: a row that came through beside another one of its event. Nil: Unexplained.
	Cause func(LeakedRow) string
	// OnRow is told of each row that comes into the result, n = 1, or leaves it, n = -1: a row of the stream, or one
	// composed of the columns of others where parts is not nil. Nil: nobody asks.
	OnRow func(tag stream.Tag, parts []stream.Tag, n int64)
	// Right reports whether a row is the version of its event that the strategy promises to end with. Nil: any is.
	Right func(stream.Tag) bool
}

// Sums are of the amounts of rows: of those in the result that stand alone for their event, of those beside another one
// of their event, and of the originals of events that are not in the result. Gone is known once Result has been called.
type Sums struct{ Kept, Twice, Gone int64 }

// LeakedRow is a row that came through although its event is in the result already.
type LeakedRow struct {
	Tag    stream.Tag
	At     stream.Time
	Update bool // it came as +U
	// Rewritten: the row itself has gone out before, and a batch that was run again has written it twice.
	Rewritten bool
	// SameBatch: another row of its batch has the same key and came through too.
	SameBatch bool
}

// Ledger knows the truth. It is told every change of one strategy's run and keeps one byte an event, from which the
// fates of all rows follow at the end.
type Ledger struct {
	spec   LedgerSpec
	events []fate

	draining bool // the span is over

	rows         int64
	dispositions [dispositions]int64
	mostHeld     int64 // rows that waited at once
	changes      [4]int64
	synthesized  int64
	present      map[uint64]int64 // events with many rows in the result: how many
	kept, leaked int64
	replaced     int64 // rows that went out and were taken back or overwritten
	absent       int64 // retractions of rows that the result does not hold
	wrong        int64 // events in the result whose promised version is not
	sums         Sums
	leaks        map[string]int64
	rewritten    int64                  // of the leaked rows: those that a batch has written twice
	repaired     int64                  // rows that went out and were removed as copies
	leakCauses   map[uint64][]leakCause // of events whose rows can be taken back
	ever         int64                  // events that ever went out
	table        *Table                 // of an upsert sink: the row of each key

	wait, settle, commit Histogram
	// settled holds the settle that is counted for an event, while rows of it are still to come and if it is not 0.
	settled map[uint64]stream.Time

	digest   Digest
	examples examples

	committed stream.Time // the last checkpoint
	err       error       // the first breach of exactly-once
	recovered             // of a job that fails
}

// leakCause is why a row of an event stands beside another one.
type leakCause struct {
	tag       stream.Tag
	cause     string
	rewritten bool
	amount    int64
}

// fate is the byte of an event: how many of its rows are in the result, and what happened to it so far.
type fate uint8

const (
	inResult  fate = 3 // 0, 1, 2, or manyRows: see Ledger.present
	manyRows  fate = 3
	everOut   fate = 1 << 2 // one of its rows went out once
	rightRow  fate = 1 << 3 // the promised version is in the result
	lossShift      = 4      // 3 bits: what kept rows of it out
	lossBits  fate = 7 << lossShift
	// settledLate: the settle that is counted for it is not 0.
	settledLate fate = 1 << 7
)

// loss is what kept an event's rows out of the result. Of several the largest counts: an event with a late row is a late
// first, even if another of its rows was dropped as a copy of that one; one with a diverted row is not lost at all.
type loss fate

const (
	noLoss          loss = iota
	lostReplaced         // another event's row took its place
	lostAsDuplicate      // taken for a copy of another event
	lostFiltered         // let through by no branch
	lostLate
	lostLateAfterIdle
	lostDiverted // not lost: in a dead letter queue
)

// NewLedger opens a ledger.
func NewLedger(spec LedgerSpec) *Ledger {
	l := &Ledger{
		spec: spec, settled: map[uint64]stream.Time{}, present: map[uint64]int64{}, leaks: map[string]int64{},
		leakCauses: map[uint64][]leakCause{}, examples: examples{},
		digest: Digest{Table: make([]uint64, buckets), Order: make([]uint64, buckets)}, committed: stream.MinTime,
	}
	if spec.Failures != nil {
		l.followed = map[stream.Tag]*followed{}
	}
	if spec.Sink == stream.UpsertSink {
		l.table = NewTable(TableSpec{})
	}
	return l
}

// Rows counts rows that were handed to the strategy.
func (l *Ledger) Rows(n int) { l.rows += int64(n) }

// MostHeld is how many rows waited at once.
func (l *Ledger) MostHeld() int64 { return l.mostHeld }

// Book enters one change.
func (l *Ledger) Book(c *Change, key stream.Key, parts []stream.Tag) {
	if l.spec.CommitEvery > 0 && (c.At < l.committed || c.Early) && l.err == nil {
		l.err = notExactlyOnce(c, l.committed)
	}
	if l.followed != nil && l.bookFollowed(c, key, parts) {
		return
	}
	switch c.Op {
	case OpDrop:
		l.dispositions[c.To]++
		l.keepOut(c)
		return
	case OpHold:
		l.dispositions[Held]++
		l.mostHeld = max(l.mostHeld, l.dispositions[Held])
		l.at(c.Tag.Event())
		return
	case OpDropHeld:
		l.dispositions[Held]--
		l.dispositions[c.To]++
		l.keepOut(c)
		return
	case OpEmit:
		l.dispositions[Emitted]++
	case OpRevive:
		l.dispositions[c.To]--
		l.dispositions[Emitted]++
	case OpRelease:
		l.dispositions[Held]--
		l.dispositions[Emitted]++
	}
	l.out(c, key, parts)
}

// at returns the byte of an event.
func (l *Ledger) at(event uint64) *fate {
	for event >= uint64(len(l.events)) {
		l.events = append(l.events, make([]fate, max(1024, len(l.events)/2, int(event)+1-len(l.events)))...)
	}
	return &l.events[event]
}

var lossOf = [dispositions]loss{
	Duplicate: lostAsDuplicate, Aside: lostAsDuplicate, Late: lostLate, Replaced: lostReplaced, Diverted: lostDiverted,
	Filtered: lostFiltered,
}

// keepOut notes what kept a row out, for the case that nothing of its event gets through.
func (l *Ledger) keepOut(c *Change) {
	f := l.at(c.Tag.Event())
	why := lossOf[c.To]
	if why == lostLate && c.Behind {
		why = lostLateAfterIdle
	}
	if before := loss(*f & lossBits >> lossShift); why > before && !(why == lostLateAfterIdle && before == lostLate) {
		*f = *f&^lossBits | fate(why)<<lossShift
	}
	switch c.To {
	case Late, Filtered:
		l.examples.keep(exampleLate, c)
		if *f&inResult == 0 {
			l.examples.keep(exampleLateFirst, c)
		}
	case Diverted:
		l.examples.keep(exampleDiverted, c)
	case Duplicate, Aside:
		if *f&inResult == 0 {
			l.examples.keep(exampleSwallowed, c)
		}
	}
}

// out enters a change that went out.
func (l *Ledger) out(c *Change, key stream.Key, parts []stream.Tag) {
	kind := c.Kind
	if l.spec.ToChangelog {
		kind = stream.Insert
	}
	l.changes[kind]++
	l.measure(c)
	if parts != nil && !l.isInput(parts) {
		l.synthesized++
		l.examples.keep(exampleSynthesized, c)
	}
	content, before := l.content(c.Tag, key, parts), uint64(0)
	if c.Kind == stream.UpdateAfter {
		l.examples.keep(exampleUpdate, c)
		if c.Op != OpAgain {
			before = l.content(c.Old, key, nil)
		}
	}
	l.digest.change(content, before, c.Kind, key)
	l.apply(c, key, content, parts)
}

// adds reports whether a change that went out brings a row.
func (c *Change) adds() bool { return c.Kind == stream.Insert || c.Kind == stream.UpdateAfter }

// apply does to the result what the sink's reader does with a change.
func (l *Ledger) apply(c *Change, key stream.Key, content uint64, parts []stream.Tag) {
	again := c.Op == OpAgain
	if again && c.Kind == stream.UpdateAfter && !l.spec.ToChangelog {
		l.replaced-- // its -U counted the row as replaced, but it is the same row that stands
	}
	switch {
	case again && l.spec.ToChangelog: // a row with op UPDATE_BEFORE: stored, and none of the input's
	case l.spec.Sink == stream.UpsertSink:
		l.upsert(c, key)
	case c.adds():
		l.add(c, key, content, parts)
	case l.spec.Sink == stream.RetractSink && !l.spec.ToChangelog, c.Op == OpRemove:
		l.remove(c.Tag, key, content, parts, c.Op == OpRemove)
	}
}

// measure counts the latency of a change that went out.
func (l *Ledger) measure(c *Change) {
	event := c.Tag.Event()
	if f := l.at(event); c.adds() && *f&everOut == 0 {
		*f |= everOut
		l.ever++
		l.measureWait(c, event)
	} else {
		l.measureSettle(c, event)
	}
	if l.spec.CommitEvery > 0 && !l.draining {
		l.commit.Add(l.commitAt(c.At) - c.At)
	}
}

// commitAt is when a change becomes visible.
func (l *Ledger) commitAt(t stream.Time) stream.Time {
	if l.spec.Failures != nil {
		return l.spec.Failures.CommitAt(t)
	}
	return CommitAt(t, l.spec.CommitEvery)
}

// CommitAt is the first commit at or after t.
func CommitAt(t, every stream.Time) stream.Time {
	if start := t.Floor(every); start != t {
		return start + every
	}
	return t
}

// content identifies the result's row that a change is about.
func (l *Ledger) content(tag stream.Tag, key stream.Key, parts []stream.Tag) uint64 {
	return l.spec.Result.Content(l.spec.Workload, tag, key, parts)
}

// Result says what the rows of a result hold. The zero value is all columns.
type Result struct {
	// KeyOnly says that the result holds keys alone: equal keys are equal rows.
	KeyOnly bool
	// Beside is the only column that the result holds beside the keys, nil where it holds all.
	Beside *int
}

// Content identifies the result's row that a change is about.
func (r Result) Content(w stream.Records, tag stream.Tag, key stream.Key, parts []stream.Tag) uint64 {
	switch {
	case r.KeyOnly:
		return key.Hash()
	case r.Beside != nil && parts == nil:
		return mixValue(key.Hash(), w.Record(tag)[*r.Beside])
	case parts == nil:
		return w.Content(tag)
	}
	composed := uint64(len(parts))
	for _, v := range Compose(w, parts) {
		composed = mixValue(composed, v)
	}
	return composed
}

// mixValue adds a value to what identifies a row.
func mixValue(content uint64, v stream.Value) uint64 {
	content = stream.Mix(content ^ uint64(v.Int))
	for _, b := range []byte(v.Text) {
		content = stream.Mix(content ^ uint64(b))
	}
	return content
}

// isInput reports whether a composed row equals one of the rows that it was made of.
func (l *Ledger) isInput(parts []stream.Tag) bool {
	composed := Compose(l.spec.Workload, parts)
candidates:
	for i, tag := range parts {
		if i > 0 && tag == parts[i-1] {
			continue
		}
		for column, v := range l.spec.Workload.Record(tag) {
			if v != composed[column] {
				continue candidates
			}
		}
		return true
	}
	return false
}

// measureWait counts the time from the first arrival of an event to its first emission.
func (l *Ledger) measureWait(c *Change, event uint64) {
	if l.draining {
		return
	}
	wait := stream.Time(0)
	switch {
	case l.crashed(c.At): // a row of now may have arrived long ago
		wait = c.At - l.spec.Workload.FirstArrival(event)
	case c.Op == OpEmit && c.First:
	case c.Op == OpRelease && c.Kind == stream.Insert && c.Since != stream.NullTime:
		wait = c.At - c.Since
	default:
		wait = c.At - l.spec.Workload.FirstArrival(event)
	}
	if wait > l.wait.max {
		l.examples.keepSlowest(c)
	}
	l.wait.Add(wait)
	l.settle.Add(wait)
	if l.spec.Failures != nil && l.spec.Failures.delays(l.spec.Workload.FirstArrival(event)) {
		l.outages.wait.Add(wait)
	}
	if wait > 0 {
		*l.at(event) |= settledLate
		if !c.Lone {
			l.noteSettle(event, wait, c.At)
		}
	}
}

// measureSettle moves an event from its last change to this one.
func (l *Ledger) measureSettle(c *Change, event uint64) {
	if l.draining {
		return
	}
	f := l.at(event)
	before, known := l.settled[event]
	if !known && *f&settledLate != 0 {
		return // all its rows have come, and what was counted for it stands
	}
	now := c.At - l.spec.Workload.FirstArrival(event)
	if now != before {
		l.settle.addN(before, -1)
		l.settle.Add(now)
		*f |= settledLate
	}
	l.noteSettle(event, now, c.At)
}

// noteSettle remembers the settle that is counted for an event while rows of it are still to come.
func (l *Ledger) noteSettle(event uint64, settle, at stream.Time) {
	if l.spec.Workload.LastArrival(event) > at {
		l.settled[event] = settle
	} else {
		delete(l.settled, event)
	}
}

// EndSpan tells that the last original is due. What follows is the drain, which latency leaves out.
func (l *Ledger) EndSpan() { l.draining = true }

// add puts a row into the result.
func (l *Ledger) add(c *Change, key stream.Key, content uint64, parts []stream.Tag) {
	l.digest.row(content, key, 1)
	if l.spec.OnRow != nil {
		l.spec.OnRow(c.Tag, parts, 1)
	}
	event := c.Tag.Event()
	f := l.at(event)
	if l.followed != nil {
		l.stands(c.Tag, 1)
	}
	var amount int64
	if l.spec.Amount != nil {
		amount = l.spec.Amount(c.Tag, parts)
	}
	switch n := *f & inResult; {
	case n == 0:
		l.kept++
		l.sums.Kept += amount
		*f++
		if c.Op == OpRewrite { // an audit had taken it out, and it counted as replaced
			l.replaced--
		}
		if l.spec.Right != nil {
			l.wrong++
		}
	case n < manyRows-1:
		*f++
		l.leak(c, amount)
	case n == manyRows-1:
		*f++
		l.present[event] = int64(manyRows)
		l.leak(c, amount)
	default:
		l.present[event]++
		l.leak(c, amount)
	}
	if l.spec.Right == nil || *f&rightRow != 0 {
		return
	}
	if c.Lone || l.spec.Right(c.Tag) {
		*f |= rightRow
		l.wrong--
	} else {
		l.examples.keep(exampleWrong, c)
	}
}

// Sums returns the sums of the result.
func (l *Ledger) Sums() Sums { return l.sums }

// leak counts a row beside another one of its event, and its amount.
func (l *Ledger) leak(c *Change, amount int64) {
	l.leaked++
	l.sums.Twice += amount
	cause := Unexplained
	if l.spec.Cause != nil {
		cause = l.spec.Cause(LeakedRow{c.Tag, c.At, c.Kind == stream.UpdateAfter, c.Op == OpRewrite, c.SameBatch})
	}
	l.leaks[cause]++
	if l.spec.Retracts {
		l.leakCauses[c.Tag.Event()] = append(l.leakCauses[c.Tag.Event()], leakCause{c.Tag, cause, c.Op == OpRewrite, amount})
	}
	if c.Op == OpRewrite {
		l.rewritten++
	}
	l.examples.keepLeak(c, cause)
}

// remove takes a row out of the result. Copy says that it was removed as a copy of another row.
func (l *Ledger) remove(tag stream.Tag, key stream.Key, content uint64, parts []stream.Tag, copy bool) {
	event := tag.Event()
	f := l.at(event)
	n := *f & inResult
	if l.followed != nil && !l.stands(tag, -1) {
		return
	}
	if n == 0 {
		l.absent++
		return
	}
	l.digest.row(content, key, ^uint64(0))
	if l.spec.OnRow != nil {
		l.spec.OnRow(tag, parts, -1)
	}
	var amount int64
	if l.spec.Amount != nil {
		amount = l.spec.Amount(tag, parts)
	}
	if l.spec.Right != nil && *f&rightRow != 0 && l.spec.Right(tag) {
		*f &^= rightRow
		l.wrong++
	}
	if n == 1 {
		l.replaced++
		l.kept--
		l.sums.Kept -= amount
		*f--
		if l.spec.Right != nil && *f&rightRow == 0 {
			l.wrong--
		}
		return
	}
	if n < manyRows {
		*f--
	} else if l.present[event]--; l.present[event] < int64(manyRows) {
		delete(l.present, event)
		*f--
	}
	l.leaked--
	switch rewritten := l.forgive(event, tag, amount); {
	case rewritten: // it was none of the input's rows
		l.rewritten--
	case copy:
		l.repaired++
	default:
		l.replaced++
	}
}

// forgive takes back the cause of a leak whose row leaves the result, or, where the row that leaves has none, of one that
// now stands alone, with the amounts of both. It reports whether that was a row written twice.
func (l *Ledger) forgive(event uint64, tag stream.Tag, amount int64) bool {
	causes := l.leakCauses[event]
	if len(causes) == 0 {
		l.sums.Twice -= amount
		return false
	}
	gone := len(causes) - 1
	for i, c := range causes {
		if c.tag == tag || !c.rewritten && causes[gone].tag != tag {
			gone = i
		}
	}
	c := causes[gone]
	l.leaks[c.cause]--
	l.sums.Twice -= c.amount
	l.sums.Kept += c.amount - amount
	if causes = slices.Delete(causes, gone, gone+1); len(causes) == 0 {
		delete(l.leakCauses, event)
	} else {
		l.leakCauses[event] = causes
	}
	return c.rewritten
}

// upsert replaces the row of a key.
func (l *Ledger) upsert(c *Change, key stream.Key) {
	if c.Kind == stream.UpdateBefore {
		return
	}
	if old := l.table.Get(key, c.At); old != nil {
		tag := old.Tag
		if c.Op == OpRewrite && tag == c.Tag && c.Kind != stream.Delete { // it overwrites itself
			return
		}
		l.remove(tag, key, l.content(tag, key, nil), nil, false)
		l.table.Delete(key)
	}
	if c.Kind != stream.Delete {
		l.table.Put(key, c.At, 0, c.Tag, 0)
		l.add(c, key, l.content(c.Tag, key, nil), nil)
	}
}

// Check verifies that rows in are the sum of the dispositions, and that only rows of the result were taken back. It is
// asked at every checkpoint of every run.
func (l *Ledger) Check() error {
	if l.err != nil {
		return l.err
	}
	if l.absent > 0 {
		return InternalError(fmt.Sprintf("%d retractions of rows that the result does not hold", l.absent))
	}
	sum := int64(0)
	for _, n := range l.dispositions {
		sum += n
	}
	if sum != l.rows || l.dispositions[Held] < 0 {
		return InternalError(fmt.Sprintf("%d rows went in, but %d were accounted for: %v", l.rows, sum, l.dispositions))
	}
	return nil
}

// Committed tells that a checkpoint has completed at a moment: under exactly-once all that was done by then is visible, and
// nothing more may be added to it.
func (l *Ledger) Committed(at stream.Time) { l.committed = at }

func notExactlyOnce(c *Change, committed stream.Time) error {
	if c.Early {
		return InternalError(fmt.Sprintf("a change of %s is visible though a crash has undone it, under exactly-once", c.At))
	}
	return InternalError(fmt.Sprintf("a change of %s comes after the checkpoint of %s, which has made visible all before "+
		"then, has completed", c.At, committed))
}

// InternalError is a fault of the lab itself, not of its input.
type InternalError string

// Error says that it is one.
func (e InternalError) Error() string { return "internal error: " + string(e) }

// Result closes the ledger: it settles the fates and fills in what the ledger knows.
func (l *Ledger) Result(s *results.Strategy) {
	s.RowsIn = l.rows
	s.Fates, s.LossesByCause = l.fates()
	s.LeaksByCause = nonZero(l.leaks)
	s.WrongVersion, s.Synthesized = l.wrong, l.synthesized
	s.Leaked, s.WriteDuplicates, s.Lost = l.leaked, l.rewritten, s.Fates.LateFirst+s.Fates.Swallowed
	s.ResultRows = l.kept + l.leaked
	s.Changes = results.Changes{
		Insert: l.changes[stream.Insert], UpdateBefore: l.changes[stream.UpdateBefore],
		UpdateAfter: l.changes[stream.UpdateAfter], Delete: l.changes[stream.Delete],
	}
	s.Updates = s.Changes.UpdateBefore + s.Changes.UpdateAfter + s.Changes.Delete
	stored := s.Changes.Insert + s.Changes.UpdateAfter
	s.InsertOnly = results.InsertOnly{Rows: stored, Extra: stored - l.ever}
	s.Latency = results.Latency{
		Wait: l.wait.Quantiles(), Settle: l.settle.Quantiles(), Commit: l.commit.Quantiles(),
	}
}

// fates counts what became of all rows, and the events lost by their cause. A row of a lost event has been counted by
// its disposition; the one that the event is lost with moves from there to the losses.
func (l *Ledger) fates() (results.Fates, map[string]int64) {
	f := results.Fates{
		Kept: l.kept, Leaked: l.leaked - l.rewritten, Replaced: l.replaced + l.dispositions[Replaced],
		Suppressed: l.dispositions[Duplicate] + l.repaired, LateCopy: l.dispositions[Late] + l.dispositions[Filtered],
		Diverted: l.dispositions[Diverted] + l.dispositions[Aside], Pending: l.dispositions[Held],
	}
	copies := &f.Suppressed // where rows went that were taken for copies
	if l.dispositions[Aside] > 0 {
		copies = &f.Diverted
	}
	losses := map[string]int64{}
	lose := func(from, to *int64, cause string) {
		*from--
		*to++
		losses[cause]++
	}
	merged := func(event int) string {
		if l.spec.Workload.ReusedID(uint64(event)) {
			return "id_reuse"
		}
		return "key_merge"
	}
	for event, e := range l.events {
		if e&inResult != 0 {
			continue
		}
		why := e.why()
		if l.spec.Amount != nil && why != noLoss {
			l.sums.Gone += l.spec.Amount(stream.NewTag(uint64(event), 0, 0), nil)
		}
		switch why {
		case lostReplaced:
			lose(&f.Replaced, &f.Swallowed, merged(event))
		case lostAsDuplicate:
			lose(copies, &f.Swallowed, merged(event))
		case lostFiltered:
			lose(&f.LateCopy, &f.LateFirst, "null_watermark")
		case lostLate:
			lose(&f.LateCopy, &f.LateFirst, "late")
		case lostLateAfterIdle:
			lose(&f.LateCopy, &f.LateFirst, "late_after_idle")
		}
	}
	return f, losses
}

// why is what kept an event out of the result, if it is not in it.
func (f fate) why() loss {
	if f&everOut != 0 { // it went out, and another event's row took its place
		return lostReplaced
	}
	return loss(f & lossBits >> lossShift)
}

var eventFates = map[loss]string{
	noLoss: "pending", lostReplaced: "swallowed", lostAsDuplicate: "swallowed", lostFiltered: "late first",
	lostLate: "late first", lostLateAfterIdle: "late first", lostDiverted: "diverted",
}

// FateOf tells what became of an event, and how many rows of it are in the result: kept where it is one and the promised
// version, else leaked, wrong version, late first, swallowed, diverted or pending.
func (l *Ledger) FateOf(event uint64) (fate string, rows int64) {
	f := *l.at(event)
	rows = int64(f & inResult)
	if f&inResult == manyRows {
		rows = l.present[event]
	}
	switch {
	case rows == 0:
		return eventFates[f.why()], 0
	case rows > 1:
		return "leaked", rows
	case l.spec.Right != nil && f&rightRow == 0:
		return "wrong version", 1
	}
	return "kept", 1
}

func nonZero(m map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for k, v := range m {
		if v != 0 {
			out[k] = v
		}
	}
	return out
}

// Unexplained is the cause of a leak that none of the known causes explains.
const Unexplained = "unexplained"

// Digest returns the digests of what has been entered so far.
func (l *Ledger) Digest() Digest { return l.digest }

// buckets is the number of buckets of keys of a digest.
const buckets = 4096

// Bucket is the bucket of a key in the digests.
func Bucket(key stream.Key) int { return int(key.Hash() % buckets) }

// Digest stands for a whole run when two are compared.
type Digest struct {
	// Table is of the final table, a multiset of rows, by bucket of keys.
	Table []uint64
	// Order is of the changes of each key in their order, by bucket of keys: every update is linked to the row that it
	// takes the place of, so that the order of different keys does not matter.
	Order []uint64
	// Changes is of the multiset of changes.
	Changes uint64
}

func (d *Digest) change(content, before uint64, kind stream.Kind, key stream.Key) {
	c := stream.Mix(content ^ uint64(kind+1)<<56)
	d.Changes += c
	d.Order[Bucket(key)] += stream.Mix(c ^ stream.Mix(before))
}

// row adds a row to the table n times; n may be -1 as an unsigned number.
func (d *Digest) row(content uint64, key stream.Key, n uint64) {
	d.Table[Bucket(key)] += n * stream.Mix(content)
}

// SameTable reports whether two runs ended with the same table.
func (d Digest) SameTable(other Digest) bool { return slices.Equal(d.Table, other.Table) }

// SameOrder reports whether two runs agree in the order of changes of every key.
func (d Digest) SameOrder(other Digest) bool { return slices.Equal(d.Order, other.Order) }

// FirstDifference is the first bucket in which two runs differ, of those in which the tables do if there is one; -1
// where the runs agree.
func (d Digest) FirstDifference(other Digest) int {
	for _, pair := range [][2][]uint64{{d.Table, other.Table}, {d.Order, other.Order}} {
		for i := range pair[0] {
			if pair[0][i] != pair[1][i] {
				return i
			}
		}
	}
	return -1
}
