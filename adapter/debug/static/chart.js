// The timeline of one autoscaler: a metric and its target above, replicas and proposals below, on one time axis.

import { now, timeOfDay } from "./clock.js";
import { counted, h, keyed, s, setAttribute, setText } from "./dom.js";
import { keyOf } from "./list.js";
import { abbreviated, hatchPattern, known, linear, path, ranges, ticks, timeTicks, truncated } from "./scale.js";

const LEFT = 44;
const RIGHT = 14;
const METRIC_PANEL = { top: 24, bottom: 136 };
const REPLICAS_PANEL = { top: 168, bottom: 292 };
const HEIGHT = 318;
const LEGEND = [["value", "metric value"], ["target", "target value"], ["proposal", "proposed replicas"], ["replicas", "replicas"], ["failed", "metric unavailable"], ["fallback", "fallback"]];

export class Chart {
  // `select` is called with the time of a moment that the user clicks.
  constructor(select) {
    this.select = select;
    this.metric = 0;
    this.cursor = null;
    this.svg = s("svg", { role: "img", height: HEIGHT, "aria-label": "Timeline", "aria-describedby": "readout" });
    this.stage = h("div", { class: "stage", tabindex: 0, role: "group", "aria-label": "Timeline; the left and right arrow keys move from point to point" }, this.svg);
    this.tabs = h("div", { class: "tabs", role: "group", "aria-label": "Metric to show" });
    this.readout = h("p", { class: "readout", id: "readout", "aria-live": "polite" });
    this.node = h("figure", { class: "chart" },
      this.tabs, this.stage, this.readout,
      h("figcaption", {}, ...LEGEND.map(([kind, label]) => h("span", { class: `key ${kind}` }, h("i"), label))));
    this.stage.addEventListener("keydown", (event) => this.onKey(event));
    this.stage.addEventListener("pointermove", (event) => this.onPointer(event));
    this.stage.addEventListener("click", (event) => this.onClick(event));
    this.stage.addEventListener("pointerleave", () => this.setCursor(null));
    new ResizeObserver(() => this.draw()).observe(this.stage);
  }

  show(autoscaler) {
    if (!this.autoscaler || keyOf(this.autoscaler) !== keyOf(autoscaler)) Object.assign(this, { metric: 0, cursor: null });
    this.autoscaler = autoscaler;
    this.timeline = autoscaler.timeline;
    this.metric = Math.min(this.metric, Math.max(this.timeline.metrics.length - 1, 0));
    this.showTabs();
    this.draw();
  }

  showTabs() {
    const tabs = this.timeline.metrics.map((metric, index) => ({ name: metric.name, index }));
    this.tabs.hidden = tabs.length < 2;
    keyed(this.tabs, tabs, ({ index }) => `${index}`, ({ index }) => {
      const button = h("button", { type: "button" });
      button.addEventListener("click", () => {
        this.metric = index;
        this.showTabs();
        this.draw();
      });
      return button;
    }, (button, { name, index }) => {
      setText(button, name);
      setAttribute(button, "aria-pressed", index === this.metric);
    });
  }

  draw() {
    const width = this.stage.clientWidth;
    if (!width || !this.timeline?.time.length) return;
    const times = this.timeline.time.map((time) => Date.parse(time));
    const end = Math.max(times.at(-1), Math.min(now(), times.at(-1) + 20000));
    const start = Math.min(times[0], end - 60000);
    this.x = linear(start, end, LEFT, width - RIGHT);
    this.time = linear(LEFT, width - RIGHT, start, end);
    this.xs = times.map(this.x);
    this.right = width - RIGHT;
    this.cursorLine = s("line", { class: "cursor", y1: METRIC_PANEL.top, y2: REPLICAS_PANEL.bottom, x1: 0, x2: 0, visibility: "hidden" });
    const metric = this.timeline.metrics[this.metric];
    setAttribute(this.svg, "viewBox", `0 0 ${width} ${HEIGHT}`);
    this.svg.replaceChildren(
      hatchPattern(), ...this.shadedRanges(), ...this.timeAxis(start, end, width),
      ...(metric ? this.metricPanel(metric) : []), ...this.replicasPanel(metric), this.cursorLine);
    this.setCursor(this.cursor);
  }

  shadedRanges() {
    const states = this.timeline.time.map((_, index) => worstState(this.timeline.metrics.map((metric) => metric.state[index])));
    return [["failed", "metric unavailable"], ["fallback", "fallback"]].flatMap(([state, label]) =>
      ranges(states, state, this.xs, this.right).flatMap(({ start, stop }) => [
        s("rect", { class: `shade ${state}`, x: start, y: METRIC_PANEL.top, width: Math.max(stop - start, 1.5), height: REPLICAS_PANEL.bottom - METRIC_PANEL.top, fill: state === "failed" ? "url(#hatch)" : null }),
        stop - start > label.length * 7 ? s("text", { class: `shade-label ${state}`, x: start + 5, y: METRIC_PANEL.top + 13 }, label) : null,
      ])).filter((node) => node !== null);
  }

  timeAxis(start, end, width) {
    const { times, showSeconds } = timeTicks(start, end, Math.max(Math.floor(width / 110), 2));
    return times.flatMap((time) => [
      s("line", { class: "grid", x1: this.x(time), x2: this.x(time), y1: METRIC_PANEL.top, y2: REPLICAS_PANEL.bottom }),
      s("text", { class: "time", x: this.x(time), y: REPLICAS_PANEL.bottom + 18 }, timeOfDay(time).slice(0, showSeconds ? 8 : 5)),
    ]);
  }

