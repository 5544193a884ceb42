package sim

import "deduplab/stream"

// Output is a row that the user's function of a stage returns, as the recordings show it: with what the function says
// of it. Of these rows only those that the stage lets through go on to the next stage; the others are there to be seen.
type Output struct {
	Tag   stream.Tag  // the row whose columns it has,
	Keys  bool        // or whose key alone it has, the other columns null but for
	Event stream.Time // its event time, NullTime for null
	Why   string      // first, suppressed, newer or expired; empty where the function says nothing
	Count int64
}

// Output tells a row that the user's function returns.
func (c *BatchCtx) Output(o Output) {
	if c.Observed() {
		c.engine.spec.OnOutput(o)
	}
}

// Observed reports whether anybody is told of outputs.
func (c *BatchCtx) Observed() bool { return c.engine.spec.OnOutput != nil }

// NullKey reports whether a column of a row's key is null.
func (c *BatchCtx) NullKey(row *stream.Row) bool {
	return c.engine.spec.NullKey != nil && c.engine.spec.NullKey(row)
}

// StoredState is implemented by the stages whose state is the user's, and tells what a checkpoint holds of each key,
// in a deterministic order.
type StoredState interface {
	Stored(func(Stored))
}

// Stored is the state of one key. What does not apply to a stage is 0.
type Stored struct {
	Tag     stream.Tag  // a row of the key
	First   stream.Time // first_ts
	Last    stream.Time // last_ts, or extremumOrdering: NullTime for null
	Count   int64       // suppressed, or count
	Timeout stream.Time // timeoutTimestamp, -1 for none
}
