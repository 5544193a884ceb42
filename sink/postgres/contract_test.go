//go:build unix

package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"deduplab/sim"
	"deduplab/sim/pebble"
	"deduplab/stream"
)

// records are rows with a key, a time, an amount and a text, each from the tag.
type records struct{}

func (records) Schema() stream.Schema {
	return stream.Schema{Columns: []stream.Column{{Name: "id", Type: stream.String}, {Name: "ts", Type: stream.Timestamp},
		{Name: "amount", Type: stream.Decimal, Scale: 2}, {Name: "select", Type: stream.Int}}, Key: []int{0}, Event: 1}
}

func (records) Record(tag stream.Tag) stream.Record {
	return stream.Record{{Text: fmt.Sprint("ä ", tag)}, {Int: int64(tag % 1e12)}, {Int: -int64(tag)}, {Null: tag%2 == 0, Int: 7}}
}

func (records) Order(tag stream.Tag, column int) int64 { return int64(tag) }

func (records) Content(tag stream.Tag) uint64 { return uint64(tag) }

// rule is a target in the simplest words: a list that is searched from the front for everything.
type rule struct {
	rows []sim.TargetRow
	last int64
	next uint64
}

func (r *rule) write(w *sim.TargetWrite) (sim.TargetOutcome, error) {
	o := sim.TargetOutcome{Fates: make([]sim.RowFate, len(w.Rows))}
	if w.Mode == sim.AppendOnce && w.Batch <= r.last {
		for i := range o.Fates {
			o.Fates[i] = sim.RowSkipped
		}
		return o, nil
	}
	before := slices.Clone(r.rows)
	after := slices.Clone(r.rows)
	merge := w.Mode == sim.MergeInsert || w.Mode == sim.MergeUpsert
	dates := map[sim.Date]bool{}
	for _, old := range before {
		if merge && old.Date >= w.Since {
			o.JoinedRows++
			dates[old.Date] = true
		}
	}
	o.JoinedDates = int64(len(dates))
	sources := map[uint64]int{}
	touched := false
	for i, row := range w.Rows {
		matches := 0
		row.Date, row.Batch, row.Written = sim.DateOf(row.Event), w.Batch, w.Today
		for _, old := range before {
			if !merge || old.Key != row.Key || row.NullKey && !w.NullSafe || old.Date < w.Since {
				continue
			}
			matches++
			o.Fates[i] = sim.RowMatched
			if w.Mode != sim.MergeUpsert {
				continue
			}
			touched = true
			if sources[old.ID]++; sources[old.ID] > 1 {
				return sim.TargetOutcome{}, sim.MultipleMatches{}
			}
		}
		for j, old := range before {
			newer := row.Event != stream.NullTime && old.Event != stream.NullTime && row.Event > old.Event
			if matches == 0 || w.Mode != sim.MergeUpsert || sources[old.ID] == 0 || old.Key != row.Key || !newer {
				continue
			}
			row.ID = old.ID
			after[j] = row
			o.Updated++
			o.Replaced = append(o.Replaced, sim.ReplacedRow{By: i, Old: old})
		}
		if matches == 0 {
			row.ID = r.next + uint64(i)
			after = append(after, row)
			o.Inserted++
		}
	}
	for _, replaced := range o.Replaced {
		o.Fates[replaced.By] = sim.RowUpdated
	}
	o.Committed = o.Inserted > 0 || touched || w.Mode == sim.AppendOnce
	r.rows, r.last, r.next = after, max(r.last, w.Batch), r.next+uint64(len(w.Rows))
	return o, nil
}

func (r *rule) sorted() []sim.TargetRow {
	rows := slices.Clone(r.rows)
	slices.SortFunc(rows, func(a, b sim.TargetRow) int {
		switch {
		case a.Date != b.Date:
			return int(max(-1, min(1, int64(a.Date)-int64(b.Date))))
		case a.Key != b.Key:
			return a.Key.Compare(b.Key)
		}
		return int(a.ID) - int(b.ID)
	})
	return rows
}

func (r *rule) repeated(from sim.Date) [][]sim.TargetRow {
	groups := map[stream.Key][]sim.TargetRow{}
	for _, row := range r.rows {
		if row.Date >= from && !row.NullKey {
			groups[row.Key] = append(groups[row.Key], row)
		}
	}
	var repeated [][]sim.TargetRow
	for _, group := range groups {
		if len(group) > 1 {
			slices.SortFunc(group, func(a, b sim.TargetRow) int { return int(a.ID) - int(b.ID) })
			repeated = append(repeated, group)
		}
	}
	slices.SortFunc(repeated, func(a, b []sim.TargetRow) int { return a[0].Key.Compare(b[0].Key) })
	return repeated
}

var targets = []string{"memory", "pebble", "postgres"}

// The three targets give the rows, outcomes and errors of the rule, whatever is written to them.
func TestTargetContract(t *testing.T) {
	for _, kind := range targets {
		t.Run(kind, func(t *testing.T) {
			open := opener(t, kind)
			rapid.Check(t, func(t *rapid.T) {
				target := open(false)
				defer target.Close()
				r := &rule{last: -1}
				batch := int64(0)
				for range rapid.IntRange(1, 12).Draw(t, "batches") {
					w := drawWrite(t, batch)
					batch += int64(rapid.SampledFrom([]int{0, 1, 1, 1}).Draw(t, "step"))
					want, wantErr := r.write(w)
					got, err := target.Write(w)
					same(t, "outcome", spell(want, wantErr), spell(got, err))
					if rapid.IntRange(0, 4).Draw(t, "remove") == 0 {
						removeSome(t, r, target)
					}
					compareTables(t, r, target)
				}
			})
		})
	}
}

