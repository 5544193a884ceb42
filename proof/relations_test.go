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
	// both runs a strategy without the change and with it. What comes out must be equal.
	both  func(t fataler, c config, steps []step) (plain, changed []outcome)
	known bool // compare what is diverted, how many rows are late, and the numbers of known keys and of timers, too
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
		except: []exception{
			{
				configs: []string{"nontime order_by=price asc ttl=10s",
					"nontime order_by=price asc cache=2 ttl=10s", "nontime order_by=price desc ttl=10s",
					"nontime order_by=order_id asc ttl=10s"},
				why: "A checkpoint of a Rank writes the cached rows to state, where their TTL starts " +
					"anew.",
				example: []step{arrives("0s", "a", "1s", 1), checkpoint("1ms"), arrives("10s", "a", "1s", 1)},
				plain: []string{
					"+I {order_id: a, created_at: 1s, price: 1}",
					"+I {order_id: a, created_at: 1s, price: 1}",
				},
				changed: []string{"+I {order_id: a, created_at: 1s, price: 1}"},
			},
			{
				configs: []string{"proctime-asc mini_batch", "proctime-asc ttl=10s mini_batch",
					"proctime-desc mini_batch", "select-distinct-key ttl=10s mini_batch",
					"rowtime-asc mini_batch", "rowtime-desc mini_batch",
					"rowtime-desc ttl=10s mini_batch compact"},
				why:     "A checkpoint ends the batch, so rows come out earlier.",
				example: []step{arrives("0s", "a", "1s", 1), checkpoint("0s")},
				changed: []string{"+I {order_id: a, created_at: 1s, price: 1}"},
			},
		},
	},
	{
		claim: "a restart from a checkpoint is as the checkpoint alone",
		ops:   []op{watermarkOp, clockOp, checkpointOp, restartOp},
		both: func(_ fataler, c config, steps []step) (plain, changed []outcome) {
			return run(c, replaced(steps, restartOp, checkpointOp), world{}), run(c, steps, world{})
		},
		except: []exception{
			{
				configs: []string{"nontime order_by=price asc ttl=10s",
					"nontime order_by=price asc cache=2 ttl=10s", "nontime order_by=price desc ttl=10s",
					"nontime order_by=order_id asc ttl=10s"},
				why: "The cache of a Rank is lost, so the next checkpoint writes no row of it to state " +
					"and extends no TTL.",
				example: []step{arrives("0s", "a", "1s", 1), restart("0s"), checkpoint("1ms"),
					arrives("10s", "a", "1s", 1)},
				plain: []string{"+I {order_id: a, created_at: 1s, price: 1}"},
				changed: []string{
					"+I {order_id: a, created_at: 1s, price: 1}",
					"+I {order_id: a, created_at: 1s, price: 1}",
				},
			},
			{
				configs: []string{"rowtime-asc", "rowtime-asc ttl=10s"},
				why:     "The operator has no watermark until the next one comes, so a late row is taken.",
				example: []step{watermark("0s", "2s"), restart("0s"), arrives("0s", "a", "1s", 1),
					watermark("0s", "2s")},
				changed: []string{"+I {order_id: a, created_at: 1s, price: 1}"},
			},
			{
				configs: []string{"late-dlq main=none"},
				why:     "CURRENT_WATERMARK is NULL until the next watermark comes, so a late row passes.",
				example: []step{watermark("0s", "1s"), restart("0s"), arrives("0s", "a", "1s", 1)},
				changed: []string{"+I {order_id: a, created_at: 1s, price: 1}"},
			},
			{
				configs: []string{"late-dlq main=window-dedup size=5s", "late-dlq size=5s"},
				why:     "So does one whose window is open.",
				example: []step{watermark("0s", "1s"), restart("0s"), arrives("0s", "a", "1s", 1),
					watermark("0s", "4s999ms")},
				changed: []string{"+I {window_start: 0s, window_end: 5s, order_id: a, created_at: 1s, price: 1}"},
			},
			{
				configs: []string{"late-dlq main=none null_check=false"},
				why: "CURRENT_WATERMARK is NULL until the next watermark comes, and without an IS NULL " +
					"test every row is lost.",
				example: []step{watermark("0s", "1s"), restart("0s"), arrives("0s", "a", "2s", 1)},
				plain:   []string{"+I {order_id: a, created_at: 2s, price: 1}"},
			},
			{
				configs: []string{"late-dlq main=none branch=dlq"},
				why:     "CURRENT_WATERMARK is NULL until the next watermark comes, so no row is late.",
				example: []step{watermark("0s", "1s"), restart("0s"), arrives("0s", "a", "1s", 1)},
				plain:   []string{"+I {order_id: a, created_at: 1s, price: 1}"},
			},
			{
				configs: []string{"rowtime-asc mini_batch", "rowtime-desc mini_batch",
					"rowtime-desc ttl=10s mini_batch compact"},
				why: "The assigner of mini-batch forgets which interval it has ended, so the next " +
					"watermark ends a batch.",
				example: []step{watermark("0s", "5s"), restart("0s"), arrives("0s", "a", "1s", 1),
					watermark("0s", "5s")},
				changed: []string{"+I {order_id: a, created_at: 1s, price: 1}"},
			},
			{
				configs: []string{"proctime-asc mini_batch", "proctime-asc ttl=10s mini_batch",
					"proctime-desc mini_batch", "select-distinct-key ttl=10s mini_batch"},
				why:     "The clock's first batch ends an interval after the restart, not at a multiple of the interval.",
				example: []step{restart("1s"), arrives("2s", "a", "1s", 1), clock("3s")},
				plain:   []string{"+I {order_id: a, created_at: 1s, price: 1}"},
			},
		},
	},
	{
		claim: "a restart ahead of the first watermark is as a checkpoint alone",
		ops:   []op{watermarkOp, clockOp, checkpointOp, restartOp},
		both: func(_ fataler, c config, steps []step) (plain, changed []outcome) {
			first := slices.IndexFunc(steps, func(s step) bool { return s.op == watermarkOp })
			if first >= 0 {
				steps = slices.Concat(steps[:first], replaced(steps[first:], restartOp, checkpointOp))
			}
			return run(c, replaced(steps, restartOp, checkpointOp), world{}), run(c, steps, world{})
		},
		known: true,
		except: []exception{
			{
				configs: []string{"nontime order_by=price asc ttl=10s",
					"nontime order_by=price asc cache=2 ttl=10s", "nontime order_by=price desc ttl=10s",
					"nontime order_by=order_id asc ttl=10s"},
				why: "The cache of a Rank is lost: see above.",
				example: []step{arrives("0s", "a", "1s", 1), restart("0s"), checkpoint("1ms"),
					arrives("10s", "a", "1s", 1)},
				plain: []string{"+I {order_id: a, created_at: 1s, price: 1}"},
				changed: []string{"+I {order_id: a, created_at: 1s, price: 1}",
					"+I {order_id: a, created_at: 1s, price: 1}"},
			},
			{
				configs: []string{"proctime-asc mini_batch", "proctime-asc ttl=10s mini_batch",
					"proctime-desc mini_batch", "select-distinct-key ttl=10s mini_batch"},
				why:     "The clock's first batch ends an interval after the restart: see above.",
				example: []step{restart("1s"), arrives("2s", "a", "1s", 1), clock("3s")},
				plain:   []string{"+I {order_id: a, created_at: 1s, price: 1}"},
			},
		},
	},
	{
		claim: "a task that knows when its checkpoints come is as one that does not",
		ops:   []op{watermarkOp, clockOp, restartOp},
		both: func(_ fataler, c config, steps []step) (plain, changed []outcome) {
			steps = onSchedule(steps, 4*second)
			return run(c, steps, world{}), run(c, steps, world{checkpoints: 4 * second})
		},
		known: true,
	},
	{
		claim: "what happens to other tasks does not reach one that is restored",
		ops:   []op{watermarkOp, clockOp, checkpointOp, restartOp},
		both: func(_ fataler, c config, steps []step) (plain, changed []outcome) {
			return run(c, steps, world{}), run(c, steps, world{detours: true})
		},
		known: true,
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
			alone := slices.Clone(steps)
			for i := range alone {
				if alone[i].op == rowOp && alone[i].key != "a" {
					alone[i].op = clockOp
				}
			}
			return onlyA(run(c, withWatermarks(alone), world{})), onlyA(run(c, withWatermarks(steps), world{}))
		},
		except: []exception{
			{
				configs: []string{"rowtime-asc", "rowtime-asc ttl=10s"},
				why:     "A row of another key moves the watermark, and the row is late.",
				example: []step{arrives("0s", "b", "2s", 1), arrives("0s", "a", "1s", 1)},
				plain:   []string{"+I {order_id: a, created_at: 1s, price: 1}"},
			},
			{
				configs: []string{"window-dedup size=5s", "window-dedup size=5s keep=last",
					"window-topn size=5s order_by=price asc", "tumble-agg size=5s phases=one",
					"tumble-agg size=5s", "late-dlq main=window-dedup size=5s", "late-dlq size=5s"},
				why:     "A row of another key moves the watermark to the end of the window.",
				example: []step{arrives("0s", "a", "1s", 1), arrives("0s", "b", "4s999ms", 1)},
				changed: []string{"+I {window_start: 0s, window_end: 5s, order_id: a, created_at: 1s, price: 1}"},
			},
			{
				configs: []string{"late-dlq main=none"},
				why:     "A row of another key moves the watermark, and the row is diverted.",
				example: []step{arrives("0s", "b", "1s", 1), arrives("0s", "a", "1s", 1)},
				plain:   []string{"+I {order_id: a, created_at: 1s, price: 1}"},
			},
			{
				configs: []string{"late-dlq main=none null_check=false"},
				why:     "A row of another key brings the first watermark, and the row is not lost.",
				example: []step{arrives("0s", "b", "1s", 1), arrives("0s", "a", "2s", 1)},
				changed: []string{"+I {order_id: a, created_at: 2s, price: 1}"},
			},
			{
				configs: []string{"late-dlq main=none branch=dlq"},
				why:     "A row of another key moves the watermark, and the row is late.",
				example: []step{arrives("0s", "b", "1s", 1), arrives("0s", "a", "1s", 1)},
				changed: []string{"+I {order_id: a, created_at: 1s, price: 1}"},
			},
			{
				configs: []string{"nontime order_by=price asc cache=2 ttl=10s"},
				why: "Rows of other keys push the key out of the cache to state, where its TTL starts " +
					"anew.",
				example: []step{arrives("0s", "a", "1s", 1), arrives("1ms", "b", "1s", 1), arrives("1ms", "c", "1s", 1),
					arrives("10s", "a", "1s", 1)},
				plain: []string{
					"+I {order_id: a, created_at: 1s, price: 1}",
					"+I {order_id: a, created_at: 1s, price: 1}",
				},
				changed: []string{"+I {order_id: a, created_at: 1s, price: 1}"},
			},
			{
				configs: []string{"rowtime-asc mini_batch", "rowtime-desc mini_batch",
					"rowtime-desc ttl=10s mini_batch compact"},
				why:     "A row of another key moves the watermark, which ends the batch.",
				example: []step{arrives("0s", "a", "1s", 1), arrives("0s", "b", "4s999ms", 1)},
				changed: []string{"+I {order_id: a, created_at: 1s, price: 1}"},
			},
		},
	},
	{
		claim: "a TTL that no key outlives is as none",
		ops:   []op{watermarkOp, clockOp, checkpointOp},
		of:    func(c config) bool { return c.params["ttl"] != "" },
		both: func(_ fataler, c config, steps []step) (plain, changed []outcome) {
			return run(c.with("ttl", "0s"), steps, world{}), run(c.with("ttl", "1000d"), steps, world{})
		},
		except: []exception{
			{
				configs: []string{"select-distinct-key ttl=10s", "select-distinct ttl=10s",
					"group-by-min column=price ttl=10s"},
				why:     "With a TTL a group by sends every copy on, as -U/+U of the same row.",
				example: []step{arrives("0s", "a", "1s", 1), arrives("0s", "a", "1s", 1)},
				plain:   []string{"+I {order_id: a}"},
				changed: []string{"+I {order_id: a}", "-U {order_id: a}", "+U {order_id: a}"},
			},
			{
				configs: []string{"select-distinct-key ttl=10s mini_batch"},
				why:     "So it does with every batch that has a copy.",
				example: []step{arrives("0s", "a", "1s", 1), checkpoint("0s"), arrives("0s", "a", "1s", 1),
					checkpoint("0s")},
				plain:   []string{"+I {order_id: a}"},
				changed: []string{"+I {order_id: a}", "-U {order_id: a}", "+U {order_id: a}"},
			},
			{
				configs: []string{"proctime-desc ttl=10s"},
				why:     "With a TTL a row that equals the one before is an update.",
				example: []step{arrives("0s", "a", "1s", 1), arrives("0s", "a", "1s", 1)},
				plain:   []string{"+I {order_id: a, created_at: 1s, price: 1}"},
				changed: []string{
					"+I {order_id: a, created_at: 1s, price: 1}",
					"-U {order_id: a, created_at: 1s, price: 1}",
					"+U {order_id: a, created_at: 1s, price: 1}",
				},
			},
		},
	},
	{
		claim: "four subtasks are as one",
		ops:   []op{watermarkOp, clockOp, checkpointOp},
		both: func(_ fataler, c config, steps []step) (plain, changed []outcome) {
			return byKey(run(c, steps, world{})), byKey(run(c, steps, world{parallelism: 4}))
		},
		except: []exception{
			{
				configs: []string{"nontime order_by=price asc cache=2 ttl=10s"},
				why: "Each subtask has a cache of its own, so a key that one subtask evicts, which " +
					"restarts its TTL, stays cached.",
				example: []step{arrives("0s", "a", "1s", 1), arrives("1ms", "b", "1s", 1), arrives("1ms", "c", "1s", 1),
					arrives("10s", "a", "1s", 1)},
				plain: []string{
					"+I {order_id: a, created_at: 1s, price: 1}",
					"+I {order_id: b, created_at: 1s, price: 1}",
					"+I {order_id: c, created_at: 1s, price: 1}",
				},
				changed: []string{
					"+I {order_id: a, created_at: 1s, price: 1}",
					"+I {order_id: b, created_at: 1s, price: 1}",
					"+I {order_id: c, created_at: 1s, price: 1}",
					"+I {order_id: a, created_at: 1s, price: 1}",
				},
			},
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
		except: []exception{
			{
				configs: []string{"proctime-asc mini_batch", "proctime-asc ttl=10s mini_batch",
					"proctime-desc mini_batch", "select-distinct-key ttl=10s mini_batch"},
				why: "A batch ends when the clock reaches a multiple of the interval, whenever its " +
					"first row came.",
				example: []step{arrives("0s", "a", "1s", 1), clock("2s")},
				changed: []string{"+I {order_id: a, created_at: 1s, price: 1}"},
			},
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
		except: []exception{
			{
				configs: []string{"pass-through", "pk-not-enforced", "late-dlq main=none"},
				why:     "It removes nothing.",
				example: []step{arrives("0s", "a", "1s", 1)},
				plain:   []string{"+I {order_id: a, created_at: 1s, price: 1}"},
				changed: []string{
					"+I {order_id: a, created_at: 1s, price: 1}",
					"+I {order_id: a, created_at: 1s, price: 1}",
				},
			},
			{
				configs: []string{"late-dlq main=none null_check=false"},
				why:     "It removes nothing.",
				example: []step{watermark("0s", "1s"), arrives("0s", "a", "2s", 1)},
				plain:   []string{"+I {order_id: a, created_at: 2s, price: 1}"},
				changed: []string{
					"+I {order_id: a, created_at: 2s, price: 1}",
					"+I {order_id: a, created_at: 2s, price: 1}",
				},
			},
			{
				configs: []string{"late-dlq main=none branch=dlq"},
				why:     "The dead letter queue holds copies, too.",
				example: []step{watermark("0s", "1s"), arrives("0s", "a", "1s", 1)},
				plain:   []string{"+I {order_id: a, created_at: 1s, price: 1}"},
				changed: []string{
					"+I {order_id: a, created_at: 1s, price: 1}",
					"+I {order_id: a, created_at: 1s, price: 1}",
				},
			},
			{
				configs: []string{"nontime order_by=price asc top=2"},
				why:     "The first two rows of a key are kept, copies or not.",
				example: []step{arrives("0s", "a", "1s", 1)},
				plain:   []string{"+I {order_id: a, created_at: 1s, price: 1}"},
				changed: []string{
					"+I {order_id: a, created_at: 1s, price: 1}",
					"+I {order_id: a, created_at: 1s, price: 1}",
				},
			},
			{
				configs: []string{"rowtime-desc", "rowtime-desc ttl=10s", "proctime-desc ttl=10s",
					"select-distinct ttl=10s", "select-distinct hint=10s", "select-distinct-key ttl=10s",
					"group-by-min column=price ttl=10s"},
				why:     "A copy is an update.",
				example: []step{arrives("0s", "a", "1s", 1)},
				plain:   []string{"+I {order_id: a, created_at: 1s, price: 1}"},
				changed: []string{
					"+I {order_id: a, created_at: 1s, price: 1}",
					"-U {order_id: a, created_at: 1s, price: 1}",
					"+U {order_id: a, created_at: 1s, price: 1}",
				},
			},
			{
				configs: []string{"rowtime-desc mini_batch"},
				why:     "A copy is an update within the batch, too.",
				example: []step{arrives("0s", "a", "1s", 1), watermark("0s", "5s")},
				plain:   []string{"+I {order_id: a, created_at: 1s, price: 1}"},
				changed: []string{
					"+I {order_id: a, created_at: 1s, price: 1}",
					"-U {order_id: a, created_at: 1s, price: 1}",
					"+U {order_id: a, created_at: 1s, price: 1}",
				},
			},
			{
				configs: []string{"proctime-desc"},
				why:     "Once a key was updated, a copy is an update.",
				example: []step{arrives("0s", "a", "1s", 2), arrives("0s", "a", "1s", 1)},
				plain: []string{
					"+I {order_id: a, created_at: 1s, price: 2}",
					"-U {order_id: a, created_at: 1s, price: 2}",
					"+U {order_id: a, created_at: 1s, price: 1}",
				},
				changed: []string{
					"+I {order_id: a, created_at: 1s, price: 2}",
					"-U {order_id: a, created_at: 1s, price: 2}",
					"+U {order_id: a, created_at: 1s, price: 1}",
					"-U {order_id: a, created_at: 1s, price: 1}",
					"+U {order_id: a, created_at: 1s, price: 1}",
				},
			},
		},
	},
	{
		claim: "state in Pebble is as state in memory",
		ops:   []op{watermarkOp, clockOp, checkpointOp, restartOp},
		known: true,
		both: func(t fataler, c config, steps []step) (plain, changed []outcome) {
			return run(c, steps, world{}), runInPebble(t, c, steps)
		},
	},
}

// runInPebble runs a strategy whose tables spill all they can, at every moment, to a store in memory.
func runInPebble(t fataler, c config, steps []step) []outcome {
	var stores []sim.Cold
	must := func(err error) {
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
	defer func() {
		for _, store := range stores {
			must(store.Close())
		}
	}()
	return run(c, steps, world{newTable: func(_ int, ttl stream.Time) *sim.Table {
		store, err := pebble.Open("")
		must(err)
		stores = append(stores, store)
		return sim.NewTable(sim.TableSpec{TTL: ttl, Cold: store, SpillAt: 1})
	}})
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

// onSchedule takes a checkpoint at every multiple of an interval, after all else of that moment. A restart among the
// steps happens from the next one.
func onSchedule(steps []step, interval stream.Time) []step {
	var out []step
	next, takes := interval, checkpointOp
	for _, s := range steps {
		for ; next < s.at; next += interval {
			out = append(out, step{op: takes, at: next})
			takes = checkpointOp
		}
		if s.op == restartOp {
			takes = restartOp
		} else {
			out = append(out, s)
		}
	}
	return out
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
	var all outcome
	for _, o := range outcomes {
		all.changes = append(all.changes, o.changes...)
	}
	return []outcome{all}
}

func onlyA(outcomes []outcome) []outcome {
	all := together(outcomes)
	all[0].changes = slices.DeleteFunc(all[0].changes, func(c change) bool { return c.key != "a" })
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
				for _, other := range e.configs {
					if plain, changed := r.lines(t, configure(other), e.example); slices.Equal(plain, changed) {
						t.Errorf("it holds for %s", other)
					}
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
	return r.written(c, a), r.written(c, b)
}

func (r *relation) written(c config, outcomes []outcome) []string {
	plan, lines := c.plan(), make([]string, len(outcomes))
	for i, o := range outcomes {
		if !r.known {
			o.diverted, o.late, o.live = nil, 0, 0
		}
		lines[i] = c.written(o, plan)
		if r.known {
			lines[i] += fmt.Sprintf(", timers %+v", o.timers)
		}
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
			name := [...]string{clockOp: "clock", checkpointOp: "checkpoint", restartOp: "restart"}[s.op]
			fmt.Fprintf(&b, "%s(%q), ", name, at)
		}
	}
	return b.String()
}
