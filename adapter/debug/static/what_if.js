// "What if": replays recorded load with an edited spec, and shows the replicas as they were and as they would have been.

import { h, s, setAttribute, setText, counted } from "./dom.js";
import { abbreviated, known, linear, path, ranges, ticks, timeTicks, truncated } from "./scale.js";

const SOURCES = [["log", "Decision log"], ["24h", "24 hours"], ["7d", "7 days"]];
const MAX_BYTES = 16384;
const LEFT = 44;
const RIGHT = 14;
const LOAD = { top: 24, bottom: 104 };
const REPLICAS = { top: 138, bottom: 278 };
const HEIGHT = 304;
const LEGEND = [["value", "metric value"], ["was", "replicas as they were"], ["replicas", "replicas with the edited spec"], ["demand", "demand"], ["under", "under-provisioned"], ["fallback", "fallback"], ["failed", "metric unavailable"]];

const timeText = (time) => new Date(time).toISOString().slice(0, 19).replace("T", " ");

async function fetchReplay(key, source, query) {
  const below = key.split("/").map(encodeURIComponent).join("/");
  const parameters = new URLSearchParams(source === "log" ? query : { ...query, since: source });
  const response = await fetch(`/debug/${source === "log" ? "autoscalers" : "history"}/${below}?${parameters}`, { cache: "no-store" });
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  throw Object.assign(new Error(body.message ?? `HTTP ${response.status}`), { causes: body.details?.causes ?? [] });
}

export class WhatIf {
  constructor() {
    Object.assign(this, { key: "", source: "log", request: 0 });
    this.spec = h("textarea", { id: "what-if-spec", rows: 16, spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-describedby": "what-if-hint what-if-problems" });
    this.startup = h("input", { id: "what-if-startup", value: "0s", autocomplete: "off", spellcheck: "false" });
    this.sources = h("div", { class: "tabs", role: "group", "aria-label": "Load to replay" }, ...SOURCES.map((each) => this.sourceButton(...each)));
    this.submit = h("button", { type: "submit" }, "Replay");
    this.reset = h("button", { type: "button", class: "plain" }, "Current spec");
    this.status = h("p", { class: "hint", role: "status" });
    this.problems = h("ul", { id: "what-if-problems", class: "problems" });
    this.result = h("div", { class: "what-if-result", hidden: true });
    this.form = h("form", {},
      h("p", { class: "hint", id: "what-if-hint" }, "Edit the spec, and replay the recorded load with it. Nothing in the cluster changes. Ctrl+Enter replays."),
      h("label", { class: "field", for: "what-if-spec" }, "Spec"), this.spec,
      h("div", { class: "what-if-options" },
        h("div", {}, h("span", { class: "field" }, "Load"), this.sources),
        h("div", {}, h("label", { class: "field", for: "what-if-startup" }, "Start-up time of a pod"), this.startup),
        h("div", { class: "what-if-buttons" }, this.submit, this.reset)));
    this.node = h("details", { class: "more what-if" }, h("summary", {}, "What if"), this.form, this.status, this.problems, this.result);
    this.node.addEventListener("toggle", () => this.node.open && !this.spec.value && this.loadSpec());
    this.form.addEventListener("submit", (event) => this.onSubmit(event));
    this.reset.addEventListener("click", () => this.loadSpec());
    this.spec.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && this.onSubmit(event));
  }

  sourceButton(source, label) {
    const button = h("button", { type: "button", "aria-pressed": String(source === this.source) }, label);
    button.addEventListener("click", () => {
      this.source = source;
      [...this.sources.children].forEach((each, index) => setAttribute(each, "aria-pressed", String(SOURCES[index][0] === source)));
    });
    return button;
  }

  // Show another autoscaler; what the user has typed for the same one stays.
  show(key) {
    if (key === this.key) return;
    Object.assign(this, { key, request: this.request + 1 });
    this.spec.value = "";
    this.clear();
    setText(this.status, "");
    if (this.node.open) this.loadSpec();
  }

  clear() {
    this.result.hidden = true;
    this.problems.replaceChildren();
    setAttribute(this.spec, "aria-invalid", null);
  }

  async loadSpec() {
    const view = await this.fetch("Loading the spec…", "log", { whatIf: "" });
    if (!view) return;
    this.clear();
    this.spec.value = view.spec;
    setText(this.status, "");
  }

  async onSubmit(event) {
    event.preventDefault();
    const size = new TextEncoder().encode(this.spec.value).length;
    if (size > MAX_BYTES) return this.showProblems([{ message: `the spec is too large: ${size} bytes, at most ${MAX_BYTES}` }]);
    if (!this.spec.value.trim()) return this.showProblems([{ message: "the spec is empty" }]);
    this.submit.disabled = true;
    const view = await this.fetch("Replaying…", this.source, { whatIf: this.spec.value, startup: this.startup.value.trim() });
    this.submit.disabled = false;
    if (view) this.showResult(view);
  }

  // Return the response; null if it is a failure, which is shown, or if another autoscaler or request is shown now.
  async fetch(message, source, query) {
    const request = (this.request += 1);
    setText(this.status, message);
    try {
      const view = await fetchReplay(this.key, source, query);
      return request === this.request ? view : null;
    } catch (error) {
      if (request === this.request) this.showProblems(error.causes?.length ? error.causes : [{ message: error instanceof TypeError ? "no response" : error.message }]);
      return null;
    }
  }

  showProblems(problems) {
    this.clear();
    setAttribute(this.spec, "aria-invalid", "true");
    setText(this.status, counted(problems.length, "problem"));
    this.problems.replaceChildren(...problems.map(({ field, message }) => h("li", {}, field ? h("code", {}, field) : null, field ? " " : null, message)));
  }

  showResult(view) {
    this.clear();
    setText(this.status, `${timeText(Date.parse(view.start))} to ${timeText(Date.parse(view.end))} UTC, ${counted(view.decisions, "decision")}`);
    this.chart = new ReplayChart(view);
    this.result.replaceChildren(this.chart.node, measures(view));
    this.result.hidden = false;
    this.chart.draw();
  }
}

class ReplayChart {
  constructor(view) {
    Object.assign(this, { view, metric: 0, cursor: null });
    this.svg = s("svg", { role: "img", height: HEIGHT, "aria-label": "Replicas as they were and with the edited spec" });
    this.stage = h("div", { class: "stage", tabindex: 0, role: "group", "aria-label": "Replay; the left and right arrow keys move from decision to decision" }, this.svg);
    this.readout = h("p", { class: "readout", "aria-live": "polite" });
    this.tabs = h("div", { class: "tabs", role: "group", "aria-label": "Metric to show", hidden: view.metrics.length < 2 }, ...view.metrics.map((name, index) => this.tab(name, index)));
    this.steps = h("ol", { class: "replay-steps" });
    this.node = h("figure", { class: "chart replay" }, this.tabs, this.stage, this.readout,
      h("figcaption", {}, ...LEGEND.map(([kind, label]) => h("span", { class: `key ${kind}` }, h("i"), label))),
      h("details", {}, h("summary", {}, "Steps with the edited spec at this moment"), this.steps));
    this.stage.addEventListener("keydown", (event) => this.onKey(event));
    this.stage.addEventListener("pointermove", (event) => this.onPointer(event));
    this.stage.addEventListener("pointerleave", () => this.show(null));
    new ResizeObserver(() => this.draw()).observe(this.stage);
  }

