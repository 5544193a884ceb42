package measure

import (
	"container/heap"
	"errors"
	"slices"
)

// sorter brings records in order of their first two words, the arrival and the partition; equal ones stay as they come.
// It keeps a window of them in memory, from which it hands out the earlier ones when it is full. Records that come
// later than the window reaches need a whole sort, in runs on disk that are merged; whether one is needed shows on the
// way.
type sorter struct {
	disk   *disk
	width  int
	limit  int // records in the window
	whole  bool
	each   func([]int64) error
	window []int64
	other  []int64
	sorted bool     // whether the window was in order when it was full
	last   [2]int64 // handed out
	some   bool     // whether any was
	runs   []*spool
}

// errUnordered says that a whole sort is needed.
var errUnordered = errors.New("the rows are too far out of order")

func (s *sorter) add(record []int64) error {
	if n := len(s.window); n == cap(s.window) && n >= 1<<17 { // in larger steps than append takes
		s.window = slices.Grow(s.window, min(s.limit*s.width, 8*n)-n)
	}
	s.window = append(s.window, record...)
	if len(s.window) < s.limit*s.width {
		return nil
	}
	s.sort()
	if s.whole {
		run := s.disk.newSpool()
		run.add(s.window...)
		s.runs, s.window = append(s.runs, run), s.window[:0]
		return nil
	}
	keep := s.limit / 2 * s.width
	if s.sorted { // so far it was in order: a little will do, and if not there is a whole sort
		keep = s.limit / 16 * s.width
	}
	out := len(s.window) - keep
	if err := s.handOut(s.window[:out]); err != nil {
		return err
	}
	s.window = s.window[:copy(s.window, s.window[out:])]
	return nil
}

// finish hands out what is left.
func (s *sorter) finish() error {
	s.sort()
	if len(s.runs) == 0 {
		return s.handOut(s.window)
	}
	return s.merge()
}

func (s *sorter) handOut(records []int64) error {
	if len(records) == 0 {
		return nil
	}
	if s.some && compareRecords(records, s.last[:]) < 0 {
		return errUnordered
	}
	for at := 0; at < len(records); at += s.width {
		if err := s.each(records[at : at+s.width]); err != nil {
			return err
		}
	}
	s.some = true
	copy(s.last[:], records[len(records)-s.width:])
	return nil
}

func compareRecords(a, b []int64) int {
	for i := range 2 {
		if a[i] != b[i] {
			if a[i] < b[i] {
				return -1
			}
			return 1
		}
	}
	return 0
}

// sort sorts the window, if it is not sorted.
func (s *sorter) sort() {
	w := s.width
	s.sorted = true
	for at := w; at < len(s.window) && s.sorted; at += w {
		s.sorted = compareRecords(s.window[at-w:], s.window[at:]) <= 0
	}
	if s.sorted {
		return
	}
	order := make([]uint32, len(s.window)/w)
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		if c := compareRecords(s.window[int(a)*w:], s.window[int(b)*w:]); c != 0 {
			return c
		}
		return int(a) - int(b)
	})
	s.other = slices.Grow(s.other[:0], cap(s.window))
	for _, i := range order {
		s.other = append(s.other, s.window[int(i)*w:(int(i)+1)*w]...)
	}
	s.window, s.other = s.other, s.window
}

// merge hands out the runs, of which the last is the window.
func (s *sorter) merge() error {
	last := s.disk.newSpool()
	last.add(s.window...)
	s.runs = append(s.runs, last)
	s.window, s.other = nil, nil
	s.disk.settle()
	m := &merging{}
	for i, run := range s.runs {
		h := &head{cursor: run.read(), record: make([]int64, s.width), run: i}
		defer h.cursor.close()
		ok, err := h.cursor.next(h.record)
		if err != nil {
			return err
		}
		if ok {
			*m = append(*m, h)
		}
	}
	heap.Init(m)
	for len(*m) > 0 {
		h := (*m)[0]
		if err := s.each(h.record); err != nil {
			return err
		}
		ok, err := h.cursor.next(h.record)
		if err != nil {
			return err
		}
		if ok {
			heap.Fix(m, 0)
		} else {
			heap.Pop(m)
		}
	}
	return nil
}

// head is the next record of a run.
type head struct {
	cursor *cursor
	record []int64
	run    int
}

// merging is the heads of all runs, the first one on top.
type merging []*head

func (m merging) Len() int      { return len(m) }
func (m merging) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m *merging) Push(x any)   { *m = append(*m, x.(*head)) }

func (m merging) Less(i, j int) bool {
	if c := compareRecords(m[i].record, m[j].record); c != 0 {
		return c < 0
	}
	return m[i].run < m[j].run
}

func (m *merging) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}
