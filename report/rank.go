package report

import (
	"cmp"
	"slices"
	"strings"

	"deduplab/results"
)

// ranked returns the strategies best first: those that ran before those refused, then by the fewest requirements
// missed, the fewest rows lost and leaked, and the id.
func ranked(run *results.Run) []*results.Strategy {
	refused := func(s *results.Strategy) int {
		return min(1, len(s.Refused))
	}
	order := make([]*results.Strategy, len(run.Strategies))
	for i := range run.Strategies {
		order[i] = &run.Strategies[i]
	}
	slices.SortStableFunc(order, func(a, b *results.Strategy) int {
		metA, ofA := score(a)
		metB, ofB := score(b)
		return cmp.Or(
			cmp.Compare(refused(a), refused(b)),
			cmp.Compare(ofA-metA, ofB-metB),
			cmp.Compare(a.Lost+a.Leaked, b.Lost+b.Leaked),
			cmp.Compare(a.ID, b.ID),
		)
	})
	return order
}

// ran returns the strategies that were not refused, in the order given.
func ran(all []*results.Strategy) []*results.Strategy {
	return slices.DeleteFunc(slices.Clone(all), func(s *results.Strategy) bool { return s.Refused != "" })
}

// score counts the requirements that a strategy meets, and those that apply to it.
func score(s *results.Strategy) (met, of int) {
	for _, v := range s.Verdicts {
		if v.Verdict == results.NotApplicable {
			continue
		}
		of++
		if v.Verdict == results.Pass {
			met++
		}
	}
	return met, of
}

// cause is one entry of leaks_by_cause or losses_by_cause.
type cause struct {
	Name string
	N    int64
}

// byCount orders causes by their number, the largest first, and leaves out those that are zero.
func byCount(causes map[string]int64) []cause {
	var out []cause
	for name, n := range causes {
		if n != 0 {
			out = append(out, cause{name, n})
		}
	}
	slices.SortFunc(out, func(a, b cause) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// causesOf returns the causes that explain a requirement's number: losses for what counts lost events, leaks for what
// counts duplicates left, none for all else.
func causesOf(s *results.Strategy, requirement string) []cause {
	switch {
	case requirement == "lost" || strings.HasPrefix(requirement, "losses_by_cause"):
		return byCount(s.LossesByCause)
	case requirement == "fates.late_first" || requirement == "fates.swallowed":
		return byCount(s.LossesByCause)
	case requirement == "leaked" || requirement == "fates.leaked" || requirement == "leak_rate":
		return byCount(s.LeaksByCause)
	case requirement == "residual" || strings.HasPrefix(requirement, "leaks_by_cause"):
		return byCount(s.LeaksByCause)
	}
	return nil
}

// anchor is the id of a strategy's section in the page.
func anchor(id string) string {
	return "s-" + strings.Join(strings.Fields(id), "-")
}
