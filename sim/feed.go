package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"deduplab/gen"
	"deduplab/stream"
)

// FeedSpec says how a workload reaches the operators of a job.
type FeedSpec struct {
	Workload gen.Workload
	Source   SourceSpec
	// Checkpoint and Sample are the intervals of checkpoints and state samples; 0: none. Both fall on multiples of
	// themselves.
	Checkpoint, Sample stream.Time
	Perturbation       Perturbation
	// Failures are those of the job, nil for none. Rows are then read again after a crash, at CatchUpRate rows a second of
	// a reader, 0: 100 times the mean rate before the crash.
	Failures    *Failures
	CatchUpRate int64
	// NullTimes says that some engine takes rows without event time; otherwise the first one is an error. The source
	// is not told the time of such a row.
	NullTimes bool
}

// Perturbation is a change to how the same input is read that must not matter.
type Perturbation struct {
	// Interleave reads the partitions in another order, seeded by Seed: each keeps its own order, and one leads by at
	// most Skew rows and ten seconds.
	Interleave bool
	Seed       uint64
	Skew       int
	// CatchUp reads a backlog: all rows are readable at the start, and each reader handles CatchUp rows a second, at
	// most 500 of a partition in turn. 0: off.
	CatchUp int64
	// Retention is how long the source keeps a row from its arrival. The replay begins at the end of the workload's
	// span, so the rows that arrived more than Retention before that are gone. 0: it keeps all.
	Retention stream.Time
	// Opened is how long before the start of the workload the source is opened: it moves the phase of the periodic
	// watermark against the rows.
	Opened stream.Time
}

const (
	longestLead = 10 * 1000 // ms that an interleaving lets a row wait, so that it does not perturb a TTL as well
	pollRows    = 500
	batchRows   = 4096
)

// Batch is a piece of what every strategy of a run sees: rows, and the marks between them.
type Batch struct {
	Rows  []stream.Row
	Marks []Mark
	// Arriving is a piece of the stream as it arrives, where the job fails: without the crashes, and what is read again. It
	// is of another time than Rows. Nil: the job does not fail.
	Arriving *Batch
}

// Plain is the stream as it arrives.
func (b *Batch) Plain() *Batch {
	if b.Arriving != nil {
		return b.Arriving
	}
	return b
}

// Mark is something that happens between two rows.
type Mark struct {
	Before    int // index of the row that it precedes; len(Rows) at the end of the batch
	Kind      MarkKind
	Reader    int         // of SourceWatermark
	Watermark stream.Time // of SourceWatermark and CombinedWatermark
	At        stream.Time // processing time
	Again     bool        // of Restarted: the job crashes again before a checkpoint has completed
}

// MarkKind is what happens.
type MarkKind uint8

// The marks.
const (
	SourceWatermark MarkKind = iota
	CombinedWatermark
	Checkpoint
	Sample
	EndOfSpan // the last original is due: what follows is the drain
	EndOfInput
	// Kept follows a checkpoint that a crash goes back to, or stands at the start where the crash comes before the first
	// checkpoint has completed. What is done from here to Crashed is undone.
	Kept
	Crashed
	Restarted
)

// Feed delivers a workload as batches. At one instant come the rows by (partition, offset), then the watermark tick,
// then the checkpoint, then the crash or restart, then the sample.
type Feed struct {
	spec   FeedSpec
	rows   reordered
	source *Source

	pending  stream.Row
	has      bool
	read     bool // there are no more rows
	finished bool
	now      stream.Time

	tick, checkpoint, sample, end stream.Time // the next ones
	catching                      []bool      // by partition: back from idle and still behind
	lastRow                       []stream.Time
	newest                        []stream.Time // largest event time
	combined                      stream.Time
	ends                          []gen.End // of the partitions that end before the stream
	missing                       Missing

	batch *Batch

	*recovery // nil where the job does not fail
}

// reordered delivers rows in the order in which they are read; Arrival is when they are.
type reordered interface {
	next() (stream.Row, bool, error)
}

