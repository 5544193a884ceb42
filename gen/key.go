package gen

import (
	"encoding/binary"
	"slices"
	"time"

	"deduplab/contentkey"
	"deduplab/stream"
)

// Key is a way to tell events apart by columns of their rows. It never changes which event a row stands for.
type Key struct {
	Name    string
	Columns []string
	// Content says that the key is the hash of the columns' text, in the order given, as package contentkey makes it in a
	// session in UTC. It stands in a column of its own, DedupKey, as a job computes it in front of the operator.
	Content bool
}

// DedupKey is the column of a content key.
const DedupKey = "dedup_key"

// Schema is that of a workload whose rows have this key: a content key is one more column. The columns must exist.
func (k Key) Schema(s stream.Schema) stream.Schema {
	if k.Content {
		s.Columns = append(slices.Clip(s.Columns), stream.Column{Name: DedupKey, Type: stream.String})
		s.Key = []int{len(s.Columns) - 1}
		return s
	}
	s.Key = nil
	for _, name := range k.Columns {
		s.Key = append(s.Key, s.Index(name))
	}
	return s
}

// Keyed is a workload under another key than its own. Partitions, arrivals and the truth stay as they are. Whether a
// row has another key than its original depends on the row, not on its origin: ask HasNewKey, not NewKey.
type Keyed struct {
	Workload
	key    Key
	schema stream.Schema
	parts  []stream.Column // that the key is made of
	from   []int           // where they stand
	texts  bool            // one of them is text
}

// WithKey gives a workload another key.
func WithKey(w Workload, k Key) *Keyed {
	own := w.Schema()
	keyed := &Keyed{Workload: w, key: k, schema: k.Schema(own)}
	for _, name := range k.Columns {
		i := own.Index(name)
		keyed.from, keyed.parts = append(keyed.from, i), append(keyed.parts, own.Columns[i])
		keyed.texts = keyed.texts || own.Columns[i].Type == stream.String
	}
	return keyed
}

// Schema implements stream.Records.
func (k *Keyed) Schema() stream.Schema { return k.schema }

// Record implements stream.Records.
func (k *Keyed) Record(tag stream.Tag) stream.Record {
	record := k.Workload.Record(tag)
	if k.key.Content {
		record = append(record, stream.Value{Text: contentkey.Sum(k.cast(tag))})
	}
	return record
}

// Key is the key of a row. NULL equals NULL.
func (k *Keyed) Key(tag stream.Tag) stream.Key {
	if k.key.Content {
		sum := contentkey.Digest(k.cast(tag))
		return stream.Key{Hi: binary.BigEndian.Uint64(sum[:8]), Lo: binary.BigEndian.Uint64(sum[8:])}
	}
	var room [4]stream.Value
	var scratch [128]byte
	hash := keyHash{scratch[:0]}
	for i, v := range k.values(room[:0], tag) {
		switch {
		case v.Null:
			hash.null()
		case k.parts[i].Type == stream.String:
			hash.text(v.Text)
		default:
			hash.number(v.Int)
		}
	}
	return hash.key()
}

// ReusedID reports whether an event shares its id with others and the key holds it, so that equal keys come from that.
func (k *Keyed) ReusedID(event uint64) bool {
	own := k.Workload.Schema()
	for _, column := range own.Key {
		if !slices.Contains(k.from, column) {
			return false
		}
	}
	return k.Workload.ReusedID(event)
}

// values appends the columns that the key is made of. Where all are numbers the rest of the row need not be made.
func (k *Keyed) values(to []stream.Value, tag stream.Tag) []stream.Value {
	if !k.texts {
		for _, from := range k.from {
			n := k.Order(tag, from)
			to = append(to, stream.Value{Null: n == stream.NullOrder, Int: n})
		}
		return to
	}
	record := k.Workload.Record(tag)
	for _, from := range k.from {
		to = append(to, record[from])
	}
	return to
}

// HasNewKey reports whether a row has another key than the original of its event.
func (k *Keyed) HasNewKey(tag stream.Tag) bool {
	return tag.Origin() != 0 && k.Key(tag) != k.Key(stream.NewTag(tag.Event(), 0, 0))
}

// cast is the text of the columns that a content key is made of.
func (k *Keyed) cast(tag stream.Tag) []contentkey.Value {
	values := make([]contentkey.Value, len(k.from))
	for i, v := range k.values(nil, tag) {
		values[i] = castValue(v, k.parts[i])
	}
	return values
}

// castValue is the text that Spark's cast to string makes of a value: contentkey.Type.Cast of the column's type.
func castValue(v stream.Value, c stream.Column) contentkey.Value {
	switch {
	case v.Null:
		return contentkey.Value{Null: true}
	case c.Type == stream.Timestamp:
		return contentkey.Value{Text: contentkey.FormatTimestamp(time.UnixMilli(v.Int).UTC())}
	}
	return contentkey.Value{Text: v.Format(c)}
}

// Stream implements Workload.
func (k *Keyed) Stream() Stream { return rekeyed{k.Workload.Stream(), k} }

// rekeyed is a stream of rows under another key.
type rekeyed struct {
	Stream
	of *Keyed
}

// Next implements Stream.
func (r rekeyed) Next(dst []stream.Row) (int, error) {
	n, err := r.Stream.Next(dst)
	for i := range dst[:n] {
		dst[i].Key = r.of.Key(dst[i].Tag)
	}
	return n, err
}
