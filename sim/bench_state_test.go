package sim_test

import (
	"encoding/binary"
	"runtime"
	"sync"
	"testing"
	"time"

	"deduplab/sim"
	"deduplab/sim/pebble"
	"deduplab/stream"
)

// The benchmarks of state work on the same rows: 10 million keys (1 million with -short), 50,000 rows a second of
// virtual time, 1 row in 250 a copy of one of the last 3 million. They report the time per row, its ratio to that of a
// bare map loop over these rows in the same process, and the heap per live key afterwards.

func benchKeys() int {
	if testing.Short() {
		return 1_000_000
	}
	return 10_000_000
}

const benchStart stream.Time = 1_767_225_600_000

func benchKey(n uint64) stream.Key { return stream.Key{Hi: stream.Mix(n), Lo: stream.Mix(^n)} }

// benchRows feeds all rows to handle, in runs of 64.
func benchRows(keys int, handle func(rows []stream.Row)) (rows int) {
	var run [64]stream.Row
	for fresh := 0; fresh < keys; {
		for i := range run {
			n := uint64(rows)
			key := uint64(fresh)
			if n%250 == 249 {
				key -= min(key, 1+stream.Mix(n)%3_000_000)
			} else {
				fresh++
			}
			at := benchStart + stream.Time(n/50)
			run[i] = stream.Row{Key: benchKey(key), Arrival: at, Event: at, Order: int64(key), Tag: stream.Tag(key)}
			rows++
		}
		handle(run[:])
	}
	return rows
}

// bareMap is the time per row that everything is compared with.
var bareMap = sync.OnceValue(func() time.Duration {
	runtime.GC()
	start := time.Now()
	seen := map[[16]byte]int64{}
	rows := benchRows(benchKeys(), func(rows []stream.Row) {
		for i := range rows {
			var key [16]byte
			binary.LittleEndian.PutUint64(key[:8], rows[i].Key.Hi)
			binary.LittleEndian.PutUint64(key[8:], rows[i].Key.Lo)
			if _, ok := seen[key]; !ok {
				seen[key] = int64(rows[i].Arrival)
			}
		}
	})
	return time.Since(start) / time.Duration(rows)
})

// benchState times a pass over all rows by what start returns; live counts the keys that are alive at the end.
func benchState(b *testing.B, start func() (handle func(rows []stream.Row), live func() int)) {
	base := float64(bareMap())
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	rows, bytes := 0, 0.0
	for b.Loop() {
		b.StopTimer()
		before := heap()
		b.StartTimer()
		handle, live := start()
		rows += benchRows(benchKeys(), handle)
		b.StopTimer()
		bytes = float64(heap()-before) / float64(live())
		b.StartTimer()
	}
	perRow := float64(b.Elapsed()) / float64(rows)
	b.ReportMetric(perRow, "ns/row")
	b.ReportMetric(perRow/base, "x-map")
	b.ReportMetric(bytes, "B/key")
}

func BenchmarkTableFirst(b *testing.B) { benchFirst(b, 7_200_000) }

// BenchmarkTableTTL is a table in its steady state: for every entry that comes, one expires.
func BenchmarkTableTTL(b *testing.B) { benchFirst(b, stream.Time(benchKeys()/200)) }

func benchFirst(b *testing.B, ttl stream.Time) {
	benchState(b, func() (func(rows []stream.Row), func() int) {
		t := sim.NewTable(sim.TableSpec{TTL: ttl, Sample: 10_000})
		return func(rows []stream.Row) {
			cursor := t.Probe(rows)
			for i := range rows {
				if cursor.Get(i) == nil {
					cursor.Put(i, 0, rows[i].Tag, 0)
				}
			}
		}, t.Held
	})
}

// BenchmarkTableRowtime holds each row for 5 s of event time, as rowtime ascending does: a pinned entry, a timer that
// refers to it, and when it fires the entry is written again, to expire.
func BenchmarkTableRowtime(b *testing.B) {
	benchState(b, func() (func(rows []stream.Row), func() int) {
		t := sim.NewTable(sim.TableSpec{TTL: 7_200_000, Sample: 10_000})
		var timers sim.Wheel[sim.Ref]
		return func(rows []stream.Row) {
			cursor := t.Probe(rows)
			for i := range rows {
				if row := &rows[i]; cursor.Get(i) == nil {
					timers.Add(row.Event, cursor.Put(i, int64(row.Event), row.Tag, sim.Pinned))
				}
			}
			now := rows[0].Arrival
			timers.Advance(now-5000, func(_ stream.Time, due []sim.Ref) {
				for _, ref := range due {
					e := t.At(ref)
					t.Rewrite(ref, now, e.Value, e.Tag, 0)
				}
			})
		}, t.Held
	})
}

// BenchmarkTableCached has a cache of 10,000 entries in front of the table, as Flink's Rank operators do.
func BenchmarkTableCached(b *testing.B) {
	benchState(b, func() (func(rows []stream.Row), func() int) {
		t := sim.NewTable(sim.TableSpec{TTL: 7_200_000, Sample: 10_000})
		var now stream.Time
		cache := sim.NewLRU(10_000, 7_200_000, func(e *sim.Entry) { t.Put(e.Key, now, e.Value, e.Tag, 0) })
		return func(rows []stream.Row) {
			cursor := t.Probe(rows)
			cache.Foresee(t, len(rows))
			for i := range rows {
				row := &rows[i]
				now = row.Arrival
				if cache.Get(row.Key, now) == nil && cursor.Get(i) == nil {
					cache.Put(row.Key, now, row.Order, row.Tag, 0)
				}
			}
		}, t.Held
	})
}

func BenchmarkLRU(b *testing.B) {
	cache := sim.NewLRU(10_000, 7_200_000, func(*sim.Entry) {})
	n := uint64(0)
	for b.Loop() {
		n++
		now := benchStart + stream.Time(n/50)
		if key := benchKey(stream.Mix(n) % 20_000); cache.Get(key, now) == nil {
			cache.Put(key, now, 0, 0, 0)
		}
	}
}

// BenchmarkTablePebble spills to files on disk.
func BenchmarkTablePebble(b *testing.B) {
	var cold sim.Cold
	benchState(b, func() (func(rows []stream.Row), func() int) {
		store, err := pebble.Open(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = store.Close() })
		cold = store
		t := sim.NewTable(sim.TableSpec{TTL: 7_200_000, Sample: 10_000, Cold: cold, SpillAt: benchKeys() / 5})
		return func(rows []stream.Row) {
			cursor := t.Probe(rows)
			for i := range rows {
				if cursor.Get(i) == nil {
					cursor.Put(i, 0, rows[i].Tag, 0)
				}
			}
			if t.Err() != nil {
				b.Fatal(t.Err())
			}
		}, t.Held
	})
	size, err := cold.Bytes()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(size)/float64(benchKeys()), "disk-B/key")
}
