package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"deduplab/results"
	"deduplab/sim"
	"deduplab/stream"
)

// difference names the difference that a cause makes to a strategy, by its index.
type difference struct {
	cause    string
	strategy int
}

// found is the smallest difference that was found.
type found struct {
	replay int // index
	event  uint64
	text   string
	short  bool // few rows tell it
}

// longStory is the number of changes of a key from which on they are not told side by side.
const longStory = 40

// findDifferences finds, for every strategy and cause, the first replay whose final table differs, or whose changes do,
// and in it a key that came out differently. Digests tell only in which bucket of keys to look, so the keys of that
// bucket are run once more.
func (r *run) findDifferences(ctx context.Context) error {
	wanted := make([][]watchLane, len(r.replays))
	for i := range r.entries {
		worst := map[string]int{} // replay, by cause
		for j, p := range r.replays {
			if p.pass.lanes[i] == nil || r.base.lanes[i].digest.FirstDifference(p.pass.lanes[i].digest) < 0 {
				continue
			}
			before, ok := worst[p.cause]
			if !ok || r.sameTable(i, before) && !r.sameTable(i, j) {
				worst[p.cause] = j
			}
		}
		for _, j := range worst {
			bucket := r.base.lanes[i].digest.FirstDifference(r.replays[j].pass.lanes[i].digest)
			wanted[j] = append(wanted[j], watchLane{strategy: i, bucket: bucket})
		}
	}
	all := slices.Concat(wanted...)
	seen := make([][]*watchLane, len(r.replays))
	var before []*watchLane
	err := r.atOnce(1+len(r.replays), func(j int) (err error) {
		if j == 0 {
			before, err = r.watch(ctx, all)
		} else {
			seen[j-1], err = r.replays[j-1].run.watch(ctx, wanted[j-1])
		}
		return err
	})
	if err != nil {
		return err
	}
	r.differences = map[difference]*found{}
	for j, lanes := range seen {
		for _, l := range lanes {
			p := r.replays[j]
			if f := r.smallestDifference(p, l.strategy, before[0].seen, l.seen); f != nil {
				f.replay = j
				r.differences[difference{p.cause, l.strategy}] = f
				r.tellMissing(f, p.pass.missing)
			}
			before = before[1:]
		}
	}
	return nil
}

func (r *run) sameTable(strategy, replay int) bool {
	return r.base.lanes[strategy].digest.SameTable(r.replays[replay].pass.lanes[strategy].digest)
}

// tellMissing adds what the source no longer had.
func (r *run) tellMissing(f *found, m sim.Missing) {
	if m.Rows > 0 {
		f.text = fmt.Sprintf("the source no longer has %s rows, which loses %s events; %s", results.FormatCount(m.Rows),
			results.FormatCount(m.Events), f.text)
	}
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
	records stream.Records
	result  sim.Result
	seen    *watched
}

// watch runs lanes and notes the changes of their keys.
func (r *run) watch(ctx context.Context, wanted []watchLane) ([]*watchLane, error) {
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
		l.records, l.result = e.workload, resultOf(e.plan)
		lanes[i], handlers[i] = l, l
	}
	feed := r.newFeed()
	err := deliver(func(b *sim.Batch) (bool, error) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		return feed.Next(b)
	}, handlers)
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
func (l *watchLane) note(c *sim.Change, key stream.Key, parts []stream.Tag) {
	out := c.Op == sim.OpEmit || c.Op == sim.OpRelease || c.Op == sim.OpAgain
	if !out || sim.Bucket(key) != l.bucket {
		return
	}
	w := l.seen
	if _, ok := w.changes[key]; !ok {
		w.keys = append(w.keys, key)
	}
	w.changes[key] = append(w.changes[key], watchedChange{*c, l.result.Content(l.records, c.Tag, key, parts)})
}

func (l *watchLane) concerns(row *stream.Row) bool {
	if l.prepare == nil {
		return sim.Bucket(row.Key) == l.bucket
	}
	prepared := *row
	l.prepare(&prepared)
	return sim.Bucket(prepared.Key) == l.bucket
}

// smallestDifference finds the key that differs with the fewest changes: one that ends with other rows if there is one,
// else one whose changes differ. It puts the two timelines side by side.
func (r *run) smallestDifference(p *replay, strategy int, before, after *watched) *found {
	e, again := r.entries[strategy], p.run.entries[strategy].workload
	keys := append(before.keys[:len(before.keys):len(before.keys)], after.keys...)
	for _, same := range []func(a, b []watchedChange) bool{sameEnd, sameChanges} {
		var smallest []watchedChange
		var f *found
		for _, key := range keys {
			a, b := before.changes[key], after.changes[key]
			all := slices.Concat(a, b)
			if same(a, b) || f != nil && len(all) >= len(smallest) {
				continue
			}
			smallest = all
			f = &found{event: all[0].Tag.Event(), short: len(all) < longStory, text: fmt.Sprintf(
				"%s: %s in the run, %s under %s", r.rowText(e, all[0].Tag), r.timeline(a, e.workload, again),
				r.timeline(b, again, e.workload), p.cause)}
		}
		if f != nil {
			return f
		}
	}
	return nil
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

// timeline lists the changes of a key, with what kind of row each is about and its event time, and those of its columns
// that have other values in the other records.
func (r *run) timeline(changes []watchedChange, records, others stream.Records) string {
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
		text := fmt.Sprintf("%s %s of %s", c.Kind, r.workload.Origins()[c.Tag.Origin()],
			stream.FormatDuration(at.Floor(1000)))
		for j, column := range records.Schema().Columns {
			if column.Function == stream.NoFunction {
				continue
			}
			if v := records.Record(c.Tag)[j]; v != others.Record(c.Tag)[j] {
				text += " with " + column.Name + "=" + v.Format(column)
			}
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
