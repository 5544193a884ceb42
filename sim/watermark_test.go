package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deduplab/stream"
)

// signals writes down what is put out.
type signals []string

func (s *signals) Watermark(w stream.Time) { *s = append(*s, fmt.Sprint(int64(w))) }
func (s *signals) Idle()                   { *s = append(*s, "IDLE") }
func (s *signals) Active()                 { *s = append(*s, "ACTIVE") }

// expect compares what was put out since the last call.
func (s *signals) expect(t *testing.T, want string) {
	t.Helper()
	if got := strings.Join(*s, " "); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	*s = nil
}

func TestAssignerSendsWithTheRowBeyondTheInterval(t *testing.T) {
	var out signals
	a := NewSQLAssigner(0, 200, 0, 0, &out)
	a.Row(10000)
	out.expect(t, "10000")
	a.Row(10200)
	out.expect(t, "") // exactly the interval: waits for the timer
	a.Tick(199)
	out.expect(t, "")
	a.Tick(200)
	out.expect(t, "10200")
	a.Row(10401)
	out.expect(t, "10401")
	a.End()
	out.expect(t, "9223372036854775807")
}

func TestAssignerFailsOnNull(t *testing.T) {
	var out signals
	if err := NewSQLAssigner(0, 200, 0, 0, &out).Row(stream.NullTime); !errors.Is(err, ErrNullRowtime) {
		t.Errorf("got %v", err)
	}
}

func TestAssignerWithoutPeriodicWatermarkSendsWithEachRow(t *testing.T) {
	var out signals
	a := NewSQLAssigner(0, 0, 0, 0, &out)
	a.Row(1)
	a.Row(2)
	a.Row(2)
	a.Tick(1000)
	out.expect(t, "1 2")
}

// Flink serves both the watermark interval and the idle timeout with one timer.
func TestAssignerPeriod(t *testing.T) {
	for _, c := range []struct{ interval, idleAfter, want stream.Time }{
		{200, 0, 200},
		{0, 700, 700},
		{0, 0, 0},
		{200, 1000, 40},
		{200, 1001, 200},
		{1000, 200, 40},
		{3, 4, 1},
	} {
		if got := NewSQLAssigner(0, c.interval, c.idleAfter, 0, nil).Period(); got != c.want {
			t.Errorf("interval %d, idle after %d: got %d, want %d", c.interval, c.idleAfter, got, c.want)
		}
	}
}

func TestAssignerIdleClockStartsAtTheFirstTimerAfterARow(t *testing.T) {
	var out signals
	a := NewSQLAssigner(0, 200, 1000, 0, &out)
	a.Row(10000)
	out.expect(t, "10000")
	for now := stream.Time(40); now < 1040; now += 40 {
		a.Tick(now)
	}
	out.expect(t, "")
	a.Tick(1040)
	out.expect(t, "IDLE")
	a.Tick(1080)
	a.Row(9000)
	out.expect(t, "ACTIVE")
}

func TestGeneratorsLagByTheDelay(t *testing.T) {
	var out signals
	bounded, pushed := NewBounded(5000, 0), newPushedDown(5000, 0)
	for _, event := range []stream.Time{10000, 12000, 9000} {
		bounded.Row(event)
		pushed.Row(event)
	}
	bounded.Periodic(200, &out)
	pushed.Periodic(200, &out)
	out.expect(t, "6999 7000")
}

func TestMultiplexerAllIdleTakesTheLargest(t *testing.T) {
	var out signals
	m := NewMultiplexer(&out)
	m.Periodic()
	out.expect(t, "") // without splits there is nothing to say
	a, b := m.Register(), m.Register()
	a.Watermark(5)
	b.Watermark(4)
	m.Periodic()
	out.expect(t, "4")
	a.Idle()
	b.Idle()
	m.Periodic()
	out.expect(t, "5 IDLE")
	m.Periodic()
	out.expect(t, "IDLE")
	b.Watermark(4)
	m.Periodic()
	out.expect(t, "") // back, but behind
}

// In Flink 2.3.0 the largest watermark is lost when the last channel to fall idle is one that lags behind the output.
func TestValveKeepsQuietWhenALaggardFallsIdleLast(t *testing.T) {
	var out signals
	v := NewValve(3, &out)
	for channel, w := range []stream.Time{9000, 1000, 2000} {
		v.Watermark(channel, w)
	}
	v.Idle(1)
	v.Active(1) // at 1000, the output at 2000
	out.expect(t, "1000 2000")
	v.Idle(0)
	v.Idle(2)
	v.Idle(1)
	out.expect(t, "IDLE")
}

