package semantics

import (
	"slices"

	"deduplab/downstream"
	"deduplab/harness"
	"deduplab/stream"
)

// topic is the upsert-kafka topic behind the strategy.
type topic struct {
	*downstream.UpsertKafka
	columns, key []stream.Column
}

// newTopic makes the topic of a result with these columns. Its key is that of the table, as far as the result has it.
func newTopic(schema *stream.Schema, columns []stream.Column) *topic {
	t := &topic{columns: columns}
	var key []int
	for _, i := range schema.Key {
		if j := slices.Index(columns, schema.Columns[i]); j >= 0 {
			key, t.key = append(key, j), append(t.key, columns[j])
		}
	}
	t.UpsertKafka = downstream.NewUpsertKafka(key)
	return t
}

// write writes what the strategy sends and returns the records: +I with the row, or -D with the key alone.
func (t *topic) write(sent []harness.Output) []harness.Output {
	var records []harness.Output
	for _, out := range sent {
		t.Change(out.Kind, out.Values, out.At)
		for _, r := range t.Take() {
			record := harness.Output{Kind: r.Kind, Columns: t.columns, Values: r.Values, At: out.At}
			if r.Kind == stream.Delete {
				record.Columns = t.key
			}
			records = append(records, record)
		}
	}
	return records
}
