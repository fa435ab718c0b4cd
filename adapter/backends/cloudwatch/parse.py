"""From what GetMetricData answers to samples, each question's by itself; pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from adapter.backends.cloudwatch import expression as text
from adapter.backends.cloudwatch.query import SEPARATOR, Asked
from adapter.errors import BackendError, BackendRejected, BackendUnauthorized
from adapter.sample import RawSample

_NOT_AS_AWS: Final = "it answers, but not as CloudWatch does"
_LEFT_OUT: Final = "it leaves series out, because there are too many"
_LONGEST: Final = 300


class Series:
    """One series of an answer, put together from all pages."""

    def __init__(self) -> None:
        self.label = ""
        self.status = ""
        self.points: list[tuple[datetime, float]] = []
        self.said: list[Mapping[str, Any]] = []

    def add(self, result: Mapping[str, Any]) -> None:
        """Add what one page says of it; the last word on its status counts."""
        times, values = result.get("Timestamps") or [], result.get("Values") or []
        if len(times) != len(values) or not all(isinstance(value, int | float) for value in values):
            raise BackendRejected(_NOT_AS_AWS, detail="values and their times do not match")
        self.label, self.status = str(result.get("Label", "")), str(result.get("StatusCode", ""))
        self.points += zip(times, map(float, values), strict=True)
        self.said += result.get("Messages") or []


def series(pages: Sequence[Mapping[str, Any]]) -> dict[str, list[Series]]:
    """Put the pages of an answer together: by the name of each question its series."""
    found: dict[tuple[str, str, int], Series] = {}
    for page in pages:
        seen: dict[tuple[str, str], int] = {}
        results = page.get("MetricDataResults")
        if not isinstance(results, list):
            raise BackendRejected(_NOT_AS_AWS, detail="no MetricDataResults")
        for result in results:
            key = str(result.get("Id")), str(result.get("Label", ""))
            seen[key] = number = seen.get(key, -1) + 1
            if number and len(pages) > 1:
                raise BackendRejected("it answers on several pages with series that nothing tells apart")
            found.setdefault((*key, number), Series()).add(result)
    by_question: dict[str, list[Series]] = {}
    for (name, _, _), each in found.items():
        by_question.setdefault(name, []).append(each)
    return by_question


def outcomes(call: Sequence[Asked], pages: Sequence[Mapping[str, Any]]) -> list[tuple[RawSample, ...] | BackendError]:
    """Give each question its own: series, or why there are none."""
    found = series(pages)
    lacks = _said([message for page in pages for message in page.get("Messages") or []])
    told: list[tuple[RawSample, ...] | BackendError] = []
    for asked in call:
        try:
            if lacks and text.finds_metrics(asked.question.expression):
                raise BackendRejected(_LEFT_OUT, detail=lacks)
            told.append(_samples(asked, found.get(asked.id, ())))
        except BackendError as error:
            told.append(error)
    return told


def _samples(asked: Asked, found: Sequence[Series]) -> tuple[RawSample, ...]:
    """Give the newest value of each series; raise if CloudWatch says that they are not what was asked for."""
    if not found and not asked.question.expression:
        raise BackendRejected("it answers, but not everything that was asked")
    return tuple(sample for each in found for sample in _newest(asked, each))


def _newest(asked: Asked, found: Series) -> Iterable[RawSample]:
    match found.status:
        case "Complete":
            pass
        case "Forbidden":
            raise BackendUnauthorized("this metric may not be read", detail=_said(found.said))
        case "PartialData":
            raise BackendRejected("it answers with only a part of the data", detail=_said(found.said))
        case _:
            raise BackendRejected("it could not read this metric", detail=f"{found.status}: {_said(found.said)}")
    if any("Exceeded" in str(message.get("Code")) for message in found.said):
        raise BackendRejected(_LEFT_OUT, detail=_said(found.said))
    window, labels = asked.window, _labels(asked, found.label)
    points = [(_utc(at), value) for at, value in found.points]
    inside = [point for point in points if window.start <= point[0] < window.end]
    if inside:
        at, value = max(inside, key=lambda point: point[0])
        yield RawSample(value, at, labels, asked.question.period)
    elif found.said:  # as of a division by zero: it is there, and its number is not known
        yield RawSample(math.nan, window.end - asked.question.period, labels, asked.question.period)


def _labels(asked: Asked, label: str) -> Mapping[str, str]:
    question = asked.question
    if not question.expression:
        return question.dimensions
    if text.is_select(question.expression):
        return dict.fromkeys(question.labels, label)
    values = label.split(SEPARATOR) if question.labels else []
    if len(values) != len(question.labels):
        raise BackendRejected("the labels of its series cannot be told apart", detail=label[:_LONGEST])
    return dict(zip(question.labels, values, strict=True))


def _utc(at: object) -> datetime:
    if not isinstance(at, datetime):
        raise BackendRejected(_NOT_AS_AWS, detail="a time is none")
    return at.astimezone(UTC)


def _said(messages: Sequence[Mapping[str, Any]]) -> str:
    return "; ".join(f"{message.get('Code')}: {message.get('Value')}" for message in messages)[:_LONGEST]
