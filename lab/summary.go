package lab

import (
	"fmt"

	"deduplab/results"
)

// summary says in a few sentences which strategies meet everything, and what the next best one lacks.
func summary(r *results.Run) []string {
	if len(r.Require) == 0 || len(r.Strategies) == 0 {
		return nil
	}
	var all []string
	var rest []*results.Strategy
	for _, s := range r.Ranked() {
		if met, of := s.Score(); s.Refused != "" {
			continue
		} else if met == of {
			all = append(all, s.ID)
		} else {
			rest = append(rest, s)
		}
	}
	var out []string
	switch len(all) {
	case 0:
		out = append(out, fmt.Sprintf("No strategy meets all %d requirements.", len(r.Require)))
	case 1:
		out = append(out, fmt.Sprintf("%s alone meets all %d requirements.", all[0], len(r.Require)))
	default:
		out = append(out, fmt.Sprintf("%d of %d strategies meet all %d requirements: %s.", len(all), len(r.Strategies),
			len(r.Require), results.FormatList(all)))
	}
	if len(rest) > 0 {
		met, of := rest[0].Score()
		out = append(out, fmt.Sprintf("Next comes %s with %d of %d; it lacks %s.", rest[0].ID, met, of, lacks(rest[0])))
	}
	return out
}

// lacks lists the requirements that a strategy misses, each with its number.
func lacks(s *results.Strategy) string {
	var missed []string
	for _, v := range s.Verdicts {
		if v.Verdict != results.Pass && v.Verdict != results.NotApplicable {
			missed = append(missed, fmt.Sprintf("%s (%s, required %s)", v.Requirement, v.Value, v.Bound))
		}
	}
	return results.FormatList(missed)
}
