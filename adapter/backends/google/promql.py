"""Requests and responses of the PromQL API of Cloud Monitoring. No I/O."""

from datetime import UTC, datetime
from urllib.parse import quote, urlencode

import msgspec

from adapter.errors import BackendRejected
from adapter.sample import RawSample


class PromqlSeries(msgspec.Struct):
    """One series of a vector."""

    metric: dict[str, str]
    value: tuple[float, str]


class PromqlVector(msgspec.Struct, tag_field="resultType", tag="vector"):
    """An instant vector."""

    result: list[PromqlSeries]


class PromqlScalar(msgspec.Struct, tag_field="resultType", tag="scalar"):
    """A scalar."""

    result: tuple[float, str]


class PromqlResponse(msgspec.Struct):
    """The envelope of the Prometheus API."""

    status: str
    data: PromqlVector | PromqlScalar
    warnings: list[str] = []


def target(project: str, query: str, now: datetime) -> str:
    """Return the path and query string of the request."""
    parameters = urlencode({"query": query, "time": f"{now.timestamp():.3f}"}, quote_via=quote)
    return f"/v1/projects/{quote(project, safe='')}/location/global/prometheus/api/v1/query?{parameters}"


def samples(body: bytes, max_series: int) -> tuple[RawSample, ...]:
    """Decode a response; raise ``BackendRejected`` if it is invalid or incomplete."""
    try:
        response = msgspec.json.decode(body, type=PromqlResponse)
        data = response.data
        series = data.result if isinstance(data, PromqlVector) else [PromqlSeries({}, data.result)]
        result = tuple(_sample(each) for each in series)
    except (msgspec.DecodeError, RecursionError, ValueError, OverflowError, OSError) as error:
        raise BackendRejected("the response is not one of Cloud Monitoring", detail=str(error)[:200]) from None
    if response.status != "success" or response.warnings:
        raise BackendRejected("the result may be partial", detail="; ".join(response.warnings)[:300])
    if len(result) > max_series:
        raise BackendRejected("more series than maxSeries")
    return result


def _sample(series: PromqlSeries) -> RawSample:
    time, value = series.value
    labels = {name: value for name, value in series.metric.items() if name != "__name__"}
    return RawSample(float(value), datetime.fromtimestamp(time, UTC), labels)
