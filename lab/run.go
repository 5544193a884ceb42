// Package lab runs a scenario from start to end: the workload through every strategy side by side, replays under
// perturbations that must not matter, and verdicts from what was measured.
package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"deduplab/gen"
	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// Options of a run.
type Options struct {
	Only []string // ids of the strategies to run; empty: all
	// OpenState makes the cold store of one table for `job.state: pebble`; it must be given for that.
	OpenState func() (sim.Cold, error)
	// OpenTarget opens the table of a strategy that writes to one. Nil: in memory.
	OpenTarget func(TargetSpec) (sim.Target, error)
	// Once delivers the stream once: no replays, so that requirements on determinism do not apply, and no stories.
	Once bool
	// SpillAt is the number of entries that a table keeps in memory before it moves them to its cold store (default
	// 2,000,000).
	SpillAt int
	// Causes are those of scenarios.Causes to replay under, [DefaultReplays] times each. Nil: interleaving and catch-up
	// once each, retention too if the job has one, and those that the scenario requires.
	Causes []string
	// Replays is the number of replays under each cause; 0: as above.
	Replays int
	// AtOnce is how many replays run at a time, each in the memory of one run; 0: as many as there are processors.
	AtOnce int
	// runClosed replays strategies even under causes that they cannot be open to.
	runClosed bool
	// Progress is told from time to time what the run is doing; may be nil.
	Progress func(Progress)
}

// Progress of a run.
type Progress struct {
	Stage   string      // run, or ReplayStage: then the numbers are those of all replays together
	Rows    int64       // rows delivered in this stage
	Virtual stream.Time // virtual time since the start
	Span    stream.Time // virtual time in all
}

// Run runs a scenario. The result depends on the scenario alone, not on the machine. When the context is cancelled, the
// result is what had been measured by then, marked as partial, beside the context's error; it is nil if that is nothing.
func Run(ctx context.Context, s *scenarios.Scenario, o Options) (*results.Run, error) {
	r, err := newRun(s, o)
	if err != nil {
		return nil, err
	}
	if r.base, err = r.basePass(ctx); err != nil {
		return r.partial(err)
	}
	r.retire()
	if o.Once {
		return r.result(), nil
	}
	if err := r.replay(ctx, r.allCauses()); err != nil {
		return r.partial(err)
	}
	if err := r.findDifferences(ctx); err != nil {
		return r.partial(err)
	}
	out := r.result()
	if err := r.tellExamples(ctx, out); err != nil {
		return r.partial(err)
	}
	return out, nil
}

// partial is the result of a run that was interrupted.
func (r *run) partial(err error) (*results.Run, error) {
	if !errors.Is(err, context.Canceled) || r.base == nil || r.base.survey.rows == 0 {
		return nil, err
	}
	out := r.result()
	out.Partial = true
	for i := range out.Strategies {
		for j := range out.Strategies[i].Verdicts {
			v := &out.Strategies[i].Verdicts[j]
			if v.Requirement == scenarios.SameUnder && v.Verdict == results.NotApplicable && !r.options.Once {
				v.Verdict = results.Undetermined // its replays were still to come
			}
		}
	}
	out.Summary = orEmpty(summary(out))
	return out, err
}

// newRun opens the workload and plans the strategies.
func newRun(s *scenarios.Scenario, o Options) (*run, error) {
	workload, err := open(s)
	if err != nil {
		return nil, err
	}
	o.OpenState = oneByOne(o.OpenState)
	r := &run{scenario: s, options: o, source: workload}
	workload = r.asked(gen.Ask{})
	r.workload = workload
	if s.After != (scenarios.After{}) {
		if r.after, err = newAfter(s.After, workload); err != nil {
			return nil, err
		}
	}
	return r, r.plan()
}

// oneByOne lets replays, which run at the same time, open stores one after the other.
func oneByOne(open func() (sim.Cold, error)) func() (sim.Cold, error) {
	if open == nil {
		return nil
	}
	var mu sync.Mutex
	return func() (sim.Cold, error) {
		mu.Lock()
		defer mu.Unlock()
		return open()
	}
}

// basePass is the delivery that is measured.
func (r *run) basePass(ctx context.Context) (*pass, error) {
	return r.pass(ctx, "run", newSurvey(r.workload, r.scenario.Workload))
}

// open makes or finds the workload of a scenario.
func open(s *scenarios.Scenario) (gen.Workload, error) {
	if s.Workload.Spec != nil {
		return gen.New(*s.Workload.Spec, s.Seed)
	}
	return s.Workload.Trace.Rows, nil
}

