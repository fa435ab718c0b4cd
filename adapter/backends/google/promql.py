"""PromQL over HTTP, as Google answers it: what is asked, and what comes of it; pure."""

from datetime import UTC, datetime
from urllib.parse import quote, urlencode

import msgspec

from adapter.errors import BackendRejected
from adapter.sample import RawSample

_NAME = "__name__"


class Series(msgspec.Struct):
    """One series at one moment."""

    metric: dict[str, str]
    value: tuple[float, str]


class Vector(msgspec.Struct, tag_field="resultType", tag="vector"):
    """Any number of series."""

    result: list[Series]


class Scalar(msgspec.Struct, tag_field="resultType", tag="scalar"):
    """A number without labels."""

    result: tuple[float, str]


class Answer(msgspec.Struct):
    """What Prometheus' API wraps its answers in."""

    status: str
    data: Vector | Scalar
    warnings: list[str] = []


def target(project: str, query: str, now: datetime) -> str:
    """Say the path and the query of the request."""
    asked = urlencode({"query": query, "time": f"{now.timestamp():.3f}"}, quote_via=quote)
    return f"/v1/projects/{quote(project, safe='')}/location/global/prometheus/api/v1/query?{asked}"


def samples(body: bytes, most: int) -> tuple[RawSample, ...]:
    """Read an answer; raise ``BackendRejected`` if it is none, or not all of it."""
    try:
        answer = msgspec.json.decode(body, type=Answer)
        found = answer.data.result if isinstance(answer.data, Vector) else [Series({}, answer.data.result)]
        read = tuple(RawSample(float(each.value[1]), _moment(each), _labels(each)) for each in found)
    except (msgspec.DecodeError, RecursionError, ValueError, OverflowError, OSError) as error:
        raise BackendRejected("it answers, but not as PromQL is answered", detail=str(error)[:200]) from None
    if answer.status != "success" or answer.warnings:
        raise BackendRejected("the answer is not complete", detail="; ".join(answer.warnings)[:300])
    if len(read) > most:
        raise BackendRejected("there are more series than maxSeries")
    return read


def _moment(series: Series) -> datetime:
    return datetime.fromtimestamp(series.value[0], UTC)


def _labels(series: Series) -> dict[str, str]:
    return {name: value for name, value in series.metric.items() if name != _NAME}
