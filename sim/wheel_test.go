package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"deduplab/stream"
)

// sortedTimers is a wheel as one would write it down.
type sortedTimers struct {
	position stream.Time
	timers   []lateTimer[int] // in order of adding
	late     []lateTimer[int] // added when their time was over
}

func (s *sortedTimers) add(at stream.Time, what int) {
	if at <= s.position {
		s.late = append(s.late, lateTimer[int]{at, what})
	} else {
		s.timers = append(s.timers, lateTimer[int]{at, what})
	}
}

func (s *sortedTimers) advance(to stream.Time, fire func(stream.Time, []int)) {
	if to <= s.position {
		return
	}
	due := s.late
	s.late = nil
	for _, list := range []*[]lateTimer[int]{&due, &s.timers} {
		for {
			first := to
			found := false
			for _, timer := range *list {
				if timer.at <= first {
					first, found = timer.at, true
				}
			}
			if !found {
				break
			}
			var whats []int
			*list = slices.DeleteFunc(*list, func(timer lateTimer[int]) bool {
				if timer.at == first {
					whats = append(whats, timer.what)
				}
				return timer.at == first
			})
			s.position = max(s.position, first)
			fire(first, whats)
		}
	}
	s.position = to
}

func TestWheelAgainstSortedTimers(t *testing.T) {
	const year9999 stream.Time = 253_402_300_799_999
	rapid.Check(t, func(t *rapid.T) {
		var wheel Wheel[int]
		model := sortedTimers{position: stream.MinTime}
		base := rapid.SampledFrom([]stream.Time{stream.MinTime + 1, -3, 0, 250, 65_530, 1_767_225_600_000}).Draw(t, "base")
		times := rapid.Custom(func(t *rapid.T) stream.Time {
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				return rapid.SampledFrom([]stream.Time{stream.MinTime + 1, 0, year9999, stream.MaxTime - 1,
					stream.MaxTime}).Draw(t, "extreme")
			case 1:
				return base + stream.Time(rapid.IntRange(0, 1_000_000_000).Draw(t, "far"))
			case 2:
				return base + stream.Time(rapid.IntRange(0, 4).Draw(t, "block"))*256
			}
			return base + stream.Time(rapid.IntRange(0, 600).Draw(t, "near"))
		})
		// Every third timer adds another one when it fires, after, at or before its own moment.
		next := 0
		add := func(at stream.Time) {
			next++
			wheel.Add(at, next)
			model.add(at, next)
		}
		type firing struct {
			at  stream.Time
			due []int
		}
		reactive := func(fired *[]firing, added *int, add func(at stream.Time, what int)) func(stream.Time, []int) {
			return func(at stream.Time, due []int) {
				*fired = append(*fired, firing{at, slices.Clone(due)})
				for _, what := range due {
					if what%3 == 0 && what < 1_000_000 {
						*added++
						delta := stream.Time(what%7 - 2)
						if delta < 0 || at < stream.MaxTime-delta {
							add(at+delta, 1_000_000+*added)
						}
					}
				}
			}
		}
		addedWheel, addedModel := 0, 0
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 5).Draw(t, "n") {
					add(times.Draw(t, "at"))
				}
			},
			"advance": func(t *rapid.T) {
				to := times.Draw(t, "to")
				if rapid.Bool().Draw(t, "short") && model.position < stream.MaxTime-600 && model.position > stream.MinTime {
					to = model.position + stream.Time(rapid.IntRange(0, 600).Draw(t, "step"))
				}
				var got, want []firing
				wheel.Advance(to, reactive(&got, &addedWheel, wheel.Add))
				model.advance(to, reactive(&want, &addedModel, model.add))
				if !slices.EqualFunc(got, want, func(a, b firing) bool {
					return a.at == b.at && slices.Equal(a.due, b.due)
				}) {
					t.Fatalf("advance to %d fired %v\nwant %v", to, got, want)
				}
			},
			"": func(t *rapid.T) {
				if wheel.Len() != len(model.timers)+len(model.late) {
					t.Fatalf("%d timers, want %d", wheel.Len(), len(model.timers)+len(model.late))
				}
			},
		})
	})
}

func TestWheelDoesNotAllocate(t *testing.T) {
	var wheel Wheel[Ref]
	now := stream.Time(1_767_225_600_000)
	fired := 0
	second := func() {
		for range 1000 {
			now++
			wheel.Add(now+5000, Ref(now))
			wheel.Add(now+50, Ref(now))
			wheel.Advance(now, func(_ stream.Time, due []Ref) { fired += len(due) })
		}
	}
	for range 10 {
		second()
	}
	if allocs := testing.AllocsPerRun(10, second); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	if fired+wheel.Len() != 2*21*1000 {
		t.Errorf("%d fired, %d left", fired, wheel.Len())
	}
}