// run is a scenario being run.
type run struct {
	scenario *scenarios.Scenario
	options  Options
	source   gen.Workload // the rows as they come
	workload gen.Workload // with the columns that the query adds
	entries  []entry
	base     *pass
	after    *after         // the truth, nil where nothing reads the results
	times    map[string]int // to replay, by cause
	replays  []*replay
	// perturbation is how a replay reads the workload.
	perturbation sim.Perturbation
	// ask is how often functions have been asked, moments when: a replay holds still when.
	ask     gen.Ask
	moments func(arrival stream.Time) stream.Time
	// differences are the smallest ones that were found.
	differences map[difference]*found
}

// entry is one strategy, planned for the job.
type entry struct {
	scenarios.Entry
	plan     strategies.Plan
	workload gen.Workload // under the strategy's key
	closed   string       // why it need not run in a replay
}

// runs reports whether there is something to run.
func (e entry) runs() bool { return e.plan.Refused == "" && e.closed == "" }

// prepare returns what fills in a row for a plan of the strategy beside what the source gives; nil where there is nothing
// to do.
func (e entry) prepare(plan strategies.Plan) func(*stream.Row) {
	fill := plan.Prepare(e.workload)
	keyed, ok := e.workload.(*gen.Keyed)
	if !ok || plan.Key == strategies.ByRow {
		return fill
	}
	return func(row *stream.Row) {
		row.Key = keyed.Key(row.Tag)
		if fill != nil {
			fill(row)
		}
	}
}

// plannerJob is what the planner knows of the job.
func (r *run) plannerJob() strategies.Job {
	job := r.scenario.Job
	return strategies.Job{
		Schema: r.workload.Schema(), Sink: job.Sink, MiniBatch: job.MiniBatch, Input: job.Input, Version: job.Flink,
		WatermarkDelay: job.Watermark.Delay, CheckpointInterval: job.Checkpoint.Interval,
	}
}

func (r *run) plan() error {
	job := r.plannerJob()
	var ids []string
	for _, e := range r.scenario.Strategies {
		ids = append(ids, e.ID)
		if len(r.options.Only) == 0 || slices.Contains(r.options.Only, e.ID) {
			r.entries = append(r.entries, r.entry(e, job))
		}
	}
	for _, id := range r.options.Only {
		if !slices.Contains(ids, id) {
			return fmt.Errorf("no strategy %q in %s%s", id, r.scenario.Name, stream.DidYouMean(id, ids))
		}
	}
	return nil
}

// retire takes the strategies out whose job failed; the reason stands in place of their numbers.
func (r *run) retire() {
	for i, l := range r.base.lanes {
		if l != nil && l.noEventTime != nil {
			r.entries[i].plan.Refused, r.base.lanes[i] = l.noEventTime.Error(), nil
		}
	}
}

// entry plans a strategy under its key.
func (r *run) entry(e scenarios.Entry, job strategies.Job) entry {
	e.Rekey(&job)
	planned := entry{Entry: e, plan: e.Strategy.Plan(e.Args, job)}
	ask := r.ask
	if b := planned.plan.Batch; b != nil && len(planned.plan.Front) == 0 {
		ask.Moment = r.batchMoment
	}
	planned.workload = r.asked(ask)
	if e.Key != nil {
		planned.workload = gen.WithKey(planned.workload, *e.Key)
	}
	return planned
}

// asked is the workload with the columns that the query adds.
func (r *run) asked(ask gen.Ask) gen.Workload {
	return gen.WithAdded(r.source, r.scenario.Job.Adds, ask)
}

// batchMoment is when the batch begins that takes a row which arrives then: all of a batch have one current_timestamp().
// Batches that take long, or few rows at a time, begin later than this.
func (r *run) batchMoment(arrival stream.Time) stream.Time {
	trigger := r.scenario.Job.Spark.Trigger
	switch _, to := r.source.Span(); {
	case r.moments != nil:
		return r.moments(arrival)
	case trigger.AvailableNow:
		return max(arrival, to)
	case trigger.Every == 0:
		return arrival
	}
	return sim.CommitAt(arrival, trigger.Every)
}

// catchUpRate is the number of rows a second that a reader handles in a catch-up replay.
func (r *run) catchUpRate() int64 {
	rate := r.scenario.Job.CatchUpRate
	if rate == 0 {
		seconds := math.Max(float64(r.base.survey.to-r.base.survey.from)/1000, 1)
		rate = 100 * float64(r.base.survey.rows) / seconds / float64(r.scenario.Job.Parallelism)
	}
	return max(int64(math.Round(rate)), 1)
}

