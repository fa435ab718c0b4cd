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

// Format a duration with the units that matter: 45 s, 10 min, 3 h 5 min, 4 d.
export function formatDuration(milliseconds) {
  const { days, hours, minutes, seconds } = parts(milliseconds);
  if (days >= 2) return `${days} d`;
  if (days || hours) return `${days * 24 + hours} h${minutes ? ` ${minutes} min` : ""}`;
  return minutes ? `${minutes} min` : `${seconds} s`;
}

// Format a duration that counts down: with seconds below an hour.
export function formatCountdown(milliseconds) {
  const { days, hours, minutes, seconds } = parts(milliseconds);
  return minutes && !hours && !days ? `${minutes} min ${String(seconds).padStart(2, "0")} s` : formatDuration(milliseconds);
}

function parts(milliseconds) {
  const total = Math.max(Math.floor(milliseconds / 1000), 0);
  return { days: Math.floor(total / 86400), hours: Math.floor(total / 3600) % 24, minutes: Math.floor(total / 60) % 60, seconds: total % 60 };
}

export function timeOfDay(time) {
  return new Date(time).toISOString().slice(11, 19);
}

// Update every element with data-since (counts up) or data-until (counts down).
export function updateTimers() {
  const time = now();
  for (const node of document.querySelectorAll("[data-since], [data-until]")) {
    const { since, until } = node.dataset;
    const shown = since ? formatDuration(time - Date.parse(since)) : formatCountdown(Date.parse(until) - time);
    if (node.textContent !== shown) node.textContent = shown;
  }
}
