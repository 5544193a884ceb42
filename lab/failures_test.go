package lab_test

import (
	"testing"

	"pgregory.net/rapid"

	"deduplab/lab"
	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/sim/pebble"
	"deduplab/strategies"
	"deduplab/stream"
)

// anyFailures draws the failures of a job.
func anyFailures(t *rapid.T) []scenarios.Failure {
	if rapid.Bool().Draw(t, "it does not fail") {
		return nil
	}
	at := rapid.SampledFrom([]stream.Time{1, 999, 1000, 30_000, 61_000, 120_000})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) scenarios.Failure {
		f := scenarios.Failure{Random: rapid.SampledFrom([]int{0, 0, 0, 2}).Draw(t, "random")}
		f.Kind, f.At = sim.FailureKind(rapid.IntRange(0, len(sim.FailureKinds())-1).Draw(t, "kind")), at.Draw(t, "at")
		switch f.Kind {
		case sim.SlowCheckpoint:
			f.For = max(anySpan(t, "for"), 1)
		case sim.RewindFailure:
			f.By = max(anySpan(t, "by"), 1)
			fallthrough
		case sim.CrashFailure, sim.SinkFailure:
			f.Down = anySpan(t, "down")
		}
		return f
	}), 1, 4).Draw(t, "failures")
}

// crashed runs the scenario crash, with one crash at 20m that takes the job down for 5 minutes, changed.
func crashed(t *testing.T, o lab.Options, change func(*scenarios.Job)) *results.Run {
	t.Helper()
	s := read(t, "crash")
	s.Job.Failures = s.Job.Failures[:1]
	change(&s.Job)
	return run(t, s, o)
}

// TestDelivery: the same crash, and what a reader of each kind of sink sees of it.
func TestDelivery(t *testing.T) {
	ids := []string{"pass-through", "proctime-asc", "rowtime-asc"}
	none := crashed(t, lab.Options{Only: ids}, func(j *scenarios.Job) { j.Failures = nil })
	for _, c := range []struct {
		delivery string
		sink     strategies.Sink
		twice    bool
	}{
		{"exactly-once", strategies.Retract, false},
		{"exactly-once", strategies.Append, false},
		{"at-least-once", strategies.Retract, true},
		{"at-least-once", strategies.Append, true},
		{"at-least-once", strategies.Upsert, false}, // the row overwrites itself
	} {
		r := crashed(t, lab.Options{Only: ids}, func(j *scenarios.Job) { j.Checkpoint.Delivery, j.Sink = c.delivery, c.sink })
		if o := r.Outages; len(o) != 1 || o[0].CheckpointMS != 19*60_000 || o[0].RestartMS != 25*60_000 ||
			o[0].RowsAgain == 0 || o[0].CaughtUpMS <= o[0].RestartMS || o[0].WatermarkMS <= o[0].RestartMS {
			t.Errorf("outages %+v", o)
		}
		for i := range r.Strategies {
			s, before := &r.Strategies[i], &none.Strategies[i]
			if s.Refused != "" {
				continue
			}
			f := s.Failures
			if twice := s.WriteDuplicates > 0; twice != c.twice || f.UndoneChanges == 0 || f.WrittenAgain < s.WriteDuplicates {
				t.Errorf("%s, %s, %s: %d rows stand there twice, %+v", s.ID, c.delivery, c.sink, s.WriteDuplicates, f)
			}
			if s.RowsIn != before.RowsIn || s.Fates.Kept != before.Fates.Kept || s.Lost != 0 {
				t.Errorf("%s, %s, %s: %+v, without the crash %+v", s.ID, c.delivery, c.sink, s.Fates, before.Fates)
			}
			// Rows waited for as long as the job was down, which let a TTL of 10 minutes run out.
			if f.Wait.Max < 290_000 {
				t.Errorf("%s, %s, %s: the wait is %+v", s.ID, c.delivery, c.sink, f.Wait)
			}
			if s.ID == "proctime-asc" && c.sink != strategies.Upsert &&
				(f.LeakedByTTL == 0 || s.LeaksByCause["ttl"] != f.LeakedByTTL) {
				t.Errorf("%s, %s, %s: leaks %v, %d by the outage", s.ID, c.delivery, c.sink, s.LeaksByCause, f.LeakedByTTL)
			}
		}
	}
}

// TestRestoredFromPebble: state that is restored from what Pebble held is state that is restored from memory.
func TestRestoredFromPebble(t *testing.T) {
	all := func(j *scenarios.Job) {
		j.Failures = append(j.Failures, scenarios.Failure{Random: 3, Failure: sim.Failure{Down: 20_000}})
	}
	memory := crashed(t, lab.Options{Once: true}, all)
	open := func() (sim.Cold, error) { return pebble.Open("") }
	onDisk := crashed(t, lab.Options{Once: true, SpillAt: 100, OpenState: open}, func(j *scenarios.Job) {
		all(j)
		j.State = "pebble"
	})
	for i := range onDisk.Strategies {
		forgetHeld(&onDisk.Strategies[i].State)
		forgetHeld(&memory.Strategies[i].State)
	}
	onDisk.Job.State = memory.Job.State
	sameText(t, "pebble", marshalled(t, onDisk), marshalled(t, memory))
}
