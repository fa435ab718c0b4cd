// The service's clock. It differs from the browser's clock, and in the demo it runs faster.

const samples = [];

export function recordServerTime(header) {
  const server = Date.parse(header ?? "");
  if (Number.isNaN(server)) return;
  samples.push({ server, local: performance.now() });
  while (samples.length > 2 && samples.at(-1).local - samples[0].local > 15000) samples.shift();
}

function rate() {
  if (samples.length < 2 || samples.at(-1).local - samples[0].local < 1500) return 1;
  const measured = (samples.at(-1).server - samples[0].server) / (samples.at(-1).local - samples[0].local);
  return Math.abs(measured - 1) < 0.15 ? 1 : Math.max(measured, 0);
}

export function now() {
  if (!samples.length) return Date.now();
  return samples.at(-1).server + (performance.now() - samples.at(-1).local) * rate();
}

export function formatDuration(milliseconds) {
  const seconds = Math.max(Math.floor(milliseconds / 1000), 0);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const two = (number) => String(number).padStart(2, "0");
  if (hours >= 48) return `${Math.floor(hours / 24)} d`;
  return hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${two(minutes)}:${two(seconds % 60)}`;
}

export function timeOfDay(time) {
  return new Date(time).toISOString().slice(11, 19);
}

// Update every element with data-since (counts up) or data-until (counts down).
export function updateTimers() {
  const time = now();
  for (const node of document.querySelectorAll("[data-since], [data-until]")) {
    const { since, until } = node.dataset;
    const remaining = Date.parse(until) - time;
    const shown = since ? formatDuration(time - Date.parse(since)) : remaining > 0 ? formatDuration(remaining) : "00:00";
    if (node.textContent !== shown) node.textContent = shown;
  }
}
