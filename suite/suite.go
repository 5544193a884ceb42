// Package suite is what every strategy must stand, one of the lab's or of your own: laws that the lab's numbers rest
// on, tried on random steps. A law that does not hold is shown by the fewest steps that break it.
//
//	func TestMine(t *testing.T) {
//		suite.Run(t, suite.Case{Strategy: "mine", Params: map[string]string{"ttl": "10s"}})
//	}
package suite

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deduplab/harness"
	"deduplab/lab"
	"deduplab/scenarios"
	"deduplab/strategies"
	"deduplab/stream"
)

// Case is a strategy with its parameters.
type Case struct {
	Strategy string // its registered name
	Params   map[string]string
	Job      strategies.Job // what it runs in; the schema is that of [harness.Orders]
	// Except says of laws that do not hold why not.
	Except map[Law]string
}

// Law is one thing that must hold.
type Law string

// The laws.
const (
	// Deterministic: the same steps send the same changes.
	Deterministic Law = "the same steps send the same"
	// Declared: no kind of change goes out that the plan does not declare.
	Declared Law = "only declared kinds go out"
	// Retracts: an update or a deletion takes back a row that stands in the result.
	Retracts Law = "only rows that stand are taken back"
	// Accounted: each row that goes in is emitted, dropped or held.
	Accounted Law = "every row is accounted for"
	// Restart: a restart from a checkpoint changes nothing beside what the checkpoint does.
	Restart Law = "a restart is as the checkpoint alone"
	// Keys: what becomes of a key does not depend on the rows of others.
	Keys Law = "keys do not meet"
)

// Laws lists the laws.
var Laws = []Law{Deterministic, Declared, Retracts, Accounted, Restart, Keys}

// Run puts a strategy through the laws, each in a test of its own.
func Run(t *testing.T, c Case) {
	t.Helper()
	plan, err := c.plan()
	if err != nil {
		t.Fatal(err)
	}
	for law := range c.Except {
		if !slices.Contains(Laws, law) {
			t.Errorf("there is no law %q", law)
		}
	}
	for _, law := range Laws {
		t.Run(string(law), func(t *testing.T) {
			if why := c.Except[law]; why != "" {
				t.Skip("it does not hold: " + why)
			}
			switch {
			case law == Accounted:
				c.account(t)
				return
			case plan.Batch != nil:
				t.Skip("a micro-batch query cannot be fed by hand")
			case law == Keys && plan.SharedCache:
				t.Skip("the plan says that keys share a cache")
			}
			rapid.Check(t, func(t *rapid.T) { c.check(t, law, plan) })
		})
	}
}

// plan is what the planner makes of the case.
func (c Case) plan() (strategies.Plan, error) {
	s, err := strategies.Find(c.Strategy)
	if err != nil {
		return strategies.Plan{}, err
	}
	job := c.Job
	job.Schema = harness.Orders()
	args, faults := s.Resolve(c.Params, job.Schema)
	if faults != nil {
		return strategies.Plan{}, fmt.Errorf("%s: %s", c.Strategy, faults[0].Message)
	}
	plan := s.Plan(args, job)
	if plan.Refused != "" {
		return plan, fmt.Errorf("%s: the job refuses it: %s", c.Strategy, plan.Refused)
	}
	return plan, nil
}

func (c Case) harness() (*harness.Harness, error) {
	return harness.New(harness.Config{Strategy: c.Strategy, Params: c.Params, Job: c.Job})
}

// action is what a step does.
type action uint8

const (
	insert action = iota
	watermark
	clock
	checkpoint
	restart // a checkpoint, and a restore from it
)

type step struct {
	do    action
	key   string
	event stream.Time
	price int
	at    stream.Time // the clock, or the watermark
}

// String writes a step as a semantics test has it.
func (s step) String() string {
	switch s.do {
	case insert:
		return fmt.Sprintf("- row: {at: %s, order_id: %s, created_at: %s, price: %d}", stream.FormatDuration(s.at), s.key,
			stream.FormatDuration(s.event), s.price)
	case watermark:
		return "- watermark: " + stream.FormatDuration(s.at)
	case clock:
		return "- clock: " + stream.FormatDuration(s.at)
	case checkpoint:
		return "- checkpoint: true"
	}
	return "- checkpoint: true\n- restore: true"
}

// draw draws steps. The clock does not go back, nor does the watermark.
func draw(t *rapid.T) []step {
	var steps []step
	now, mark := stream.Time(0), stream.Time(0)
	const second = 1000
	for range rapid.IntRange(1, 20).Draw(t, "steps") {
		actions := []action{insert, insert, insert, watermark, clock, checkpoint, restart}
		s := step{do: rapid.SampledFrom(actions).Draw(t, "do")}
		switch s.do {
		case insert:
			now += second * stream.Time(rapid.IntRange(0, 6).Draw(t, "after"))
			s.at, s.key = now, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
			s.event = second * stream.Time(rapid.IntRange(1, 30).Draw(t, "event time"))
			s.price = rapid.IntRange(1, 3).Draw(t, "price")
		case watermark:
			mark += second * stream.Time(rapid.IntRange(0, 10).Draw(t, "by"))
			s.at = mark
		case clock:
			now += second * stream.Time(rapid.IntRange(0, 15).Draw(t, "after"))
			s.at = now
		}
		steps = append(steps, s)
	}
	return steps
}

// sent is what one step sent.
type sent []harness.Output