// Where no key may stand in the table twice, a database may do with INSERT ... ON CONFLICT DO NOTHING.
func TestUniqueKey(t *testing.T) {
	for _, kind := range targets {
		t.Run(kind, func(t *testing.T) {
			open := opener(t, kind)
			rapid.Check(t, func(t *rapid.T) {
				target := open(true)
				defer target.Close()
				r := &rule{last: -1}
				for batch := range int64(rapid.IntRange(1, 8).Draw(t, "batches")) {
					w := drawWrite(t, batch)
					w.Mode, w.Since, w.NullSafe = sim.MergeInsert, sim.NullDate, false
					w.Rows = onceAKey(w.Rows)
					want, wantErr := r.write(w)
					got, err := target.Write(w)
					if kind == "postgres" {
						want.JoinedRows, want.JoinedDates = got.JoinedRows, got.JoinedDates
					}
					same(t, "outcome", spell(want, wantErr), spell(got, err))
					compareTables(t, r, target)
				}
			})
		})
	}
}

func onceAKey(rows []sim.TargetRow) []sim.TargetRow {
	seen := map[stream.Key]bool{}
	return slices.DeleteFunc(rows, func(row sim.TargetRow) bool {
		again := seen[row.Key]
		seen[row.Key] = true
		return again
	})
}

func drawWrite(t *rapid.T, batch int64) *sim.TargetWrite {
	w := &sim.TargetWrite{
		Batch: batch, Today: sim.Date(20_000 + rapid.IntRange(0, 5).Draw(t, "today")),
		Mode:     sim.WriteMode(rapid.IntRange(0, 3).Draw(t, "mode")),
		Since:    sim.NullDate,
		NullSafe: rapid.Bool().Draw(t, "null-safe"),
	}
	if rapid.Bool().Draw(t, "bounded") {
		w.Since = w.Today - sim.Date(rapid.IntRange(0, 3).Draw(t, "lookback"))
	}
	for range rapid.IntRange(0, 6).Draw(t, "rows") {
		n := rapid.IntRange(0, 7).Draw(t, "key")
		row := sim.TargetRow{
			Key: stream.Key{Hi: stream.Mix(uint64(n)), Lo: uint64(n)}, NullKey: n == 0,
			Event: sim.Date(19_999).Time() + stream.Time(rapid.IntRange(0, 6).Draw(t, "day"))*sim.Day/2,
			Tag:   stream.Tag(rapid.Uint64().Draw(t, "tag")),
		}
		if rapid.IntRange(0, 9).Draw(t, "null time") == 0 {
			row.Event = stream.NullTime
		}
		w.Rows = append(w.Rows, row)
	}
	return w
}

func removeSome(t *rapid.T, r *rule, target sim.Target) {
	var gone []sim.TargetRow
	r.rows = slices.DeleteFunc(r.rows, func(row sim.TargetRow) bool {
		if rapid.IntRange(0, 3).Draw(t, "gone") > 0 {
			return false
		}
		gone = append(gone, row)
		return true
	})
	if err := target.Remove(gone); err != nil {
		t.Fatal(err)
	}
}

func compareTables(t *rapid.T, r *rule, target sim.Target) {
	t.Helper()
	same(t, "last", fmt.Sprint(r.last), fmt.Sprint(target.Last()))
	var scanned []sim.TargetRow
	if err := target.Scan(func(row *sim.TargetRow) { scanned = append(scanned, *row) }); err != nil {
		t.Fatal(err)
	}
	sorted := r.sorted()
	same(t, "rows", fmt.Sprint(sorted), fmt.Sprint(scanned))
	var partitions []sim.Partition
	for _, row := range sorted {
		partitions = sim.CountRows(partitions, row.Date, 1)
	}
	same(t, "partitions", fmt.Sprint(partitions), fmt.Sprint(target.Partitions()))
	for _, from := range []sim.Date{sim.NullDate, 20_000, 20_002} {
		var groups [][]sim.TargetRow
		if err := target.Repeated(from, func(rows []sim.TargetRow) {
			groups = append(groups, slices.Clone(rows))
		}); err != nil {
			t.Fatal(err)
		}
		same(t, "repeated", fmt.Sprint(r.repeated(from)), fmt.Sprint(groups))
	}
}

// spell writes out an outcome; the rows that one row replaces come in no order.
func spell(o sim.TargetOutcome, err error) string {
	slices.SortFunc(o.Replaced, func(a, b sim.ReplacedRow) int {
		if a.By != b.By {
			return a.By - b.By
		}
		return int(a.Old.ID) - int(b.Old.ID)
	})
	var multiple sim.MultipleMatches
	if errors.As(err, &multiple) {
		return multiple.Error()
	}
	return fmt.Sprint(o, err)
}

func same(t *rapid.T, what, want, got string) {
	t.Helper()
	if want != got {
		t.Fatalf("%s\n  rule   %s\n  target %s", what, want, got)
	}
}

// opener makes empty targets of a kind.
func opener(t *testing.T, kind string) func(uniqueKey bool) sim.Target {
	t.Helper()
	var db *server
	if kind == "postgres" {
		db = startServer(t)
	}
	return func(uniqueKey bool) sim.Target {
		target, err := sim.Target(sim.NewMemoryTarget()), error(nil)
		switch kind {
		case "pebble":
			target, err = pebble.OpenTarget("")
		case "postgres":
			target, err = Open(context.Background(), db.url(), Table{Name: "orders", Records: records{}, UniqueKey: uniqueKey})
		}
		if err != nil {
			t.Fatal(err)
		}
		return target
	}
}
