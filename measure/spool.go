package measure

import (
	"encoding/binary"
	"errors"
	"os"
)

// disk is where data goes that does not fit into memory: one file, to which spools add pieces.
type disk struct {
	folder string
	limit  int // words that the spools together keep in memory
	used   int
	spools []*spool
	file   *os.File
	end    int64
	buffer []byte
	free   [][]int64
	err    error // of writing: what was to be kept is lost
}

// wordBytes is the size of a word.
const wordBytes = 8

// blockWords is the size of a full block of a spool.
const blockWords = 4096

// newDisk takes the size of the memory in bytes.
func newDisk(folder string, memory int64) *disk {
	return &disk{folder: folder, limit: int(memory / wordBytes)}
}

// close removes the file.
func (d *disk) close() error {
	if d.file == nil {
		return nil
	}
	err := errors.Join(d.file.Close(), os.Remove(d.file.Name()))
	d.file, d.free = nil, nil
	return err
}

// spool is a sequence of words that can be read again, any number of times, when it is complete. What does not fit
// into memory is on disk.
type spool struct {
	disk   *disk
	pieces []piece
	blocks [][]int64 // after the pieces
	tail   []int64   // the last block
	n      int64
	held   int  // words of memory
	busy   bool // being read, so that its blocks must stay
}

// piece is a part of a spool on disk.
type piece struct {
	at    int64
	words int
}

func (d *disk) newSpool() *spool {
	s := &spool{disk: d}
	d.spools = append(d.spools, s)
	return s
}

// add adds words, put one.
func (s *spool) add(words ...int64) {
	if n := len(s.tail); n+len(words) <= cap(s.tail) {
		s.tail = s.tail[:n+len(words)]
		for i, w := range words { // so few that copy would take longer
			s.tail[n+i] = w
		}
		s.n += int64(len(words))
		return
	}
	for _, w := range words {
		s.put(w)
	}
}

func (s *spool) put(word int64) {
	if len(s.tail) == cap(s.tail) {
		s.grow()
	}
	s.tail = append(s.tail, word)
	s.n++
}

// grow starts a block. Blocks grow, so that many small spools take little.
func (s *spool) grow() {
	d := s.disk
	size := min(max(2*cap(s.tail), 16), blockWords)
	if len(s.tail) > 0 {
		s.blocks = append(s.blocks, s.tail)
		s.tail = nil
	}
	if d.used+size > d.limit {
		d.spill()
	}
	d.used += size
	s.held += size
	if n := len(d.free); size == blockWords && n > 0 {
		s.tail, d.free = d.free[n-1], d.free[:n-1]
	} else {
		s.tail = make([]int64, 0, size)
	}
}

// settle makes room before much is read, of which nothing can be moved meanwhile.
func (d *disk) settle() {
	if d.used > d.limit/2 {
		d.spill()
	}
}

// spill moves all that the spools hold to disk.
func (d *disk) spill() {
	for _, s := range d.spools {
		if s.held > 0 && !s.busy {
			s.spill()
		}
	}
}

func (s *spool) spill() {
	d := s.disk
	if d.file == nil {
		file, err := os.CreateTemp(d.folder, "deduplab-measure-*")
		if err != nil {
			d.err = temporaryError(err)
			return
		}
		d.file = file
	}
	if len(s.tail) > 0 {
		s.blocks = append(s.blocks, s.tail)
		s.tail = nil
	}
	d.buffer = d.buffer[:0]
	words := 0
	for _, b := range s.blocks {
		for _, w := range b {
			d.buffer = binary.LittleEndian.AppendUint64(d.buffer, uint64(w))
		}
		words += len(b)
		if len(d.buffer) > 1<<20 {
			s.write()
		}
		d.recycle(b)
	}
	if words > 0 {
		s.write()
	}
	d.used -= s.held
	s.blocks, s.held = nil, 0
}

// recycle keeps a block for the next spool that needs one.
func (d *disk) recycle(block []int64) {
	if cap(block) == blockWords && len(d.free)*blockWords < d.limit {
		d.free = append(d.free, block[:0])
	}
}

