package sim

import (
	"cmp"
	"slices"

	"deduplab/stream"
)

// NewMemoryTarget makes an empty target in memory.
func NewMemoryTarget() *StoredTarget {
	return NewTarget(&memoryStore{dates: map[Date]map[stream.Key][]TargetRow{}, last: -1})
}

// memoryStore is a TargetStore in memory.
type memoryStore struct {
	dates      map[Date]map[stream.Key][]TargetRow
	partitions []Partition
	last       int64
	next       uint64
}

func (m *memoryStore) Partitions() []Partition { return m.partitions }

func (m *memoryStore) Find(to []TargetRow, d Date, key stream.Key) ([]TargetRow, error) {
	return append(to, m.dates[d][key]...), nil
}

func (m *memoryStore) Last() int64 { return m.last }

func (m *memoryStore) NextID() uint64 { return m.next }

func (m *memoryStore) Close() error { return nil }

func (m *memoryStore) Apply(c *TargetChange) error {
	for i := range c.Remove {
		m.remove(&c.Remove[i])
	}
	for i := range c.Put {
		m.put(&c.Put[i])
	}
	m.last, m.next = c.Last, c.NextID
	return nil
}

func (m *memoryStore) remove(row *TargetRow) {
	keys := m.dates[row.Date]
	before := keys[row.Key]
	after := slices.DeleteFunc(before, func(r TargetRow) bool { return r.ID == row.ID })
	if len(after) == 0 {
		delete(keys, row.Key)
	} else {
		keys[row.Key] = after
	}
	m.partitions = CountRows(m.partitions, row.Date, int64(len(after)-len(before)))
}

func (m *memoryStore) put(row *TargetRow) {
	keys := m.dates[row.Date]
	if keys == nil {
		keys = map[stream.Key][]TargetRow{}
		m.dates[row.Date] = keys
	}
	rows := append(keys[row.Key], *row)
	if n := len(rows); n > 1 && rows[n-2].ID > row.ID { // an update keeps its row's ID
		slices.SortFunc(rows, func(a, b TargetRow) int { return cmp.Compare(a.ID, b.ID) })
	}
	keys[row.Key] = rows
	m.partitions = CountRows(m.partitions, row.Date, 1)
}

func (m *memoryStore) Rows(d Date) (TargetIterator, error) {
	it := &memoryRows{at: -1}
	keys := make([]stream.Key, 0, len(m.dates[d]))
	for key := range m.dates[d] {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, stream.Key.Compare)
	for _, key := range keys {
		it.rows = append(it.rows, m.dates[d][key]...)
	}
	return it, nil
}

// memoryRows visits a copy of the rows.
type memoryRows struct {
	rows []TargetRow
	at   int
}

func (m *memoryRows) Next() bool {
	m.at++
	return m.at < len(m.rows)
}

func (m *memoryRows) Row() *TargetRow { return &m.rows[m.at] }

func (m *memoryRows) Close() error { return nil }

// CountRows adds n to the rows of a date in a list that stays ascending and without empty dates.
func CountRows(partitions []Partition, d Date, n int64) []Partition {
	i, found := slices.BinarySearchFunc(partitions, d, func(p Partition, d Date) int { return cmp.Compare(p.Date, d) })
	if !found {
		partitions = slices.Insert(partitions, i, Partition{Date: d})
	}
	if partitions[i].Rows += n; partitions[i].Rows == 0 {
		partitions = slices.Delete(partitions, i, i+1)
	}
	return partitions
}
