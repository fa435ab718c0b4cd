// One autoscaler: replicas, limiting factor, timeline, history, and the steps of the last decision or of a moment.

import { Chart } from "./chart.js";
import { now, timeOfDay } from "./clock.js";
import { byId, h, keyed, setAttribute, setText } from "./dom.js";
import { dateAndTime, History } from "./history.js";
import { keyOf, stateChip, updateChip } from "./list.js";
import { WhatIf } from "./what_if.js";

const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const routeOf = (key, moment) => `#/autoscalers/${[...key.split("/"), ...(moment ? ["at", moment] : [])].map(encodeURIComponent).join("/")}`;

class Detail {
  constructor() {
    this.notice = h("p", { class: "notice", hidden: true });
    this.title = h("h2", { tabindex: -1 });
    this.target = h("p", { class: "lead" });
    this.states = h("p", { class: "chips" });
    this.replicas = h("p", { class: "big", id: "replicas" }, h("span"), h("span", { class: "arrow" }), h("b"));
    this.bounds = h("p", { class: "hint" });
    this.reason = h("p", { class: "reason" });
    this.change = h("p", { class: "change" }, h("span"), h("b"), h("span", { class: "hint" }));
    const select = (moment) => (location.hash = routeOf(this.key, moment));
    this.chart = new Chart(select);
    this.history = new History(select, () => this.live && this.show(this.live, this.moment));
    this.whatIf = new WhatIf();
    this.stepsTitle = h("h3", { id: "steps-title" });
    this.stepsHint = h("p", { class: "hint" });
    this.momentNode = h("p", { class: "moment", id: "moment", "aria-live": "polite" }, h("span"), h("a", {}, "Show the last decision"));
    this.steps = h("ol", { class: "steps", id: "steps" });
    this.conditions = h("ul", { class: "conditions" });
    this.node = h("div", {},
      h("a", { href: "#/autoscalers", class: "back" }, "All autoscalers"), this.notice, this.title, this.target, this.states,
      h("div", { class: "result" },
        h("div", {}, this.replicas, this.bounds),
        h("div", {}, this.reason, this.change)),
      this.chart.node,
      h("h3", {}, "History"), this.history.node, this.whatIf.node,
      this.stepsTitle, this.momentNode, this.stepsHint,
      this.steps,
      h("details", { class: "more" }, h("summary", {}, "Conditions in the status"), this.conditions));
  }

  // Show an autoscaler with its last decision, or with the decision of a moment.
  show(autoscaler, moment) {
    Object.assign(this, { live: autoscaler, key: keyOf(autoscaler), moment });
    this.history.show(this.key, moment);
    this.whatIf.show(this.key);
    const notice = noticeText(autoscaler);
    this.notice.hidden = !notice;
    setText(this.notice, notice);
    setText(this.title, keyOf(autoscaler));
    setText(this.target, `Target: ${autoscaler.target}`);
    this.showStates(autoscaler);
    this.showResult(autoscaler);
    this.chart.show(autoscaler);
    this.showMoment(moment);
    this.showDecision(moment ? this.history.moment?.decision : autoscaler);
  }

  showMoment(moment) {
    const known = this.history.moment;
    setText(this.stepsTitle, moment ? `Decision at ${dateAndTime(moment)}` : "Last decision");
    setText(this.stepsHint, moment && known && !known.decision ? "" : "Each step with its result in replicas. Open a step to see its inputs.");
    this.momentNode.hidden = !moment;
    const [text, link] = this.momentNode.children;
    setText(text, moment ? (known ? `${momentSummary(known)} ` : "Loading… ") : "");
    setAttribute(link, "href", routeOf(this.key, ""));
  }

  showDecision(decision) {
    const steps = (decision?.explanation.steps ?? []).map((step, index) => ({ ...step, index }));
    keyed(this.steps, steps, (step) => `${step.index} ${step.step}`, makeStep, (node, step) =>
      updateStep(node, step, decision.decisiveStep));
    keyed(this.conditions, decision?.conditions ?? [], (condition) => condition.type, () => h("li", {}, h("b"), h("p")),
      (node, condition) => {
        setText(node.firstChild, `${condition.type} = ${condition.status}, ${condition.reason}`);
        setText(node.lastChild, condition.message);
      });
  }

  showStates(autoscaler) {
    const states = autoscaler.states.map((state, index) => ({ ...state, since: index ? state.since : autoscaler.since, index }));
    keyed(this.states, states, (state) => `${state.index}`, (state) =>
      h("span", { class: "state" }, stateChip(state.name, state.since), h("span", { class: "note" })),
    (node, state) => {
      updateChip(node.firstChild, state.name, state.since);
      const failing = state.failingSince && state.failingSince !== state.since ? `; failing since ${timeOfDay(state.failingSince)} UTC` : "";
      setText(node.lastChild, `${state.detail}${failing}`);
    });
  }

