package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	devtools "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"deduplab/report/browser"
	"deduplab/results"
)

// TestBrowser opens pages in a real browser, from a file and without a network.
func TestBrowser(t *testing.T) {
	ctx, end, err := browser.Start(context.Background())
	if errors.Is(err, browser.ErrNone) {
		t.Skipf("the pages are not tested in a browser: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	defer end()
	for _, test := range []struct {
		name string
		of   func(*testing.T, *tab)
	}{
		{"draws", testDraws}, {"sorts", testSorts}, {"filters", testFilters}, {"legend", testLegend},
		{"copies", testCopies}, {"tips", testTips}, {"anchors", testAnchors}, {"themes", testThemes},
		{"prints", testPrints}, {"forty strategies", testForty}, {"names", testNames}, {"contrast", testContrast},
		{"empty", testEmpty},
	} {
		t.Run(test.name, func(t *testing.T) { test.of(t, newTab(t, ctx)) })
	}
}

// desktop and phone are how pages are looked at.
var (
	desktop = browser.View{Width: 1280, Height: 800}
	phone   = browser.View{Width: 390, Height: 844}
)

// tab is a tab of the browser, whose page must ask for nothing and complain of nothing.
type tab struct {
	*testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string
}

func newTab(t *testing.T, parent context.Context) *tab {
	ctx, cancel := chromedp.NewContext(parent)
	b := &tab{T: t, ctx: ctx}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, fault := range b.faults {
			t.Error(fault)
		}
	})
	return b
}

// listen notes what a page that needs nothing else does not do.
func (b *tab) listen(event any) {
	fault := ""
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, "file:") && !strings.HasPrefix(url, "data:") {
			fault = "request for " + url
		}
	case *runtime.EventExceptionThrown:
		fault = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			fault += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		fault = fmt.Sprintf("console.%s", e.Type)
		for _, arg := range e.Args {
			fault += fmt.Sprintf(" %s", arg.Value)
		}
	}
	if fault != "" {
		b.mu.Lock()
		b.faults = append(b.faults, fault)
		b.mu.Unlock()
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

// open opens the page of a run.
func (b *tab) open(run *results.Run, view browser.View, fragment string) {
	b.Helper()
	file := filepath.Join(b.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(render(b.T, run)), 0o644); err != nil {
		b.Fatal(err)
	}
	b.do(browser.Look(view), browser.Open(file, fragment))
}

// eval is the value of a JavaScript expression.
func eval[V any](b *tab, expression string) V {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[V](expression))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return v
}

