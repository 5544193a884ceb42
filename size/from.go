package size

import (
	"encoding/json"
	"errors"
	"fmt"

	"deduplab/gen"
	"deduplab/sim"
	"deduplab/stream"
)

// FromWorkload measures a stream by reading it once: its rate over the span, its copies, those that have another key,
// and how long after the first row of their event the others come.
func FromWorkload(w gen.Workload) (Stream, error) {
	var rows, copies, newKeys int64
	var delays sim.Histogram
	from, to := w.Span()
	in, buffer := w.Stream(), make([]stream.Row, 256)
	for {
		n, err := in.Next(buffer)
		if err != nil {
			return Stream{}, err
		}
		if n == 0 {
			break
		}
		for i := range buffer[:n] {
			row := &buffer[i]
			rows++
			switch {
			case row.First:
				continue
			case w.NewKey(row.Tag.Origin()):
				newKeys++
			default:
				delays.Add(row.Arrival - w.FirstArrival(row.Tag.Event()))
			}
			copies++
		}
	}
	if rows == 0 || to <= from {
		return Stream{}, errors.New("the stream has no rows, or all of them at one moment: it has no rate")
	}
	s := Stream{Rate: float64(rows) * 1000 / float64(to-from), Duplicates: float64(copies) / float64(rows)}
	if copies > 0 {
		s.NewKey = float64(newKeys) / float64(copies)
	}
	q := delays.Quantiles()
	s.Delays = points(q.P50, q.P99, q.P999, q.P9999, q.Max)
	return s, nil
}

// points makes a distribution of its percentiles, in milliseconds.
func points(p50, p99, p999, p9999, longest int64) []Point {
	return []Point{
		{stream.Time(p50), 0.5}, {stream.Time(p99), 0.99}, {stream.Time(p999), 0.999}, {stream.Time(p9999), 0.9999},
		{stream.Time(longest), 1},
	}
}

// measured is what a report of lab measure says of a trace, with its first key.
type measured struct {
	Schema string  `json:"schema"`
	Rows   float64 `json:"rows"`
	Span   float64 `json:"span_ms"`
	Keys   []struct {
		Copies    float64 `json:"copies"`
		FromFirst struct {
			P50, P99 quantile
			P999     quantile `json:"p99_9"`
			P9999    quantile `json:"p99_99"`
			Max      quantile
		} `json:"from_first"`
	} `json:"keys"`
}

type quantile struct {
	Ms float64
}

// FromMeasure takes the stream from the JSON of lab measure, by the first key that was measured.
func FromMeasure(text []byte) (Stream, error) {
	var m measured
	if err := json.Unmarshal(text, &m); err != nil {
		return Stream{}, fmt.Errorf("not the JSON of lab measure: %w", err)
	}
	if m.Schema != "deduplab/measure/1" || len(m.Keys) == 0 {
		return Stream{}, fmt.Errorf("schema %q is not deduplab/measure/1: write the file with lab measure --json", m.Schema)
	}
	if m.Rows == 0 || m.Span <= 0 {
		return Stream{}, errors.New("the trace has no rows, or all of them at one moment: it has no rate")
	}
	k := &m.Keys[0]
	up := func(q quantile) int64 { return int64(q.Ms + 0.999999) }
	return Stream{
		Rate: m.Rows * 1000 / m.Span, Duplicates: k.Copies / m.Rows,
		Delays: points(up(k.FromFirst.P50), up(k.FromFirst.P99), up(k.FromFirst.P999), up(k.FromFirst.P9999),
			up(k.FromFirst.Max)),
	}, nil
}
