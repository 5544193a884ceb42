package report

import (
	"fmt"
	"slices"

	"deduplab/results"
)

// The tables below hold the numbers of the charts, for those who do not see them, and for those who want them exactly.
// Spans are whole milliseconds.

// perStrategy is an empty table of one line for each strategy, whose first columns are text.
func perStrategy(caption string, text int, heads ...string) grid {
	return grid{
		Caption: caption, Text: text, Strategies: true, Words: true, Head: append([]string{"strategy"}, heads...),
	}
}

// latencyData is one line for each strategy in each part of latency.
func latencyData(all []*results.Strategy) []grid {
	var tables []grid
	for _, p := range latencyParts {
		g := perStrategy(p.name, 1, "events", "p50 (ms)", "p90 (ms)", "p99 (ms)", "p99.9 (ms)", "max (ms)")
		for _, s := range all {
			q := p.of(s)
			row := []string{s.ID, count(q.N)}
			for _, v := range []int64{q.P50, q.P90, q.P99, q.P999, q.Max} {
				if q.N == 0 {
					row = append(row, "–")
				} else {
					row = append(row, count(v))
				}
			}
			g.Rows = append(g.Rows, row)
		}
		tables = append(tables, g)
	}
	return tables
}

// moments is how many moments of the state over time stand in its table.
const moments = 8

// stateData has the peaks and the class of each strategy's state, and its keys at a few moments of the run.
func stateData(all []*results.Strategy) []grid {
	peaks := perStrategy("peaks and class", 3, "state class, declared", "state class, measured", "keys live, peak",
		"keys live, end", "keys held, peak", "timers, peak", "logical bytes, peak")
	series := perStrategy("keys live / held over time", 1)
	longest := slices.MaxFunc(all, func(a, b *results.Strategy) int { return len(a.State.Series) - len(b.State.Series) })
	points := len(longest.State.Series)
	var at []int
	for i := range moments {
		if index := (points - 1) * i / (moments - 1); len(at) == 0 || index > at[len(at)-1] {
			at = append(at, index)
			series.Head = append(series.Head, "at "+millis(longest.State.Series[index].AtMS))
		}
	}
	for _, s := range all {
		x := s.State
		peaks.Rows = append(peaks.Rows, []string{s.ID, s.Declared.StateClass, measuredClass(s), count(x.KeysLivePeak),
			count(x.KeysLiveEnd), count(x.KeysHeldPeak), count(x.TimersPeak), count(x.BytesPeak)})
		row := []string{s.ID}
		for _, index := range at {
			if index >= len(x.Series) {
				row = append(row, "–")
				continue
			}
			row = append(row, count(x.Series[index].KeysLive)+" / "+count(x.Series[index].KeysHeld))
		}
		series.Rows = append(series.Rows, row)
	}
	return []grid{peaks, series}
}

// measuredClass is a strategy's state class as it was measured.
func measuredClass(s *results.Strategy) string {
	if s.State.Class == "" {
		return "not measured"
	}
	return s.State.Class
}

func lateData(late []*results.Strategy) []grid {
	g := perStrategy("", 1, "late firsts (events lost)", "late copies (rows)", "engine's late counter (rows)")
	for _, s := range late {
		g.Rows = append(g.Rows, []string{s.ID, count(s.Fates.LateFirst), count(s.Fates.LateCopy), count(s.LateDropped)})
	}
	return []grid{g}
}

func changelogData(all []*results.Strategy) []grid {
	g := perStrategy("", 2, "declared", "+I (changes)", "-U (changes)", "+U (changes)", "-D (changes)",
		"append-only violations", "undeclared changes")
	for _, s := range all {
		c := s.Changes
		g.Rows = append(g.Rows, []string{s.ID, kinds(s.Declared.Changelog), count(c.Insert), count(c.UpdateBefore),
			count(c.UpdateAfter), count(c.Delete), count(s.AppendOnlyViol), count(s.Undeclared)})
	}
	return []grid{g}
}