// wait waits until a JavaScript expression is true.
func (b *tab) wait(expression string) {
	b.Helper()
	for range 400 { // machines are slow at times
		if eval[bool](b, expression) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.Fatalf("never true: %s", expression)
}

// is fails the test where an expression is not what it should be.
func is[V comparable](b *tab, expression string, want V) {
	b.Helper()
	if got := eval[V](b, expression); got != want {
		b.Errorf("%s: got %v, want %v", expression, got, want)
	}
}

// look looks at the open page in another way, and waits until it is drawn for it.
func (b *tab) look(view browser.View) {
	b.Helper()
	b.do(browser.Look(view))
	b.wait(fmt.Sprintf(`document.documentElement.clientWidth === %d`, view.Width))
	b.wait(`[...document.querySelectorAll(".chart")].every(c => c.clientWidth === c.querySelector("svg")?.clientWidth)`)
}

func (b *tab) drawn() {
	b.Helper()
	if empty := eval[[]string](b, `[...document.querySelectorAll(".chart")]
		.filter(c => c.querySelectorAll("svg path").length < 5).map(c => c.id)`); len(empty) > 0 {
		b.Errorf("nothing drawn in %v", empty)
	}
}

// narrow fails the test where the page is wider than the window.
func (b *tab) narrow() {
	b.Helper()
	if wide := eval[[]string](b, `document.documentElement.scrollWidth <= document.documentElement.clientWidth ? [] :
		[...document.body.querySelectorAll("*")]
			.filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1
				&& !e.parentElement.closest(".scroll, pre, .chart")).slice(0, 8)
			.map(e => e.tagName + "." + e.className + " " + Math.round(e.getBoundingClientRect().right))
			.concat(document.documentElement.scrollWidth + " of " + document.documentElement.clientWidth)`); len(wide) > 0 {
		b.Errorf("wider than the window: %v", wide)
	}
}

// unfold opens all that is folded away.
func (b *tab) unfold() {
	eval[any](b, `document.querySelectorAll("details").forEach(d => { d.open = true; })`)
}

func testDraws(t *testing.T, b *tab) {
	for _, run := range []*results.Run{sample(t), tiered(t)} {
		b.open(run, phone, "")
		for _, view := range []browser.View{phone, desktop} {
			b.look(view)
			b.drawn()
			b.narrow()
			is(b, `document.querySelectorAll(".chart svg").length`, len(chartSpecs(t, render(t, run))))
		}
		is(b, `document.querySelector(".verdicts tbody td a").getBoundingClientRect().bottom < innerHeight`, true)
		b.unfold()
		b.look(phone)
		b.narrow()
	}
}

// first is the first cell of the rows of a table, in their order.
const first = `[...document.querySelectorAll("%s tbody tr")].filter(r => !r.hidden).map(r => r.cells[0].textContent)`

func (b *tab) rows(table string) []string {
	b.Helper()
	return eval[[]string](b, fmt.Sprintf(first, table))
}

func testSorts(t *testing.T, b *tab) {
	run := sample(t)
	b.open(run, desktop, "")
	ranked := b.rows(".numbers")
	by := func(value func(*results.Strategy) int64, down bool) []string {
		all := ran(run.Ranked())
		slices.SortStableFunc(all, func(x, y *results.Strategy) int {
			if down {
				x, y = y, x
			}
			return int(value(x) - value(y))
		})
		return ids(all)
	}
	bytes := func(s *results.Strategy) int64 { return s.State.BytesPeak } // KiB and MiB: not in the order of their text
	button := `[...document.querySelectorAll(".numbers .sort")].find(b => b.textContent === "logical bytes")`
	state := button + `.closest("th").getAttribute("aria-sort")`
	is(b, state, "none")
	for _, want := range []struct {
		sort string
		rows []string
	}{{"ascending", by(bytes, false)}, {"descending", by(bytes, true)}, {"none", ranked}} {
		eval[any](b, button+`.focus()`)
		b.do(chromedp.KeyEvent("\r"))
		is(b, state, want.sort)
		if got := b.rows(".numbers"); !slices.Equal(got, want.rows) {
			t.Errorf("%s by logical bytes:\n%v, want\n%v", want.sort, got, want.rows)
		}
	}
	// A click anywhere on the header sorts too, and what is unknown comes last both ways.
	for range 2 {
		b.do(chromedp.Click(chromedp.CSS(".verdicts thead th:nth-child(3)")))
	}
	is(b, `document.querySelector(".verdicts thead th:nth-child(3)").getAttribute("aria-sort")`, "descending")
	is(b, `document.querySelectorAll(".verdicts [aria-sort=descending]").length`, 1)
	worst := slices.MaxFunc(ran(run.Ranked()), func(x, y *results.Strategy) int {
		return int((x.Residual - y.Residual) * 1e9)
	})
	if got := b.rows(".verdicts")[0]; got != worst.ID {
		t.Errorf("by residual, %s comes first, want %s", got, worst.ID)
	}
}

func testFilters(t *testing.T, b *tab) {
	run := sample(t)
	b.open(run, desktop, "")
	var window, all []string
	for _, s := range run.Ranked() {
		if strings.Contains(s.ID, "window") {
			window = append(window, s.ID)
		}
		if (section{Strategy: s}).MeetsAll() {
			all = append(all, s.ID)
		}
	}
	b.do(chromedp.SendKeys(chromedp.CSS(".filter [type=search]"), "Window"))
	b.wait(fmt.Sprintf(`echarts.getInstanceByDom(document.getElementById("chart-wait")).getOption().yAxis[0].data.join()
		=== %q`, strings.Join(window, ",")))
	for _, table := range []string{".verdicts", ".numbers", ".matrix"} {
		if got := b.rows(table); !slices.Equal(got, window) {
			t.Errorf("%s: %v, want %v", table, got, window)
		}
	}
	is(b, `document.querySelectorAll("details.strategy:not([hidden])").length`, len(window))
	is(b, `document.querySelector(".filter output").textContent`, fmt.Sprintf("%d of %d shown, here and below",
		len(window), len(run.Strategies)))
	eval[any](b, `document.querySelector(".filter").reset()`)
	b.do(chromedp.Click(chromedp.CSS(".filter [name=all]")))
	if got := b.rows(".verdicts"); !slices.Equal(got, all) {
		t.Errorf("those that meet all: %v, want %v", got, all)
	}
	b.do(chromedp.Click(chromedp.CSS(".filter [name=all]")), chromedp.Click(chromedp.CSS(".filter [value=flink-sql]")))
	for _, id := range b.rows(".verdicts") {
		i := slices.IndexFunc(run.Strategies, func(s results.Strategy) bool { return s.ID == id })
		if run.Strategies[i].Engine == "flink-sql" {
			t.Errorf("%s is of an engine that is not chosen", id)
		}
	}
}

func testLegend(t *testing.T, b *tab) {
	b.open(sample(t), desktop, "")
	button := `[...document.getElementById("chart-wait").previousElementSibling.children]
		.find(b => b.textContent === "p99")`
	paths := `document.querySelectorAll("#chart-wait svg path").length`
	before := eval[int](b, paths)
	eval[any](b, button+`.focus()`)
	b.do(chromedp.KeyEvent(" "))
	is(b, button+`.getAttribute("aria-pressed")`, "false")
	b.wait(fmt.Sprintf("%s < %d", paths, before))
	// It stays off when the chart is drawn anew.
	b.do(browser.Look(browser.View{Width: 1000, Height: 800}))
	b.wait(`echarts.getInstanceByDom(document.getElementById("chart-state")).getWidth() < 1000`)
	is(b, button+`.getAttribute("aria-pressed")`, "false")
	is(b, paths+fmt.Sprintf(" < %d", before), true)
	eval[any](b, button+`.click()`)
	is(b, button+`.getAttribute("aria-pressed")`, "true")
	b.wait(fmt.Sprintf("%s === %d", paths, before))
}

func testCopies(t *testing.T, b *tab) {
	run := sample(t)
	s := run.Ranked()[0]
	b.open(run, desktop, anchor(s.ID))
	_, err := chromedp.CallBrowser(b.ctx, devtools.SetPermission, devtools.SetPermissionParams{
		Permission: &devtools.PermissionDescriptor{Name: "clipboard-read"}, Setting: devtools.PermissionSettingGranted,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Click(chromedp.CSS("#" + anchor(s.ID) + " .copy")))
	b.wait(`document.querySelector("#` + anchor(s.ID) + ` .copy").textContent === "Copied"`)
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	copied, err := chromedp.Run(ctx,
		chromedp.Evaluate[string](`navigator.clipboard.readText()`, chromedp.EvalAwaitPromise))
	if copied != s.Code {
		t.Errorf("copied %q, %v, want %q", copied, err, s.Code)
	}
}

func testTips(t *testing.T, b *tab) {
	b.open(sample(t), desktop, "")
	is(b, `document.querySelectorAll("main [title]").length`, 0)
	is(b, `document.getElementById("tip").hidden`, true)
	for selector, want := range map[string]string{
		".tiles a.term":        term("event").Meaning,
		".numbers .sort":       "",
		".verdicts tbody td a": "Follow for the details.",
	} {
		eval[any](b, `[...document.querySelectorAll("`+selector+`")].find(e => e.dataset.tip || !"`+want+`")?.focus()`)
		if want != "" {
			is(b, `document.getElementById("tip").hidden`, false)
			is(b, `document.getElementById("tip").textContent.endsWith(`+fmt.Sprintf("%q", want)+`)`, true)
		}
		b.do(chromedp.KeyEvent("\x1b"))
		is(b, `document.getElementById("tip").hidden`, true)
	}
}

func testAnchors(t *testing.T, b *tab) {
	run := sample(t)
	last := run.Ranked()[len(run.Strategies)-1]
	b.open(run, desktop, anchor(last.ID))
	open := fmt.Sprintf(`document.getElementById(%q).open`, anchor(last.ID))
	b.wait(open)
	dead := eval[[]string](b, `[...document.querySelectorAll('a[href^="#"]')].map(a => a.getAttribute("href").slice(1))
		.filter(id => !document.getElementById(decodeURIComponent(id)))`)
	if len(dead) > 0 {
		t.Errorf("links to nowhere: %v", dead)
	}
	is(b, `new Set([...document.querySelectorAll("[id]")].map(e => e.id)).size`,
		eval[int](b, `document.querySelectorAll("[id]").length`))
	// A link to a strategy that is not shown brings it back.
	b.do(chromedp.SendKeys(chromedp.CSS(".filter [type=search]"), "no such strategy"))
	is(b, `document.querySelectorAll("details.strategy:not([hidden])").length`, 0)
	eval[any](b, fmt.Sprintf(`location.hash = "#top"; location.hash = "#%s"`, anchor(last.ID)))
	b.wait(`document.querySelectorAll("details.strategy:not([hidden])").length > 1`)
}

func testThemes(t *testing.T, b *tab) {
	b.open(sample(t), desktop, "")
	colors := `getComputedStyle(document.body).backgroundColor + [...document.querySelectorAll("#chart-wait svg text")]
		.map(text => text.getAttribute("fill"))[0]`
	light := eval[string](b, colors)
	b.do(browser.Look(browser.View{Width: 1280, Height: 800, Dark: true}))
	b.wait(fmt.Sprintf("(%s) !== %q", colors, light))
	b.drawn()
	is(b, `getComputedStyle(document.body).backgroundColor`, "rgb(20, 23, 27)")
}

func testPrints(t *testing.T, b *tab) {
	run := sample(t)
	run.Strategies = run.Strategies[:3]
	b.open(run, desktop, "")
	eval[any](b, `addEventListener("beforeprint", () => {
		window.notPrinted = document.querySelectorAll("details:not([open])").length;
	})`)
	printed, err := chromedp.Run(b.ctx, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4)))
	if err != nil || !bytes.HasPrefix(printed, []byte("%PDF")) {
		t.Errorf("%d bytes, %v", len(printed), err)
	}
	is(b, `window.notPrinted`, 0)
	is(b, `document.querySelectorAll("details.strategy[open]").length`, 0) // afterwards all is as it was
}

