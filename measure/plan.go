package measure

import (
	"fmt"

	"deduplab/stream"
)

// Plan spreads the delays of copies over three tiers, because no single one covers them all cheaply: state in the
// stream for nearly all, a look-back at the sink for the tail, an audit for what nobody has seen yet.
type Plan struct {
	Tiers []Tier `json:"tiers,omitempty"` // stream, sink and audit; none where no key comes twice
	// TooShort says why the trace cannot tell how long the delays are, if it cannot.
	TooShort string `json:"too_short,omitempty"`
}

// Tier is one of the three, and what is left behind it and the ones before.
type Tier struct {
	Name     string      `json:"name"` // stream, sink or audit
	Horizon  stream.Time `json:"horizon_ms"`
	Leaked   int         `json:"leaked"`
	LeakRate float64     `json:"leak_rate"` // of the copies
	// Keys and Bytes are the state in the stream at its peak. AtLeast says that the trace is too short to fill it.
	Keys    int   `json:"keys_peak,omitempty"`
	Bytes   int64 `json:"bytes_peak,omitempty"`
	AtLeast bool  `json:"at_least,omitempty"`
	// Dates is how many dates of the table are read: each batch at the sink, each night in the audit. The date of the
	// batch comes on top of the days that are looked back.
	Dates int    `json:"dates,omitempty"`
	Why   string `json:"why"`
}

// The names of the tiers.
const (
	StreamTier = "stream"
	SinkTier   = "sink"
	AuditTier  = "audit"
)

// What is worth its cost at the sink and in an audit, in days.
const (
	maxLookBack = 28 // each batch reads so many dates; what comes later is cheaper to repair at night
	minAudit    = 30
	perLookBack = 4 // an audit looks back so many times as far as the sink: only then can it show what the sink misses
)

// newPlan makes the tiers of one key out of its delays and forecasts.
func newPlan(r *Report, k *KeyReport) Plan {
	if k.Copies == 0 {
		return Plan{}
	}
	longest := k.FromFirst.Max
	days := wholeDays(longest.Value)
	first := k.streamTier(r)
	// At least a day, and not less far than the stream.
	lookBack := max(min(max(days, 1), maxLookBack), wholeDays(Span(first.Horizon)*millisecond))
	audit := max(minAudit, perLookBack*lookBack, days)
	p := Plan{Tiers: []Tier{first, k.sinkTier(r, lookBack), {
		Name: AuditTier, Horizon: stream.Time(Span(audit) * day / millisecond), Dates: audit + 1,
		Why: fmt.Sprintf("counts the keys that stand more than once over %d days, at least a month and %d times "+
			"the look-back: longer delays than this trace can show, and producers that make new ids, show up nowhere else",
			audit, perLookBack),
	}}}
	if longest.AtLeast {
		p.TooShort = fmt.Sprintf("a copy comes %s after its first, half of the %s that the trace covers or more, so that "+
			"longer delays would not be in it: measure %s or more", longest.Value, r.Span,
			stream.FormatDuration(roundUp(3*longest.Value)))
	}
	return p
}

func wholeDays(s Span) int { return int((s + day - 1) / day) }

// streamTier has a horizon above p99.9 of the delays.
func (k *KeyReport) streamTier(r *Report) Tier {
	ttl := above(k.FromFirst.P999.Value)
	t := Tier{Name: StreamTier, Horizon: ttl,
		Why: fmt.Sprintf("p99.9 of the delays is %s, rounded up", k.FromFirst.P999)}
	if f, ok := k.forecast(ttl); ok {
		t.Leaked, t.LeakRate, t.Keys, t.Bytes, t.AtLeast = f.Create.Leaked, f.Create.LeakRate, f.Create.Keys,
			f.Create.Bytes, f.AtLeast
	}
	if t.AtLeast && r.Span > 0 {
		t.Why += fmt.Sprintf("; at the trace's rate of new keys a full horizon holds about %s keys",
			count(int(float64(k.Distinct)*float64(Span(ttl)*millisecond)/float64(r.Span))))
	}
	return t
}

// sinkTier looks back as many days as the longest delay.
func (k *KeyReport) sinkTier(r *Report, lookBack int) Tier {
	horizon := Span(lookBack) * day
	t := Tier{Name: SinkTier, Horizon: stream.Time(horizon / millisecond), Dates: lookBack + 1,
		Why: fmt.Sprintf("the longest delay is %s; an insert-only MERGE catches what the stream lets through and makes "+
			"replays harmless", k.FromFirst.Max)}
	if days := wholeDays(k.FromFirst.Max.Value); days > lookBack {
		if f, ok := k.forecast(t.Horizon); ok {
			t.Leaked, t.LeakRate = f.Create.Leaked, f.Create.LeakRate
		}
		t.Why += fmt.Sprintf("; beyond %d days the audit repairs it, so that a batch need not read %d dates", lookBack,
			days+1)
	}
	if r.Span > 0 {
		rows := float64(k.Distinct) / float64(r.Span) * float64(day) * float64(t.Dates)
		t.Why += fmt.Sprintf("; %d dates are about %s rows", t.Dates, count(int(rows)))
	}
	return t
}

// forecast finds what was predicted for a TTL.
func (k *KeyReport) forecast(ttl stream.Time) (Forecast, bool) {
	for _, f := range k.Forecasts {
		if f.TTL == ttl {
			return f, true
		}
	}
	return Forecast{}, false
}
