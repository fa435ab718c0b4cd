"""The JSON view of comparisons between the own values and those of the delegate, differences first."""

from collections.abc import Iterable
from typing import Any, TypeAlias

from adapter.debug.formatting import format_quantity, format_time
from adapter.metrics.comparison import ComparedValue, Comparison, ComparisonResult
from adapter.metrics.read_history import ReadKey
from adapter.rules.delegation import Delegate

Json: TypeAlias = dict[str, Any]


def comparisons_view(comparisons: Iterable[tuple[ReadKey, Comparison]], delegate: Delegate | None) -> Json:
    rows = sorted(
        comparisons, key=lambda row: (row[1].result is ComparisonResult.SAME, row[0].namespace, row[0].metric)
    )
    is_enabled = delegate is not None and delegate.compare
    return {
        "enabled": is_enabled,
        "delegate": delegate.backend if delegate is not None and is_enabled else "",
        "tolerance": delegate.tolerance if delegate is not None and is_enabled else None,
        "differences": sum(comparison.result is not ComparisonResult.SAME for _, comparison in rows),
        "items": [_item(key, comparison) for key, comparison in rows],
    }


def _item(key: ReadKey, comparison: Comparison) -> Json:
    return {
        "namespace": key.namespace,
        "metric": key.metric,
        "selector": str(key.selector),
        "result": comparison.result.value,
        "local": _value(comparison.local),
        "delegate": _value(comparison.remote),
        "time": format_time(comparison.time),
        "comparisons": comparison.comparisons,
        "differences": comparison.differences,
        "differentSince": format_time(comparison.different_since),
    }


def _value(value: ComparedValue) -> Json:
    return {"value": None if value.milli is None else format_quantity(value.milli), "error": value.error}
