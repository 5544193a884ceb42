package lab

import (
	"context"
	"fmt"
	"strings"

	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/stream"
)

// findDifferences finds, for every strategy that a replay changed, the first key that came out differently. Digests tell
// only in which bucket of keys to look, so the keys of that bucket are run once more.
func (r *run) findDifferences(ctx context.Context) error {
	r.differences = map[string]map[int]string{}
	perturbations := r.causes()
	for _, cause := range scenarios.Causes {
		replay, ok := r.replays[cause]
		if !ok {
			continue
		}
		buckets := map[int]int{}
		for i, l := range r.base.lanes {
			if l == nil {
				continue
			}
			if bucket := l.ledger.Digest().FirstDifference(replay.lanes[i].ledger.Digest()); bucket >= 0 {
				buckets[i] = bucket
			}
		}
		if len(buckets) == 0 {
			continue
		}
		before, err := r.watch(ctx, sim.Perturbation{}, buckets)
		if err != nil {
			return err
		}
		after, err := r.watch(ctx, perturbations[cause], buckets)
		if err != nil {
			return err
		}
		r.differences[cause] = map[int]string{}
		for i := range buckets {
			r.differences[cause][i] = r.firstDifference(cause, before[i], after[i])
		}
	}
	return nil
}

// watched are the changes of the keys of one bucket, by key in the order in which the keys first changed.
type watched struct {
	keys    []stream.Key
	changes map[stream.Key][]watchedChange
}

type watchedChange struct {
	sim.Change
	content uint64
}

// watch runs the keys of one bucket a strategy, and notes their changes.
func (r *run) watch(ctx context.Context, p sim.Perturbation, buckets map[int]int) (map[int]*watched, error) {
	seen := map[int]*watched{}
	var lanes []*watchLane
	for i, bucket := range buckets {
		e, l := r.entries[i], &lane{}
		defer l.close()
		w := &watched{changes: map[stream.Key][]watchedChange{}}
		seen[i] = w
		lanes = append(lanes, &watchLane{
			task: r.newTask(e, l, 0), bucket: bucket, prepare: e.plan.Prepare(r.workload), all: e.plan.SharedCache,
			keep: func(c *sim.Change, key stream.Key, _ []stream.Tag) {
				out := c.Op == sim.OpEmit || c.Op == sim.OpRelease || c.Op == sim.OpAgain
				if !out || sim.Bucket(key) != bucket {
					return
				}
				if _, ok := w.changes[key]; !ok {
					w.keys = append(w.keys, key)
				}
				w.changes[key] = append(w.changes[key], watchedChange{*c, r.workload.Content(c.Tag)})
			},
		})
		if l.err != nil {
			return nil, l.err
		}
	}
	feed, batch := r.feed(p), &sim.Batch{}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ok, err := feed.Next(batch)
		if err != nil || !ok {
			return seen, err
		}
		for _, l := range lanes {
			l.take(batch)
		}
	}
}

// watchLane is a strategy that runs only to see what becomes of the keys of one bucket.
type watchLane struct {
	task    *sim.Task
	bucket  int
	prepare func(*stream.Row)
	all     bool // other keys matter too
	keep    func(*sim.Change, stream.Key, []stream.Tag)
}

func (l *watchLane) take(b *sim.Batch) {
	row := 0
	rows := func(until int) {
		for ; row < until; row++ {
			if l.all || l.concerns(b.Rows[row]) {
				l.task.Row(&b.Rows[row])
			}
		}
	}
	for _, m := range b.Marks {
		rows(m.Before)
		switch m.Kind {
		case sim.SourceWatermark:
			l.task.SourceWatermark(m.Reader, m.Watermark, m.At)
		case sim.CombinedWatermark:
			l.task.Watermark(m.Watermark, m.At)
		case sim.Checkpoint:
			l.task.Checkpoint(m.At)
		}
	}
	rows(len(b.Rows))
	l.task.Take(l.keep)
}

func (l *watchLane) concerns(row stream.Row) bool {
	if l.prepare != nil {
		l.prepare(&row)
	}
	return sim.Bucket(row.Key) == l.bucket
}

// firstDifference puts the two timelines of the first key that differs side by side.
func (r *run) firstDifference(cause string, before, after *watched) string {
	for _, key := range append(before.keys, after.keys...) {
		if a, b := before.changes[key], after.changes[key]; !sameChanges(a, b) {
			which := "nothing"
			if all := append(a[:len(a):len(a)], b...); len(all) > 0 {
				which = r.rowText(all[0].Tag)
			}
			return fmt.Sprintf("%s: %s in the run, %s under %s", which, r.timeline(a), r.timeline(b), cause)
		}
	}
	return ""
}

func sameChanges(a, b []watchedChange) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Kind != b[i].Kind || a[i].content != b[i].content {
			return false
		}
	}
	return true
}

// rowText names the row's key.
func (r *run) rowText(tag stream.Tag) string {
	schema, record := r.workload.Schema(), r.workload.Record(tag)
	parts := make([]string, len(schema.Key))
	for i, k := range schema.Key {
		parts[i] = schema.Columns[k].Name + "=" + record[k].Format(schema.Columns[k])
	}
	return strings.Join(parts, " ")
}

// timeline lists the changes of a key, with what kind of row each is about and its event time.
func (r *run) timeline(changes []watchedChange) string {
	if len(changes) == 0 {
		return "nothing"
	}
	from, _ := r.workload.Span()
	event := r.workload.Schema().Event
	var parts []string
	for i, c := range changes {
		if i == 4 && len(changes) > 5 {
			parts = append(parts, fmt.Sprintf("and %d more", len(changes)-i))
			break
		}
		at := stream.Time(r.workload.Order(c.Tag, event)) - from
		parts = append(parts, fmt.Sprintf("%s %s of %s", c.Kind, r.workload.Origins()[c.Tag.Origin()],
			stream.FormatDuration(at.Floor(1000))))
	}
	return strings.Join(parts, ", ")
}
