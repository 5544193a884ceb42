package report

import (
	"math"
	"testing"

	"deduplab/results"
)

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{known(-1), "unknown"},
		{known(12), "12"},
		{short(9999), "9,999"},
		{short(10_000), "10 k"},
		{short(71_964), "72 k"},
		{short(999_999), "1.0 M"},
		{short(288_000_000), "288 M"},
		{short(math.MaxInt64), "9.2 E"},
		{byteSize(0), "0 B"},
		{byteSize(1023), "1023 B"},
		{byteSize(4_404_019), "4.2 MiB"},
		{offset(0), "0h00m00.000s"},
		{offset(3*hour + 4*minute + 12_345), "3h04m12.345s"},
		{percent(59_012, 347_012), "17 %"},
		{percent(195, 347_012), "0.056 %"},
		{percent(1, 0), "0 %"},
		{results.FormatNumber(1, "row"), "1 row"},
		{results.FormatNumber(1200, "row"), "1,200 rows"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
