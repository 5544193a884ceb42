package measure_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deduplab/measure"
	"deduplab/stream"
)

const (
	hourMS stream.Time = 3600e3
	dayMS              = 24 * hourMS
)

// delayed writes a trace of pairs, a first and its copy after a delay in ms, with the firsts spread over a span.
func delayed(span stream.Time, delays []stream.Time) map[string]string {
	var b strings.Builder
	b.WriteString("id,at\n")
	for i, d := range delays {
		first := 1_700_000_000_000 + span*stream.Time(i)/stream.Time(len(delays))
		fmt.Fprintf(&b, "%d,%d\n%d,%d\n", i, first, i, first+d)
	}
	return map[string]string{"f": b.String()}
}

// TestPlan goes through tiers: the worked example of a clickstream with a p99.9 of 40 minutes and a maximum of 3 days,
// and what is different about others.
func TestPlan(t *testing.T) {
	for _, c := range []struct {
		name           string
		span           stream.Time
		usual, longest stream.Time // of 2,000 delays; two have the longest, so that p99.9 is the usual
		want           []string    // horizon, copies left, dates read
		short          bool
	}{
		{"worked example", 30 * dayMS, 40 * 60e3, 3 * dayMS, []string{"1h 2 0", "3d 0 4", "30d 0 31"}, false},
		{"horizons are above the delay", 30 * dayMS, hourMS, 3*dayMS + 1, []string{"2h 2 0", "4d 0 5", "30d 0 31"}, false},
		{"within a day", dayMS, 0, hourMS, []string{"100ms 2 0", "1d 0 2", "30d 0 31"}, false},
		{"too long for the sink", 400 * dayMS, 1000, 100 * dayMS, []string{"10s 2 0", "4w 2 29", "16w 0 113"}, false},
		{"the sink looks back no less than the stream", 30 * dayMS, 3*dayMS + 1, 4 * dayMS,
			[]string{"1w 0 0", "1w 0 8", "30d 0 31"}, false},
		{"too short a trace", 3 * dayMS, 1000, 3 * dayMS, []string{"10s 2 0", "3d 0 4", "30d 0 31"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			delays := make([]stream.Time, 2000)
			for i := range delays {
				delays[i] = c.usual
			}
			delays[7], delays[8] = c.longest, c.longest
			r := report(t, measure.Columns{Keys: key("id"), Arrival: "at"}, measure.Options{}, delayed(c.span, delays))
			plan := r.Keys[0].Plan
			for i, tier := range plan.Tiers {
				got := fmt.Sprintf("%s %d %d", stream.FormatDuration(tier.Horizon), tier.Leaked, tier.Dates)
				if got != c.want[i] {
					t.Errorf("%s: %s, want %s", tier.Name, got, c.want[i])
				}
			}
			if len(plan.Tiers) != 3 || (plan.TooShort != "") != c.short {
				t.Errorf("%d tiers, too short: %q", len(plan.Tiers), plan.TooShort)
			}
			if first := plan.Tiers[0]; first.Keys == 0 || first.Bytes != int64(first.Keys)*100 {
				t.Errorf("%d keys, %d bytes", first.Keys, first.Bytes)
			}
		})
	}
	r := report(t, measure.Columns{Keys: key("id"), Arrival: "at"}, measure.Options{},
		map[string]string{"f": "id,at\na,1\nb,2\n"})
	if plan := r.Keys[0].Plan; len(plan.Tiers) > 0 {
		t.Errorf("tiers without copies: %+v", plan)
	}
}

// TestAgreementAgainstModel compares candidate keys row by row.
func TestAgreementAgainstModel(t *testing.T) {
	candidates := [][]string{{"a"}, {"b", "c"}, {"c"}, {"c", "b"}}
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.SampledFrom(candidates), 1, 4).Draw(t, "keys")
		cell := rapid.SampledFrom([]string{"", "x", "y", "1:x"})
		var rows []map[string]string
		text := "a,b,c,at\n"
		for i := range rapid.IntRange(1, 20).Draw(t, "rows") {
			row := map[string]string{"a": cell.Draw(t, "a"), "b": cell.Draw(t, "b"), "c": cell.Draw(t, "c")}
			rows = append(rows, row)
			text += fmt.Sprintf("%s,%s,%s,%d\n", row["a"], row["b"], row["c"], i)
		}
		r := report(t, measure.Columns{Keys: measure.Unions(keys), Arrival: "at"}, measure.Options{},
			map[string]string{"f": text})
		r.Compare(len(keys))
		if len(r.Keys) != len(keys) || len(r.Agreements) != len(keys)*(len(keys)-1)/2 {
			t.Fatalf("%d keys and %d agreements of %d keys", len(r.Keys), len(r.Agreements), len(keys))
		}
		for _, g := range r.Agreements {
			// The groups of a key that another one splits: all but one of the parts are merged.
			both, onlyA, onlyB := 0, 0, 0
			for i, row := range rows {
				a, b, together := false, false, false
				for _, earlier := range rows[:i] {
					sameA, sameB := equal(row, earlier, g.A), equal(row, earlier, g.B)
					a, b, together = a || sameA, b || sameB, together || sameA && sameB
				}
				switch {
				case together:
					both++
				default:
					onlyA, onlyB = onlyA+one(a), onlyB+one(b)
				}
			}
			if g.Both != both || g.OnlyA != onlyA || g.OnlyB != onlyB {
				t.Fatalf("%+v, want %d, %d and %d", g, both, onlyA, onlyB)
			}
		}
	})
}

func equal(row, other map[string]string, columns []string) bool {
	for _, c := range columns {
		if row[c] != other[c] {
			return false
		}
	}
	return true
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
