// One autoscaler: where it stands, what decided that and until when, its timeline, and the working step by step.

import { Chart } from "./chart.js";
import { timeOfDay } from "./clock.js";
import { byId, h, keyed, mark, text } from "./dom.js";
import { chip, paint } from "./list.js";

// A sentence that begins with a metric's name keeps it as it is.
const sentence = (step) =>
  step.step.startsWith("Metric") ? step.sentence : step.sentence.charAt(0).toUpperCase() + step.sentence.slice(1);

class Detail {
  constructor() {
    this.back = h("a", { href: "#/autoscalers", class: "back" }, "All autoscalers");
    this.title = h("h2", { tabindex: -1 });
    this.target = h("p", { class: "lead" });
    this.chips = h("p", { class: "chips" });
    this.size = h("p", { class: "big", id: "replicas" }, h("span"), h("span", { class: "arrow" }), h("b"));
    this.bounds = h("p", { class: "hint" });
    this.bound = h("p", { class: "bound" });
    this.change = h("p", { class: "change" }, h("span"), h("b"), h("span", { class: "hint" }));
    this.chart = new Chart();
    this.steps = h("ol", { class: "working", id: "working" });
    this.conditions = h("ul", { class: "conditions" });
    this.node = h("div", {},
      this.back, this.title, this.target, this.chips,
      h("div", { class: "verdict" },
        h("div", {}, this.size, this.bounds),
        h("div", {}, this.bound, this.change)),
      this.chart.node,
      h("h3", {}, "The working"),
      h("p", { class: "hint" }, "The last decision, step by step; the number is what each step came to. Open a step for what went in."),
      this.steps,
      h("details", { class: "more" }, h("summary", {}, "Conditions, as Kubernetes shows them"), this.conditions));
  }

  show(one) {
    text(this.title, `${one.namespace}/${one.name}`);
    text(this.target, `scales ${one.target}`);
    this.showSigns(one);
    this.showVerdict(one);
    this.chart.show(one);
    const working = one.explanation.working.map((step, index) => ({ ...step, index }));
    keyed(this.steps, working, (step) => `${step.index} ${step.step}`, makeStep, (node, step) =>
      updateStep(node, step, one.decisive));
    keyed(this.conditions, one.conditions, (condition) => condition.type, () => h("li", {}, h("b"), h("p")),
      (node, condition) => {
        text(node.firstChild, `${condition.type} = ${condition.status}, ${condition.reason}`);
        text(node.lastChild, condition.message);
      });
  }

  showSigns(one) {
    const signs = one.signs.map((sign, index) => ({ ...sign, since: index ? sign.since : one.since, index }));
    keyed(this.chips, signs, (sign) => `${sign.index}`, (sign) =>
      h("span", { class: "sign" }, chip(sign.state, sign.since), h("span", { class: "note" })),
    (node, sign) => {
      paint(node.firstChild, sign.state, sign.since);
      text(node.lastChild, sign.note);
    });
  }

  showVerdict(one) {
    const [current, arrow, wanted] = this.size.children;
    const moves = one.current !== one.replicas;
    text(current, moves ? one.current : "");
    text(arrow, moves ? " → " : "");
    text(wanted, one.replicas);
    const allowed = one.minimum === null ? "" : `; ${one.minimum} to ${one.maximum} allowed`;
    text(this.bounds, `${one.replicas === 1 ? "replica" : "replicas"}${allowed}`);
    text(this.bound, one.verdict.charAt(0).toUpperCase() + one.verdict.slice(1));
    const [lead, countdown, at] = this.change.children;
    const until = one.explanation.mayChangeAt;
    text(lead, until ? "May change by itself in " : `Decided at ${timeOfDay(one.decidedAt)}; it changes when something else does`);
    mark(countdown, "data-until", until);
    if (!until) text(countdown, "");
    text(at, until ? ` at ${timeOfDay(until)} UTC` : "");
  }
}

function makeStep() {
  return h("li", {}, h("span", { class: "came" }),
    h("div", {},
      h("p", { class: "said" }),
      h("details", {}, h("summary", { class: "rule" }), h("dl"))));
}

function updateStep(node, step, decisive) {
  const [came, body] = node.children;
  const [said, numbers] = body.children;
  text(came, step.cameOut.replicas ?? "·");
  text(said, sentence(step));
  text(numbers.firstChild, step.rule);
  mark(node, "data-decisive", step.index === decisive ? "" : null);
  mark(node, "data-step", step.step);
  const pairs = [...Object.entries(step.wentIn), ...Object.entries(step.cameOut)];
  keyed(numbers.lastChild, pairs, ([name]) => name, () => h("div", {}, h("dt"), h("dd")), (row, [name, value]) => {
    text(row.firstChild, name);
    text(row.lastChild, typeof value === "object" ? JSON.stringify(value) : value);
  });
}

let detail = null;

export function showDetail(picture, chosen) {
  const room = byId("detail");
  if (!chosen || !picture.selected) {
    detail = null;
    room.replaceChildren(emptiness(picture, chosen));
    return;
  }
  if (!detail) {
    detail = new Detail();
    room.replaceChildren(detail.node);
  }
  detail.show(picture.selected);
}

function emptiness(picture, chosen) {
  if (chosen) {
    return h("div", { class: "empty" }, h("h2", {}, chosen),
      h("p", {}, "Nothing was decided for an autoscaler of this name here."),
      h("p", {}, h("a", { href: "#/autoscalers" }, "All autoscalers")));
  }
  if (picture.total) {
    return h("div", { class: "empty" }, h("h2", {}, "Choose an autoscaler"),
      h("p", {}, "Those that someone should look at come first."));
  }
  return h("div", { class: "empty" }, h("h2", {}, "No decision yet"),
    h("p", {}, "There is no PodAutoscaler, or another process of this service leads: the page shows what is decided in the one it is served from."),
    picture.leader ? h("p", {}, "The one that leads now: ", h("code", {}, picture.leader)) : null);
}

export function focusTitle() {
  detail?.title.focus({ preventScroll: false });
}
