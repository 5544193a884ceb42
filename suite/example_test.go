package suite_test

import (
	"context"
	"fmt"
	"log"

	"deduplab/lab"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// keepFirst is a strategy from outside the lab: it sends the first row of a key and remembers the key for a while.
var keepFirst = &strategies.Strategy{
	Name:   "keep-first",
	Engine: "flink-datastream",
	About:  "sends the first row of a key, and remembers the key for ttl",
	Loses:  "Leaks copies that come after the TTL.",
	Params: []strategies.Param{
		{Name: "ttl", Kind: strategies.Duration, Default: "1h", About: "how long a key is known"},
	},
	Plan: func(args strategies.Args, _ strategies.Job) strategies.Plan {
		ttl := args.Duration("ttl")
		return strategies.Plan{
			Changelog: stream.InsertOnly, Declared: stream.InsertOnly, StateClass: strategies.TimeBounded,
			Clock: "processing time", TTL: "from the first row of a key", StateTTL: ttl, Leaks: strategies.ByTTL,
			New: func(c *sim.Ctx) sim.Operator { return &firsts{seen: c.NewTable(ttl)} },
		}
	},
}

// firsts is one parallel instance of it.
type firsts struct {
	sim.Base
	seen *sim.Table
}

// Rows handles rows between which no timer fires and no watermark comes.
func (o *firsts) Rows(c *sim.Ctx, rows []stream.Row) {
	known := o.seen.Probe(rows)
	for i := range rows {
		if known.Get(i) != nil {
			c.Drop(&rows[i], sim.Duplicate)
			continue
		}
		known.Put(i, 0, rows[i].Tag, 0)
		c.Emit(stream.Insert, &rows[i])
	}
}

// State tells what the instance holds.
func (o *firsts) State(c *sim.Ctx) sim.State {
	return sim.State{Entries: o.seen.Held(), LiveKeys: o.seen.Live(c.Now())}
}

func init() {
	if err := strategies.Register(keepFirst); err != nil {
		log.Fatal(err)
	}
}

// A strategy of your own beside one of the lab, in a scenario. keepFirst is in this file: a [strategies.Strategy] with
// a plan that makes the operator, registered in a function init. TestStrategies puts it through the suite.
func Example() {
	s, err := scenarios.Load("mine.yaml", []byte(`
scenario: mine
seed: 1
workload: {duration: 1h, rate: 1/s, events: order, duplicates: [{origin: retry, rate: 5%, delay: {uniform: [1m, 20m]}}]}
strategies:
  - pass-through
  - keep-first: {ttl: 10m}
  - keep-first: {id: keep-longer, ttl: 30m}
require: {lost: <= 0, residual: <= 0}
`), nil)
	if err != nil {
		log.Fatal(err)
	}
	run, err := lab.Run(context.Background(), s, lab.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range run.Ranked() {
		met, of := s.Score()
		fmt.Printf("%s meets %d of %d: %d leaked by its TTL, %d lost\n", s.ID, met, of, s.LeaksByCause["ttl"], s.Lost)
	}
	// Output:
	// keep-longer meets 2 of 2: 0 leaked by its TTL, 0 lost
	// keep-first meets 1 of 2: 111 leaked by its TTL, 0 lost
	// pass-through meets 1 of 2: 0 leaked by its TTL, 0 lost
}
