// The service's clock, not the browser's: they may differ, and in the demonstration a day passes in minutes.

const looks = [];

export function note(header) {
  const told = Date.parse(header ?? "");
  if (Number.isNaN(told)) return;
  looks.push({ told, at: performance.now() });
  while (looks.length > 2 && looks.at(-1).at - looks[0].at > 15000) looks.shift();
}

function rate() {
  if (looks.length < 2 || looks.at(-1).at - looks[0].at < 1500) return 1;
  const measured = (looks.at(-1).told - looks[0].told) / (looks.at(-1).at - looks[0].at);
  return Math.abs(measured - 1) < 0.15 ? 1 : Math.max(measured, 0);
}

export function now() {
  if (!looks.length) return Date.now();
  return looks.at(-1).told + (performance.now() - looks.at(-1).at) * rate();
}

export function span(milliseconds) {
  const seconds = Math.max(Math.floor(milliseconds / 1000), 0);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const two = (number) => String(number).padStart(2, "0");
  if (hours >= 48) return `${Math.floor(hours / 24)} d`;
  return hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${two(minutes)}:${two(seconds % 60)}`;
}

export function timeOfDay(moment) {
  return new Date(moment).toISOString().slice(11, 19);
}

// Any element with data-since counts up, any with data-until counts down.
export function tick() {
  const at = now();
  for (const node of document.querySelectorAll("[data-since], [data-until]")) {
    const { since, until } = node.dataset;
    const left = Date.parse(until) - at;
    const shown = since ? span(at - Date.parse(since)) : left > 0 ? span(left) : "a moment";
    if (node.textContent !== shown) node.textContent = shown;
  }
}
