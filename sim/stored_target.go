package sim

import (
	"cmp"
	"slices"

	"deduplab/stream"
)

// TargetStore keeps the rows of a [StoredTarget], ordered by date, key and ID.
type TargetStore interface {
	// Partitions are the dates that have rows, ascending. The slice is the store's own.
	Partitions() []Partition
	// Find appends the rows of one date and key, in the order of their IDs.
	Find(to []TargetRow, d Date, key stream.Key) ([]TargetRow, error)
	// Rows makes an iterator over one date.
	Rows(d Date) (TargetIterator, error)
	// Apply makes a change in one piece: all of it or, with an error, nothing.
	Apply(c *TargetChange) error
	// Last and NextID are what the last change recorded; -1 and 0 before the first.
	Last() int64
	NextID() uint64
	Close() error
}

// TargetIterator visits rows of one date ordered by key and ID. Row is valid until Next.
type TargetIterator interface {
	// Next moves to the next row; the first call moves to the first one.
	Next() bool
	Row() *TargetRow
	// Close returns the error that ended the iteration, if there was one.
	Close() error
}

// TargetChange is what a store applies in one piece: rows to put, by their IDs, and rows to remove, which come first.
type TargetChange struct {
	Remove, Put []TargetRow
	Last        int64
	NextID      uint64
}

// StoredTarget is a Target over a store: it joins and merges itself, as the engine of a database does.
type StoredTarget struct {
	store  TargetStore
	change TargetChange
	found  []TargetRow
	// matched are rows of the table that a row of the batch has matched, by ID.
	matched map[uint64]bool
}

// NewTarget makes a target over a store.
func NewTarget(store TargetStore) *StoredTarget { return &StoredTarget{store: store} }

// Last is the id of the last batch recorded.
func (t *StoredTarget) Last() int64 { return t.store.Last() }

// Partitions are the dates that have rows.
func (t *StoredTarget) Partitions() []Partition { return slices.Clone(t.store.Partitions()) }

// Close closes the store.
func (t *StoredTarget) Close() error { return t.store.Close() }

// Write applies one batch.
func (t *StoredTarget) Write(w *TargetWrite) (TargetOutcome, error) {
	o := TargetOutcome{Fates: make([]RowFate, len(w.Rows))}
	if w.Mode == AppendOnce && w.Batch <= t.store.Last() {
		for i := range o.Fates {
			o.Fates[i] = RowSkipped
		}
		return o, nil
	}
	t.change = TargetChange{
		Remove: t.change.Remove[:0], Put: t.change.Put[:0], Last: max(w.Batch, t.store.Last()),
		NextID: t.store.NextID() + uint64(len(w.Rows)),
	}
	touched := false
	switch w.Mode {
	case Append, AppendOnce:
		for i := range w.Rows {
			t.insert(w, i)
		}
		o.Inserted = len(w.Rows)
	case MergeInsert, MergeUpsert:
		var err error
		if touched, err = t.merge(w, &o); err != nil {
			return TargetOutcome{}, err
		}
	}
	o.Committed = o.Inserted > 0 || touched || w.Mode == AppendOnce
	return o, t.store.Apply(&t.change)
}

// merge joins the batch with the table as it is before. It reports whether a clause WHEN MATCHED had rows to look at:
// the files with them are then written anew, and a version committed, even if no row has changed.
func (t *StoredTarget) merge(w *TargetWrite, o *TargetOutcome) (bool, error) {
	var dates []Date
	for _, p := range t.store.Partitions() {
		if p.Date >= w.Since {
			dates = append(dates, p.Date)
			o.JoinedDates++
			o.JoinedRows += p.Rows
		}
	}
	upsert := w.Mode == MergeUpsert
	if upsert {
		t.matched = map[uint64]bool{}
	}
	for i := range w.Rows {
		row := &w.Rows[i]
		if err := t.find(row, dates, w.NullSafe, !upsert); err != nil {
			return false, err
		}
		if len(t.found) == 0 {
			t.insert(w, i)
			o.Inserted++
			continue
		}
		o.Fates[i] = RowMatched
		if !upsert {
			continue
		}
		for _, old := range t.found {
			if t.matched[old.ID] {
				return false, MultipleMatches{}
			}
			t.matched[old.ID] = true
			if newer(row.Event, old.Event) {
				o.Fates[i] = RowUpdated
				o.Updated++
				o.Replaced = append(o.Replaced, ReplacedRow{i, old})
				t.change.Remove = append(t.change.Remove, old)
				t.put(w, i, old.ID)
			}
		}
	}
	return len(t.matched) > 0 && upsert, nil
}

// newer is s.ts > t.ts, which is not true of NULL.
func newer(s, t stream.Time) bool { return s != stream.NullTime && t != stream.NullTime && s > t }

// find collects the rows of the table that a row matches; one is enough where any is asked.
func (t *StoredTarget) find(row *TargetRow, dates []Date, nullSafe, any bool) error {
	t.found = t.found[:0]
	if row.NullKey && !nullSafe {
		return nil
	}
	var err error
	for i := len(dates) - 1; i >= 0 && err == nil && !(any && len(t.found) > 0); i-- { // most are found in the last one
		t.found, err = t.store.Find(t.found, dates[i], row.Key)
	}
	return err
}

// insert puts a row of the batch under a new ID.
func (t *StoredTarget) insert(w *TargetWrite, i int) { t.put(w, i, t.store.NextID()+uint64(i)) }

func (t *StoredTarget) put(w *TargetWrite, i int, id uint64) {
	row := w.Rows[i]
	row.Date, row.ID, row.Batch, row.Written = DateOf(row.Event), id, w.Batch, w.Today
	t.change.Put = append(t.change.Put, row)
}

// Remove removes rows.
func (t *StoredTarget) Remove(rows []TargetRow) error {
	return t.store.Apply(&TargetChange{Remove: rows, Last: t.store.Last(), NextID: t.store.NextID()})
}

// Scan visits all rows.
func (t *StoredTarget) Scan(f func(*TargetRow)) error {
	for _, p := range t.store.Partitions() {
		rows, err := t.store.Rows(p.Date)
		if err != nil {
			return err
		}
		for rows.Next() {
			f(rows.Row())
		}
		if err := rows.Close(); err != nil {
			return err
		}
	}
	return nil
}

// Repeated merges the dates, each of which is ordered by key.
func (t *StoredTarget) Repeated(from Date, f func(rows []TargetRow)) (err error) {
	var dates []TargetIterator
	defer func() {
		for _, d := range dates {
			if e := d.Close(); err == nil {
				err = e
			}
		}
	}()
	var open []TargetIterator // those that have a row
	for _, p := range t.store.Partitions() {
		if p.Date < from {
			continue
		}
		d, err := t.store.Rows(p.Date)
		if err != nil {
			return err
		}
		dates = append(dates, d)
		if d.Next() {
			open = append(open, d)
		}
	}
	var group []TargetRow
	for len(open) > 0 {
		key := open[0].Row().Key
		for _, d := range open[1:] {
			if k := d.Row().Key; k.Compare(key) < 0 {
				key = k
			}
		}
		group = group[:0]
		left := open[:0]
		for _, d := range open {
			more := true
			for more && d.Row().Key == key {
				group = append(group, *d.Row())
				more = d.Next()
			}
			if more {
				left = append(left, d)
			}
		}
		open = left
		if len(group) > 1 && !group[0].NullKey {
			slices.SortFunc(group, func(a, b TargetRow) int { return cmp.Compare(a.ID, b.ID) })
			f(group)
		}
	}
	return nil
}
