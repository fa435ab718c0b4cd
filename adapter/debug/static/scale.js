// Numbers to places on paper.

export function linear(from, to, start, end) {
  const width = to - from || 1;
  return (value) => start + ((value - from) / width) * (end - start);
}

// Round numbers from zero to at least the largest, three or four of them.
export function ticks(largest, most = 3) {
  const rough = Math.max(largest, 1e-9) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= rough);
  const found = [];
  for (let value = 0; value < largest + step * 0.999; value += step) found.push(Number(value.toPrecision(6)));
  return found;
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

export function times(from, to, most) {
  const step = (STEPS.find((one) => (to - from) / 1000 / one <= most) ?? 86400) * 1000;
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return { found, seconds: step < 60000 };
}

// A line through points, broken where there is none; a stair where a value holds until the next.
export function path(points, stair = false) {
  let drawn = "";
  let pen = false;
  points.forEach(([x, y]) => {
    if (y === null) {
      pen = false;
      return;
    }
    const at = `${x.toFixed(1)} ${y.toFixed(1)}`;
    if (!pen) drawn += `M${at}`;
    else drawn += stair ? `H${x.toFixed(1)}V${y.toFixed(1)}` : `L${at}`;
    pen = true;
  });
  return drawn;
}

// Stretches of points in a row that are of one kind: each reaches to where the next point begins.
export function stretches(kinds, wanted, xs, end) {
  const found = [];
  kinds.forEach((kind, index) => {
    if (kind !== wanted) return;
    const [start, stop] = [xs[index], xs[index + 1] ?? end];
    if (found.length && found.at(-1).last === index - 1) Object.assign(found.at(-1), { stop, last: index });
    else found.push({ start, stop, last: index });
  });
  return found;
}
