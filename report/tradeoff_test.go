package report

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"deduplab/results"
)

// costs makes a strategy that pays so much.
func costs(id string, wait, keys, lost int64) *results.Strategy {
	s := &results.Strategy{ID: id, Lost: lost}
	s.Latency.Wait = results.Quantiles{N: 1, P99: wait}
	s.State.KeysLivePeak = keys
	return s
}

func TestFront(t *testing.T) {
	nothing := costs("nothing", 0, 0, 0)
	nothing.LeaksByCause = map[string]int64{"no_dedup": 1}
	for _, c := range []struct {
		name string
		all  []*results.Strategy
		want []string
	}{
		{"better in all", []*results.Strategy{costs("a", 1, 1, 1), costs("b", 2, 2, 2)}, []string{"a"}},
		{"better in one, as good in the others", []*results.Strategy{costs("a", 1, 1, 0), costs("b", 1, 1, 1)},
			[]string{"a"}},
		{"equal: neither beats the other", []*results.Strategy{costs("a", 1, 1, 1), costs("b", 1, 1, 1)},
			[]string{"a", "b"}},
		{"each is best in something", []*results.Strategy{costs("a", 0, 9, 9), costs("b", 9, 0, 9), costs("c", 9, 9, 0),
			costs("d", 9, 9, 9)}, []string{"a", "b", "c"}},
		{"removing nothing does not compete", []*results.Strategy{nothing, costs("a", 1, 1, 1)}, []string{"a"}},
	} {
		best := front(c.all)
		maps.DeleteFunc(best, func(_ string, on bool) bool { return !on })
		if got := slices.Sorted(maps.Keys(best)); !slices.Equal(got, c.want) {
			t.Errorf("%s: on the front are %v, want %v", c.name, got, c.want)
		}
	}
}

func TestTradeOffFigure(t *testing.T) {
	f := tradeOffFigure([]*results.Strategy{costs("fast", 0, 500, 0), costs("small", 60_000, 5, 7),
		costs("poor", 60_000, 500, 700)})
	if want := "as good in the other two: fast and small."; !strings.Contains(f.See, want) {
		t.Errorf("%q is missing in %q", want, f.See)
	}
	want := [][]string{
		{"fast", "on it", "0", "500", "0", "0"}, {"small", "on it", "60,000", "5", "7", "0"},
		{"poor", "beaten", "60,000", "500", "700", "0"},
	}
	if got := f.Data[0].Rows; !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("the numbers are %v, want %v", got, want)
	}
}
