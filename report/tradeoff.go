package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"deduplab/results"
)

// cost is what a strategy pays for its result.
type cost struct{ wait, keys, lost int64 }

func costOf(s *results.Strategy) cost {
	return cost{s.Latency.Wait.P99, s.State.KeysLivePeak, s.Lost}
}

// beats reports whether a costs no more than b in anything, and less in something.
func (a cost) beats(b cost) bool {
	return a.wait <= b.wait && a.keys <= b.keys && a.lost <= b.lost && a != b
}

// removesNothing reports whether a strategy leaves duplicates because it does not look for any. It is out of the
// competition: nothing is faster and smaller than doing nothing.
func removesNothing(s *results.Strategy) bool { return s.LeaksByCause["no_dedup"] > 0 }

// front returns the ids of the strategies that no other one beats.
func front(all []*results.Strategy) map[string]bool {
	out := map[string]bool{}
	for _, s := range all {
		out[s.ID] = !removesNothing(s)
		for _, other := range all {
			if !removesNothing(other) && costOf(other).beats(costOf(s)) {
				out[s.ID] = false
			}
		}
	}
	return out
}

// place is where a strategy stands in the trade-off. The dots of those that are beaten are hollow.
type place struct {
	name, color, symbol string
	hollow              bool
}

// places are all of them, in the order of the legend.
var places = []place{
	{"on the Pareto front", good, "diamond", false},
	{"on the Pareto front, loses events", loss, "diamond", false},
	{"beaten", good, "circle", true},
	{"beaten, loses events", loss, "circle", true},
	{"removes nothing", calm, "circle", false},
}

func placeOf(s *results.Strategy, onFront bool) place {
	switch {
	case removesNothing(s):
		return places[4]
	case onFront && s.Lost == 0:
		return places[0]
	case onFront:
		return places[1]
	case s.Lost == 0:
		return places[2]
	}
	return places[3]
}

// namedFirst is how many strategies of the front its sentence names.
const namedFirst = 8

// tradeOffFigure draws the two costs that are paid for deduplication against each other, and losses by size.
func tradeOffFigure(all []*results.Strategy) figure {
	f := figure{Title: "The trade-off: wait, state and loss"}
	var some []*results.Strategy
	for _, s := range all {
		if s.Latency.Wait.N > 0 {
			some = append(some, s)
		}
	}
	if len(some) == 0 {
		f.See = "No strategy emitted an event."
		return f
	}
	best := front(some)
	var dots []dot
	var unbeaten []string
	for _, s := range some {
		dots = gather(dots, s, placeOf(s, best[s.ID]))
		if best[s.ID] {
			unbeaten = append(unbeaten, s.ID)
		}
	}
	f.See = "Left is fast, low is small, and a larger dot has lost more events. "
	if more := len(unbeaten) - namedFirst; more > 0 {
		unbeaten = append(unbeaten[:namedFirst:namedFirst], fmt.Sprintf("%d more", more))
	}
	if len(unbeaten) > 0 {
		f.See += fmt.Sprintf("On the Pareto front, where no other is better in one of the three and as good in the other "+
			"two: %s. ", list(unbeaten))
	}
	f.See += "Strategies that stand at the same place share a dot; both scales are logarithmic, and 0 stands at 1. " +
		"Duplicates left are not drawn here: what removes nothing is fast and small, and does not compete."
	scatter := charts.NewScatter()
	scatter.SetGlobalOptions(charts.WithTooltipOpts(opts.Tooltip{Trigger: "item"}),
		charts.WithXAxisOpts(opts.XAxis{Type: "log", Min: 1, Name: "wait p99"}),
		charts.WithYAxisOpts(opts.YAxis{Type: "log", Name: "keys live, peak"}))
	for _, p := range places {
		var data []opts.ScatterData
		for _, d := range dots {
			if d.place == p {
				data = append(data, d.data())
			}
		}
		style := opts.ItemStyle{Color: p.color}
		if p.hollow {
			style = opts.ItemStyle{Color: "--page", BorderColor: p.color, BorderWidth: 2}
		}
		if data != nil {
			scatter.AddSeries(p.name, data, charts.WithScatterChartOpts(opts.ScatterChart{Symbol: p.symbol}),
				charts.WithItemStyleOpts(style),
				charts.WithLabelOpts(opts.Label{Show: opts.Bool(true), Position: "right", Color: "--text"}))
		}
	}
	f.Charts = []chart{{
		ID: "chart-trade-off", Height: 400, Option: scatter.JSON(), X: "log", Y: "log count", Dots: true,
		Label: "Wait p99 against the peak of live keys, one dot for each group of strategies",
	}}
	f.Data = tradeOffData(some, best)
	return f
}

// dot is one place in the trade-off and the strategies that stand there.
type dot struct {
	place
	cost
	ids []string
}

// data is the dot as the page's script reads it: where it stands, its label, and its strategies, one a line.
func (d dot) data() opts.ScatterData {
	size := 12
	if d.lost > 0 {
		size += int(5 * math.Log10(float64(d.lost)+1))
	}
	return opts.ScatterData{
		Name:  fmt.Sprintf("wait p99 %s\n%s keys live\n%s events lost", millis(d.wait), count(d.keys), count(d.lost)),
		Value: []any{logged(d.wait), logged(d.keys), d.label(), strings.Join(d.ids, "\n")}, SymbolSize: size,
	}
}

// label names the first two strategies and how many others.
func (d dot) label() string {
	if len(d.ids) <= 3 {
		return list(d.ids)
	}
	return fmt.Sprintf("%s, %s and %d more", d.ids[0], d.ids[1], len(d.ids)-2)
}

// gather puts a strategy to the dot that it cannot be told apart from by eye, or gives it one of its own.
func gather(dots []dot, s *results.Strategy, p place) []dot {
	c := costOf(s)
	for i, d := range dots {
		if near(d.wait, c.wait) && near(d.keys, c.keys) && d.place == p {
			dots[i].ids = append(d.ids, s.ID)
			dots[i].lost = max(d.lost, c.lost)
			return dots
		}
	}
	return append(dots, dot{p, c, []string{s.ID}})
}

// near reports whether two numbers are in about the same place on a logarithmic axis.
func near(a, b int64) bool {
	return math.Abs(math.Log10(float64(logged(a))/float64(logged(b)))) < 0.15
}
