package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"deduplab/results"
)

// figure is one or more charts with the sentence that says what to see in them.
type figure struct {
	Title   string
	See     string
	Charts  []chart
	Stacked bool // one chart below the other, not beside it
	Data    []grid
}

// ID is that of the sentence, which describes the charts; empty without charts.
func (f figure) ID() string {
	if len(f.Charts) == 0 {
		return ""
	}
	return "see-" + f.Charts[0].ID
}

// grid is a table of the page, such as the numbers of a chart. Its first Text columns are text, the others numbers.
type grid struct {
	Caption    string
	Head       []string
	Rows       [][]string
	Text       int
	Strategies bool // every row is a strategy's, whose id stands first
	Words      bool // its heads are words of the glossary, where it has them
}

// Class is the style sheet's class for a column.
func (g grid) Class(column int) string {
	if column < g.Text {
		return ""
	}
	return "n"
}

// Entry is the glossary's for the head of a column; nil where it has none.
func (g grid) Entry(column int) *entry {
	if !g.Words {
		return nil
	}
	word, _, _ := strings.Cut(g.Head[column], " (")
	word, _, _ = strings.Cut(word, ", ")
	if e := causeTerm(word); e.Term != "" {
		return &e
	}
	for _, e := range glossary {
		if slices.Contains([]string{e.Term, e.Term + "s", strings.TrimSuffix(e.Term, "y") + "ies", e.Term + " p99"}, word) {
			return &e
		}
	}
	return nil
}

// latencyParts are the three parts of latency.
var latencyParts = []struct {
	name string
	of   func(*results.Strategy) results.Quantiles
}{
	{"wait", func(s *results.Strategy) results.Quantiles { return s.Latency.Wait }},
	{"settle", func(s *results.Strategy) results.Quantiles { return s.Latency.Settle }},
	{"commit", func(s *results.Strategy) results.Quantiles { return s.Latency.Commit }},
}

// latencyFigure draws the percentiles of the three parts of latency, each in a chart of its own.
func latencyFigure(all []*results.Strategy) figure {
	f := figure{Title: "Latency, split in wait, settle and commit"}
	all = slices.DeleteFunc(slices.Clone(all), func(s *results.Strategy) bool { return s.Latency.Wait.N == 0 })
	if len(all) == 0 {
		f.See = "No strategy emitted an event."
		return f
	}
	atOnce, slowest := 0, all[0]
	for _, s := range all {
		if s.Latency.Wait.P99 == 0 {
			atOnce++
		}
		if s.Latency.Wait.P99 > slowest.Latency.Wait.P99 {
			slowest = s
		}
	}
	number := fmt.Sprintf("%d of the %d strategies emit", atOnce, len(all))
	switch atOnce {
	case 0:
		number = "No strategy emits"
	case len(all):
		number = "Every strategy emits"
	case 1:
		number = fmt.Sprintf("1 of the %d strategies emits", len(all))
	}
	f.See = number + " an event as soon as its first row arrives (wait p99 of 0 ms)"
	if slowest.Latency.Wait.P99 > 0 {
		f.See += fmt.Sprintf("; %s waits longest, %s at p99", slowest.ID, millis(slowest.Latency.Wait.P99))
	}
	f.See += ". A settle above the wait means that later copies still change the row. Log scale; 0 ms stands at 1 ms."
	f.Data = latencyData(all)
	for _, p := range latencyParts {
		if slices.ContainsFunc(all, func(s *results.Strategy) bool { return p.of(s).N > 0 }) {
			f.Charts = append(f.Charts, latencyChart(p.name, all, p.of))
		}
	}
	return f
}

func latencyChart(name string, all []*results.Strategy, of func(*results.Strategy) results.Quantiles) chart {
	marks := quantileMarks("p50", "p90", "p99", "p99.9", "max")
	for _, s := range all {
		q := of(s)
		for i, v := range []int64{q.P50, q.P90, q.P99, q.P999, q.Max} {
			if q.N == 0 {
				marks[i].add(-1, "")
			} else {
				marks[i].add(v, millis(v))
			}
		}
	}
	c := quantileChart("chart-"+name, "Percentiles of "+name+" for each strategy on a logarithmic axis", ids(all), marks)
	c.Caption, c.Strategies = name, true
	return c
}

