package size

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"deduplab/results"
)

// Measured is what a live key of a strategy took in a run, in bytes, beside what was planned for it.
type Measured struct {
	Strategy string  `json:"strategy"`
	Keys     int64   `json:"keys"`          // that were alive at the peak
	State    string  `json:"state"`         // memory (the lab's own tables) or pebble
	PerKey   float64 `json:"bytes_per_key"` // physical
	Logical  float64 `json:"logical_bytes_per_key"`
	// OfPlanned is PerKey as a share of the planning figure, and Bytes what the keys of the first plan's tier in the
	// stream would take.
	OfPlanned float64 `json:"of_planned"`
	Bytes     float64 `json:"bytes"`
}

// Compare sets what the strategies of a run took for a key beside the planning figure, the smallest first. Those that
// held no key are left out.
func (r *Report) Compare(run *results.Run) error {
	for i := range run.Strategies {
		s := &run.Strategies[i]
		if s.State.BytesPerKey == 0 {
			continue
		}
		r.Measured = append(r.Measured, Measured{
			Strategy: s.ID, Keys: s.State.KeysLivePeak, State: run.Job.State,
			PerKey: s.State.BytesPerKey, Logical: s.State.LogicalBytesPerKey,
			OfPlanned: s.State.BytesPerKey / r.BytesPerKey,
			Bytes:     s.State.BytesPerKey * r.Plans[0].Tiers[0].Keys,
		})
	}
	if r.Measured == nil {
		return fmt.Errorf("no strategy in the run of %s has held a key", run.Scenario)
	}
	slices.SortStableFunc(r.Measured, func(a, b Measured) int { return cmp.Compare(a.PerKey, b.PerKey) })
	return nil
}

// FromRun takes the stream from what a run has measured of it.
func FromRun(run *results.Run) (Stream, error) {
	w := &run.Workload
	if w.Rows == 0 || w.SpanMS <= 0 {
		return Stream{}, errors.New("the run had no rows, or all of them at one moment: it has no rate")
	}
	q := w.HorizonMS
	return Stream{
		Rate: float64(w.Rows) * 1000 / float64(w.SpanMS), Duplicates: float64(w.Copies) / float64(w.Rows),
		Delays: points(q.P50, q.P99, q.P999, q.P9999, q.Max),
	}, nil
}
