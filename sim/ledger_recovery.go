package sim

import (
	"deduplab/results"
	"deduplab/stream"
)

// recovered is what a ledger keeps of a job that fails: of rows that are handled again, or whose changes have gone out
// before a crash. A row has one disposition all the same, and what is written more than once is a write duplicate for
// as long as it stands.
type recovered struct {
	followed map[stream.Tag]*followed // nil: the job does not fail
	outages  interruptions
}

// followed is a row that may be handled twice.
type followed struct {
	counted bool // it has a disposition
	to      Disposition
	added   bool // it has come into the result
	in      int  // how often it stands there now
}

// interruptions is what the outages did to what goes out.
type interruptions struct {
	early, again int64
	wait         Histogram
}

// crashed reports whether the job has crashed before a moment.
func (l *Ledger) crashed(at stream.Time) bool {
	return l.spec.Failures != nil && at > l.spec.Failures.FirstCrash()
}

// RecoveryResult fills in what the failures did to what goes out.
func (l *Ledger) RecoveryResult(f *results.Failures) {
	f.UndoneChanges, f.WrittenAgain, f.Wait = l.outages.early, l.outages.again, l.outages.wait.Quantiles()
}

// Counted reports whether a row that is read has a disposition already.
func (l *Ledger) Counted(tag stream.Tag) bool {
	f := l.followed[tag]
	return f != nil && f.counted
}

// stands counts a followed row in the result. It reports whether a row that is to leave it is there: one that an undone
// change took out is not taken out again.
func (l *Ledger) stands(tag stream.Tag, n int) bool {
	f := l.followed[tag]
	if f == nil {
		return true
	}
	if f.in+n < 0 {
		return false
	}
	f.in += n
	f.added = f.added || n > 0
	return true
}

// bookFollowed enters a change of a row that may be handled twice, and reports whether it was one.
func (l *Ledger) bookFollowed(c *Change, key stream.Key, parts []stream.Tag) bool {
	f := l.followed[c.Tag]
	if c.Early {
		l.bookEarly(c, key, parts, f)
		return true
	}
	if f == nil {
		handled := c.Op == OpEmit || c.Op == OpDrop || c.Op == OpHold
		if !handled || !l.spec.Failures.rewound(c.At) {
			return false
		}
		f = &followed{}
		l.followed[c.Tag] = f
	}
	switch c.Op {
	case OpEmit, OpRelease, OpRevive:
		l.moveTo(f, Emitted)
		l.addAgain(c, key, parts, f)
	case OpAgain:
		l.addAgain(c, key, parts, f)
	case OpHold:
		if !f.counted || f.to != Held && f.to != Emitted {
			l.moveTo(f, Held)
		}
		l.at(c.Tag.Event())
	case OpDrop:
		if !f.counted {
			l.dropFollowed(c, f)
		}
	case OpDropHeld:
		if f.counted && f.to == Held {
			l.dropFollowed(c, f)
		}
	}
	return true
}

// moveTo gives a row its disposition, or another one.
func (l *Ledger) moveTo(f *followed, to Disposition) {
	if f.counted {
		l.dispositions[f.to]--
	}
	f.counted, f.to = true, to
	l.dispositions[to]++
	l.mostHeld = max(l.mostHeld, l.dispositions[Held])
}

// dropFollowed enters a row that does not go out, though it may have gone out before a crash.
func (l *Ledger) dropFollowed(c *Change, f *followed) {
	if f.added {
		l.moveTo(f, Emitted)
		return
	}
	l.moveTo(f, c.To)
	l.keepOut(c)
}

// addAgain enters a change that goes out, about a row that may have come into the result before.
func (l *Ledger) addAgain(c *Change, key stream.Key, parts []stream.Tag, f *followed) {
	again := *c
	switch {
	case !c.adds(), c.Op == OpAgain && l.spec.ToChangelog:
	case f.in > 0:
		again.Op = OpRewrite
		l.outages.again++
	case f.added && c.Op != OpAgain:
		l.replaced-- // it counts as replaced, and comes back
	}
	l.out(&again, key, parts)
}

// stood reports whether the row of a change about a row that came before stands in the result.
func (l *Ledger) stood(c *Change, key stream.Key) bool {
	if l.spec.Sink == stream.UpsertSink {
		old := l.table.Get(key, c.At)
		return old != nil && old.Tag == c.Tag
	}
	return !c.adds()
}

// bookEarly enters a change that has gone out and is undone by a crash.
func (l *Ledger) bookEarly(c *Change, key stream.Key, parts []stream.Tag, f *followed) {
	if f == nil {
		switch c.Op {
		case OpHold, OpEmit:
			f = &followed{}
		case OpRelease:
			f = &followed{counted: true, to: Held}
		case OpAgain:
			f = &followed{counted: true, to: Emitted, added: true}
			if l.stood(c, key) {
				f.in = 1
			}
		default:
			return
		}
		l.followed[c.Tag] = f
	}
	if c.goesOut() {
		l.outages.early++
		l.addAgain(c, key, parts, f)
	}
}
