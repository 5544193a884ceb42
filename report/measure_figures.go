package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"deduplab/measure"
	"deduplab/stream"
)

// shownLines bounds the lines of a chart, and shownRows those of its table: partitions and origins can be many.
const (
	shownLines = 20
	shownRows  = 200
)

// leakBudget is the part of the copies that a recommended TTL may let through.
const leakBudget = 0.001

// spanMS is a span in whole milliseconds.
func spanMS(s measure.Span) int64 { return int64(s) / 1e6 }

// curve is a line of a chart whose points say what they are.
type curve struct {
	name, color, dash string
	points            []opts.LineData
}

func (c *curve) add(x, y any, text string) {
	c.points = append(c.points, opts.LineData{Name: text, Value: []any{x, y}})
}

// axes are the two of a chart of curves; the units are those of the page's script.
type axes struct {
	xUnit, yUnit, xName, yName string
	xType, yType               string
}

// rule is a line across a chart: at X, in ms, or at Y.
type rule struct {
	name string
	x, y float64
}

// curvesChart draws curves. Those without points are left out.
func curvesChart(id, label string, a axes, curves []curve, rules ...rule) chart {
	return chart{ID: id, Label: label, Height: 340, Option: curveLines(a, curves, rules).JSON(), X: a.xUnit, Y: a.yUnit}
}

func curveLines(a axes, curves []curve, rules []rule) *charts.Line {
	line := charts.NewLine()
	line.SetGlobalOptions(charts.WithTooltipOpts(opts.Tooltip{Trigger: "item"}),
		charts.WithXAxisOpts(opts.XAxis{Type: a.xType, Name: a.xName}),
		charts.WithYAxisOpts(opts.YAxis{Type: a.yType, Name: a.yName}))
	marks := []charts.SeriesOpts{charts.WithMarkLineStyleOpts(opts.MarkLineStyle{
		Symbol: []string{"none", "none"}, LineStyle: &opts.LineStyle{Color: accent, Type: "dashed", Width: 1.2},
		Label: &opts.Label{Show: opts.Bool(true), Formatter: "{b}", Color: accent, FontSize: 11, Position: "end"},
	})}
	for _, r := range rules {
		if r.x > 0 {
			marks = append(marks, charts.WithMarkLineNameXAxisItemOpts(opts.MarkLineNameXAxisItem{Name: r.name, XAxis: r.x}))
		} else {
			marks = append(marks, charts.WithMarkLineNameYAxisItemOpts(opts.MarkLineNameYAxisItem{Name: r.name, YAxis: r.y}))
		}
	}
	for _, c := range curves {
		if len(c.points) == 0 {
			continue
		}
		line.AddSeries(c.name, c.points,
			charts.WithLineChartOpts(opts.LineChart{Symbol: "circle", SymbolSize: 5}),
			charts.WithItemStyleOpts(opts.ItemStyle{Color: c.color}),
			charts.WithLineStyleOpts(opts.LineStyle{Color: c.color, Width: 2, Type: c.dash}))
		if len(rules) > 0 {
			line.SetSeriesOptions(marks...)
			rules = nil
		}
	}
	return line
}

// survival draws which part of a distribution is longer than a span: exact at every dot, of total values.
func survival(name, color, dash string, d measure.Delays, total int) curve {
	c := curve{name: name, color: color, dash: dash}
	type point struct {
		ms    int64
		share float64
		text  string
	}
	var points []point
	left := d.Count
	for _, b := range d.Histogram {
		left -= b.Count
		if b.UpTo > 0 && left > 0 {
			share := float64(left) / float64(total)
			points = append(points, point{logged(spanMS(b.UpTo)), share,
				fmt.Sprintf("longer than %s: %s (%s)", b.UpTo, ratio(share), n(left))})
		}
	}
	for _, q := range []struct {
		p     float64
		value measure.Quantile
	}{{0.5, d.P50}, {0.01, d.P99}, {0.001, d.P999}, {0.0001, d.P9999}} {
		if q.p*float64(d.Count) >= 1 { // the curve runs through the marks
			points = append(points, point{logged(spanMS(q.value.Value)), q.p * float64(d.Count) / float64(total), ""})
		}
	}
	if d.Count > 0 {
		points = append(points, point{logged(spanMS(d.Max.Value)), 1 / float64(total), "the longest: " + d.Max.String()})
	}
	slices.SortStableFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.ms, b.ms), cmp.Compare(b.share, a.share))
	})
	for _, p := range points {
		if p.text == "" {
			p.text = fmt.Sprintf("longer than %s: %s", millis(p.ms), ratio(p.share))
		}
		c.add(p.ms, p.share, p.text)
	}
	return c
}

