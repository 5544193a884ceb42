package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"deduplab/sim"
	"deduplab/stream"
)

// targetStore is a sim.TargetStore: one entry a row, ordered by date, key and ID, and one with what the last change
// recorded, all written in one batch of Pebble. Which dates and keys there are is also known in memory: a key is
// searched only in dates whose filter lets it pass.
type targetStore struct {
	db         *pebble.DB
	partitions []sim.Partition
	filters    map[sim.Date]*growingFilter
	last       int64
	next       uint64
	buf        []byte
}

// OpenTarget opens the target in a directory, an empty one if there is none yet. With dir empty it is in memory.
func OpenTarget(dir string) (sim.Target, error) {
	fs := vfs.Default
	if dir == "" {
		fs = vfs.NewMem()
	}
	return openTarget(dir, fs)
}

func openTarget(dir string, fs vfs.FS) (sim.Target, error) {
	db, err := pebble.Open(dir, &pebble.Options{
		FS: fs, FormatMajorVersion: format, CacheSize: 32 << 20, MemTableSize: 16 << 20, Logger: silent{},
	})
	if err != nil {
		return nil, fmt.Errorf("target table: %w", err)
	}
	s := &targetStore{db: db, filters: map[sim.Date]*growingFilter{}, last: -1}
	if err := s.recover(); err != nil {
		return nil, errors.Join(fmt.Errorf("target table: %w", err), db.Close())
	}
	return sim.NewTarget(s), nil
}

// The entries: recordKey for what the last change recorded, and rows below rowPrefix.
var recordKey = []byte{0}

const (
	rowPrefix  = 1
	rowKeySize = 1 + 4 + 16 + 8
)

// recover reads back what a store of before holds.
func (s *targetStore) recover() error {
	record, closer, err := s.db.Get(recordKey)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return nil
	case err != nil:
		return err
	case len(record) != 16:
		return errCorruptRow
	}
	s.last = int64(binary.BigEndian.Uint64(record))
	s.next = binary.BigEndian.Uint64(record[8:])
	if err := closer.Close(); err != nil {
		return err
	}
	rows, err := s.rows([]byte{rowPrefix}, []byte{rowPrefix + 1})
	if err != nil {
		return err
	}
	for rows.Next() {
		s.count(rows.Row(), 1)
	}
	return rows.Close()
}

// count notes in memory that a row has come or gone.
func (s *targetStore) count(row *sim.TargetRow, n int64) {
	s.partitions = sim.CountRows(s.partitions, row.Date, n)
	if n < 0 {
		return
	}
	f := s.filters[row.Date]
	if f == nil {
		f = &growingFilter{}
		s.filters[row.Date] = f
	}
	f.add(row.Key)
}

func (s *targetStore) Partitions() []sim.Partition { return s.partitions }

func (s *targetStore) Last() int64 { return s.last }

func (s *targetStore) NextID() uint64 { return s.next }

func (s *targetStore) Close() error { return s.db.Close() }

func (s *targetStore) Find(to []sim.TargetRow, d sim.Date, key stream.Key) ([]sim.TargetRow, error) {
	if f := s.filters[d]; f == nil || !f.has(filterHash(key)) {
		return to, nil
	}
	lower := appendRowPrefix(nil, d, key)
	rows, err := s.rows(lower, append(lower[:len(lower):len(lower)], 0xff))
	if err != nil {
		return to, err
	}
	for rows.Next() {
		to = append(to, *rows.Row())
	}
	return to, rows.Close()
}

func (s *targetStore) Rows(d sim.Date) (sim.TargetIterator, error) {
	return s.rows(appendDate([]byte{rowPrefix}, d), appendDate([]byte{rowPrefix}, d+1))
}

func (s *targetStore) rows(lower, upper []byte) (*targetRows, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, fmt.Errorf("target table: %w", err)
	}
	return &targetRows{it: it}, nil
}

