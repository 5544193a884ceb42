// Package measure reads a trace of a stream and says what one must know before choosing how to deduplicate it: how many
// copies there are, how long after the first they come, how often one id is repeated, how disordered and how idle the
// stream is, and what each TTL and watermark delay would cost.
//
// Everything is exact: percentiles are values that occur, at rank ceil(p x n). A trace is finite, so what lies beyond
// its end cannot be known; spans of half the trace and more are marked as lower bounds.
package measure

import (
	"slices"
	"time"

	"deduplab/stream"
)

// Columns says what the columns of a trace mean; empty names are columns that it does not have.
type Columns struct {
	Keys [][]string `json:"keys"` // candidate keys, each of one or more columns
	// EventTime is the row's own timestamp; NULL is allowed.
	EventTime string `json:"event_time,omitempty"`
	// Arrival is when the row was received. Without it the event time stands in, and the disorder is that of the order
	// in which the files list the rows.
	Arrival   string `json:"arrival,omitempty"`
	Partition string `json:"partition,omitempty"` // whole numbers from 0
	Origin    string `json:"origin,omitempty"`    // producer, event type: whatever the delays are to be told apart by
	Unit      string `json:"unit"`                // of times written as numbers: auto, s, ms, us or ns
}

// Options are what is asked beyond the usual. The zero value asks for nothing.
type Options struct {
	TTLs        []stream.Time // more TTLs to predict
	Delays      []stream.Time // more watermark delays to predict
	BytesPerKey int64         // of state; 0 is the 100 that the articles budget with RocksDB
}

// Report is all that is measured. Its JSON keeps its keys; spans are in milliseconds, with up to six decimals.
type Report struct {
	Schema     string      `json:"schema"`
	Files      []string    `json:"files"`
	Columns    Columns     `json:"columns"`
	Rows       int         `json:"rows"`
	Skipped    int         `json:"skipped"` // bad rows
	Faults     []string    `json:"faults,omitempty"`
	From       string      `json:"from"` // first arrival
	To         string      `json:"to"`   // last arrival
	Span       Span        `json:"span_ms"`
	Keys       []KeyReport `json:"keys"`
	Disorder   Disorder    `json:"disorder"`
	Partitions []Idle      `json:"partitions"`
	Ties       Ties        `json:"ties"`
	// NullEventTimes counts rows without event time.
	NullEventTimes int    `json:"null_event_times"`
	IdleTimeout    Advice `json:"idle_timeout"`
	// Agreements compares each two candidate keys, once Compare has been called.
	Agreements []Agreement `json:"agreements,omitempty"`
}

// KeyReport is what is measured with one candidate key.
type KeyReport struct {
	Key      []string `json:"key"`
	Distinct int      `json:"distinct"`
	Copies   int      `json:"copies"` // rows after the first of their key
	NullKeys int      `json:"null_keys"`
	// FromFirst is the delay of a copy from the first sighting: what a TTL counts that copies do not refresh. From the
	// previous sighting counts one that they do.
	FromFirst    Delays     `json:"from_first"`
	FromPrevious Delays     `json:"from_previous"`
	ByOrigin     []Origin   `json:"by_origin,omitempty"`
	PerID        PerID      `json:"per_id"`
	SameEvent    int        `json:"same_event_time"` // copies with the event time of an earlier row of their key
	Forecasts    []Forecast `json:"forecasts"`
	Losses       []Loss     `json:"losses"`
	Advice       []Advice   `json:"advice"`
	Plan         Plan       `json:"plan"`

	firsts    Span   // from the first row to the first row of the last key
	transport Delays // from event time to arrival, of first rows
}

// Origin is the copies that came from one origin.
type Origin struct {
	Name   string `json:"name"`
	Rows   int    `json:"rows"`
	Copies int    `json:"copies"`
	Delays Delays `json:"from_first"`
}

// Ties counts rows that an order by time cannot tell apart.
type Ties struct {
	SameEvent   int  `json:"same_event_time"` // rows with the event time of another row before them, of any key
	SameArrival int  `json:"same_arrival"`
	Resolution  Span `json:"resolution_ms"` // of event times: the largest round unit that divides them all
}

