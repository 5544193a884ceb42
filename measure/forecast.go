package measure

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"

	"deduplab/stream"
)

// Forecast is what a TTL would do, counted in whole milliseconds as the engines do. A copy leaks that arrives when the
// TTL is over, to the millisecond; it then counts as a first row itself.
type Forecast struct {
	TTL stream.Time `json:"ttl_ms"` // 0 is none
	// Create counts the TTL from the first row of a key, Refresh from the last: copies extend it.
	Create  Outcome `json:"from_first"`
	Refresh Outcome `json:"from_last"`
	// AtLeast says that the TTL is half the trace or longer: the trace is too short for its copies and its state.
	AtLeast bool `json:"at_least,omitempty"`
}

// Outcome is what comes through and what must be remembered.
type Outcome struct {
	Leaked   int     `json:"leaked"`
	LeakRate float64 `json:"leak_rate"` // of the copies
	Keys     int     `json:"keys_peak"` // remembered at once
	Bytes    int64   `json:"bytes_peak"`
}

// spans are the TTLs and watermark delays that people choose.
var spans = []stream.Time{100, 1e3, 10e3, 30e3, 60e3, 5 * 60e3, 10 * 60e3, 30 * 60e3, 3600e3, 2 * 3600e3, 3 * 3600e3,
	6 * 3600e3, 12 * 3600e3, 86400e3, 2 * 86400e3, 3 * 86400e3, 7 * 86400e3, 14 * 86400e3, 28 * 86400e3, 90 * 86400e3,
	365 * 86400e3}

// RoundUp is the shortest usual span that is not below one in milliseconds; beyond a year, whole days.
func RoundUp(t stream.Time) stream.Time { return roundUp(Span(t) * millisecond) }

func roundUp(at Span) stream.Time {
	for _, s := range spans {
		if Span(s)*millisecond >= at {
			return s
		}
	}
	return stream.Time((at + day - 1) / day * day / millisecond)
}

// above is the shortest usual span under which a copy with this delay does not leak.
func above(delay Span) stream.Time { return roundUp((delay/millisecond + 1) * millisecond) }

// maxTTLs bounds the TTLs that are tried, so that what a row does under each fits into a word.
const maxTTLs = 64

// forecasting follows the keys that have copies under all TTLs at once, and marks the rows that matter to what is
// remembered. All other rows are alone with their key: they are remembered for the TTL, whichever it is.
type forecasting struct {
	disk      *disk
	arrivals  *spool        // of all rows in order of arrival, in milliseconds
	ttls      []stream.Time // ascending, without none
	leaked    []int         // by TTL, counted from the first row
	refreshed []int         // copies by the number of TTLs that are not longer than their gap
	blocks    []*spool      // marks, by rank
	marks     *spool        // marks in order of rank
	keys      []followed    // of one part
	from      []int64       // by key and TTL: the row from which the TTL runs
}

// followed is a key with copies. Its last row is marked when it is known what comes after it.
type followed struct {
	rank  int64
	bears uint64 // bit i: the row begins to be remembered under TTL i, counted from the first
	gap   uint8  // number of TTLs that are not longer than the gap before it
}

// A mark is a row's rank, the TTLs under which it begins to be remembered, and the gaps before and after it.
const markWords = 3

// blockBits is the number of rows in a block of marks, as a power of 2.
const blockBits = 20

func newForecasting(d *disk, arrivals *spool, o Options) *forecasting {
	f := &forecasting{disk: d, arrivals: arrivals}
	for _, ttl := range append(slices.Clone(spans), o.TTLs...) {
		if ttl > 0 && !slices.Contains(f.ttls, ttl) {
			f.ttls = append(f.ttls, ttl)
		}
	}
	slices.Sort(f.ttls)
	f.leaked, f.refreshed = make([]int, len(f.ttls)), make([]int, len(f.ttls)+1)
	return f
}

// begin starts a part of the keys, end ends it.
func (f *forecasting) begin() { f.keys, f.from = f.keys[:0], f.from[:0] }

func (f *forecasting) end() {
	for i := range f.keys {
		f.mark(&f.keys[i], len(f.ttls))
	}
}

