package stream

import "slices"

// Sink is how the reader of a result applies its changes.
type Sink uint8

// The sinks.
const (
	RetractSink Sink = iota // +I and +U add a row, -U and -D remove one: a multiset
	AppendSink              // +I and +U add a row, the others are unknown to it
	UpsertSink              // +I and +U replace the row of the key, -D removes it
)

var sinkNames = []string{"retract", "append", "upsert"}

// String is the name used in scenarios.
func (s Sink) String() string { return sinkNames[s] }

// ParseSink reads the name used in scenarios.
func ParseSink(s string) (Sink, bool) {
	i := slices.Index(sinkNames, s)
	return Sink(max(i, 0)), i >= 0
}