// run feeds the steps, and at last the end of the input.
func (c Case) run(t *rapid.T, steps []step) []sent {
	h, err := c.harness()
	if err != nil {
		t.Fatal(err)
	}
	var out []sent
	mark := stream.Time(0)
	do := func(err error, s fmt.Stringer) {
		if err != nil {
			t.Fatalf("%v: %v", s, err)
		}
	}
	for _, s := range steps {
		switch s.do {
		case insert:
			do(h.Clock(s.at), s)
			row := harness.Columns{"order_id": s.key, "created_at": stream.FormatDuration(s.event), "price": s.price}
			do(h.Insert(row), s)
		case watermark:
			mark = s.at
			do(h.Watermark(s.at), s)
		case clock:
			do(h.Clock(s.at), s)
		case checkpoint, restart:
			do(h.Checkpoint(), s)
			if s.do == restart {
				do(h.Restore(), s)
				do(h.Watermark(mark), s) // the source sends it again
			}
		}
		out = append(out, h.Take())
	}
	do(h.End(), step{do: clock})
	return append(out, h.Take())
}

func (c Case) check(t *rapid.T, law Law, plan strategies.Plan) {
	steps := draw(t)
	out := c.run(t, steps)
	broken := func(format string, args ...any) {
		lines := make([]string, len(steps))
		for i, s := range steps {
			lines[i] = s.String()
		}
		t.Fatalf("%s: %s\n%s", c.Strategy, fmt.Sprintf(format, args...), strings.Join(lines, "\n"))
	}
	switch law {
	case Deterministic:
		if again := c.run(t, steps); text(out, "") != text(again, "") {
			broken("it sends\n%sand the same steps again\n%s", text(out, ""), text(again, ""))
		}
	case Declared:
		for _, o := range slices.Concat(out...) {
			if !o.Side && !plan.Changelog.Has(o.Kind) && plan.Misdeclared == "" {
				broken("it sends %v, but declares %v", o, plan.Changelog.Names())
			}
		}
	case Retracts:
		if taken := takenBack(slices.Concat(out...), plan); taken != "" {
			broken("it takes back what does not stand: %s", taken)
		}
	case Restart:
		alone := slices.Clone(steps)
		for i := range alone {
			if alone[i].do == restart {
				alone[i].do = checkpoint
			}
		}
		if without := c.run(t, alone); text(out, "") != text(without, "") {
			broken("it sends\n%sand without the restarts\n%s", text(out, ""), text(without, ""))
		}
	case Keys:
		var own []step
		for _, s := range steps {
			if s.do == insert && s.key != "a" {
				s = step{do: clock, at: s.at}
			}
			own = append(own, s)
		}
		if apart := c.run(t, own); text(out, "a") != text(apart, "a") {
			broken("of the key a it sends\n%sand without the other keys\n%s", text(out, "a"), text(apart, "a"))
		}
	}
}

// text writes what was sent, of one key or of all. What one step sends is sorted, because engines leave the order of
// keys open.
func text(out []sent, key string) string {
	var b strings.Builder
	for _, step := range out {
		var lines []string
		for _, o := range step {
			if id, ok := o.Get("order_id"); key == "" || ok && id.Text == key {
				lines = append(lines, fmt.Sprintf("  %v at %s\n", o, stream.FormatDuration(o.At)))
			}
		}
		slices.Sort(lines)
		b.WriteString(strings.Join(lines, ""))
	}
	return b.String()
}

// takenBack finds a row that was taken back and does not stand; it is empty where there is none.
func takenBack(out []harness.Output, plan strategies.Plan) string {
	if plan.ToChangelog {
		return "" // all changes are inserted rows
	}
	standing := map[string]int{}
	for _, o := range out {
		if o.Side {
			continue
		}
		row := strings.TrimSpace(strings.TrimPrefix(o.String(), o.Kind.String()))
		switch o.Kind {
		case stream.Insert, stream.UpdateAfter:
			standing[row]++
		case stream.UpdateBefore, stream.Delete:
			if standing[row]--; standing[row] < 0 {
				return o.String()
			}
		}
	}
	return ""
}

// account runs whole scenarios: the lab counts the rows at every checkpoint, and says when they do not add up.
func (c Case) account(t *testing.T) {
	var params strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.Params)) {
		fmt.Fprintf(&params, ", %s: %q", name, c.Params[name])
	}
	for seed := range 3 {
		src := fmt.Sprintf(stormy, seed, c.Strategy, params.String())
		s, err := scenarios.Load(c.Strategy+".yaml", []byte(src), nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Job.Sink, s.Job.MiniBatch, s.Job.Input, s.Job.Flink = c.Job.Sink, c.Job.MiniBatch, c.Job.Input, c.Job.Version
		if _, err := lab.Run(context.Background(), s, lab.Options{}); err != nil {
			t.Fatal(err)
		}
	}
}

// stormy has disorder, late rows and copies; %d is the seed, then come the strategy and its parameters.
const stormy = `scenario: suite
seed: %d
workload:
  duration: 2m
  rate: 5/s
  fields: {order_id: {int: [1, 300]}, quantity: {int: [1, 9]}, price: {decimal: [1.00, 9.00]}}
  key: order_id
  event_time: {field: created_at}
  partitions: {count: 2}
  transport: {uniform: [0s, 20s]}
  duplicates: [{origin: retry, rate: 30%%, delay: {uniform: [0s, 1m]}}]
job: {parallelism: 2, watermark: {delay: 5s}, checkpoint: {interval: 10s}}
strategies: [%s: {id: case%s}]
`
