package measure

// Idle says how long a partition says nothing.
type Idle struct {
	Partition int    `json:"partition"`
	Rows      int    `json:"rows"`
	Gaps      Delays `json:"gaps"`       // between rows that follow each other
	LongestAt string `json:"longest_at"` // when the longest gap begins
	// Silent is from its last row to the end of the trace.
	Silent Span `json:"silent_at_end_ms"`
}
