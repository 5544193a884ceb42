package proof

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deduplab/sim"
	"deduplab/sim/pebble"
	"deduplab/strategies"
	"deduplab/stream"
)

// relation is a change that should not matter.
type relation struct {
	claim string
	ops   []op // what the steps may have beside rows
	// of are the configurations it can be asked of. Nil: all of rules.
	of func(config) bool
	// both runs a strategy without the change and with it. What comes out and the keys known must be equal.
	both func(t fataler, c config, steps []step) (plain, changed []outcome)
	// except are the strategies for which it does not hold.
	except []exception
}

// exception says why a relation does not hold for some configurations, and shows it by the smallest example: without
// any one of the steps both runs are equal.
type exception struct {
	configs []string
	why     string
	// example are steps for the first configuration, plain and changed what comes out of its two runs.
	example        []step
	plain, changed []string
}

type fataler interface{ Fatalf(string, ...any) }

var relations = []relation{
	{
		claim: "a checkpoint changes nothing",
		ops:   []op{watermarkOp, clockOp, checkpointOp},
		both: func(_ fataler, c config, steps []step) (plain, changed []outcome) {
			return run(c, replaced(steps, checkpointOp, clockOp), world{}), run(c, steps, world{})
		},
	},
	{
		claim: "a restart from a checkpoint is as the checkpoint alone",
		ops:   []op{watermarkOp, clockOp, checkpointOp, restartOp},
		both: func(_ fataler, c config, steps []step) (plain, changed []outcome) {
			return run(c, replaced(steps, restartOp, checkpointOp), world{}), run(c, steps, world{})
		},
	},
	{
		claim: "other names of keys come out under those names",
		ops:   []op{watermarkOp, clockOp, checkpointOp},
		both: func(_ fataler, c config, steps []step) (plain, changed []outcome) {
			return renamed(run(c, steps, world{})), run(c, renamedSteps(steps), world{})
		},
	},
	{
		claim: "rows of other keys leave a key alone",
		ops:   []op{clockOp, checkpointOp},
		both: func(_ fataler, c config, steps []step) (plain, changed []outcome) {
			withMarks := withWatermarks(steps)
			alone := withWatermarks(slices.DeleteFunc(slices.Clone(steps), func(s step) bool {
				return s.op == rowOp && s.key != "a"
			}))
			return onlyKey("a", run(c, alone, world{})), onlyKey("a", run(c, withMarks, world{}))
		},
	},
	{
		claim: "a TTL that no key outlives is as none",
		ops:   []op{watermarkOp, clockOp, checkpointOp},
		of:    func(c config) bool { return c.params["ttl"] != "" },
		both: func(_ fataler, c config, steps []step) (plain, changed []outcome) {
			return run(c.with("ttl", "0s"), steps, world{}), run(c.with("ttl", "1000d"), steps, world{})
		},
	},
	{
		claim: "four subtasks are as one",
		ops:   []op{watermarkOp, clockOp, checkpointOp},
		both: func(_ fataler, c config, steps []step) (plain, changed []outcome) {
			return byKey(run(c, steps, world{})), byKey(run(c, steps, world{parallelism: 4}))
		},
	},
	{
		claim: "when everything arrives a second later, everything comes out a second later",
		ops:   []op{watermarkOp, clockOp, checkpointOp},
		both: func(_ fataler, c config, steps []step) (plain, changed []outcome) {
			later := slices.Clone(steps)
			for i := range later {
				later[i].at += second
			}
			return shifted(run(c, steps, world{}), second), run(c, later, world{})
		},
	},
	{
		claim: "a copy that follows at once changes nothing",
		ops:   []op{watermarkOp, clockOp, checkpointOp},
		both: func(_ fataler, c config, steps []step) (plain, changed []outcome) {
			var twice []step
			for _, s := range steps {
				twice = append(twice, s)
				if s.op == rowOp {
					twice = append(twice, s)
				}
			}
			return together(run(c, steps, world{})), together(run(c, twice, world{}))
		},
	},
	{
		claim: "state in Pebble is as state in memory",
		ops:   []op{watermarkOp, clockOp, checkpointOp, restartOp},
		both: func(t fataler, c config, steps []step) (plain, changed []outcome) {
			return run(c, steps, world{}), run(c, steps, world{newTable: inPebble(t)})
		},
	},
}

// inPebble makes tables that spill all they can to a store in memory, at every moment.
func inPebble(t fataler) func(int, stream.Time) *sim.Table {
	return func(_ int, ttl stream.Time) *sim.Table {
		cold, err := pebble.Open("")
		if err != nil {
			t.Fatalf("%v", err)
		}
		return sim.NewTable(sim.TableSpec{TTL: ttl, Cold: cold, SpillAt: 1})
	}
}

func replaced(steps []step, from, to op) []step {
	steps = slices.Clone(steps)
	for i := range steps {
		if steps[i].op == from {
			steps[i].op = to
		}
	}
	return steps
}

var otherNames = map[string]string{"a": "z", "b": "y", "c": "x"}

func renamedSteps(steps []step) []step {
	steps = slices.Clone(steps)
	for i := range steps {
		steps[i].key = otherNames[steps[i].key]
	}
	return steps
}

func renamed(outcomes []outcome) []outcome {
	return each(outcomes, func(c change) change {
		c.key = otherNames[c.key]
		return c
	})
}

