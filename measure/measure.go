// Package measure reads a trace of a stream and says what one must know before choosing how to deduplicate it: how many
// copies there are, how long after the first they come, how often one id is repeated, how disordered and how idle the
// stream is, and what each TTL and watermark delay would cost.
//
// Everything is exact: percentiles are values that occur, at rank ceil(p x n). A trace is finite, so what lies beyond
// its end cannot be known; spans of half the trace and more are marked as lower bounds.
//
// A trace may be larger than memory. Keys are told apart by 128 bits of a hash; rows are brought in order of arrival in
// a window, or by a merge of sorted runs on disk; what is measured of the keys goes through 256 parts by their hash,
// one after the other; and ranks of many numbers are found by counting them. What is kept in memory is spilled to a
// temporary file when it is too much.
package measure

import (
	"context"
	"fmt"

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
	// Memory is how many bytes of rows and numbers are kept in memory, beside what a table of keys and the reading take;
	// 0 is 512 MB. The report does not depend on it.
	Memory int64
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

// Report measures the files, keeping at most Options.Memory in memory and the rest in temporary files. See Close.
func (r *Reader) Report(o Options) (*Report, error) { return r.ReportContext(context.Background(), o) }

// ReportContext is Report that ends early, with the context's error, when that is done.
func (r *Reader) ReportContext(ctx context.Context, o Options) (*Report, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if err := r.temporary(); err != nil {
		return nil, err
	}
	p, err := r.read(ctx, o)
	if err != nil {
		return nil, err
	}
	skipped, faults := p.rows.Skipped()
	report := &Report{
		Schema: "deduplab/measure/1", Columns: r.columns, Rows: int(p.n), Skipped: int(skipped), Faults: faults,
		From: formatMoment(p.first), To: formatMoment(p.last), Span: Span(p.last - p.first),
	}
	for _, file := range r.files {
		report.Files = append(report.Files, file.Name)
	}
	if p.known {
		report.NullEventTimes = report.Rows - p.withEvent
	}
	if report.Disorder, err = p.disorder(report.Span); err != nil {
		return nil, err
	}
	if report.Partitions, err = p.idleness(report.Span); err != nil {
		return nil, err
	}
	report.IdleTimeout = adviseIdle(report)
	if report.Ties, err = p.ties(); err != nil {
		return nil, err
	}
	for k := range r.columns.Keys {
		key, err := p.measureKey(k, report.Span, o)
		if err != nil {
			return nil, err
		}
		key.Plan = newPlan(report, &key)
		key.Advice = advise(report, &key)
		report.Keys = append(report.Keys, key)
	}
	return report, nil
}

// complete fills in the defaults.
func (o *Options) complete() error {
	if o.BytesPerKey == 0 {
		o.BytesPerKey = 100
	}
	if o.Memory == 0 {
		o.Memory = 512 << 20
	}
	if n := maxTTLs - len(spans); len(o.TTLs) > n {
		return fmt.Errorf("--ttl: %d TTLs; there can be %d beside the usual ones", len(o.TTLs), n)
	}
	if len(o.Delays) > 200 {
		return fmt.Errorf("--watermark-delay: %d delays; there can be 200", len(o.Delays))
	}
	return nil
}
