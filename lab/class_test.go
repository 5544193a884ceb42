package lab

import (
	"testing"

	"deduplab/results"
)

// How a strategy's state grows, told from what it holds over time.
func TestMeasuredClass(t *testing.T) {
	for _, c := range []struct {
		story   string
		samples int
		live    func(i int64) int64
		rows    func(i int64) int64
		keys    func(i int64) int64
		want    string
	}{
		{"nothing is ever held", 60, times(0), times(20), times(10), "stateless"},
		{"as many keys as there are", 60, times(10), times(20), times(10), "per key"},
		{"one entry a row", 60, times(20), times(20), times(10), "per record"},
		{"a plateau is reached", 60, upTo(10, 15), times(20), times(10), "time-bounded"},
		{"a plateau below a thousandth of the keys", 60, upTo(1, 3), times(20_000), times(10_000), "constant"},
		{"the plateau is not reached yet", 60, upTo(10, 45), times(20), times(10), undeterminedClass},
		{"no new keys came", 60, times(10), times(20), upTo(10, 15), undeterminedClass},
		{"too short", 5, times(10), times(20), times(10), undeterminedClass},
		{"no sample", 0, nil, nil, nil, undeterminedClass},
		{"no row has come, as in an outage of the whole run", 60, times(0), times(0), times(0), undeterminedClass},
	} {
		var series []results.StateSample
		for i := range int64(c.samples) {
			series = append(series, results.StateSample{KeysLive: c.live(i + 1), Rows: c.rows(i + 1), Keys: c.keys(i + 1)})
		}
		if got := measuredClass(series); got != c.want {
			t.Errorf("%s: %s, want %s", c.story, got, c.want)
		}
	}
}

func times(n int64) func(int64) int64 { return func(i int64) int64 { return n * i } }

func upTo(n, last int64) func(int64) int64 { return func(i int64) int64 { return n * min(i, last) } }
