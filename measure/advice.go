package measure

import (
	"fmt"

	"deduplab/stream"
)

// Advice is one recommended setting and the numbers that speak for it.
type Advice struct {
	What  string `json:"what"`
	Value string `json:"value"` // a duration, none, or unknown
	Why   string `json:"why"`
}

const (
	ttlAdvice       = "TTL"
	refreshAdvice   = "TTL, refreshed by copies"
	watermarkAdvice = "watermark delay"
	idleAdvice      = "idle timeout"
	sinkAdvice      = "sink look-back"
	auditAdvice     = "audit"
)

// What a recommended setting may leave: a thousandth of the copies to the sink, and one event in ten thousand lost.
const (
	leakBudget = 0.001
	lossBudget = 0.0001
)

// advise recommends the tiers of one key: in the stream, at the sink, in an audit.
func advise(r *Report, key *KeyReport) []Advice {
	var all []Advice
	add := func(what, value, format string, args ...any) {
		all = append(all, Advice{what, value, fmt.Sprintf(format, args...)})
	}
	switch {
	case key.Copies == 0:
		add(ttlAdvice, "none", "no key comes twice: there is nothing to remove, and whatever is removed is lost")
	default:
		all = append(all, key.ttl(ttlAdvice, key.FromFirst, func(f Forecast) Outcome { return f.Create }),
			key.ttl(refreshAdvice, key.FromPrevious, func(f Forecast) Outcome { return f.Refresh }))
	}
	if len(key.Losses) > 0 {
		all = append(all, key.watermark(r))
	}
	if key.Copies > 0 {
		add(sinkAdvice, stream.FormatDuration(roundUp(max(key.FromFirst.Max.Value, day))),
			"the longest delay seen is %s; an insert-only MERGE that looks back so far catches what the TTL lets through, "+
				"and makes replays harmless", key.FromFirst.Max)
		add(auditAdvice, "daily", "count keys that stand more than once over several look-backs: longer delays than this "+
			"trace can show, and producers that make new ids, show up nowhere else")
	}
	return all
}

// ttl picks the shortest usual TTL that keeps within the leak budget; a trace too short to tell gives a lower bound.
func (k *KeyReport) ttl(what string, delays Delays, of func(Forecast) Outcome) Advice {
	for _, f := range k.Forecasts {
		o := of(f)
		if f.TTL == 0 || o.LeakRate > leakBudget {
			continue
		}
		value, short := stream.FormatDuration(f.TTL), ""
		if delays.P999.AtLeast {
			value, short = ">="+value, "; that is half the trace or more, a longer trace may show longer delays"
		}
		return Advice{what, value, fmt.Sprintf("p99.9 of the delays is %s; %d of %d copies (%s) leak, and %d keys are "+
			"remembered at most%s", delays.P999, o.Leaked, k.Copies, percent(o.LeakRate), o.Keys, short)}
	}
	return Advice{what, "unknown", "no usual TTL leaks less than 0.1% of the copies"}
}

// watermark picks the shortest usual delay that keeps within the loss budget.
func (k *KeyReport) watermark(r *Report) Advice {
	const what = watermarkAdvice
	order := ""
	if r.Disorder.Order == "file" {
		order = ", if the files list the rows in order of arrival"
	}
	for _, l := range k.Losses {
		if l.Delay == 0 && r.Disorder.OutOfOrder == 0 {
			return Advice{what, "0s", "no row lies behind another's event time" + order}
		}
		if l.Reader.LostRate <= lossBudget {
			return Advice{what, stream.FormatDuration(l.Delay), fmt.Sprintf("%d of %d rows are out of order, p99.9 by %s; "+
				"%d events are lost (%s) and %d late copies dropped, at most%s", r.Disorder.OutOfOrder, r.Disorder.Rows,
				r.Disorder.Lateness.P999, l.Reader.LostEvents, percent(l.Reader.LostRate), l.Reader.LateCopies, order)}
		}
	}
	return Advice{what, "unknown", "no usual delay loses less than 0.01% of the events"}
}

// adviseIdle recommends when a quiet partition should no longer hold the watermark back.
func adviseIdle(r *Report) Advice {
	if len(r.Partitions) < 2 {
		return Advice{idleAdvice, "none", "with one partition no other is held back by it"}
	}
	busy, longest := r.Partitions[0], r.Partitions[0]
	for _, p := range r.Partitions {
		if p.Gaps.P999.Value > busy.Gaps.P999.Value {
			busy = p
		}
		if p.Gaps.Max.Value > longest.Gaps.Max.Value {
			longest = p
		}
	}
	timeout := roundUp(max(2*busy.Gaps.P999.Value, second))
	over := 0
	for _, p := range r.Partitions {
		over += p.Gaps.Count - p.Gaps.UpTo(Span(timeout)*millisecond)
	}
	return Advice{idleAdvice, stream.FormatDuration(timeout), fmt.Sprintf("twice p99.9 of the gaps of partition %d, %s; "+
		"%d gaps are longer, the longest %s in partition %d: rows that were made before such a gap and come after it are "+
		"late", busy.Partition, busy.Gaps.P999, over, longest.Gaps.Max, longest.Partition)}
}
