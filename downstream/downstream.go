// Package downstream holds what may stand behind a deduplication: an aggregate, a windowed aggregate, an interval join,
// an upsert-kafka topic. They show what a changelog does to its consumer. Like strategies they are pure step machines
// after Flink's operators: they know no clock, and all that they are told comes in through their calls.
package downstream

import "deduplab/stream"

// Consumer is an operator behind a deduplication. At one instant it is told of changes and watermarks in the order in
// which the deduplication sends them.
type Consumer interface {
	// Change handles one change of the deduplication at a processing time.
	Change(kind stream.Kind, row stream.Record, at stream.Time)
	// Watermark tells that the watermark advanced to w. What the deduplication releases by it comes before. With
	// mini-batch it is the one of the assigner, which may go by the clock.
	Watermark(w, at stream.Time)
	// Checkpoint tells that a checkpoint is taken at a processing time.
	Checkpoint(at stream.Time)
	// State tells what the operator holds.
	State() State
	// Take returns what the consumer has sent since the last call.
	Take() []Output
}

// State is what a consumer holds.
type State struct {
	// Entries are keyed state entries, by the name of the state.
	Entries map[string]int
	// Timers are registered event-time timers.
	Timers int
	// LateDropped is the engine's counter numLateRecordsDropped.
	LateDropped int64
}

// Output is one row that a consumer sends.
type Output struct {
	Kind   stream.Kind
	Values []stream.Value // one a column of the consumer's result
}

// outbox collects output.
type outbox []Output

func (o *outbox) send(k stream.Kind, values ...stream.Value) { *o = append(*o, Output{k, values}) }

// Take returns what was sent since the last call.
func (o *outbox) Take() []Output {
	sent := *o
	*o = nil
	return sent
}
