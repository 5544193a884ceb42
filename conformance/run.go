package conformance

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// Run replays a case and returns where the lab differs from the recording. The error says that the case cannot be run:
// an unknown strategy or option, a malformed step.
func Run(c *Case) ([]Diff, error) {
	if strings.HasPrefix(c.Strategy, "watermark-") {
		return runWatermark(c)
	}
	records, err := newRecords(c)
	if err != nil {
		return nil, err
	}
	id, plan, err := c.plan(records.schema)
	if err != nil {
		return nil, err
	}
	r := &replay{c: c, id: id, plan: plan, records: records, names: map[stream.Key]string{}, wm: stream.MinTime}
	r.prepare = plan.Prepare(records)
	if m := upsertPattern.FindStringSubmatch(c.Consumer); m != nil {
		r.notNull = strings.Split(m[1], ", ")
	}
	declared := plan.Input
	if !plan.ToChangelog {
		declared = plan.Changelog
	}
	r.task = sim.NewTask(sim.TaskSpec{
		Parallelism: 1, Readers: 1, Records: records, New: plan.New, Prepare: r.prepare,
		UpdateBefore: declared.Has(stream.UpdateBefore), Jump: true,
	})
	if want, got := strings.Join(c.Plan.Declared, ","), strings.Join(plan.Changelog.Names(), ","); want != got {
		r.diffs = append(r.diffs, Diff{-1, "declared_changelog", want, got})
	}
	for i := range c.Steps {
		stop, err := r.step(i)
		if err != nil {
			return nil, fmt.Errorf("%s: step %d: %w", c.File, i+1, err)
		}
		if stop {
			break
		}
	}
	return r.diffs, nil
}

// replay is a case that is being run.
type replay struct {
	c       *Case
	id      recorded
	plan    strategies.Plan
	records *caseRecords
	prepare func(*stream.Row)
	task    *sim.Task
	names   map[stream.Key]string // keys as last_write spells them
	notNull []string              // key columns of an upsert sink
	at      stream.Time
	wm      stream.Time
	diffs   []Diff
}

func (r *replay) differ(step int, what, want, got string) {
	if want != got {
		r.diffs = append(r.diffs, Diff{step, what, want, got})
	}
}

// step feeds one step and compares. It reports whether the run stops there.
func (r *replay) step(i int) (bool, error) {
	s := &r.c.Steps[i]
	if s.At != nil {
		r.at = stream.Time(*s.At)
	}
	r.task.Clock(r.at)
	failure := ""
	switch {
	case s.Row != nil:
		row, err := r.records.row(i)
		if err != nil {
			return false, err
		}
		row.Arrival = r.at
		if r.c.Consumer == "datastream" && r.records.null(row.Tag, r.records.schema.Key[0]) {
			failure = "a DataStream key selector may not return null"
			break
		}
		prepared := row
		if r.prepare != nil {
			r.prepare(&prepared)
		}
		r.names[prepared.Key] = r.records.name(row.Tag, r.plan.Key)
		r.task.Row(&row)
		r.task.Clock(r.at)
	case s.Watermark != nil:
		w, err := strconv.ParseInt(string(s.Watermark), 10, 64)
		if err != nil {
			return false, fmt.Errorf("watermark %s is not a number of milliseconds", s.Watermark)
		}
		// A watermark that does not advance has no effect: StatusWatermarkValve.
		if stream.Time(w) > r.wm {
			r.wm = stream.Time(w)
			r.task.SourceWatermark(0, r.wm, r.at)
			r.task.Watermark(r.wm, r.at)
		}
	case s.Checkpoint != nil:
		r.task.Checkpoint(r.at)
	case s.Shipment != nil:
		return false, fmt.Errorf("shipment rows need an interval join, which the lab does not run yet")
	}
	got, err := r.emitted()
	if err != nil {
		failure = err.Error()
	}
	r.compareEmits(i, s, got)
	if s.Error != "" || failure != "" {
		r.differ(i, "error", verdict(s.Error != ""), verdict(failure != ""))
		return true, nil
	}
	r.compareState(i, s)
	return false, nil
}

