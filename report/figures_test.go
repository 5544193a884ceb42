package report

import (
	"reflect"
	"strings"
	"testing"

	"deduplab/results"
)

func TestArrivalFigure(t *testing.T) {
	w := results.Workload{
		Rows: 9000, Partitions: 2, ByOrigin: map[string]int64{"original": 8999, "retry": 1},
		Arrivals: []results.Arrival{
			{AtMS: 1000, EventMS: 990, Origin: "original"},
			{AtMS: 7000, EventMS: 1000, Partition: 1, Origin: "retry", Late: true},
		},
		Watermark: []results.Staircase{{AtMS: 500, WatermarkMS: 0}},
	}
	f := arrivalFigure(w)
	if len(f.Charts) != 2 {
		t.Errorf("%d charts for 2 partitions", len(f.Charts))
	}
	for _, want := range []string{"retry 6 s and original 10 ms", "2 of 9,000 rows, 1 of them late"} {
		if !strings.Contains(f.See, want) {
			t.Errorf("%q is missing in %q", want, f.See)
		}
	}
	w.Partitions = lanes + 1
	if f := arrivalFigure(w); len(f.Charts) != 1 {
		t.Errorf("%d charts for many partitions", len(f.Charts))
	}
	w.Arrivals = []results.Arrival{{AtMS: 1000, EventMS: 1000}}
	if f := arrivalFigure(w); len(f.Charts) != 0 || !strings.Contains(f.See, "none is behind") {
		t.Errorf("a stream without lag: %d charts, %q", len(f.Charts), f.See)
	}
}

func TestGaps(t *testing.T) {
	var rows []results.Arrival
	for at := int64(0); at <= 10_000; at += 10 {
		if at <= 3000 || at >= 4000 {
			rows = append(rows, results.Arrival{AtMS: at})
		}
	}
	if got, want := gaps(rows), [][2]int64{{3000, 4000}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := gaps(nil); got != nil {
		t.Errorf("gaps of nothing: %v", got)
	}
}
