// Every rule with its health; and what is wrong with those that are none.

import { byId, h, keyed, mark, text } from "./dom.js";

const TONES = { ok: "fine", failing: "warn", idle: "hush" };

export function showRules(found) {
  if (!found) return;
  keyed(byId("troubles"), troublesOf(found), (trouble) => trouble, () => h("p", { class: "notice" }), text);
  const gravity = { failing: 0, ok: 1, idle: 2 };
  const inOrder = [...found.rules].sort((a, b) => gravity[a.health] - gravity[b.health] || a.name.localeCompare(b.name));
  keyed(byId("rule-list"), inOrder, (rule) => `${rule.origin} ${rule.name}`, makeRule, updateRule);
}

function troublesOf(found) {
  return [
    ...found.reload.problems.map((problem) => `The configuration could not be reloaded: ${problem}`),
    ...found.broken.flatMap((rule) => rule.problems.map((problem) => `${rule.rule} is no rule: ${problem}`)),
    ...found.externalMetrics.flatMap((one) => one.problems.map((problem) => `${one.object}: ${problem}`)),
  ];
}

function makeRule() {
  return h("li", { class: "card" },
    h("div", { class: "top" }, h("h3"), h("span", { class: "chip" }, h("span"), h("span", { class: "for" }))),
    h("p", { class: "notice" }),
    h("pre", {}, h("code")),
    h("dl", { class: "facts" }),
    h("a", { class: "quiet" }, "Try it"));
}

function updateRule(card, rule) {
  const [top, trouble, query, facts, link] = card.children;
  const [name, health] = top.children;
  text(name, rule.name);
  text(health.firstChild, rule.health);
  mark(health, "data-tone", TONES[rule.health]);
  mark(health.lastChild, "data-since", rule.firstFailureTime);
  if (!rule.firstFailureTime) text(health.lastChild, "");
  const wrong = rule.message || rule.lastFetch?.failed;
  trouble.hidden = !wrong;
  text(trouble, wrong ?? "");
  query.hidden = !rule.query;
  text(query.firstChild, rule.query);
  keyed(facts, factsOf(rule), ([label]) => label, () => h("div", {}, h("dt"), h("dd")), (row, [label, value]) => {
    text(row.firstChild, label);
    if (label === "fetched") mark(row.lastChild, "data-since", value);
    else text(row.lastChild, value);
  });
  const namespace = rule.namespaces.length === 1 ? rule.namespaces[0] : "";
  mark(link, "href", `#/try/${encodeURIComponent(namespace)}/${encodeURIComponent(rule.name)}`);
}

function factsOf(rule) {
  const fetch = rule.lastFetch;
  return [
    ["backend", rule.backend],
    ["from", rule.origin],
    ...(fetch ? [["fetched", fetch.at], ["took", `${fetch.tookMilliseconds} ms`]] : []),
    ...(fetch && "series" in fetch ? [["series", fetch.series]] : []),
    ["every", `${rule.intervalSeconds} s`],
    ["readers", rule.failingReaders ? `${rule.readers}, ${rule.failingReaders} failing` : rule.readers],
  ];
}
