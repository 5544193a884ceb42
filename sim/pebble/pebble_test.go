package pebble_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"deduplab/sim"
	"deduplab/sim/pebble"
	"deduplab/stream"
)

func open(t interface {
	Helper()
	Fatal(...any)
}) sim.Cold {
	t.Helper()
	cold, err := pebble.Open("")
	if err != nil {
		t.Fatal(err)
	}
	return cold
}

func visible(e *sim.Entry) string {
	if e == nil {
		return "absent"
	}
	return fmt.Sprint(e.Key, e.Written(), e.Value, e.Tag, e.Flags())
}

func testKey(n int) stream.Key { return stream.Key{Hi: stream.Mix(uint64(n)), Lo: uint64(n)} }

// A table that spills to Pebble answers as one that does not, row for row.
func TestPebbleAgainstMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cold := open(t)
		defer cold.Close()
		ttl := rapid.SampledFrom([]stream.Time{0, 3, 100, 3_600_000}).Draw(t, "ttl")
		memory := sim.NewTable(sim.TableSpec{TTL: ttl})
		spilling := sim.NewTable(sim.TableSpec{TTL: ttl, Cold: cold, SpillAt: rapid.IntRange(3, 50).Draw(t, "spill")})
		now := rapid.SampledFrom([]stream.Time{-50, 1_767_225_600_000}).Draw(t, "start")
		keys := rapid.SampledFrom([]int{5, 30, 1000}).Draw(t, "keys")
		steps := rapid.SampledFrom([]stream.Time{0, 0, 1, 1, 2, max(0, ttl-1), ttl, 1_000_000_000_000})
		flags := rapid.SampledFrom([]sim.Flags{0, 0, sim.Marked, sim.Marked2, sim.Pinned})
		pinned := map[stream.Key][2]sim.Ref{}
		value := int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "runs") {
			now += steps.Draw(t, "gap")
			rows := make([]stream.Row, rapid.IntRange(1, 64).Draw(t, "rows"))
			for i := range rows {
				now += steps.Draw(t, "step") % 3
				rows[i] = stream.Row{Key: testKey(rapid.IntRange(0, keys-1).Draw(t, "key")), Arrival: now}
			}
			a, b := memory.Probe(rows), spilling.Probe(rows)
			for i, row := range rows {
				if got, want := visible(b.Get(i)), visible(a.Get(i)); got != want {
					t.Fatalf("%s, want %s", got, want)
				}
				refs, isPinned := pinned[row.Key]
				switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
				case what == 0:
				case what == 1:
					a.Delete(i)
					b.Delete(i)
					delete(pinned, row.Key)
				case what == 2 && isPinned:
					value--
					memory.Rewrite(refs[0], row.Arrival, value, 7, 0)
					spilling.Rewrite(refs[1], row.Arrival, value, 7, 0)
					delete(pinned, row.Key)
				default:
					value++
					f := flags.Draw(t, "flags")
					delete(pinned, row.Key)
					refs := [2]sim.Ref{a.Put(i, value, stream.Tag(value)<<30, f), b.Put(i, value, stream.Tag(value)<<30, f)}
					if f == sim.Pinned {
						pinned[row.Key] = refs
					}
				}
			}
			if got, want := spilling.Live(now), memory.Live(now); got != want {
				t.Fatalf("%d alive, want %d", got, want)
			}
			if got, want := living(spilling, ttl, now), living(memory, ttl, now); !slices.Equal(got, want) {
				t.Fatalf("entries %v\nwant    %v", got, want)
			}
			if spilling.Err() != nil {
				t.Fatal(spilling.Err())
			}
		}
	})
}

func living(table *sim.Table, ttl, now stream.Time) []string {
	var entries []sim.Entry
	table.Each(func(e *sim.Entry) {
		if ttl == 0 || e.Has(sim.Pinned) || now < e.Written()+ttl {
			entries = append(entries, *e)
		}
	})
	slices.SortFunc(entries, func(a, b sim.Entry) int { return cmp.Compare(a.Key.Lo, b.Key.Lo) })
	var all []string
	for _, e := range entries {
		all = append(all, visible(&e))
	}
	return all
}

// The physical size of the same state is the same, and what has expired takes none.
func TestBytes(t *testing.T) {
	var sizes [2]int64
	for i := range sizes {
		cold := open(t)
		defer cold.Close()
		table := sim.NewTable(sim.TableSpec{TTL: 50_000, Cold: cold, SpillAt: 1000})
		for n := range 20_000 {
			table.Put(testKey(n), stream.Time(n), int64(n), stream.Tag(n), 0)
		}
		size, err := cold.Bytes()
		if err != nil || size < 19_000*16 || size > 20_000*40 {
			t.Fatalf("%d bytes, %v", size, err)
		}
		sizes[i] = size
		table.Put(testKey(0), 1_000_000, 0, 0, 0)
		if size, err := cold.Bytes(); size != 0 || err != nil || table.Err() != nil {
			t.Fatalf("%d bytes are left, %v, %v", size, err, table.Err())
		}
	}
	if sizes[0] != sizes[1] {
		t.Errorf("sizes differ: %v", sizes)
	}
}

func TestOpenRefusesAStoreThatExists(t *testing.T) {
	dir := t.TempDir()
	cold, err := pebble.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := sim.MakeEntry(testKey(1), 5, -7, 9, sim.Marked)
	if err := cold.Spill([]sim.Entry{want}); err != nil {
		t.Fatal(err)
	}
	if e, ok, err := cold.Get(testKey(1)); !ok || err != nil || e != want {
		t.Fatal(visible(&e), ok, err)
	}
	if err := cold.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := pebble.Open(dir); err == nil {
		t.Fatal("opened twice")
	}
}
