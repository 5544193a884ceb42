package lab

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"deduplab/gen"
	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// DefaultReplays is the number of replays under a cause that the scenario or the options name.
const DefaultReplays = 5

// cause is something that must not change a result, and how it is changed while all else is held still.
type cause struct {
	name string
	// closed says why a strategy cannot be open to it, whatever the rows; empty where it can. Nil: all can.
	closed func(*run, entry) string
	// change makes the i-th of n replays. What it changes in the job is its own.
	change func(r *run, p *replay, i, n int)
}

// replay is one more delivery of the workload, with one cause changed.
type replay struct {
	cause string
	feed  sim.Perturbation
	job   scenarios.Job
	ask   gen.Ask
	// times and by scale what state is kept for: see strategies.Strategy.ScaleExpiry.
	times, by int64

	run  *run  // that goes by the above
	pass *pass // nil: it was interrupted
}

// causes lists them in the order of scenarios.Causes. (Why a copy leaked is another matter: leaks.cause.)
var causes = []cause{
	{"interleaving", onePartition, func(r *run, p *replay, i, _ int) {
		p.feed = sim.Perturbation{Interleave: true, Seed: r.scenario.Seed + uint64(i), Skew: p.job.Skew}
	}},
	{"catch-up", nil, func(r *run, p *replay, i, _ int) {
		pace := turn(factors, i)
		if i == 1 { // as fast as possible
			pace = factor{math.MaxInt32, 1}
		}
		p.feed = sim.Perturbation{CatchUp: max(pace.of(r.catchUpRate()), 1)}
	}},
	{"watermarks", noWatermark, func(r *run, p *replay, i, _ int) {
		w := &p.job.Watermark
		w.Interval = stream.Time(max(turn(factors, i).of(int64(w.Interval)), 1))
		p.feed.Opened = r.phase(w.Interval, i)
	}},
	{"idleness", noWatermark, func(_ *run, p *replay, i, _ int) {
		w := &p.job.Watermark
		w.IdleAfter = turn(without([]stream.Time{0, 10_000, 1_000, 60_000, 300_000, 30_000}, w.IdleAfter), i)
	}},
	{"state-ttl", nothingExpires, func(_ *run, p *replay, i, _ int) {
		f := turn([]factor{{10, 1}, {1, 2}, {100, 1}, {1, 10}, {2, 1}}, i)
		p.times, p.by = f.times, f.by
	}},
	{"restart", nil, func(r *run, p *replay, i, _ int) { // at any moment, for a minute
		from, to := r.source.Span()
		random := rand.New(rand.NewPCG(r.scenario.Seed, uint64(i)))
		crash := sim.Failure{Kind: sim.CrashFailure, Down: 60_000, At: 1 + stream.Time(random.Int64N(max(int64(to-from), 1)))}
		p.job.Failures = append(slices.Clip(p.job.Failures), scenarios.Failure{Failure: crash})
	}},
	{"retention", keepsAll, func(_ *run, p *replay, i, n int) { // each time it begins later
		p.feed.Retention = max(p.job.Retention*stream.Time(n-i)/stream.Time(n), 1)
	}},
	{"lookup", noLookup, func(_ *run, p *replay, i, _ int) { p.ask.Lookups = i + 1 }},
	{"functions", noFunction, func(_ *run, p *replay, i, _ int) { p.ask.Functions = i + 1 }},
	{"batches", oneAtATime, func(r *run, p *replay, i, _ int) {
		f, j := turn(factors, i), &p.job
		for _, span := range []*stream.Time{&j.Spark.Trigger.Every, &j.Checkpoint.Interval, &j.MiniBatch.Latency} {
			if *span > 0 {
				*span = stream.Time(max(f.of(int64(*span)), 1))
			}
		}
		if j.MiniBatch.Size > 0 {
			j.MiniBatch.Size = int(max(f.of(int64(j.MiniBatch.Size)), 1))
		}
		j.Spark.Trigger.Phase = r.phase(j.Spark.Trigger.Every, i)
		if i == 1 { // a backlog
			j.Spark.Trigger = sim.Trigger{AvailableNow: true, MaxRows: 1000}
		}
	}},
	{"parallelism", ownKeys, func(_ *run, p *replay, i, _ int) {
		p.job.Parallelism = turn(without([]int{2, 1, 4, 8, 3, 16}, p.job.Parallelism), i)
	}},
}

// factor is a ratio.
type factor struct{ times, by int64 }

func (f factor) of(n int64) int64 { return n * f.times / f.by }

