package harness_test

import (
	"fmt"
	"log"
	"time"

	"deduplab/harness"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// A strategy of the lab: the earliest row of a key comes out once the watermark has reached it.
func Example() {
	h, err := harness.New(harness.Config{Strategy: "rowtime-asc", Params: map[string]string{"ttl": "2h"}})
	if err != nil {
		log.Fatal(err)
	}
	must(h.Insert(harness.Columns{"order_id": "a", "created_at": "10s", "price": "5.00"}))
	must(h.Insert(harness.Columns{"order_id": "a", "created_at": "8s", "price": "4.00"}))
	fmt.Println("waiting:", h.State().Timers.Event)

	must(h.Watermark(9_000))
	for _, row := range h.Take() {
		fmt.Println(row)
	}

	// A copy that comes after a restore is known, but the watermark is not.
	must(h.Checkpoint())
	must(h.Restore())
	must(h.Insert(harness.Columns{"order_id": "a", "created_at": "8s"}))
	must(h.End())
	fmt.Println("after the restore:", len(h.Take()), "rows,", h.State().Entries, "entry")
	// Output:
	// waiting: 1
	// +I {order_id: a, quantity: 1, price: 4.00, created_at: 8s}
	// after the restore: 0 rows, 1 entry
}

// An operator of one's own: every third row of a key.
func ExampleNew_ownOperator() {
	h, err := harness.New(harness.Config{Plan: &strategies.Plan{
		Changelog: stream.InsertOnly,
		New: func(c *sim.Ctx) sim.Operator {
			return &everyThird{seen: c.NewTable(stream.Time(time.Hour.Milliseconds()))}
		},
	}})
	if err != nil {
		log.Fatal(err)
	}
	for i := range 7 {
		must(h.Insert(harness.Columns{"order_id": "a", "quantity": i}))
	}
	for _, row := range h.Take() {
		quantity, _ := row.Get("quantity")
		fmt.Println(row.Kind, quantity.Int)
	}
	fmt.Println(h.State().LiveKeys, "key")
	// Output:
	// +I 2
	// +I 5
	// 1 key
}

// everyThird counts the rows of a key.
type everyThird struct {
	sim.Base
	seen *sim.Table
}

func (o *everyThird) Rows(c *sim.Ctx, rows []stream.Row) {
	known := o.seen.Probe(rows)
	for i := range rows {
		count := int64(1)
		if before := known.Get(i); before != nil {
			count = before.Value + 1
		}
		known.Put(i, count, rows[i].Tag, 0)
		if count%3 == 0 {
			c.Emit(stream.Insert, &rows[i])
		} else {
			c.Drop(&rows[i], sim.Duplicate)
		}
	}
}

func (o *everyThird) State(c *sim.Ctx) sim.State {
	return sim.State{Entries: o.seen.Held(), LiveKeys: o.seen.Live(c.Now())}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
