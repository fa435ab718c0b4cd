"""The JSON views of rules, of backends, and of comparisons between the own values and those of the delegate."""

import asyncio
import math
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from adapter.backends.backend import Backend
from adapter.config.model import TenantLimits
from adapter.debug.formatting import Json, format_quantity, format_time
from adapter.debug.trace import fetch_view, rule_fields
from adapter.decoding.problem import Problem
from adapter.errors import AdapterError
from adapter.metrics.comparison import ComparedValue, Comparison, ComparisonResult
from adapter.metrics.fetcher import FetchFailure
from adapter.metrics.read_history import ReadKey, ReadRecord
from adapter.metrics.reader import MetricReader
from adapter.metrics.snapshots import IDLE_INTERVALS, MIN_IDLE_TIMEOUT
from adapter.metrics.tenant_budgets import (
    MAX_CONCURRENT_QUERIES,
    MAX_CONNECTIONS,
    MAX_SERIES,
    QUERIES_PER_MINUTE,
    Usage,
)
from adapter.rules.delegation import Delegate
from adapter.rules.query_builder import snapshot_query
from adapter.rules.rule import DEFAULT_INTERVAL, Rule

_PING_TIMEOUT: Final = 5.0
_RECENT_REFUSAL: Final = 120.0
"""Seconds after a refused query in which its limit counts as reached."""


def rules_view(reader: MetricReader, problems: dict[str, tuple[Problem, ...]]) -> Json:
    """Return the view of all rules; ``problems`` are those of invalid ExternalMetric objects, by key."""
    registry = reader.registry
    reads: dict[int, list[ReadRecord]] = {}
    for key, record in reader.history:
        reads.setdefault(id(registry.rules.find(key.namespace, key.metric)), []).append(record)
    unknown = [
        (key, record)
        for key, record in reader.unknown_reads
        if registry.rules.find(key.namespace, key.metric) is None  # otherwise it has a rule since then
        and not registry.refusal(key.namespace, key.metric)  # listed as invalid
    ]
    return {
        "rules": [_rule(reader, rule, reads.get(id(rule), [])) for rule in registry.rules],
        "unknownMetrics": [_unknown_metric(reader, key, record) for key, record in unknown],
        "invalidRules": [
            *({"rule": name, "problems": [*map(str, found)]} for name, found in registry.invalid_rules.items()),
            *(
                {"rule": f"{metric} of {file}", "problems": [reason]}
                for file, metric, reason in registry.refused_imports
            ),
        ],
        "invalidExternalMetrics": [
            {"object": key, "problems": [*map(str, found)]} for key, found in sorted(problems.items())
        ],
        "reload": {"ok": not registry.reload_problems, "problems": [*map(str, registry.reload_problems)]},
        "queriesSent": reader.sources.fetcher.query_count,
        "tenants": [_tenant(reader.sources.fetcher.budgets.limits, *each) for each in reader.sources.fetcher.budgets],
    }


def _rule(reader: MetricReader, rule: Rule, reads: list[ReadRecord]) -> Json:
    query = snapshot_query(rule)
    result = None if rule.is_template else reader.sources.snapshots.peek(query)
    last_read = max((record.last_read_time for record in reads if record.last_read_time), default=None)
    current = [record for record in reads if _is_current(record, rule, reader.clock())]
    failing = [record for record in current if record.failures]
    since = min((record.first_failure_time for record in failing if record.first_failure_time), default=None)
    price = reader.price_per_day(rule)
    return {
        **rule_fields(rule, reader),
        "origin": reader.registry.origin(rule),
        "backend": query.backend,
        "query": query.text,
        "health": "failing" if failing or isinstance(result, FetchFailure) else "ok" if current else "idle",
        "lastRead": format_time(last_read),
        "lastFetch": fetch_view(result, reader.clock()),
        "readers": len(current),
        "failingReaders": len(failing),
        "firstFailureTime": format_time(since),
        "message": failing[0].message if failing else "",
        "pricePerDay": None if price is None else {"dollars": round(price.dollars, 4), "reason": price.calculation},
    }