// forty is a run of forty strategies, of several engines.
func forty(t *testing.T) *results.Run {
	run := sample(t)
	for i := 0; len(run.Strategies) < 40; i++ {
		s := run.Strategies[i]
		s.ID = fmt.Sprintf("%s-with-a-rather-long-name-%d", s.ID, i)
		s.Engine = "spark"
		s.Latency.Wait.P99 += int64(i) * 1000
		run.Strategies = append(run.Strategies, s)
	}
	return run
}

func testForty(t *testing.T, b *tab) {
	run := forty(t)
	b.open(run, phone, "")
	for _, view := range []browser.View{phone, desktop} {
		b.look(view)
		b.drawn()
		b.narrow()
		if tall := eval[[]string](b, `[...document.querySelectorAll(".legend")].filter(l => l.offsetHeight > 100)
			.map(l => l.offsetHeight + " " + l.textContent)`); len(tall) > 0 {
			t.Errorf("giant legends: %v", tall)
		}
		// The header and the names stay when the table scrolls.
		where := eval[[]float64](b, `(() => {
			const scroll = document.querySelector(".verdicts").parentElement;
			scroll.scrollIntoView();
			scroll.scrollTo(120, 400);
			const box = scroll.getBoundingClientRect();
			const head = scroll.querySelector("thead th").getBoundingClientRect();
			const name = scroll.querySelectorAll("tbody th")[20].getBoundingClientRect();
			return [scroll.scrollTop, head.top - box.top, name.left - box.left];
		})()`)
		if where[0] < 100 || where[1] != 0 || where[2] != 0 {
			t.Errorf("%v: scrolled by %v, the header is at %v and the names at %v", view, where[0], where[1], where[2])
		}
	}
}

