package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"deduplab/stream"
)

// testKey numbers keys whose hashes are spread.
func testKey(n int) stream.Key { return stream.Key{Hi: stream.Mix(uint64(n)), Lo: uint64(n)} }

func keyOrder(a, b stream.Key) int { return cmp.Or(cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Lo, b.Lo)) }

// mapTable is a table as one would write it down: a map, and a clock that the test holds.
type mapTable struct {
	ttl     stream.Time
	entries map[stream.Key]Entry
}

func (m mapTable) alive(e Entry, now stream.Time) bool {
	return m.ttl == 0 || e.Has(Pinned) || now < e.Written()+m.ttl
}

func (m mapTable) get(key stream.Key, now stream.Time) *Entry {
	if e, ok := m.entries[key]; ok && m.alive(e, now) {
		return &e
	}
	return nil
}

func (m mapTable) living(now stream.Time) []Entry {
	var living []Entry
	for _, key := range slices.SortedFunc(maps.Keys(m.entries), keyOrder) {
		if e := m.entries[key]; m.alive(e, now) {
			living = append(living, e)
		}
	}
	return living
}

// visible is an entry without the table's own bookkeeping.
func visible(e *Entry) string {
	if e == nil {
		return "absent"
	}
	return fmt.Sprint(e.Key, e.Written(), e.Value, e.Tag, e.Flags())
}

func visibles(entries []Entry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, visible(&e))
	}
	return all
}

// mapCold is a Cold as one would write it down.
type mapCold struct{ buckets [][]Entry }

func (c *mapCold) Spill(entries []Entry) error {
	if !slices.IsSortedFunc(entries, func(a, b Entry) int { return keyOrder(a.Key, b.Key) }) {
		return fmt.Errorf("a spill that is not sorted")
	}
	c.buckets = append(c.buckets, slices.Clone(entries))
	return nil
}

func (c *mapCold) Get(key stream.Key) (Entry, bool, error) {
	for _, b := range slices.Backward(c.buckets) {
		if i := slices.IndexFunc(b, func(e Entry) bool { return e.Key == key }); i >= 0 {
			return b[i], true, nil
		}
	}
	return Entry{}, false, nil
}

func (c *mapCold) DropBefore(written stream.Time) error {
	c.buckets = slices.DeleteFunc(c.buckets, func(b []Entry) bool {
		return !slices.ContainsFunc(b, func(e Entry) bool { return e.Written() >= written })
	})
	return nil
}

func (c *mapCold) Each(f func(*Entry) error) error {
	seen := map[stream.Key]bool{}
	for _, b := range slices.Backward(c.buckets) {
		for _, e := range b {
			if seen[e.Key] {
				continue
			}
			seen[e.Key] = true
			if err := f(&e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *mapCold) Bytes() (int64, error) { return 0, nil }
func (c *mapCold) Close() error          { return nil }

func TestTableAgainstMap(t *testing.T) { rapid.Check(t, func(t *rapid.T) { checkTable(t, nil) }) }

func TestSpillingTableAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkTable(t, &mapCold{}) })
}

