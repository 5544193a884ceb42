package downstream

import (
	"slices"

	"deduplab/stream"
)

// IntervalJoin joins the deduplication with another input by key where left.time BETWEEN right.time - Lower AND
// right.time + Upper: Flink's RowTimeIntervalJoin as an inner join. It takes what its input is declared to be,
// insert-only, at its word: a +U is joined like a further row, and both stay: flink
// downstream/nontime-price-asc-then-interval-join.
//
// A row is kept until the watermark says that nothing of the other input can match it any more. Expired rows go when a
// row of their key comes in, and with a timer of their key.
type IntervalJoin struct {
	outbox
	spec        JoinSpec
	watermark   stream.Time // from 0 on
	left, right joinSide
}

// JoinSpec says what an IntervalJoin does.
type JoinSpec struct {
	LeftKey, RightKey   int
	LeftTime, RightTime int
	Lower, Upper        stream.Time
}

// joinSide is what is kept of one input.
type joinSide struct {
	rows     map[string][]stamped   // by key, in the order of arrival
	timers   map[string]stream.Time // by key: when expired rows of it are looked for
	reach    stream.Time            // how long after its time the other input can match a row
	upTo     stream.Time            // rows up to here may be gone
	key, col int                    // its columns
}

type stamped struct {
	time stream.Time
	row  stream.Record
}

// NewIntervalJoin makes an IntervalJoin.
func NewIntervalJoin(spec JoinSpec) *IntervalJoin {
	side := func(reach stream.Time, key, time int) joinSide {
		return joinSide{rows: map[string][]stamped{}, timers: map[string]stream.Time{}, reach: reach, key: key, col: time}
	}
	return &IntervalJoin{
		spec: spec, left: side(spec.Lower, spec.LeftKey, spec.LeftTime),
		right: side(spec.Upper, spec.RightKey, spec.RightTime),
	}
}

// Change handles a change of the deduplication, the left input.
func (j *IntervalJoin) Change(_ stream.Kind, row stream.Record, _ stream.Time) {
	j.join(&j.left, &j.right, row, func(other stream.Record) []stream.Value {
		return slices.Concat([]stream.Value(row), []stream.Value(other))
	})
}

// Other handles a row of the right input.
func (j *IntervalJoin) Other(row stream.Record) {
	j.join(&j.right, &j.left, row, func(other stream.Record) []stream.Value {
		return slices.Concat([]stream.Value(other), []stream.Value(row))
	})
}

// join pairs a row of one side with the rows of the other, and keeps it while more may come. Rows without a key match
// nothing, but are kept all the same.
func (j *IntervalJoin) join(own, other *joinSide, row stream.Record, pair func(stream.Record) []stream.Value) {
	null := row[own.key].Null
	key, time := "="+row[own.key].Text, stream.Time(row[own.col].Int)
	if null {
		key = ""
	}
	if latest := time + own.reach; other.upTo < latest {
		other.upTo = j.expired(other)
		kept := other.rows[key][:0]
		for _, o := range other.rows[key] {
			if !null && o.time >= time-other.reach && o.time <= latest {
				j.send(stream.Insert, pair(o.row)...)
			}
			if o.time > other.upTo {
				kept = append(kept, o)
			}
		}
		if other.rows[key] = kept; len(kept) == 0 {
			delete(other.rows, key)
		}
	}
	if j.watermark < time+own.reach {
		own.rows[key] = append(own.rows[key], stamped{time, row})
		if _, ok := own.timers[key]; !ok {
			own.timers[key] = own.cleanUp(time)
		}
	}
}

// cleanUp is when a row of that time has expired.
func (side *joinSide) cleanUp(time stream.Time) stream.Time { return time + side.reach + 1 }

// Watermark removes expired rows of the keys whose timers are due.
func (j *IntervalJoin) Watermark(w, _ stream.Time) {
	j.watermark = max(w, 0)
	for _, side := range []*joinSide{&j.left, &j.right} {
		for key, at := range side.timers {
			if at <= w {
				side.upTo = j.expired(side)
				side.expire(key)
			}
		}
	}
}

// expired is the time up to which rows of a side can match nothing any more.
func (j *IntervalJoin) expired(side *joinSide) stream.Time {
	if j.watermark == stream.MaxTime {
		return stream.MaxTime
	}
	return j.watermark - side.reach - 1
}

// expire removes the expired rows of a key and sets the timer for the rest. Flink takes rows at or before time 0 for
// none.
func (side *joinSide) expire(key string) {
	side.rows[key] = slices.DeleteFunc(side.rows[key], func(s stamped) bool { return s.time <= side.upTo })
	earliest := stream.Time(-1)
	for _, s := range side.rows[key] {
		if s.time < earliest || earliest < 0 {
			earliest = s.time
		}
	}
	if earliest > 0 {
		side.timers[key] = side.cleanUp(earliest)
		return
	}
	delete(side.rows, key)
	delete(side.timers, key)
}

// Checkpoint does nothing.
func (j *IntervalJoin) Checkpoint(stream.Time) {}

// State tells what the operator holds: an entry for each key with rows, and one for its timer.
func (j *IntervalJoin) State() State {
	return State{
		Entries: map[string]int{
			"IntervalJoinLeftCache": len(j.left.rows), "IntervalJoinRightCache": len(j.right.rows),
			"IntervalJoinLeftTimerState": len(j.right.timers), "IntervalJoinRightTimerState": len(j.left.timers),
		},
		Timers: len(j.left.timers) + len(j.right.timers),
	}
}