// logged puts a number on a logarithmic axis, which has no zero.
func logged(n int64) int64 {
	return max(1, n)
}

// curves is how many strategies' state is shown at first.
const curves = 6

// stateFigure draws keys live and held over time. Of the strategies whose state peaks at the same height only the
// best is shown at first, and of those the largest; the legend brings in the others.
func stateFigure(all []*results.Strategy) figure {
	f := figure{Title: "State over time, live and held"}
	line := charts.NewLine()
	shown, classes := map[string]bool{}, map[string]string{}
	all = slices.DeleteFunc(slices.Clone(all), func(s *results.Strategy) bool { return len(s.State.Series) == 0 })
	if len(all) == 0 {
		f.See = "No strategy has a state series."
		return f
	}
	slices.SortStableFunc(all, func(a, b *results.Strategy) int {
		return cmp.Compare(b.State.KeysHeldPeak, a.State.KeysHeldPeak)
	})
	largest := all[0]
	var heights []string
	for i, s := range all {
		classes[s.ID], _, _ = strings.Cut(measuredClass(s), ":")
		height := short(s.State.KeysLivePeak) + short(s.State.KeysHeldPeak)
		shown[s.ID] = !slices.Contains(heights, height) && len(heights) < curves
		color := palette[i%len(palette)]
		if shown[s.ID] {
			color = palette[len(heights)]
			heights = append(heights, height)
		}
		live := make([]opts.LineData, len(s.State.Series))
		held := make([]opts.LineData, len(s.State.Series))
		for j, p := range s.State.Series {
			live[j] = opts.LineData{Value: []int64{p.AtMS, p.KeysLive}}
			held[j] = opts.LineData{Value: []int64{p.AtMS, p.KeysHeld}}
		}
		plain := charts.WithLineChartOpts(opts.LineChart{ShowSymbol: opts.Bool(false)})
		line.AddSeries(s.ID, live, plain, charts.WithItemStyleOpts(opts.ItemStyle{Color: color}),
			charts.WithLineStyleOpts(opts.LineStyle{Color: color, Width: 2}))
		line.AddSeries(s.ID, held, plain, charts.WithItemStyleOpts(opts.ItemStyle{Color: color}),
			charts.WithLineStyleOpts(opts.LineStyle{Color: color, Width: 1.2, Type: "dashed"}))
	}
	line.SetGlobalOptions(
		charts.WithLegendOpts(opts.Legend{Selected: shown}),
		charts.WithTooltipOpts(opts.Tooltip{Trigger: "axis"}),
		charts.WithXAxisOpts(opts.XAxis{Type: "time"}),
		charts.WithYAxisOpts(opts.YAxis{Type: "value", Name: "keys", MinInterval: 1}))
	f.See = fmt.Sprintf("Solid is live, dashed is held (expired, not yet removed). %s holds the most, %s keys, of "+
		"which %s are live at their peak. The legend has the state class as measured. Strategies that run at the same "+
		"height are hidden at first: the legend shows them.",
		largest.ID, short(largest.State.KeysHeldPeak), short(largest.State.KeysLivePeak))
	f.Charts = []chart{{
		ID: "chart-state", Height: 400, Note: "keys live / held", Option: line.JSON(), X: "duration", Y: "count",
		Label: "Keys live and held over time for each strategy", Notes: classes, Strategies: true,
	}}
	f.Data = stateData(all)
	return f
}

