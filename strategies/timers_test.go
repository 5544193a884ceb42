package strategies_test

import (
	"testing"

	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// TestTimersOfWaitingRows hands over two rows of a key between which nothing else happens but a timer that the first one
// sets: it fires before the second one is handled.
func TestTimersOfWaitingRows(t *testing.T) {
	schema := stream.Schema{Columns: []stream.Column{{Name: "id"}, {Name: "ts", Type: stream.Timestamp}}, Event: 1}
	schema.Key = []int{0}
	for _, c := range []struct {
		what, strategy string
		params         map[string]string
		job            strategies.Job
		changes        int
	}{
		{"a timer clears the state", "keyed-process", map[string]string{"timer": "1s"}, strategies.Job{}, 2},
		{"a batch ends by the clock", "proctime-desc", nil,
			strategies.Job{MiniBatch: strategies.MiniBatch{Latency: 1000, Size: 100}}, 3}, // +I, -U, +U
	} {
		s, err := strategies.Find(c.strategy)
		if err != nil {
			t.Fatal(err)
		}
		args, faults := s.Resolve(c.params, schema)
		if faults != nil {
			t.Fatal(faults)
		}
		c.job.Schema = schema
		plan := s.Plan(args, c.job)
		task := sim.NewTask(sim.TaskSpec{Parallelism: 1, Readers: 1, Records: distinctRows{schema}, New: plan.New,
			UpdateBefore: true})
		for i, at := range []stream.Time{10_500, 12_500} {
			task.Row(&stream.Row{Key: stream.Key{Lo: 1}, Event: at, Arrival: at, Tag: stream.NewTag(1, 0, i)})
		}
		task.Clock(20_000)
		changes := 0
		task.Drain(func(change *sim.Change, _ stream.Key, _ []stream.Tag) {
			if change.Op == sim.OpEmit || change.Op == sim.OpRelease || change.Op == sim.OpAgain {
				changes++
			}
		})
		if changes != c.changes {
			t.Errorf("%s: %s sends %d changes, want %d", c.what, c.strategy, changes, c.changes)
		}
	}
}

// distinctRows all differ.
type distinctRows struct{ schema stream.Schema }

func (d distinctRows) Schema() stream.Schema { return d.schema }
func (distinctRows) Record(tag stream.Tag) stream.Record {
	return stream.Record{{Text: "a"}, {Int: int64(tag)}}
}
func (distinctRows) Order(tag stream.Tag, _ int) int64 { return int64(tag) }
func (distinctRows) Content(tag stream.Tag) uint64     { return uint64(tag) }
