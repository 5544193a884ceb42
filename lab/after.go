package lab

import (
	"slices"

	"deduplab/downstream"
	"deduplab/gen"
	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/stream"
)

// after reads the rows of a result as a query behind it does: windows and a join. The truth is one that has read each
// event once, with the row that arrived first.
type after struct {
	spec    scenarios.After
	records stream.Records
	schema  stream.Schema

	windows *downstream.WindowAggregate    // nil: none
	others  map[stream.Value][]stream.Time // the other input of the join: sorted event times by column
	joined  int64                          // rows that the join puts out
	out     []downstream.Output            // of the windows of the truth
}

// newAfter reads the stream for the truth.
func newAfter(spec scenarios.After, w gen.Workload) (*after, error) {
	a := &after{spec: spec, records: w, schema: w.Schema()}
	truth := a.reader(w)
	rows, buffer := w.Stream(), make([]stream.Row, 1024)
	var firsts []stream.Tag
	for {
		n, err := rows.Next(buffer)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
		for i := range buffer[:n] {
			if buffer[i].First {
				firsts = append(firsts, buffer[i].Tag)
			}
		}
	}
	if spec.Join != nil {
		truth.others = map[stream.Value][]stream.Time{}
		for _, tag := range firsts {
			record := w.Record(tag)
			if on, event := record[spec.Join.On], record[a.schema.Event]; !on.Null && !event.Null {
				truth.others[on] = append(truth.others[on], stream.Time(event.Int))
			}
		}
		for _, times := range truth.others {
			slices.Sort(times)
		}
	}
	for _, tag := range firsts {
		truth.row(tag, nil, 1)
	}
	truth.out = truth.closed()
	return truth, nil
}

// reader makes another one that has read nothing yet, with the same other input of the join. Its rows have the columns
// of these records, which may be more: a key of the content comes last.
func (a *after) reader(records stream.Records) *after {
	r := &after{spec: a.spec, records: records, schema: a.schema, others: a.others}
	if w := a.spec.Window; w != nil {
		r.windows = downstream.NewWindowAggregate(downstream.WindowSpec{Size: w.Size, Time: 0, Column: 1, Retracts: true,
			OnePhase: true})
	}
	return r
}

// row takes a row that comes into the result, or leaves it.
func (a *after) row(tag stream.Tag, parts []stream.Tag, n int64) {
	record := stream.Record(nil)
	if parts == nil {
		record = a.records.Record(tag)
	} else {
		record = sim.Compose(a.records, parts)
	}
	event := record[a.schema.Event]
	if event.Null {
		return // it is in no window and matches nothing
	}
	if w := a.spec.Window; w != nil {
		kind, sum := stream.Insert, stream.Value{Null: true}
		if n < 0 {
			kind = stream.Delete
		}
		if w.Sum >= 0 {
			sum = record[w.Sum]
		}
		a.windows.Change(kind, stream.Record{event, sum}, 0)
	}
	if j := a.spec.Join; j != nil && !record[j.On].Null {
		times, at := a.others[record[j.On]], stream.Time(event.Int)
		low, _ := slices.BinarySearch(times, at-j.Within)
		high, _ := slices.BinarySearch(times, at+j.Within+1)
		a.joined += n * int64(high-low)
	}
}

// closed are the rows of the windows, in their order.
func (a *after) closed() []downstream.Output {
	if a.windows == nil {
		return nil
	}
	a.windows.Watermark(stream.MaxTime, 0)
	return a.windows.Take()
}

// The columns of a window's row.
const (
	windowStart = 0
	windowCount = 2
	windowSum   = 3
)

// result compares what has been read with the truth.
func (a *after) result(truth *after) *results.After {
	out := &results.After{}
	if a.spec.Window != nil {
		out.Window = a.compare(a.closed(), truth.out)
	}
	if a.spec.Join != nil {
		out.Join = &results.AfterJoin{Rows: results.NewDeviation(a.joined, truth.joined)}
	}
	return out
}

// compare compares the rows of the windows.
func (a *after) compare(got, want []downstream.Output) *results.AfterWindow {
	out := &results.AfterWindow{Rows: int64(len(got))}
	type values struct{ count, sum int64 }
	pairs := map[int64]*[2]values{}
	var starts []int64
	var total [2]values
	for side, rows := range [2][]downstream.Output{got, want} {
		for _, row := range rows {
			start := row.Values[windowStart].Int
			v := values{row.Values[windowCount].Int, row.Values[windowSum].Int}
			if pairs[start] == nil {
				pairs[start] = &[2]values{}
				starts = append(starts, start)
			} else if side == 0 && pairs[start][0] == v {
				out.Equal++
			}
			pairs[start][side] = v
			total[side].count += v.count
			total[side].sum += v.sum
		}
	}
	for _, start := range starts {
		got, want := pairs[start][0], pairs[start][1]
		if got != want {
			out.Wrong++
		}
		worst := results.NewDeviation(got.count, want.count)
		if a.spec.Window.Sum >= 0 {
			worst = results.NewDeviation(got.sum, want.sum)
		}
		out.Worst = max(out.Worst, worst.Error)
	}
	out.Count = results.NewDeviation(total[0].count, total[1].count)
	if a.spec.Window.Sum >= 0 {
		sum := results.NewDeviation(total[0].sum, total[1].sum)
		out.Sum = &sum
	}
	return out
}

// describe tells what reads the results.
func (a *after) describe() *results.AfterSpec {
	d := &results.AfterSpec{}
	if w := a.spec.Window; w != nil {
		d.WindowMS = int64(w.Size)
		if w.Sum >= 0 {
			d.Sum, d.SumScale = a.schema.Columns[w.Sum].Name, a.schema.Columns[w.Sum].Scale
		}
	}
	if j := a.spec.Join; j != nil {
		d.JoinOn, d.JoinWithin = a.schema.Columns[j.On].Name, int64(j.Within)
	}
	return d
}