// lateFigure draws late firsts beside late copies, and the engine's own counter that does not tell them apart.
func lateFigure(all []*results.Strategy) figure {
	f := figure{Title: "Late rows: harmless copies and lost events"}
	late := slices.DeleteFunc(slices.Clone(all), func(s *results.Strategy) bool {
		return s.Fates.LateCopy == 0 && s.Fates.LateFirst == 0 && s.LateDropped == 0
	})
	if len(late) == 0 {
		f.See = "No strategy dropped a row as late."
		return f
	}
	worst := slices.MaxFunc(late, func(a, b *results.Strategy) int {
		return cmp.Compare(a.Fates.LateFirst, b.Fates.LateFirst)
	})
	f.See = fmt.Sprintf("%s loses the most as late, %s events, beside %s late copies, which are harmless. The engine's "+
		"own counter says %s and does not tell them apart.", worst.ID, count(worst.Fates.LateFirst),
		count(worst.Fates.LateCopy), count(worst.LateDropped))
	if worst.Fates.LateFirst == 0 {
		f.See = "The late rows were copies only: no event was lost as late."
	}
	if rest := len(all) - len(late); rest > 0 {
		f.See += fmt.Sprintf(" The other %d dropped no row as late.", rest)
	}
	f.Charts = []chart{stacked("chart-late", "Late firsts and late copies for each strategy", "rows", ids(late), []part{
		newPart("late firsts (lost)", loss, late, func(s *results.Strategy) int64 { return s.Fates.LateFirst }),
		newPart("late copies (harmless)", calm, late, func(s *results.Strategy) int64 { return s.Fates.LateCopy }),
	}, newMarker("engine's late counter", "--text", late, func(s *results.Strategy) string {
		if s.LateDropped == 0 {
			return ""
		}
		return count(s.LateDropped)
	}))}
	f.Data = lateData(late)
	return f
}

// changelogFigure draws what came out by kind, with the changes that break a contract marked.
func changelogFigure(all []*results.Strategy) figure {
	f := figure{Title: "Changelog: what came out, by kind"}
	if len(all) == 0 {
		f.See = "No strategy ran."
		return f
	}
	var updating, undeclared []string
	for _, s := range all {
		if s.Updates > 0 {
			updating = append(updating, s.ID)
		}
		if s.Undeclared > 0 {
			undeclared = append(undeclared, s.ID)
		}
	}
	switch {
	case len(updating) == 0:
		f.See = "Every strategy emitted inserts only."
	default:
		f.See = fmt.Sprintf("%d of %d emitted updates: %s.", len(updating), len(all), list(updating))
	}
	if len(undeclared) > 0 {
		f.See += fmt.Sprintf(" Against its declared mode: %s.", list(undeclared))
	}
	f.Charts = []chart{stacked("chart-changelog", "Changes emitted by kind for each strategy", "changes", ids(all), []part{
		newPart("+I", "--c1", all, func(s *results.Strategy) int64 { return s.Changes.Insert }),
		newPart("-U", "--c3", all, func(s *results.Strategy) int64 { return s.Changes.UpdateBefore }),
		newPart("+U", "--c4", all, func(s *results.Strategy) int64 { return s.Changes.UpdateAfter }),
		newPart("-D", "--c5", all, func(s *results.Strategy) int64 { return s.Changes.Delete }),
	}, newMarker("append-only violated", "--text", all, func(s *results.Strategy) string {
		if s.AppendOnlyViol == 0 || s.Undeclared > 0 {
			return ""
		}
		return results.FormatNumber(s.AppendOnlyViol, "change")
	}), newMarker("undeclared changes", loss, all, func(s *results.Strategy) string {
		if s.Undeclared == 0 {
			return ""
		}
		return results.FormatNumber(s.Undeclared, "change")
	}))}
	f.Data = changelogData(all)
	return f
}

