package lab

import (
	"reflect"
	"testing"

	"deduplab/results"
	"deduplab/stream"
)

// However many rows are late, the dots are few, and each kind of them and the one farthest behind are among them.
func TestLateDotsStayFew(t *testing.T) {
	const span = 8 * 3600 * 1000
	draw := func() []results.Arrival {
		l := newLateDots(stream.Time(span))
		for i := range int64(200_000) {
			at := i * span / 200_000
			l.add(results.Arrival{AtMS: at, EventMS: at - 5000 - i*7919%60_000, Partition: int(i % 2), Origin: "original"})
			if i%50_000 == 0 {
				l.add(results.Arrival{AtMS: at, EventMS: at - 2*3600*1000, Origin: "client-resend"})
			}
		}
		return l.dots
	}
	dots := draw()
	if len(dots) > lateLimit || len(dots) < lateLimit/8 {
		t.Errorf("%d dots, the limit is %d", len(dots), lateLimit)
	}
	seen := map[string]int{}
	for _, d := range dots {
		seen[d.Origin]++
	}
	if seen["client-resend"] != 4 {
		t.Errorf("%d of 4 resends are drawn", seen["client-resend"])
	}
	if !reflect.DeepEqual(dots, draw()) {
		t.Error("the same rows are drawn in two ways")
	}
}
