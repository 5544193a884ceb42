package lab_test

import (
	"pgregory.net/rapid"

	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/stream"
)

// anyFailures draws the failures of a job.
func anyFailures(t *rapid.T) []scenarios.Failure {
	if rapid.Bool().Draw(t, "it does not fail") {
		return nil
	}
	at := rapid.SampledFrom([]stream.Time{1, 999, 1000, 30_000, 61_000, 120_000})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) scenarios.Failure {
		f := scenarios.Failure{Random: rapid.SampledFrom([]int{0, 0, 0, 2}).Draw(t, "random")}
		f.Kind, f.At = sim.FailureKind(rapid.IntRange(0, len(sim.FailureKinds())-1).Draw(t, "kind")), at.Draw(t, "at")
		switch f.Kind {
		case sim.SlowCheckpoint:
			f.For = max(anySpan(t, "for"), 1)
		case sim.RewindFailure:
			f.By = max(anySpan(t, "by"), 1)
			fallthrough
		case sim.CrashFailure, sim.SinkFailure:
			f.Down = anySpan(t, "down")
		}
		return f
	}), 1, 4).Draw(t, "failures")
}
