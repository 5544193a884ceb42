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

// What advice is about.
const (
	TTLAdvice       = "TTL"
	RefreshAdvice   = "TTL, refreshed by copies"
	WatermarkAdvice = "watermark delay"
	IdleAdvice      = "idle timeout"
	SinkAdvice      = "sink look-back"
	AuditAdvice     = "audit"
)

// What a recommended setting may leave: a thousandth of the copies to the sink, one event in ten thousand lost.
const (
	leakBudget = 0.001
	lossBudget = 0.0001
)

// advise recommends the settings for one key: in the stream, at the sink, in an audit.
func advise(r *Report, key *KeyReport) []Advice {
	var all []Advice
	add := func(what, value, format string, args ...any) {
		all = append(all, Advice{what, value, fmt.Sprintf(format, args...)})
	}
	switch {
	case key.Copies == 0:
		add(TTLAdvice, "none", "no key comes twice: there is nothing to remove, and whatever is removed is lost")
	default:
		all = append(all, key.ttl(TTLAdvice, key.FromFirst, func(f Forecast) Outcome { return f.Create }),
			key.ttl(RefreshAdvice, key.FromPrevious, func(f Forecast) Outcome { return f.Refresh }))
	}
	if len(key.Losses) > 0 {
		all = append(all, key.watermark(r))
	}
	for _, t := range key.Plan.Tiers {
		switch t.Name {
		case SinkTier:
			add(SinkAdvice, stream.FormatDuration(t.Horizon), "%s", t.Why)
		case AuditTier:
			add(AuditAdvice, "daily", "%s", t.Why)
		}
	}
	return all
}

// ttl takes the shortest usual TTL above p99.9 of the delays; a trace too short to tell gives a lower bound.
func (k *KeyReport) ttl(what string, delays Delays, of func(Forecast) Outcome) Advice {
	ttl := above(delays.P999.Value)
	a := Advice{what, stream.FormatDuration(ttl), fmt.Sprintf("p99.9 of the delays is %s", delays.P999)}
	if f, ok := k.forecast(ttl); ok {
		o := of(f)
		a.Why += fmt.Sprintf("; %s of %s copies (%s) leak, and %s keys are remembered at most", count(o.Leaked),
			count(k.Copies), percent(o.LeakRate), count(o.Keys))
	}
	for _, f := range k.Forecasts {
		if o := of(f); f.TTL > 0 && f.TTL < ttl && o.LeakRate <= leakBudget {
			a.Why += fmt.Sprintf("; %s would let %s through (%s), which is within 0.1%% too", stream.FormatDuration(f.TTL),
				count(o.Leaked), percent(o.LeakRate))
			break
		}
	}
	if delays.P999.AtLeast {
		a.Value = ">=" + a.Value
		a.Why += "; the delay is half the trace or more, a longer trace may show longer ones"
	}
	return a
}

// watermark picks the shortest usual delay that keeps within the loss budget.
func (k *KeyReport) watermark(r *Report) Advice {
	const what = WatermarkAdvice
	order := ""
	if r.Disorder.Order == "file" {
		order = ", if the files list the rows in order of arrival"
	}
	for _, l := range k.Losses {
		if l.Delay == 0 && r.Disorder.OutOfOrder == 0 {
			return Advice{what, "0s", "no row lies behind another's event time" + order}
		}
		if l.Reader.LostRate <= lossBudget {
			return Advice{what, stream.FormatDuration(l.Delay), fmt.Sprintf("%s of %s rows are out of order, p99.9 by %s; "+
				"%s events are lost (%s) and %s late copies dropped, at most%s", count(r.Disorder.OutOfOrder),
				count(r.Disorder.Rows), r.Disorder.Lateness.P999, count(l.Reader.LostEvents), percent(l.Reader.LostRate),
				count(l.Reader.LateCopies), order)}
		}
	}
	return Advice{what, "unknown", "no usual delay loses less than 0.01% of the events"}
}

// adviseIdle recommends when a quiet partition should no longer hold the watermark back.
func adviseIdle(r *Report) Advice {
	if len(r.Partitions) < 2 {
		return Advice{IdleAdvice, "none", "with one partition no other is held back by it"}
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
	return Advice{IdleAdvice, stream.FormatDuration(timeout), fmt.Sprintf("twice p99.9 of the gaps of partition %d, %s; "+
		"%s gaps are longer, the longest %s in partition %d: rows that were made before such a gap and come after it are "+
		"late", busy.Partition, busy.Gaps.P999, count(over), longest.Gaps.Max, longest.Partition)}
}
