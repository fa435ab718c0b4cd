// The overview that the page shows, updated by deltas that contain only changed rows.

const AUTOSCALER_KEY = (row) => `${row.namespace}/${row.name}`;
export const RULE_KEY = (rule) => `${rule.origin} ${rule.name} ${rule.namespaces.join()}`;

// Return the overview after a delta; the inverse of `overview_delta` of the service.
export function applyDelta(base, delta) {
  const overview = { ...base, ...delta.fields };
  for (const name of delta.gone) delete overview[name];
  if (delta.autoscalers) overview.autoscalers = sorted(patched(base.autoscalers, delta.autoscalers, AUTOSCALER_KEY), overview.counts);
  if (delta.rules) overview.rules = { ...delta.rules, rules: patched(base.rules.rules, delta.rules.rules, RULE_KEY) };
  if (delta.timeline) overview.selected.timeline = extended(base.selected.timeline, delta.timeline);
  return overview;
}

function patched(rows, { changed, removed }, keyOf) {
  const byKey = new Map(rows.map((row) => [keyOf(row), row]));
  for (const key of removed) byKey.delete(key);
  for (const row of changed) byKey.set(keyOf(row), row);
  return [...byKey.values()];
}

// Sort as the service does: most severe state first, then by key. The counts are in the order of severity.
function sorted(rows, counts) {
  const ranks = new Map(Object.keys(counts).map((state, rank) => [state, rank]));
  const order = rows.map((row) => ({ row, rank: ranks.get(row.state), key: AUTOSCALER_KEY(row) }));
  order.sort((a, b) => a.rank - b.rank || (a.key < b.key ? -1 : 1));
  return order.map(({ row }) => row);
}

function extended(timeline, { drop, keep, added }) {
  const column = (old, more) => [...old.slice(drop, drop + keep), ...more];
  const metrics = added.metrics.map((metric, index) => ({
    name: metric.name,
    ...Object.fromEntries(["value", "target", "proposal", "state"].map((name) => [name, column(timeline.metrics[index][name], metric[name])])),
  }));
  return { ...Object.fromEntries(["time", "current", "replicas"].map((name) => [name, column(timeline[name], added[name])])), metrics };
}
