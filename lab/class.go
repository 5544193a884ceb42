package lab

import (
	"deduplab/results"
	"deduplab/strategies"
)

// undeterminedClass is measured where the run is too short to tell.
const undeterminedClass = "undetermined: run at least 3 x the retention"

// measuredClass tells from the live keys over time how a strategy's state grows.
//
//	stateless      no key was ever held
//	time-bounded   the peak of the last third is at most 1.1 x that of the middle third, while distinct keys grew by at
//	               least 1.3 x
//	constant       time-bounded, and below a thousandth of the keys that had come
//	per key        live keys grew as distinct keys did; per record: as rows did, where the two differ
func measuredClass(series []results.StateSample) string {
	peak := func(samples []results.StateSample) (most int64) {
		for _, s := range samples {
			most = max(most, s.KeysLive)
		}
		return most
	}
	n := len(series)
	if n == 0 || series[n-1].Rows == 0 {
		return undeterminedClass
	}
	if peak(series) == 0 {
		return string(strategies.Stateless)
	}
	if n < 6 {
		return undeterminedClass
	}
	middle, last := series[n/3:2*n/3], series[2*n/3:]
	atMiddle, atEnd := middle[len(middle)-1], last[len(last)-1]
	if 10*atEnd.Keys < 13*atMiddle.Keys {
		return undeterminedClass
	}
	if 10*peak(last) <= 11*peak(middle) {
		if 1000*peak(series) < atEnd.Keys {
			return string(strategies.Constant)
		}
		return string(strategies.TimeBounded)
	}
	slope := func(count func(results.StateSample) int64) float64 {
		return float64(atEnd.KeysLive-atMiddle.KeysLive) / float64(max(count(atEnd)-count(atMiddle), 1))
	}
	byKey := slope(func(s results.StateSample) int64 { return s.Keys })
	byRow := slope(func(s results.StateSample) int64 { return s.Rows })
	switch {
	case byKey > 0.95 && byKey < 1.05:
		return string(strategies.PerKey)
	case byRow > 0.95 && byRow < 1.05:
		return string(strategies.PerRecord)
	}
	return undeterminedClass
}
