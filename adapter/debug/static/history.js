// The decision history of one autoscaler: a scrollable timeline of up to seven days. A click selects a moment.

import { now, timeOfDay } from "./clock.js";
import { h, keyed, s, setAttribute, setText } from "./dom.js";
import { toneOf } from "./list.js";
import { linear, path, timeTicks } from "./scale.js";

const RANGES = [["1h", "1 hour", 1, 720], ["6h", "6 hours", 6, 240], ["24h", "24 hours", 24, 96], ["7d", "7 days", 168, 40]];
const MARGIN = 16;
const LINE = { top: 34, bottom: 104 };
const HEIGHT = 132;
const REFRESH = 30000;
const LABEL_WIDTH = 26;

export const dateAndTime = (time) => `${new Date(time).toISOString().slice(0, 10)} ${timeOfDay(time)} UTC`;

async function fetchHistory(key, query) {
  const path = key.split("/").map(encodeURIComponent).join("/");
  const response = await fetch(`/debug/history/${path}?${new URLSearchParams(query)}`, { cache: "no-store" });
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.message ?? `HTTP ${response.status}`);
  return body;
}

export class History {
  // `select` is called with a time, `update` after new data has arrived.
  constructor(select, update) {
    Object.assign(this, { select, update, range: "24h", key: "", period: null, moment: null, wanted: "", selecting: "", fetchedAt: 0 });
    this.svg = s("svg", { role: "img", height: HEIGHT, "aria-label": "Decision history" });
    this.scroller = h("div", { class: "scroller", tabindex: 0, role: "group", "aria-label": "Decision history; click a moment, or move from decision to decision with the left and right arrow keys" }, this.svg);
    this.ranges = h("div", { class: "tabs", role: "group", "aria-label": "Period" });
    this.note = h("p", { class: "hint", "aria-live": "polite" });
    this.node = h("section", { class: "chart history", "aria-label": "Decision history" }, this.ranges, this.scroller, this.note);
    this.svg.addEventListener("click", (event) => this.onClick(event));
    this.scroller.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => {
      this.draw();
      if (this.x) this.scrollTo(this.wanted || this.period.until); // the same moment stays visible
    }).observe(this.scroller);
    this.showRanges();
  }

  // Show an autoscaler, and the decision of a moment if there is one; fetch what is not known yet.
  show(key, moment) {
    if (key !== this.key) Object.assign(this, { key, period: null, moment: null, wanted: "", fetchedAt: 0 });
    if (performance.now() - this.fetchedAt > REFRESH || !this.fetchedAt) this.fetchPeriod();
    if (moment !== this.wanted) {
      this.wanted = this.selecting = moment;
      this.moment = null;
      if (moment) this.fetchMoment(key, moment);
      this.draw();
    }
  }

  async fetchPeriod() {
    const { key, range } = this;
    this.fetchedAt = performance.now();
    try {
      const period = await fetchHistory(key, { since: range });
      if (key !== this.key || range !== this.range) return;
      const isFirst = !this.period || this.period.range !== range;
      this.period = { ...period, range };
      this.draw();
      if (isFirst) this.scrollTo(this.wanted || period.until);
      setText(this.note, this.noteText());
    } catch (error) {
      if (key === this.key && range === this.range) setText(this.note, error.message);
    }
    this.update();
  }

  async fetchMoment(key, at) {
    try {
      const moment = await fetchHistory(key, { at });
      if (key !== this.key || at !== this.wanted) return;
      this.moment = moment;
    } catch (error) {
      if (key !== this.key || at !== this.wanted) return;
      this.moment = { at: null, message: error.message, decision: null };
    }
    this.update();
  }

  noteText() {
    const { records, gaps, beginsAt, since, truncated } = this.period;
    if (!records.length) return "No decision of this autoscaler is recorded in this period.";
    const begins = beginsAt > since ? ` The history begins at ${dateAndTime(beginsAt)}.` : "";
    const missing = gaps.length ? ` In ${gaps.length === 1 ? "the hatched period" : `${gaps.length} hatched periods`} nothing was recorded.` : "";
    return `${records.length} ${records.length === 1 ? "change" : "changes"}.${begins}${missing}${truncated ? " Older changes are left out." : ""} Click a moment to see its decision.`;
  }

  showRanges() {
    keyed(this.ranges, RANGES, ([range]) => range, ([range]) => {
      const button = h("button", { type: "button" });
      button.addEventListener("click", () => {
        this.range = range;
        this.showRanges();
        this.fetchPeriod();
      });
      return button;
    }, (button, [range, label]) => {
      setText(button, label);
      setAttribute(button, "aria-pressed", range === this.range);
    });
  }

  // --- Drawing ------------------------------------------------------------------------------------------------------

  draw() {
    if (!this.period || !this.scroller.clientWidth) return;
    const [, , hours, density] = RANGES.find(([range]) => range === this.period.range);
    const width = Math.max(this.scroller.clientWidth, hours * density);
    const [start, end] = [Date.parse(this.period.since), Math.max(Date.parse(this.period.until), Date.parse(this.wanted) || 0)];
    this.x = linear(start, end, MARGIN, width - MARGIN);
    this.time = linear(MARGIN, width - MARGIN, start, end);
    const records = this.period.records.map((record) => ({ ...record, x: this.x(Math.max(Date.parse(record.at), start)) }));
    const right = width - MARGIN;
    setAttribute(this.svg, "width", width);
    setAttribute(this.svg, "data-range", this.period.range);
    this.svg.replaceChildren(...this.axis(start, end, width), ...stateBands(records, right), ...replicaLine(records, right), ...this.gaps(), ...this.cursor());
  }

  axis(start, end, width) {
    return timeTicks(start, end, Math.max(Math.floor(width / 90), 2)).times.flatMap((time) => [
      s("line", { class: "grid", x1: this.x(time), x2: this.x(time), y1: 14, y2: LINE.bottom }),
      s("text", { class: "time", x: this.x(time), y: HEIGHT - 8 }, time % 86400000 ? timeOfDay(time).slice(0, 5) : new Date(time).toISOString().slice(5, 10)),
    ]);
  }

  gaps() {
    return this.period.gaps.map(({ start, end, reason }) => {
      const [from, to] = [this.x(Math.max(Date.parse(start), Date.parse(this.period.since))), this.x(Date.parse(end))];
      return s("rect", { class: "shade failed gap", x: from, y: 14, width: Math.max(to - from, 2), height: LINE.bottom - 14, fill: "url(#hatch)" }, s("title", {}, `Nothing was recorded: ${reason}`));
    });
  }

  cursor() {
    if (!this.wanted) return [];
    const x = this.x(Date.parse(this.wanted));
    return [s("line", { class: "cursor moment", x1: x, x2: x, y1: 4, y2: LINE.bottom + 4 })];
  }

  scrollTo(time) {
    this.scroller.scrollLeft = this.x(Date.parse(time)) - this.scroller.clientWidth / 2;
  }

  // --- Selection ----------------------------------------------------------------------------------------------------

  onClick(event) {
    if (!this.period) return;
    const time = this.time(event.clientX - this.svg.getBoundingClientRect().left);
    this.select(new Date(Math.min(Math.max(time, Date.parse(this.period.since)), now())).toISOString());
  }

  onKey(event) {
    const times = (this.period?.records ?? []).map((record) => record.at);
    const current = this.selecting || "9999";
    const target = {
      ArrowLeft: times.findLast((time) => time < current), ArrowRight: times.find((time) => time > current),
      Home: times[0], End: times.at(-1), Escape: "",
    }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.selecting = target; // the next key may be pressed before the moment is shown
    this.select(target);
    if (target) this.scrollTo(target);
  }
}

