// Long polling: one request is always pending; its response updates the page.

import { formatDuration, recordServerTime, updateTimers } from "./clock.js";
import { focusTitle, showDetail } from "./detail.js";
import { byId, counted, setAttribute, setText } from "./dom.js";
import { dateAndTime } from "./history.js";
import { keyOf, moveFocus, showList, showStates } from "./list.js";
import { applyDelta } from "./overview.js";
import { prefill, readMetric } from "./read.js";
import { showRules } from "./rules.js";

const PAUSE = 400; // milliseconds between requests, to limit the browser's load with a large fleet
const VIEWS = ["autoscalers", "rules", "read"];

let route = { view: "autoscalers", rest: [] };
let stateFilter = "";
let etag = null;
let connectionError = null;
let pending = new AbortController();
let announced = "";
let shown = null; // the last overview, which the next delta changes
let focusOnLoad = false; // the user has just opened an autoscaler: move the focus to its title

// --- Routing -----------------------------------------------------------------------------------------------------

function readRoute() {
  let parts = [];
  try {
    parts = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    parts = []; // malformed percent-encoding
  }
  const view = VIEWS.includes(parts[0]) ? parts[0] : "autoscalers";
  return { view, rest: parts.slice(1) };
}

const selected = () => (route.view === "autoscalers" && route.rest.length >= 2 ? route.rest.slice(0, 2).join("/") : "");
const moment = () => (selected() && route.rest[2] === "at" && !Number.isNaN(Date.parse(route.rest[3])) ? new Date(route.rest[3]).toISOString() : "");

function navigate() {
  if (location.hash === "#content") return; // the skip link
  const previous = selected();
  route = readRoute();
  for (const view of VIEWS) byId(view).hidden = view !== route.view;
  for (const link of document.querySelectorAll("nav a")) setAttribute(link, "aria-current", link.dataset.view === route.view ? "page" : null);
  setAttribute(document.body, "data-selected", selected() || null);
  if (route.view === "read") prefill(...route.rest);
  if (previous && selected() === previous && shown) showDetail(shown, previous, moment()); // another moment
  else restart();
  if (selected() && selected() !== previous) focusOnLoad = true;
}

// --- Polling -----------------------------------------------------------------------------------------------------

function queryString() {
  const query = new URLSearchParams({ delta: "1" });
  if (byId("filter").value.trim()) query.set("text", byId("filter").value.trim());
  if (stateFilter) query.set("state", stateFilter);
  if (selected()) query.set("selected", selected());
  if (route.view === "rules") query.set("rules", "1");
  return query.toString();
}

function restart() {
  etag = null;
  pending.abort();
}

async function fetchOverview() {
  pending = new AbortController();
  const { signal } = pending;
  const response = await fetch(`/debug/overview?${queryString()}`, {
    cache: "no-store", signal, headers: etag ? { "If-None-Match": etag } : {},
  });
  if (response.status !== 200 && response.status !== 304) {
    const body = await response.json().catch(() => ({}));
    throw new Error(body.message ?? `HTTP ${response.status}`);
  }
  recordServerTime(response.headers.get("X-Now"));
  if (response.status === 304) return;
  const body = await response.json();
  if (signal.aborted) return;
  etag = response.headers.get("ETag");
  show(body.base ? applyDelta(shown, body) : body);
}

function show(overview) {
  shown = overview;
  showStates(overview, stateFilter, setStateFilter);
  showList(overview, selected());
  showDetail(overview, selected(), moment());
  showNotice(overview);
  showRules(overview.rules);
  const badge = byId("rules-failing");
  badge.hidden = overview.rulesFailing.length === 0;
  setText(badge, overview.rulesFailing.length);
  setAttribute(badge, "aria-label", `${overview.rulesFailing.length} failing`);
  announce(overview.selected);
  updateTimers();
  if (focusOnLoad && overview.selected) {
    focusOnLoad = false;
    focusTitle();
  }
}

function showNotice(overview) {
  const problems = [missingReplicas(overview.missingReplicas), overview.historyProblem, overview.outdatedSince && `This replica is no longer the leader${overview.leader ? ` (the leader is ${overview.leader})` : ""}: its decisions end at ${dateAndTime(overview.outdatedSince)}`];
  const text = problems.filter(Boolean).join("; ");
  byId("notice").hidden = !text;
  setText(byId("notice"), text && `${text.charAt(0).toUpperCase()}${text.slice(1)}.`);
}

function missingReplicas(addresses) {
  return addresses && `Incomplete: no response from ${addresses.length === 1 ? "replica" : "replicas"} ${addresses.join(", ")}, whose autoscalers are not shown`;
}

function announce(autoscaler) {
  const title = autoscaler ? `${keyOf(autoscaler)}: ${autoscaler.state}` : "";
  const message = title && `${title}, ${counted(autoscaler.replicas, "replica")}`;
  if (message !== announced) setText(byId("announcements"), message);
  announced = message;
  document.title = title || "Steadyscale";
}

async function poll() {
  for (;;) {
    try {
      await fetchOverview();
      connectionError = null;
    } catch (error) {
      if (error.name === "AbortError") continue;
      connectionError ??= { since: performance.now(), message: error instanceof TypeError ? "no response" : error.message };
      showConnection();
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    showConnection();
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

function showConnection() {
  const error = connectionError;
  setAttribute(byId("connection"), "data-lost", error ? "" : null);
  setText(byId("connection-text"), error ? `Disconnected: ${error.message}` : "Connected");
  setAttribute(byId("connection"), "title", error ? `for ${formatDuration(performance.now() - error.since)}` : null);
}

// --- Events ------------------------------------------------------------------------------------------------------

function setStateFilter(state) {
  stateFilter = state;
  restart();
}

byId("filter").addEventListener("input", restart);
byId("filter").addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown") return;
  event.preventDefault();
  byId("list").querySelector("a")?.focus();
});
byId("list").addEventListener("keydown", moveFocus);
byId("read-form").addEventListener("submit", readMetric);
window.addEventListener("hashchange", navigate);
setInterval(updateTimers, 250);
navigate();
poll();
