package lab_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deduplab/gen"
	"deduplab/lab"
	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/sim/pebble"
	"deduplab/strategies"
	"deduplab/stream"
)

// broken lists what is wrong with the numbers of a run, whatever was run: each is a law that DESIGN.md states.
func broken(run *results.Run) (faults []string) {
	w := run.Workload
	law := func(holds bool, format string, args ...any) {
		if !holds {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	law(w.Rows == w.Distinct+w.Copies, "%d rows are not %d events + %d copies", w.Rows, w.Distinct, w.Copies)
	law(w.Rows == sum(w.ByOrigin), "%d rows, by origin %v", w.Rows, w.ByOrigin)
	for i := range run.Strategies {
		s := &run.Strategies[i]
		if s.Refused != "" {
			law(s.RowsIn == 0 && s.Fates == results.Fates{}, "%s was refused and has numbers", s.ID)
			continue
		}
		law(s.RowsIn == w.Rows, "%s: %d rows in, %d in the stream", s.ID, s.RowsIn, w.Rows)
		fates := []int64{s.Fates.Kept, s.Fates.Suppressed, s.Fates.Leaked, s.Fates.LateCopy, s.Fates.LateFirst,
			s.Fates.Swallowed, s.Fates.Replaced, s.Fates.Diverted, s.Fates.Pending}
		if w.Labelled {
			law(slices.Min(fates) >= 0, "%s: a fate below 0: %+v", s.ID, s.Fates)
			total := int64(0)
			for _, n := range fates {
				total += n
			}
			law(total == s.RowsIn, "%s: the fates are %d, %d rows in: %+v", s.ID, total, s.RowsIn, s.Fates)
		}
		law((s.Fates.Pending > 0) == (s.Failed != ""), "%s: %d rows pending after the drain", s.ID, s.Fates.Pending)

		law(s.Fates.Kept <= w.Distinct, "%s: %d kept of %d events", s.ID, s.Fates.Kept, w.Distinct)
		if s.Fates.Diverted == 0 && w.Labelled && s.Failed == "" {
			law(s.Fates.Kept+s.Lost == w.Distinct, "%s: %d kept and %d lost of %d events", s.ID, s.Fates.Kept, s.Lost,
				w.Distinct)
		}
		law(s.ResultRows == s.Fates.Kept+s.Leaked, "%s: %d rows in the result, %+v", s.ID, s.ResultRows, s.Fates)
		law(s.Leaked == s.Fates.Leaked+s.WriteDuplicates && s.Leaked == sum(s.LeaksByCause), "%s: %d leaked, by cause %v",
			s.ID, s.Leaked, s.LeaksByCause)
		law(s.WriteDuplicates <= s.LeaksByCause["restart"], "%s: %d write duplicates, leaks by cause %v", s.ID,
			s.WriteDuplicates, s.LeaksByCause)
		law(s.Lost == sum(s.LossesByCause), "%s: %d lost, by cause %v", s.ID, s.Lost, s.LossesByCause)
		law(s.LeaksByCause[sim.Unexplained] == 0, "%s: unexplained leaks: %v", s.ID, s.LeaksByCause)
		law(s.LossesByCause[sim.Unexplained] == 0, "%s: unexplained losses: %v", s.ID, s.LossesByCause)
		for cause, n := range s.LeaksByCause {
			law(slices.Contains(results.LeakCauses, cause) && n > 0, "%s: %d leaks by %s", s.ID, n, cause)
		}
		for cause, n := range s.LossesByCause {
			law(slices.Contains(results.LossCauses, cause) && n > 0, "%s: %d losses by %s", s.ID, n, cause)
		}
		law(s.Residual == share(s.Leaked, s.ResultRows), "%s: residual %v", s.ID, s.Residual)
		law(s.LeakRate == share(s.Leaked, w.Copies), "%s: leak rate %v", s.ID, s.LeakRate)
		law(s.WrongVersion >= 0 && s.WrongVersion <= s.Fates.Kept, "%s: %d wrong versions, %d kept", s.ID, s.WrongVersion,
			s.Fates.Kept)

		if a := s.Amount; a != nil {
			law(a.Twice >= 0 && a.Gone >= 0 && (a.Twice > 0) == (s.Leaked > 0) &&
				(s.Lost == 0 || a.Gone > 0) && (a.Gone == 0 || s.Lost+s.Fates.Diverted > 0),
				"%s: %d leaked, %d lost, %+v", s.ID, s.Leaked, s.Lost, *a)
			law(a.TwiceRate*a.Expected-a.Twice < 1e-6 && a.Error*a.Expected-math.Abs(a.Result-a.Expected) < 1e-6,
				"%s: shares of other numbers: %+v", s.ID, *a)
		}
		if a := s.After; a != nil && a.Window != nil && s.Fates.Diverted == 0 && w.Labelled && s.Failed == "" {
			law(a.Window.Count.Value-a.Window.Count.Truth == s.Leaked-s.Lost || s.Synthesized > 0,
				"%s: %+v, %d leaked, %d lost", s.ID, a.Window.Count, s.Leaked, s.Lost)
		}
		c := s.Changes
		law(s.Updates == c.UpdateBefore+c.UpdateAfter+c.Delete, "%s: %d updates, %+v", s.ID, s.Updates, c)
		law(s.AppendOnlyViol == s.Updates, "%s: %d updates violate append-only by %d", s.ID, s.Updates, s.AppendOnlyViol)
		law(s.InsertOnly.Rows == c.Insert+c.UpdateAfter && s.InsertOnly.Extra >= 0, "%s: %+v, %+v", s.ID, s.InsertOnly, c)

		for part, q := range map[string]results.Quantiles{"wait": s.Latency.Wait, "settle": s.Latency.Settle,
			"commit": s.Latency.Commit} {
			inOrder := []int64{0, q.P50, q.P90, q.P99, q.P999, q.P9999, q.Max}
			law(slices.IsSorted(inOrder), "%s: %s %+v", s.ID, part, q)
		}
		law(s.Latency.Wait.N <= w.Distinct, "%s: the wait of %d events, there are %d", s.ID, s.Latency.Wait.N, w.Distinct)
		law(s.Latency.Wait.N == s.Latency.Settle.N, "%s: %d events waited, %d settled", s.ID, s.Latency.Wait.N,
			s.Latency.Settle.N)

		law(s.State.KeysLiveEnd <= s.State.KeysLivePeak && s.State.KeysLivePeak <= s.State.KeysHeldPeak &&
			s.State.BytesEnd <= s.State.BytesPeak, "%s: state %d live at the end, peak %d, held %d", s.ID,
			s.State.KeysLiveEnd, s.State.KeysLivePeak, s.State.KeysHeldPeak)
		for _, sample := range s.State.Series {
			law(min(sample.KeysLive, sample.KeysHeld, sample.Timers, sample.Bytes) >= 0, "%s: %+v", s.ID, sample)
		}
		// A query that fails leaves rows unread, and one that takes the place of another reads some again, without its state.
		migrated := run.Job.Spark != nil && run.Job.Spark.MigrateMS > 0
		if s.Failed == "" && !migrated {
			stageLaws(s, w, law)
		}
		if b := s.Spark; b != nil {
			law(b.RowsUpdated-b.RowsRemoved == b.RowsTotal.End || migrated || s.Name != "drop-duplicates" &&
				s.Name != "drop-duplicates-within-watermark", "%s: %d entries written, %d removed, %d there at the end", s.ID,
				b.RowsUpdated, b.RowsRemoved, b.RowsTotal.End)
			law(b.DroppedByWatermark == s.LateDropped || s.Name == "tiered", "%s: %d dropped by watermark, %d late", s.ID, b.DroppedByWatermark,
				s.LateDropped)
			law(b.NoDataBatches <= b.Batches && b.RowsTotal.End <= b.RowsTotal.Peak, "%s: %+v", s.ID, b)
		}
		rows := int64(0)
		for _, subtask := range s.Subtasks {
			rows += subtask.Rows
		}
		again := slices.ContainsFunc(run.Job.Failures, func(f results.Failure) bool { return f.Kind == "rewind" })
		law(rows == s.RowsIn || again && rows > s.RowsIn, "%s: the subtasks had %d of %d rows", s.ID, rows, s.RowsIn)
	}
	return faults
}

// stageLaws are the laws of stages: what one lets through the next one is given, and the last one leaves the result.
func stageLaws(s *results.Strategy, w results.Workload, law func(holds bool, format string, args ...any)) {
	rows, events := s.RowsIn, w.Distinct
	for i := range s.Stages {
		st := &s.Stages[i]
		law(st.RowsIn == rows, "%s: stage %d was given %d rows, %d were let through to it", s.ID, i+1, st.RowsIn, rows)
		law(st.Caught == st.RowsIn-st.RowsOut && st.Caught >= st.Suppressed+st.Late+st.Repaired, "%s: stage %d: %+v", s.ID,
			i+1, st)
		rows, events = st.RowsOut-st.Updates, events-st.Lost
		if a := st.Audit; a != nil {
			law(a.Found == a.SameBatch+a.Inside+a.Outside && a.Repaired == st.Repaired, "%s: %+v", s.ID, a)
		} else {
			rows += st.WriteDuplicates
		}
		law(st.Lost >= 0 && st.Leaked >= 0 && rows == events+st.Leaked+st.WriteDuplicates, "%s: stage %d: %d events, %+v", s.ID,
			i+1, events, st)
	}
	if len(s.Stages) > 0 {
		law(rows == s.ResultRows, "%s: the last stage leaves %d rows, the result has %d", s.ID, rows, s.ResultRows)
	}
}

func sum(counts map[string]int64) (total int64) {
	for _, n := range counts {
		total += n
	}
	return total
}

func share(of, all int64) float64 {
	if all == 0 {
		return 0
	}
	return float64(of) / float64(all)
}

func TestShippedScenariosKeepTheLaws(t *testing.T) {
	for _, name := range shippedNames {
		run := shipped(t, name)
		for _, fault := range broken(run) {
			t.Errorf("%s: %s", name, fault)
		}
		real := slices.Contains([]string{"radio-frames", "earthquakes", "flights"}, name)
		if (run.Workload.Copies == 0) != (name == "flights") || run.Workload.Labelled == real {
			t.Errorf("%s: %d copies, labelled %v", name, run.Workload.Copies, run.Workload.Labelled)
		}
	}
}

// TestPresetsKeepTheLaws runs the other scenarios that the lab ships, at a tenth of their rate.
func TestPresetsKeepTheLaws(t *testing.T) {
	files, err := filepath.Glob("../scenarios/*.yaml")
	if err != nil || len(files) < len(shippedNames)+12 {
		t.Fatalf("scenarios are missing: %v, %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if slices.Contains(shippedNames, name) {
			continue
		}
		for _, fault := range broken(run(t, read(t, name), lab.Options{})) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// TestReuseIsNoMerge: an event that is lost because its id was used again is told from one that a coarse key merges.
func TestReuseIsNoMerge(t *testing.T) {
	for name, want := range map[string]string{
		"sdk-id-reuse": "id_reuse", "bot-constant-id": "id_reuse", "merge-key": "key_merge",
	} {
		s := read(t, name)
		result := run(t, s, lab.Options{})
		for _, strategy := range result.Strategies {
			losses := strategy.LossesByCause
			if other := losses["id_reuse"] + losses["key_merge"] - losses[want]; other != 0 {
				t.Errorf("%s: %s loses by %v, want %s alone", name, strategy.ID, losses, want)
			}
			if strategy.Name == "proctime-asc" && losses[want] == 0 {
				t.Errorf("%s: %s loses nothing", name, strategy.ID)
			}
		}
	}
}

// TestCrowd: an event with 100,000 copies takes no longer than as many events, whatever is asked about its rows.
func TestCrowd(t *testing.T) {
	s := small(t)
	spec := s.Workload.Spec
	spec.Duration, spec.Silent, spec.Outage = 3_600_000, nil, nil
	number, attempt := gen.Field{Name: "n", Sequence: new(int64(0))}, gen.Field{Name: "attempt", Retry: true}
	spec.Fields = append(spec.Fields, number, attempt)
	far := gen.Delay{Kind: gen.Uniform, High: 36_000_000}
	spec.Duplicates = []gen.Duplicate{
		{Origin: "client-resend", Rate: 1, Where: &gen.Where{Field: "n", Op: "==", Value: 100}, Delay: far,
			Copies: gen.Copies{Count: 100_000}},
		{Origin: "retry-with-new-id", Rate: 1, Where: &gen.Where{Field: "n", Op: "==", Value: 100}, Delay: far,
			Copies: gen.Copies{Count: 10}, NewID: true},
	}
	result := run(t, s, lab.Options{Only: []string{"pass-through", "proctime-asc", "rowtime-desc", "select-distinct"}})
	for _, fault := range broken(result) {
		t.Error(fault)
	}
	if result.Workload.Copies != 100_010 {
		t.Errorf("%d copies", result.Workload.Copies)
	}
	for _, s := range result.Strategies {
		if len(s.Stories) > 0 { // of an event with so many rows there is none to read
			t.Errorf("%s: a story of %d rows", s.ID, len(s.Stories[0].Rows))
		}
	}
}

// small is the scenario orders at a twentieth of its rate.
func small(t *testing.T) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Read("../scenarios/orders.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.Workload.Spec.Rate /= 20
	return s
}

func run(t *testing.T, s *scenarios.Scenario, o lab.Options) *results.Run {
	t.Helper()
	r, err := lab.Run(context.Background(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func marshalled(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sameText fails with the first line that differs.
func sameText(t *testing.T, what, got, want string) {
	t.Helper()
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Errorf("%s: line %d is %s, was %s", what, i+1, a[i], b[i])
			return
		}
	}
	if len(a) != len(b) {
		t.Errorf("%s: %d lines, %d before", what, len(a), len(b))
	}
}

func TestSameBytesUnderAnyGOMAXPROCS(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one := marshalled(t, run(t, small(t), lab.Options{}))
	sameText(t, "again", marshalled(t, run(t, small(t), lab.Options{})), one)
	runtime.GOMAXPROCS(2)
	sameText(t, "on two processors", marshalled(t, run(t, small(t), lab.Options{})), one)
}

func TestOnlyChangesNoNumber(t *testing.T) {
	all := run(t, small(t), lab.Options{})
	ids := []string{"nontime-price", "tumble-agg"}
	some := run(t, small(t), lab.Options{Only: ids})
	if len(some.Strategies) != len(ids) {
		t.Fatalf("%d strategies were run, want %v", len(some.Strategies), ids)
	}
	for _, id := range ids {
		sameText(t, id, marshalled(t, strategyOf(t, some, id)), marshalled(t, strategyOf(t, all, id)))
	}
	sameText(t, "workload", marshalled(t, some.Workload), marshalled(t, all.Workload))
}

// Whatever there is none of is an empty list in the JSON, never null: of a stream without a row, too, and of strategies
// that are refused.
func TestNothingIsNull(t *testing.T) {
	s := small(t)
	s.Require = nil
	s.Job.Sink = strategies.Append
	s.Workload.Spec.Duration = 1
	s.Workload.Keys, s.Workload.Amount = []gen.Key{{Name: "price", Columns: []string{"price"}}}, "price"
	r := run(t, s, lab.Options{Only: []string{"ptf", "proctime-desc"}})
	if r.Workload.Rows > 0 || strategyOf(t, r, "ptf").Refused != "" || strategyOf(t, r, "proctime-desc").Refused == "" {
		t.Fatalf("%d rows; want none, and that proctime-desc alone is refused", r.Workload.Rows)
	}
	if text := marshalled(t, r); strings.Contains(text, ": null") {
		t.Errorf("null in %s", text)
	}
}

func TestOnlyUnknownSuggests(t *testing.T) {
	_, err := lab.Run(context.Background(), small(t), lab.Options{Only: []string{"ptf", "tumbleagg"}})
	if err == nil || !strings.Contains(err.Error(), "did you mean tumble-agg?") {
		t.Errorf("%v", err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	stop := func(lab.Progress) { cancel() }
	if _, err := lab.Run(ctx, small(t), lab.Options{Progress: stop}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

// State in Pebble is state in memory, row for row. What may differ is where it is kept, and how long what has expired
// stays: Pebble lets go of it a file at a time.
func TestPebbleIsMemory(t *testing.T) {
	ids := []string{"rowtime-asc", "proctime-desc", "select-distinct-key", "nontime-price", "ptf"}
	memory := run(t, small(t), lab.Options{Only: ids})
	s := small(t)
	s.Job.State = "pebble"
	opened := 0
	onDisk := run(t, s, lab.Options{Only: ids, SpillAt: 500, OpenState: func() (sim.Cold, error) {
		opened++
		return pebble.Open("")
	}})
	spilled := 0
	for i := range onDisk.Strategies {
		if onDisk.Strategies[i].State.PhysicalBytes > 0 {
			spilled++
		}
		forgetHeld(&onDisk.Strategies[i].State)
		forgetHeld(&memory.Strategies[i].State)
	}
	if opened == 0 || spilled != len(ids) {
		t.Fatalf("%d stores were opened, %d strategies spilled", opened, spilled)
	}
	onDisk.Job.State = memory.Job.State
	sameText(t, "pebble", marshalled(t, onDisk), marshalled(t, memory))
}

// What a micro-batch query keeps in memory until its deadline has a size on disk as well.
func TestPebbleHoldsDeadlines(t *testing.T) {
	s, err := scenarios.Read("../scenarios/quiet-input-min.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.Workload.Spec.Rate /= 10
	memory := run(t, s, lab.Options{})
	s.Job.State = "pebble"
	onDisk := run(t, s, lab.Options{SpillAt: 100, OpenState: func() (sim.Cold, error) { return pebble.Open("") }})
	for i := range onDisk.Strategies {
		state := &onDisk.Strategies[i].State
		if perKey := float64(state.PhysicalBytes) / float64(state.KeysLiveEnd); perKey < 16 || perKey > 200 {
			t.Errorf("%s: %.1f bytes a key on disk", onDisk.Strategies[i].ID, perKey)
		}
		forgetHeld(state)
		forgetHeld(&memory.Strategies[i].State)
	}
	onDisk.Job.State = memory.Job.State
	sameText(t, "pebble", marshalled(t, onDisk), marshalled(t, memory))
}

func forgetHeld(s *results.State) {
	s.KeysHeldPeak, s.BytesPeak, s.BytesEnd, s.PhysicalBytes = 0, 0, 0, 0
	s.BytesPerKey, s.LogicalBytesPerKey = 0, 0
	for i := range s.Series {
		s.Series[i].KeysHeld, s.Series[i].Bytes = 0, 0
	}
}

// What becomes of a row depends on the rows of its key alone, so it does not on how many subtasks the keys are spread
// over. That leaves out what goes by the watermark, which more readers make otherwise, and the Rank, whose cache the
// keys of a subtask share.
func TestParallelismChangesNoFate(t *testing.T) {
	ids := []string{"pass-through", "select-distinct", "select-distinct-forever", "select-distinct-key", "proctime-asc",
		"proctime-desc", "rowtime-desc", "ptf", "keyed-process"}
	with := func(parallelism int) *results.Run {
		s := small(t)
		s.Job.Parallelism = parallelism
		return run(t, s, lab.Options{Only: ids})
	}
	one, four := with(1), with(4)
	for _, id := range ids {
		a, b := strategyOf(t, one, id), strategyOf(t, four, id)
		if a.Fates != b.Fates || a.Changes != b.Changes || a.WrongVersion != b.WrongVersion {
			t.Errorf("%s: %+v %+v in four subtasks, %+v %+v in one", id, b.Fates, b.Changes, a.Fates, a.Changes)
		}
		for i, subtask := range b.Subtasks {
			if len(b.Subtasks) != 4 || subtask.Rows < b.RowsIn/8 {
				t.Errorf("%s: subtask %d of %d had %d of %d rows", id, i, len(b.Subtasks), subtask.Rows, b.RowsIn)
			}
		}
	}
}

func TestAnotherSeedIsAnotherStream(t *testing.T) {
	keys := func(s *scenarios.Scenario) map[stream.Key]bool {
		w, err := gen.New(*s.Workload.Spec, s.Seed)
		if err != nil {
			t.Fatal(err)
		}
		keys := map[stream.Key]bool{}
		each(t, w, func(r *stream.Row) { keys[r.Key] = true })
		return keys
	}
	base, other := small(t), small(t)
	other.Seed++
	seen := keys(base)
	for key := range keys(other) {
		if seen[key] {
			t.Fatalf("key %x stands in both", key)
		}
	}
	for _, fault := range broken(run(t, other, lab.Options{})) {
		t.Error(fault)
	}
}

// Memory does not grow with the number of rows, save for one byte an event and strategy in the ledger and for live
// state. Here some ten bytes a row would be a leak: a strategy's entry takes more than that.
func TestMemoryIsBounded(t *testing.T) {
	ids := []string{"pass-through", "tumble-agg", "proctime-asc"}
	peak := func(duration stream.Time) (bytes, rows int64) {
		s := small(t)
		spec := s.Workload.Spec
		spec.Rate, spec.Duration, spec.Duplicates = 100, duration, spec.Duplicates[:1]
		s.Strategies = slices.DeleteFunc(s.Strategies, func(e scenarios.Entry) bool { return !slices.Contains(ids, e.ID) })
		for i := range s.Strategies {
			if e := &s.Strategies[i]; e.ID == "proctime-asc" {
				e.Args, _ = e.Strategy.Resolve(map[string]string{"ttl": "1m"}, s.Workload.Schema)
			}
		}
		batches := 0
		measure := func(p lab.Progress) {
			if batches++; p.Stage == "run" && batches%20 == 0 { // replays have their state at the same time
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				bytes, rows = max(bytes, int64(m.HeapAlloc)), p.Rows
			}
		}
		run(t, s, lab.Options{Progress: measure})
		return bytes, rows
	}
	short, rowsOfShort := peak(20 * 60 * 1000)
	long, rowsOfLong := peak(80 * 60 * 1000)
	if perRow := float64(long-short) / float64(rowsOfLong-rowsOfShort); perRow > 10 {
		t.Errorf("%d bytes for %d rows, %d for %d: %.1f bytes more a row", short, rowsOfShort, long, rowsOfLong, perRow)
	}
}

// Whatever the stream, the job and the strategies: no row is lost count of, and every leak and every loss has a cause.
func TestAnyScenarioKeepsTheLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyScenario(t)
		r, err := lab.Run(context.Background(), s, lab.Options{SpillAt: rapid.IntRange(1, 100).Draw(t, "spill at"),
			OpenState: func() (sim.Cold, error) { return pebble.Open("") }})
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range broken(r) {
			t.Error(fault)
		}
	})
}

// anySink draws a strategy that writes a table.
func anySink(t *rapid.T) (string, map[string]string) {
	params := map[string]string{"dedup_source_batch": fmt.Sprint(rapid.Bool().Draw(t, "dedup"))}
	name := rapid.SampledFrom([]string{"append-batch-sink", "idempotent-batch-sink", "merge-insert-only",
		"merge-upsert-latest", "anti-join-backfill", "audit"}).Draw(t, "sink")
	switch name {
	case "merge-insert-only":
		params["lookback"] = rapid.SampledFrom([]string{"none", "0d", "1d"}).Draw(t, "lookback")
		params["null_safe"] = fmt.Sprint(rapid.Bool().Draw(t, "null-safe"))
	case "merge-upsert-latest":
		params = map[string]string{"lookback": rapid.SampledFrom([]string{"none", "1d"}).Draw(t, "lookback"),
			"source_batch": rapid.SampledFrom([]string{"latest", "first"}).Draw(t, "source")}
	case "audit":
		params = map[string]string{"every": "10s", "repair": fmt.Sprint(rapid.Bool().Draw(t, "repair"))}
	}
	return name, params
}

func anyScenario(t *rapid.T) *scenarios.Scenario {
	spec := anySpec(t)
	workload, err := gen.New(spec, 0)
	if err != nil {
		t.Fatal(err)
	}
	job := scenarios.Job{
		Flink: "2.3", Parallelism: rapid.IntRange(1, 4).Draw(t, "parallelism"),
		Watermark: scenarios.Watermark{
			Delay: anySpan(t, "watermark delay"), Interval: 200, IdleAfter: anySpan(t, "idle after"),
			Per: rapid.SampledFrom([]string{"partition", "reader"}).Draw(t, "watermark per"),
		},
		Checkpoint: scenarios.Checkpoint{Delivery: rapid.SampledFrom([]string{"exactly-once", "at-least-once"}).Draw(t, "delivery"),
			Interval: rapid.SampledFrom([]stream.Time{0, 1000, 60_000, 3_600_000}).Draw(t, "checkpoint")},
		Sink:  rapid.SampledFrom([]strategies.Sink{strategies.Retract, strategies.Append, strategies.Upsert}).Draw(t, "sink"),
		State: rapid.SampledFrom([]string{"memory", "memory", "pebble"}).Draw(t, "state"),
		Skew:  rapid.SampledFrom([]int{1, 50, 10_000}).Draw(t, "skew"), Retention: anySpan(t, "retention"),
		Spark: scenarios.Spark{
			Trigger: sim.Trigger{Every: rapid.SampledFrom([]stream.Time{1000, 10_000, 60_000}).Draw(t, "trigger"),
				AvailableNow: rapid.IntRange(0, 9).Draw(t, "available now") == 0,
				MaxRows:      rapid.SampledFrom([]int{0, 0, 1, 20}).Draw(t, "max rows")},
			Cost: sim.BatchCost{Batch: anySpan(t, "cost of a batch"),
				RowsPerSecond: rapid.SampledFrom([]int64{0, 1, 100}).Draw(t, "rows a second")},
			NoDataBatches: rapid.Bool().Draw(t, "no-data batches"), Inputs: rapid.IntRange(1, 2).Draw(t, "inputs"),
			Policy: sim.WatermarkPolicy(rapid.IntRange(0, 1).Draw(t, "policy")),
			Migrate: rapid.SampledFrom([]scenarios.Migration{{}, {}, {At: 60_000}, {At: 90_000, Overlap: 60_000}}).
				Draw(t, "migrate"),
		},
		Failures: anyFailures(t),
	}
	s := &scenarios.Scenario{Name: "any", Seed: rapid.Uint64().Draw(t, "seed"), Job: job,
		Workload: scenarios.Workload{Spec: &spec, Schema: workload.Schema()}}
	if spec.EventTime.Null == 0 && rapid.Bool().Draw(t, "after") {
		s.After = scenarios.After{Window: &scenarios.AfterWindow{Size: max(anySpan(t, "window"), 1), Sum: -1},
			Join: &scenarios.AfterJoin{On: 0, Within: anySpan(t, "within")}}
	}
	keys := anyKeys(t)
	s.Workload.Keys, s.Workload.Amount = keys, rapid.SampledFrom([]string{"", "price", "quantity"}).Draw(t, "amount")
	ttl := func() string { return stream.FormatDuration(anySpan(t, "ttl")) }
	size := func() string { return stream.FormatDuration(max(anySpan(t, "size"), 1)) }
	orders := []string{"price asc", "price desc", "quantity asc, price desc", "id asc", "ts desc, price asc"}
	order := func() string { return rapid.SampledFrom(orders).Draw(t, "order") }
	for i, entry := range rapid.SliceOfN(rapid.SampledFrom([]func() (string, map[string]string){
		func() (string, map[string]string) { return "pass-through", nil },
		func() (string, map[string]string) { return "tumble-agg", map[string]string{"size": size()} },
		func() (string, map[string]string) {
			return "window-dedup", map[string]string{"size": size(),
				"keep": rapid.SampledFrom([]string{"first", "last"}).Draw(t, "keep")}
		},
		func() (string, map[string]string) {
			return "late-dlq", map[string]string{"size": size(),
				"main":       rapid.SampledFrom([]string{"tumble-agg", "window-dedup", "none"}).Draw(t, "main"),
				"null_check": rapid.SampledFrom([]string{"true", "false"}).Draw(t, "null check"),
				"branch":     rapid.SampledFrom([]string{"main", "dlq"}).Draw(t, "branch")}
		},
		func() (string, map[string]string) { return "select-distinct", map[string]string{"ttl": ttl()} },
		func() (string, map[string]string) { return "select-distinct-key", map[string]string{"ttl": ttl()} },
		func() (string, map[string]string) { return "rowtime-asc", map[string]string{"ttl": ttl()} },
		func() (string, map[string]string) { return "rowtime-desc", map[string]string{"ttl": ttl()} },
		func() (string, map[string]string) { return "proctime-asc", map[string]string{"ttl": ttl()} },
		func() (string, map[string]string) { return "proctime-desc", map[string]string{"ttl": ttl()} },
		func() (string, map[string]string) {
			return "nontime", map[string]string{"ttl": ttl(), "order_by": order(), "cache": "20",
				"top": rapid.SampledFrom([]string{"1", "1", "2"}).Draw(t, "top")}
		},
		func() (string, map[string]string) {
			return "nontime-to-changelog", map[string]string{"ttl": ttl(), "order_by": order()}
		},
		func() (string, map[string]string) { return "ptf", map[string]string{"ttl": ttl()} },
		func() (string, map[string]string) {
			return "keyed-process", map[string]string{"timer": ttl(), "ttl": ttl(),
				"timer_on":    rapid.SampledFrom([]string{"every", "first"}).Draw(t, "timer on"),
				"side_output": rapid.SampledFrom([]string{"true", "false"}).Draw(t, "side output")}
		},
		func() (string, map[string]string) {
			return "window-topn", map[string]string{"size": size(), "order_by": "price desc"}
		},
		func() (string, map[string]string) {
			return "drop-duplicates", map[string]string{
				"columns": rapid.SampledFrom([]string{"key", "all", "id, ts", "quantity"}).Draw(t, "columns"),
				"delay":   rapid.SampledFrom([]string{"none", "0s", "1m"}).Draw(t, "delay"), "window": ttl()}
		},
		func() (string, map[string]string) { return anySink(t) },
		func() (string, map[string]string) {
			front := rapid.SampledFrom([]string{`{"ptf":{"ttl":"1m"}},`, `{"rowtime-asc":{}},`, `{"proctime-desc":{}},`, "",
				`{"drop-duplicates-within-watermark":{"delay":"10s"}},`, `{"ptf":{}},{"drop-duplicates":{"delay":"1m"}},`,
			}).Draw(t, "front")
			name, params := anySink(t)
			sink, _ := json.Marshal(map[string]map[string]string{name: params})
			audit := rapid.SampledFrom([]string{"", `,{"audit":{"repair":"true","every":"10s"}}`}).Draw(t, "audit")
			return "tiered", map[string]string{"stages": "[" + front + string(sink) + audit + "]"}
		},
		func() (string, map[string]string) {
			return "drop-duplicates-within-watermark", map[string]string{"delay": ttl(), "other_delay": ttl(),
				"columns": rapid.SampledFrom([]string{"key", "key", "id, price"}).Draw(t, "columns")}
		},
	}), 1, 5).Draw(t, "strategies") {
		name, params := entry()
		strategy, err := strategies.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		args, wrong := strategy.Resolve(params, workload.Schema())
		if len(wrong) > 0 {
			t.Fatal(wrong)
		}
		e := scenarios.Entry{ID: fmt.Sprintf("%s-%d", name, i), Strategy: strategy, Args: args}
		if name != "select-distinct" && rapid.Bool().Draw(t, "another key") {
			e.Key = &keys[rapid.IntRange(0, len(keys)-1).Draw(t, "key")]
		}
		s.Strategies = append(s.Strategies, e)
	}
	return s
}

// anySpec is a stream of at most some hundred rows: of unique keys or of few, with disorder, copies of all kinds,
// ids that are used again, floods, partitions that fall silent or are cut off, are slow, end early or have a wrong clock.
func anySpec(t *rapid.T) gen.Spec {
	spec := gen.Spec{
		Start: 1_767_225_600_000, Duration: 10 * 60 * 1000,
		Rate: rapid.SampledFrom([]float64{0.001, 0.1, 0.5}).Draw(t, "rate"),
		Fields: []gen.Field{{Name: "id", UUID: true}, {Name: "quantity", Int: &[2]int64{1, 3}},
			{Name: "price", Decimal: &[2]int64{100, 10_000}}, {Name: "place", Position: true},
			{Name: "attempt", Retry: true}, {Name: "sent", Stamp: gen.Sent}},
		Key: rapid.SampledFrom([][]string{{"id"}, {"id"}, {"quantity"}, {"id", "quantity"}, {"price"}, {"place"},
			{"id", "attempt"}}).Draw(t, "key"),
		EventTime: gen.EventTime{Field: "ts",
			LogAppend: rapid.SampledFrom([]bool{false, false, true}).Draw(t, "log append")},
		Partitions: rapid.IntRange(1, 3).Draw(t, "partitions"),
		Transport:  gen.Delay{Kind: gen.Uniform, High: 1 + anySpan(t, "transport")},
	}
	for range rapid.IntRange(0, 3).Draw(t, "rules") {
		rule := gen.Duplicate{Origin: "copy", Rate: rapid.SampledFrom([]float64{0.1, 1}).Draw(t, "copied"),
			Delay:   gen.Delay{Kind: gen.Uniform, High: 1 + anySpan(t, "delay")},
			Restamp: rapid.Bool().Draw(t, "restamp"),
			NewID:   slices.Contains(spec.Key, "id") && rapid.Bool().Draw(t, "new id"),
			Copies: rapid.SampledFrom([]gen.Copies{{}, {}, {}, {Count: 2}, {Geometric: 1.5}, {Zipf: &gen.Zipf{N: 20, S: 1}}}).
				Draw(t, "copies"),
			OtherPartition: spec.Partitions > 1 && rapid.Bool().Draw(t, "other partition"),
			SameOffset:     rapid.Bool().Draw(t, "same offset")}
		rule.ConstantID = rule.NewID && rapid.Bool().Draw(t, "constant id")
		if rapid.IntRange(0, 4).Draw(t, "flood") == 0 {
			rule.Flood = &gen.Flood{To: 1 + anySpan(t, "range"), At: 900_001, Speed: 2}
		}
		if rapid.Bool().Draw(t, "changed") && !slices.Contains(spec.Key, "price") {
			rule.Change = []string{"price"}
		}
		spec.Duplicates = append(spec.Duplicates, rule)
	}
	if rapid.Bool().Draw(t, "silent") {
		spec.Silent = []gen.Silence{{Partition: 0, From: anySpan(t, "silent from"), For: 1 + anySpan(t, "silent for")}}
	}
	if rapid.Bool().Draw(t, "outage") {
		spec.Outage = []gen.Outage{{Partition: spec.Partitions - 1, From: anySpan(t, "outage from"),
			For: 1 + anySpan(t, "outage for"), Flush: 5}}
	}
	if rapid.Bool().Draw(t, "slow") {
		spec.Slow = []gen.Slow{{Partition: 0, From: anySpan(t, "slow from"), For: anySpan(t, "slow for"),
			Delay: gen.Delay{Kind: gen.Uniform, High: 1 + anySpan(t, "slowness")}}}
	}
	if rapid.Bool().Draw(t, "finished") {
		spec.Finished = []gen.Finish{{Partition: spec.Partitions - 1, At: min(anySpan(t, "finished at"), spec.Duration-1)}}
	}
	if rapid.Bool().Draw(t, "clock") {
		spec.Clock = []gen.Clock{{Partition: 0, Skew: anySpan(t, "ahead") - anySpan(t, "behind"), Drift: 9000}}
	}
	if rapid.Bool().Draw(t, "coarse") {
		spec.EventTime.Resolution = 1000
	}
	if rapid.IntRange(0, 4).Draw(t, "reuse") == 0 {
		spec.Fields[0].Reuse = &gen.Reuse{Rate: 0.3, Constant: rapid.Bool().Draw(t, "constant")}
		spec.PartitionBy = "quantity" // as ids that are used again cannot pick a partition where one is silent
	} else if hot := rapid.IntRange(0, 9).Draw(t, "hot"); hot < 3 &&
		!slices.ContainsFunc(spec.Duplicates, func(d gen.Duplicate) bool { return d.NewID }) {
		spec.Fields[hot].Hot = &gen.Hot{Share: 0.3, Keys: 2}
	}
	return spec
}

// anySpan is nothing, or between a millisecond and longer than the stream.
func anySpan(t *rapid.T, name string) stream.Time {
	return stream.Time(rapid.SampledFrom([]int64{0, 1, 200, 1000, 10_000, 60_000, 300_000, 900_000}).Draw(t, name))
}
