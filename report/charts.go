package report

import (
	"slices"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"deduplab/results"
)

// Colours are names of the page's own style sheet: the page's script puts in what they are in the reader's theme.
const (
	good    = "--good"
	loss    = "--loss"
	bad     = "--bad"
	calm    = "--calm"
	accent  = "--accent"
	faint   = "--faint"
	subdued = "--subdued"
)

// palette tells strategies and causes apart.
var palette = []string{"--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8"}

// chart is one drawing: its options as ECharts reads them, and the units of its axes, by which the page's script
// writes numbers.
type chart struct {
	ID      string `json:"id"`
	Caption string `json:"-"` // of one among several in a figure
	Label   string `json:"-"` // what a screen reader says
	Height  int    `json:"-"`
	Group   string `json:"group,omitempty"` // charts of a group zoom together
	Note    string `json:"note,omitempty"`  // what the numbers of a tooltip are
	// Strategies says that its lines or series are strategies, by id, and can be chosen among; Notes is what its legend
	// adds to their names.
	Strategies bool              `json:"strategies,omitempty"`
	Notes      map[string]string `json:"notes,omitempty"`
	// Dots says that it is made of dots with labels, each for several strategies.
	Dots   bool   `json:"dots,omitempty"`
	Option any    `json:"option"`
	X      string `json:"x"`
	Y      string `json:"y"`
}

// rowHeight is the height of a strategy's line in a chart, also in page.js; frame is that of the axis.
const (
	rowHeight = 24
	frame     = 64
)

// category is the axis of strategies, the best at the top.
func category(names []string) charts.GlobalOpts {
	return charts.WithYAxisOpts(opts.YAxis{Type: "category", Data: names, Inverse: opts.Bool(true)})
}

func tooltip(trigger string) charts.GlobalOpts {
	return charts.WithTooltipOpts(opts.Tooltip{Trigger: trigger, AxisPointer: &opts.AxisPointer{Type: "shadow"}})
}

// ids are the names of strategies on an axis.
func ids(all []*results.Strategy) []string {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.ID
	}
	return names
}

// part is one colour of a stacked bar: a number for each strategy.
type part struct {
	name, color string
	values      []int64
}

// newPart reads a part's numbers from the strategies.
func newPart(name, color string, all []*results.Strategy, value func(*results.Strategy) int64) part {
	p := part{name: name, color: color}
	for _, s := range all {
		p.values = append(p.values, value(s))
	}
	return p
}

// marker is a symbol at the end of the bar of those strategies for which it has a text.
type marker struct {
	name, color string
	texts       []string
}

// newMarker reads a marker's texts from the strategies.
func newMarker(name, color string, all []*results.Strategy, text func(*results.Strategy) string) marker {
	m := marker{name: name, color: color}
	for _, s := range all {
		m.texts = append(m.texts, text(s))
	}
	return m
}

// quantileMark is a dot for one percentile of each of several distributions: milliseconds, negative for none, and what
// is said of them.
type quantileMark struct {
	name, color, symbol string
	size                int
	values              []int64
	texts               []string
}

func (m *quantileMark) add(ms int64, text string) {
	m.values, m.texts = append(m.values, ms), append(m.texts, text)
}

// quantileMarks are the marks of the percentiles with these names, without values.
func quantileMarks(names ...string) []quantileMark {
	looks := map[string]quantileMark{
		"p50":    {color: subdued, symbol: "circle", size: 7},
		"p90":    {color: "--c2", symbol: "circle", size: 7},
		"p99":    {color: accent, symbol: "circle", size: 10},
		"p99.9":  {color: "--c4", symbol: "diamond", size: 9},
		"p99.99": {color: "--c3", symbol: "diamond", size: 9},
		"max":    {color: loss, symbol: "triangle", size: 8},
	}
	marks := make([]quantileMark, len(names))
	for i, name := range names {
		marks[i] = looks[name]
		marks[i].name = name
	}
	return marks
}

// quantileChart draws one line for each distribution, with a dot for each percentile on a logarithmic axis of time.
func quantileChart(id, label string, names []string, marks []quantileMark) chart {
	// A thin line from the first percentile to the last joins the dots.
	line := charts.NewLine()
	line.SetGlobalOptions(category(names), tooltip("axis"), charts.WithXAxisOpts(opts.XAxis{Type: "log", Min: 1}))
	ends := []opts.LineData{}
	first, last := marks[0], marks[len(marks)-1]
	for i := range names {
		if first.values[i] >= 0 {
			ends = append(ends, opts.LineData{Value: []any{logged(first.values[i]), i}},
				opts.LineData{Value: []any{logged(last.values[i]), i}}, opts.LineData{Value: []any{"-", i}})
		}
	}
	line.AddSeries("", ends, charts.WithLineChartOpts(opts.LineChart{ShowSymbol: opts.Bool(false)}),
		charts.WithLineStyleOpts(opts.LineStyle{Color: faint, Width: 2}))
	scatter := charts.NewScatter()
	for _, m := range marks {
		data := []opts.ScatterData{}
		for i, v := range m.values {
			if v >= 0 {
				data = append(data, opts.ScatterData{Name: m.texts[i], Value: []any{logged(v), i}})
			}
		}
		scatter.AddSeries(m.name, data,
			charts.WithScatterChartOpts(opts.ScatterChart{Symbol: m.symbol, SymbolSize: m.size}),
			charts.WithItemStyleOpts(opts.ItemStyle{Color: m.color}))
	}
	line.Overlap(scatter)
	return chart{ID: id, Label: label, Height: len(names)*rowHeight + frame, Option: line.JSON(), X: "log"}
}

// stacked draws one horizontal bar for each strategy, made of parts, with markers at the end of those that deserve a
// second look. The unit is what is counted. What is zero for all of them is left out.
func stacked(id, label, unit string, names []string, parts []part, markers ...marker) chart {
	ends := make([]int64, len(names))
	bar := charts.NewBar()
	bar.SetGlobalOptions(category(names), tooltip("axis"),
		charts.WithXAxisOpts(opts.XAxis{Type: "value", MinInterval: 1}))
	bar.SetXAxis(names).XYReversal()
	for _, p := range parts {
		if !slices.ContainsFunc(p.values, func(v int64) bool { return v != 0 }) {
			continue
		}
		data := make([]opts.BarData, len(p.values))
		for i, v := range p.values {
			data[i] = opts.BarData{Value: v, Name: count(v)}
			ends[i] += v
		}
		bar.AddSeries(p.name, data, charts.WithBarChartOpts(opts.BarChart{Stack: "all", BarWidth: "60%"}),
			charts.WithItemStyleOpts(opts.ItemStyle{Color: p.color}))
	}
	for _, m := range markers {
		scatter := charts.NewScatter()
		var data []opts.ScatterData
		for i, text := range m.texts {
			if text != "" {
				data = append(data, opts.ScatterData{Name: text, Value: []any{ends[i], i}})
			}
		}
		if len(data) == 0 {
			continue
		}
		scatter.AddSeries(m.name, data,
			charts.WithScatterChartOpts(opts.ScatterChart{Symbol: "diamond", SymbolSize: 13}),
			charts.WithItemStyleOpts(opts.ItemStyle{Color: m.color, BorderColor: "--page", BorderWidth: 1}))
		bar.Overlap(scatter)
	}
	bar.Validate()
	return chart{
		ID: id, Label: label, Height: len(names)*rowHeight + frame, Option: bar.JSON(), X: "count", Note: unit,
		Strategies: true,
	}
}
