package lab

import (
	"fmt"
	"slices"
	"strconv"
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
		case q.Name == scenarios.AppendOnly:
			judgeAppendOnly(&v, q, s)
		case q.Name == scenarios.StateClass:
			judgeClass(&v, q, s)
		case q.Name == scenarios.Version:
			v.Verdict, v.Value = passIf(s.WrongVersion == 0), thousands(s.WrongVersion)+" wrong"
			if s.WrongVersion > 0 {
				v.Evidence = exampleOf(s, "wrong_version")
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
	v.Value = fmt.Sprintf("%s updates", thousands(violations))
	switch {
	case violations == 0 && !slices.Equal(s.Declared.Changelog, []string{"I"}):
		v.Verdict = results.Fail
		v.Value = "may send " + kinds(s.Declared.Changelog)
		v.Evidence = "the planner declares " + strings.Join(s.Declared.Changelog, ", ") + ", so a consumer of inserts " +
			"only refuses it, though nothing here is an update"
	case violations > 0:
		v.Evidence = exampleOf(s, "update")
		if s.Undeclared > 0 {
			v.Evidence = fmt.Sprintf("%s changes of a kind that the planner does not declare; %s", thousands(s.Undeclared),
				v.Evidence)
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
	v.Evidence = fmt.Sprintf("%s keys live at the peak, %s at the end", thousands(s.State.KeysLivePeak),
		thousands(s.State.KeysLiveEnd))
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
		values = append(values, fmt.Sprintf("%s %d/%d", cause, d.SameTable, d.Replays))
		if d.SameTable < d.Replays {
			v.Verdict = results.Fail
			v.Evidence = "the final table differs under " + cause + ": " + d.Example
		}
	}
	v.Value = strings.Join(values, ", ")
}

func judgeMetric(v *results.Verdict, q scenarios.Requirement, s *results.Strategy) {
	value, ok := s.Metric(q.Name)
	if !ok {
		v.Verdict, v.Value = results.Undetermined, "unknown"
		return
	}
	v.Verdict = passIf(q.Holds(value))
	v.Value = formatMetric(q.Name, value, q.Value)
	if latency, isLatency := strings.CutPrefix(q.Name, "latency_ms."); isLatency {
		part, _, _ := strings.Cut(latency, ".")
		if n, _ := s.Metric("latency_ms." + part + ".n"); n == 0 {
			v.Verdict, v.Value = results.NotApplicable, "nothing measured"
			return
		}
	}
	if v.Verdict == results.Fail {
		v.Evidence = evidence(q.Name, s)
	}
}

// evidence names a row that shows why a metric misses its bound.
func evidence(metric string, s *results.Strategy) string {
	switch {
	case metric == "lost", strings.HasPrefix(metric, "losses_by_cause"), metric == "fates.late_first":
		if e := exampleOf(s, "late_first"); e != "" {
			return e
		}
		return exampleOf(s, "swallowed")
	case metric == "residual", metric == "leaked", metric == "leak_rate", strings.HasPrefix(metric, "leaks_by_cause"):
		return exampleOf(s, "leaked")
	case strings.HasPrefix(metric, "latency_ms.wait"), strings.HasPrefix(metric, "latency_ms.settle"):
		return exampleOf(s, "slowest")
	case metric == "wrong_version":
		return exampleOf(s, "wrong_version")
	case metric == "synthesized":
		return exampleOf(s, "synthesized")
	}
	return ""
}

// exampleOf spells the first example row of a fate.
func exampleOf(s *results.Strategy, fate string) string {
	for _, e := range s.Examples {
		if e.Fate != fate {
			continue
		}
		names := make([]string, 0, len(e.Row))
		for name := range e.Row {
			names = append(names, name)
		}
		slices.Sort(names)
		for i, name := range names {
			names[i] = name + "=" + e.Row[name]
		}
		return fmt.Sprintf("%s at %s: %s (%s)", strings.ReplaceAll(fate, "_", " "),
			stream.FormatDuration(stream.Time(e.AtMS).Floor(1000)), strings.Join(names, " "), e.Origin)
	}
	return ""
}

// formatMetric spells a metric with its unit, shortly; in full where it would look like the bound that it is held to.
func formatMetric(name string, value, bound float64) string {
	text := spell(name, value, false)
	if value != bound && text == spell(name, bound, false) {
		return spell(name, value, true)
	}
	return text
}

func spell(name string, value float64, full bool) string {
	switch {
	case strings.HasPrefix(name, "latency_ms.") && !strings.HasSuffix(name, ".n"):
		return spellSpan(stream.Time(value), full)
	case name == "residual" || name == "leak_rate":
		return spellShare(value*100, full)
	}
	return thousands(int64(value))
}

func spellSpan(t stream.Time, full bool) string {
	switch {
	case t < 1000:
		return fmt.Sprintf("%d ms", t)
	case full:
		return stream.FormatDuration(t)
	case t < 59_950:
		return strings.TrimSuffix(strconv.FormatFloat(float64(t)/1000, 'f', 1, 64), ".0") + " s"
	}
	return stream.FormatDuration((t + 500).Floor(1000))
}

func spellShare(percent float64, full bool) string {
	switch {
	case full:
		return strconv.FormatFloat(percent, 'g', 6, 64) + " %"
	case percent >= 9.95:
		return strconv.FormatFloat(percent, 'f', 0, 64) + " %"
	}
	return strconv.FormatFloat(percent, 'g', 2, 64) + " %"
}

// thousands groups digits by three.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
