package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"deduplab/stream"
)

// TestDeadlines holds them against a list that is searched from end to end.
func TestDeadlines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, d := NewTable(TableSpec{}), Deadlines{}
		waiting := map[uint64]stream.Time{}
		now, next := stream.Time(0), uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			for range rapid.IntRange(0, 40).Draw(t, "adds") {
				next++
				at := now + stream.Time(rapid.IntRange(-3000, 9000).Draw(t, "deadline"))
				ref := table.Put(stream.Key{Lo: next}, 0, int64(at), 0, Pinned)
				d.Add(ref, at)
				waiting[next] = at
			}
			now += stream.Time(rapid.SampledFrom([]int{0, 1, 500, 999, 1000, 4321, 100_000}).Draw(t, "time"))
			var got, want []uint64
			d.Take(table, now, func(ref Ref) {
				got = append(got, table.At(ref).Key.Lo)
				table.Remove(ref)
			})
			for key, at := range waiting {
				if at <= now {
					want = append(want, key)
					delete(waiting, key)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) || d.Len() != len(waiting) || table.Held() != len(waiting) {
				t.Fatalf("at %d: took %v, want %v; %d wait, want %d", now, got, want, d.Len(), len(waiting))
			}
		}
	})
}