  tab(name, index) {
    const button = h("button", { type: "button", "aria-pressed": String(index === 0) }, name);
    button.addEventListener("click", () => {
      this.metric = index;
      [...this.tabs.children].forEach((each, position) => setAttribute(each, "aria-pressed", String(position === index)));
      this.draw();
    });
    return button;
  }

  draw() {
    const width = this.stage.clientWidth;
    if (!width) return;
    const [was, edited] = this.view.variants;
    const [start, end] = [Date.parse(this.view.start), Date.parse(this.view.end)];
    this.right = width - RIGHT;
    this.x = linear(start, end, LEFT, this.right);
    this.time = linear(LEFT, this.right, start, end);
    this.cursorLine = s("line", { class: "cursor", y1: LOAD.top, y2: REPLICAS.bottom, x1: 0, x2: 0, visibility: "hidden" });
    setAttribute(this.svg, "viewBox", `0 0 ${width} ${HEIGHT}`);
    this.svg.replaceChildren(...this.shades(edited), ...this.timeAxis(start, end, width), ...this.loadPanel(was),
      ...this.replicasPanel(was, edited), this.cursorLine);
    this.show(this.cursor);
  }

  shades({ time, state, under }) {
    const area = { y: REPLICAS.top, height: REPLICAS.bottom - REPLICAS.top };
    const xs = time.map(this.x);
    const states = ["failed", "fallback"].flatMap((kind) => ranges(state, kind, xs, this.right).map(({ start, stop }) =>
      s("rect", { class: `shade ${kind}`, x: start, width: Math.max(stop - start, 1.5), ...area, fill: kind === "failed" ? "url(#hatch)" : null })));
    return [...states, ...under.map(([from, to, share]) =>
      s("rect", { class: "shade under", x: this.x(from), width: Math.max(this.x(to) - this.x(from), 0.5), ...area, opacity: Math.max(share, 0.15) }))];
  }

