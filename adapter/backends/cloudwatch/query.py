"""From a rule's parameters to what GetMetricData is asked, and which rules go in one call; pure."""

import re
from collections.abc import Hashable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from adapter.backends.cloudwatch import expression as text
from adapter.backends.cloudwatch.parameters import CloudWatchParameters, Metric
from adapter.errors import BadQuery

MOST: Final = 500
"""Queries in one call, by CloudWatch's limit."""

SEPARATOR: Final = "·"
"""Between the values of several labels: those of dimensions are ASCII, so it is in none of them."""

_NAMED: Final = re.compile(r"\bq(\d{1,4})(?=\b|_)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Question(NamedTuple):
    """What one rule asks."""

    text: str
    """As the rule says it: what tells questions apart."""

    wanted: CloudWatchParameters


class Window(NamedTuple):
    """From when to when; the end is left out."""

    start: datetime
    end: datetime


class Asked(NamedTuple):
    """One question in one call."""

    id: str
    """Its name there; those of the metrics below its expression begin with it."""

    question: CloudWatchParameters
    window: Window


def window(question: CloudWatchParameters, now: datetime) -> Window:
    """Say which periods are asked for: complete ones. CloudWatch's own begin at whole multiples of their length."""
    end = now - question.delay
    end -= (end - _EPOCH) % question.period
    length = question.window + (-question.window) % question.period
    return Window(end - length, end)


def together(question: Question) -> Hashable:
    """Say what questions must have in common to go in one call: their window, and that they go well with others."""
    wanted = question.wanted
    alone = question.text if text.needs_a_call_to_itself(wanted.expression) else ""
    return wanted.period, wanted.window, wanted.delay, alone


def asked_now(questions: Iterable[Question], now: datetime) -> list[Asked]:
    """Give questions their names, by their places, and their window."""
    return [
        Asked(f"q{place}", question.wanted, window(question.wanted, now)) for place, question in enumerate(questions)
    ]


def blamed(error: BadQuery) -> frozenset[int]:
    """Read from a refusal the places of those that it names."""
    return frozenset(int(place) for place in _NAMED.findall(error.detail))


def calls(asked: Iterable[Asked]) -> Iterator[list[Asked]]:
    """Share out what may go together so that no call has more queries than CloudWatch takes."""
    call: list[Asked] = []
    left = MOST
    for each in asked:
        weight = 1 + len(each.question.metrics)
        if weight > left:
            yield call
            call, left = [], MOST
        call.append(each)
        left -= weight
    yield call


def queries(asked: Asked) -> Iterator[dict[str, Any]]:
    """Write one question as CloudWatch reads it."""
    question, period = asked.question, int(asked.question.period.total_seconds())
    if not question.expression:
        yield {"Id": asked.id, **_metric(question.single, period)}
        return
    for name, metric in question.metrics.items():
        yield {"Id": f"{asked.id}_{name}", **_metric(metric, period), "ReturnData": False}
    written: dict[str, Any] = {"Id": asked.id, "Expression": _expression(asked)}
    if text.is_select(question.expression):
        written["Period"] = period
    elif question.labels:
        written["Label"] = SEPARATOR.join(f"${{PROP('Dim.{label}')}}" for label in question.labels)
    yield written


def _expression(asked: Asked) -> str:
    """Give its metrics names that no other rule's have."""
    known = asked.question.metrics
    if text.is_select(asked.question.expression):
        return asked.question.expression
    return text.renamed(asked.question.expression, lambda name: f"{asked.id}_{name}" if name in known else name)


def _metric(metric: Metric, period: int) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in metric.dimensions.items()]
    stat: dict[str, Any] = {
        "Metric": {"Namespace": metric.namespace, "MetricName": metric.metric, "Dimensions": dimensions},
        "Period": period,
        "Stat": metric.statistic,
    }
    if metric.unit:
        stat["Unit"] = metric.unit
    return {"MetricStat": stat, **({"AccountId": metric.account_id} if metric.account_id else {})}
