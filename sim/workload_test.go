package sim

import (
	"fmt"
	"slices"

	"deduplab/gen"
	"deduplab/stream"
)

// handmade is a workload written out row by row, for tests. Its rows stand in order of arrival.
type handmade struct {
	rows       []stream.Row
	names      map[stream.Tag]string
	partitions int
	end        stream.Time
	ends       []gen.End
}

// rowsOf makes a workload from rows, in order of arrival. A row's event and copy number are taken from its name: a1 is
// the original of event a, a2 its first copy, b1 another event. Only Key, Event, Arrival and Partition need be set.
func rowsOf(end stream.Time, names []string, rows []stream.Row) *handmade {
	w := &handmade{names: map[stream.Tag]string{}, partitions: 1, end: end}
	seen := map[uint64]bool{}
	for i, row := range rows {
		event, copied := uint64(names[i][0]-'a'), int(names[i][1]-'1')
		row.Tag = stream.NewTag(event, min(copied, 1), copied)
		row.First = !seen[event]
		seen[event] = true
		w.names[row.Tag] = names[i]
		w.partitions = max(w.partitions, int(row.Partition)+1)
		w.rows = append(w.rows, row)
	}
	return w
}

// row finds a row by its name.
func (w *handmade) row(name string) *stream.Row {
	for i := range w.rows {
		if w.names[w.rows[i].Tag] == name {
			return &w.rows[i]
		}
	}
	panic("no row " + name)
}

func (w *handmade) of(tag stream.Tag) *stream.Row {
	i := slices.IndexFunc(w.rows, func(r stream.Row) bool { return r.Tag == tag })
	return &w.rows[i]
}

func (w *handmade) Schema() stream.Schema {
	return stream.Schema{Columns: []stream.Column{{Name: "name"}, {Name: "ts", Type: stream.Timestamp}}, Event: 1}
}

func (w *handmade) Record(tag stream.Tag) stream.Record {
	return stream.Record{{Text: w.names[tag]}, {Int: int64(w.of(tag).Event)}}
}

func (w *handmade) Order(tag stream.Tag, column int) int64 { return w.Record(tag)[column].Int }
func (w *handmade) Content(tag stream.Tag) uint64          { return uint64(tag) + 1 }
func (w *handmade) Partitions() int                        { return w.partitions }
func (w *handmade) Span() (from, to stream.Time)           { return 0, w.end }
func (w *handmade) Ends() []gen.End                        { return w.ends }
func (w *handmade) Labelled() bool                         { return true }
func (w *handmade) Origins() []string                      { return []string{"original", "copy"} }
func (w *handmade) LastArrival(event uint64) stream.Time {
	rows := w.Rows(nil, event)
	return w.Arrival(rows[len(rows)-1])
}
func (w *handmade) NewKey(int) bool                       { return false }
func (w *handmade) ReusedID(uint64) bool                  { return false }
func (w *handmade) Partition(tag stream.Tag) int          { return int(w.of(tag).Partition) }
func (w *handmade) Arrival(tag stream.Tag) stream.Time    { return w.of(tag).Arrival }
func (w *handmade) FirstArrival(event uint64) stream.Time { return w.Arrival(w.Rows(nil, event)[0]) }

func (w *handmade) Rows(tags []stream.Tag, event uint64) []stream.Tag {
	for _, row := range w.rows {
		if row.Tag.Event() == event {
			tags = append(tags, row.Tag)
		}
	}
	return tags
}

func (w *handmade) Stream() gen.Stream { return &reading{w.rows} }

// reading delivers the rows of a handmade workload.
type reading struct{ rest []stream.Row }

func (r *reading) Next(dst []stream.Row) (int, error) {
	n := copy(dst, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// told writes down what a feed delivers, one word a row or mark: p1@200 is a row of partition 1 that is read at 200.
func told(f *Feed) (events []string, err error) {
	for batch := (&Batch{}); ; {
		ok, err := f.Next(batch)
		if err != nil || !ok {
			return events, err
		}
		row := 0
		rows := func(until int) {
			for ; row < until; row++ {
				events = append(events, fmt.Sprintf("p%d@%d", batch.Rows[row].Partition, batch.Rows[row].Arrival))
			}
		}
		for _, m := range batch.Marks {
			rows(m.Before)
			events = append(events, m.text())
		}
		rows(len(batch.Rows))
	}
}

func (m Mark) text() string {
	watermark := fmt.Sprint(int64(m.Watermark))
	if m.Watermark == stream.MaxTime {
		watermark = "max"
	}
	switch m.Kind {
	case SourceWatermark:
		return fmt.Sprintf("r%d=%s", m.Reader, watermark)
	case CombinedWatermark:
		return "watermark=" + watermark
	}
	return fmt.Sprintf("%s@%d", [...]string{Checkpoint: "checkpoint", Sample: "sample", EndOfSpan: "span",
		EndOfInput: "end"}[m.Kind], m.At)
}
