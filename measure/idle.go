package measure

import "slices"

// Idle says how long a partition says nothing.
type Idle struct {
	Partition int    `json:"partition"`
	Rows      int    `json:"rows"`
	Gaps      Delays `json:"gaps"`       // between rows that follow each other
	LongestAt string `json:"longest_at"` // when the longest gap begins
	// Silent is from its last row to the end of the trace.
	Silent Span `json:"silent_at_end_ms"`
}

// idleness measures each partition, in order of their numbers.
func idleness(t *trace) []Idle {
	end := t.arrivals[len(t.arrivals)-1]
	span := Span(end - t.arrivals[0])
	rows := map[uint16][]nanos{}
	for row, p := range t.partitions {
		rows[p] = append(rows[p], t.arrivals[row])
	}
	var all []Idle
	for p, arrivals := range rows {
		gaps := make([]nanos, 0, len(arrivals))
		longest := 0
		for i := 1; i < len(arrivals); i++ {
			gaps = append(gaps, arrivals[i]-arrivals[i-1])
			if gaps[i-1] > gaps[longest] {
				longest = i - 1
			}
		}
		all = append(all, Idle{
			Partition: int(p), Rows: len(arrivals), LongestAt: formatMoment(arrivals[longest]),
			Silent: Span(end - arrivals[len(arrivals)-1]), Gaps: newDelays(gaps, span),
		})
	}
	slices.SortFunc(all, func(a, b Idle) int { return a.Partition - b.Partition })
	return all
}