  panel(area, maximum, title) {
    const values = ticks(maximum);
    const y = linear(0, values.at(-1), area.bottom, area.top);
    const grid = values.flatMap((value) => [
      s("line", { class: value ? "grid" : "base", x1: LEFT, x2: this.right, y1: y(value), y2: y(value) }),
      s("text", { class: "number", x: LEFT - 8, y: y(value) + 4 }, abbreviated(value)),
    ]);
    return { y, nodes: [...grid, s("text", { class: "panel", x: LEFT, y: area.top - 9 }, truncated(title, this.right - LEFT))] };
  }

  // A scale without a value would be made up.
  emptyPanel(area, title) {
    return [s("line", { class: "base", x1: LEFT, x2: this.right, y1: area.bottom, y2: area.bottom }),
      s("text", { class: "panel", x: LEFT, y: area.top - 9 }, truncated(`${title}: no value`, this.right - LEFT))];
  }

  metricPanel(metric) {
    const numbers = [...known(metric.value), ...known(metric.target)];
    if (!numbers.length) return this.emptyPanel(METRIC_PANEL, metric.name);
    const { y, nodes } = this.panel(METRIC_PANEL, Math.max(0, ...numbers) || 1, metric.name);
    const point = (value, index) => [this.xs[index], value === null ? null : y(value)];
    const last = metric.value.findLastIndex((value) => value !== null);
    return [...nodes,
      s("path", { class: "target", d: this.extended(path(withoutGaps(metric.target).map(point), true)) }),
      s("path", { class: "value", d: path(metric.value.map(point)) }),
      last >= 0 && last === metric.value.length - 1 ? s("circle", { class: "value", cx: this.xs[last], cy: y(metric.value[last]), r: 3.5 }) : s("g")];
  }

  replicasPanel(metric) {
    const { timeline, autoscaler } = this;
    const proposals = metric ? metric.proposal : [];
    const { y, nodes } = this.panel(REPLICAS_PANEL, Math.max(1, ...timeline.replicas, ...timeline.current, ...known(proposals)), "replicas");
    const replicas = this.extended(path(timeline.replicas.map((value, index) => [this.xs[index], y(value)]), true));
    const proposed = path(proposals.map((value, index) => [this.xs[index], value === null ? null : y(value)]), true);
    const bounds = [autoscaler.minReplicas, autoscaler.maxReplicas].filter((value) => value !== null && value > 0 && y(value) >= REPLICAS_PANEL.top - 1);
    return [...nodes,
      ...bounds.map((value) => s("line", { class: "limit", x1: LEFT, x2: this.right, y1: y(value), y2: y(value) })),
      s("path", { class: "area", d: `${replicas}V${y(0)}H${this.xs[0].toFixed(1)}Z` }),
      s("path", { class: "proposal", d: known(proposals.slice(-1)).length ? this.extended(proposed) : proposed }),
      s("path", { class: "replicas", d: replicas })];
  }

  // Extend a path from the last point to the right edge, which is now.
  extended(drawn) {
    return drawn && `${drawn}H${this.right.toFixed(1)}`;
  }

  // --- Cursor -------------------------------------------------------------------------------------------------------

  setCursor(index) {
    const last = this.timeline.time.length - 1;
    this.cursor = index === null ? null : Math.min(Math.max(index, 0), last);
    setAttribute(this.cursorLine, "visibility", this.cursor === null ? "hidden" : "visible");
    const shown = this.cursor ?? last;
    for (const end of ["x1", "x2"]) setAttribute(this.cursorLine, end, this.xs[shown]);
    setText(this.readout, this.describe(shown));
  }

  describe(index) {
    const { timeline } = this;
    const metric = timeline.metrics[this.metric];
    const parts = [`${timeOfDay(timeline.time[index])} UTC`];
    const state = metric?.state[index];
    if (state === "ok") parts.push(`${metric.name} ${metric.value[index]}, target ${metric.target[index]}, proposes ${metric.proposal[index]}`);
    if (state === "failed") parts.push(`${metric.name} unavailable`);
    if (state === "fallback") parts.push(`${metric.name} unavailable, fallback proposes ${metric.proposal[index]}`);
    const [current, replicas] = [timeline.current[index], timeline.replicas[index]];
    parts.push(current === replicas ? counted(replicas, "replica") : `${current} → ${counted(replicas, "replica")}`);
    return parts.join(" · ");
  }

  onKey(event) {
    const last = (this.timeline?.time.length ?? 0) - 1;
    const current = this.cursor ?? last;
    const target = { ArrowLeft: current - 1, ArrowRight: current + 1, Home: 0, End: last, Escape: null }[event.key];
    if (target === undefined || last < 0) return;
    event.preventDefault();
    this.setCursor(target);
  }

  onClick(event) {
    const x = event.clientX - this.stage.getBoundingClientRect().left;
    if (this.xs && x >= this.xs[0] && x <= this.right) this.select(new Date(this.time(x)).toISOString());
  }

  onPointer(event) {
    if (!this.xs) return;
    const x = event.clientX - this.stage.getBoundingClientRect().left;
    const distances = this.xs.map((pointX) => Math.abs(pointX - x));
    this.setCursor(distances.indexOf(Math.min(...distances)));
  }
}

const worstState = (states) => ["fallback", "failed"].find((state) => states.includes(state)) ?? "ok";

// Fill gaps with the previous value: the target value is known even while the metric is unavailable.
function withoutGaps(values) {
  let last = known(values)[0] ?? null;
  return values.map((value) => (last = value ?? last));
}