function stateBands(records, right) {
  const bands = [];
  records.forEach((record, index) => {
    const end = records[index + 1]?.x ?? right;
    if (bands.at(-1)?.state === record.state) bands.at(-1).end = end;
    else bands.push({ state: record.state, start: record.x, end });
  });
  return bands.map(({ state, start, end }) =>
    s("rect", { class: "band", "data-tone": state === "deleted" ? "muted" : toneOf(state), x: start, y: 14, width: Math.max(end - start, 1.5), height: 8 }, s("title", {}, state)));
}

function replicaLine(records, right) {
  const known = records.filter((record) => !record.deleted);
  if (!known.length) return [];
  const y = linear(0, Math.max(1, ...known.map((record) => record.replicas)), LINE.bottom, LINE.top + 10);
  const drawn = `${path(known.map((record) => [record.x, y(record.replicas)]), true)}H${right.toFixed(1)}`;
  const labels = [];
  known.forEach((record, index) => {
    if (index && record.replicas === known[index - 1].replicas) return;
    if (record.x - (labels.at(-1)?.x ?? -Infinity) >= LABEL_WIDTH) labels.push(record);
  });
  return [s("path", { class: "area", d: `${drawn}V${LINE.bottom}H${known[0].x.toFixed(1)}Z` }), s("path", { class: "replicas", d: drawn }),
    ...labels.map((record) => s("text", { class: "count-label", x: record.x + 3, y: y(record.replicas) - 5 }, record.replicas))];
}
