package results

import "math"

// AfterSpec is what reads the result of a strategy.
type AfterSpec struct {
	WindowMS   int64  `json:"window_ms,omitempty"` // size of the windows; 0: there are none
	Sum        string `json:"sum,omitempty"`       // the column that they sum up
	SumScale   int    `json:"sum_scale,omitempty"` // its digits after the point: a sum of 1234 is then 12.34
	JoinOn     string `json:"join_on,omitempty"`   // the column of the join; empty: there is none
	JoinWithin int64  `json:"join_within_ms,omitempty"`
}

// After is what comes out behind a strategy, and what would come out if each event were in its result exactly once,
// with the row that arrived first. No row is late for it, and rows that leave the result are taken back.
type After struct {
	Window *AfterWindow `json:"window,omitempty"`
	Join   *AfterJoin   `json:"join,omitempty"`
}

// AfterWindow is an aggregate by tumbling windows of event time.
type AfterWindow struct {
	Rows int64 `json:"rows"` // that it puts out, one a window
	// Equal are those of its rows that equal an earlier one: all that a deduplication behind it could remove.
	Equal int64 `json:"equal"`
	Wrong int64 `json:"wrong"` // windows whose count or sum is not the true one
	// Worst is the largest error of the sum, or the count where there is none, of any window.
	Worst float64    `json:"worst"`
	Count Deviation  `json:"count"`
	Sum   *Deviation `json:"sum,omitempty"`
}

// AfterJoin is an interval join of the result with the events of the stream.
type AfterJoin struct {
	Rows Deviation `json:"rows"`
}

// Deviation is a number beside the true one.
type Deviation struct {
	Value int64 `json:"value"`
	Truth int64 `json:"truth"`
	// Error is |value - truth| / truth: 0.0037 for one that is 0.37 % too high, or too low.
	Error float64 `json:"error"`
}

// NewDeviation compares two numbers.
func NewDeviation(value, truth int64) Deviation {
	return Deviation{value, truth, relativeError(value, truth)}
}

// relativeError is 1 where something is that should not be at all.
func relativeError(value, truth int64) float64 {
	switch {
	case value == truth:
		return 0
	case truth == 0:
		return 1
	}
	return math.Abs(float64(value)-float64(truth)) / math.Abs(float64(truth))
}
