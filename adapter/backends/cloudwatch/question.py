"""From a rule's parameters to what GetMetricData is asked, and which rules go in one call; pure."""

from collections.abc import Container, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from adapter.backends.cloudwatch import expression as text
from adapter.backends.cloudwatch.settings import CloudWatchParameters, Metric

MOST: Final = 500
"""Queries in one call, by CloudWatch's limit."""

SEPARATOR: Final = "·"
"""Between the values of several labels: those of dimensions are ASCII, so it is in none of them."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


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


def weight(question: CloudWatchParameters) -> int:
    """Say how many of a call's queries it takes."""
    return 1 + len(question.metrics)


def calls(
    questions: Iterable[CloudWatchParameters], suspects: Container[CloudWatchParameters], now: datetime
) -> Iterator[list[Asked]]:
    """Share questions out among as few calls as can be; their order is kept within each.

    A call has one window for all. There may be one Metrics Insights query in it. A search has a call to itself, and so
    has an expression about all metrics of a call, and a question that was refused before: it would spoil the others'.
    """
    open_calls: dict[Window, _Call] = {}
    for number, question in enumerate(questions):
        asked = Asked(f"q{number}", question, window(question, now))
        if question in suspects or text.needs_a_call_to_itself(question.expression):
            yield [asked]
            continue
        call = open_calls.get(asked.window)
        if call is None or not call.has_room_for(question):
            if call is not None:
                yield call.asked
            call = open_calls[asked.window] = _Call()
        call.add(asked)
    yield from (call.asked for call in open_calls.values())


class _Call:
    """A call that is being put together."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._weight = 0
        self._has_select = False

    def has_room_for(self, question: CloudWatchParameters) -> bool:
        if self._weight + weight(question) > MOST:
            return False
        return not (self._has_select and text.is_select(question.expression))

    def add(self, asked: Asked) -> None:
        self.asked.append(asked)
        self._weight += weight(asked.question)
        self._has_select = self._has_select or text.is_select(asked.question.expression)


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
