package main

import (
	"os"
	"sync"
	"time"

	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// faulty is lab with two more strategies: one has a fault, and at the first row of the other somebody presses Ctrl-C.
func faulty() {
	for name, row := range map[string]func(){
		"panics": func() { panic("a fault of the lab") },
		"interrupts": sync.OnceFunc(func() {
			self, err := os.FindProcess(os.Getpid())
			if err != nil || self.Signal(os.Interrupt) != nil {
				panic("cannot be interrupted")
			}
			time.Sleep(100 * time.Millisecond)
		}),
	} {
		err := strategies.Register(&strategies.Strategy{
			Name: name, Engine: "flink-datastream", About: "for tests", Loses: "everything",
			Plan: func(strategies.Args, strategies.Job) strategies.Plan {
				return strategies.Plan{
					Changelog: stream.InsertOnly, Declared: stream.InsertOnly, StateClass: strategies.Stateless,
					New: func(*sim.Ctx) sim.Operator { return &atRow{do: row} },
				}
			},
		})
		if err != nil {
			panic(err)
		}
	}
	main()
}

// atRow does something whenever rows come.
type atRow struct {
	sim.Base
	do func()
}

func (o *atRow) Rows(c *sim.Ctx, rows []stream.Row) {
	o.do()
	for i := range rows {
		c.Emit(stream.Insert, &rows[i])
	}
}

func (o *atRow) State(*sim.Ctx) sim.State { return sim.State{} }
