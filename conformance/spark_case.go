package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// sparkCase is a recorded case of Spark Structured Streaming: a query, and what it did batch by batch. Times are epoch
// milliseconds. testdata/spark/README.md describes all fields.
type sparkCase struct {
	Name       string                     `json:"case"`
	Engine     string                     `json:"engine"`
	Strategy   string                     `json:"strategy"`
	Params     map[string]json.RawMessage `json:"params"`
	OutputMode string                     `json:"output_mode"`
	Code       codes                      `json:"code"`
	Config     map[string]string          `json:"config"`
	Columns    Columns                    `json:"columns"`
	OutColumns Columns                    `json:"out_columns"`
	Batches    []sparkBatch               `json:"batches"`
}

// sparkBatch is one micro-batch. What was not recorded is nil.
type sparkBatch struct {
	Batch  *int64   `json:"batch"`
	Run    *int     `json:"run"` // index of the code that runs
	NoData bool     `json:"no_data"`
	Rows   []Fields `json:"rows"`
	Rows2  []Fields `json:"rows2"`

	WatermarkBefore *int64 `json:"watermark_before"`
	LateWatermark   *int64 `json:"late_watermark"`
	WatermarkAfter  *int64 `json:"watermark_after"`

	Emits              *[]Fields          `json:"emits"`
	StateRows          *int64             `json:"state_rows"`
	Updated            *int64             `json:"updated"`
	Removed            *int64             `json:"removed"`
	DroppedByWatermark *int64             `json:"dropped_by_watermark"`
	DroppedDuplicates  *int64             `json:"dropped_duplicates"`
	RemovedByTTL       *int64             `json:"removed_by_ttl"`
	State              *[]json.RawMessage `json:"state"`

	Clock     *int64 `json:"clock_ms"`
	Timestamp *int64 `json:"batch_timestamp"`

	StartError *sparkError `json:"start_error"`
	Error      *sparkError `json:"error"`
	Chain      []string    `json:"error_chain"`
	Conditions []string    `json:"error_conditions"`

	// Of what foreachBatch did: the date in the statement, what the table's log says of it, and the table after it.
	Today     string    `json:"today"`
	Committed *bool     `json:"committed"`
	Inserted  *int64    `json:"inserted"`
	TableRows *int64    `json:"table_rows"`
	Table     *[]Fields `json:"table"`

	SinkFailed string `json:"sink_failed"`
	Replay     bool   `json:"replay"`
}

// sparkError is an error. Its condition is compared, the rest as far as the lab tells it.
type sparkError struct {
	Class     string `json:"class"`
	Message   string `json:"message"`
	Condition string `json:"condition"`
}

// failure is the condition of the error that the batch ended with, or of the query's that did not start; else empty.
func (b *sparkBatch) failure() string {
	switch {
	case b.StartError != nil:
		return b.StartError.Condition
	case b.Error == nil:
		return ""
	case len(b.Conditions) > 0:
		return b.Conditions[len(b.Conditions)-1]
	case b.Error.Condition != "":
		return b.Error.Condition
	}
	return b.Error.Class
}

// codes is the query's expression, or one for each run of it.
type codes []string

// UnmarshalJSON reads a text or a list of texts.
func (c *codes) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte("[")) {
		return json.Unmarshal(b, (*[]string)(c))
	}
	*c = make(codes, 1)
	return json.Unmarshal(b, &(*c)[0])
}

// isSpark reports whether a case was recorded of Spark.
func isSpark(engine string) bool { return strings.HasPrefix(engine, "Apache Spark") }

// readSpark parses a case of Spark.
func readSpark(b []byte) (*sparkCase, error) {
	c := &sparkCase{}
	if err := json.Unmarshal(b, c); err != nil {
		return nil, err
	}
	if c.Strategy == "" || len(c.Code) == 0 || len(c.Batches) == 0 {
		return nil, fmt.Errorf("it needs a strategy, code and batches")
	}
	return c, nil
}

// run is the number of the code that a batch runs. Where it is not recorded, it is the last one: the batch did not
// start.
func (c *sparkCase) run(b *sparkBatch) (int, error) {
	if b.Run == nil {
		return len(c.Code) - 1, nil
	}
	if *b.Run < 0 || *b.Run >= len(c.Code) {
		return 0, fmt.Errorf("there is no code for run %d", *b.Run)
	}
	return *b.Run, nil
}
