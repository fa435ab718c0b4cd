"""Requests and responses of the PromQL API of Cloud Monitoring. No I/O."""

from datetime import UTC, datetime
from urllib.parse import quote, urlencode

import msgspec

from adapter.errors import BackendRejected
from adapter.sample import RawSample


class _PromqlSeries(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _PromqlVector(msgspec.Struct, tag_field="resultType", tag="vector"):
    result: list[_PromqlSeries]


class _PromqlScalar(msgspec.Struct, tag_field="resultType", tag="scalar"):
    result: tuple[float, str]


class _PromqlResponse(msgspec.Struct):
    status: str
    data: _PromqlVector | _PromqlScalar
    warnings: list[str] = []


def target(project: str, query: str, now: datetime) -> str:
    """Return the path and query string of the request."""
    parameters = urlencode({"query": query, "time": f"{now.timestamp():.3f}"}, quote_via=quote)
    return f"/v1/projects/{quote(project, safe='')}/location/global/prometheus/api/v1/query?{parameters}"


def samples(body: bytes, max_series: int) -> tuple[RawSample, ...]:
    """Decode a response; raise ``BackendRejected`` if it is invalid or incomplete."""
    try:
        response = msgspec.json.decode(body, type=_PromqlResponse)
        data = response.data
        vector = data.result if isinstance(data, _PromqlVector) else [_PromqlSeries({}, data.result)]
        result = tuple(_sample(series) for series in vector)
    except (msgspec.DecodeError, RecursionError, ValueError, OverflowError, OSError) as error:
        raise BackendRejected("invalid response from Cloud Monitoring", detail=str(error)[:200]) from None
    if response.status != "success" or response.warnings:
        raise BackendRejected("the result may be partial", detail="; ".join(response.warnings)[:300])
    if len(result) > max_series:
        raise BackendRejected("more series than maxSeries")
    return result


def _sample(series: _PromqlSeries) -> RawSample:
    time, value = series.value
    labels = {name: value for name, value in series.metric.items() if name != "__name__"}
    return RawSample(float(value), datetime.fromtimestamp(time, UTC), labels)
