// Package pebble keeps the cold part of a table in Pebble. It is the only package that imports Pebble.
//
// What a table spills becomes one sorted file, written beside the store and ingested into it: nothing goes through a
// log or a memtable, and nothing is ever compacted, because files of different spills do not overlap. A key is searched
// in the filters of the spills, which are in memory, and only where one lets it pass in the store.
package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"deduplab/sim"
	"deduplab/stream"
)

const (
	format = pebble.FormatTableFormatV6 // named, so that physical sizes do not change with Pebble's newest
	level  = 6                          // to which files that overlap with none are ingested
)

// store is a sim.Cold.
type store struct {
	db      *pebble.DB
	opts    *pebble.Options
	dir     string
	next    uint32 // number of the next bucket
	buckets []bucket
	buf     []byte
}

// bucket is one spill.
type bucket struct {
	number uint32
	newest stream.Time
	filter filter
}

// Open makes an empty store in a directory that holds none yet, or in memory if dir is empty.
func Open(dir string) (sim.Cold, error) {
	opts := &pebble.Options{
		FS:                          vfs.Default,
		FormatMajorVersion:          format,
		ErrorIfExists:               true,
		DisableWAL:                  true,
		DisableAutomaticCompactions: true,
		DisableTableStats:           true,
		CacheSize:                   32 << 20,
		Logger:                      silent{},
	}
	if dir == "" {
		opts.FS = vfs.NewMem()
	}
	opts.EnsureDefaults()
	db, err := pebble.Open(dir, opts)
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	return &store{db: db, opts: opts, dir: dir}, nil
}

// silent drops what Pebble has to tell. Errors come back from its calls.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// Spill writes the entries as one file and ingests it.
func (s *store) Spill(entries []sim.Entry) error {
	b := bucket{number: s.next, newest: stream.MinTime, filter: newFilter(len(entries))}
	for i := range entries {
		b.newest = max(b.newest, entries[i].Written())
		b.filter.add(entries[i].Key)
	}
	path := s.opts.FS.PathJoin(s.dir, fmt.Sprintf("spill-%d", b.number))
	if err := s.write(path, &b, entries); err != nil {
		return fmt.Errorf("state: spill %d: %w", b.number, err)
	}
	if err := s.db.Ingest(context.Background(), []string{path}); err != nil {
		return fmt.Errorf("state: ingest spill %d: %w", b.number, err)
	}
	s.next++
	s.buckets = append(s.buckets, b)
	return nil
}

func (s *store) write(path string, b *bucket, entries []sim.Entry) error {
	file, err := s.opts.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(file),
		s.opts.MakeWriterOptions(level, format.MaxTableFormat()))
	for i := range entries {
		e := &entries[i]
		s.buf = appendKey(s.buf[:0], b.number, e.Key)
		at := len(s.buf)
		s.buf = appendValue(s.buf, b.newest, e)
		if err := w.Set(s.buf[:at], s.buf[at:]); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

// Get searches the newest bucket first.
func (s *store) Get(key stream.Key) (sim.Entry, bool, error) { return s.get(key, s.buckets) }

func (s *store) get(key stream.Key, buckets []bucket) (sim.Entry, bool, error) {
	hash := filterHash(key)
	for i := len(buckets) - 1; i >= 0; i-- {
		b := &buckets[i]
		if !b.filter.has(hash) {
			continue
		}
		s.buf = appendKey(s.buf[:0], b.number, key)
		value, closer, err := s.db.Get(s.buf)
		if errors.Is(err, pebble.ErrNotFound) {
			continue
		}
		if err != nil {
			return sim.Entry{}, false, fmt.Errorf("state: %w", err)
		}
		e, err := parseValue(key, b.newest, value)
		return e, err == nil, errors.Join(err, closer.Close())
	}
	return sim.Entry{}, false, nil
}

// DropBefore excises buckets from the store: their files go at once.
func (s *store) DropBefore(written stream.Time) error {
	n := 0
	for n < len(s.buckets) && s.buckets[n].newest < written {
		n++
	}
	if n == 0 {
		return nil
	}
	span := pebble.KeyRange{Start: bound(s.buckets[0].number), End: bound(s.buckets[n-1].number + 1)}
	s.buckets = append([]bucket(nil), s.buckets[n:]...)
	if err := s.db.Excise(context.Background(), span); err != nil {
		return fmt.Errorf("state: drop %d buckets: %w", n, err)
	}
	return nil
}

// Each visits the newest bucket first, and each bucket in the order of keys.
func (s *store) Each(f func(*sim.Entry) error) error {
	for i := len(s.buckets) - 1; i >= 0; i-- {
		if err := s.eachOf(i, f); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) eachOf(i int, f func(*sim.Entry) error) (err error) {
	b := &s.buckets[i]
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: bound(b.number), UpperBound: bound(b.number + 1)})
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		k := it.Key()[4:]
		key := stream.Key{Hi: binary.BigEndian.Uint64(k), Lo: binary.BigEndian.Uint64(k[8:])}
		if _, newer, err := s.get(key, s.buckets[i+1:]); err != nil {
			return err
		} else if newer {
			continue
		}
		e, err := parseValue(key, b.newest, it.Value())
		if err == nil {
			err = f(&e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Bytes sums the sizes of the files, which are in their final form from the start.
func (s *store) Bytes() (int64, error) {
	levels, err := s.db.SSTables()
	if err != nil {
		return 0, fmt.Errorf("state: %w", err)
	}
	size := int64(0)
	for _, files := range levels {
		for _, file := range files {
			size += int64(file.Size)
		}
	}
	return size, nil
}

// Close closes the store and leaves its files.
func (s *store) Close() error { return s.db.Close() }

// bound is the least key of a bucket.
func bound(number uint32) []byte { return binary.BigEndian.AppendUint32(nil, number) }

func appendKey(b []byte, number uint32, key stream.Key) []byte {
	b = binary.BigEndian.AppendUint32(b, number)
	b = binary.BigEndian.AppendUint64(b, key.Hi)
	return binary.BigEndian.AppendUint64(b, key.Lo)
}

// appendValue stores the rest of an entry: flags, how long before newest it was written, value, tag.
func appendValue(b []byte, newest stream.Time, e *sim.Entry) []byte {
	b = append(b, byte(e.Flags()))
	b = binary.AppendUvarint(b, uint64(newest-e.Written()))
	b = binary.AppendVarint(b, e.Value)
	return binary.AppendUvarint(b, uint64(e.Tag))
}

var errCorrupt = errors.New("state: an entry cannot be read")

func parseValue(key stream.Key, newest stream.Time, b []byte) (sim.Entry, error) {
	if len(b) == 0 {
		return sim.Entry{}, errCorrupt
	}
	flags, b := sim.Flags(b[0]), b[1:]
	age, n := binary.Uvarint(b)
	value, m := binary.Varint(b[max(n, 0):])
	if n <= 0 || m <= 0 {
		return sim.Entry{}, errCorrupt
	}
	tag, n2 := binary.Uvarint(b[n+m:])
	if n2 <= 0 {
		return sim.Entry{}, errCorrupt
	}
	return sim.MakeEntry(key, newest-stream.Time(age), value, stream.Tag(tag), flags), nil
}
