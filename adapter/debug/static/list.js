// The list of autoscalers: state at a glance, one filter by text and one by state, all by keyboard.

import { byId, h, keyed, mark, text } from "./dom.js";

const LASTING = new Set(["failing", "fallback", "no say", "target lost", "write failed", "paused", "two owners"]);

export const toneOf = (state) =>
  ({
    "write failed": "grave", "target lost": "grave", "spec wrong": "grave", "two owners": "grave",
    "pods unknown": "grave", fallback: "warn", failing: "warn", "no say": "warn", paused: "hush",
    "dry run": "hush", "switched off": "hush", limited: "note", "at zero": "hush",
  })[state] ?? "fine";

export const hrefOf = (one) =>
  `#/autoscalers/${encodeURIComponent(one.namespace)}/${encodeURIComponent(one.name)}`;

// Says a state, and for those that should not last, since when.
export function chip(state, since) {
  const node = h("span", { class: "chip" }, h("span", { class: "word" }), h("span", { class: "for" }));
  paint(node, state, since);
  return node;
}

export function paint(node, state, since) {
  mark(node, "data-tone", toneOf(state));
  text(node.firstChild, state);
  const lasting = since && LASTING.has(state);
  mark(node.lastChild, "data-since", lasting ? since : null);
  if (!lasting) text(node.lastChild, "");
}

export function showList(picture, chosen) {
  keyed(byId("list"), picture.autoscalers, (one) => `${one.namespace}/${one.name}`, makeRow, (row, one) =>
    updateRow(row, one, chosen));
  const links = [...byId("list").querySelectorAll("a")];
  const stop = links.find((link) => link === document.activeElement) ??
    links.find((link) => link.hasAttribute("aria-current")) ?? links[0];
  for (const link of links) mark(link, "tabindex", link === stop ? 0 : -1);
  const rest = byId("left-off");
  rest.hidden = picture.leftOff === 0;
  text(rest, `and ${picture.leftOff} more: find them by name`);
}

function makeRow(one) {
  return h("li", {},
    h("a", { href: hrefOf(one) },
      h("span", { class: "who" }, h("strong"), h("small")),
      h("span", { class: "size" }),
      chip(one.state, one.since)));
}

function updateRow(row, one, chosen) {
  const link = row.firstChild;
  const [who, size, state] = link.children;
  text(who.firstChild, one.name);
  text(who.lastChild, one.namespace);
  text(size, one.current === one.replicas ? one.replicas : `${one.current} → ${one.replicas}`);
  paint(state, one.state, one.since);
  mark(link, "aria-current", `${one.namespace}/${one.name}` === chosen ? "true" : null);
  mark(link, "aria-label",
    `${one.namespace}/${one.name}, ${one.state}, ${one.current} replicas` +
      (one.current === one.replicas ? "" : `, going to ${one.replicas}`));
}

export function showStates(picture, wished, choose) {
  const all = [["all", picture.total], ...Object.entries(picture.counts)];
  keyed(byId("states"), all, ([state]) => state, ([state]) => {
    const button = h("button", { type: "button" }, h("span"), h("b"));
    button.addEventListener("click", () => choose(state === "all" ? "" : state));
    return button;
  }, (button, [state, count]) => {
    text(button.firstChild, state);
    text(button.lastChild, count);
    mark(button, "data-tone", state === "all" ? "plain" : toneOf(state));
    mark(button, "aria-pressed", (state === "all" ? "" : state) === wished);
  });
}

// Arrow keys walk the list; only one entry is a stop of the tab key.
export function walk(event) {
  const links = [...byId("list").querySelectorAll("a")];
  const here = links.indexOf(document.activeElement);
  const there = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: links.length - 1 }[event.key];
  if (here < 0 || there === undefined) return;
  event.preventDefault();
  const next = links[Math.min(Math.max(there, 0), links.length - 1)];
  for (const link of links) mark(link, "tabindex", link === next ? 0 : -1);
  next.focus();
}
