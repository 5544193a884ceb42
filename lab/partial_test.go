package lab

import (
	"context"
	"errors"
	"strings"
	"testing"

	"deduplab/results"
	"deduplab/scenarios"
)

// An interrupted run accounts for the rows that had come, and says that it is partial.
func TestInterruptedRun(t *testing.T) {
	s, err := scenarios.Read("../scenarios/dual-capture.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.Require = append(s.Require, scenarios.Requirement{Name: scenarios.SameUnder, Causes: []string{"interleaving"}})
	for _, stage := range []string{"run", ReplayStage} {
		ctx, cancel := context.WithCancel(context.Background())
		run, err := Run(ctx, s, Options{Progress: func(p Progress) {
			if p.Stage == stage && p.Rows > 20_000 {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) || run == nil || !run.Partial {
			t.Fatalf("%s: %v, %+v", stage, err, run)
		}
		if summary := run.Summary; len(summary) == 0 || !strings.HasPrefix(summary[0], "So far: ") {
			t.Errorf("%s: %q", stage, summary)
		}
		if span := run.Workload.SpanMS; span < 1 || stage == "run" && span >= int64(s.Workload.Spec.Duration) {
			t.Errorf("%s: a span of %d ms", stage, span)
		}
		if whole := run.Workload.Rows > 500_000; whole != (stage != "run") {
			t.Errorf("%s: %d rows", stage, run.Workload.Rows)
		}
		for i := range run.Strategies {
			s := &run.Strategies[i]
			f := s.Fates
			last := s.Verdicts[len(s.Verdicts)-1]
			if last.Verdict != results.Undetermined && stage == "run" {
				t.Errorf("%s: %s is %s before its replays", s.ID, last.Requirement, last.Verdict)
			}
			if sum := f.Kept + f.Suppressed + f.Leaked + f.LateCopy + f.LateFirst + f.Swallowed + f.Replaced + f.Diverted +
				f.Pending; sum != s.RowsIn || s.RowsIn != run.Workload.Rows {
				t.Errorf("%s: %s: %d rows in, %d accounted for of %d", stage, s.ID, s.RowsIn, sum, run.Workload.Rows)
			}
		}
	}
}

// A run that is interrupted before its first row has nothing to tell: no verdict passes for want of rows.
func TestInterruptedBeforeTheFirstRow(t *testing.T) {
	s, err := scenarios.Read("../scenarios/dual-capture.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if run, err := Run(ctx, s, Options{}); !errors.Is(err, context.Canceled) || run != nil {
		t.Errorf("%v, %+v", err, run)
	}
}