// pass is one delivery of the workload to all strategies.
type pass struct {
	survey  *survey
	lanes   []*lane // one a strategy, nil for one that is not run
	missing sim.Missing
	outages []sim.Outage
}

// pass delivers the workload once. Batches are made by one goroutine while the strategies work on the batch before; a
// strategy handles every batch in one piece, so that nothing depends on how many processors there are.
func (r *run) pass(ctx context.Context, stage string, s *survey) (*pass, error) {
	from, to := r.workload.Span()
	feed := r.newFeed()
	result := &pass{survey: s}
	var handlers []handler
	for _, e := range r.entries {
		var l *lane
		if e.runs() {
			var err error
			if l, err = r.newLane(e, sampleInterval(to-from), s != nil); err != nil {
				return nil, err
			}
			defer l.close()
			handlers = append(handlers, l)
		}
		result.lanes = append(result.lanes, l)
	}
	var rows int64
	last := from
	interrupted := false
	next := func(b *sim.Batch) (bool, error) {
		if interrupted {
			return false, nil
		}
		if interrupted = ctx.Err() != nil; interrupted {
			*b = sim.Batch{Marks: []sim.Mark{{Kind: sim.EndOfInput, At: last}}}
			return true, nil
		}
		ok, err := feed.Next(b)
		if ok && s != nil {
			s.read(b.Plain())
		}
		if n := len(b.Rows); n > 0 {
			rows += int64(n)
			last = b.Rows[n-1].Arrival
			if r.options.Progress != nil {
				r.options.Progress(Progress{stage, rows, last - from, to - from})
			}
		}
		return ok, err
	}
	if err := deliver(next, handlers); err != nil {
		return nil, err
	}
	result.missing, result.outages = feed.Missing(), feed.Outages()
	if interrupted {
		if s != nil {
			s.to = last
		}
		return result, ctx.Err()
	}
	return result, nil
}

// newFeed starts a delivery of the workload.
func (r *run) newFeed() *sim.Feed {
	job := r.scenario.Job
	from, to := r.workload.Span()
	return sim.NewFeed(sim.FeedSpec{
		Workload: r.workload,
		Source: sim.SourceSpec{
			Readers: job.Parallelism, Delay: job.Watermark.Delay, Interval: job.Watermark.Interval,
			IdleAfter: job.Watermark.IdleAfter, PerReader: job.Watermark.Per == "reader",
		},
		Checkpoint: job.Checkpoint.Interval, Sample: sampleInterval(to - from),
		Perturbation: r.perturbation,
		Failures:     r.failurePlan(), CatchUpRate: int64(math.Ceil(job.CatchUpRate)),
		NullTimes: slices.ContainsFunc(r.entries, func(e entry) bool { return e.plan.Batch != nil && e.plan.Refused == "" }),
	})
}

// handler handles batches.
type handler interface{ handle(*sim.Batch) error }

// deliver makes one batch while the handlers handle the one before.
func deliver(next func(*sim.Batch) (bool, error), handlers []handler) error {
	batches := [2]*sim.Batch{{}, {}}
	ok, err := next(batches[0])
	for turn := 0; ok && err == nil; turn ^= 1 {
		made := make(chan struct{})
		var nextOK bool
		var nextErr error
		go func() {
			defer close(made)
			nextOK, nextErr = next(batches[turn^1])
		}()
		err = handleAll(batches[turn], handlers)
		<-made
		ok, err = nextOK, errors.Join(err, nextErr)
	}
	return err
}

// handleAll gives a batch to every handler, on as many processors as there are.
func handleAll(b *sim.Batch, handlers []handler) error {
	var wg sync.WaitGroup
	work := make(chan int)
	errs := make([]error, len(handlers))
	for range min(runtime.GOMAXPROCS(0), len(handlers)) {
		wg.Go(func() {
			for i := range work {
				errs[i] = guarded(handlers[i], b)
			}
		})
	}
	for i := range handlers {
		work <- i
	}
	close(work)
	wg.Wait()
	return errors.Join(errs...)
}

// guarded turns a panic into an internal error, which a goroutine's caller could not recover.
func guarded(h handler, b *sim.Batch) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = sim.InternalError(fmt.Sprintf("%v\n%s", p, debug.Stack()))
		}
	}()
	return h.handle(b)
}

// sampleInterval spreads about 240 samples over the span, at whole seconds.
func sampleInterval(span stream.Time) stream.Time {
	const samples, second = 240, 1000
	return max((span / samples).Floor(second), second)
}