func verdict(fails bool) string {
	if fails {
		return "the run stops here with an error"
	}
	return "no error"
}

// output is one emitted row.
type output struct {
	text string
	key  string
	time int64 // that of its timer: equal times may come in any order
}

// emitted takes what the step emitted, as text. The error is that of the sink.
func (r *replay) emitted() ([]output, error) {
	var out []output
	var failure error
	r.task.Take(func(c *sim.Change, key stream.Key, parts []stream.Tag) {
		side := c.Op == sim.OpDrop && c.To == sim.Diverted && r.id.strategy == "keyed-process"
		if !side && c.Op != sim.OpEmit && c.Op != sim.OpRelease && c.Op != sim.OpAgain {
			return
		}
		record := r.records.Record(c.Tag)
		if parts != nil {
			record = sim.Compose(r.records, parts)
		}
		fields := map[string]string{"kind": c.Kind.String()}
		if side {
			fields["side_output"] = "duplicates"
		}
		if r.plan.ToChangelog {
			fields["op"] = [...]string{"INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"}[c.Kind]
			fields["kind"] = "+I"
		}
		event := record[r.records.schema.Event].Int
		o := output{key: r.names[key], time: event}
		for i, column := range r.records.schema.Columns {
			if r.plan.Output == strategies.KeyOnly && !slices.Contains(r.records.schema.Key, i) ||
				r.plan.Output == strategies.DropEvent && i == r.records.schema.Event ||
				r.id.watermarkColumn && i != r.records.schema.Event && !slices.Contains(r.records.schema.Key, i) {
				continue
			}
			fields[column.Name] = jsonValue(record[i], column)
			if record[i].Null && slices.Contains(r.notNull, column.Name) && failure == nil {
				failure = fmt.Errorf("column %s of the sink is NOT NULL", column.Name)
			}
		}
		if r.plan.Output == strategies.Windowed {
			end := int64(strategies.WindowEnd(stream.Time(event), r.plan.Window))
			fields["window_start"] = strconv.FormatInt(end-int64(r.plan.Window), 10)
			fields["window_end"] = strconv.FormatInt(end, 10)
			o.time = end
		}
		if r.id.rowNumber {
			fields["rn"] = "1"
		}
		if r.id.watermarkColumn {
			fields["wm"] = "null"
			if r.wm != stream.MinTime {
				fields["wm"] = strconv.FormatInt(int64(r.wm), 10)
			}
		}
		if failure == nil {
			o.text = render(fields)
			out = append(out, o)
		}
	})
	return out, failure
}

// jsonValue spells a value as the recordings do: numbers bare, strings and decimals quoted.
func jsonValue(v stream.Value, c stream.Column) string {
	switch {
	case v.Null:
		return "null"
	case c.Type == stream.String:
		b, _ := json.Marshal(v.Text)
		return string(b)
	case c.Type == stream.Decimal:
		return strconv.Quote(stream.FormatDecimal(v.Int, c.Scale))
	}
	return strconv.FormatInt(v.Int, 10)
}

// render spells a row with its columns in alphabetical order.
func render(fields map[string]string) string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		if name != "kind" && name != "side_output" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = name + ": " + fields[name]
	}
	side := ""
	if s := fields["side_output"]; s != "" {
		side = "side output " + s + " "
	}
	return side + fields["kind"] + " {" + strings.Join(parts, ", ") + "}"
}