// testNames shows names that look like markup, that end a script, or that run from right to left.
func testNames(t *testing.T, b *tab) {
	run := sample(t)
	evil := []string{
		`</script><img src=x onerror=window.hit=1>`, `"quoted" & 'single'`, "מנוע-שלום", "🦆 duck 👩‍👩‍👧", "--bad",
		"a\u202eb reversed", strings.Repeat("long", 60),
	}
	for i, name := range evil {
		run.Strategies[i].ID, run.Strategies[i].Name = name, name
	}
	run.Scenario, run.About = evil[0], evil[0]+evil[1]
	b.open(run, phone, "")
	for _, view := range []browser.View{phone, desktop} {
		b.look(view)
		is(b, `window.hit === undefined`, true)
		is(b, `document.images.length`, 0)
		b.drawn()
		b.narrow()
		shown := b.rows(".verdicts")
		for _, name := range evil {
			if !slices.Contains(shown, name) {
				t.Errorf("%q is not shown", name)
			}
		}
	}
	names := eval[[]string](b, `echarts.getInstanceByDom(document.getElementById("chart-changelog")).getOption()
		.yAxis[0].data`)
	for _, name := range evil {
		if !slices.Contains(names, name) {
			t.Errorf("%q is not in the chart", name)
		}
	}
}

