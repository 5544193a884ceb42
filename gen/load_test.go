package gen

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deduplab/stream"
)

const testHour = 3600 * second

// TestLoad counts the originals of an hour.
func TestLoad(t *testing.T) {
	tests := []struct {
		name string
		load Load
		hour stream.Time // of the scenario, from 0
		want float64     // as a multiple of the plain rate
	}{
		{"constant", Load{}, 5, 1},
		{"before the first step", Load{Steps: []LoadStep{{2 * testHour, 3}}}, 1, 1},
		{"after the first step", Load{Steps: []LoadStep{{2 * testHour, 3}}}, 2, 3},
		{"last step", Load{Steps: []LoadStep{{0, 2}, {2 * testHour, 3}, {4 * testHour, 0.5}}}, 7, 0.5},
		{"middle of an hour", Load{Steps: []LoadStep{{testHour / 2, 3}}}, 0, 2},
		{"sine at its peak", Load{Sine: &Sine{24 * testHour, 0.8, 14 * testHour}}, 14, 1.786},
		{"sine at its low, a day later", Load{Sine: &Sine{24 * testHour, 0.8, 14 * testHour}}, 26, 0.214},
		{"whole sines", Load{Sine: &Sine{testHour / 4, 1, 0}}, 3, 1},
		{"bursts", Load{Burst: &Burst{testHour / 2, testHour / 10, 6}}, 3, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := Spec{
				Start: 1767225600000, Duration: 28 * testHour, Rate: 2, Load: test.load, Partitions: 1,
				Fields: []Field{{Name: "id", UUID: true}}, Key: []string{"id"}, EventTime: EventTime{Field: "ts"},
			}
			work, err := New(spec, 7)
			if err != nil {
				t.Fatal(err)
			}
			got, rows := 0.0, 0
			buffer := make([]stream.Row, 64)
			for in := work.Stream(); ; {
				n, _ := in.Next(buffer)
				if n == 0 {
					break
				}
				rows += n
				for _, row := range buffer[:n] {
					if (row.Arrival-spec.Start)/testHour == test.hour {
						got++
					}
				}
			}
			plain := spec.Rate * 3600
			if got /= plain; got < test.want-0.05 || got > test.want+0.05 {
				t.Errorf("%.3f times the rate, want %.3f", got, test.want)
			}
			if want := spec.expected(); float64(rows) < 0.98*want || float64(rows) > 1.02*want {
				t.Errorf("%d events, but %.0f are expected", rows, want)
			}
		})
	}
}

// TestWarpLimit reads the clock at the end of what it counts, and refuses a scenario that is longer.
func TestWarpLimit(t *testing.T) {
	const years = longest/8 - 1
	spec := Spec{
		Duration: years, Rate: 0.001, Partitions: 1, Fields: []Field{{Name: "id", UUID: true}}, Key: []string{"id"},
		EventTime: EventTime{Field: "ts"},
	}
	for _, load := range []Load{
		{Steps: []LoadStep{{0, 128.5}, {years, 18.5}}},
		{Steps: []LoadStep{{0, 1000}, {years / 2, 1000}}},
		{Burst: &Burst{years, years - 1, 1000}},
		{Burst: &Burst{10 * second, 9 * second, 1000}},
	} {
		w := newWarp(load)
		if at := w.clock(w.limit()); at > maxClock || at < maxClock/2 || w.real(at) > w.limit() {
			t.Errorf("%+v: at %d the clock shows %d, which is %d", load, w.limit(), at, w.real(at))
		}
		spec.Load = load
		if err := spec.Validate(); err == nil || !strings.Contains(err.Error(), "load: the rate is too many times") {
			t.Errorf("%+v for 4 years: the error is %v", load, err)
		}
	}
}

// TestWarp states that the clock never stands still, and that real and clock undo each other to within a millisecond.
func TestWarp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.Float64Range(0.001, 1000)
		period := stream.Time(rapid.Int64Range(1000, int64(longest)/8-1).Draw(t, "period"))
		load := rapid.SampledFrom([]Load{
			{Sine: &Sine{period, rapid.Float64Range(0.01, 1).Draw(t, "amplitude"), period / 3}},
			{Burst: &Burst{period, period/10 + 1, times.Draw(t, "burst")}},
			{Steps: []LoadStep{{0, times.Draw(t, "first")}, {period, times.Draw(t, "second")}}},
		}).Draw(t, "load")
		if faults := load.check(); faults != nil {
			t.Fatal(faults)
		}
		w := newWarp(load)
		until := min(uint64(longest)/8<<tickBits, w.limit())
		a := rapid.Uint64Range(0, until).Draw(t, "a")
		b := rapid.Uint64Range(a, until).Draw(t, "b")
		if w.clock(a) > w.clock(b) || w.real(w.clock(a)) > a {
			t.Fatalf("the clock shows %d at %d, which is %d, and %d at %d", w.clock(a), a, w.real(w.clock(a)), w.clock(b), b)
		}
		if back := w.real(w.clock(a)); a-back > tickPerMs {
			t.Fatalf("real(clock(%d)) is %d", a, back)
		}
	})
}
