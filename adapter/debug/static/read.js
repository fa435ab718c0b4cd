// Reads a metric as an HPA does, and shows the trace: rule, query, fetch, series, value, response to the HPA.

import { byId, h, setAttribute } from "./dom.js";

export async function readMetric(event) {
  event.preventDefault();
  const [namespace, metric, selector] = ["namespace", "metric", "selector"].map((name) => byId(`read-${name}`).value.trim());
  const output = byId("trace");
  setAttribute(output, "aria-busy", "true");
  const query = selector ? `?${new URLSearchParams({ labelSelector: selector })}` : "";
  const path = `/debug/metrics/${encodeURIComponent(namespace)}/${encodeURIComponent(metric)}${query}`;
  try {
    const response = await fetch(path, { cache: "no-store" });
    const trace = await response.json();
    output.replaceChildren(response.ok ? h("div", {}, result(trace), h("ol", { class: "steps trace" }, ...steps(trace)))
      : h("p", { class: "notice" }, trace.message));
  } catch {
    output.replaceChildren(h("p", { class: "notice" }, "The service did not respond."));
  } finally {
    setAttribute(output, "aria-busy", null);
  }
}

export function prefill(namespace = "", metric = "", selector = "") {
  byId("read-namespace").value ||= namespace;
  if (metric) byId("read-metric").value = metric;
  if (selector) byId("read-selector").value = selector;
}

function result({ error, value, aggregation, series, ageSeconds }) {
  if (error) {
    return h("div", { class: "result" }, h("div", {}, h("p", { class: "big bad", id: "trace-error" }, error.class ?? "rejected"),
      h("p", {}, error.message), error.detail ? h("p", { class: "hint" }, error.detail) : null));
  }
  return h("div", { class: "result" }, h("div", {}, h("p", { class: "big", id: "trace-value" }, h("b", {}, value)),
    h("p", { class: "hint" }, `${aggregation} of ${series.matched} series, ${ageSeconds} s old`)));
}

function step(name, text, ...more) {
  return h("li", {}, h("span", { class: "output" }), h("div", {}, h("p", { class: "rule" }, name), h("p", { class: "text" }, text), ...more));
}

function steps({ rule, query, fetch, series, history, hpa }) {
  const nodes = [];
  nodes.push(rule.matched ? step("rule", `${rule.name}, from ${rule.origin}`)
    : step("rule", `none: ${rule.reason}`, rule.similar.length ? h("p", { class: "hint" }, `similar: ${rule.similar.join(", ")}`) : null));
  if (query) nodes.push(step(`query to ${query.backend}`, "", query.text ? h("pre", {}, h("code", {}, query.text)) : null));
  if (fetch) {
    const outcome = fetch.error ? `failed: ${fetch.error}` : `${fetch.series} series`;
    nodes.push(step("fetched", `${fetch.ageSeconds} s ago, in ${fetch.durationMilliseconds} ms: ${outcome}`));
  }
  if (series) nodes.push(step("series", `${series.total} found, ${series.matched} matched`, table(series)));
  if (history?.failures) {
    nodes.push(step("failing", `since ${history.firstFailureTime}, ${history.failures === 1 ? "1 read" : `${history.failures} consecutive reads`}` +
      (history.lastValueTime ? `; last value: ${history.lastValue} at ${history.lastValueTime}` : "")));
  }
  nodes.push(hpa.code === 200 ? step("response to an HPA", `${hpa.sum} (${hpa.items === 1 ? "1 item" : `${hpa.items} items`})`)
    : step("response to an HPA", `${hpa.code} ${hpa.reason}: ${hpa.message}`, h("p", { class: "hint" }, hpa.condition)));
  return nodes;
}

function table(series) {
  if (!series.items.length) return null;
  const rows = series.items.map((item) => h("tr", { class: item.matched ? "matched" : "unmatched" },
    h("td", {}, item.matched ? "✓" : "–"), h("td", { class: "number" }, item.value),
    h("td", {}, Object.entries(item.labels).map(([key, value]) => `${key}=${value}`).join(", ") || "(no labels)",
      item.matched ? null : h("small", {}, item.reason))));
  const head = h("tr", {}, h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, "matched")),
    h("th", { scope: "col" }, "value"), h("th", { scope: "col" }, "labels"));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Series" },
    h("table", {}, h("thead", {}, head), h("tbody", {}, ...rows)),
    series.omitted ? h("p", { class: "hint" }, `and ${series.omitted} more`) : null);
}
