package downstream

import (
	"deduplab/stream"
)

// UpsertKafka is a topic that an upsert-kafka sink writes: Flink's DynamicKafkaRecordSerializationSchema in upsert
// mode, without the sink's buffer. An insert or update writes the whole row under its key, a delete a tombstone, which
// is the key with nothing under it. A -U is not written, so that an update never makes a tombstone: FLIP-149, and
// FL-14 of scenarios/semantics/reported. The sink declares [I,UA,D], so the planner does not even send it one.
//
// What is written is sent as +I with the row, and as -D with the key columns alone.
type UpsertKafka struct {
	outbox
	key        []int
	records    int
	tombstones int
}

// NewUpsertKafka makes an UpsertKafka with the columns of its PRIMARY KEY.
func NewUpsertKafka(key []int) *UpsertKafka { return &UpsertKafka{key: key} }

// Change writes one change.
func (k *UpsertKafka) Change(kind stream.Kind, row stream.Record, _ stream.Time) {
	switch kind {
	case stream.Insert, stream.UpdateAfter:
		k.records++
		k.send(stream.Insert, row...)
	case stream.Delete:
		k.records++
		k.tombstones++
		key := make([]stream.Value, len(k.key))
		for i, column := range k.key {
			key[i] = row[column]
		}
		k.send(stream.Delete, key...)
	}
}

// Records counts what was written, tombstones too.
func (k *UpsertKafka) Records() int { return k.records }

// Tombstones counts the records without a value.
func (k *UpsertKafka) Tombstones() int { return k.tombstones }