// causesFigure draws duplicates left and events lost by cause. Strategies that remove nothing by design are named in
// words: their bar would flatten all others.
func causesFigure(all []*results.Strategy) figure {
	f := figure{Title: "Duplicates left and events lost, by cause"}
	var leaking []*results.Strategy
	var none []string
	for _, s := range all {
		if n := s.LeaksByCause["no_dedup"]; n > 0 {
			none = append(none, fmt.Sprintf("%s (%s)", s.ID, count(n)))
		} else {
			leaking = append(leaking, s)
		}
	}
	leaks := byCause("chart-leaks", "duplicates left", "rows", leaking,
		func(s *results.Strategy) map[string]int64 { return s.LeaksByCause })
	losses := byCause("chart-losses", "events lost", "events", all,
		func(s *results.Strategy) map[string]int64 { return s.LossesByCause })
	f.Charts = append(leaks, losses...)
	f.Data = append(
		causesData("duplicates left", "rows", all, func(s *results.Strategy) map[string]int64 { return s.LeaksByCause }),
		causesData("events lost", "events", all, func(s *results.Strategy) map[string]int64 { return s.LossesByCause })...)
	var see []string
	if len(leaks) > 0 {
		worst := slices.MaxFunc(leaking, func(a, b *results.Strategy) int { return cmp.Compare(a.Leaked, b.Leaked) })
		see = append(see, fmt.Sprintf("Left: %s keeps the most duplicates, %s (%s).", worst.ID, count(worst.Leaked),
			causeText(byCount(worst.LeaksByCause))))
	}
	if len(none) > 0 {
		see = append(see, fmt.Sprintf("Not drawn, because nothing is removed there: %s.", list(none)))
	}
	if len(losses) > 0 {
		worst := slices.MaxFunc(all, func(a, b *results.Strategy) int { return cmp.Compare(a.Lost, b.Lost) })
		see = append(see, fmt.Sprintf("Lost: %s loses the most events, %s (%s).", worst.ID, count(worst.Lost),
			causeText(byCount(worst.LossesByCause))))
	} else {
		see = append(see, "No strategy is known to have lost an event.")
	}
	f.See = strings.Join(see, " ")
	return f
}

// byCause draws the strategies that have any cause at all; it returns no chart when there is none.
func byCause(
	id, what, unit string, all []*results.Strategy, of func(*results.Strategy) map[string]int64,
) []chart {
	total := map[string]int64{}
	var some []*results.Strategy
	for _, s := range all {
		causes := byCount(of(s))
		for _, c := range causes {
			total[c.Name] += c.N
		}
		if len(causes) > 0 {
			some = append(some, s)
		}
	}
	if len(some) == 0 {
		return nil
	}
	var parts []part
	for i, c := range byCount(total) {
		value := func(s *results.Strategy) int64 { return of(s)[c.Name] }
		parts = append(parts, newPart(c.Name, palette[i%len(palette)], some, value))
	}
	c := stacked(id, "Number of "+what+" by cause for each strategy", unit, ids(some), parts)
	c.Caption = what
	return []chart{c}
}

// lanes is how many partitions get a chart of their own; slider is the height of the slider below the last one.
const (
	lanes  = 4
	slider = 34
)

// arrivalFigure draws how far rows are behind their event time when they arrive, with how far the watermark is behind.
func arrivalFigure(w results.Workload) figure {
	f := figure{Title: "Event time against arrival: how far rows are behind", Stacked: true}
	if len(w.Arrivals) == 0 {
		f.See = "The run has no arrivals to draw."
		return f
	}
	late, farthest := 0, map[string]int64{}
	for _, a := range w.Arrivals {
		farthest[a.Origin] = max(farthest[a.Origin], a.AtMS-a.EventMS)
		if a.Late {
			late++
		}
	}
	behind := byCount(farthest)
	if len(behind) == 0 {
		f.See = fmt.Sprintf("Each of the %s looked at arrives at its own event time: none is behind, so there is nothing "+
			"to draw.", results.FormatNumber(int64(len(w.Arrivals)), "row"))
		return f
	}
	var origins []string
	for _, c := range byCount(w.ByOrigin) {
		origins = append(origins, c.Name)
	}
	if w.Partitions > lanes {
		f.Charts = []chart{lagChart("chart-arrival", "", origins, w.Arrivals, w.Watermark)}
	} else {
		for p := range w.Partitions {
			rows := slices.DeleteFunc(slices.Clone(w.Arrivals), func(a results.Arrival) bool { return a.Partition != p })
			f.Charts = append(f.Charts, lagChart(fmt.Sprintf("chart-arrival-%d", p), fmt.Sprintf("partition %d", p),
				origins, rows, w.Watermark))
		}
	}
	f.Charts[len(f.Charts)-1].Height += slider
	f.Data = arrivalData(w)
	var most []string
	for _, c := range behind {
		most = append(most, fmt.Sprintf("%s %s", c.Name, millis(c.N)))
	}
	f.See = fmt.Sprintf("A dot is a row; the higher, the longer after its event time it arrives (log scale, from 1 ms). "+
		"The line is how far the watermark is behind: a row above it is late, ringed in red. It peaks where the watermark "+
		"waits. In the shaded spans a partition sends nothing; a column after one is what an outage held up. Farthest "+
		"behind: %s. Drawn are %s of %s rows, %s of them late: of each partition one at regular intervals, and of the "+
		"late rows one for each place in the picture.", list(most), count(int64(len(w.Arrivals))), count(w.Rows),
		count(int64(late)))
	return f
}