// factors are those by which replays change an interval or a rate. The first one leaves it.
var factors = []factor{{1, 1}, {1, 2}, {3, 1}, {1, 10}, {10, 1}}

// turn takes one of a list after the other.
func turn[T any](list []T, i int) T { return list[i%len(list)] }

func without[T comparable](list []T, x T) []T {
	return slices.DeleteFunc(list, func(y T) bool { return x == y })
}

// phase draws a part of an interval.
func (r *run) phase(interval stream.Time, i int) stream.Time {
	if interval < 2 {
		return 0
	}
	random := rand.New(rand.NewPCG(r.scenario.Seed, uint64(i)))
	return 1 + stream.Time(random.Int64N(int64(interval)-1))
}

func onePartition(r *run, _ entry) string {
	if r.workload.Partitions() == 1 {
		return "there is one partition"
	}
	return ""
}

func noWatermark(_ *run, e entry) string {
	switch {
	case e.plan.GoesByWatermark():
		return ""
	case e.plan.Batch != nil:
		return "a micro-batch query asks no periodic watermark; its own moves with its batches"
	}
	return "it does not ask the watermark"
}

func nothingExpires(_ *run, e entry) string {
	if _, ok := e.Strategy.ScaleExpiry(e.Args, 1, 1); ok {
		return ""
	}
	return "none of its state goes by the clock"
}

func keepsAll(r *run, _ entry) string {
	if r.scenario.Job.Retention == 0 {
		return "the source keeps all rows: job.retention is not set"
	}
	return ""
}

func noLookup(r *run, e entry) string {
	return r.leavesOut(e, "looks nothing up", func(f stream.Function) bool { return f == stream.Lookup })
}

func noFunction(r *run, e entry) string {
	return r.leavesOut(e, "calls no function such as now()", func(f stream.Function) bool {
		return f != stream.NoFunction && f != stream.Lookup
	})
}

// leavesOut says why no column by some functions is in what a strategy goes by and emits; empty where one is.
func (r *run) leavesOut(e entry, nothing string, by func(stream.Function) bool) string {
	isBy := func(c stream.Column) bool { return by(c.Function) }
	schema := e.workload.Schema()
	switch out := e.plan.Output; {
	case !slices.ContainsFunc(r.scenario.Job.Adds, isBy):
		return "the query " + nothing + ": see job.adds"
	case out == strategies.KeyOnly:
		return "its result has nothing but the key"
	case out == strategies.KeyAndColumn && !isBy(schema.Columns[e.plan.Column]):
		return "its result leaves the column out"
	}
	return ""
}

func oneAtATime(r *run, e entry) string {
	if r.recovers(e) {
		return ""
	}
	if e.plan.InBatches || e.plan.Batch != nil || e.plan.AtCheckpoints {
		return ""
	}
	return "it takes a record at a time, and a checkpoint changes nothing that comes out"
}

func ownKeys(r *run, e entry) string {
	if r.recovers(e) {
		return ""
	}
	switch {
	case e.plan.Batch != nil && len(e.plan.Front) == 0:
		return "the rows of a key meet in one partition of a batch, in the order in which they came"
	case e.plan.SharedCache || e.plan.InBatches || e.plan.GoesByWatermark():
		return ""
	}
	return "what becomes of a row depends on the rows of its key alone"
}

// allCauses names the causes to replay under, and how often.
func (r *run) allCauses() map[string]int {
	n := map[string]int{"interleaving": 1, "catch-up": 1}
	if r.scenario.Job.Retention > 0 {
		n["retention"] = 1
	}
	for _, c := range r.scenario.Job.Adds {
		if c.Function == stream.Lookup {
			n["lookup"] = 1
		} else {
			n["functions"] = 1
		}
	}
	for _, q := range r.scenario.Require {
		for _, name := range q.Causes {
			if n[name] == 0 {
				n[name] = DefaultReplays
			}
		}
	}
	if r.options.Causes != nil {
		n = map[string]int{}
		for _, name := range r.options.Causes {
			n[name] = DefaultReplays
		}
	}
	for name := range n {
		if r.options.Replays > 0 {
			n[name] = r.options.Replays
		}
	}
	return n
}

// requiredCauses are those of them that the scenario requires something of.
func (r *run) requiredCauses() map[string]int {
	all, n := r.allCauses(), map[string]int{}
	for _, q := range r.scenario.Require {
		for _, name := range q.Causes {
			n[name] = all[name]
		}
	}
	return n
}

// planReplays lists all replays.
func (r *run) planReplays() {
	for _, c := range causes {
		n := r.times[c.name]
		for i := range n {
			p := &replay{cause: c.name, job: r.scenario.Job, times: 1, by: 1}
			c.change(r, p, i, n)
			p.run = r.under(c, p)
			if p.run.anyOpen() {
				r.replays = append(r.replays, p)
			}
		}
	}
}

