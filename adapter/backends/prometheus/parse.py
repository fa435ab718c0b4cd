"""From the bytes of an answer to samples; pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import TypeAlias

import msgspec

from adapter.backends.prometheus import errors
from adapter.errors import BackendError, BackendRejected, BadQuery
from adapter.rules.promql.sample_age import MARK, TIME
from adapter.sample import RawSample

Point: TypeAlias = tuple[float, str]
Labels: TypeAlias = frozenset[tuple[str, str]]
_NAME = "__name__"


class Series(msgspec.Struct, gc=False):
    """One series of an instant vector."""

    metric: dict[str, str]
    value: Point | None = None
    histogram: msgspec.Raw = msgspec.Raw()

    @property
    def asked(self) -> float:
        """When the server evaluated the query, by its own clock."""
        return self.value[0] if self.value is not None else 0.0


class Data(msgspec.Struct):
    """What a query found; how to read ``result`` depends on its type."""

    result_type: str = msgspec.field(name="resultType")
    result: msgspec.Raw


class Answer(msgspec.Struct):
    """The body of an answer, as Prometheus writes it."""

    status: str
    data: msgspec.Raw = msgspec.Raw()
    error_type: str = msgspec.field(name="errorType", default="")
    error: str = ""
    warnings: list[str] | None = None

    @property
    def doubts(self) -> tuple[str, ...]:
        """The warnings that the answer may be partial; those about how a query is written are not."""
        return tuple(each for each in self.warnings or () if not each.startswith("PromQL "))


_answer = msgspec.json.Decoder(Answer).decode
_data = msgspec.json.Decoder(Data).decode
_vector = msgspec.json.Decoder(list[Series]).decode
_point = msgspec.json.Decoder(Point).decode
_label_sets = msgspec.json.Decoder(list[dict[str, str]]).decode


def decode(body: bytes) -> Answer:
    """Read an answer; raise ``BackendError`` if it is none."""
    try:
        answer = _answer(body)
    except msgspec.DecodeError as error:
        raise _garbage(str(error)) from None
    if answer.status == "error":
        raise errors.of_refusal(errors.Refusal(answer.status, answer.error_type, answer.error))
    return answer


def samples(answer: Answer, now: datetime) -> tuple[RawSample, ...]:
    """Return the samples of a query's answer, ``now`` being when it was asked by our clock."""
    try:
        data = _data(answer.data)
        match data.result_type:
            case "vector":
                return tuple(_samples(_vector(data.result), now))
            case "scalar":
                return (RawSample(float(_point(data.result)[1]), now),)
            case _:
                raise BadQuery(f"it answers with a {data.result_type}, not with one number for each series")
    except (msgspec.DecodeError, ValueError) as error:
        raise _garbage(str(error)) from None


def names(answer: Answer) -> frozenset[str]:
    """Return the names of the series in an answer to ``/series``."""
    try:
        return frozenset(each[_NAME] for each in _label_sets(answer.data) if _NAME in each)
    except msgspec.DecodeError as error:
        raise _garbage(str(error)) from None


def _samples(series: list[Series], now: datetime) -> Iterator[RawSample]:
    times: dict[Labels, float] = {}
    numbers: list[Series] = []
    for each in series:
        if each.metric.pop(MARK, None) == TIME:
            times[frozenset(each.metric.items())] = _number(each)
        else:
            numbers.append(each)
    of_all = times.get(frozenset())
    for each in numbers:
        labels = each.metric
        heard = times.get(_unnamed(labels), of_all) if times else None
        # Both times are by the server's clock, so that ours may differ from it.
        age = max(each.asked - heard, 0.0) if heard is not None else 0.0
        yield RawSample(_number(each), now - timedelta(seconds=age) if age else now, labels)


def _unnamed(labels: dict[str, str]) -> Labels:
    """Say which series it is but for its name: ``timestamp()`` drops that."""
    name = labels.pop(_NAME, None)
    key = frozenset(labels.items())
    if name is not None:
        labels[_NAME] = name
    return key


def _number(series: Series) -> float:
    if series.value is None:
        raise BadQuery("it answers with a native histogram, not with one number for each series")
    return float(series.value[1])


def _garbage(detail: str) -> BackendError:
    return BackendRejected("it answers, but not as Prometheus does", detail=detail[:200])


def warned(doubts: Iterable[str]) -> BackendError:
    """Make the error for an answer that may be partial."""
    return BackendRejected("the answer may be partial: it came with warnings", detail="; ".join(doubts)[:500])
