"""The JSON view of a read trace: rule, query, series with reasons for mismatches, value, and the response to an HPA."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from adapter import errors
from adapter.debug.formatting import Json, format_quantity, format_time
from adapter.metrics.fetcher import FetchFailure, FetchResult
from adapter.metrics.read_history import ReadRecord
from adapter.metrics.reader import MetricReader, ReadTrace
from adapter.rules.rule import Rule
from adapter.sample import RawSample
from autoscaler.values.selector import LabelSelector, LabelSelectorRequirement, Selector, go_syntax

MAX_SERIES: Final = 100
"""Limit of the listed series; the matching ones come first."""

_OPERATORS: Final = {"in": "In", "notin": "NotIn", "!=": "NotIn", "exists": "Exists", "!": "DoesNotExist"}
"""The operators of a LabelSelector, by those of a selector."""


def trace_view(trace: ReadTrace, reader: MetricReader) -> Json:
    """Return the view of a read trace, in the order of the steps of the read. It shows series of all namespaces."""
    return _view(trace, reader, _series(trace, reader.clock()))


def namespace_trace_view(trace: ReadTrace, reader: MetricReader) -> Json:
    """Return the view for users of the namespace of the read, without anything that belongs to other namespaces.

    Series of other namespaces are left out, and so are messages of the backend, unless the rule is for this namespace
    only. The query is shown: the error of a read without a match contains it, too.
    """
    view = _view(trace, reader, _series(trace, reader.clock(), own_namespace=True))
    if trace.rule is None:
        if not isinstance(trace.error, errors.RuleRefused):  # its text is also the error of the read
            view["rule"]["reason"] = f"no rule defines {trace.key.metric!r} in this namespace"
    elif trace.rule.namespaces != (trace.key.namespace,):
        view["rule"]["namespaces"] = [trace.key.namespace]
        if view["series"] is not None:
            view["fetch"]["series"] = view["series"]["total"]
        for part in (view["fetch"], view["error"]):
            if part is not None and "detail" in part:
                part["detail"] = ""
    if view["history"] is not None:
        view["history"].pop("seriesTotal")
    return view


def _view(trace: ReadTrace, reader: MetricReader, series: Json | None) -> Json:
    now = reader.clock()
    namespace, metric, selector = trace.key
    value = None if trace.error or not trace.samples else sum(sample.milli for sample in trace.samples)
    return {
        "request": {"namespace": namespace, "metric": metric, "selector": str(selector)},
        "rule": _matched_rule(trace, reader),
        "query": None if trace.query is None else {"backend": trace.query.backend, "text": trace.query.text},
        "fetch": fetch_view(trace.result, now),
        "series": series,
        "aggregation": None if trace.rule is None else trace.rule.aggregation.value,
        "value": None if value is None else format_quantity(value),
        "ageSeconds": _age(min(sample.at for sample in trace.samples), now) if trace.samples else None,
        "error": _error(trace),
        "history": _history(reader.history_of(trace).peek(trace.key)),
        "hpa": _hpa(trace),
    }


def _matched_rule(trace: ReadTrace, reader: MetricReader) -> Json:
    if trace.rule is not None:
        return {"matched": True, **rule_fields(trace.rule, reader), "origin": reader.origin(trace.rule)}
    namespace, metric, _ = trace.key
    reason = f"no rule has the name {metric!r}"
    if namespaces := reader.registry.rules.namespaces_with(metric):
        reason = f"{metric!r} is defined only in the namespaces {', '.join(namespaces)}"
    if refusal := reader.registry.refusal(namespace, metric):
        reason = f"refused: {refusal}"
    similar = reader.registry.rules.similar_names(namespace, metric)
    return {"matched": False, "reason": reason, "similar": list(similar)}


def rule_fields(rule: Rule, reader: MetricReader) -> Json:
    """Return the fields of a rule, including defaults and the current interval of its query."""
    namespacing = rule.namespacing
    interval, is_adaptive = reader.interval(rule)
    return {
        "name": rule.name,
        "aliases": list(rule.aliases),
        "namespaces": list(rule.namespaces),
        "namespaceLabel": namespacing.label,
        "namespaceFixed": namespacing.fixed,
        "labels": list(rule.labels),
        "template": rule.is_template,
        "intervalSeconds": interval.total_seconds(),
        "intervalIsAdaptive": is_adaptive,
        "maxSampleAgeSeconds": rule.max_sample_age.total_seconds(),
        "deadlineSeconds": rule.deadline.total_seconds(),
        "onEmpty": rule.on_empty.value,
        "onNaN": rule.on_nan.value,
        "onOutOfRange": rule.on_out_of_range.value,
        "onTooOld": rule.on_too_old.value,
    }


def fetch_view(result: FetchResult | None, now: datetime) -> Json | None:
    """Return when a query was last sent, how long it took, and the number of series or the error."""
    if result is None:
        return None
    fetch: Json = {
        "time": format_time(result.fetched_at),
        "ageSeconds": _age(result.fetched_at, now),
        "durationMilliseconds": _milliseconds(result.duration),
    }
    if isinstance(result, FetchFailure):
        error = result.error
        return {**fetch, "error": error.message or str(error.failure), "detail": getattr(error, "detail", "")}
    return {**fetch, "series": len(result.series)}


def _series(trace: ReadTrace, now: datetime, *, own_namespace: bool = False) -> Json | None:
    if trace.result is None or isinstance(trace.result, FetchFailure) or trace.rule is None:
        return None
    rule, rows = trace.rule, trace.result.series
    if own_namespace:
        rows = tuple(row for row in rows if _is_in_namespace(trace, rule, row.labels))
    items = list(islice(_items(trace, rule, rows, now), MAX_SERIES))
    total = len(rows)
    return {"total": total, "matched": len(trace.matched), "omitted": total - len(items), "items": items}


def _items(trace: ReadTrace, rule: Rule, rows: Sequence[RawSample], now: datetime) -> Iterator[Json]:
    """Yield the matching series, then the others with the reason for the mismatch."""
    matched = {id(row.labels) for row in trace.matched}
    for row in trace.matched:
        yield {**_item(row, now), "matched": True}
    for row in rows:
        if id(row.labels) not in matched:
            yield {**_item(row, now), "matched": False, "reason": _mismatch(trace, rule, row.labels)}


def _item(row: RawSample, now: datetime) -> Json:
    return {
        "labels": dict(sorted(row.labels.items())),
        "value": str(row.value).removesuffix(".0"),
        "time": format_time(row.at),
        "ageSeconds": _age(row.at, now),
    }


def _is_in_namespace(trace: ReadTrace, rule: Rule, labels: Mapping[str, str]) -> bool:
    label = rule.namespacing.label
    return not label or labels.get(label) == (rule.namespacing.fixed or trace.key.namespace)


def _mismatch(trace: ReadTrace, rule: Rule, labels: Mapping[str, str]) -> str:
    namespace, _, selector = trace.key
    label, required = rule.namespacing.label, rule.namespacing.fixed or namespace
    if not _is_in_namespace(trace, rule, labels):
        return f"{label} is {labels[label]!r}, not {required!r}" if label in labels else f"no label {label}"
    failed = next((part for part in selector.requirements if not Selector([part]).matches(labels)), None)
    if failed is None:
        return ""
    found = f"{failed.key} is {labels[failed.key]!r}" if failed.key in labels else f"no label {failed.key}"
    return f"not {failed}: {found}"


def _error(trace: ReadTrace) -> Json | None:
    if trace.error is None:
        return None
    failure = trace.error.failure
    return {
        "class": None if failure is None else failure.value,
        "message": trace.error.message,
        "detail": getattr(trace.error, "detail", ""),
    }


def _history(record: ReadRecord | None) -> Json | None:
    if record is None:
        return None
    return {
        "reads": record.reads,
        "lastRead": format_time(record.last_read_time),
        "failures": record.failures,
        "firstFailureTime": format_time(record.first_failure_time),
        "failure": None if record.failure is None else record.failure.value,
        "message": record.message,
        "lastValue": None if record.last_good_milli is None else format_quantity(record.last_good_milli),
        "lastValueTime": format_time(record.last_good_time),
        "query": record.query,
        "durationMilliseconds": _milliseconds(record.fetch_duration),
        "seriesTotal": record.series_found,
        "seriesMatched": record.series_matched,
    }


def _hpa(trace: ReadTrace) -> Json:
    """Return the response that an HPA gets, and the condition message that it derives from an error."""
    namespace, metric, selector = trace.key
    if trace.error is None:
        total = sum(sample.milli for sample in trace.samples)
        return {"code": 200, "items": len(trace.samples), "sum": format_quantity(total)}
    message = f"unable to fetch metrics from external metrics API: {trace.error.message}"
    return {
        "code": trace.error.code,
        "reason": trace.error.reason,
        "message": trace.error.message,
        "condition": f"unable to get external metric {namespace}/{metric}/{_as_label_selector(selector)}: {message}",
    }


def _as_label_selector(selector: Selector) -> str:
    """Format a selector as the LabelSelector of the spec in Go syntax, as in the HPA's messages."""
    if selector.is_empty:
        return go_syntax(None)
    match_labels = {part.key: part.values[0] for part in selector.requirements if part.operator in {"=", "=="}}
    expressions = tuple(
        LabelSelectorRequirement(part.key, _OPERATORS.get(part.operator, part.operator), part.values)
        for part in selector.requirements
        if part.key not in match_labels
    )
    return go_syntax(LabelSelector(match_labels, expressions))


def _age(time: datetime, now: datetime) -> float:
    return round((now - time).total_seconds(), 3)


def _milliseconds(duration: timedelta) -> float:
    return round(duration / timedelta(milliseconds=1), 1)
