// Follows the service: one request is always waiting for news, and what it brings is shown where it belongs.

import { note, span, tick } from "./clock.js";
import { focusTitle, showDetail } from "./detail.js";
import { byId, mark, text } from "./dom.js";
import { showList, showStates, walk } from "./list.js";
import { showRules } from "./rules.js";
import { prefill, read } from "./try.js";

const BREATH = 400; // milliseconds between two requests, so that a large fleet does not keep the browser busy
const VIEWS = ["autoscalers", "rules", "try"];

let route = { view: "autoscalers", rest: [] };
let state = "";
let tag = null;
let lost = null;
let asking = new AbortController();
let announced = "";

// --- where we are ------------------------------------------------------------------------------------------------

function readRoute() {
  let parts = [];
  try {
    parts = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    parts = []; // a hash that nobody made here
  }
  const view = VIEWS.includes(parts[0]) ? parts[0] : "autoscalers";
  return { view, rest: parts.slice(1) };
}

const chosen = () => (route.view === "autoscalers" && route.rest.length === 2 ? route.rest.join("/") : "");

function go() {
  if (location.hash === "#content") return; // the link that skips
  const before = chosen();
  route = readRoute();
  for (const view of VIEWS) byId(view).hidden = view !== route.view;
  for (const link of document.querySelectorAll("nav a")) mark(link, "aria-current", link.dataset.view === route.view ? "page" : null);
  mark(document.body, "data-chosen", chosen() || null);
  if (route.view === "try") prefill(...route.rest);
  again();
  if (chosen() && chosen() !== before) arrive = true;
}

let arrive = false; // someone has just opened an autoscaler: take them to it

// --- the picture -------------------------------------------------------------------------------------------------

function wish() {
  const wanted = new URLSearchParams();
  if (byId("filter").value.trim()) wanted.set("text", byId("filter").value.trim());
  if (state) wanted.set("state", state);
  if (chosen()) wanted.set("selected", chosen());
  if (route.view === "rules") wanted.set("rules", "1");
  return wanted.toString();
}

function again() {
  tag = null;
  asking.abort();
}

async function ask() {
  asking = new AbortController();
  const { signal } = asking;
  const response = await fetch(`/debug/picture?${wish()}`, {
    cache: "no-store", signal, headers: tag ? { "If-None-Match": tag } : {},
  });
  if (response.status !== 200 && response.status !== 304) {
    const why = await response.json().catch(() => ({}));
    throw new Error(why.message ?? `the service answers ${response.status}`);
  }
  note(response.headers.get("X-Now"));
  if (response.status === 304) return;
  const picture = await response.json();
  if (signal.aborted) return;
  tag = response.headers.get("ETag");
  show(picture);
}

function show(picture) {
  showStates(picture, state, choose);
  showList(picture, chosen());
  showDetail(picture, chosen());
  showRules(picture.rules);
  const badge = byId("rules-failing");
  badge.hidden = picture.rulesFailing.length === 0;
  text(badge, picture.rulesFailing.length);
  mark(badge, "aria-label", `${picture.rulesFailing.length} failing`);
  announce(picture.selected);
  tick();
  if (arrive && picture.selected) {
    arrive = false;
    focusTitle();
  }
}

function announce(one) {
  const told = one ? `${one.namespace}/${one.name}: ${one.state}, ${one.replicas} replicas` : "";
  if (told !== announced) text(byId("announcements"), told);
  announced = told;
  document.title = one ? `${one.namespace}/${one.name}: ${one.state}` : "Steadyscale";
}

async function follow() {
  for (;;) {
    try {
      await ask();
      lost = null;
    } catch (error) {
      if (error.name === "AbortError") continue;
      lost ??= { since: performance.now(), why: error instanceof TypeError ? "no answer" : error.message };
      contact();
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    contact();
    await new Promise((resolve) => setTimeout(resolve, BREATH));
  }
}

function contact() {
  mark(byId("contact"), "data-lost", lost ? "" : null);
  text(byId("contact-text"), lost ? `Lost contact (${lost.why})` : "Live");
  mark(byId("contact"), "title", lost ? `since ${span(performance.now() - lost.since)}` : null);
}

// --- hands -------------------------------------------------------------------------------------------------------

function choose(wanted) {
  state = wanted;
  again();
}

byId("filter").addEventListener("input", again);
byId("filter").addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown") return;
  event.preventDefault();
  byId("list").querySelector("a")?.focus();
});
byId("list").addEventListener("keydown", walk);
byId("try-form").addEventListener("submit", read);
window.addEventListener("hashchange", go);
setInterval(tick, 250);
go();
follow();