  showResult(autoscaler) {
    const { current, replicas, minReplicas, maxReplicas, limitingFactor } = autoscaler;
    const [from, arrow, to] = this.replicas.children;
    const isRescale = current !== replicas;
    setText(from, isRescale ? current : "");
    setText(arrow, isRescale ? " → " : "");
    setText(to, replicas);
    const bounds = minReplicas === null ? "" : ` (min ${minReplicas}, max ${maxReplicas})`;
    setText(this.bounds, `${replicas === 1 ? "replica" : "replicas"}${bounds}`);
    setText(this.reason, limitingFactor ? `Limiting factor: ${limitingFactor}` : "No limiting factor: follows the metrics");
    const [lead, countdown, time] = this.change.children;
    const until = autoscaler.explanation.mayChangeAt;
    setText(lead, until ? "With unchanged metrics, the next change is possible in "
      : `Decided at ${timeOfDay(autoscaler.decidedAt)} UTC; changes only when the metrics or the spec change`);
    setAttribute(countdown, "data-until", until);
    if (!until) setText(countdown, "");
    setText(time, until ? ` at ${timeOfDay(until)} UTC` : "");
  }
}

function noticeText(autoscaler) {
  if (autoscaler.recordedUntil) return `From the decision history, recorded until ${dateAndTime(autoscaler.recordedUntil)}: this replica is not the leader.`;
  return autoscaler.outdatedSince ? `Outdated: this replica is no longer the leader. Its decisions end at ${dateAndTime(autoscaler.outdatedSince)}.` : "";
}

function momentSummary({ decision, message }) {
  const text = capitalized(message) + ".";
  if (!decision) return text;
  const { current, replicas, state, limitingFactor } = decision;
  const change = current === replicas ? `${replicas}` : `${current} → ${replicas}`;
  return `${change} ${replicas === 1 ? "replica" : "replicas"}, ${state}; ${limitingFactor ? `limiting factor: ${limitingFactor}` : "no limiting factor"}. ${text}`;
}

function makeStep() {
  return h("li", {}, h("span", { class: "output" }),
    h("div", {},
      h("p", { class: "text" }),
      h("details", {}, h("summary", { class: "rule" }), h("dl"))));
}

function updateStep(node, step, decisiveStep) {
  const [output, body] = node.children;
  const [text, details] = body.children;
  setText(output, step.outputs.replicas ?? "·");
  // A metric's step begins with the metric's name, which keeps its case.
  setText(text, step.step.startsWith("Metric") ? step.text : capitalized(step.text));
  setText(details.firstChild, step.rule);
  setAttribute(node, "data-decisive", step.index === decisiveStep ? "" : null);
  setAttribute(node, "data-step", step.step);
  keyed(details.lastChild, step.values, ([name]) => name, () => h("div", {}, h("dt"), h("dd")), (row, [name, value]) => {
    setText(row.firstChild, name);
    setText(row.lastChild, value);
  });
}

let detail = null;

let recorded = null; // the history of an autoscaler for which this replica has made no decision

export function showDetail(overview, selected, moment) {
  const container = byId("detail");
  const autoscaler = overview.selected ?? (selected ? recordedAutoscaler(overview, selected, moment) : null);
  if (!autoscaler) {
    detail = null;
    container.replaceChildren(emptyState(overview, selected));
    return;
  }
  if (!detail) {
    detail = new Detail();
    container.replaceChildren(detail.node);
  }
  detail.show(autoscaler, moment);
}

// Return the last recorded decision, as if this replica had made it; null until it has been fetched, or if there is none.
function recordedAutoscaler(overview, selected, moment) {
  if (recorded?.key !== selected) {
    const isShown = () => document.body.dataset.selected === selected; // the user may have opened another autoscaler
    recorded = new History(() => {}, () => isShown() && showDetail(overview, selected, moment));
    recorded.show(selected, new Date(now()).toISOString());
  }
  const { period, moment: last } = recorded;
  if (!period?.timeline || !last?.decision) return null;
  return { ...last.decision, timeline: period.timeline, recordedUntil: last.recordedUntil };
}

function emptyState(overview, selected) {
  if (selected) {
    return h("div", { class: "empty" }, h("h2", {}, selected),
      h("p", {}, "This replica has made no decision for an autoscaler with this name, and none is recorded."),
      h("p", {}, h("a", { href: "#/autoscalers" }, "All autoscalers")));
  }
  if (overview.total) {
    return h("div", { class: "empty" }, h("h2", {}, "Select an autoscaler"),
      h("p", {}, "The list is sorted by severity."));
  }
  return h("div", { class: "empty" }, h("h2", {}, "No decisions"),
    h("p", {}, "There is no PodAutoscaler, or another replica of the service is the leader. Only the leader makes decisions and shows them."),
    overview.leader ? h("p", {}, "Current leader: ", h("code", {}, overview.leader)) : null);
}

export function focusTitle() {
  detail?.title.focus({ preventScroll: false });
}
