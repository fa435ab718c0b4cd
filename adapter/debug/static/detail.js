// One autoscaler: replicas, limiting factor, timeline, and the steps of the last decision.

import { Chart } from "./chart.js";
import { timeOfDay } from "./clock.js";
import { byId, h, keyed, setAttribute, setText } from "./dom.js";
import { keyOf, stateChip, updateChip } from "./list.js";

const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1);

class Detail {
  constructor() {
    this.title = h("h2", { tabindex: -1 });
    this.target = h("p", { class: "lead" });
    this.states = h("p", { class: "chips" });
    this.replicas = h("p", { class: "big", id: "replicas" }, h("span"), h("span", { class: "arrow" }), h("b"));
    this.bounds = h("p", { class: "hint" });
    this.reason = h("p", { class: "reason" });
    this.change = h("p", { class: "change" }, h("span"), h("b"), h("span", { class: "hint" }));
    this.chart = new Chart();
    this.steps = h("ol", { class: "steps", id: "steps" });
    this.conditions = h("ul", { class: "conditions" });
    this.node = h("div", {},
      h("a", { href: "#/autoscalers", class: "back" }, "All autoscalers"), this.title, this.target, this.states,
      h("div", { class: "result" },
        h("div", {}, this.replicas, this.bounds),
        h("div", {}, this.reason, this.change)),
      this.chart.node,
      h("h3", {}, "Last decision"),
      h("p", { class: "hint" }, "Each step with its result in replicas. Open a step to see its inputs."),
      this.steps,
      h("details", { class: "more" }, h("summary", {}, "Conditions in the status"), this.conditions));
  }

  show(autoscaler) {
    setText(this.title, keyOf(autoscaler));
    setText(this.target, `Target: ${autoscaler.target}`);
    this.showStates(autoscaler);
    this.showResult(autoscaler);
    this.chart.show(autoscaler);
    const steps = autoscaler.explanation.steps.map((step, index) => ({ ...step, index }));
    keyed(this.steps, steps, (step) => `${step.index} ${step.step}`, makeStep, (node, step) =>
      updateStep(node, step, autoscaler.decisiveStep));
    keyed(this.conditions, autoscaler.conditions, (condition) => condition.type, () => h("li", {}, h("b"), h("p")),
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
      setText(node.lastChild, state.detail);
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
  const values = [...Object.entries(step.inputs), ...Object.entries(step.outputs)];
  keyed(details.lastChild, values, ([name]) => name, () => h("div", {}, h("dt"), h("dd")), (row, [name, value]) => {
    setText(row.firstChild, name);
    setText(row.lastChild, typeof value === "object" ? JSON.stringify(value) : value);
  });
}

let detail = null;

export function showDetail(overview, selected) {
  const container = byId("detail");
  if (!selected || !overview.selected) {
    detail = null;
    container.replaceChildren(emptyState(overview, selected));
    return;
  }
  if (!detail) {
    detail = new Detail();
    container.replaceChildren(detail.node);
  }
  detail.show(overview.selected);
}

function emptyState(overview, selected) {
  if (selected) {
    return h("div", { class: "empty" }, h("h2", {}, selected),
      h("p", {}, "This process has made no decision for an autoscaler with this name."),
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
