// The report of a simulation: load, demand and replicas of each variant on one time axis, and the steps of a decision.

const LEFT = 48;
const RIGHT = 12;
const PANEL = 120;
const SPACE = 44;
const LEGEND = [["value", "metric value"], ["demand", "demand"], ["replicas", "replicas"], ["ready", "ready replicas"], ["under", "under-provisioned"], ["fallback", "fallback"], ["failed", "metric unavailable"]];

const report = JSON.parse(byId("data").textContent);
const timeText = (time) => new Date(time).toISOString().slice(0, 19).replace("T", " ");

class ReportChart {
  constructor() {
    this.metric = 0;
    this.cursor = null;
    this.svg = s("svg", { role: "img", "aria-label": "Load, demand and replicas over time", "aria-describedby": "readout" });
    this.stage = h("div", { class: "stage", tabindex: 0, role: "group", "aria-label": "Timeline; the left and right arrow keys move from decision to decision" }, this.svg);
    this.readout = h("p", { class: "readout", id: "readout", "aria-live": "polite" });
    this.tabs = h("div", { class: "tabs", role: "group", "aria-label": "Metric to show", hidden: report.metrics.length < 2 },
      ...report.metrics.map((name, index) => this.tab(name, index)));
    this.node = h("figure", { class: "chart" }, this.tabs, this.stage, this.readout,
      h("figcaption", {}, ...LEGEND.map(([kind, label]) => h("span", { class: `key ${kind}` }, h("i"), label))));
    this.stage.addEventListener("keydown", (event) => this.onKey(event));
    this.stage.addEventListener("pointermove", (event) => this.onPointer(event));
    new ResizeObserver(() => this.draw()).observe(this.stage);
  }

  tab(name, index) {
    const button = h("button", { type: "button", "aria-pressed": String(index === 0) }, name);
    button.addEventListener("click", () => {
      this.metric = index;
      [...this.tabs.children].forEach((each, position) => each.setAttribute("aria-pressed", String(position === index)));
      this.draw();
    });
    return button;
  }

  draw() {
    const width = this.stage.clientWidth;
    if (!width) return;
    const [start, end] = [Date.parse(report.start), Date.parse(report.end)];
    this.x = linear(start, end, LEFT, width - RIGHT);
    this.right = width - RIGHT;
    // In the model queue the value depends on the variant.
    const loads = report.model === "recorded" ? report.variants.slice(0, 1) : report.variants;
    const top = (index) => 26 + index * (PANEL + SPACE);
    const count = report.variants.length + 1;
    this.height = top(count - 1) + PANEL + 26;
    this.cursorLine = s("line", { class: "cursor", y1: 20, y2: this.height - 26, x1: 0, x2: 0, visibility: "hidden" });
    this.svg.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
    this.svg.setAttribute("height", this.height);
    this.svg.replaceChildren(hatchPattern(), ...this.timeAxis(start, end, width),
      ...this.loadPanel(loads, top(0)), ...report.variants.flatMap((variant, index) => this.replicasPanel(variant, top(index + 1))),
      this.cursorLine);
    this.show(this.cursor);
  }

  timeAxis(start, end, width) {
    const { times } = timeTicks(start, end, Math.max(Math.floor(width / 100), 2));
    const step = Math.max(1, Math.ceil(times.length / Math.max(Math.floor(width / 90), 2)));
    const withDate = end - start > 86400000;
    return times.filter((_, index) => index % step === 0).flatMap((time) => [
      s("line", { class: "grid", x1: this.x(time), x2: this.x(time), y1: 20, y2: this.height - 26 }),
      s("text", { class: "time", x: this.x(time), y: this.height - 8 }, withDate ? timeText(time).slice(5, 16) : timeText(time).slice(11, 16)),
    ]);
  }

  panel(top, maximum, title) {
    const values = ticks(maximum || 1);
    const y = linear(0, values.at(-1), top + PANEL, top);
    return { y, nodes: [...values.flatMap((value) => [
      s("line", { class: value ? "grid" : "base", x1: LEFT, x2: this.right, y1: y(value), y2: y(value) }),
      s("text", { class: "number", x: LEFT - 8, y: y(value) + 4 }, abbreviated(value)),
    ]), s("text", { class: "panel", x: LEFT, y: top - 8 }, truncated(title, this.right - LEFT))] };
  }

  loadPanel(variants, top) {
    const columns = variants.map((variant) => variant.values[this.metric]);
    const { y, nodes } = this.panel(top, columns.reduce((most, column) => known(column).reduce((a, b) => Math.max(a, b), most), 0), report.metrics[this.metric]);
    return [...nodes, ...columns.map((column, index) => s("path", { class: "value", opacity: index ? 0.45 : 1,
      d: path(column.map((value, at) => [this.x(variants[index].time[at]), value === null ? null : y(value)]), true) }))];
  }

