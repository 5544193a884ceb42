package proof

import (
	"slices"
	"testing"

	"deduplab/sim"
)

// TestTimersAfterRestart: a row of the very moment of the checkpoint registers no second timer after a restart, as the
// relations hardly ever draw it.
func TestTimersAfterRestart(t *testing.T) {
	steps := []step{arrives("1s", "a", "1s", 1), restart("1s"), arrives("1s", "a", "1s", 1), arrives("2s", "a", "1s", 1)}
	for config, want := range map[string][]int{
		"keyed-process timer=10s":                {1, 1, 1, 2},
		"keyed-process timer=10s timer_on=first": {1, 1, 1, 1},
	} {
		for i, o := range run(configure(config), steps, world{}) {
			if o.timers != (sim.TimerCount{Proc: want[i]}) {
				t.Errorf("%s, step %d: timers %+v, want %d", config, i+1, o.timers, want[i])
			}
		}
	}
}

// TestBatchesAfterRestart: batches of 3 s by the clock after a restart at 1 s. A row of the next interval ends the
// first one, whose timer then ends nothing.
func TestBatchesAfterRestart(t *testing.T) {
	steps := []step{restart("1s"), arrives("2s", "a", "1s", 1), arrives("3s", "b", "1s", 1), clock("4s"), clock("5999ms"),
		clock("6s")}
	want := [][]string{{}, {}, {"a"}, {}, {}, {"b"}}
	for _, config := range []string{"proctime-asc mini_batch", "proctime-desc mini_batch",
		"select-distinct-key ttl=10s mini_batch"} {
		for i, o := range run(configure(config), steps, world{}) {
			keys := []string{}
			for _, c := range o.changes {
				keys = append(keys, c.key)
			}
			if !slices.Equal(keys, want[i]) {
				t.Errorf("%s, step %d: sends %q, want %q", config, i+1, keys, want[i])
			}
		}
	}
}
