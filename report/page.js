// Draws the charts in the reader's theme, with their legends, and wires up copying, links into closed sections, and
// printing.
"use strict";
(() => {
  const source = document.getElementById("chart-options").textContent;
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colored = new Set(["color", "borderColor"]);

  // How the axes and tooltips write a number, by its unit. The report's own tables are written by Go.
  const short = n => n < 1e4 ? n.toLocaleString("en") : n < 1e6 ? +(n / 1e3).toPrecision(3) + " k"
    : n < 1e9 ? +(n / 1e6).toPrecision(3) + " M" : +(n / 1e9).toPrecision(3) + " G";
  const pair = (n, per, big, small) => Math.floor(n / per) + big + (n % per ? n % per + small : "");
  const duration = ms => ms < 1e3 ? Math.round(ms) + " ms" : ms < 6e4 ? +(ms / 1e3).toFixed(1) + " s"
    : ms < 36e5 ? pair(Math.round(ms / 1e3), 60, "m", "s") : ms < 864e5 ? pair(Math.round(ms / 6e4), 60, "h", "m")
    : pair(Math.round(ms / 36e5), 24, "d", "h");
  const share = part => +(part * 100).toPrecision(2) + " %";
  const units = { count: short, duration, log: duration, "log count": short, "log share": share };
  // The ticks of a logarithmic axis of time are the steps that clocks know.
  const clock = [1, 10, 100, 1e3, 1e4, 6e4, 6e5, 36e5, 36e6, 864e5, 864e6, 864e7, 864e8];

  const decades = ({ smallest, largest }) => {
    const from = Math.floor(Math.log10(smallest)), to = Math.max(from + 1, Math.ceil(Math.log10(largest)));
    return Array.from({ length: to - from + 1 }, (_, i) => +("1e" + (from + i)));
  };
  const ticks = (range, narrow) => {
    const end = clock.findIndex(t => t >= Math.max(10, range.largest));
    return clock.slice(0, end + 1).filter((_, i) => !narrow || i % 2 === end % 2);
  };

  const ruler = document.createElement("span");
  ruler.style.cssText = "position:absolute;visibility:hidden;white-space:nowrap";
  const widest = (texts, size) => {
    document.body.append(ruler);
    ruler.style.fontSize = size + "px";
    const widths = texts.map(text => { ruler.textContent = text; return ruler.offsetWidth; });
    ruler.remove();
    return Math.ceil(Math.max(0, ...widths));
  };

  function dressAxis(axis, unit, narrow, range) {
    axis.axisLine = { lineStyle: { color: css("--faint") } };
    axis.axisTick = { show: false };
    axis.axisLabel = { color: css("--subdued"), fontSize: narrow ? 11 : 12, hideOverlap: true };
    axis.splitLine = { show: true, lineStyle: { color: css("--line") } };
    axis.nameTextStyle = { color: css("--subdued") };
    if (axis.type === "category") {
      Object.assign(axis.axisLabel, { color: css("--text"), interval: 0, overflow: "truncate" });
    } else {
      axis.axisLabel.formatter = units[unit];
      axis.splitNumber = narrow ? 3 : 5;
    }
    if (axis.type === "time") axis.max = "dataMax";
    if (axis.type === "log") {
      const at = unit === "log" ? ticks(range, narrow) : decades(range);
      axis.min = unit === "log" ? 1 : at[0];
      axis.max = at.at(-1);
      for (const part of [axis.axisLabel, axis.axisTick, axis.splitLine]) part.customValues = at;
    }
  }

  const text = s => echarts.format.encodeHTML(String(s));
  function tooltip(spec) {
    const category = spec.option.yAxis[0].type === "category";
    const value = p => p.data.name || units[spec.y](p.value[1]);
    return params => {
      const rows = new Map(); // series of one name, such as a strategy's live and held keys, share a line
      for (const p of Array.isArray(params) ? params : [params]) {
        if (!p.data.name && !spec.y) continue;
        const row = rows.get(p.seriesName) ?? { p, values: [] };
        row.values.push(value(p));
        rows.set(p.seriesName, row);
      }
      const at = [...rows.values()][0]?.p.axisValue;
      const head = at === undefined ? "" : category ? at : `at ${duration(at)}`;
      const name = p => spec.dots ? p.value[3].replaceAll("\n", ", ") : p.seriesName;
      const gap = spec.option.tooltip.trigger === "item" ? "<br>" : " ";
      const shown = values => text(values.join(" / ")).replaceAll("\n", "<br>");
      const line = ({ p, values }) => `${p.marker}${text(name(p))}${gap}<b>${shown(values)}</b>`;
      return [text(head + (spec.note ? ", " + spec.note : "")), ...[...rows.values()].map(line)].filter(Boolean)
        .join("<br>");
    };
  }

  const sliders = option => option.dataZoom?.filter(zoom => zoom.show !== false) ?? [];

  // The plot takes what the axes and their names leave of the chart.
  function layout(spec, width) {
    const option = spec.option, x = option.xAxis[0], y = option.yAxis[0];
    let left = 56;
    if (y.type === "category") {
      const limit = Math.round(width * 0.42);
      y.axisLabel.width = Math.min(limit, widest(y.data, y.axisLabel.fontSize) + 2);
      left = y.axisLabel.width + 14;
    }
    option.grid = {
      left, right: 28, containLabel: false, top: y.name ? 32 : 10,
      bottom: 28 + (x.name ? 22 : 0) + (sliders(option).length ? 34 : 0),
    };
    Object.assign(x, { nameLocation: "middle", nameGap: 30 });
    Object.assign(y, { nameTextStyle: { ...y.nameTextStyle, align: "left" } });
    option.legend.show = false;
  }

  function dress(spec, width) {
    const narrow = width < 520, option = spec.option;
    if (option.yAxis[0].type === "category") option.xAxis[0].name ??= spec.note;
    const range = (dimension, axis) => {
      const values = option.series.flatMap(s => [...s.data.map(d => +d.value?.[dimension]),
        ...(s.markLine?.data ?? []).map(line => line[axis])]).filter(v => v > 0);
      return { smallest: Math.min(...values), largest: Math.max(...values) };
    };
    option.series.filter(s => !s.name).forEach(s => { s.z = 1; }); // the lines that join dots lie below them
    for (const [at, series] of option.series.entries()) {
      const { label, markLine } = series;
      // A label that would leave the chart stands on the other side of its dot.
      if (label && spec.dots) {
        // Those before the others in the legend lie above them. A name stands where there is room for it.
        const far = Math.log(ticks(range(0, "xAxis"), narrow).at(-1)), first = series.symbol === "diamond";
        series.z = 9 - at;
        label.formatter = ({ value }) => value[2];
        for (const d of series.data) {
          const where = Math.log(d.value[0]) / far;
          d.label = { position: where > (first ? 0.5 : 0.85) ? "left" : "right" };
        }
        series.labelLayout = { hideOverlap: true };
      } else if (label) {
        series.labelLayout = ({ labelRect, rect }) =>
          labelRect.x + labelRect.width > width ? { x: rect.x - 4, align: "right" } : {};
      }
      if (label && narrow) Object.assign(label, { width: 120, overflow: "truncate" });
      if (!markLine) continue;
      Object.assign(markLine, { precision: 9, silent: true });
      if (narrow) markLine.data.slice(1).forEach(line => { line.label = { show: false }; });
    }
    option.animation = false;
    option.useUTC = true;
    option.textStyle = { fontFamily: getComputedStyle(document.body).fontFamily, color: css("--text") };
    option.xAxis.forEach(axis => dressAxis(axis, spec.x, narrow, range(0, "xAxis")));
    option.yAxis.forEach(axis => dressAxis(axis, spec.y, narrow, range(1, "yAxis")));
    layout(spec, width);
    sliders(option).forEach(zoom => Object.assign(zoom, {
      bottom: 4, height: 20, showDataShadow: false, labelFormatter: duration, textStyle: { color: css("--subdued") },
      borderColor: css("--line"), backgroundColor: css("--panel"), fillerColor: css("--faint") + "88",
      brushSelect: false,
    }));
    Object.assign(option.tooltip, {
      formatter: tooltip(spec), confine: true, backgroundColor: css("--panel"), borderColor: css("--faint"),
      textStyle: { color: css("--text"), fontSize: 12 },
    });
    return option;
  }

  // Leaves out the strategies that are not to be shown.
  let hidden = new Set();
  document.addEventListener("strategies", e => { hidden = e.detail; redraw(); });
  function choose(spec) {
    const option = spec.option, axis = option.yAxis[0];
    const shown = id => !hidden.has(id);
    option.series ??= [];
    if (spec.dots) {
      for (const series of option.series) {
        series.data = series.data.filter(d => d.value[3].split("\n").some(shown));
      }
    } else if (axis.type === "category") {
      const place = new Map(axis.data.map((id, i) => [id, i]).filter(([id]) => shown(id)).map(([, i], at) => [i, at]));
      axis.data = axis.data.filter(shown);
      for (const series of option.series) {
        series.data = series.type === "bar" ? series.data.filter((_, i) => place.has(i))
          : series.data.filter(d => place.has(d.value[1]))
            .map(d => ({ ...d, value: [d.value[0], place.get(d.value[1])] }));
      }
    } else {
      option.series = option.series.filter(series => shown(series.name));
    }
  }

  // What a name of a legend means, by the glossary; a cause before another word of its name.
  const meanings = new Map([...document.querySelectorAll(".glossary dt")].map(
    term => [term.textContent, term.nextElementSibling.textContent]));
  const meaning = name => {
    const word = name.replace(/ \(.*/, "");
    return meanings.get(name + " (cause)") ?? meanings.get(word) ?? meanings.get(word.replace(/s$/, ""));
  };

  // The legend of a chart: a button for each name that its series have, pressed while they are drawn.
  const off = new Map(); // names not drawn, by chart
  function legend(spec, node, chart) {
    const names = [...new Set(spec.option.series.map(s => s.name).filter(Boolean))];
    const selected = spec.option.legend.selected ?? {};
    names.sort((a, b) => (selected[a] === false) - (selected[b] === false)); // those drawn at first come first
    const list = node.previousElementSibling?.className === "legend" ? node.previousElementSibling
      : document.createElement("div");
    list.className = "legend";
    list.setAttribute("role", "group");
    list.setAttribute("aria-label", "Legend of the chart");
    list.tabIndex = -1;
    const unselected = off.get(spec.id) ?? new Set(names.filter(name => selected[name] === false));
    off.set(spec.id, unselected);
    list.replaceChildren(...names.map(name => {
      const series = spec.option.series.find(s => s.name === name), button = document.createElement("button");
      const sign = document.createElement("span"), label = document.createElement("bdi");
      const text = document.createElement("span");
      const { color, borderColor } = series.itemStyle ?? {}, hollow = color === css("--page");
      sign.className = `sign ${series.type === "line" ? "line" : series.symbol ?? "rect"}${hollow ? " hollow" : ""}`;
      sign.style.setProperty("--sign", (hollow ? borderColor : color) ?? css("--subdued"));
      label.textContent = name;
      button.type = "button";
      text.append(label, spec.notes?.[name] ? ` (${spec.notes[name]})` : "");
      button.append(sign, text);
      button.setAttribute("aria-pressed", !unselected.has(name));
      if (meaning(name)) {
        button.dataset.tip = meaning(name);
        button.setAttribute("aria-describedby", "tip");
      }
      button.addEventListener("click", () => {
        if (!unselected.delete(name)) unselected.add(name);
        button.setAttribute("aria-pressed", !unselected.has(name));
        chart.dispatchAction({ type: "legendToggleSelect", name });
      });
      for (const [event, type] of [["mouseenter", "highlight"], ["mouseleave", "downplay"]]) {
        button.addEventListener(event, () => chart.dispatchAction({ type, seriesName: name }));
      }
      return button;
    }));
    list.hidden = names.length < 2;
    node.before(list);
    spec.option.legend.selected = Object.fromEntries(names.map(name => [name, !unselected.has(name)]));
    spec.option.legend.data = names;
  }

  const heights = new Map();
  function draw(width) {
    const paint = (key, value) => colored.has(key) && /^--[a-z0-9]+$/.test(value) ? css(value) : value;
    const groups = {}, specs = JSON.parse(source, paint);
    for (const [i, spec] of specs.entries()) {
      // Of charts that zoom together only the last one shows the slider.
      if (spec.group && specs[i + 1]?.group === spec.group) spec.option.dataZoom[0].show = false;
      const node = document.getElementById(spec.id), axis = spec.option.yAxis[0];
      if (!heights.has(spec.id)) heights.set(spec.id, node.clientHeight);
      if (spec.strategies || spec.dots) {
        const lines = axis.type === "category" ? axis.data.length : 0;
        choose(spec);
        // A line of a strategy is as high as in charts.go.
        if (lines) node.style.height = heights.get(spec.id) - 24 * (lines - axis.data.length) + "px";
      }
      echarts.getInstanceByDom(node)?.dispose();
      const chart = echarts.init(node, null, { renderer: "svg", width });
      legend(spec, node, chart);
      chart.setOption(dress(spec, width ?? node.clientWidth));
      if (!spec.group) continue;
      const group = groups[spec.group] ??= [];
      group.push(chart);
      chart.on("datazoom", ({ start, end }) => group.filter(other => other !== chart).forEach(
        other => other.dispatchAction({ type: "dataZoom", start, end }, { silent: true })));
    }
  }
  let timer;
  function redraw() { clearTimeout(timer); timer = setTimeout(() => draw(), 150); }
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  addEventListener("resize", redraw);

  // A link into a closed section opens it, also that of a strategy that is not shown.
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.closest("[hidden]")) document.querySelector("form.filter").reset();
    for (let box = target.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    setTimeout(() => target.scrollIntoView());
  };
  addEventListener("hashchange", reveal);
  document.addEventListener("click", e => {
    const link = e.target.closest('a[href^="#"]');
    if (link && link.hash === location.hash && !e.defaultPrevented) reveal();
  });
  if (location.hash) reveal();

  // On paper everything is open, and charts are as wide as the page.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach(d => { d.open = true; });
    draw(680);
  });
  addEventListener("afterprint", () => { closed.forEach(d => { d.open = false; }); draw(); });

  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected: press Ctrl+C";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }
})();