// Apply commits one batch of Pebble.
func (s *targetStore) Apply(c *sim.TargetChange) error {
	b := s.db.NewBatch()
	defer b.Close()
	for i := range c.Remove {
		s.buf = appendRowKey(s.buf[:0], &c.Remove[i])
		if err := b.Delete(s.buf, nil); err != nil {
			return fmt.Errorf("target table: %w", err)
		}
	}
	for i := range c.Put {
		s.buf = appendRowKey(s.buf[:0], &c.Put[i])
		s.buf = appendRow(s.buf, &c.Put[i])
		if err := b.Set(s.buf[:rowKeySize], s.buf[rowKeySize:], nil); err != nil {
			return fmt.Errorf("target table: %w", err)
		}
	}
	record := binary.BigEndian.AppendUint64(nil, uint64(c.Last))
	record = binary.BigEndian.AppendUint64(record, c.NextID)
	err := b.Set(recordKey, record, nil)
	if err == nil {
		err = b.Commit(pebble.NoSync) // what must outlive the machine is none of the lab's runs
	}
	if err != nil {
		return fmt.Errorf("target table: %w", err)
	}
	for i := range c.Remove {
		s.count(&c.Remove[i], -1)
	}
	for i := range c.Put {
		s.count(&c.Put[i], 1)
	}
	s.last, s.next = c.Last, c.NextID
	return nil
}

// targetRows visits rows.
type targetRows struct {
	it      *pebble.Iterator
	started bool
	row     sim.TargetRow
	err     error
}

func (r *targetRows) Next() bool {
	ok := false
	if r.started {
		ok = r.it.Next()
	} else {
		ok, r.started = r.it.First(), true
	}
	if ok && r.err == nil {
		r.row, r.err = parseRow(r.it.Key(), r.it.Value())
	}
	return ok && r.err == nil
}

func (r *targetRows) Row() *sim.TargetRow { return &r.row }

func (r *targetRows) Close() error {
	if err := errors.Join(r.err, r.it.Close()); err != nil {
		return fmt.Errorf("target table: %w", err)
	}
	return nil
}

// appendDate writes a date so that bytes are ordered as dates.
func appendDate(b []byte, d sim.Date) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(d)^1<<31)
}

func appendRowPrefix(b []byte, d sim.Date, key stream.Key) []byte {
	b = appendDate(append(b, rowPrefix), d)
	b = binary.BigEndian.AppendUint64(b, key.Hi)
	return binary.BigEndian.AppendUint64(b, key.Lo)
}

func appendRowKey(b []byte, row *sim.TargetRow) []byte {
	return binary.BigEndian.AppendUint64(appendRowPrefix(b, row.Date, row.Key), row.ID)
}

// appendRow stores what the key does not hold.
func appendRow(b []byte, row *sim.TargetRow) []byte {
	null := byte(0)
	if row.NullKey {
		null = 1
	}
	b = append(b, null)
	b = binary.AppendVarint(b, int64(row.Event))
	b = binary.AppendUvarint(b, uint64(row.Tag))
	b = binary.AppendVarint(b, row.Batch)
	return binary.AppendVarint(b, int64(row.Written))
}

var errCorruptRow = errors.New("a row cannot be read")

func parseRow(key, value []byte) (sim.TargetRow, error) {
	if len(key) != rowKeySize || len(value) == 0 {
		return sim.TargetRow{}, errCorruptRow
	}
	row := sim.TargetRow{
		Date:    sim.Date(binary.BigEndian.Uint32(key[1:]) ^ 1<<31),
		Key:     stream.Key{Hi: binary.BigEndian.Uint64(key[5:]), Lo: binary.BigEndian.Uint64(key[13:])},
		ID:      binary.BigEndian.Uint64(key[21:]),
		NullKey: value[0] == 1,
	}
	var fields [4]int64
	rest := value[1:]
	for i := range fields {
		v, n := binary.Varint(rest)
		if i == 1 {
			var tag uint64
			tag, n = binary.Uvarint(rest)
			v = int64(tag)
		}
		if n <= 0 {
			return sim.TargetRow{}, errCorruptRow
		}
		fields[i], rest = v, rest[n:]
	}
	row.Event, row.Tag = stream.Time(fields[0]), stream.Tag(fields[1])
	row.Batch, row.Written = fields[2], sim.Date(fields[3])
	return row, nil
}

// growingFilter is a row of filters, each for twice as many keys as the one before.
type growingFilter struct {
	filters []filter
	room    int // keys that the last one still takes
}

func (g *growingFilter) add(key stream.Key) {
	if g.room == 0 {
		g.room = 1024 << len(g.filters)
		g.filters = append(g.filters, newFilter(g.room))
	}
	g.filters[len(g.filters)-1].add(key)
	g.room--
}

func (g *growingFilter) has(hash uint64) bool {
	for _, f := range g.filters {
		if f.has(hash) {
			return true
		}
	}
	return false
}