  replicasPanel(variant, top) {
    const xs = variant.time.map(this.x);
    const most = [...variant.replicas, ...known(variant.demand)].reduce((a, b) => Math.max(a, b), 1);
    const { y, nodes } = this.panel(top, most, `${variant.name}: replicas`);
    const line = (column) => `${path(column.map((value, index) => [xs[index], value === null ? null : y(value)]), true)}H${this.right.toFixed(1)}`;
    const under = variant.under.map(([start, end, share]) => s("rect", {
      class: "shade under", x: this.x(start), y: top, width: Math.max(this.x(end) - this.x(start), 0.5), height: PANEL, opacity: Math.max(share, 0.1) }));
    const shade = (states, state) => ranges(states, state, xs, this.right).map(({ start, stop }) => s("rect", {
      class: `shade ${state}`, x: start, y: top, width: Math.max(stop - start, 1), height: PANEL, fill: state === "failed" ? "url(#hatch)" : null }));
    const replicas = line(variant.replicas);
    const hasStarting = variant.ready.some((ready, index) => ready !== variant.replicas[index]);
    return [...shade(variant.state, "failed"), ...shade(variant.state, "fallback"), ...under, ...nodes,
      s("path", { class: "area", d: `${replicas}V${y(0)}H${xs[0].toFixed(1)}Z` }),
      s("path", { class: "demand", d: line(variant.demand) }),
      ...(hasStarting ? [s("path", { class: "ready", d: line(variant.ready) })] : []),
      s("path", { class: "replicas", d: replicas })];
  }

  // Show the decision at an index of the first variant; null shows the first decision without a cursor.
  show(index) {
    const times = report.variants[0].time;
    this.cursor = index === null ? null : Math.min(Math.max(index, 0), times.length - 1);
    const time = times[this.cursor ?? 0];
    setAttribute(this.cursorLine, "visibility", this.cursor === null ? "hidden" : "visible");
    for (const end of ["x1", "x2"]) setAttribute(this.cursorLine, end, this.x(time));
    const parts = [`${timeText(time)} UTC`];
    for (const variant of report.variants) {
      const at = lastBefore(variant.time, time);
      const value = variant.values[this.metric][at];
      parts.push(`${variant.name}: ${value ?? "no value"}, demand ${variant.demand[at] ?? "unknown"}, ${counted(variant.replicas[at], "replica")}, ${variant.factor[at]}`);
    }
    setText(this.readout, parts.join(" · "));
    showSteps(time);
  }

  onKey(event) {
    const last = report.variants[0].time.length - 1;
    const current = this.cursor ?? 0;
    const target = { ArrowLeft: current - 1, ArrowRight: current + 1, PageUp: current - 50, PageDown: current + 50, Home: 0, End: last, Escape: null }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.show(target);
  }

  onPointer(event) {
    if (!this.x) return;
    const x = event.clientX - this.stage.getBoundingClientRect().left;
    const share = (x - LEFT) / (this.right - LEFT);
    const [start, end] = [Date.parse(report.start), Date.parse(report.end)];
    this.show(lastBefore(report.variants[0].time, start + share * (end - start)));
  }
}

// The index of the last time that is not after `time`.
function lastBefore(times, time) {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return Math.max(low - 1, 0);
}

function showSteps(time) {
  byId("steps").replaceChildren(...report.variants.map((variant) => {
    const found = variant.explained[lastBefore(variant.explained.map((each) => each.time), time)];
    return h("article", {}, h("h3", {}, `${variant.name}, decided at ${timeText(found.time)} UTC`),
      h("p", { class: "hint" }, "The last decision up to this moment that changed the replicas or the limiting factor."),
      h("ol", {}, ...found.steps.map((text) => h("li", {}, text))));
  }));
}

function showMeasures() {
  byId("measures").replaceChildren(
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Measure"), ...report.variants.map((variant) => h("th", { scope: "col", title: variant.name }, variant.name)))),
    h("tbody", {}, ...report.measures.map((row) => h("tr", {}, h("th", { scope: "row" }, row.label), ...row.values.map((value) => h("td", {}, value))))));
}

setText(byId("period"), `${timeText(Date.parse(report.start))} to ${timeText(Date.parse(report.end))} UTC, ${counted(report.decisions, "decision")}, model ${report.model}`);
showMeasures();
byId("chart").append(new ReportChart().node);
