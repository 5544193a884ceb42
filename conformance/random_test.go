package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"deduplab/harness"
	"deduplab/sim"
	"deduplab/stream"
)

// TestEveryRowIsAccountedFor feeds random rows to every strategy, with and without mini-batch: each row must be given
// one disposition, one that waits must be settled once, no change may go back in time, and at the end nothing waits.
func TestEveryRowIsAccountedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := make([]string, 0, len(ids))
		for name := range ids {
			names = append(names, name)
		}
		slices.Sort(names)
		sql := "TUMBLE(TABLE orders, DESCRIPTOR(created_at), INTERVAL '5' SECOND) MIN(price) AS price FROM orders GROUP BY"
		c := &Case{Strategy: rapid.SampledFrom(names).Draw(t, "strategy"), SQL: &sql, Consumer: "retract",
			Columns: recordedColumns, Config: drawConfig(t)}
		drawSteps(t, c)
		if err := accountFor(c); err != nil {
			t.Fatal(err)
		}
	})
}

func drawConfig(t *rapid.T) map[string]string {
	config := map[string]string{"table.exec.state.ttl": rapid.SampledFrom([]string{"0 s", "2 s"}).Draw(t, "ttl")}
	if rapid.Bool().Draw(t, "mini-batch") {
		config["table.exec.mini-batch.enabled"] = "true"
		config["table.exec.mini-batch.allow-latency"] = rapid.SampledFrom([]string{"1 s", "700 ms"}).Draw(t, "latency")
		config["table.exec.mini-batch.size"] = rapid.SampledFrom([]string{"1", "2", "3", "100"}).Draw(t, "size")
		config["table.exec.deduplicate.mini-batch.compact-changes-enabled"] = fmt.Sprint(rapid.Bool().Draw(t, "compact"))
	}
	return config
}

func drawSteps(t *rapid.T, c *Case) {
	at := int64(1_000_000)
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		at += rapid.Int64Range(0, 900).Draw(t, "after")
		now := at
		s := Step{At: &now}
		switch rapid.IntRange(0, 9).Draw(t, "step") {
		case 0:
			id := int64(len(c.Steps))
			s.Checkpoint = &id
		case 1, 2:
			s.Watermark = json.RawMessage(fmt.Sprint(at - rapid.Int64Range(0, 5_000).Draw(t, "behind")))
		case 3:
		default:
			s.Row = Fields{{"kind", json.RawMessage(`"+I"`)},
				{"order_id", json.RawMessage(rapid.SampledFrom([]string{`"a"`, `"b"`, `"c"`}).Draw(t, "key"))},
				{"quantity", json.RawMessage("1")},
				{"price", json.RawMessage(rapid.SampledFrom([]string{`"1.00"`, `"2.00"`, "null"}).Draw(t, "price"))},
				{"created_at", json.RawMessage(fmt.Sprint(at - rapid.Int64Range(-500, 5_000).Draw(t, "age")))}}
		}
		c.Steps = append(c.Steps, s)
	}
}

// accountFor runs the steps in time that does not jump.
func accountFor(c *Case) error {
	schema, err := c.schema()
	if err != nil {
		return err
	}
	_, plan, err := c.plan(schema)
	if err != nil {
		return err
	}
	records := harness.NewRecords(schema)
	task := sim.NewTask(sim.TaskSpec{Parallelism: 1, Readers: 1, Records: records, Prepare: plan.Prepare(records),
		New: plan.New, UpdateBefore: true})
	rows, settled := 0, 0
	waiting := map[stream.Tag]bool{}
	last := stream.MinTime
	var fault error
	take := func(change *sim.Change, _ stream.Key, _ []stream.Tag) {
		if change.At < last {
			fault = fmt.Errorf("a change at %d after one at %d", change.At, last)
		}
		last = change.At
		switch change.Op {
		case sim.OpEmit, sim.OpDrop:
			settled++
		case sim.OpHold:
			waiting[change.Tag] = true
		case sim.OpRelease, sim.OpDropHeld:
			if !waiting[change.Tag] {
				fault = fmt.Errorf("row %d is settled, but did not wait", change.Tag.Event()+1)
			}
			delete(waiting, change.Tag)
			settled++
		}
	}
	wm := stream.MinTime
	watermark := func(w, at stream.Time) {
		if w > wm {
			wm = w
			task.SourceWatermark(0, w, at)
			task.Watermark(w, at)
		}
	}
	at := stream.Time(0)
	for i, s := range c.Steps {
		at = stream.Time(*s.At)
		task.Clock(at)
		switch {
		case s.Row != nil:
			kind, record, err := readRow(s.Row, schema)
			if err != nil {
				return err
			}
			row := records.Add(kind, record)
			row.Arrival = at
			rows++
			task.Row(&row)
			if i%2 == 0 {
				continue // leave it in a run with the rows that follow
			}
			task.Clock(at)
		case s.Watermark != nil:
			var w int64
			if err := json.Unmarshal(s.Watermark, &w); err != nil {
				return err
			}
			watermark(stream.Time(w), at)
		case s.Checkpoint != nil:
			task.Checkpoint(at)
		}
		task.Drain(take)
		if got := settled + len(waiting); got != rows && fault == nil {
			fault = fmt.Errorf("step %d: %d rows went in, %d are accounted for", i+1, rows, got)
		}
	}
	watermark(stream.MaxTime, at)
	task.Drain(take)
	if fault == nil && len(waiting) > 0 {
		fault = fmt.Errorf("%d rows still wait at the end", len(waiting))
	}
	if fault == nil && settled != rows {
		fault = fmt.Errorf("%d rows went in, %d are settled", rows, settled)
	}
	return fault
}

// TestMiniBatchReachesTheSameKeys is a relation that holds for the strategies that keep one row a key and no TTL:
// batches change when and how often a key is sent, not which keys end in the result.
func TestMiniBatchReachesTheSameKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &Case{Strategy: rapid.SampledFrom([]string{"proctime-asc", "proctime-desc", "rowtime-desc",
			"select-distinct-key", "nontime-price-desc"}).Draw(t, "strategy"), Consumer: "retract", Columns: recordedColumns}
		drawSteps(t, c)
		c.Config = nil
		plain := finalKeys(t, c)
		c.Config = variants["mini-batch"]
		if batched := finalKeys(t, c); !slices.Equal(plain, batched) {
			t.Fatalf("keys %v, with mini-batch %v", plain, batched)
		}
	})
}

// finalKeys is the result's keys in order, each as often as it is there.
func finalKeys(t *rapid.T, c *Case) []string {
	r, err := newReplay(c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Row == nil {
			continue
		}
		kind, record, err := readRow(s.Row, r.schema)
		if err == nil {
			err = errors.Join(r.harness.Clock(stream.Time(*s.At)), r.harness.Record(kind, record))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := r.harness.Watermark(stream.MaxTime); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, sent := range r.harness.Take() {
		key, _ := sent.Get("order_id")
		if sent.Kind == stream.Insert || sent.Kind == stream.UpdateAfter {
			count[key.Text]++
		} else {
			count[key.Text]--
		}
	}
	var keys []string
	for key, n := range count {
		for range n {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
