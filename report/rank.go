package report

import (
	"cmp"
	"slices"
	"strings"

	"deduplab/results"
)

// ran returns the strategies that were not refused, in the order given.
func ran(all []*results.Strategy) []*results.Strategy {
	return slices.DeleteFunc(slices.Clone(all), func(s *results.Strategy) bool { return s.Refused != "" })
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

// anchor is the id of a strategy's section in the page.
func anchor(id string) string {
	return "s-" + strings.Join(strings.Fields(id), "-")
}
