package lab_test

import (
	"context"
	"math"
	"testing"

	"deduplab/lab"
	"deduplab/scenarios"
)

// TestEstimateMemory holds what is told before a run, from a small part of its stream, against what the run then holds.
func TestEstimateMemory(t *testing.T) {
	read := func(state string) *scenarios.Scenario {
		s, err := scenarios.ReadWith("../scenarios/clickstream.yaml", scenarios.Reading{Scale: 0.0012}) // 540,000 events
		if err != nil {
			t.Fatal(err)
		}
		s.Job.State = state
		return s
	}
	ctx := context.Background()
	run, err := lab.Run(ctx, read("memory"), lab.Options{Once: true})
	if err != nil {
		t.Fatal(err)
	}
	estimate, err := lab.EstimateMemory(ctx, read("memory"), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(estimate.Strategies) != len(run.Strategies) {
		t.Fatalf("%d strategies, want %d", len(estimate.Strategies), len(run.Strategies))
	}
	sum := estimate.Stream
	for i, e := range estimate.Strategies {
		s := &run.Strategies[i]
		if ratio := float64(e.Keys) / float64(s.State.KeysHeldPeak); math.Abs(ratio-1) > 0.03 {
			t.Errorf("%s: %d keys were told, %d are held", e.ID, e.Keys, s.State.KeysHeldPeak)
		}
		least := s.State.BytesPerKey * float64(s.State.KeysLivePeak)
		if told := float64(e.State); told < least || told > 1.5*least {
			t.Errorf("%s: %.0f bytes of state were told, %.0f are held", e.ID, told, least)
		}
		if want := s.Name != "drop-duplicates-within-watermark"; e.OnDisk != want { // deadlines wait in memory
			t.Errorf("%s: keys could be on disk: %v, want %v", e.ID, e.OnDisk, want)
		}
		sum += e.Total()
	}
	if estimate.Total() <= sum {
		t.Errorf("%d bytes leave no room beside the %d of the parts", estimate.Total(), sum)
	}

	// On disk, a key takes no memory beyond those that are about to be spilled.
	disk, err := lab.EstimateMemory(ctx, read("pebble"), lab.Options{Only: []string{"proctime-asc"}, SpillAt: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	if e := disk.Strategies[0]; e.OnDisk || e.State > 3_000_000 || e.Keys < 200_000 {
		t.Errorf("on disk: %+v", e)
	}
}

// Nothing is told of a run that fits anywhere.
func TestNoEstimateOfASmallRun(t *testing.T) {
	s, err := scenarios.ReadWith("../scenarios/clickstream.yaml", scenarios.Reading{Scale: 0.001})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := lab.EstimateMemory(context.Background(), s, lab.Options{}); e != nil || err != nil {
		t.Errorf("%+v, %v", e, err)
	}
}