// TestValveIsTheLeastOfAlignedChannels draws histories of a task's channels and holds the valve against the definition
// of its output, kept in the plainest way.
func TestValveIsTheLeastOfAlignedChannels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "channels")
		var out watermarks
		v := NewValve(n, &out)
		marks, idle, aligned := make([]stream.Time, n), make([]bool, n), make([]bool, n)
		for i := range n {
			marks[i], aligned[i] = stream.MinTime, true
		}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			i := rapid.IntRange(0, n-1).Draw(t, "channel")
			last := out.last()
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				v.Idle(i)
				idle[i], aligned[i] = true, false
			case 1:
				v.Active(i)
				aligned[i] = aligned[i] || idle[i] && marks[i] >= last
				idle[i] = false
			default:
				w := stream.Time(rapid.IntRange(1, 20).Draw(t, "watermark"))
				v.Watermark(i, w)
				if !idle[i] && w > marks[i] {
					marks[i] = w
					aligned[i] = aligned[i] || w >= last
				}
			}
			if out.fell {
				t.Fatalf("fell: %v", out.all)
			}
			if allIdle := !slices.Contains(idle, false); allIdle != out.idle {
				t.Fatalf("idle is %v, want %v", out.idle, allIdle)
			}
			for j := range n {
				if aligned[j] && marks[j] < out.last() {
					t.Fatalf("channel %d is aligned at %d, the output at %d", j, marks[j], out.last())
				}
			}
			if w := out.last(); w > last && !out.idle {
				least := stream.MaxTime
				for j := range n {
					if aligned[j] {
						least = min(least, marks[j])
					}
				}
				if w != least {
					t.Fatalf("put out %d, the least of the aligned channels is %d", w, least)
				}
			}
		}
	})
}

func TestMultiplexerNeverFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var out watermarks
		m := NewMultiplexer(&out)
		splits := make([]*Split, rapid.IntRange(1, 4).Draw(t, "splits"))
		for i := range splits {
			splits[i] = m.Register()
		}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			s := splits[rapid.IntRange(0, len(splits)-1).Draw(t, "split")]
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				s.Idle()
			case 1:
				last := out.last()
				m.Periodic()
				least, active := stream.MaxTime, false
				for _, s := range splits {
					if !s.idle {
						least, active = min(least, s.watermark), true
					}
				}
				if active && out.last() != max(last, least) {
					t.Fatalf("put out %d after %d, the least of the active splits is %d", out.last(), last, least)
				}
			default:
				s.Watermark(stream.Time(rapid.IntRange(1, 20).Draw(t, "watermark")))
			}
			if out.fell {
				t.Fatalf("fell: %v", out.all)
			}
		}
	})
}

func TestAssignerNeverFallsNorRunsAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		delay := stream.Time(rapid.IntRange(0, 500).Draw(t, "delay"))
		idleAfter := stream.Time(rapid.IntRange(0, 1000).Draw(t, "idle after"))
		var out watermarks
		a := NewSQLAssigner(delay, 200, idleAfter, 0, &out)
		var now, largest stream.Time
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			now += stream.Time(rapid.IntRange(0, 300).Draw(t, "elapsed"))
			a.Tick(now)
			if rapid.Bool().Draw(t, "row") {
				event := stream.Time(rapid.IntRange(0, 5000).Draw(t, "event"))
				largest = max(largest, event)
				if err := a.Row(event); err != nil {
					t.Fatal(err)
				}
				if out.idle {
					t.Fatal("idle after a row")
				}
				if behind := largest - delay - max(out.last(), 0); behind > 200 {
					t.Fatalf("the watermark is %d ms behind after a row", behind)
				}
			}
			if out.fell || out.last() > largest-delay {
				t.Fatalf("put out %v, the largest event time is %d", out.all, largest)
			}
		}
	})
}

// watermarks remembers the watermarks put out and the last status.
type watermarks struct {
	all        []stream.Time
	idle, fell bool
}

func (o *watermarks) Watermark(w stream.Time) {
	o.fell = o.fell || w <= o.last()
	o.all = append(o.all, w)
}

func (o *watermarks) Idle()   { o.idle = true }
func (o *watermarks) Active() { o.idle = false }

func (o *watermarks) last() stream.Time {
	if len(o.all) == 0 {
		return stream.MinTime
	}
	return o.all[len(o.all)-1]
}
