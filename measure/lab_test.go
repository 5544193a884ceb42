package measure_test

import (
	"context"
	"testing"

	"deduplab/lab"
	"deduplab/measure"
	"deduplab/scenarios"
)

// TestPredictionIsWhatTheLabMeasures: the leaks that are predicted from the delays alone are those of the operators.
func TestPredictionIsWhatTheLabMeasures(t *testing.T) {
	scenario, err := scenarios.Read("../scenarios/radio-frames.yaml")
	if err != nil {
		t.Fatal(err)
	}
	run, err := lab.Run(context.Background(), scenario, lab.Options{Only: []string{"proctime-asc-1s", "proctime-asc-1m",
		"proctime-asc-100ms", "select-distinct-key-100ms", "select-distinct-key-1s", "select-distinct-key-1m"}})
	if err != nil {
		t.Fatal(err)
	}
	r := report(t, measure.Columns{Keys: key("frame"), EventTime: "timestamp", Arrival: "timestamp"}, measure.Options{},
		read(t, "../scenarios/data/radio-frames.csv.gz"))
	predicted := map[string]measure.Outcome{}
	for _, f := range r.Keys[0].Forecasts {
		ttl := map[int64]string{100: "100ms", 1000: "1s", 60000: "1m"}[int64(f.TTL)]
		predicted["proctime-asc-"+ttl], predicted["select-distinct-key-"+ttl] = f.Create, f.Refresh
	}
	for _, s := range run.Strategies {
		want := predicted[s.ID]
		if got := s.Fates.Leaked; int64(got) != int64(want.Leaked) {
			t.Errorf("%s: %d leaked, predicted %d", s.ID, got, want.Leaked)
		}
		// The lab looks at the state from time to time, so it may miss the peak.
		if got := int64(s.State.KeysLivePeak); got > int64(want.Keys) || got < int64(want.Keys)/2 {
			t.Errorf("%s: %d keys at most, predicted %d", s.ID, got, want.Keys)
		}
	}
}