// compareEmits compares exactly, save for the order of keys among rows that one watermark releases at the same time.
func (r *replay) compareEmits(i int, s *Step, got []output) {
	want := make([]output, len(s.Emits))
	for j, row := range s.Emits {
		want[j] = r.recordedOutput(row)
	}
	if s.Watermark != nil {
		times := func(out []output) string {
			parts := make([]string, len(out))
			for j, o := range out {
				parts[j] = strconv.FormatInt(o.time, 10)
			}
			return strings.Join(parts, " ")
		}
		if len(want) == len(got) {
			r.differ(i, "order of emits by time", times(want), times(got))
		}
		byTimeAndKey := func(a, b output) int {
			if a.time != b.time {
				return int(math.Copysign(1, float64(a.time)-float64(b.time)))
			}
			return strings.Compare(a.key, b.key)
		}
		slices.SortStableFunc(want, byTimeAndKey)
		slices.SortStableFunc(got, byTimeAndKey)
	}
	lines := func(out []output) string {
		parts := make([]string, len(out))
		for j, o := range out {
			parts[j] = o.text
		}
		return strings.Join(parts, "\n")
	}
	r.differ(i, "emits", lines(want), lines(got))
}

// recordedOutput reads a recorded row.
func (r *replay) recordedOutput(row Fields) output {
	fields := map[string]string{}
	number := func(name string) (int64, bool) {
		n, err := strconv.ParseInt(string(row.Get(name)), 10, 64)
		return n, err == nil
	}
	for _, f := range row {
		fields[f.Name] = string(f.Value)
		switch f.Name {
		case "kind", "side_output":
			_ = json.Unmarshal(f.Value, new(string))
			fields[f.Name] = strings.Trim(string(f.Value), `"`)
		case "op":
			fields[f.Name] = strings.Trim(string(f.Value), `"`)
		}
	}
	o := output{text: render(fields)}
	o.key = keyName(row.Get(r.records.schema.Columns[r.records.schema.Key[0]].Name))
	o.time, _ = number(r.records.schema.Columns[r.records.schema.Event].Name)
	if end, ok := number("window_end"); ok {
		o.time = end
	}
	return o
}

// compareState compares state, timers and counters.
func (r *replay) compareState(i int, s *Step) {
	sub := r.task.Subtasks()[0]
	ttl := stream.Time(0)
	r.task.Tables(func(_ int, t *sim.Table) { ttl = max(ttl, t.TTL()) })
	live := map[string]int64{}
	r.task.Tables(func(_ int, t *sim.Table) {
		t.Each(func(e *sim.Entry) {
			if !e.Has(sim.Pinned) && e.Written()+ttl > r.at {
				live[r.names[e.Key]] = int64(e.Written())
			}
		})
	})
	if s.LateDropped != nil {
		r.differ(i, "late_dropped", fmt.Sprint(*s.LateDropped), fmt.Sprint(sub.LateDropped))
	}
	if s.Timers != nil {
		r.differ(i, "timers", fmt.Sprintf("event %d, proc %d", s.Timers.Event, s.Timers.Proc),
			fmt.Sprintf("event %d, proc %d", sub.Timers.Event, sub.Timers.Proc))
	}
	const waiting = "waiting-to-emit-on-timer"
	if want, ok := s.States[waiting]; ok {
		r.differ(i, waiting, fmt.Sprint(want), fmt.Sprint(sub.State.Named[waiting]))
	}
	if ttl > 0 {
		want := map[string]int64{}
		for key, written := range s.LastWrite {
			if stream.Time(written)+ttl > r.at {
				want[key] = written
			}
		}
		r.differ(i, "keys still known", fmt.Sprint(want), fmt.Sprint(live))
		return
	}
	if s.StateEntries != nil {
		r.differ(i, "state_entries", fmt.Sprint(*s.StateEntries), fmt.Sprint(sub.State.Entries))
	}
	if s.CacheEntries != nil {
		r.differ(i, "cache_entries", fmt.Sprint(*s.CacheEntries), fmt.Sprint(sub.State.Cached))
	}
	if s.States != nil {
		r.differ(i, "states", fmt.Sprint(s.States), fmt.Sprint(sub.State.Named))
	}
}