// under is the run as it is replayed.
func (r *run) under(c cause, p *replay) *run {
	scenario := *r.scenario
	scenario.Job = p.job
	v := &run{scenario: &scenario, options: r.options, source: r.source, perturbation: p.feed, ask: p.ask,
		moments: r.batchMoment}
	v.workload = v.asked(p.ask)
	for _, e := range r.entries {
		args, _ := e.Strategy.ScaleExpiry(e.Args, p.times, p.by)
		again := e.Entry
		again.Args = args
		planned := v.entry(again, v.plannerJob())
		planned.plan.Refused = e.plan.Refused
		if c.closed != nil && !r.options.runClosed {
			planned.closed = c.closed(r, e)
		}
		v.entries = append(v.entries, planned)
	}
	return v
}

// anyOpen reports whether there is a strategy to replay.
func (r *run) anyOpen() bool { return slices.ContainsFunc(r.entries, entry.runs) }

// replay replays the run under some causes, each so many times, on as many processors as there are.
func (r *run) replay(ctx context.Context, times map[string]int) error {
	r.times = times
	r.planReplays()
	told := r.sharedProgress(len(r.replays))
	return r.atOnce(len(r.replays), func(i int) (err error) {
		p := r.replays[i]
		p.run.options.Progress = told(i)
		pass, err := p.run.pass(ctx, ReplayStage, nil)
		if err == nil { // what an interrupted replay had come to says nothing
			p.pass = pass
		}
		return err
	})
}

// ReplayStage is the stage of a run in which the replays are run, several at a time.
const ReplayStage = "replays"

// sharedProgress adds up the progress of n replays.
func (r *run) sharedProgress(n int) func(i int) func(Progress) {
	var mu sync.Mutex
	var sum Progress
	parts := make([]Progress, n)
	return func(i int) func(Progress) {
		if r.options.Progress == nil {
			return nil
		}
		return func(p Progress) {
			mu.Lock()
			defer mu.Unlock()
			sum.Stage, sum.Span = p.Stage, p.Span*stream.Time(n)
			sum.Rows += p.Rows - parts[i].Rows
			sum.Virtual += p.Virtual - parts[i].Virtual
			parts[i] = p
			r.options.Progress(sum)
		}
	}
}

// atOnce does n things, as many at a time as the options say. The first error, in their order, counts; none is begun
// after one.
func (r *run) atOnce(n int, do func(i int) error) error {
	errs := make([]error, n)
	var mu sync.Mutex
	next := 0
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		if next == n || slices.ContainsFunc(errs[:next], func(err error) bool { return err != nil }) {
			return -1
		}
		next++
		return next - 1
	}
	var wg sync.WaitGroup
	for range min(cmp.Or(r.options.AtOnce, runtime.GOMAXPROCS(0)), n) {
		wg.Go(func() {
			for i := take(); i >= 0; i = take() {
				err := do(i)
				mu.Lock()
				errs[i] = err
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// determinism holds the replays of a strategy against its run, cause by cause.
func (r *run) determinism(i int) []results.Determinism {
	var out []results.Determinism
	for _, c := range causes {
		if r.times[c.name] == 0 {
			continue
		}
		d := results.Determinism{Cause: c.name}
		if c.closed != nil {
			d.ByConstruction = c.closed(r, r.entries[i])
		}
		for j, p := range r.replays {
			if p.cause != c.name || p.pass == nil || p.pass.lanes[i] == nil {
				continue
			}
			r.addReplay(&d, i, j)
		}
		if d.Replays > 0 || d.ByConstruction != "" {
			out = append(out, d)
		}
	}
	return out
}

// addReplay counts one replay of a strategy.
func (r *run) addReplay(d *results.Determinism, i, j int) {
	base, p := r.base.lanes[i].digest, r.replays[j]
	replay := p.pass.lanes[i].digest
	add := func(n *int, same bool) {
		if same {
			*n++
		}
	}
	d.Replays++
	add(&d.SameTable, base.SameTable(replay))
	add(&d.SameChanges, base.Changes == replay.Changes)
	add(&d.SameOrder, base.SameOrder(replay))
	if diff := r.differences[difference{d.Cause, i}]; diff != nil {
		d.Example = diff.text
	}
	if missing := p.pass.missing; missing.Rows > d.RowsGone {
		d.RowsGone, d.LossesByCause = missing.Rows, map[string]int64{"retention": missing.Events}
	}
}