// first takes in the first row of a key that has copies, and numbers the key from 1.
func (f *forecasting) first(rank int64, at nanos) int32 {
	f.keys = append(f.keys, followed{rank, ^uint64(0), uint8(len(f.ttls))})
	ms := millis(at)
	for range f.ttls {
		f.from = append(f.from, ms)
	}
	return int32(len(f.keys))
}

// copy takes in another row of a key.
func (f *forecasting) copy(key int32, rank int64, last, at nanos) {
	k, from := &f.keys[key-1], f.from[int(key-1)*len(f.ttls):]
	ms := millis(at)
	gap := 0
	for gap < len(f.ttls) && int64(f.ttls[gap]) <= ms-millis(last) {
		gap++
	}
	f.refreshed[gap]++
	f.mark(k, gap)
	*k = followed{rank, 0, uint8(gap)}
	for i, ttl := range f.ttls {
		if ms >= from[i]+int64(ttl) {
			from[i] = ms
			k.bears |= 1 << i
			f.leaked[i]++
		}
	}
}

func (f *forecasting) mark(k *followed, gapAfter int) {
	block := int(k.rank >> blockBits)
	for len(f.blocks) <= block {
		f.blocks = append(f.blocks, f.disk.newSpool())
	}
	f.blocks[block].add(k.rank, int64(k.bears), int64(k.gap)<<8|int64(gapAfter))
}

// order brings the marks in order of rank.
func (f *forecasting) order() error {
	f.marks = f.disk.newSpool()
	var marks [][markWords]int64
	place := make([]uint32, 1<<blockBits) // of the mark of a row in marks from 1, 0 for none
	for _, block := range f.blocks {
		marks = marks[:0]
		clear(place)
		err := block.records(markWords, func(mark []int64) error {
			marks = append(marks, [markWords]int64(mark))
			place[mark[0]&(1<<blockBits-1)] = uint32(len(marks))
			return nil
		})
		if err != nil {
			return err
		}
		for _, n := range place {
			if n > 0 {
				f.marks.add(marks[n-1][:]...)
			}
		}
		block.drop()
	}
	return nil
}

// timeline reads all rows in order of arrival, a stretch at a time: one row that has a mark, or those up to the next
// such row. Rows without a mark are remembered under all TTLs.
type timeline struct {
	arrivals, marks *cursor
	rest            []int64
	mark            [markWords]int64 // the next one
	rank            int64            // of the row after the stretch
	stretch         []int64          // arrivals
	marked          bool             // whether the mark is that of the stretch
	err             error
}

// newTimeline returns a timeline that stands before its first row.
func (f *forecasting) newTimeline() *timeline {
	return &timeline{arrivals: f.arrivals.read(), marks: f.marks.read(), mark: [markWords]int64{-1}}
}

// next goes on to the next stretch, and reports whether there is one.
func (t *timeline) next() bool {
	if len(t.rest) == 0 {
		if t.rest, t.err = t.arrivals.chunk(); t.err != nil || t.rest == nil {
			return false
		}
	}
	if t.mark[0] < t.rank {
		if rest := t.marks.rest; len(rest) >= markWords { // without a call
			t.mark[0], t.mark[1], t.mark[2] = rest[0], rest[1], rest[2]
			t.marks.rest = rest[markWords:]
		} else if ok, err := t.marks.next(t.mark[:]); err != nil {
			t.err = err
			return false
		} else if !ok {
			t.mark[0] = math.MaxInt64
		}
	}
	n := 1
	if t.marked = t.mark[0] == t.rank; !t.marked {
		n = int(min(int64(len(t.rest)), t.mark[0]-t.rank))
	}
	t.stretch, t.rest = t.rest[:n], t.rest[n:]
	t.rank += int64(n)
	return true
}

// begins is 1 if the rows of the stretch begin to be remembered under a TTL, counted from the first row and from the
// last.
func (t *timeline) begins(ttl int) (create, refresh int) {
	if !t.marked {
		return 1, 1
	}
	return bit(t.mark[1]>>ttl&1 == 1), bit(int(t.mark[2]>>8) > ttl)
}

