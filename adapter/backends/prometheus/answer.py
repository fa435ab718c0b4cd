"""From the bytes of an answer to samples; pure."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TypeAlias

import msgspec

from adapter.backends.prometheus import failures
from adapter.errors import BackendError, BackendRefused, BadQuery
from adapter.rules.promql_age import MARK, TIME
from adapter.sample import RawSample

Point: TypeAlias = tuple[float, str]
_NAME = "__name__"


class Series(msgspec.Struct, gc=False):
    """One series of an instant vector."""

    metric: dict[str, str]
    value: Point | None = None
    histogram: msgspec.Raw = msgspec.Raw()


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
        raise failures.of_refusal(failures.Refusal(answer.status, answer.error_type, answer.error))
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
    times = {_key(each.metric): _number(each) for each in series if each.metric.get(MARK) == TIME}
    of_all = times.get(frozenset())
    for each in series:
        labels = each.metric
        if labels.pop(MARK, None) == TIME:
            continue
        value = _number(each)
        asked = each.value[0] if each.value else 0.0
        heard = times.get(_key(labels), of_all) if times else None
        # Both times are by the server's clock, so that ours may differ from it.
        age = max(asked - heard, 0.0) if heard is not None else 0.0
        yield RawSample(value, now - timedelta(seconds=age), labels)


def _key(labels: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Say which series it is. A time has no name: ``timestamp()`` drops it."""
    return frozenset(pair for pair in labels.items() if pair[0] not in {_NAME, MARK})


def _number(series: Series) -> float:
    if series.value is None:
        raise BadQuery("it answers with a native histogram, not with one number for each series")
    return float(series.value[1])


def _garbage(detail: str) -> BackendError:
    return BackendRefused("it answers, but not as Prometheus does", detail=detail[:200])


def warned(doubts: Iterable[str]) -> BackendError:
    """Make the error for an answer that may be partial."""
    return BackendRefused("the answer may be partial: it came with warnings", detail="; ".join(doubts)[:500])