// contrast lists the texts whose colour has less contrast to what lies behind it than WCAG AA asks for: 4.5, or 3 for
// large text.
const contrast = `(() => {
	const parse = color => { const p = color.match(/[\d.]+/g).map(Number); return p.length < 4 ? [...p, 1] : p; };
	const over = (top, below) => below.map((c, i) => i < 3 ? top[i] * top[3] + c * (1 - top[3]) : 1);
	const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
		.map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
		.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = node => {
		const layers = [];
		for (let n = node; n; n = n.parentElement) layers.unshift(parse(getComputedStyle(n).backgroundColor));
		return layers.reduce((below, top) => over(top, below), [255, 255, 255, 1]);
	};
	const low = new Map();
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const node = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || node.closest("script, style, noscript")) continue;
		const style = getComputedStyle(node), svg = node.closest("svg");
		const below = behind(svg ? svg.closest(".chart") : node);
		const color = over(parse(svg ? style.fill : style.color), below);
		const [a, b] = [light(color), light(below)].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05), size = parseFloat(style.fontSize);
		const large = size >= 24 || size >= 18.66 && +style.fontWeight >= 700;
		if (ratio < (large ? 3 : 4.5)) low.set(node.tagName + "." + (node.className.baseVal ?? node.className),
			ratio.toFixed(2) + " " + walk.currentNode.data.trim().slice(0, 30));
	}
	return [...low].map(([node, what]) => node + ": " + what);
})()`

func testContrast(t *testing.T, b *tab) {
	for _, run := range []*results.Run{sample(t), tiered(t)} {
		b.open(run, desktop, "")
		b.unfold()
		for _, dark := range []bool{false, true} {
			b.look(browser.View{Width: 1280, Height: 800, Dark: dark})
			if low := eval[[]string](b, contrast); len(low) > 0 {
				t.Errorf("%s, dark %v: too little contrast: %s", run.Scenario, dark, strings.Join(low, "\n"))
			}
		}
	}
}

func testEmpty(t *testing.T, b *tab) {
	for _, run := range []*results.Run{{Scenario: "empty"}, small()} {
		b.open(run, phone, "")
		b.narrow()
		is(b, `document.querySelector("h1").textContent.includes("Which way")`, true)
	}
}
