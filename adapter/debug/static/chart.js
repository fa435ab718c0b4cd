// The timeline of one autoscaler: a metric and its target above, replicas and proposals below, on one axis of time.

import { now, timeOfDay } from "./clock.js";
import { h, keyed, mark, s, text } from "./dom.js";
import { linear, path, stretches, ticks, times } from "./scale.js";

const LEFT = 44;
const RIGHT = 14;
const UPPER = { top: 24, bottom: 136 };
const LOWER = { top: 168, bottom: 292 };
const HEIGHT = 318;
const LEGEND = [["value", "metric"], ["target", "target"], ["proposal", "proposal"], ["replicas", "replicas"], ["outage", "unreadable"], ["fallback", "fallback"]];

export class Chart {
  constructor() {
    this.metric = 0;
    this.cursor = null;
    this.svg = s("svg", { role: "img", height: HEIGHT, "aria-label": "Timeline", "aria-describedby": "readout" });
    this.stage = h("div", { class: "stage", tabindex: 0, role: "group", "aria-label": "Timeline; left and right arrows read it point by point" }, this.svg);
    this.tabs = h("div", { class: "tabs", role: "group", "aria-label": "Metric to show" });
    this.readout = h("p", { class: "readout", id: "readout", "aria-live": "polite" });
    this.node = h("figure", { class: "chart" },
      this.tabs, this.stage, this.readout,
      h("figcaption", {}, ...LEGEND.map(([kind, word]) => h("span", { class: `key ${kind}` }, h("i"), word))));
    this.stage.addEventListener("keydown", (event) => this.walk(event));
    this.stage.addEventListener("pointermove", (event) => this.point(event));
    this.stage.addEventListener("pointerleave", () => this.look(null));
    new ResizeObserver(() => this.draw()).observe(this.stage);
  }

  show(one) {
    const other = this.of !== `${one.namespace}/${one.name}`;
    this.of = `${one.namespace}/${one.name}`;
    if (other) Object.assign(this, { metric: 0, cursor: null });
    this.one = one;
    this.line = one.timeline;
    this.metric = Math.min(this.metric, Math.max(this.line.metrics.length - 1, 0));
    this.showTabs();
    this.draw();
  }

  showTabs() {
    const names = this.line.metrics.map((metric, index) => ({ name: metric.name, index }));
    this.tabs.hidden = names.length < 2;
    keyed(this.tabs, names, ({ index }) => `${index}`, ({ index }) => {
      const button = h("button", { type: "button" });
      button.addEventListener("click", () => {
        this.metric = index;
        this.showTabs();
        this.draw();
      });
      return button;
    }, (button, { name, index }) => {
      text(button, name);
      mark(button, "aria-pressed", index === this.metric);
    });
  }

  draw() {
    const width = this.stage.clientWidth;
    if (!width || !this.line?.at.length) return;
    const line = this.line;
    const moments = line.at.map((at) => Date.parse(at));
    const end = Math.max(moments.at(-1), Math.min(now(), moments.at(-1) + 20000));
    const start = Math.min(moments[0], end - 60000);
    this.x = linear(start, end, LEFT, width - RIGHT);
    this.xs = moments.map(this.x);
    this.edge = width - RIGHT;
    const metric = line.metrics[this.metric];
    mark(this.svg, "viewBox", `0 0 ${width} ${HEIGHT}`);
    this.svg.replaceChildren(
      hatch(), ...this.shades(), ...this.clockwork(start, end, width),
      ...(metric ? this.upper(metric) : []), ...this.lower(metric), this.hair());
    this.look(this.cursor);
  }

  shades() {
    const reads = this.line.at.map((_, index) => worst(this.line.metrics.map((metric) => metric.read[index])));
    return [["failed", "outage", "unreadable"], ["fell_back", "fallback", "fallback"]].flatMap(([kind, name, word]) =>
      stretches(reads, kind, this.xs, this.edge).flatMap(({ start, stop }) => [
        s("rect", { class: `shade ${name}`, x: start, y: UPPER.top, width: Math.max(stop - start, 1.5), height: LOWER.bottom - UPPER.top, fill: name === "outage" ? "url(#hatch)" : null }),
        stop - start > word.length * 7 ? s("text", { class: `shade-word ${name}`, x: start + 5, y: UPPER.top + 13 }, word) : null,
      ])).filter((node) => node !== null);
  }

  clockwork(start, end, width) {
    const { found, seconds } = times(start, end, Math.max(Math.floor(width / 110), 2));
    return found.flatMap((at) => [
      s("line", { class: "grid", x1: this.x(at), x2: this.x(at), y1: UPPER.top, y2: LOWER.bottom }),
      s("text", { class: "time", x: this.x(at), y: LOWER.bottom + 18 }, timeOfDay(at).slice(0, seconds ? 8 : 5)),
    ]);
  }