  timeAxis(start, end, width) {
    const { times, showSeconds } = timeTicks(start, end, Math.max(Math.floor(width / 110), 2));
    const text = (time) => (end - start > 86400000 ? timeText(time).slice(5, 16) : timeText(time).slice(11, showSeconds ? 19 : 16));
    return times.flatMap((time) => [
      s("line", { class: "grid", x1: this.x(time), x2: this.x(time), y1: LOAD.top, y2: REPLICAS.bottom }),
      s("text", { class: "time", x: this.x(time), y: REPLICAS.bottom + 18 }, text(time)),
    ]);
  }

  panel(area, maximum, title) {
    const values = ticks(maximum || 1);
    const y = linear(0, values.at(-1), area.bottom, area.top);
    return { y, nodes: [...values.flatMap((value) => [
      s("line", { class: value ? "grid" : "base", x1: LEFT, x2: this.right, y1: y(value), y2: y(value) }),
      s("text", { class: "number", x: LEFT - 8, y: y(value) + 4 }, abbreviated(value)),
    ]), s("text", { class: "panel", x: LEFT, y: area.top - 9 }, truncated(title, this.right - LEFT))] };
  }

  line({ time }, column, y) {
    const drawn = path(column.map((value, index) => [this.x(time[index]), value === null ? null : y(value)]), true);
    return drawn && column.at(-1) !== null ? `${drawn}H${this.right.toFixed(1)}` : drawn;
  }

  loadPanel(was) {
    const column = was.values[this.metric];
    const { y, nodes } = this.panel(LOAD, known(column).reduce((a, b) => Math.max(a, b), 0), `${this.view.metrics[this.metric]}, total`);
    return [...nodes, s("path", { class: "value", d: this.line(was, column, y) })];
  }

  replicasPanel(was, edited) {
    const most = [...was.replicas, ...edited.replicas, ...known(edited.demand)].reduce((a, b) => Math.max(a, b), 1);
    const { y, nodes } = this.panel(REPLICAS, most, "replicas");
    return [...nodes, s("path", { class: "demand", d: this.line(edited, edited.demand, y) }),
      s("path", { class: "was", d: this.line(was, was.replicas, y) }), s("path", { class: "replicas", d: this.line(edited, edited.replicas, y) })];
  }

  // Show the decision at an index; null shows the last one, without a cursor.
  show(index) {
    const [was, edited] = this.view.variants;
    const last = edited.time.length - 1;
    this.cursor = index === null ? null : Math.min(Math.max(index, 0), last);
    const time = edited.time[this.cursor ?? last];
    setAttribute(this.cursorLine, "visibility", this.cursor === null ? "hidden" : "visible");
    for (const end of ["x1", "x2"]) setAttribute(this.cursorLine, end, this.x(time));
    const at = this.cursor ?? last;
    const before = was.replicas[indexAt(was.time, time)];
    setText(this.readout, [`${timeText(time)} UTC`, `as it was: ${counted(before, "replica")}`,
      `edited spec: ${counted(edited.replicas[at], "replica")}, demand ${edited.demand[at] ?? "unknown"}, ${edited.factor[at]}`].join(" · "));
    const found = edited.explained[indexAt(edited.explained.map((each) => each.time), time)];
    this.steps.replaceChildren(...(found?.steps ?? []).map((text) => h("li", {}, text)));
  }

  onKey(event) {
    const last = this.view.variants[1].time.length - 1;
    const current = this.cursor ?? last;
    const target = { ArrowLeft: current - 1, ArrowRight: current + 1, PageUp: current - 20, PageDown: current + 20, Home: 0, End: last, Escape: null }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.show(target);
  }

  onPointer(event) {
    if (!this.x) return;
    this.show(indexAt(this.view.variants[1].time, this.time(event.clientX - this.stage.getBoundingClientRect().left)));
  }
}

// The index of the last time that is not after `time`; of the first one, if there is none.
function indexAt(times, time) {
  return Math.max(times.findLastIndex((each) => each <= time), 0);
}

function measures(view) {
  const head = h("tr", {}, h("th", { scope: "col" }, "Measure"), ...view.variants.map(({ name }) => h("th", { scope: "col" }, name)));
  const rows = view.measures.map(({ label, values }) => h("tr", {}, h("th", { scope: "row" }, label), ...values.map((value) => h("td", { class: "number" }, value))));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Measures" }, h("table", { class: "measures" }, h("thead", {}, head), h("tbody", {}, ...rows)));
}
