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
	differing := map[string][]watchLane{}
	var all []watchLane
	for _, cause := range scenarios.Causes {
		replay, ok := r.replays[cause]
		if !ok {
			continue
		}
		for i, l := range r.base.lanes {
			if l == nil {
				continue
			}
			if bucket := l.digest.FirstDifference(replay.lanes[i].digest); bucket >= 0 {
				differing[cause] = append(differing[cause], watchLane{strategy: i, bucket: bucket})
			}
		}
		all = append(all, differing[cause]...)
	}
	before, err := r.watch(ctx, sim.Perturbation{}, all)
	if err != nil {
		return err
	}
	r.differences = map[string]map[int]string{}
	perturbations := r.causes()
	for _, cause := range scenarios.Causes {
		after, err := r.watch(ctx, perturbations[cause], differing[cause])
		if err != nil {
			return err
		}
		r.differences[cause] = map[int]string{}
		for _, l := range after {
			e := r.entries[l.strategy]
			r.differences[cause][l.strategy] = r.firstDifference(cause, e, before[0].seen, l.seen)
			before = before[1:]
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

// watchLane is a strategy that runs only to see what becomes of the keys of one bucket.
type watchLane struct {
	strategy, bucket int

	lane    *lane
	task    task
	prepare func(*stream.Row)
	all     bool // other keys matter too
	seen    *watched
}

// watch runs lanes and notes the changes of their keys.
func (r *run) watch(ctx context.Context, p sim.Perturbation, wanted []watchLane) ([]*watchLane, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	lanes := make([]*watchLane, len(wanted))
	handlers := make([]handler, len(wanted))
	for i, w := range wanted {
		e, l := r.entries[w.strategy], &w
		l.lane, l.seen = &lane{}, &watched{changes: map[stream.Key][]watchedChange{}}
		defer l.lane.close()
		l.task = r.newTask(e, l.lane, 0)
		if l.lane.err != nil {
			return nil, l.lane.err
		}
		l.prepare, l.all = e.prepare(e.plan), e.plan.SharedCache
		lanes[i], handlers[i] = l, l
	}
	feed := r.newFeed(p)
	err := deliver(func(b *sim.Batch) (bool, error) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		return feed.Next(b)
	}, handlers)
	for _, l := range lanes {
		for _, changes := range l.seen.changes {
			for i := range changes {
				changes[i].content = r.workload.Content(changes[i].Tag)
			}
		}
	}
	return lanes, err
}

func (l *watchLane) handle(b *sim.Batch) error {
	drive(l.task, b, l.push, func(sim.Mark) {})
	l.task.Drain(l.note)
	if err := l.task.Err(); !isQueryError(err) {
		return err
	}
	return nil
}

func (l *watchLane) push(rows []stream.Row) {
	for i := range rows {
		if l.all || l.concerns(&rows[i]) {
			l.task.Row(&rows[i])
		}
	}
}

// note keeps a change of the bucket.
func (l *watchLane) note(c *sim.Change, key stream.Key, _ []stream.Tag) {
	out := c.Op == sim.OpEmit || c.Op == sim.OpRelease || c.Op == sim.OpAgain
	if !out || sim.Bucket(key) != l.bucket {
		return
	}
	w := l.seen
	if _, ok := w.changes[key]; !ok {
		w.keys = append(w.keys, key)
	}
	w.changes[key] = append(w.changes[key], watchedChange{Change: *c})
}

func (l *watchLane) concerns(row *stream.Row) bool {
	if l.prepare == nil {
		return sim.Bucket(row.Key) == l.bucket
	}
	prepared := *row
	l.prepare(&prepared)
	return sim.Bucket(prepared.Key) == l.bucket
}

// firstDifference puts the two timelines of the first key that differs side by side: one that ends with other rows if
// there is one, else one whose changes differ.
func (r *run) firstDifference(cause string, e entry, before, after *watched) string {
	keys := append(before.keys[:len(before.keys):len(before.keys)], after.keys...)
	for _, same := range []func(a, b []watchedChange) bool{sameEnd, sameChanges} {
		for _, key := range keys {
			if a, b := before.changes[key], after.changes[key]; !same(a, b) {
				return fmt.Sprintf("%s: %s in the run, %s under %s", r.rowText(e, append(a[:len(a):len(a)], b...)[0].Tag),
					r.timeline(a), r.timeline(b), cause)
			}
		}
	}
	return ""
}

// sameEnd reports whether two lists of changes of a key end with the same rows, for a reader that retracts.
func sameEnd(a, b []watchedChange) bool {
	rows := map[uint64]int{}
	apply := func(changes []watchedChange, sign int) {
		for _, c := range changes {
			if c.Kind == stream.UpdateBefore || c.Kind == stream.Delete {
				rows[c.content] -= sign
			} else {
				rows[c.content] += sign
			}
		}
	}
	apply(a, 1)
	apply(b, -1)
	for _, n := range rows {
		if n != 0 {
			return false
		}
	}
	return true
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

// rowText names the columns of the row's key.
func (r *run) rowText(e entry, tag stream.Tag) string {
	schema, record := r.workload.Schema(), r.workload.Record(tag)
	columns := schema.Key
	if e.Key != nil {
		columns = nil
		for _, name := range e.Key.Columns {
			columns = append(columns, schema.Index(name))
		}
	}
	parts := make([]string, len(columns))
	for i, k := range columns {
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