// percentiles are the marks on a survival curve, where there are enough values to tell them.
func percentiles(name, color string, d measure.Delays, labelled bool) *charts.Scatter {
	dots := []opts.ScatterData{}
	for _, p := range []struct {
		name  string
		share float64
		q     measure.Quantile
	}{{"p50", 0.5, d.P50}, {"p99", 0.01, d.P99}, {"p99.9", 0.001, d.P999}, {"p99.99", 0.0001, d.P9999}} {
		if p.share*float64(d.Count) >= 1 {
			dots = append(dots, opts.ScatterData{Name: p.name + ": " + p.q.String(),
				Value: []any{logged(spanMS(p.q.Value)), p.share}})
		}
	}
	scatter := charts.NewScatter()
	scatter.AddSeries(name, dots, charts.WithScatterChartOpts(opts.ScatterChart{Symbol: "diamond", SymbolSize: 12}),
		charts.WithItemStyleOpts(opts.ItemStyle{Color: color, BorderColor: "--page", BorderWidth: 1}),
		charts.WithLabelOpts(opts.Label{Show: opts.Bool(labelled), Formatter: "{b}", Color: "--text", FontSize: 11,
			Position: "right", VerticalAlign: "bottom"}))
	return scatter
}

func logTimeShare(x, y string) axes {
	return axes{xType: "log", yType: "log", xUnit: "log", yUnit: "log share", xName: x, yName: y}
}

// delayFigure draws how long after the first and the previous sighting copies come.
func delayFigure(id string, k *measure.KeyReport) figure {
	f := figure{Title: "Delay of copies: how long a key must be remembered"}
	early := k.FromFirst
	f.See = fmt.Sprintf("A curve is the part of the %s that comes later than the time below it, both on log scales. "+
		"Half come within %s of the first sighting, all but 1 %% within %s, all but 0.1 %% within %s, the last one after %s. "+
		"Counted from the previous sighting, which is what a TTL that copies extend must span, all but 0.1 %% within %s.",
		copies(k.Copies), early.P50, early.P99, early.P999, early.Max, k.FromPrevious.P999)
	names, colors := []string{"from the first sighting", "from the previous one"}, []string{"--c1", "--c4"}
	both := []measure.Delays{early, k.FromPrevious}
	f.Data = []grid{quantileGrid("delay of a copy", names, both), histogramGrid(k)}
	if early.Max.Value == 0 {
		f.See = fmt.Sprintf("All %s come at the very time of their first sighting.", copies(k.Copies))
		return f
	}
	var rules []rule
	for _, t := range k.Plan.Tiers[:min(2, len(k.Plan.Tiers))] {
		rules = append(rules, rule{name: t.Name + " " + stream.FormatDuration(t.Horizon), x: float64(t.Horizon)})
	}
	a := logTimeShare("delay", "come later")
	line := curveLines(a, []curve{survival(names[0], colors[0], "", early, k.Copies),
		survival(names[1], colors[1], "dashed", k.FromPrevious, k.Copies)}, rules)
	for i, d := range both {
		line.Overlap(percentiles(names[i], colors[i], d, i == 0))
	}
	f.Charts = []chart{{ID: "chart-delay" + id, Label: "Part of the copies that come later than a time", Height: 360,
		Option: line.JSON(), X: a.xUnit, Y: a.yUnit}}
	return f
}

// quantileGrid is a table of distributions, a line each.
func quantileGrid(head string, names []string, all []measure.Delays) grid {
	g := grid{Head: []string{head, "n", "p50", "p99", "p99.9", "p99.99", "max"}, Text: 1}
	for i, d := range all {
		g.Rows = append(g.Rows, []string{names[i], n(d.Count), d.P50.String(), d.P99.String(), d.P999.String(),
			d.P9999.String(), d.Max.String()})
	}
	return g
}

// bucketName is the name of a span's bucket.
func bucketName(upTo measure.Span) string {
	switch upTo {
	case 0:
		return "same time"
	case math.MaxInt64:
		return "longer"
	}
	return upTo.String()
}

