package results

import (
	"math"
	"reflect"
	"slices"
	"strings"
)

// LeakCauses lists why a copy stands in the result beside its original: the keys of leaks_by_cause. Of several causes
// that apply the first one counts.
var LeakCauses = []string{
	"no_dedup", "unretracted", "regenerated_id", "payload_differs", "restart", "window_boundary", "stale_timer",
	"cache_eviction", "ttl", "horizon", "null_key", "same_batch", "lookback", "unexplained",
}

// LossCauses lists why an event is not in the result: the keys of losses_by_cause. Of several causes that apply the
// first one counts.
var LossCauses = []string{
	"late", "late_after_idle", "key_merge", "id_reuse", "null_watermark", "retention", "restart", "unexplained",
}

// mapKeys closes the maps that count: a cause without a row is a metric too, and it is 0.
var mapKeys = map[string][]string{"leaks_by_cause": LeakCauses, "losses_by_cause": LossCauses}

// MetricNames lists the metrics of a strategy in alphabetical order: the paths of its numbers in results.json, such as
// latency_ms.wait.p99 or leaks_by_cause.ttl.
func MetricNames() []string {
	var names []string
	visit(reflect.ValueOf(Strategy{}), "", func(path string, _ float64) { names = append(names, path) })
	slices.Sort(names)
	return names
}

// unknown stands for a number that is not known. Trends and sums are the only numbers that may be below 0.
const unknown = math.MinInt64

// Metric returns the number at a path; ok is false when there is no such metric, or when its value is not known, as
// fates.swallowed of a trace without labels.
func (s *Strategy) Metric(path string) (value float64, ok bool) {
	visit(reflect.ValueOf(*s), "", func(p string, v float64) {
		if p == path {
			signed := strings.HasSuffix(path, ".per_hour") || strings.HasPrefix(path, "amount.")
			value, ok = v, v >= 0 || v > unknown && signed
		}
	})
	return value, ok
}

// visit calls back for every number below v, named by the JSON names on the way to it. Lists are no metrics.
func visit(v reflect.Value, path string, each func(path string, value float64)) {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil(): // what the engine or the scenario does not have is not known
		visit(reflect.Zero(v.Type().Elem()), path, func(path string, _ float64) { each(path, unknown) })
	case v.Kind() == reflect.Pointer:
		visit(v.Elem(), path, each)
	case v.CanInt():
		each(path, float64(v.Int()))
	case v.CanFloat():
		each(path, v.Float())
	case v.Kind() == reflect.Map:
		for _, key := range mapKeys[path] {
			value := v.MapIndex(reflect.ValueOf(key))
			if !value.IsValid() {
				value = reflect.Zero(v.Type().Elem())
			}
			visit(value, path+"."+key, each)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			visit(v.Field(i), strings.TrimPrefix(path+"."+name, "."), each)
		}
	}
}

// Unit is what a metric is counted in.
type Unit uint8

// The units.
const (
	Whole  Unit = iota // rows, events, keys: whole numbers
	Millis             // a span of time, in milliseconds
	Share              // a part of 1
	Bytes
	Sum // of a column, in its unit
)

// UnitOf tells by its name what a metric is counted in.
func UnitOf(metric string) Unit {
	switch {
	case strings.HasPrefix(metric, "latency_ms.") && !strings.HasSuffix(metric, ".n"),
		strings.HasPrefix(metric, "failures.wait_ms.") && !strings.HasSuffix(metric, ".n"),
		strings.HasPrefix(metric, "spark.standstill.") && strings.HasSuffix(metric, "ms"):
		return Millis
	case strings.Contains(metric, "bytes"):
		return Bytes
	case metric == "residual" || metric == "amount.error" || strings.HasSuffix(metric, "_rate"),
		strings.HasPrefix(metric, "after.") && (strings.HasSuffix(metric, ".error") || strings.HasSuffix(metric, ".worst")):
		return Share
	case strings.HasPrefix(metric, "amount."):
		return Sum
	}
	return Whole
}

// explanation says where to look for what lies behind a metric.
type explanation struct {
	fates  []string                           // of Strategy.Examples, the most telling first
	causes func(s *Strategy) map[string]int64 // nil: there are none
}

var (
	explainsLosses = explanation{[]string{"late_first", "swallowed"},
		func(s *Strategy) map[string]int64 { return s.LossesByCause }}
	explainsSwallowed = explanation{[]string{"swallowed"}, explainsLosses.causes}
	explainsLeaks     = explanation{[]string{"leaked"}, func(s *Strategy) map[string]int64 { return s.LeaksByCause }}
	explainsWait      = explanation{fates: []string{"slowest"}}
	explainsGone      = explanation{append(explainsLosses.fates, "diverted"), explainsLosses.causes}
)

// explanations has what explains a metric by its name, or by what its name begins with up to a dot.
var explanations = map[string]explanation{
	"lost":              explainsLosses,
	"losses_by_cause":   explainsLosses,
	"fates.late_first":  explainsLosses,
	"fates.swallowed":   explainsSwallowed,
	"residual":          explainsLeaks,
	"leak_rate":         explainsLeaks,
	"leaked":            explainsLeaks,
	"leaks_by_cause":    explainsLeaks,
	"fates.leaked":      explainsLeaks,
	"amount.twice":      explainsLeaks,
	"amount.twice_rate": explainsLeaks,
	"amount.gone":       explainsGone,
	"amount.gone_rate":  explainsGone,
	"amount":            {fates: []string{"leaked", "late_first", "swallowed", "wrong_version", "diverted"}},
	"wrong_version":     {fates: []string{"wrong_version"}},
	"synthesized":       {fates: []string{"synthesized"}},
	"latency_ms.wait":   explainsWait,
	"latency_ms.settle": explainsWait,
}

func explanationOf(metric string) explanation {
	for name := metric; name != ""; {
		if e, ok := explanations[name]; ok {
			return e
		}
		name = name[:max(strings.LastIndexByte(name, '.'), 0)]
	}
	return explanation{}
}

// ExampleOf returns the example row that shows best what a metric counts; nil where there is none.
func (s *Strategy) ExampleOf(metric string) *Example {
	for _, fate := range explanationOf(metric).fates {
		if e := s.Example(fate); e != nil {
			return e
		}
	}
	return nil
}

// Example returns the first example row of a fate; nil where there is none.
func (s *Strategy) Example(fate string) *Example {
	for i := range s.Examples {
		if s.Examples[i].Fate == fate {
			return &s.Examples[i]
		}
	}
	return nil
}

// CausesOf returns the rows that a metric counts by their cause; nil where causes do not explain it.
func (s *Strategy) CausesOf(metric string) map[string]int64 {
	if causes := explanationOf(metric).causes; causes != nil {
		return causes(s)
	}
	return nil
}
