package results_test

import (
	"math"
	"testing"

	"deduplab/results"
)

const minute, hour = 60 * 1000, 60 * 60 * 1000

func TestFormat(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{results.FormatCount(0), "0"},
		{results.FormatCount(999), "999"},
		{results.FormatCount(1234), "1,234"},
		{results.FormatCount(-1234567), "-1,234,567"},
		{results.FormatCount(math.MaxInt64), "9,223,372,036,854,775,807"},
		{results.FormatSum(0), "0"},
		{results.FormatSum(-0.001), "0"},
		{results.FormatSum(12), "12"},
		{results.FormatSum(1234.5), "1,234.50"},
		{results.FormatSum(-1234567.891), "-1,234,567.89"},
		{results.FormatSum(-0.5), "-0.50"},
		{results.FormatSum(1e20), "100000000000000000000"},
		{results.FormatSpan(0), "0 ms"},
		{results.FormatSpan(850), "850 ms"},
		{results.FormatSpan(1000), "1 s"},
		{results.FormatSpan(5240), "5.2 s"},
		{results.FormatSpan(59_949), "59.9 s"},
		{results.FormatSpan(59_950), "1m"},
		{results.FormatSpan(65_100), "1m5s"},
		{results.FormatSpan(41 * minute), "41m"},
		{results.FormatSpan(59*minute + 59_600), "1h"},
		{results.FormatSpan(2*hour + 58*minute), "2h58m"},
		{results.FormatSpan(23*hour + 59*minute + 40*1000), "1d"},
		{results.FormatSpan(76 * hour), "3d4h"},
		{results.FormatSpan(-1500), "-1.5 s"},
		{results.FormatShare(0), "0 %"},
		{results.FormatShare(1), "100 %"},
		{results.FormatList(nil), ""},
		{results.FormatList([]string{"a"}), "a"},
		{results.FormatList([]string{"a", "b", "c"}), "a, b and c"},
		{results.FormatShare(0.059), "5.9 %"},
		{results.FormatMetric("lost", 12345, 0), "12,345"},
		{results.FormatMetric("residual", 0.16797, 0.001), "17 %"},
		{results.FormatMetric("residual", 0.00138, 0.001), "0.14 %"},
		{results.FormatMetric("residual", 0.001004, 0.001), "0.1004 %"},
		{results.FormatMetric("leak_rate", 0, 0), "0 %"},
		{results.FormatMetric("latency_ms.wait.p99", 0, 100), "0 ms"},
		{results.FormatMetric("latency_ms.wait.p99", 6260, 1000), "6.3 s"},
		{results.FormatMetric("latency_ms.wait.p99", 1031, 1000), "1s31ms"},
		{results.FormatMetric("latency_ms.wait.p99", 65024, 1000), "1m5s"},
		{results.FormatMetric("latency_ms.wait.p99", 59_960, 1000), "1m"},
		{results.FormatMetric("latency_ms.wait.n", 3000, 0), "3,000"},
		{results.FormatMetric("amount.error", 0.00123, 0.001), "0.12 %"},
		{results.FormatMetric("amount.twice", 1234.5, 0), "1,234.50"},
		{results.FormatMetric("state.bytes_peak", 64_000_000, 0), "64,000,000 bytes"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
