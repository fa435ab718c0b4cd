"""The JSON view of all metrics that can be read, with value, age and health. Nothing is fetched for it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from adapter.debug.formatting import Json, format_quantity, format_time
from adapter.decoding.problem import Problem
from adapter.metrics.read_history import ReadKey, ReadRecord
from adapter.metrics.reader import MetricReader
from adapter.rules.rule import Rule
from autoscaler.values.selector import Selector

MAX_ROWS: Final = 2000
IDLE_AFTER: Final = timedelta(minutes=5)
"""A metric that was not read for so long is idle: its last value says nothing about now."""


def metric_list_view(reader: MetricReader, problems: Mapping[str, Sequence[Problem]], namespace: str = "") -> Json:
    """Return the metrics of a namespace, or of all; a metric that is read with several selectors has several rows.

    ``problems`` are those of invalid ExternalMetric objects, by key.
    """
    found = _rows(reader, problems, namespace)
    rows = sorted(found, key=lambda row: (row["namespace"], row["metric"], row["selector"]))
    return {"namespace": namespace or None, "metrics": rows[:MAX_ROWS], "omitted": max(len(rows) - MAX_ROWS, 0)}


def _rows(reader: MetricReader, problems: Mapping[str, Sequence[Problem]], namespace: str) -> Iterator[Json]:
    rules, read, now = reader.registry.rules, set[int](), reader.clock()
    for key, record in reader.history:
        rule = rules.find(key.namespace, key.metric)
        if rule is None or (namespace and key.namespace != namespace):
            continue
        read.add(id(rule))
        yield _read_row(reader, rule, key, record, now)
    for rule in rules:
        if id(rule) not in read and (not namespace or not rule.namespaces or namespace in rule.namespaces):
            for scope in [namespace] if namespace else rule.namespaces or ("*",):
                yield _row(reader, rule, ReadKey(scope, rule.name, Selector()), "idle")
    for name, found in problems.items():
        scope, _, metric = name.partition("/")
        if not namespace or scope == namespace:
            message = "; ".join(map(str, found))
            yield {**_EMPTY, "namespace": scope, "metric": metric, "health": "invalid", "message": message}


def _read_row(reader: MetricReader, rule: Rule, key: ReadKey, record: ReadRecord, now: datetime) -> Json:
    """Return the row of a metric that is read, as of its last read."""
    is_idle = record.last_read_time is None or now - record.last_read_time > IDLE_AFTER
    health = "idle" if is_idle else "failing" if record.failures else "ok"
    row = _row(reader, rule, key, health)
    if record.last_good_milli is not None:
        row["value"], row["valueTime"] = format_quantity(record.last_good_milli), format_time(record.last_good_time)
        row["ageSeconds"] = _age(record.last_good_time, now)
    if record.failures:
        row["since"], row["message"] = format_time(record.first_failure_time), record.message
    if health == "ok" and (samples := reader.peek(*key).samples):
        row["ageSeconds"] = _age(min(sample.at for sample in samples), now)
    return row


_EMPTY: Final[Json] = {
    "namespace": "",
    "metric": "",
    "selector": "",
    "value": None,
    "valueTime": None,
    "ageSeconds": None,
    "health": "",
    "since": None,
    "message": "",
    "backend": "",
    "origin": "",
}


def _row(reader: MetricReader, rule: Rule, key: ReadKey, health: str) -> Json:
    scope, metric, selector = key
    names = {"namespace": scope, "metric": metric, "selector": str(selector), "health": health}
    return {**_EMPTY, **names, "backend": rule.backend, "origin": reader.registry.origin(rule)}


def _age(time: datetime | None, now: datetime) -> float | None:
    return None if time is None else round((now - time).total_seconds(), 3)