// NewFeed starts a delivery.
func NewFeed(spec FeedSpec) *Feed {
	from, to := spec.Workload.Span()
	f := &Feed{spec: spec, now: from, end: to, combined: stream.MinTime}
	spec.Source.Partitions, spec.Source.Start = spec.Workload.Partitions(), from-spec.Perturbation.Opened
	f.spec = spec
	f.source = NewSource(spec.Source, f)
	f.tick = spec.Source.Start + f.source.Period()
	if f.source.Period() == 0 {
		f.tick = stream.MaxTime
	}
	f.checkpoint, f.sample = nextMultiple(from, spec.Checkpoint), nextMultiple(from, spec.Sample)
	f.ends = slices.Clone(spec.Workload.Ends())
	f.catching = make([]bool, spec.Workload.Partitions())
	f.lastRow = make([]stream.Time, len(f.catching))
	f.newest = make([]stream.Time, len(f.catching))
	for i := range f.newest {
		f.newest[i], f.lastRow[i] = stream.MinTime, from
	}
	rows := &arrivals{stream: spec.Workload.Stream(), buffer: make([]stream.Row, 256)}
	switch p := spec.Perturbation; {
	case p.Interleave:
		f.rows = newInterleaving(rows, len(f.catching), p)
	case p.CatchUp > 0:
		f.rows = newBacklog(f, from)
	case p.Retention > 0:
		f.rows = &remainder{rows, f}
	default:
		f.rows = rows
	}
	if spec.Failures != nil {
		f.recovery = newRecovery(f)
	}
	return f
}

// nextMultiple is the first multiple of interval after t; never for 0.
func nextMultiple(t, interval stream.Time) stream.Time {
	if interval == 0 {
		return stream.MaxTime
	}
	return t.Floor(interval) + interval
}

// Next fills a batch and reports whether there is one. It reuses the batch's memory.
func (f *Feed) Next(batch *Batch) (bool, error) {
	if f.recovery == nil {
		return f.fill(batch)
	}
	if batch.Arriving == nil {
		batch.Arriving = &Batch{}
	}
	arriving, err := f.arriving.fill(batch.Arriving)
	if err != nil {
		return false, err
	}
	ok, err := f.fill(batch)
	return ok || arriving, err
}

// fill fills a batch and reports whether there is one.
func (f *Feed) fill(batch *Batch) (bool, error) {
	batch.Rows, batch.Marks = batch.Rows[:0], batch.Marks[:0]
	if f.finished {
		return false, nil
	}
	f.batch = batch
	f.finishUnread()
	if f.recovery != nil {
		f.begin()
	}
	for len(batch.Rows) < batchRows && len(batch.Marks) < batchRows {
		if f.recovery != nil && f.down {
			f.instant(f.nextInstant())
			continue
		}
		if !f.has && !f.read {
			row, ok, err := f.rows.next()
			if err != nil {
				return false, err
			}
			f.pending, f.has, f.read = row, ok, !ok
		}
		if f.read && f.end == stream.MaxTime && (f.recovery == nil || f.next == stream.MaxTime) {
			f.finish()
			return true, nil
		}
		if f.read { // within the span: whatever is due until its end still happens
			f.instant(f.nextInstant())
			continue
		}
		if f.pending.Event == stream.NullTime && !f.spec.NullTimes {
			return false, NoEventTime(&f.pending)
		}
		if at := f.nextInstant(); at < f.pending.Arrival {
			f.instant(at)
			continue
		}
		f.row()
	}
	return true, nil
}

// NoEventTime is the error with which a Flink job ends at a row without event time.
func NoEventTime(row *stream.Row) error {
	return fmt.Errorf("the row of partition %d that arrives at %s has no event time: Flink's watermark assigner fails "+
		"the job on NULL (flink watermark/sql-null-rowtime)", row.Partition, row.Arrival)
}

// nextInstant is the next moment at which something other than a row happens.
func (f *Feed) nextInstant() stream.Time {
	at := min(f.tick, f.checkpoint, f.sample, f.end)
	if f.recovery != nil {
		at = min(at, f.next)
	}
	return at
}

// instant lets everything happen that is due at a moment.
func (f *Feed) instant(at stream.Time) {
	f.now = at
	if f.tick == at {
		f.tick += f.source.Period()
		f.source.Tick(at)
	}
	if f.checkpoint == at {
		f.checkpoint += f.spec.Checkpoint
		if f.recovery == nil {
			f.mark(Mark{Kind: Checkpoint})
		} else if f.plan.begins(at) {
			f.mark(Mark{Kind: Checkpoint})
			f.keep(at)
		}
	}
	if f.recovery != nil && f.next == at {
		f.crashOrRestart(at)
	}
	if f.sample == at {
		f.sample += f.spec.Sample
		f.mark(Mark{Kind: Sample})
	}
	if f.end == at {
		f.end = stream.MaxTime
		f.sample = stream.MaxTime
		f.mark(Mark{Kind: EndOfSpan})
	}
}