// lagChart draws rows and the watermark by how far they are behind at their arrival.
func lagChart(id, caption string, origins []string, rows []results.Arrival, watermark []results.Staircase) chart {
	scatter := charts.NewScatter()
	scatter.SetGlobalOptions(charts.WithTooltipOpts(opts.Tooltip{Trigger: "item"}),
		charts.WithDataZoomOpts(opts.DataZoom{Type: "slider"}),
		charts.WithXAxisOpts(opts.XAxis{Type: "time", Name: "arrival"}),
		charts.WithYAxisOpts(opts.YAxis{Type: "log", Name: "event time behind arrival", Min: 1}))
	for i, origin := range origins {
		dots := map[bool][]opts.ScatterData{false: {}, true: {}}
		for _, a := range rows {
			if a.Origin == origin {
				dots[a.Late] = append(dots[a.Late], opts.ScatterData{
					Name: lagText(a), Value: []int64{a.AtMS, logged(a.AtMS - a.EventMS)},
				})
			}
		}
		color := palette[i%len(palette)]
		scatter.AddSeries(origin, dots[false], charts.WithScatterChartOpts(opts.ScatterChart{SymbolSize: 4}),
			charts.WithItemStyleOpts(opts.ItemStyle{Color: color, Opacity: opts.Float(0.6)}))
		scatter.AddSeries(origin, dots[true], charts.WithScatterChartOpts(opts.ScatterChart{SymbolSize: 6}),
			charts.WithItemStyleOpts(opts.ItemStyle{Color: color, BorderColor: bad, BorderWidth: 1}))
	}
	line := charts.NewLine()
	steps := make([]opts.LineData, len(watermark))
	for i, s := range watermark {
		steps[i] = opts.LineData{Value: []int64{s.AtMS, logged(s.AtMS - s.WatermarkMS)}}
	}
	line.AddSeries("watermark", steps, charts.WithLineChartOpts(opts.LineChart{ShowSymbol: opts.Bool(false)}),
		charts.WithItemStyleOpts(opts.ItemStyle{Color: "--text"}),
		charts.WithLineStyleOpts(opts.LineStyle{Color: "--text", Width: 1.4}))
	shade := opts.MarkAreaStyle{ItemStyle: &opts.ItemStyle{Color: faint, Opacity: opts.Float(0.4)}}
	for _, g := range gaps(rows) {
		line.SetSeriesOptions(charts.WithMarkAreaData([]opts.MarkAreaData{
			{MarkAreaStyle: shade, XAxis: g[0]}, {XAxis: g[1]},
		}))
	}
	scatter.Overlap(line)
	label := "Rows by arrival and how far they are behind their event time, with the watermark"
	if caption != "" {
		label += ", " + caption
	}
	return chart{
		ID: id, Caption: caption, Height: 300, Group: "arrival", Option: scatter.JSON(), X: "duration", Y: "log",
		Label: label,
	}
}

// gaps are the spans in which a partition sent nothing: at least a hundredth of what is drawn, and much longer than
// it takes from one dot to the next.
func gaps(rows []results.Arrival) [][2]int64 {
	if len(rows) < 2 {
		return nil
	}
	span := rows[len(rows)-1].AtMS - rows[0].AtMS
	var spans [][2]int64
	for i := range rows[1:] {
		from, to := rows[i].AtMS, rows[i+1].AtMS
		if to-from > span/100 && to-from > 5*span/int64(len(rows)) {
			spans = append(spans, [2]int64{from, to})
		}
	}
	return spans
}

// lagText is all that is known of a row in the picture.
func lagText(a results.Arrival) string {
	late := ""
	if a.Late {
		late = ", late"
	}
	return fmt.Sprintf("partition %d%s\narrival %s\nevent time %s\nbehind %s", a.Partition, late, offset(a.AtMS),
		offset(a.EventMS), millis(a.AtMS-a.EventMS))
}
