package lab

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"deduplab/gen"
	"deduplab/sim"
	"deduplab/stream"
)

// BenchmarkHotPath measures what a strategy costs a row, everything measured, as a ratio to
// a bare Go map over the same keys in the same run: look up, insert if absent, growing. One row in 250 is a copy, at
// 50,000 rows/s of virtual time. With -short it takes a tenth of the 10 million keys.
func BenchmarkHotPath(b *testing.B) {
	seconds := stream.Time(200)
	if testing.Short() {
		seconds = 20
	}
	workload, err := gen.New(gen.Spec{
		Start: 1_767_225_600_000, Duration: seconds * 1000, Rate: 50_000,
		Fields:    []gen.Field{{Name: "order_id", UUID: true}, {Name: "price", Decimal: &[2]int64{200, 50_000}}},
		Key:       []string{"order_id"},
		EventTime: gen.EventTime{Field: "created_at"}, Partitions: 1,
		Transport:  gen.Delay{Kind: gen.Lognormal, Low: 5, High: 500, P1: 0.5, P2: 0.999, Cap: 2000},
		Duplicates: []gen.Duplicate{{Origin: "copy", Rate: 0.004, Delay: gen.Delay{Kind: gen.Uniform, High: 10_000}}},
	}, 1)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		bare := bareMap(b, workload)
		for _, c := range []struct {
			name   string
			params map[string]string
		}{
			{"proctime-asc", map[string]string{"ttl": "2h"}},
			{"ptf", nil},
			{"rowtime-asc", map[string]string{"ttl": "2h"}},
			{"proctime-desc", map[string]string{"ttl": "2h"}},
			{"rowtime-desc", map[string]string{"ttl": "2h"}},
			{"select-distinct-key", map[string]string{"ttl": "2h"}},
			{"nontime", map[string]string{"ttl": "2h", "order_by": "price asc"}},
			{"drop-duplicates", nil},
			{"drop-duplicates-within-watermark", map[string]string{"delay": "2h"}},
		} {
			perRow, bytes := oneStrategy(b, workload, c.name, c.params)
			b.ReportMetric(perRow/bare, c.name+"/map")
			b.ReportMetric(bytes, c.name+"-B/key")
			fmt.Printf("%-20s %6.1f ns/row  %.2fx map (%.1f ns)  %.1f B/key\n", c.name, perRow, perRow/bare, bare, bytes)
		}
	}
}

// bareMap returns the map's time per row in ns.
func bareMap(b *testing.B, w gen.Workload) float64 {
	seen := map[[16]byte]int64{}
	rows, spent := 0, time.Duration(0)
	batch, in := make([]stream.Row, batchOf), w.Stream()
	for {
		n, err := in.Next(batch)
		if err != nil {
			b.Fatal(err)
		}
		if n == 0 {
			return float64(spent.Nanoseconds()) / float64(rows)
		}
		rows += n
		start := time.Now()
		for i := range batch[:n] {
			key := [16]byte{}
			for j := range 8 {
				key[j], key[8+j] = byte(batch[i].Key.Hi>>(8*j)), byte(batch[i].Key.Lo>>(8*j))
			}
			if _, ok := seen[key]; !ok {
				seen[key] = int64(batch[i].Arrival)
			}
		}
		spent += time.Since(start)
	}
}

const batchOf = 4096

// oneStrategy returns a strategy's time per row in ns, and the heap it takes a live key.
func oneStrategy(b *testing.B, w gen.Workload, name string, params map[string]string) (perRow, bytesPerKey float64) {
	before := heap()
	l, feed := laneOf(b, w, name, params)
	batch, task := &sim.Batch{}, l.task // which the lane lets go of at the end
	rows, spent, perKey := 0, time.Duration(0), 0.0
	for {
		ok, err := feed.Next(batch)
		if err != nil {
			b.Fatal(err)
		}
		if !ok {
			break
		}
		rows += len(batch.Rows)
		start := time.Now()
		l.handle(batch)
		spent += time.Since(start)
		if l.err != nil {
			b.Fatal(l.err)
		}
	}
	if live := l.series[len(l.series)-1].KeysLive; live > 0 {
		perKey = float64(heap()-before) / float64(live)
	}
	runtime.KeepAlive(task)
	return float64(spent.Nanoseconds()) / float64(rows), perKey
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