// checkTable does the same to a table and to a map.
func checkTable(t *rapid.T, cold Cold) {
	ttl := rapid.SampledFrom([]stream.Time{0, 1, 7, 100, 3_600_000}).Draw(t, "ttl")
	sample := rapid.SampledFrom([]stream.Time{1, 3, 10}).Draw(t, "sample")
	keys := rapid.SampledFrom([]int{3, 20, 3000}).Draw(t, "keys")
	now := rapid.SampledFrom([]stream.Time{-50, 0, 1_767_225_600_000}).Draw(t, "start")
	table := NewTable(TableSpec{TTL: ttl, Sample: sample, Cold: cold, SpillAt: rapid.IntRange(3, 50).Draw(t, "spill")})
	model := mapTable{ttl, map[stream.Key]Entry{}}
	refs := map[stream.Key]Ref{} // of pinned entries

	key := rapid.Custom(func(t *rapid.T) stream.Key { return testKey(rapid.IntRange(0, keys-1).Draw(t, "key")) })
	flags := rapid.SampledFrom([]Flags{0, 0, 0, Pinned, Marked, Marked2 | Pinned})
	step := rapid.SampledFrom([]stream.Time{0, 0, 1, 2, ttl, max(0, ttl-1), ttl + 1, ttl / 9, 1_000_000_000_000})
	written := func(key stream.Key, ref Ref, now stream.Time, value int64, f Flags) {
		model.entries[key] = MakeEntry(key, now, value, stream.Tag(value), f)
		delete(refs, key)
		if f&Pinned != 0 {
			refs[key] = ref
		}
	}
	pinned := func(t *rapid.T) (stream.Key, Ref) {
		if len(refs) == 0 {
			t.Skip("nothing is pinned")
		}
		key := rapid.SampledFrom(slices.SortedFunc(maps.Keys(refs), keyOrder)).Draw(t, "pinned")
		return key, refs[key]
	}
	deleted := func(key stream.Key) {
		delete(model.entries, key)
		delete(refs, key)
	}
	value := int64(0)
	t.Repeat(map[string]func(*rapid.T){
		"run": func(t *rapid.T) {
			rows := make([]stream.Row, rapid.IntRange(0, maxRun).Draw(t, "rows"))
			for i := range rows {
				now += step.Draw(t, "step") % 1000
				rows[i] = stream.Row{Key: key.Draw(t, "key"), Arrival: now}
			}
			cursor := table.Probe(rows)
			for i, row := range rows {
				if got, want := visible(cursor.Get(i)), visible(model.get(row.Key, row.Arrival)); got != want {
					t.Fatalf("row %d at %d: %s, want %s", i, row.Arrival, got, want)
				}
				switch rapid.IntRange(0, 3).Draw(t, "what") {
				case 0:
				case 1:
					cursor.Delete(i)
					deleted(row.Key)
				default:
					value++
					f := flags.Draw(t, "flags")
					written(row.Key, cursor.Put(i, value, stream.Tag(value), f), row.Arrival, value, f)
				}
			}
		},
		"put": func(t *rapid.T) {
			value++
			key, f := key.Draw(t, "key"), flags.Draw(t, "flags")
			written(key, table.Put(key, now, value, stream.Tag(value), f), now, value, f)
		},
		"get": func(t *rapid.T) {
			key := key.Draw(t, "key")
			if got, want := visible(table.Get(key, now)), visible(model.get(key, now)); got != want {
				t.Fatalf("%s, want %s", got, want)
			}
		},
		"delete": func(t *rapid.T) {
			key := key.Draw(t, "key")
			table.Delete(key)
			deleted(key)
		},
		"rewrite": func(t *rapid.T) {
			key, ref := pinned(t)
			value++
			f := flags.Draw(t, "flags")
			table.Rewrite(ref, now, value, stream.Tag(value), f)
			written(key, ref, now, value, f)
		},
		"remove": func(t *rapid.T) {
			key, ref := pinned(t)
			table.Remove(ref)
			deleted(key)
		},
		"advance": func(t *rapid.T) { now += step.Draw(t, "step") },
		"": func(t *rapid.T) {
			want := model.living(now)
			var got []Entry
			held := 0
			table.Each(func(e *Entry) {
				held++
				if model.alive(*e, now) {
					got = append(got, *e)
				}
			})
			slices.SortFunc(got, compareKeys)
			if got, want := visibles(got), visibles(want); !slices.Equal(got, want) {
				t.Fatalf("entries %v\nwant    %v", got, want)
			}
			if cold == nil && held != table.Held() || table.Held() < len(want) {
				t.Fatalf("%d held, but %d visited and %d alive", table.Held(), held, len(want))
			}
			if now%sample == 0 && table.Live(now) != len(want) {
				t.Fatalf("%d alive at %d, want %d", table.Live(now), now, len(want))
			}
			for _, key := range slices.SortedFunc(maps.Keys(refs), keyOrder) {
				e := model.entries[key]
				if got, want := visible(table.At(refs[key])), visible(&e); got != want {
					t.Fatalf("ref: %s, want %s", got, want)
				}
			}
			if table.Err() != nil {
				t.Fatal(table.Err())
			}
		},
	})
}

func TestIndexKeepsItsLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x index
		x.reserve(1)
		model := map[uint32]uint32{} // number -> fragment
		fragments := rapid.SampledFrom([]uint32{1, 2, 3, 1 << 31, 1<<32 - 2, 1<<32 - 1})
		if rapid.Bool().Draw(t, "spread") {
			fragments = rapid.Uint32Range(1, 1<<32-1)
		}
		number := uint32(0)
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				number++
				f := fragments.Draw(t, "fragment")
				x.reserve(1)
				x.insert(x.seek(f), f, number)
				model[number] = f
			},
			"remove": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip("empty")
				}
				n := rapid.SampledFrom(slices.Sorted(maps.Keys(model))).Draw(t, "number")
				p := x.seek(model[n])
				for uint32(x.slots[p]) != n {
					p++
				}
				x.remove(p)
				delete(model, n)
			},
			"retain": func(t *rapid.T) {
				keep := func(n uint32) bool { return n%3 != 0 }
				x.retain(keep)
				maps.DeleteFunc(model, func(n, _ uint32) bool { return !keep(n) })
			},
			"": func(t *rapid.T) {
				found, last := 0, uint64(0)
				for p, slot := range x.slots {
					if slot == 0 {
						continue
					}
					found++
					f, n := uint32(slot>>32), uint32(slot)
					home := x.home(f)
					switch {
					case model[n] != f:
						t.Fatalf("slot %d holds %d with %x, want %x", p, n, f, model[n])
					case f < uint32(last>>32):
						t.Fatalf("slot %d is out of order", p)
					case home > p || slices.Contains(x.slots[home:p], 0):
						t.Fatalf("slot %d cannot be reached from its home %d", p, home)
					}
					last = slot
				}
				if found != len(model) || found != x.used || x.slots[len(x.slots)-1] != 0 {
					t.Fatalf("%d slots, %d used, want %d", found, x.used, len(model))
				}
			},
		})
	})
}

// A table whose keys come and go, are refreshed or deleted, holds little more than what lives.
func TestTableForgets(t *testing.T) {
	for _, c := range []struct {
		name string
		ttl  stream.Time
		do   func(table *Table, now stream.Time, i int)
	}{
		{"expiring", 1000, func(table *Table, now stream.Time, i int) { table.Put(testKey(i), now, 0, 0, 0) }},
		{"hot key first", 1000, func(table *Table, now stream.Time, i int) {
			table.Put(testKey(-1), now, 0, 0, 0)
			table.Put(testKey(i), now, 0, 0, 0)
		}},
		{"written twice", 1000, func(table *Table, now stream.Time, i int) {
			table.Put(testKey(i), now, 0, 0, 0)
			table.Put(testKey(i-900), now, 0, 0, 0)
		}},
		{"unpinned", 1000, func(table *Table, now stream.Time, i int) {
			table.Put(testKey(i), now, 0, 0, Pinned)
			if e := table.Get(testKey(i-100), now); e != nil {
				table.Put(e.Key, now, 0, 0, 0)
			}
		}},
		{"deleted", 0, func(table *Table, now stream.Time, i int) {
			table.Put(testKey(i), now, 0, 0, 0)
			table.Delete(testKey(i - 1500))
		}},
		{"deleted behind a pinned one", 1 << 40, func(table *Table, now stream.Time, i int) {
			if i == 0 {
				table.Put(testKey(-1), now, 0, 0, Pinned)
			}
			table.Put(testKey(i), now, 0, 0, 0)
			table.Delete(testKey(i - 1500))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := NewTable(TableSpec{TTL: c.ttl})
			for i := range 100_000 {
				c.do(table, stream.Time(i), i)
			}
			if table.Held() > 2500 || len(table.log.chunks) > 6 || len(table.index.slots) > 8000 {
				t.Errorf("%d entries in %d chunks and %d slots", table.Held(), len(table.log.chunks),
					len(table.index.slots))
			}
		})
	}
}

func TestTableDoesNotAllocate(t *testing.T) {
	table := NewTable(TableSpec{TTL: 1000, Sample: 100})
	rows := make([]stream.Row, maxRun)
	n := 0
	run := func() {
		for i := range rows {
			n++
			rows[i] = stream.Row{Key: testKey(n), Arrival: stream.Time(n)}
		}
		cursor := table.Probe(rows)
		for i := range rows {
			if cursor.Get(i) == nil {
				cursor.Put(i, 0, 0, 0)
			}
		}
	}
	for range 1000 {
		run()
	}
	if allocs := testing.AllocsPerRun(1000, run); allocs != 0 {
		t.Errorf("%v allocations a run", allocs)
	}
}

// A write after a read goes where the key then belongs, though the index may grow in between.
func TestTableGrows(t *testing.T) {
	table := NewTable(TableSpec{})
	const keys = 5000
	for n := range keys {
		if table.Get(testKey(n), 0) != nil {
			t.Fatalf("key %d is there already", n)
		}
		table.Put(testKey(n), 0, int64(n), 0, 0)
	}
	for n := range keys {
		if e := table.Get(testKey(n), 0); e == nil || e.Value != int64(n) {
			t.Fatalf("key %d: %v", n, e)
		}
	}
}