// row delivers the pending row.
func (f *Feed) row() {
	row := &f.pending
	f.has = false
	f.now = row.Arrival
	p := row.Partition
	row.Reader = p % uint16(f.spec.Source.Readers)
	if idle := f.spec.Source.IdleAfter; idle > 0 && row.Arrival-f.lastRow[p] > idle {
		f.catching[p] = true
	}
	f.lastRow[p] = row.Arrival
	if f.catching[p] && f.newest[p]-f.spec.Source.Delay >= f.combined && f.newest[p] != stream.MinTime {
		f.catching[p] = false
	}
	row.Behind = f.catching[p]
	f.newest[p] = max(f.newest[p], row.Event)
	f.batch.Rows = append(f.batch.Rows, *row)
	f.source.Row(int(p), row.Event)
	for i := range f.ends {
		if f.ends[i].Last == row.Tag {
			f.source.Finish(int(p))
			if f.recovery != nil {
				f.over[p] = true
			}
		}
	}
	if f.recovery != nil {
		f.handled(row)
	}
}

// finishUnread finishes the partitions of which there is nothing to read.
func (f *Feed) finishUnread() {
	f.ends = slices.DeleteFunc(f.ends, func(end gen.End) bool {
		unread := end.Rows == 0 || f.isGone(f.spec.Workload.Arrival(end.Last))
		if unread {
			f.source.Finish(end.Partition)
			if f.recovery != nil {
				f.over[end.Partition] = true
			}
		}
		return unread
	})
}

// Missing is what a replay did not find any more.
type Missing struct {
	Rows   int64
	Events int64 // that lost all their rows
}

// Missing tells what the source no longer had; all of it is known once the last row has been read.
func (f *Feed) Missing() Missing { return f.missing }

// isGone reports whether the source no longer has a row that arrived at a moment.
func (f *Feed) isGone(arrival stream.Time) bool {
	p := f.spec.Perturbation
	_, to := f.spec.Workload.Span()
	return p.Retention > 0 && arrival < to-p.Retention
}

// lacks reports whether the source no longer has a row, and counts it.
func (f *Feed) lacks(row *stream.Row) bool {
	gone := f.isGone(row.Arrival)
	if gone {
		f.missing.Rows++
		if row.First && f.isGone(f.spec.Workload.LastArrival(row.Tag.Event())) {
			f.missing.Events++
		}
	}
	return gone
}

// finish ends the stream: the watermark goes to its maximum and a last checkpoint commits.
func (f *Feed) finish() {
	f.finished = true
	f.source.End()
	if f.spec.Checkpoint > 0 {
		f.now = max(f.now, min(f.checkpoint, f.now+f.spec.Checkpoint))
		f.mark(Mark{Kind: Checkpoint})
	}
	f.mark(Mark{Kind: EndOfInput})
}

func (f *Feed) mark(m Mark) {
	m.Before, m.At = len(f.batch.Rows), f.now
	f.batch.Marks = append(f.batch.Marks, m)
}

// SourceWatermark is told the watermark of a reader.
func (f *Feed) SourceWatermark(reader int, w stream.Time) {
	f.mark(Mark{Kind: SourceWatermark, Reader: reader, Watermark: w})
}

// Watermark is told the combined watermark.
func (f *Feed) Watermark(w stream.Time) {
	f.combined = w
	if f.recovery != nil {
		f.regain(w)
	}
	f.mark(Mark{Kind: CombinedWatermark, Watermark: w})
}

// arrivals reads rows as they arrive.
type arrivals struct {
	stream gen.Stream
	buffer []stream.Row
	at, n  int
}

func (a *arrivals) next() (stream.Row, bool, error) {
	if a.at == a.n {
		n, err := a.stream.Next(a.buffer)
		if n == 0 || err != nil {
			return stream.Row{}, false, err
		}
		a.at, a.n = 0, n
	}
	a.at++
	return a.buffer[a.at-1], true, nil
}

// remainder reads the rows that the source still has, as they arrived.
type remainder struct {
	*arrivals
	feed *Feed
}

func (r *remainder) next() (stream.Row, bool, error) {
	for {
		if row, ok, err := r.arrivals.next(); !ok || err != nil || !r.feed.lacks(&row) {
			return row, ok, err
		}
	}
}

// interleaving reads bursts of one partition at a time out of a window of rows.
type interleaving struct {
	rows     *arrivals
	ahead    stream.Row // read from rows, not yet in a queue
	hasAhead bool
	ended    bool
	queues   [][]queued
	waiting  int
	filled   int // rows that have been in a queue
	skew     int
	random   *rand.Rand
	turn     int
	burst    int
	now      stream.Time
}

// queued is a row that waits, and its place in the order of arrival.
type queued struct {
	stream.Row
	place int
}

