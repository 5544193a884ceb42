package results

import (
	"reflect"
	"slices"
	"strings"
)

// LeakCauses lists why a copy stands in the result beside its original: the keys of leaks_by_cause. Of several causes
// that apply the first one counts.
var LeakCauses = []string{
	"no_dedup", "unretracted", "regenerated_id", "payload_differs", "restart", "window_boundary", "stale_timer", "cache_eviction",
	"ttl", "horizon", "lookback", "same_batch", "unexplained",
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

// Metric returns the number at a path; ok is false when there is no such metric, or when its value is not known, as
// fates.swallowed of a trace without labels.
func (s *Strategy) Metric(path string) (value float64, ok bool) {
	visit(reflect.ValueOf(*s), "", func(p string, v float64) {
		if p == path {
			value, ok = v, v >= 0
		}
	})
	return value, ok
}

// visit calls back for every number below v, named by the JSON names on the way to it. Lists are no metrics.
func visit(v reflect.Value, path string, each func(path string, value float64)) {
	switch {
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