// Report measures what was read. The reader must not be used afterwards.
func (r *Reader) Report(o Options) (*Report, error) {
	listed, err := r.finish()
	if err != nil {
		return nil, err
	}
	if o.BytesPerKey == 0 {
		o.BytesPerKey = 100
	}
	arrived := listed.byArrival()
	first, last := arrived.arrivals[0], arrived.arrivals[len(arrived.arrivals)-1]
	report := &Report{
		Schema: "deduplab/measure/1", Files: r.files, Columns: r.columns, Rows: len(arrived.arrivals), Skipped: r.skipped,
		From: formatMoment(first), To: formatMoment(last), Span: Span(last - first),
	}
	for _, fault := range r.faults[:min(len(r.faults), maxFaults)] {
		report.Faults = append(report.Faults, fault.Error())
	}
	ordered, by := arrived, "arrival"
	if r.columns.Arrival == "" {
		ordered, by = listed, "file"
	}
	known := r.columns.EventTime != ""
	if known {
		for _, null := range arrived.nullEvents {
			if null {
				report.NullEventTimes++
			}
		}
	}
	lag := lateness(ordered, known)
	report.Disorder = lag.disorder(by, report.Span)
	report.Partitions = idleness(arrived)
	report.IdleTimeout = adviseIdle(report)
	report.Ties = ties(arrived, known)
	for k, names := range r.keys {
		key := measureKey(arrived, k, names.names, report.Span, o)
		key.Key = r.columns.Keys[k]
		if r.columns.Origin != "" {
			key.ByOrigin = byOrigin(arrived, k, r.origins.names, report.Span)
		}
		if known {
			key.Losses = losses(lag, ordered.ids[k], key.Distinct, o.Delays)
		}
		key.Plan = newPlan(report, &key)
		key.Advice = advise(report, &key)
		report.Keys = append(report.Keys, key)
	}
	return report, nil
}

func formatMoment(n nanos) string { return time.Unix(0, n).UTC().Format(time.RFC3339Nano) }

// groups are the rows of each id, in the order of the trace: rows[starts[id]:starts[id+1]].
type groups struct{ starts, rows []uint32 }

func newGroups(ids []uint32, distinct int) groups {
	g := groups{make([]uint32, distinct+1), make([]uint32, len(ids))}
	for _, id := range ids {
		g.starts[id+1]++
	}
	for id := range distinct {
		g.starts[id+1] += g.starts[id]
	}
	next := slices.Clone(g.starts)
	for row, id := range ids {
		g.rows[next[id]] = uint32(row)
		next[id]++
	}
	return g
}

func (g groups) of(id int) []uint32 { return g.rows[g.starts[id]:g.starts[id+1]] }

func measureKey(t *trace, k int, names []string, span Span, o Options) KeyReport {
	g := newGroups(t.ids[k], len(names))
	key := KeyReport{Distinct: len(names), Copies: len(t.arrivals) - len(names)}
	fromFirst, fromPrevious := make([]nanos, 0, key.Copies), make([]nanos, 0, key.Copies)
	var events []nanos
	for id, name := range names {
		rows := g.of(id)
		if hasNull(name) {
			key.NullKeys += len(rows)
		}
		events = events[:0]
		for i, row := range rows {
			if i > 0 {
				fromFirst = append(fromFirst, t.arrivals[row]-t.arrivals[rows[0]])
				fromPrevious = append(fromPrevious, t.arrivals[row]-t.arrivals[rows[i-1]])
			}
			if !t.nullEvents[row] {
				events = append(events, t.events[row])
			}
		}
		slices.Sort(events)
		key.SameEvent += len(events) - len(slices.Compact(events))
	}
	key.FromFirst, key.FromPrevious = newDelays(fromFirst, span), newDelays(fromPrevious, span)
	key.PerID = perID(g, names)
	key.calibrate(t, g, span)
	key.Forecasts = forecasts(t, t.ids[k], key, span, o)
	return key
}

// byOrigin tells the copies apart by the origin of the copy, the most copies first.
func byOrigin(t *trace, k int, origins []string, span Span) []Origin {
	all := make([]Origin, len(origins))
	delays := make([][]nanos, len(origins))
	firsts := map[uint32]nanos{}
	for row, id := range t.ids[k] {
		o := t.origins[row]
		all[o].Rows++
		if first, ok := firsts[id]; ok {
			delays[o] = append(delays[o], t.arrivals[row]-first)
		} else {
			firsts[id] = t.arrivals[row]
		}
	}
	for o := range all {
		all[o].Name = origins[o]
		if all[o].Name == "" {
			all[o].Name = "null"
		}
		all[o].Copies = len(delays[o])
		all[o].Delays = newDelays(delays[o], span)
	}
	slices.SortStableFunc(all, func(a, b Origin) int { return b.Copies - a.Copies })
	return all
}

// resolutions are the units that a clock may count in.
var resolutions = []nanos{86400e9, 3600e9, 60e9, 1e9, 1e6, 1e3, 1}

func ties(t *trace, known bool) Ties {
	ties := Ties{SameArrival: repeats(t.arrivals)}
	if !known {
		return ties
	}
	var events []nanos
	unit := 0
	for row, at := range t.events {
		if t.nullEvents[row] {
			continue
		}
		events = append(events, at)
		for at%resolutions[unit] != 0 {
			unit++
		}
	}
	slices.Sort(events)
	ties.SameEvent = repeats(events)
	if len(events) > 0 {
		ties.Resolution = Span(resolutions[unit])
	}
	return ties
}

// repeats counts the values that equal the one before, of values in order.
func repeats(sorted []nanos) int {
	n := 0
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			n++
		}
	}
	return n
}