func newInterleaving(rows *arrivals, partitions int, p Perturbation) *interleaving {
	return &interleaving{
		rows: rows, queues: make([][]queued, partitions), skew: max(p.Skew, 1),
		random: rand.New(rand.NewPCG(p.Seed, 0x1ead)), now: stream.MinTime,
	}
}

func (v *interleaving) next() (stream.Row, bool, error) {
	if err := v.fill(); err != nil {
		return stream.Row{}, false, err
	}
	if v.waiting == 0 {
		return stream.Row{}, false, nil
	}
	if late := v.oldestQueue(); v.queues[late][0].Arrival+longestLead <= v.now {
		v.turn, v.burst = late, 1
	}
	for v.burst == 0 || len(v.queues[v.turn]) == 0 {
		v.turn = v.random.IntN(len(v.queues))
		v.burst = 1 + v.random.IntN(64)
	}
	v.burst--
	row := v.queues[v.turn][0].Row
	v.queues[v.turn] = v.queues[v.turn][1:]
	v.waiting--
	v.now = max(v.now, row.Arrival)
	row.Arrival = v.now
	return row, true, nil
}

// fill reads rows into the queues as far as one may be handed out before the oldest that waits.
func (v *interleaving) fill() error {
	for {
		if !v.hasAhead {
			if v.ended {
				return nil
			}
			row, ok, err := v.rows.next()
			if err != nil {
				return err
			}
			if !ok {
				v.ended = true
				return nil
			}
			v.ahead, v.hasAhead = row, true
		}
		if v.waiting > 0 {
			oldest := &v.queues[v.oldestQueue()][0]
			if v.filled-oldest.place > v.skew || v.ahead.Arrival > oldest.Arrival+longestLead {
				return nil
			}
		}
		p := v.ahead.Partition
		v.queues[p] = append(v.queues[p], queued{v.ahead, v.filled})
		v.hasAhead = false
		v.waiting++
		v.filled++
	}
}

// oldestQueue is the partition whose first waiting row arrived first.
func (v *interleaving) oldestQueue() int {
	oldest := -1
	for p, q := range v.queues {
		if len(q) > 0 && (oldest < 0 || q[0].place < v.queues[oldest][0].place) {
			oldest = p
		}
	}
	return oldest
}

// backlog reads all partitions from the start at a fixed rate: one cursor a partition.
type backlog struct {
	feed    *Feed
	cursors []*arrivals // by partition, each over the whole workload
	readers []backlogReader
	start   stream.Time
}

type backlogReader struct {
	partitions []int
	turn       int
	polled     int
	done       int64 // rows handled
	row        stream.Row
	has        bool
}

func newBacklog(f *Feed, start stream.Time) *backlog {
	w, readers := f.spec.Workload, f.spec.Source.Readers
	b := &backlog{feed: f, readers: make([]backlogReader, readers), start: start}
	for p := range w.Partitions() {
		b.cursors = append(b.cursors, &arrivals{stream: w.Stream(), buffer: make([]stream.Row, 256)})
		r := &b.readers[p%readers]
		r.partitions = append(r.partitions, p)
	}
	return b
}

func (b *backlog) next() (stream.Row, bool, error) {
	best := -1
	for i := range b.readers {
		r := &b.readers[i]
		if err := b.poll(r); err != nil {
			return stream.Row{}, false, err
		}
		if r.has && (best < 0 || r.row.Arrival < b.readers[best].row.Arrival) {
			best = i
		}
	}
	if best < 0 {
		return stream.Row{}, false, nil
	}
	b.readers[best].has = false
	return b.readers[best].row, true, nil
}

// poll gets the reader's next row.
func (b *backlog) poll(r *backlogReader) error {
	for !r.has && len(r.partitions) > 0 {
		r.turn %= len(r.partitions)
		p := r.partitions[r.turn]
		row, ok, err := b.nextOf(p)
		if err != nil {
			return err
		}
		if !ok {
			r.partitions = append(r.partitions[:r.turn:r.turn], r.partitions[r.turn+1:]...)
			r.polled = 0
			continue
		}
		row.Arrival = b.start + stream.Time(r.done*1000/b.feed.spec.Perturbation.CatchUp)
		r.row, r.has = row, true
		r.done++
		if r.polled++; r.polled == pollRows {
			r.polled = 0
			r.turn++
		}
	}
	return nil
}

// nextOf is the next row of a partition that the source still has.
func (b *backlog) nextOf(partition int) (stream.Row, bool, error) {
	for {
		row, ok, err := b.cursors[partition].next()
		switch {
		case !ok || err != nil:
			return row, ok, err
		case int(row.Partition) != partition:
		case b.feed.lacks(&row):
		default:
			return row, true, nil
		}
	}
}
