package pebble_test

import (
	"testing"

	"deduplab/sim"
	"deduplab/sim/pebble"
	"deduplab/stream"
)

// A target on disk knows its rows and its last batch again.
func TestTargetReopened(t *testing.T) {
	dir := t.TempDir()
	write := func(batch int64, want int) {
		t.Helper()
		target, err := pebble.OpenTarget(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer target.Close()
		if target.Last() != batch-1 {
			t.Errorf("batch %d: last %d", batch, target.Last())
		}
		w := &sim.TargetWrite{Batch: batch, Mode: sim.MergeInsert, Since: sim.NullDate}
		for n := range 5000 {
			w.Rows = append(w.Rows, sim.TargetRow{Key: testKey(int(batch)*1000 + n), Event: stream.Time(n) * 1e6})
		}
		o, err := target.Write(w)
		if err != nil || o.Inserted != want {
			t.Errorf("batch %d: inserted %d, want %d, %v", batch, o.Inserted, want, err)
		}
	}
	write(0, 5000)
	write(1, 1000)
	write(2, 1000)
}