func shifted(outcomes []outcome, by stream.Time) []outcome {
	return each(outcomes, func(c change) change {
		c.at += by
		return c
	})
}

func each(outcomes []outcome, f func(change) change) []outcome {
	for i := range outcomes {
		for j, c := range outcomes[i].changes {
			outcomes[i].changes[j] = f(c)
		}
	}
	return outcomes
}

// withWatermarks lets each row that is the latest so far be followed by a watermark at its time, as WATERMARK FOR
// created_at AS created_at does.
func withWatermarks(steps []step) []step {
	var out []step
	reached := none
	for _, s := range steps {
		out = append(out, s)
		if s.op == rowOp && s.event > reached {
			reached = s.event
			out = append(out, step{op: watermarkOp, at: s.at, watermark: reached})
		}
	}
	return out
}

// together is the outcome of all steps as one, as which step sent what does not matter.
func together(outcomes []outcome) []outcome {
	all := outcome{}
	for _, o := range outcomes {
		all.changes = append(all.changes, o.changes...)
		all.live = o.live
	}
	return []outcome{all}
}

func onlyKey(key string, outcomes []outcome) []outcome {
	all := together(outcomes)
	all[0].live = 0
	all[0].changes = slices.DeleteFunc(all[0].changes, func(c change) bool { return c.key != key })
	return all
}

// byKey brings what each step sent into the order of keys.
func byKey(outcomes []outcome) []outcome {
	for _, o := range outcomes {
		slices.SortStableFunc(o.changes, func(a, b change) int { return strings.Compare(a.key, b.key) })
	}
	return outcomes
}

// TestRelations tries every relation on every configuration of rules that it can be asked of.
func TestRelations(t *testing.T) {
	for _, r := range relations {
		t.Run(r.claim, func(t *testing.T) {
			for _, tc := range rules {
				c := configure(tc.config)
				if r.of != nil && !r.of(c) {
					continue
				}
				if e := r.exceptionFor(tc.config); e == nil {
					t.Run(tc.config, func(t *testing.T) {
						t.Parallel()
						rapid.Check(t, func(t *rapid.T) {
							steps := anySteps(r.ops...).Draw(t, "steps")
							if plain, changed := r.lines(t, c, steps); !slices.Equal(plain, changed) {
								t.Fatalf("%s\n%s", side(plain, changed), literal(steps))
							}
						})
					})
				}
			}
		})
	}
}

// TestExceptions shows for every exception that the relation does not hold, by an example that has no step too many.
func TestExceptions(t *testing.T) {
	for _, r := range relations {
		for _, e := range r.except {
			t.Run(r.claim+"/"+e.configs[0], func(t *testing.T) {
				c := configure(e.configs[0])
				plain, changed := r.both(t, c, e.example)
				plan := c.plan()
				if got := emits(c, plan, plain); !slices.Equal(got, e.plain) {
					t.Errorf("plain: %q, want %q", got, e.plain)
				}
				if got := emits(c, plan, changed); !slices.Equal(got, e.changed) {
					t.Errorf("changed: %q, want %q", got, e.changed)
				}
				for i := range e.example {
					fewer := slices.Delete(slices.Clone(e.example), i, i+1)
					if plain, changed := r.lines(t, c, fewer); !slices.Equal(plain, changed) {
						t.Errorf("step %d is not needed", i+1)
					}
				}
			})
		}
	}
}

func (r *relation) exceptionFor(config string) *exception {
	for i := range r.except {
		if slices.Contains(r.except[i].configs, config) {
			return &r.except[i]
		}
	}
	return nil
}

// lines are what the two runs are compared by.
func (r *relation) lines(t fataler, c config, steps []step) (plain, changed []string) {
	a, b := r.both(t, c, steps)
	plan := c.plan()
	return written(c, plan, a), written(c, plan, b)
}

// written leaves the late counter out: a restart sets it to 0, and it counts when a buffer is flushed.
func written(c config, plan strategies.Plan, outcomes []outcome) []string {
	lines := make([]string, len(outcomes))
	for i, o := range outcomes {
		o.late = 0
		lines[i] = c.written(o, plan)
	}
	return lines
}

func emits(c config, plan strategies.Plan, outcomes []outcome) []string {
	var lines []string
	for _, o := range outcomes {
		lines = append(lines, texts(c.inOrder(o.changes, plan), plan)...)
	}
	return lines
}

func side(plain, changed []string) string {
	var b strings.Builder
	for i := range plain {
		if plain[i] != changed[i] {
			fmt.Fprintf(&b, "step %d\nplain   %s\nchanged %s\n", i+1, plain[i], changed[i])
		}
	}
	return b.String()
}

// literal writes steps as an example has them.
func literal(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		at := stream.FormatDuration(s.at)
		switch s.op {
		case rowOp:
			fmt.Fprintf(&b, "arrives(%q, %q, %q, %s), ", at, s.key, stream.FormatDuration(s.event), priceText(s.price))
		case watermarkOp:
			fmt.Fprintf(&b, "watermark(%q, %q), ", at, stream.FormatDuration(s.watermark))
		default:
			fmt.Fprintf(&b, "%s(%q), ", [...]string{clockOp: "clock", checkpointOp: "checkpoint", restartOp: "restart"}[s.op], at)
		}
	}
	return b.String()
}
