// All rules with their health, and the problems of invalid rules.

import { byId, counted, h, keyed, setAttribute, setText } from "./dom.js";
import { RULE_KEY } from "./overview.js";

const TONES = { failing: "warning", ok: "ok", idle: "muted" };
const RANKS = Object.keys(TONES);

export function showRules(view) {
  if (!view) return;
  keyed(byId("problems"), problemsOf(view), (problem) => problem, () => h("p", { class: "notice" }), setText);
  const sorted = [...view.rules].sort((a, b) => RANKS.indexOf(a.health) - RANKS.indexOf(b.health) || a.name.localeCompare(b.name));
  keyed(byId("rule-list"), sorted, RULE_KEY, makeRule, updateRule);
}

function problemsOf(view) {
  return [
    ...view.reload.problems.map((problem) => `Configuration reload failed: ${problem}`),
    ...view.invalidRules.flatMap((rule) => rule.problems.map((problem) => `Invalid rule ${rule.rule}: ${problem}`)),
    ...view.tenants.flatMap((tenant) => tenant.limits.filter((limit) => limit.isReached).map((limit) => reached(tenant, limit))),
    ...view.invalidExternalMetrics.flatMap((metric) => metric.problems.map((problem) => `${metric.object}: ${problem}`)),
  ];
}

function reached(tenant, limit) {
  const maximum = limit.maximum === null ? "" : ` of ${limit.maximum}`;
  return `Namespace ${tenant.namespace} has reached ${limit.limit}${maximum}: ${counted(limit.refusedQueries, "query", "queries")} refused`;
}

function makeRule() {
  return h("li", { class: "card" },
    h("div", { class: "top" }, h("h3"), h("span", { class: "chip" }, h("span"), h("span", { class: "duration" }))),
    h("p", { class: "notice" }),
    h("pre", {}, h("code")),
    h("dl", { class: "facts" }),
    h("a", { class: "quiet" }, "Read this metric"));
}

function updateRule(card, rule) {
  const [top, notice, query, facts, link] = card.children;
  const [name, health] = top.children;
  setText(name, rule.name);
  setText(health.firstChild, rule.health);
  setAttribute(health, "data-tone", TONES[rule.health]);
  setAttribute(health.lastChild, "data-since", rule.firstFailureTime);
  if (!rule.firstFailureTime) setText(health.lastChild, "");
  const error = rule.message || rule.lastFetch?.error;
  notice.hidden = !error;
  setText(notice, error ?? "");
  query.hidden = !rule.query;
  setText(query.firstChild, rule.query);
  keyed(facts, factsOf(rule), ([label]) => label, () => h("div", {}, h("dt"), h("dd")), (row, [label, value]) => {
    setText(row.firstChild, label);
    if (label.startsWith("last ")) setAttribute(row.lastChild, "data-since", value);
    else setText(row.lastChild, value);
  });
  const namespace = rule.namespaces.length === 1 ? rule.namespaces[0] : "";
  setAttribute(link, "href", `#/read/${encodeURIComponent(namespace)}/${encodeURIComponent(rule.name)}`);
}

function factsOf(rule) {
  const fetch = rule.lastFetch;
  return [
    ["backend", rule.backend],
    ["defined in", rule.origin],
    ...(fetch ? [["last fetch", fetch.time], ["duration", `${fetch.durationMilliseconds} ms`]] : []),
    ...(fetch && "series" in fetch ? [["series", fetch.series]] : []),
    ...(rule.health === "idle" && rule.lastRead ? [["last read", rule.lastRead]] : []),
    ["interval", `${rule.intervalSeconds} s${rule.intervalIsAdaptive ? " (adaptive)" : ""}`],
    ["readers", rule.failingReaders ? `${rule.readers} (${rule.failingReaders} failing)` : rule.readers],
  ];
}
