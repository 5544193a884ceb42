package measure

import (
	"slices"

	"deduplab/stream"
)

// Forecast is what a TTL would do, counted in whole milliseconds as the engines do. A copy leaks that arrives when the
// TTL is over, to the millisecond; it then counts as a first row itself.
type Forecast struct {
	TTL stream.Time `json:"ttl_ms"` // 0 is none
	// Create counts the TTL from the first row of a key, Refresh from the last: copies extend it.
	Create  Outcome `json:"from_first"`
	Refresh Outcome `json:"from_last"`
	// AtLeast says that the TTL is half the trace or longer: the trace is too short for its copies and its state.
	AtLeast bool `json:"at_least,omitempty"`
}

// Outcome is what comes through and what must be remembered.
type Outcome struct {
	Leaked   int     `json:"leaked"`
	LeakRate float64 `json:"leak_rate"` // of the copies
	Keys     int     `json:"keys_peak"` // remembered at once
	Bytes    int64   `json:"bytes_peak"`
}

// spans are the TTLs and watermark delays that people choose.
var spans = []stream.Time{100, 1e3, 10e3, 30e3, 60e3, 5 * 60e3, 10 * 60e3, 30 * 60e3, 3600e3, 2 * 3600e3, 3 * 3600e3,
	6 * 3600e3, 12 * 3600e3, 86400e3, 2 * 86400e3, 3 * 86400e3, 7 * 86400e3, 14 * 86400e3, 28 * 86400e3, 90 * 86400e3,
	365 * 86400e3}

// roundUp is the shortest usual span that is not below.
func roundUp(at Span) stream.Time {
	for _, s := range spans {
		if Span(s)*millisecond >= at {
			return s
		}
	}
	return stream.Time((at + day - 1) / day * day / millisecond)
}

// above is the shortest usual span under which a copy with this delay does not leak.
func above(delay Span) stream.Time { return roundUp((delay/millisecond + 1) * millisecond) }

// forecasts tries the usual TTLs up to the first under which nothing leaks, those that were asked for, and none.
func forecasts(t *trace, ids []uint32, key KeyReport, trace Span, o Options) []Forecast {
	arrivals := make([]int64, len(t.arrivals))
	for row, at := range t.arrivals {
		arrivals[row] = millis(at)
	}
	var all []Forecast
	try := func(ttl stream.Time) (leaks bool) {
		f := Forecast{TTL: ttl, AtLeast: trace > 0 && (ttl == 0 || Span(ttl)*millisecond >= (trace+1)/2)}
		f.Create = outcome(arrivals, ids, key.Distinct, ttl, false)
		f.Refresh = outcome(arrivals, ids, key.Distinct, ttl, true)
		for _, x := range []*Outcome{&f.Create, &f.Refresh} {
			if key.Copies > 0 {
				x.LeakRate = float64(x.Leaked) / float64(key.Copies)
			}
			x.Bytes = int64(x.Keys) * o.BytesPerKey
		}
		all = append(all, f)
		return f.Create.Leaked+f.Refresh.Leaked > 0
	}
	for _, ttl := range spans {
		if !try(ttl) {
			break
		}
	}
	for _, ttl := range o.TTLs {
		if !slices.ContainsFunc(all, func(f Forecast) bool { return f.TTL == ttl }) {
			try(ttl)
		}
	}
	slices.SortFunc(all, func(a, b Forecast) int { return int(a.TTL - b.TTL) })
	if !slices.Contains(o.TTLs, 0) {
		try(0)
	}
	return all
}

// outcome runs one TTL over the rows in order of arrival; 0 is none.
func outcome(arrivals []int64, ids []uint32, distinct int, ttl stream.Time, refresh bool) Outcome {
	if ttl == 0 {
		return Outcome{Keys: distinct}
	}
	const forgotten, never = -1, -2
	// By key: the row from which its TTL runs. Rows run out in the order in which they come.
	counted := slices.Repeat([]int{never}, distinct)
	var out Outcome
	held, oldest := 0, 0
	for row, at := range arrivals {
		for ; arrivals[oldest]+int64(ttl) <= at; oldest++ {
			if id := ids[oldest]; counted[id] == oldest {
				counted[id] = forgotten
				held--
			}
		}
		switch last := counted[ids[row]]; {
		case last < 0:
			if last == forgotten {
				out.Leaked++
			}
			held++
			counted[ids[row]] = row
		case refresh:
			counted[ids[row]] = row
		}
		out.Keys = max(out.Keys, held)
	}
	return out
}
