// Scales, ticks, SVG paths, labels and patterns of charts, also of the report of a simulation.

import { s } from "./dom.js";

export function linear(from, to, start, end) {
  const width = to - from || 1;
  return (value) => start + ((value - from) / width) * (end - start);
}

// Return three or four round numbers from zero to at least the maximum.
export function ticks(maximum, count = 3) {
  const rough = Math.max(maximum, 1e-9) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
  const values = [];
  for (let value = 0; value < maximum + step * 0.999; value += step) values.push(Number(value.toPrecision(6)));
  return values;
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

export function timeTicks(from, to, maxCount) {
  const step = (TIME_STEPS.find((seconds) => (to - from) / 1000 / seconds <= maxCount) ?? 86400) * 1000;
  const times = [];
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) times.push(time);
  return { times, showSeconds: step < 60000 };
}

// Return a path through the points, interrupted at null values; with steps, each value holds until the next point.
export function path(points, steps = false) {
  let drawn = "";
  let isInterrupted = true;
  points.forEach(([x, y]) => {
    if (y === null) {
      isInterrupted = true;
      return;
    }
    const point = `${x.toFixed(1)} ${y.toFixed(1)}`;
    if (isInterrupted) drawn += `M${point}`;
    else drawn += steps ? `H${x.toFixed(1)}V${y.toFixed(1)}` : `L${point}`;
    isInterrupted = false;
  });
  return drawn;
}

// Return the ranges of consecutive points in a state; each point extends to the next one.
export function ranges(states, wanted, xs, end) {
  const found = [];
  states.forEach((state, index) => {
    if (state !== wanted) return;
    const [start, stop] = [xs[index], xs[index + 1] ?? end];
    if (found.length && found.at(-1).last === index - 1) Object.assign(found.at(-1), { stop, last: index });
    else found.push({ start, stop, last: index });
  });
  return found;
}

export const known = (values) => values.filter((value) => value !== null);

export function truncated(text, width) {
  const maxLength = Math.floor(width / 7.5);
  return text.length > maxLength ? `${text.slice(0, maxLength - 1)}…` : text;
}

export function abbreviated(value) {
  if (value >= 1e6) return `${value / 1e6}M`;
  return value >= 1e4 ? `${value / 1e3}k` : `${value}`;
}

export function hatchPattern() {
  return s("defs", {}, s("pattern", { id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    s("rect", { class: "hatch-ground", width: 7, height: 7 }), s("line", { class: "hatch-line", x1: 0, x2: 0, y1: 0, y2: 7 })));
}