  panel(room, largest, title) {
    const marks = ticks(largest);
    const y = linear(0, marks.at(-1), room.bottom, room.top);
    const grid = marks.flatMap((value) => [
      s("line", { class: value ? "grid" : "base", x1: LEFT, x2: this.edge, y1: y(value), y2: y(value) }),
      s("text", { class: "number", x: LEFT - 8, y: y(value) + 4 }, short(value)),
    ]);
    return { y, nodes: [...grid, s("text", { class: "panel", x: LEFT, y: room.top - 9 }, fitted(title, this.edge - LEFT))] };
  }

  upper(metric) {
    const { y, nodes } = this.panel(UPPER, Math.max(0, ...known(metric.value), ...known(metric.target)) || 1, metric.name);
    const at = (value, index) => [this.xs[index], value === null ? null : y(value)];
    const last = metric.value.findLastIndex((value) => value !== null);
    return [...nodes,
      s("path", { class: "target", d: this.through(path(held(metric.target).map(at), true)) }),
      s("path", { class: "value", d: path(metric.value.map(at)) }),
      last >= 0 && last === metric.value.length - 1 ? s("circle", { class: "value", cx: this.xs[last], cy: y(metric.value[last]), r: 3.5 }) : s("g")];
  }

  lower(metric) {
    const { line, one } = this;
    const proposals = metric ? metric.proposal : [];
    const { y, nodes } = this.panel(LOWER, Math.max(1, ...line.replicas, ...line.current, ...known(proposals)), "replicas");
    const stair = this.through(path(line.replicas.map((value, index) => [this.xs[index], y(value)]), true));
    const asked = path(proposals.map((value, index) => [this.xs[index], value === null ? null : y(value)]), true);
    const limit = [one.minimum, one.maximum].filter((value) => value !== null && value > 0 && y(value) >= LOWER.top - 1);
    return [...nodes,
      ...limit.map((value) => s("line", { class: "limit", x1: LEFT, x2: this.edge, y1: y(value), y2: y(value) })),
      s("path", { class: "area", d: `${stair}V${y(0)}H${this.xs[0].toFixed(1)}Z` }),
      s("path", { class: "proposal", d: known(proposals.slice(-1)).length ? this.through(asked) : asked }),
      s("path", { class: "replicas", d: stair })];
  }

  // What held at the last point holds until now.
  through(drawn) {
    return drawn && `${drawn}H${this.edge.toFixed(1)}`;
  }

  // --- reading it point by point ------------------------------------------------------------------------------------

  hair() {
    this.line.hair = s("line", { class: "hair", y1: UPPER.top, y2: LOWER.bottom, x1: 0, x2: 0, visibility: "hidden" });
    return this.line.hair;
  }

  look(index) {
    this.cursor = index === null ? null : Math.min(Math.max(index, 0), this.line.at.length - 1);
    const { hair } = this.line;
    mark(hair, "visibility", this.cursor === null ? "hidden" : "visible");
    const shown = this.cursor ?? this.line.at.length - 1;
    for (const end of ["x1", "x2"]) mark(hair, end, this.xs[shown]);
    text(this.readout, this.told(shown));
  }

  told(index) {
    const { line } = this;
    const metric = line.metrics[this.metric];
    const said = [`${timeOfDay(line.at[index])} UTC`];
    if (metric?.read[index] === "well") said.push(`${metric.name} ${metric.value[index]}, wanted ${metric.target[index]}, asks for ${metric.proposal[index]}`);
    if (metric?.read[index] === "failed") said.push(`${metric.name} unreadable`);
    if (metric?.read[index] === "fell_back") said.push(`${metric.name} unreadable, its fallback asks for ${metric.proposal[index]}`);
    const [from, to] = [line.current[index], line.replicas[index]];
    said.push(from === to ? `${to} replicas` : `${from} → ${to} replicas`);
    return said.join(" · ");
  }

  walk(event) {
    const last = (this.line?.at.length ?? 0) - 1;
    const here = this.cursor ?? last;
    const there = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: last, Escape: null }[event.key];
    if (there === undefined || last < 0) return;
    event.preventDefault();
    this.look(there);
  }

  point(event) {
    if (!this.xs) return;
    const x = event.clientX - this.stage.getBoundingClientRect().left;
    const far = this.xs.map((at) => Math.abs(at - x));
    this.look(far.indexOf(Math.min(...far)));
  }
}

const known = (values) => values.filter((value) => value !== null);
const worst = (reads) => (reads.includes("fell_back") ? "fell_back" : reads.includes("failed") ? "failed" : "well");

// A target stands while its metric cannot be read.
function held(values) {
  let last = known(values)[0] ?? null;
  return values.map((value) => (last = value ?? last));
}

function fitted(words, width) {
  const most = Math.floor(width / 7.5);
  return words.length > most ? `${words.slice(0, most - 1)}…` : words;
}

function short(value) {
  if (value >= 1e6) return `${value / 1e6}M`;
  return value >= 1e4 ? `${value / 1e3}k` : `${value}`;
}

function hatch() {
  return s("defs", {}, s("pattern", { id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    s("rect", { class: "hatch-ground", width: 7, height: 7 }), s("line", { class: "hatch-line", x1: 0, x2: 0, y1: 0, y2: 7 })));
}
