package sim

import (
	"fmt"
	"slices"
	"testing"

	"deduplab/stream"
)

// TestWheelEach holds that timers are listed in the order in which they fire, near, far and late ones, those of one
// moment as they were added, and that listing them changes nothing.
func TestWheelEach(t *testing.T) {
	var w Wheel[string]
	w.Advance(100, func(stream.Time, []string) {})
	for _, at := range []stream.Time{70_000, 300, 101, 300, 50, 1 << 40, 300, 101} {
		w.Add(at, fmt.Sprint(at, " added as ", w.Len()))
	}
	var listed, fired []string
	w.each(func(at stream.Time, what string) { listed = append(listed, fmt.Sprint(at, ": ", what)) })
	w.Advance(1<<41, func(at stream.Time, due []string) {
		for _, what := range due {
			fired = append(fired, fmt.Sprint(at, ": ", what))
		}
	})
	if len(listed) != 8 || !slices.Equal(listed, fired) {
		t.Errorf("listed %q\nfired  %q", listed, fired)
	}
}

// TestTableRestore holds that a restored table answers as the one that the snapshot is of, also when entries have
// expired, and that neither sees what is written to the other.
func TestTableRestore(t *testing.T) {
	key := func(n uint64) stream.Key { return stream.Key{Lo: n} }
	from := NewTable(TableSpec{TTL: 10})
	from.Put(key(1), 0, 11, 1, Marked)
	from.Put(key(2), 3, 12, 2, 0)
	from.Put(key(3), 1<<3, 13, 3, Pinned)
	from.Put(key(1), 9, 14, 4, Marked2) // written again: the last in the order of writing, though the first in the log
	entries := from.snapshot()

	to := NewTable(TableSpec{TTL: 10})
	to.restore(9, entries)
	from.Delete(key(1))
	to.Put(key(4), 9, 0, 0, 0)

	describe := func(t *Table, now stream.Time, keys ...uint64) string {
		out := fmt.Sprint(t.Live(now), " live:")
		for _, n := range keys {
			if e := t.Get(key(n), now); e != nil {
				out += fmt.Sprintf(" %d=%d/%d written %d flags %d", n, e.Value, e.Tag, e.Written(), e.Flags())
			}
		}
		return out
	}
	if got, want := describe(to, 12, 1, 2, 3), "4 live: 1=14/4 written 9 flags 4 2=12/2 written 3 flags 0"+
		" 3=13/3 written 8 flags 1"; got != want {
		t.Errorf("at 12 %s, want %s", got, want)
	}
	if got, want := describe(to, 13, 1, 2), "3 live: 1=14/4 written 9 flags 4"; got != want {
		t.Errorf("at 13 %s, want %s", got, want)
	}
	if got, want := describe(from, 13, 1, 2, 4), "1 live:"; got != want {
		t.Errorf("the first table at 13: %s, want %s", got, want)
	}
	var pinned []stream.Tag
	to.EachPinned(func(ref Ref, e *Entry) { pinned = append(pinned, to.At(ref).Tag) })
	if !slices.Equal(pinned, []stream.Tag{3}) {
		t.Errorf("pinned rows %d, want the third", pinned)
	}
}