def _is_current(record: ReadRecord, rule: Rule, now: datetime) -> bool:
    """Return whether the metric is still read here; a follower that it was once read from knows no later result."""
    max_age = max((rule.interval or DEFAULT_INTERVAL) * IDLE_INTERVALS, MIN_IDLE_TIMEOUT)
    return record.last_read_time is not None and now - record.last_read_time <= max_age


def _unknown_metric(reader: MetricReader, key: ReadKey, record: ReadRecord) -> Json:
    return {
        "namespace": key.namespace,
        "metric": key.metric,
        "similar": list(reader.registry.rules.similar_names(key.namespace, key.metric)),
        "reads": record.reads,
        "failures": record.failures,
        "message": record.message,
        "firstFailureTime": format_time(record.first_failure_time),
        "lastRead": format_time(record.last_read_time),
    }


def _tenant(limits: TenantLimits, namespace: str, usage: Usage) -> Json:
    """Return how much a namespace uses of its limits, and the refused queries of each limit."""
    maxima = {
        QUERIES_PER_MINUTE: limits.queries_per_minute,
        MAX_CONCURRENT_QUERIES: limits.max_concurrent_queries,
        MAX_SERIES: limits.max_series,
    }
    used = {QUERIES_PER_MINUTE: round(maxima[QUERIES_PER_MINUTE] - usage.available_queries), MAX_SERIES: usage.series}
    now = asyncio.get_running_loop().time()
    return {
        "namespace": namespace,
        "limits": [
            {
                "limit": limit,
                "maximum": maxima.get(limit),
                "used": used.get(limit),
                "refusedQueries": usage.refused[limit],
                "isReached": now - usage.refused_at.get(limit, -math.inf) < _RECENT_REFUSAL,
            }
            for limit in (*maxima, MAX_CONNECTIONS)
        ],
    }


async def backends_view(reader: MetricReader) -> Json:
    """Ping all backends concurrently and return which are reachable."""
    backends = reader.sources.fetcher.backends
    results = await asyncio.gather(*(_ping(backend) for backend in backends.values()))
    return {"backends": [{"name": name, **result} for name, result in zip(backends, results, strict=True)]}


async def _ping(backend: Backend) -> Json:
    try:
        async with asyncio.timeout(_PING_TIMEOUT):
            await backend.ping()
    except TimeoutError:
        return {"reachable": False, "error": f"no response within {_PING_TIMEOUT:g}s"}
    except AdapterError as error:
        failure = error.failure.value if error.failure else ""
        return {"reachable": False, "error": ": ".join(part for part in (failure, error.message) if part)}
    return {"reachable": True}


def comparisons_view(comparisons: Iterable[tuple[ReadKey, Comparison]], delegate: Delegate | None) -> Json:
    """Return the view of all comparisons, differences first."""
    rows = sorted(comparisons, key=lambda row: (row[1].result is ComparisonResult.SAME, *row[0][:2]))
    enabled = delegate if delegate is not None and delegate.compare else None
    return {
        "enabled": enabled is not None,
        "delegate": "" if enabled is None else enabled.backend,
        "tolerance": None if enabled is None else enabled.tolerance,
        "differences": sum(comparison.result is not ComparisonResult.SAME for _, comparison in rows),
        "items": [_comparison(key, comparison) for key, comparison in rows],
    }


def _comparison(key: ReadKey, comparison: Comparison) -> Json:
    return {
        "namespace": key.namespace,
        "metric": key.metric,
        "selector": str(key.selector),
        "result": comparison.result.value,
        "local": _compared_value(comparison.local),
        "delegate": _compared_value(comparison.remote),
        "time": format_time(comparison.time),
        "comparisons": comparison.comparisons,
        "differences": comparison.differences,
        "differentSince": format_time(comparison.different_since),
    }


def _compared_value(value: ComparedValue) -> Json:
    return {"value": None if value.milli is None else format_quantity(value.milli), "error": value.error}
