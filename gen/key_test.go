package gen

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"deduplab/contentkey"
	"deduplab/stream"
)

// purchases is a stream of few contents, a copy of every event with a new id, and a sequence that tells events apart.
func purchases(t testing.TB) Workload {
	t.Helper()
	w, err := New(Spec{
		Start: 1_767_225_600_000, Duration: 60_000, Rate: 5, Key: []string{"id"}, Partitions: 2,
		Fields: []Field{{Name: "id", UUID: true}, {Name: "seq", Sequence: new(int64(1))},
			{Name: "item", Choice: []Choice{{"coffee", 1}, {"tea", 1}}, Null: 0.1},
			{Name: "price", Decimal: &[2]int64{-3, 3}}, {Name: "sent", Stamp: Sent},
			{Name: "size", Int: &[2]int64{0, 2}, Null: 0.2}},
		EventTime:  EventTime{Field: "ts"},
		Duplicates: []Duplicate{{Origin: "retry", Rate: 1, NewID: true, Delay: Delay{Low: 10_000}}},
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// A key is equal for two rows exactly if its columns are, whatever else differs.
func TestKeysAreThoseOfTheirColumns(t *testing.T) {
	w := purchases(t)
	for _, columns := range [][]string{{"id"}, {"seq"}, {"item"}, {"item", "price"}, {"sent", "seq"}, {"ts"}, {"size"},
		{"size", "item"}} {
		for _, content := range []bool{false, true} {
			k := WithKey(w, Key{Columns: columns, Content: content})
			texts := map[stream.Key]string{}
			keys := map[string]stream.Key{}
			rows := 0
			buffer := make([]stream.Row, 64)
			for s := k.Stream(); ; {
				n, _ := s.Next(buffer)
				if n == 0 {
					break
				}
				rows += n
				for _, row := range buffer[:n] {
					text := ""
					record := w.Record(row.Tag)
					for _, name := range columns {
						i := w.Schema().Index(name)
						text += record[i].Format(w.Schema().Columns[i]) + "\n"
					}
					if other, ok := texts[row.Key]; ok && other != text {
						t.Fatalf("%v: %q and %q have one key", columns, text, other)
					}
					if other, ok := keys[text]; ok && other != row.Key {
						t.Fatalf("%v: %q has two keys", columns, text)
					}
					texts[row.Key], keys[text] = text, row.Key
				}
			}
			if rows < 400 || len(keys) == 1 {
				t.Errorf("%v: %d rows, %d keys", columns, rows, len(keys))
			}
		}
	}
}

// A content key is a column of its own, and the key of the schema; other columns keep their places.
func TestContentKeyIsAColumn(t *testing.T) {
	w := purchases(t)
	k := WithKey(w, Key{Columns: []string{"item", "price"}, Content: true})
	own, schema := w.Schema(), k.Schema()
	last := len(own.Columns)
	if len(schema.Columns) != last+1 || schema.Columns[last].Name != DedupKey || schema.Key[0] != last ||
		schema.Event != own.Event || len(own.Columns) != last || own.Key[0] != 0 {
		t.Fatalf("%+v of %+v", schema, own)
	}
	tag := stream.NewTag(7, 1, 1)
	record := k.Record(tag)
	item, price := record[2], record[3].Format(own.Columns[3])
	want := contentkey.Sum([]contentkey.Value{{Null: item.Null, Text: item.Text}, {Text: price}})
	if record[last].Text != want {
		t.Errorf("the column holds %s, want %s", record[last].Text, want)
	}
	if k.HasNewKey(tag) || !WithKey(w, Key{Columns: []string{"id"}}).HasNewKey(tag) {
		t.Error("the retry has the content of its original and another id")
	}
}

// What the workload's columns are cast to is what contentkey makes of the same values in a session in UTC.
func TestCastIsThatOfContentkey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, c := range []struct {
			column stream.Column
			typ    contentkey.Type
		}{
			{stream.Column{Type: stream.Int}, contentkey.Bigint},
			{stream.Column{Type: stream.Decimal, Scale: 2}, contentkey.Decimal(2)},
			{stream.Column{Type: stream.Decimal, Scale: 4}, contentkey.Decimal(4)},
			{stream.Column{Type: stream.Timestamp}, contentkey.Timestamp},
			{stream.Column{Type: stream.String}, contentkey.String},
		} {
			v := stream.Value{Int: rapid.Int64Range(-1000, 1<<41).Draw(t, "number"), Text: rapid.String().Draw(t, "text")}
			if c.column.Type == stream.Timestamp {
				v.Int = max(v.Int, 0)
			}
			want, err := c.typ.Cast(v.Format(c.column), time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			if got := castValue(v, c.column); got != want {
				t.Fatalf("%s of %+v: %q, contentkey says %q", c.typ, v, got.Text, want.Text)
			}
		}
	})
}