// ends is 1 if nothing is remembered from a row of the stretch on when the TTL is over.
func (t *timeline) ends(ttl int) (create, refresh int) {
	if !t.marked {
		return 1, 1
	}
	return bit(t.mark[1]>>ttl&1 == 1), bit(int(t.mark[2]&0xff) > ttl)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// remembering counts the keys that are remembered under one TTL, counted from the first row and from the last.
type remembering struct {
	ttl                int
	span               int64
	tail               *timeline // of its stretch a row is the first that is not over yet
	left               []int64   // of the stretch, from that row on
	created, refreshed int
	out                *Forecast // the most
}

// peaks finds the most that is remembered at once. A row is forgotten before those that come when its TTL is over.
func peaks(ctx context.Context, head *timeline, all []*remembering) error {
	for n := 0; head.next(); n++ {
		if n&0xfff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		for _, r := range all {
			if err := r.step(head); err != nil {
				return err
			}
		}
	}
	return head.err
}

// step takes in a stretch.
func (r *remembering) step(head *timeline) error {
	if len(r.left) == 0 && !r.next() {
		return r.tail.err
	}
	create, refresh := head.begins(r.ttl)
	createEnd, refreshEnd := r.tail.ends(r.ttl)
	left, created, refreshed := r.left, r.created, r.refreshed
	mostCreated, mostRefreshed := r.out.Create.Keys, r.out.Refresh.Keys
	for _, at := range head.stretch {
		for over := at - r.span; left[0] <= over; { // the row itself is not over yet
			created, refreshed = created-createEnd, refreshed-refreshEnd
			if left = left[1:]; len(left) == 0 {
				if !r.next() {
					return r.tail.err
				}
				left = r.left
				createEnd, refreshEnd = r.tail.ends(r.ttl)
			}
		}
		created, refreshed = created+create, refreshed+refresh
		mostCreated, mostRefreshed = max(mostCreated, created), max(mostRefreshed, refreshed)
	}
	r.left, r.created, r.refreshed = left, created, refreshed
	r.out.Create.Keys, r.out.Refresh.Keys = mostCreated, mostRefreshed
	return nil
}

// next goes on to the next stretch of the tail.
func (r *remembering) next() bool {
	ok := r.tail.next()
	r.left = r.tail.stretch
	return ok
}

// forecasts tries the usual TTLs up to the first under which nothing leaks, those that were asked for, and none.
func (f *forecasting) forecasts(ctx context.Context, key *KeyReport, trace Span, o Options) ([]Forecast, error) {
	if err := f.order(); err != nil {
		return nil, err
	}
	var all []Forecast
	var tried []int
	leaks := true // under the usual TTLs so far
	for i, ttl := range f.ttls {
		c := Forecast{TTL: ttl, AtLeast: trace > 0 && Span(ttl)*millisecond >= (trace+1)/2}
		c.Create.Leaked = f.leaked[i]
		for _, n := range f.refreshed[i+1:] {
			c.Refresh.Leaked += n
		}
		usual := slices.Contains(spans, ttl) && leaks
		if usual || slices.Contains(o.TTLs, ttl) {
			all, tried = append(all, c), append(tried, i)
		}
		if usual {
			leaks = c.Create.Leaked+c.Refresh.Leaked > 0
		}
	}
	f.disk.settle()
	groups := make([][]*remembering, min(runtime.GOMAXPROCS(0), len(tried)))
	for n, ttl := range tried {
		r := &remembering{ttl: ttl, span: int64(f.ttls[ttl]), tail: f.newTimeline(), out: &all[n]}
		groups[n%len(groups)] = append(groups[n%len(groups)], r)
	}
	failed := make([]error, len(groups))
	var running sync.WaitGroup
	for n, group := range groups {
		head := f.newTimeline()
		running.Go(func() { failed[n] = peaks(ctx, head, group) })
	}
	running.Wait()
	f.arrivals.busy = false
	f.marks.drop()
	none := Forecast{AtLeast: trace > 0}
	none.Create.Keys, none.Refresh.Keys = key.Distinct, key.Distinct
	if slices.Contains(o.TTLs, 0) {
		all = slices.Insert(all, 0, none)
	} else {
		all = append(all, none)
	}
	for i := range all {
		for _, x := range []*Outcome{&all[i].Create, &all[i].Refresh} {
			if key.Copies > 0 {
				x.LeakRate = float64(x.Leaked) / float64(key.Copies)
			}
			x.Bytes = int64(x.Keys) * o.BytesPerKey
		}
	}
	return all, errors.Join(failed...)
}
