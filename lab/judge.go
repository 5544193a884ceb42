package lab

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/strategies"
	"deduplab/stream"
)

// judge makes one verdict of every requirement.
func judge(requirements []scenarios.Requirement, s *results.Strategy) []results.Verdict {
	var verdicts []results.Verdict
	for _, q := range requirements {
		v := results.Verdict{Requirement: q.Name, Bound: q.Bound}
		switch {
		case s.Refused != "":
			v.Verdict, v.Evidence = results.Refused, s.Refused
		case s.Failed != "":
			v.Verdict, v.Value = results.Fail, "the query failed"
		case q.Name == scenarios.AppendOnly:
			judgeAppendOnly(&v, q, s)
		case q.Name == scenarios.StateClass:
			judgeClass(&v, q, s)
		case q.Name == scenarios.Version:
			v.Verdict, v.Value = passIf(s.WrongVersion == 0), results.FormatCount(s.WrongVersion)+" wrong"
			if s.WrongVersion > 0 {
				v.Evidence = evidence(s.Example("wrong_version"))
			}
		case q.Name == scenarios.SameUnder:
			judgeSame(&v, q, s)
		default:
			judgeMetric(&v, q, s)
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

func passIf(ok bool) string {
	if ok {
		return results.Pass
	}
	return results.Fail
}

func judgeAppendOnly(v *results.Verdict, q scenarios.Requirement, s *results.Strategy) {
	violations := s.AppendOnlyViol
	v.Verdict = passIf(violations == 0)
	v.Value = fmt.Sprintf("%s updates", results.FormatCount(violations))
	switch {
	case violations == 0 && !slices.Equal(s.Declared.Changelog, []string{"I"}):
		v.Verdict = results.Fail
		v.Value = "may send " + kinds(s.Declared.Changelog)
		v.Evidence = "the planner declares " + strings.Join(s.Declared.Changelog, ", ") + ", so a consumer of inserts " +
			"only refuses it, though nothing here is an update"
		if s.Engine == "flink-datastream" {
			v.Evidence = "rows pass with the kind that the source gives them, and nobody checks a DataStream, though " +
				"nothing here is an update"
		}
	case violations > 0:
		v.Evidence = evidence(s.Example("update"))
		if s.Undeclared > 0 {
			v.Evidence = fmt.Sprintf("%s changes of a kind that the planner does not declare; %s",
				results.FormatCount(s.Undeclared), v.Evidence)
		}
	}
}

// kinds spells the changes of a declared changelog that are not inserts, as results write them.
func kinds(changelog []string) string {
	spelled := map[string]string{"UB": "-U", "UA": "+U", "D": "-D"}
	var out []string
	for _, name := range changelog {
		if kind, ok := spelled[name]; ok {
			out = append(out, kind)
		}
	}
	return strings.Join(out, " ")
}

func judgeClass(v *results.Verdict, q scenarios.Requirement, s *results.Strategy) {
	v.Value = s.State.Class
	at := slices.Index(strategies.StateClasses, strategies.StateClass(s.State.Class))
	if at < 0 {
		v.Verdict = results.Undetermined
		return
	}
	v.Verdict = passIf(at <= slices.Index(strategies.StateClasses, q.Class))
	v.Evidence = fmt.Sprintf("%s keys live at the peak, %s at the end", results.FormatCount(s.State.KeysLivePeak),
		results.FormatCount(s.State.KeysLiveEnd))
}

func judgeSame(v *results.Verdict, q scenarios.Requirement, s *results.Strategy) {
	v.Verdict = results.Pass
	var values []string
	for _, cause := range q.Causes {
		i := slices.IndexFunc(s.Determinism, func(d results.Determinism) bool { return d.Cause == cause })
		if i < 0 {
			values = append(values, cause+" not run")
			if v.Verdict == results.Pass {
				v.Verdict = results.NotApplicable
			}
			continue
		}
		d := s.Determinism[i]
		values = append(values, cause+" "+d.Same())
		if d.SameTable < d.Replays {
			v.Verdict = results.Fail
			v.Evidence = "the final table differs under " + cause
			if d.Example != "" {
				v.Evidence += ": " + d.Example
			}
		}
	}
	v.Value = strings.Join(values, ", ")
}

func judgeMetric(v *results.Verdict, q scenarios.Requirement, s *results.Strategy) {
	value, ok := s.Metric(q.Name)
	if strings.HasPrefix(q.Name, "spark.") && s.Spark == nil {
		v.Verdict, v.Value = results.NotApplicable, "not in micro-batches"
		return
	}
	if !ok {
		v.Verdict, v.Value = results.Undetermined, "unknown"
		return
	}
	v.Verdict = passIf(q.Holds(value))
	v.Value = results.FormatMetric(q.Name, value, q.Value)
	if latency, isLatency := strings.CutPrefix(q.Name, "latency_ms."); isLatency {
		part, _, _ := strings.Cut(latency, ".")
		if n, _ := s.Metric("latency_ms." + part + ".n"); n == 0 {
			v.Verdict, v.Value = results.NotApplicable, "nothing measured"
			return
		}
	}
	if v.Verdict == results.Fail {
		v.Evidence = evidence(s.ExampleOf(q.Name))
	}
}

// evidence spells an example row; it is empty for none.
func evidence(e *results.Example) string {
	if e == nil {
		return ""
	}
	var columns []string
	for _, name := range slices.Sorted(maps.Keys(e.Row)) {
		columns = append(columns, name+"="+e.Row[name])
	}
	return fmt.Sprintf("%s at %s: %s (%s)", strings.ReplaceAll(e.Fate, "_", " "),
		stream.FormatDuration(stream.Time(e.AtMS).Floor(1000)), strings.Join(columns, " "), e.Origin)
}
