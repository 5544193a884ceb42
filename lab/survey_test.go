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

func TestFormatMetric(t *testing.T) {
	for _, c := range []struct {
		name         string
		value, bound float64
		want         string
	}{
		{"lost", 12345, 0, "12,345"},
		{"residual", 0.16797, 0.001, "17 %"},
		{"residual", 0.00138, 0.001, "0.14 %"},
		{"residual", 0.001004, 0.001, "0.1004 %"},
		{"leak_rate", 0, 0, "0 %"},
		{"latency_ms.wait.p99", 0, 100, "0 ms"},
		{"latency_ms.wait.p99", 6260, 1000, "6.3 s"},
		{"latency_ms.wait.p99", 1031, 1000, "1s31ms"},
		{"latency_ms.wait.p99", 65024, 1000, "1m5s"},
		{"latency_ms.wait.p99", 59_960, 1000, "1m"},
		{"latency_ms.wait.n", 3000, 0, "3,000"},
	} {
		if got := formatMetric(c.name, c.value, c.bound); got != c.want {
			t.Errorf("%s %v against %v: got %q, want %q", c.name, c.value, c.bound, got, c.want)
		}
	}
}
