package strategies

import (
	"maps"

	"deduplab/stream"
)

// GoesByWatermark reports whether the watermarks that the source makes reach into what becomes of a row: of a strategy
// that takes a record at a time, or of one in front of a micro-batch query. Such a query makes a watermark of its own,
// of its batches: spark within-watermark/lag. Mini-batches of Flink may end with watermarks: flink
// rowtime-asc/mini-batch-boundary.
func (p Plan) GoesByWatermark() bool {
	if p.Batch == nil {
		return p.Clock == byEventTime || p.InBatches
	}
	for _, f := range p.Front {
		if f.Plan.GoesByWatermark() {
			return true
		}
	}
	return false
}

// byEventTime is the clock of a plan that asks the watermark what is late or complete.
const byEventTime = "event time"

// ScaleExpiry multiplies all spans of processing time after which state goes by times / by, as a replay does that is so
// many times as fast; ok is false where there are none. A span stays above 0.
func (s *Strategy) ScaleExpiry(args Args, times, by int64) (scaled Args, ok bool) {
	scaled = args
	scaled.text, scaled.tiers = maps.Clone(args.text), nil
	for _, p := range s.Params {
		if t := args.Duration(p.Name); p.Expires && t > 0 {
			scaled.text[p.Name] = stream.FormatDuration(max(t*stream.Time(times)/stream.Time(by), 1))
			ok = true
		}
	}
	for _, tier := range args.tiers {
		inner, expires := tier.Strategy.ScaleExpiry(tier.Args, times, by)
		scaled.tiers = append(scaled.tiers, Tier{tier.Strategy, inner})
		ok = ok || expires
	}
	return scaled, ok
}
