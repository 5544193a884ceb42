package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"deduplab/stream"
)

// listLRU is the cache as one would write it down: a slice in order of use.
type listLRU struct {
	size    int
	ttl     stream.Time
	entries []Entry
	evicted []string
}

func (l *listLRU) expire(now stream.Time) {
	l.entries = slices.DeleteFunc(l.entries, func(e Entry) bool { return l.ttl != 0 && e.Written()+l.ttl <= now })
}

func (l *listLRU) take(key stream.Key) (Entry, bool) {
	i := slices.IndexFunc(l.entries, func(e Entry) bool { return e.Key == key })
	if i < 0 {
		return Entry{}, false
	}
	e := l.entries[i]
	l.entries = slices.Delete(l.entries, i, i+1)
	return e, true
}

func (l *listLRU) get(key stream.Key, now stream.Time) *Entry {
	l.expire(now)
	e, ok := l.take(key)
	if !ok {
		return nil
	}
	l.entries = append(l.entries, e)
	return &e
}

func (l *listLRU) put(e Entry) {
	l.expire(e.Written())
	l.take(e.Key)
	l.entries = append(l.entries, e)
	if len(l.entries) > l.size {
		l.evicted = append(l.evicted, visible(&l.entries[0]))
		l.entries = slices.Delete(l.entries, 0, 1)
	}
}

func TestLRUAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ttl := rapid.SampledFrom([]stream.Time{0, 1, 10, 1000}).Draw(t, "ttl")
		model := &listLRU{size: rapid.SampledFrom([]int{0, 1, 2, 7, 100}).Draw(t, "size"), ttl: ttl}
		var evicted []string
		cache := NewLRU(model.size, ttl, func(e *Entry) { evicted = append(evicted, visible(e)) })
		keys := rapid.Custom(func(t *rapid.T) stream.Key { return testKey(rapid.IntRange(0, 20).Draw(t, "key")) })
		now := rapid.SampledFrom([]stream.Time{-5, 1_767_225_600_000}).Draw(t, "start")
		value := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				value++
				e := MakeEntry(keys.Draw(t, "key"), now, value, stream.Tag(value), Marked)
				cache.Put(e.Key, now, e.Value, e.Tag, Marked)
				model.put(e)
			},
			"get": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				if got, want := visible(cache.Get(key, now)), visible(model.get(key, now)); got != want {
					t.Fatalf("%s, want %s", got, want)
				}
			},
			"advance": func(t *rapid.T) {
				now += rapid.SampledFrom([]stream.Time{0, 1, max(0, ttl-1), ttl, 1 << 40}).Draw(t, "step")
			},
			"len": func(t *rapid.T) {
				model.expire(now)
				if cache.Len(now) != len(model.entries) {
					t.Fatalf("%d entries, want %d", cache.Len(now), len(model.entries))
				}
			},
			"": func(t *rapid.T) {
				model.expire(now)
				var got []string
				cache.Each(now, func(e *Entry) { got = append(got, visible(e)) })
				if want := visibles(model.entries); !slices.Equal(got, want) {
					t.Fatalf("entries %v\nwant    %v", got, want)
				}
				if !slices.Equal(evicted, model.evicted) {
					t.Fatalf("evicted %v\nwant    %v", evicted, model.evicted)
				}
			},
		})
	})
}

func TestLRUDoesNotAllocate(t *testing.T) {
	cache := NewLRU(100, 1000, func(*Entry) {})
	now := stream.Time(0)
	turn := func() {
		for range 100 {
			now++
			if key := testKey(int(stream.Mix(uint64(now)) % 200)); cache.Get(key, now) == nil {
				cache.Put(key, now, 0, 0, 0)
			}
		}
	}
	for range 10 {
		turn()
	}
	if allocs := testing.AllocsPerRun(100, turn); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
