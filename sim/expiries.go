package sim

import (
	"cmp"
	"slices"

	"deduplab/stream"
)

// expiries counts entries that will expire by the sample instant at which they will have done so, so that the number
// of those still alive is exact at every sample instant, whatever order they were written in.
type expiries struct {
	ttl, sample stream.Time
	ticks       []tick      // from first on: in ascending order
	first       int         // the ticks before it are over
	past        int64       // number of the last sample instant that is over
	live        int         // entries whose tick is after past
	newest      stream.Time // the greatest expiry that falls into the last tick
}

type tick struct {
	at int64 // number of the sample instant
	n  int
}

func newExpiries(ttl, sample stream.Time) expiries {
	return expiries{ttl: ttl, sample: sample, past: int64(stream.MinTime), newest: stream.MinTime}
}

// tickOf numbers the first sample instant at which an entry written then has expired.
func (x *expiries) tickOf(written stream.Time) int64 { return -floorDiv(-(written + x.ttl), x.sample) }

func floorDiv(a, b stream.Time) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return int64(q)
}

// add counts an entry that was written now.
func (x *expiries) add(now stream.Time) {
	if expiry := now + x.ttl; expiry > x.newest || expiry <= x.newest-x.sample {
		x.addTick(now)
		return
	}
	x.ticks[len(x.ticks)-1].n++
	x.live++
}

func (x *expiries) addTick(now stream.Time) {
	x.advance(now)
	at := x.tickOf(now)
	i, ok := x.find(at)
	if !ok {
		x.ticks = slices.Insert(x.ticks, i, tick{at: at})
	}
	x.ticks[i].n++
	x.live++
	x.newest = stream.Time(x.ticks[len(x.ticks)-1].at) * x.sample
}

// remove takes out an entry that was written then.
func (x *expiries) remove(written stream.Time) {
	at := x.tickOf(written)
	if at <= x.past {
		return
	}
	i, _ := x.find(at)
	x.ticks[i].n--
	x.live--
}

// find searches a tick that is not over. It first looks where the tick is if no instant since has been left out.
func (x *expiries) find(at int64) (int, bool) {
	ticks := x.ticks[x.first:]
	if n := int64(len(ticks)); n > 0 {
		if back := ticks[n-1].at - at; back >= 0 && back < n && ticks[n-1-back].at == at {
			return len(x.ticks) - 1 - int(back), true
		}
	}
	i, ok := slices.BinarySearchFunc(ticks, at, func(t tick, at int64) int { return cmp.Compare(t.at, at) })
	return x.first + i, ok
}

// advance takes out what has expired at the last sample instant up to now.
func (x *expiries) advance(now stream.Time) {
	x.past = max(x.past, floorDiv(now, x.sample))
	for x.first < len(x.ticks) && x.ticks[x.first].at <= x.past {
		x.live -= x.ticks[x.first].n
		x.first++
	}
	if x.first > len(x.ticks)/2 {
		x.ticks = slices.Delete(x.ticks, 0, x.first)
		x.first = 0
		if len(x.ticks) == 0 {
			x.newest = stream.MinTime
		}
	}
}