// kinds writes the kinds of changes that a planner declares as one reads them in a changelog.
func kinds(declared []string) string {
	short := map[string]string{"I": "+I", "UB": "-U", "UA": "+U", "D": "-D"}
	text := ""
	for i, k := range declared {
		if i > 0 {
			text += " "
		}
		if short[k] != "" {
			k = short[k]
		}
		text += k
	}
	return text
}

// causesData has one column for each cause that occurs.
func causesData(caption, unit string, some []*results.Strategy, of func(*results.Strategy) map[string]int64) []grid {
	total := map[string]int64{}
	for _, s := range some {
		for name, n := range of(s) {
			total[name] += n
		}
	}
	causes := byCount(total)
	if len(causes) == 0 {
		return nil
	}
	g := perStrategy(caption, 1, "all ("+unit+")")
	for _, c := range causes {
		g.Head = append(g.Head, c.Name+" ("+unit+")")
	}
	for _, s := range some {
		var sum int64
		row := []string{s.ID, ""}
		for _, c := range causes {
			sum += of(s)[c.Name]
			row = append(row, count(of(s)[c.Name]))
		}
		if row[1] = count(sum); sum > 0 {
			g.Rows = append(g.Rows, row)
		}
	}
	return []grid{g}
}

func stagesData(all []*results.Strategy, parts []part) []grid {
	g := perStrategy("", 1)
	for _, p := range parts {
		g.Head = append(g.Head, p.name+" (rows)")
	}
	for i, s := range all {
		row := []string{s.ID}
		for _, p := range parts {
			row = append(row, count(p.values[i]))
		}
		g.Rows = append(g.Rows, row)
	}
	return []grid{g}
}

// arrivalData says of the rows drawn how far they are behind, by partition and origin, and of the watermark.
func arrivalData(w results.Workload) []grid {
	type group struct {
		partition int
		origin    string
	}
	behind, late := map[group][]int64{}, map[group]int64{}
	var order []group
	for _, a := range w.Arrivals {
		g := group{a.Partition, a.Origin}
		if behind[g] == nil {
			order = append(order, g)
		}
		behind[g] = append(behind[g], a.AtMS-a.EventMS)
		if a.Late {
			late[g]++
		}
	}
	slices.SortStableFunc(order, func(a, b group) int { return a.partition - b.partition })
	rows := grid{Caption: "rows drawn", Text: 2, Words: true, Head: []string{"partition", "origin", "rows drawn",
		"late (rows)", "behind, p50 (ms)", "behind, p99 (ms)", "behind, max (ms)"}}
	for _, g := range order {
		values := behind[g]
		slices.Sort(values)
		rank := func(percent int) string { return count(values[(len(values)*percent+99)/100-1]) }
		rows.Rows = append(rows.Rows, []string{fmt.Sprint(g.partition), g.origin, count(int64(len(values))),
			count(late[g]), rank(50), rank(99), rank(100)})
	}
	if len(w.Watermark) == 0 {
		return []grid{rows}
	}
	mark := grid{Caption: "the watermark", Head: []string{"at", "watermark", "behind (ms)"}, Text: 1, Words: true}
	last := -1
	for i := range moments {
		index := (len(w.Watermark) - 1) * i / (moments - 1)
		if index == last {
			continue
		}
		last = index
		s := w.Watermark[index]
		mark.Rows = append(mark.Rows, []string{offset(s.AtMS), offset(s.WatermarkMS), count(s.AtMS - s.WatermarkMS)})
	}
	return []grid{rows, mark}
}

func tradeOffData(some []*results.Strategy, best map[string]bool) []grid {
	g := perStrategy("", 2, "Pareto front", "wait p99 (ms)", "keys live, peak (keys)", "lost (events)", "dups left (rows)")
	for _, s := range some {
		on := "beaten"
		switch {
		case best[s.ID]:
			on = "on it"
		case removesNothing(s):
			on = "removes nothing"
		}
		g.Rows = append(g.Rows, []string{s.ID, on, count(s.Latency.Wait.P99), count(s.State.KeysLivePeak), count(s.Lost),
			count(s.Leaked)})
	}
	return []grid{g}
}