// write appends the buffer to the file, and to the last piece if that ends there.
func (s *spool) write() {
	d := s.disk
	if len(d.buffer) == 0 {
		return
	}
	if _, err := d.file.WriteAt(d.buffer, d.end); err != nil {
		d.err, d.buffer = temporaryError(err), d.buffer[:0]
		return
	}
	words := len(d.buffer) / wordBytes
	if n := len(s.pieces); n > 0 && s.pieces[n-1].at+int64(s.pieces[n-1].words*wordBytes) == d.end {
		s.pieces[n-1].words += words
	} else {
		s.pieces = append(s.pieces, piece{d.end, words})
	}
	d.end += int64(len(d.buffer))
	d.buffer = d.buffer[:0]
}

// drop forgets the words that are in memory, when nobody will read them any more.
func (s *spool) drop() {
	s.disk.used -= s.held
	for _, b := range append(s.blocks, s.tail) {
		s.disk.recycle(b)
	}
	s.blocks, s.tail, s.pieces, s.n, s.held = nil, nil, nil, 0, 0
}

// chunks hands out all words in order, in pieces of a few thousand that are valid until the next.
func (s *spool) chunks(each func([]int64) error) error {
	c := s.read()
	defer c.close()
	for {
		words, err := c.chunk()
		if err != nil || words == nil {
			return err
		}
		if err := each(words); err != nil {
			return err
		}
	}
}

// cursor reads a spool from its start. Several can read one spool at the same time.
type cursor struct {
	s      *spool
	piece  int
	offset int // in the piece, in words
	block  int
	buffer []byte
	words  []int64
	rest   []int64 // of what was read
}

// read starts to read; a spool to which more is added must not be read yet.
func (s *spool) read() *cursor {
	s.busy = true
	return &cursor{s: s}
}

func (c *cursor) close() { c.s.busy = false }

// chunk is the next words, nil at the end.
func (c *cursor) chunk() ([]int64, error) {
	s := c.s
	if s.disk.err != nil {
		return nil, s.disk.err
	}
	if c.piece < len(s.pieces) {
		p := s.pieces[c.piece]
		n := min(p.words-c.offset, blockWords)
		if c.buffer == nil {
			c.buffer, c.words = make([]byte, blockWords*wordBytes), make([]int64, blockWords)
		}
		if _, err := s.disk.file.ReadAt(c.buffer[:n*wordBytes], p.at+int64(c.offset*wordBytes)); err != nil {
			return nil, err
		}
		for i := range n {
			c.words[i] = int64(binary.LittleEndian.Uint64(c.buffer[i*wordBytes:]))
		}
		if c.offset += n; c.offset == p.words {
			c.piece, c.offset = c.piece+1, 0
		}
		return c.words[:n], nil
	}
	c.block++
	switch {
	case c.block <= len(s.blocks):
		return s.blocks[c.block-1], nil
	case c.block == len(s.blocks)+1 && len(s.tail) > 0:
		return s.tail, nil
	}
	return nil, nil
}

// next fills a record, and reports whether there was one.
func (c *cursor) next(record []int64) (bool, error) {
	for filled := 0; filled < len(record); {
		if len(c.rest) == 0 {
			var err error
			if c.rest, err = c.chunk(); err != nil || c.rest == nil {
				return false, err
			}
		}
		n := copy(record[filled:], c.rest)
		c.rest, filled = c.rest[n:], filled+n
	}
	return true, nil
}

// records hands out records of a number of words.
func (s *spool) records(width int, each func([]int64) error) error {
	record, c := make([]int64, width), s.read()
	defer c.close()
	for {
		if len(c.rest) >= width { // without a copy
			err := each(c.rest[:width])
			if c.rest = c.rest[width:]; err != nil {
				return err
			}
			continue
		}
		ok, err := c.next(record)
		if err != nil || !ok {
			return err
		}
		if err := each(record); err != nil {
			return err
		}
	}
}
