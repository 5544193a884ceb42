// Draws the charts in the reader's theme, and wires up copying, links into closed sections, and printing.
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
      const gap = spec.option.tooltip.trigger === "item" ? "<br>" : " ";
      const shown = values => text(values.join(" / ")).replaceAll("\n", "<br>");
      const line = ({ p, values }) => `${p.marker}${text(p.seriesName)}${gap}<b>${shown(values)}</b>`;
      return [text(head + (spec.note ? ", " + spec.note : "")), ...[...rows.values()].map(line)].filter(Boolean)
        .join("<br>");
    };
  }

  const sliders = option => option.dataZoom?.filter(zoom => zoom.show !== false) ?? [];

  // The plot takes what the legend, the axes and their names leave of the chart.
  function layout(spec, width, narrow) {
    const option = spec.option, x = option.xAxis[0], y = option.yAxis[0];
    const names = [...new Set(option.series.map(s => s.name).filter(Boolean))];
    const legend = option.legend.show !== false;
    const rows = legend ? narrow ? 1 : Math.ceil(names.reduce((sum, n) => sum + widest([n], 12) + 36, 0) / width) : 0;
    let left = 56;
    if (y.type === "category") {
      const limit = Math.round(width * 0.42);
      y.axisLabel.width = Math.min(limit, widest(y.data, y.axisLabel.fontSize) + 2);
      left = y.axisLabel.width + 14;
    }
    option.grid = {
      left, right: 28, containLabel: false, top: rows * 20 + (y.name ? 32 : 14),
      bottom: 28 + (x.name ? 22 : 0) + (sliders(option).length ? 34 : 0),
    };
    Object.assign(x, { nameLocation: "middle", nameGap: 30 });
    Object.assign(option.legend, {
      type: narrow ? "scroll" : "plain", left: 0, top: 2, padding: 0, itemWidth: 14, itemHeight: 10, data: names,
      textStyle: { color: css("--text") }, inactiveColor: css("--subdued") + "99",
      pageTextStyle: { color: css("--subdued") },
      pageIconColor: css("--accent"), pageIconInactiveColor: css("--faint"),
    });
  }

  function dress(spec, width) {
    const narrow = width < 520, option = spec.option;
    const range = (dimension, axis) => {
      const values = option.series.flatMap(s => [...s.data.map(d => +d.value?.[dimension]),
        ...(s.markLine?.data ?? []).map(line => line[axis])]).filter(v => v > 0);
      return { smallest: Math.min(...values), largest: Math.max(...values) };
    };
    option.series.filter(s => !s.name).forEach(s => { s.z = 1; }); // the lines that join dots lie below them
    for (const series of option.series) {
      const { label, markLine } = series;
      // A label that would leave the chart stands on the other side of its dot.
      if (label) series.labelLayout = ({ labelRect, rect }) =>
        labelRect.x + labelRect.width > width ? { x: rect.x - 4, align: "right" } : {};
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
    layout(spec, width, narrow);
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

  function draw(width) {
    const paint = (key, value) => colored.has(key) && /^--[a-z0-9]+$/.test(value) ? css(value) : value;
    const groups = {}, specs = JSON.parse(source, paint);
    for (const [i, spec] of specs.entries()) {
      // Of charts that zoom together only the last one shows the slider.
      if (spec.group && specs[i + 1]?.group === spec.group) spec.option.dataZoom[0].show = false;
      const node = document.getElementById(spec.id);
      echarts.getInstanceByDom(node)?.dispose();
      const chart = echarts.init(node, null, { renderer: "svg", width });
      chart.setOption(dress(spec, width ?? node.clientWidth));
      if (!spec.group) continue;
      const group = groups[spec.group] ??= [];
      group.push(chart);
      chart.on("datazoom", ({ start, end }) => group.filter(other => other !== chart).forEach(
        other => other.dispatchAction({ type: "dataZoom", start, end }, { silent: true })));
    }
  }
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  let timer;
  addEventListener("resize", () => { clearTimeout(timer); timer = setTimeout(() => draw(), 150); });

  // A link to a strategy opens its section.
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") { target.open = true; target.scrollIntoView(); }
  };
  addEventListener("hashchange", reveal);
  document.addEventListener("click", e => {
    const link = e.target.closest('a[href^="#s-"]');
    if (link && link.hash === location.hash) reveal();
  });
  reveal();

  // A verdict shows its evidence while it is pointed at or has the focus; on a touch screen the second tap follows it.
  const evidence = document.createElement("div");
  evidence.className = "evidence";
  evidence.id = "evidence";
  evidence.setAttribute("role", "tooltip");
  evidence.hidden = true;
  document.body.append(evidence);
  const lines = (...parts) => parts.map(([name, content]) => {
    const line = document.createElement(name);
    line.textContent = content;
    return line;
  });
  let shown = null;
  const show = link => {
    shown = link;
    evidence.replaceChildren(...lines(["b", link.dataset.about], ["span", link.textContent.slice(1)],
      ["i", link.dataset.evidence], ["i", "Follow for the details."]));
    evidence.hidden = false;
    const cell = link.getBoundingClientRect(), box = evidence.getBoundingClientRect();
    const below = cell.bottom + 6 + box.height < innerHeight || cell.top < box.height + 6;
    evidence.style.left = Math.max(12, Math.min(cell.left, innerWidth - box.width - 12)) + scrollX + "px";
    evidence.style.top = (below ? cell.bottom + 6 : cell.top - 6 - box.height) + scrollY + "px";
  };
  const hide = () => { shown = null; evidence.hidden = true; };
  for (const link of document.querySelectorAll(".verdicts a[data-about]")) {
    link.dataset.evidence = link.title;
    link.removeAttribute("title");
    link.setAttribute("aria-describedby", evidence.id);
    let tapped = false;
    link.addEventListener("pointerdown", e => { tapped = e.pointerType === "touch" && shown !== link; });
    link.addEventListener("click", e => { if (tapped) { e.preventDefault(); show(link); } else hide(); });
    for (const event of ["mouseenter", "focus"]) link.addEventListener(event, () => show(link));
    for (const event of ["mouseleave", "blur"]) link.addEventListener(event, hide);
  }
  addEventListener("keydown", e => { if (e.key === "Escape") hide(); });

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
