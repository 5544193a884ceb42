package lab

import (
	"fmt"

	"deduplab/results"
)

// summary says in a few sentences which strategies meet everything, and what the next best one lacks. Of a partial run
// it says that this is so up to now.
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
	if r.Workload.Rows == 0 {
		return []string{"The stream has no rows, so the verdicts show nothing."}
	}
	everything := fmt.Sprintf("all %d requirements", len(r.Require))
	if len(r.Require) == 1 {
		everything = "the requirement"
	}
	var out []string
	switch len(all) {
	case 0:
		out = append(out, "No strategy meets "+everything+".")
	case 1:
		out = append(out, all[0]+" alone meets "+everything+".")
	default:
		out = append(out, fmt.Sprintf("%d of %d strategies meet %s: %s.", len(all), len(r.Strategies), everything,
			results.FormatList(all)))
	}
	if r.Partial {
		out[0] = "So far: " + out[0]
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
