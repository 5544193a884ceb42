package report

import (
	"testing"

	"deduplab/results"
)

// TestRank sorts by the number that decides, not by how it is written.
func TestRank(t *testing.T) {
	s := section{Strategy: &results.Strategy{
		Residual: 0.0006, AppendOnlyViol: 114_606, WrongVersion: 12,
		State:       results.State{Class: "per key"},
		Determinism: []results.Determinism{{Replays: 5, SameTable: 3}, {Replays: 5, SameTable: 5}},
		Fates:       results.Fates{Swallowed: -1},
	}}
	for requirement, want := range map[string]string{
		"residual": "0.0006", "append_only": "114606", "version": "12", "state.class": "3", "same_under": "2",
		"fates.swallowed": "2", // unknown: by the verdict
	} {
		v := results.Verdict{Requirement: requirement, Verdict: results.Undetermined}
		if got := s.Rank(v); got != want {
			t.Errorf("%s is sorted by %q, want %q", requirement, got, want)
		}
	}
	s.State.Class = "undetermined: run at least 3 x the retention"
	if got := s.Rank(results.Verdict{Requirement: "state.class"}); got != "" {
		t.Errorf("an undetermined class is sorted by %q", got)
	}
}

func TestColumns(t *testing.T) {
	none := new(results.Strategy)
	for _, c := range columns {
		term(c.Word) // panics where the glossary lacks it
		if cell := c.Cell(none); cell.Text == "" || (cell.Value == "") != (cell.Text == "-") {
			t.Errorf("%s of nothing is %+v", c.Word, cell)
		}
	}
}