func histogramGrid(k *measure.KeyReport) grid {
	g := grid{Head: []string{"up to", "from the first", "so far", "from the previous", "so far"}}
	all := []measure.Delays{k.FromFirst, k.FromPrevious}
	so := [2]int{}
	for i := range max(len(all[0].Histogram), len(all[1].Histogram)) {
		row := []string{""}
		for j, d := range all {
			if i >= len(d.Histogram) {
				row = append(row, "", "")
				continue
			}
			b := d.Histogram[i]
			so[j] += b.Count
			row[0] = bucketName(b.UpTo)
			row = append(row, n(b.Count), percent(int64(so[j]), int64(d.Count)))
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// originFigure draws the delays from the first sighting by the origin of the copy.
func originFigure(id string, k *measure.KeyReport) figure {
	f := figure{Title: "Delay by origin: who makes the long tail"}
	most, slowest := k.ByOrigin[0], k.ByOrigin[0]
	for _, o := range k.ByOrigin {
		if o.Delays.P999.Value > slowest.Delays.P999.Value {
			slowest = o
		}
	}
	f.See = fmt.Sprintf("The origin %s makes the most copies, %s", isolated(most.Name), n(most.Copies))
	if slowest.Name == most.Name {
		f.See += fmt.Sprintf(", and has the longest tail, p99.9 of %s.", slowest.Delays.P999)
	} else {
		f.See += fmt.Sprintf("; the longest tail is that of %s, p99.9 of %s.", isolated(slowest.Name), slowest.Delays.P999)
	}
	f.See += " An origin may deserve a TTL of its own."
	var names []string
	var delays []measure.Delays
	for _, o := range k.ByOrigin {
		if o.Copies > 0 {
			names, delays = append(names, o.Name), append(delays, o.Delays)
		}
	}
	if k.FromFirst.Max.Value > 0 {
		f.Charts = []chart{delaysChart("chart-origin"+id, "Percentiles of the delay for each origin", names, delays)}
	}
	rows := min(shownRows, len(names))
	f.Data = []grid{quantileGrid("origin", names[:rows], delays[:rows])}
	return f
}

// delaysChart draws the percentiles of distributions, a line each, of the first that fit.
func delaysChart(id, label string, names []string, all []measure.Delays) chart {
	lines := min(shownLines, len(names))
	marks := quantileMarks("p50", "p99", "p99.9", "p99.99", "max")
	for _, d := range all[:lines] {
		for i, q := range []measure.Quantile{d.P50, d.P99, d.P999, d.P9999, d.Max} {
			if d.Count == 0 {
				marks[i].add(-1, "")
			} else {
				marks[i].add(spanMS(q.Value), q.String())
			}
		}
	}
	return quantileChart(id, label, names[:lines], marks)
}

// idsFigure draws rows an id against the rank of the id.
func idsFigure(id string, r *measure.Report, k *measure.KeyReport) figure {
	f := figure{Title: "Rows an id: a few ids make most copies, or many make one each"}
	c := curve{name: "ids", color: "--c1"}
	rank := 0
	for i := len(k.PerID.Histogram) - 1; i >= 0; i-- {
		b := k.PerID.Histogram[i]
		from, to, rows := rank+1, rank+b.IDs, b.Rows
		for ; from <= min(to, len(k.PerID.Worst)); from++ { // these are drawn as they are
			rows -= k.PerID.Worst[from-1].Rows
		}
		rank = to
		if from > to {
			continue
		}
		mean := math.Round(float64(rows)/float64(to-from+1)*100) / 100
		text := fmt.Sprintf("ids %s to %s: %s rows on average", n(from), n(to), strconv.FormatFloat(mean, 'f', -1, 64))
		c.add(from, mean, text)
		c.add(to, mean, text)
	}
	var worst []opts.LineData
	g := grid{Caption: "the worst ids", Head: []string{"id", "rows", "of the copies"}, Text: 1}
	for i, w := range k.PerID.Worst {
		worst = append(worst, opts.LineData{Name: fmt.Sprintf("%s: %s rows", shortened(w.ID), n(w.Rows)),
			Value: []any{i + 1, w.Rows}})
		g.Rows = append(g.Rows, []string{shortened(w.ID), n(w.Rows), percent(int64(w.Rows-1), int64(k.Copies))})
	}
	c.points = append(worst, c.points...)
	f.See = fmt.Sprintf("Ids by rank, those with the most rows at the left, both on log scales. The %d worst of %s ids "+
		"make %s of the copies; the worst has %s of %s rows. A steep start is a hot key or a constant id, a flat line plain "+
		"retries.", len(k.PerID.Worst), n(k.Distinct), ratio(k.PerID.WorstShare), n(k.PerID.Max), n(r.Rows))
	f.Charts = []chart{curvesChart("chart-ids"+id, "Rows of an id by its rank", axes{
		xType: "log", yType: "log", xUnit: "log count", yUnit: "log count", xName: "rank of the id", yName: "rows"},
		[]curve{c})}
	f.Charts[0].Height = 280
	spread := grid{Caption: "how many ids have how many rows", Head: []string{"rows", "ids", "rows in all"}}
	from := 1
	for _, b := range k.PerID.Histogram {
		name := n(b.UpTo)
		switch {
		case b.UpTo == 1<<40:
			name = n(from) + " or more"
		case b.UpTo > from:
			name = n(from) + " to " + name
		}
		from = b.UpTo + 1
		spread.Rows = append(spread.Rows, []string{name, n(b.IDs), n(b.Rows)})
	}
	f.Data = []grid{g, spread}
	return f
}

// shortened cuts a long id.
func shortened(id string) string {
	if r := []rune(id); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return id
}

// ttlFigure draws what each TTL lets through, and what must be remembered for it.
func ttlFigure(id string, k *measure.KeyReport) figure {
	f := figure{Title: "What a TTL lets through, and what it holds"}
	leaks := []curve{{name: "from the first row", color: "--c1"},
		{name: "from the last: copies extend it", color: "--c4", dash: "dashed"}}
	states := slices.Clone(leaks)
	g := grid{Head: []string{"TTL", "leaked", "leak rate", "keys held", "bytes", "leaked, extended", "leak rate",
		"keys held", "bytes"}}
	nothing := [2]stream.Time{}
	for _, t := range k.Forecasts {
		name := stream.FormatDuration(t.TTL)
		if t.TTL == 0 {
			name = "none"
		}
		row := []string{name}
		for i, o := range []measure.Outcome{t.Create, t.Refresh} {
			row = append(row, n(o.Leaked), ratio(o.LeakRate), bound(t.AtLeast)+n(o.Keys), bound(t.AtLeast)+byteSize(o.Bytes))
			if t.TTL == 0 {
				continue
			}
			if o.Leaked > 0 {
				leaks[i].add(int64(t.TTL), o.LeakRate, fmt.Sprintf("TTL %s: %s leak, %s", name, n(o.Leaked), ratio(o.LeakRate)))
			} else if nothing[i] == 0 {
				nothing[i] = t.TTL
			}
			states[i].add(int64(t.TTL), o.Keys, fmt.Sprintf("TTL %s: %s%s keys, %s", name, bound(t.AtLeast), n(o.Keys),
				byteSize(o.Bytes)))
		}
		g.Rows = append(g.Rows, row)
	}
	see := func(ttl stream.Time) string {
		if ttl == 0 {
			return "never"
		}
		return "from " + stream.FormatDuration(ttl) + " on"
	}
	ttl := k.Plan.Tiers[0]
	f.See = fmt.Sprintf("Each TTL run over the trace, in whole milliseconds as the engines count. Nothing leaks %s if it "+
		"is counted from the first row of a key, %s if copies extend it. The recommended %s holds %s%s keys, %s at %d bytes "+
		"each.",
		see(nothing[0]), see(nothing[1]), stream.FormatDuration(ttl.Horizon), bound(ttl.AtLeast), n(ttl.Keys),
		byteSize(ttl.Bytes), ttl.Bytes/max(1, int64(ttl.Keys)))
	f.Data = []grid{g}
	at := rule{name: stream.FormatDuration(ttl.Horizon), x: float64(ttl.Horizon)}
	if len(leaks[0].points)+len(leaks[1].points) > 0 {
		c := curvesChart("chart-leaks"+id, "Part of the copies that leak for each TTL",
			logTimeShare("TTL", "of the copies leak"), leaks, at, rule{y: leakBudget})
		c.Caption = "copies leaked"
		f.Charts = append(f.Charts, c)
		f.See += " The level line is 0.1 %."
	}
	if len(states[0].points) == 1 {
		return f // one TTL and its keys are told above
	}
	c := curvesChart("chart-keys"+id, "Keys held at the peak for each TTL", axes{xType: "log", yType: "value",
		xUnit: "log", yUnit: "count", xName: "TTL", yName: "keys held"}, states, at)
	c.Caption = "state"
	f.Charts = append(f.Charts, c)
	return f
}

// lossFigure draws what each watermark delay would lose.
func lossFigure(id string, r *measure.Report, k *measure.KeyReport) figure {
	f := figure{Title: "What a watermark delay loses"}
	several := len(r.Partitions) > 1
	curves := []curve{{name: "events lost", color: loss}, {name: "late copies", color: calm}}
	g := grid{Head: []string{"delay", "events lost", "of all", "late copies"}}
	if several {
		curves = append(curves, curve{name: "lost, watermark per partition", color: loss, dash: "dashed"})
		g.Head = append(g.Head, "lost, watermark per partition", "late copies")
	}
	for _, l := range k.Losses {
		name := stream.FormatDuration(l.Delay)
		g.Rows = append(g.Rows, []string{name, n(l.Reader.LostEvents), ratio(l.Reader.LostRate), n(l.Reader.LateCopies)})
		counts := []int{l.Reader.LostEvents, l.Reader.LateCopies}
		if several {
			counts = append(counts, l.Partition.LostEvents)
			last := len(g.Rows) - 1
			g.Rows[last] = append(g.Rows[last], n(l.Partition.LostEvents), n(l.Partition.LateCopies))
		}
		for i, v := range counts {
			if v > 0 {
				curves[i].add(logged(int64(l.Delay)), v, fmt.Sprintf("delay %s: %s", name, n(v)))
			}
		}
	}
	advice := advised(k.Advice, measure.WatermarkAdvice)
	zero := k.Losses[0]
	f.See = fmt.Sprintf("The most that each delay can lose: events none of whose rows is on time, if a watermark "+
		"followed every row. Without a delay %s of %s events are lost (%s). Recommended: %s. Both on log scales; 0s stands "+
		"at 1 ms, and what is 0 is not drawn.", n(zero.Reader.LostEvents), n(k.Distinct), ratio(zero.Reader.LostRate), advice.Value)
	var rules []rule
	if d, err := stream.ParseDuration(advice.Value); err == nil && d > 0 {
		rules = append(rules, rule{name: advice.Value, x: float64(d)})
	}
	c := curvesChart("chart-losses"+id, "Events lost and late copies for each watermark delay", axes{xType: "log",
		yType: "log", xUnit: "log", yUnit: "log count", xName: "watermark delay", yName: "rows"}, curves, rules...)
	f.Charts, f.Data = []chart{c}, []grid{g}
	return f
}

// comparedFigure draws which copies two candidate keys agree on. It has no charts where there is one key.
func comparedFigure(r *measure.Report) figure {
	var f figure
	if len(r.Agreements) == 0 {
		return f
	}
	f.Title = "What one key merges and another keeps apart"
	keys := grid{Caption: "the keys", Text: 1, Head: []string{"key", "distinct", "copies", "of the rows", "NULL",
		"delay p99.9", "max"}}
	for _, k := range r.Keys {
		keys.Rows = append(keys.Rows, []string{keyName(k.Key), n(k.Distinct), n(k.Copies),
			percent(int64(k.Copies), int64(r.Rows)), n(k.NullKeys), k.FromFirst.P999.String(), k.FromFirst.Max.String()})
	}
	pairs := grid{Caption: "each two of them", Head: []string{"first key", "second key", "copies by both", "first only",
		"second only", "agreement"}, Text: 2}
	var names []string
	parts := []part{{name: "copies by both", color: good}, {name: "merged by the first only", color: "--c1"},
		{name: "merged by the second only", color: "--c4"}}
	farthest := r.Agreements[0]
	for _, a := range r.Agreements {
		first, second := keyName(a.A), keyName(a.B)
		names = append(names, "("+first+") and ("+second+")")
		for i, v := range []int{a.Both, a.OnlyA, a.OnlyB} {
			parts[i].values = append(parts[i].values, int64(v))
		}
		pairs.Rows = append(pairs.Rows, []string{first, second, n(a.Both), n(a.OnlyA), n(a.OnlyB), ratio(a.Share())})
		if a.Share() < farthest.Share() {
			farthest = a
		}
	}
	f.See = fmt.Sprintf("A row that one key merges into an earlier one and another keeps apart is a copy that the other "+
		"misses, or an event that the one loses; only the producer can tell which. Farthest apart are (%s) and (%s): "+
		"%s by both, %s rows merged by the first only, %s by the second only.", isolated(keyName(farthest.A)),
		isolated(keyName(farthest.B)),
		copies(farthest.Both), n(farthest.OnlyA), n(farthest.OnlyB))
	f.Charts = []chart{stacked("chart-compared", "Copies by two keys", "rows", names, parts)}
	f.Data = []grid{keys, pairs}
	return f
}

// disorderFigure draws how far rows lie behind the largest event time before them.
func disorderFigure(r *measure.Report) figure {
	f := figure{Title: "Disorder: how far rows lie behind in event time"}
	d := r.Disorder
	order := "in order of arrival"
	if d.Order == "file" {
		order = "in the order of the files"
	}
	switch {
	case r.Columns.EventTime == "":
		f.See = "No column of the trace is named as its event time, so there is no disorder to measure."
		return f
	case d.OutOfOrder == 0:
		f.See = fmt.Sprintf("None of the %s rows with an event time lies behind another, %s.", n(d.Rows), order)
		return f
	}
	f.See = fmt.Sprintf("%s of %s rows lie behind the largest event time before them, %s (%s): half of those by %s, all "+
		"but 0.1 %% by %s or less, the farthest by %s. A watermark delay must be longer for a row to be on time.",
		n(d.OutOfOrder), n(d.Rows), order, percent(int64(d.OutOfOrder), int64(d.Rows)), d.Lateness.P50, d.Lateness.P999,
		d.Lateness.Max)
	var rules []rule
	advice := advised(r.Keys[0].Advice, measure.WatermarkAdvice)
	if delay, err := stream.ParseDuration(advice.Value); err == nil && delay > 0 {
		rules = append(rules, rule{name: "delay " + advice.Value, x: float64(delay)})
	}
	f.Charts = []chart{curvesChart("chart-disorder", "Part of the rows that lie behind by more than a time",
		logTimeShare("behind", "of the rows are behind by more"),
		[]curve{survival("rows", "--c1", "", d.Lateness, d.Rows)}, rules...)}
	f.Charts[0].Height = 300
	g := grid{Head: []string{"behind by up to", "rows", "so far"}}
	so := 0
	for _, b := range d.Lateness.Histogram {
		so += b.Count
		g.Rows = append(g.Rows, []string{bucketName(b.UpTo), n(b.Count), percent(int64(so), int64(d.OutOfOrder))})
	}
	f.Data = []grid{quantileGrid("", []string{"rows out of order"}, []measure.Delays{d.Lateness}), g}
	return f
}

// idleFigure draws the gaps of each partition, the longest first.
func idleFigure(r *measure.Report) figure {
	f := figure{Title: "Silence: the gaps of each partition"}
	all := slices.Clone(r.Partitions)
	slices.SortStableFunc(all, func(a, b measure.Idle) int { return cmp.Compare(b.Gaps.Max.Value, a.Gaps.Max.Value) })
	var names []string
	var gaps []measure.Delays
	g := grid{Head: []string{"partition", "rows", "gap p50", "p99", "p99.9", "p99.99", "max", "from",
		"silent at the end"}}
	for i, p := range all {
		names, gaps = append(names, strconv.Itoa(p.Partition)), append(gaps, p.Gaps)
		if i < shownRows {
			g.Rows = append(g.Rows, []string{strconv.Itoa(p.Partition), n(p.Rows), p.Gaps.P50.String(), p.Gaps.P99.String(),
				p.Gaps.P999.String(), p.Gaps.P9999.String(), p.Gaps.Max.String(), p.LongestAt, p.Silent.String()})
		}
	}
	f.See = fmt.Sprintf("Between rows that follow each other. The longest silence is %s, in partition %d. While a "+
		"partition is silent and not yet idle, it holds back the watermark of all. Idle timeout: %s, %s.", all[0].Gaps.Max,
		all[0].Partition, r.IdleTimeout.Value, r.IdleTimeout.Why)
	if len(all) > shownLines {
		f.See += fmt.Sprintf(" Drawn are the %d partitions with the longest gaps of %s.", shownLines, n(len(all)))
	}
	f.Data = []grid{g}
	if slices.ContainsFunc(gaps, func(d measure.Delays) bool { return d.Count > 0 }) {
		for i := range names {
			names[i] = "partition " + names[i]
		}
		f.Charts = []chart{delaysChart("chart-idle", "Percentiles of the gaps for each partition", names, gaps)}
	}
	return f
}
