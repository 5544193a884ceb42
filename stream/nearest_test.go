package stream_test

import (
	"testing"

	"deduplab/stream"
)

func TestDidYouMean(t *testing.T) {
	names := []string{"ptf", "rowtime-asc", "rowtime-desc", "tumble-agg"}
	for _, c := range []struct{ written, want string }{
		{"pttf", "ptf"},               // inserted
		{"rowtim-asc", "rowtime-asc"}, // left out
		{"tumble_agg", "tumble-agg"},  // replaced
		{"pft", "ptf"},                // two swapped
		{"tumbleagg", "tumble-agg"},
		{"watermark", ""}, // nothing is near
		{"", ""},
	} {
		want := ""
		if c.want != "" {
			want = ", did you mean " + c.want + "?"
		}
		if got := stream.DidYouMean(c.written, names); got != want {
			t.Errorf("%q: %q, want %q", c.written, got, want)
		}
	}
}
