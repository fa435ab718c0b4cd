"""One read of one metric with the way there: rule, query, series, which of them matched and why, value, and the HPA."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final, TypeAlias

from adapter.debug.formatting import labels_of, number, seconds, time
from adapter.metrics.fetcher import Failed
from adapter.metrics.read_history import Read
from adapter.metrics.reader import Look, RuleReader
from adapter.rules.rule import Rule
from adapter.sample import RawSample
from autoscaler.values.selector import LabelSelector, LabelSelectorRequirement, Selector, go_syntax

Json: TypeAlias = dict[str, Any]

MOST_SERIES: Final = 100
"""As many series are shown; those that matched come first."""


_OBJECT_OPERATORS: Final = {"in": "In", "notin": "NotIn", "!=": "NotIn", "exists": "Exists", "!": "DoesNotExist"}


def way(look: Look, reader: RuleReader) -> Json:
    """Say how a read went, step by step, in the order in which it was done."""
    now = reader.clock()
    namespace, metric, selector = look.asked
    return {
        "asked": {"namespace": namespace, "metric": metric, "selector": str(selector)},
        "rule": _rule(look, reader),
        "query": None if look.query is None else {"backend": look.query.backend, "text": look.query.text},
        "fetch": _fetch(look, now),
        "series": _series(look, now),
        "aggregation": None if look.rule is None else look.rule.aggregation.value,
        "value": None if look.error or not look.samples else number(sum(sample.milli for sample in look.samples)),
        "ageSeconds": seconds(now - min(sample.at for sample in look.samples)) if look.samples else None,
        "error": _error(look),
        "history": history(reader.memory_of(look).peek(look.asked)),
        "hpa": _hpa(look),
    }


def _rule(look: Look, reader: RuleReader) -> Json:
    if look.rule is not None:
        return {"matched": True, **described(look.rule), "origin": reader.origin(look.rule)}
    namespace, metric, _ = look.asked
    why = f"no rule has the name {metric!r}"
    if elsewhere := reader.book.rules.elsewhere(metric):
        why = f"{metric!r} is defined, but only in: {', '.join(elsewhere)}"
    nearest = reader.book.rules.nearest(namespace, metric)
    return {"matched": False, "why": why, "nearest": list(nearest)}


def described(rule: Rule) -> Json:
    """Say what a rule is, with what it does not say itself."""
    belongs = rule.namespacing
    return {
        "name": rule.name,
        "aliases": list(rule.aliases),
        "namespaces": list(rule.namespaces),
        "namespaceLabel": belongs.label,
        "namespaceFixed": belongs.fixed,
        "labels": list(rule.labels),
        "template": rule.is_template,
        "intervalSeconds": seconds(rule.interval),
        "maxSampleAgeSeconds": seconds(rule.max_sample_age),
        "deadlineSeconds": seconds(rule.deadline),
        "onEmpty": rule.on_empty.value,
        "onNaN": rule.on_nan.value,
        "onOutOfRange": rule.on_out_of_range.value,
        "onTooOld": rule.on_too_old.value,
    }


def _fetch(look: Look, now: datetime) -> Json | None:
    if look.outcome is None:
        return None
    found: Json = {
        "at": time(look.outcome.at),
        "ageSeconds": seconds(now - look.outcome.at),
        "tookMilliseconds": round(look.outcome.took / timedelta(milliseconds=1), 1),
    }
    if isinstance(look.outcome, Failed):
        error = look.outcome.error
        return {**found, "failed": error.message or str(error.failure), "detail": getattr(error, "detail", "")}
    return {**found, "series": len(look.outcome.rows)}


def _series(look: Look, now: datetime) -> Json | None:
    if look.outcome is None or isinstance(look.outcome, Failed) or look.rule is None:
        return None
    shown = list(islice(_rows(look, look.rule, look.outcome.rows, now), MOST_SERIES))
    total = len(look.outcome.rows)
    return {"found": total, "matched": len(look.matched), "leftOff": total - len(shown), "items": shown}


def _rows(look: Look, rule: Rule, rows: Sequence[RawSample], now: datetime) -> Iterator[Json]:
    """Show those that matched, then the others with what they failed."""
    chosen = {id(row) for row in look.matched}
    for row in look.matched:
        yield {**_row(row, now), "matched": True}
    for row in rows:
        if id(row) not in chosen:
            yield {**_row(row, now), "matched": False, "why": _why_not(look, rule, row.labels)}


def _row(row: RawSample, now: datetime) -> Json:
    return {
        "labels": labels_of(row.labels),
        "value": str(row.value),
        "at": time(row.at),
        "ageSeconds": seconds(now - row.at),
    }


def _why_not(look: Look, rule: Rule, labels: Mapping[str, str]) -> str:
    namespace, _, selector = look.asked
    belongs = rule.namespacing
    wanted = belongs.fixed or namespace
    if belongs.label and labels.get(belongs.label) != wanted:
        return f"{belongs.label} is {labels.get(belongs.label)!r}, not {wanted!r}"
    failed = next((part for part in selector.requirements if not Selector([part]).matches(labels)), None)
    return "" if failed is None else f"not {failed}: {failed.key} is {labels.get(failed.key)!r}"


def _error(look: Look) -> Json | None:
    if look.error is None:
        return None
    failure = look.error.failure
    return {
        "class": None if failure is None else failure.value,
        "message": look.error.message,
        "detail": getattr(look.error, "detail", ""),
    }


def history(read: Read | None) -> Json | None:
    """Say what is remembered of the reads before."""
    if read is None:
        return None
    return {
        "reads": read.reads,
        "lastRead": time(read.at),
        "failures": read.failures,
        "firstFailureTime": time(read.first_failure_time),
        "failure": None if read.failure is None else read.failure.value,
        "message": read.message,
        "lastGoodValue": None if read.good_milli is None else number(read.good_milli),
        "lastGoodTime": time(read.good_at),
        "query": read.query,
        "tookMilliseconds": round(read.took / timedelta(milliseconds=1), 1),
        "seriesSeen": read.seen,
        "seriesChosen": read.chosen,
    }


def _hpa(look: Look) -> Json:
    """Say what an HPA is told, and what it makes of it in its own condition."""
    namespace, metric, selector = look.asked
    if look.error is None:
        return {"code": 200, "items": len(look.samples), "sum": number(sum(sample.milli for sample in look.samples))}
    told = f"unable to fetch metrics from external metrics API: {look.error.message}"
    return {
        "code": look.error.code,
        "reason": look.error.reason,
        "message": look.error.message,
        "condition": f"unable to get external metric {namespace}/{metric}/{_as_condition(selector)}: {told}",
    }


def _as_condition(selector: Selector) -> str:
    """Write a selector as an HPA's messages do, which print the object that it was in the spec."""
    if selector.is_empty:
        return go_syntax(None)
    exact = {part.key: part.values[0] for part in selector.requirements if part.operator in {"=", "=="}}
    others = tuple(
        LabelSelectorRequirement(part.key, _OBJECT_OPERATORS.get(part.operator, part.operator), part.values)
        for part in selector.requirements
        if part.key not in exact
    )
    return go_syntax(LabelSelector(exact, others))
