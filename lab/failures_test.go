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
		return scenarios.Failure{Failure: sim.Failure{
			Kind: sim.FailureKind(rapid.IntRange(0, len(sim.FailureKinds())-1).Draw(t, "kind")), At: at.Draw(t, "at"),
			Down: anySpan(t, "down"), For: max(anySpan(t, "for"), 1), By: max(anySpan(t, "by"), 1),
		}, Random: rapid.SampledFrom([]int{0, 0, 0, 2}).Draw(t, "random")}
	}), 1, 4).Draw(t, "failures")
}
