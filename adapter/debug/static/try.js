// Reads a metric as an autoscaler would, and shows the way there: rule, query, fetch, series, value, and what an HPA hears.

import { byId, h, mark } from "./dom.js";

export async function read(event) {
  event.preventDefault();
  const [namespace, metric, selector] = ["namespace", "metric", "selector"].map((name) => byId(`try-${name}`).value.trim());
  const way = byId("way");
  mark(way, "aria-busy", "true");
  const query = selector ? `?${new URLSearchParams({ labelSelector: selector })}` : "";
  const path = `/debug/metrics/${encodeURIComponent(namespace)}/${encodeURIComponent(metric)}${query}`;
  try {
    const response = await fetch(path, { cache: "no-store" });
    const told = await response.json();
    way.replaceChildren(response.ok ? shown(told) : h("p", { class: "notice" }, told.message));
  } catch {
    way.replaceChildren(h("p", { class: "notice" }, "The service does not answer. Is it still there?"));
  } finally {
    mark(way, "aria-busy", null);
  }
}

export function prefill(namespace = "", metric = "", selector = "") {
  byId("try-namespace").value ||= namespace;
  if (metric) byId("try-metric").value = metric;
  if (selector) byId("try-selector").value = selector;
}

function shown(told) {
  return h("div", {}, verdict(told), h("ol", { class: "working way" }, ...steps(told)));
}

function verdict(told) {
  if (told.error) {
    return h("div", { class: "verdict" }, h("div", {}, h("p", { class: "big bad", id: "way-error" }, told.error.class ?? "refused"),
      h("p", {}, told.error.message), told.error.detail ? h("p", { class: "hint" }, told.error.detail) : null));
  }
  return h("div", { class: "verdict" }, h("div", {}, h("p", { class: "big", id: "way-value" }, h("b", {}, told.value)),
    h("p", { class: "hint" }, `${told.aggregation} of ${told.series.matched} series, ${told.ageSeconds} s old`)));
}

function step(name, said, ...more) {
  return h("li", {}, h("span", { class: "came" }), h("div", {}, h("p", { class: "rule" }, name), h("p", { class: "said" }, said), ...more));
}

function steps(told) {
  const { rule, query, fetch, series, history, hpa } = told;
  const found = [];
  found.push(rule.matched ? step("rule", `${rule.name}, from ${rule.origin}`)
    : step("rule", `none: ${rule.why}`, rule.nearest.length ? h("p", { class: "hint" }, `nearest: ${rule.nearest.join(", ")}`) : null));
  if (query) found.push(step(`query to ${query.backend}`, "", query.text ? h("pre", {}, h("code", {}, query.text)) : null));
  if (fetch) {
    const came = fetch.failed ? `failed: ${fetch.failed}` : `${fetch.series} series`;
    found.push(step("fetched", `${fetch.ageSeconds} s ago, in ${fetch.tookMilliseconds} ms: ${came}`));
  }
  if (series) found.push(step("series", `${series.found} found, ${series.matched} matched`, table(series)));
  if (history?.failures) {
    found.push(step("failing", `since ${history.firstFailureTime}, ${history.failures === 1 ? "1 read" : `${history.failures} reads in a row`}` +
      (history.lastGoodTime ? `; last good: ${history.lastGoodValue} at ${history.lastGoodTime}` : "")));
  }
  found.push(hpa.code === 200 ? step("an HPA hears", `${hpa.sum} (${hpa.items === 1 ? "1 item" : `${hpa.items} items`})`)
    : step("an HPA hears", `${hpa.code} ${hpa.reason}: ${hpa.message}`, h("p", { class: "hint" }, hpa.condition)));
  return found;
}

function table(series) {
  if (!series.items.length) return null;
  const rows = series.items.map((item) => h("tr", { class: item.matched ? "matched" : "unmatched" },
    h("td", {}, item.matched ? "✓" : "–"), h("td", { class: "number" }, item.value),
    h("td", {}, Object.entries(item.labels).map(([key, value]) => `${key}=${value}`).join(", ") || "(no labels)",
      item.matched ? null : h("small", {}, item.why))));
  const head = h("tr", {}, h("th", { scope: "col" }, h("span", { class: "unseen" }, "matched")), h("th", { scope: "col" }, "value"), h("th", { scope: "col" }, "labels"));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Series" },
    h("table", {}, h("thead", {}, head), h("tbody", {}, ...rows)),
    series.leftOff ? h("p", { class: "hint" }, `and ${series.leftOff} more`) : null);
}
