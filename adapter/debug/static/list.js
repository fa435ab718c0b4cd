// The list of autoscalers, with a text filter and a state filter, usable by keyboard.

import { byId, counted, h, keyed, setAttribute, setText } from "./dom.js";

const TONES = {
  "reconcile failed": "critical", "write failed": "critical", "target unavailable": "critical", "invalid spec": "critical", conflict: "critical",
  "invalid selector": "critical", fallback: "warning", "metric failing": "warning", "metric unavailable": "warning",
  paused: "muted", "dry run": "muted", "scaling disabled": "muted", limited: "info", "scaled to zero": "muted",
};
const STATES_WITH_DURATION = new Set([
  "metric failing", "fallback", "metric unavailable", "target unavailable", "write failed", "paused", "conflict",
]);

export const toneOf = (state) => TONES[state] ?? "ok";
export const keyOf = (autoscaler) => `${autoscaler.namespace}/${autoscaler.name}`;

export function stateChip(state, since) {
  const node = h("span", { class: "chip" }, h("span", { class: "label" }), h("span", { class: "duration" }));
  updateChip(node, state, since);
  return node;
}

export function updateChip(node, state, since) {
  setAttribute(node, "data-tone", toneOf(state));
  setText(node.firstChild, state);
  const hasDuration = since && STATES_WITH_DURATION.has(state);
  setAttribute(node.lastChild, "data-since", hasDuration ? since : null);
  if (!hasDuration) setText(node.lastChild, "");
}

export function showList(overview, selected) {
  keyed(byId("list"), overview.autoscalers, keyOf, makeRow, (row, autoscaler) => updateRow(row, autoscaler, selected));
  const links = [...byId("list").querySelectorAll("a")];
  const tabStop = links.find((link) => link === document.activeElement) ??
    links.find((link) => link.hasAttribute("aria-current")) ?? links[0];
  for (const link of links) setAttribute(link, "tabindex", link === tabStop ? 0 : -1);
  const omitted = byId("omitted");
  omitted.hidden = overview.omitted === 0;
  setText(omitted, `${overview.omitted} more: use the filter to find them`);
}

function makeRow(autoscaler) {
  const path = [autoscaler.namespace, autoscaler.name].map(encodeURIComponent).join("/");
  return h("li", {},
    h("a", { href: `#/autoscalers/${path}` },
      h("span", { class: "identity" }, h("strong"), h("small")),
      h("span", { class: "count" }),
      stateChip(autoscaler.state, autoscaler.since)));
}

function updateRow(row, autoscaler, selected) {
  const link = row.firstChild;
  const { current, replicas, state } = autoscaler;
  const [identity, size, chip] = link.children;
  setText(identity.firstChild, autoscaler.name);
  setText(identity.lastChild, autoscaler.namespace);
  setText(size, current === replicas ? replicas : `${current} → ${replicas}`);
  updateChip(chip, state, autoscaler.since);
  setAttribute(link, "aria-current", keyOf(autoscaler) === selected ? "true" : null);
  setAttribute(link, "aria-label",
    `${keyOf(autoscaler)}, ${state}, ${counted(current, "replica")}` + (current === replicas ? "" : `, scaling to ${replicas}`));
}

export function showStates(overview, filter, setFilter) {
  const counts = [["all", overview.total], ...Object.entries(overview.counts)];
  keyed(byId("states"), counts, ([state]) => state, ([state]) => {
    const button = h("button", { type: "button" }, h("span"), h("b"));
    button.addEventListener("click", () => setFilter(state === "all" ? "" : state));
    return button;
  }, (button, [state, count]) => {
    setText(button.firstChild, state);
    setText(button.lastChild, count);
    setAttribute(button, "data-tone", state === "all" ? "plain" : toneOf(state));
    setAttribute(button, "aria-pressed", (state === "all" ? "" : state) === filter);
  });
}

// Move the focus with the arrow keys; the list has a single tab stop.
export function moveFocus(event) {
  const links = [...byId("list").querySelectorAll("a")];
  const current = links.indexOf(document.activeElement);
  const target = { ArrowDown: current + 1, ArrowUp: current - 1, Home: 0, End: links.length - 1 }[event.key];
  if (current < 0 || target === undefined) return;
  event.preventDefault();
  const next = links[Math.min(Math.max(target, 0), links.length - 1)];
  for (const link of links) setAttribute(link, "tabindex", link === next ? 0 : -1);
  next.focus();
}
