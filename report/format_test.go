package report

import (
	"math"
	"testing"
)

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{count(0), "0"},
		{count(999), "999"},
		{count(1234), "1,234"},
		{count(-1234567), "-1,234,567"},
		{count(math.MaxInt64), "9,223,372,036,854,775,807"},
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
		{millis(0), "0 ms"},
		{millis(850), "850 ms"},
		{millis(1000), "1 s"},
		{millis(5240), "5.2 s"},
		{millis(59_949), "59.9 s"},
		{millis(59_950), "1m"},
		{millis(65_100), "1m5s"},
		{millis(41 * minute), "41m"},
		{millis(59*minute + 59_600), "1h"},
		{millis(2*hour + 58*minute), "2h58m"},
		{millis(23*hour + 59*minute + 40*second), "1d"},
		{millis(76 * hour), "3d4h"},
		{millis(-1500), "-1.5 s"},
		{offset(0), "0h00m00.000s"},
		{offset(3*hour + 4*minute + 12_345), "3h04m12.345s"},
		{percent(59_012, 347_012), "17 %"},
		{percent(195, 347_012), "0.056 %"},
		{percent(1, 0), "0 %"},
		{ratio(0), "0 %"},
		{ratio(1), "100 %"},
		{plural(1, "row"), "1 row"},
		{plural(1200, "row"), "1,200 rows"},
		{list(nil), ""},
		{list([]string{"a"}), "a"},
		{list([]string{"a", "b", "c"}), "a, b and c"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
