package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"deduplab/stream"
)

func TestTableExpiriesAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ttl := rapid.SampledFrom([]stream.Time{1, 9, 100, 1000}).Draw(t, "ttl")
		sample := rapid.SampledFrom([]stream.Time{1, 3, 10}).Draw(t, "sample")
		x := newExpiries(ttl, sample)
		var model []stream.Time // of writing
		now := rapid.SampledFrom([]stream.Time{-50, 0, 1_767_225_600_000}).Draw(t, "start")
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				now += rapid.SampledFrom([]stream.Time{1, 1, 2, 3, ttl / 5, ttl, 1 << 40}).Draw(t, "step")
			case 1:
				if len(model) > 0 {
					i := rapid.IntRange(0, len(model)-1).Draw(t, "entry")
					x.remove(model[i])
					model = slices.Delete(model, i, i+1)
				}
			default:
				x.add(now)
				model = append(model, now)
			}
			if now%sample == 0 {
				x.advance(now)
				want := 0
				for _, written := range model {
					if now < written+ttl {
						want++
					}
				}
				if x.live != want {
					t.Fatalf("%d alive at %d, want %d", x.live, now, want)
				}
			}
		}
	})
}
