"""Range queries of Prometheus, for simulations: the values of a query in the past, one request for each part of it."""

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from prometheus_api_client import PrometheusConnect

from adapter.backends.connection.http import HttpClient
from adapter.backends.connection.shared_limits import parse_in_thread
from adapter.backends.prometheus.api_request import RecordingSession
from adapter.backends.prometheus.parse import ApiResponse, decode
from adapter.backends.prometheus.settings import Prometheus
from adapter.errors import BackendRejected, BadQuery
from adapter.rules.query_builder import Query

MAX_POINTS: Final = 5000
"""Of one series in one response; Prometheus refuses more than 11,000."""

_MAX_VALUES: Final = 5_000_000
"""Of all series in one response: about 500 MB."""

_ALL_STATUSES: Final = range(600)


class RangeSeries(msgspec.Struct):
    """One series with its values over time."""

    metric: dict[str, str]
    values: list[tuple[float, str]] = []


class _Matrix(msgspec.Struct):
    result_type: str = msgspec.field(name="resultType")
    result: list[RangeSeries]


_decode_matrix = msgspec.json.Decoder(_Matrix).decode
_decode_series = msgspec.json.Decoder(list[RangeSeries]).decode


class RangeClient:
    """Sends range queries to one Prometheus."""

    def __init__(self, settings: Prometheus, clock: Callable[[], datetime]) -> None:
        self._settings = settings
        self._client = HttpClient(settings, clock)
        self._requests: Any = PrometheusConnect(url="", session=RecordingSession(), method=settings.method)
        self.request_count = 0

    async def fetch(
        self, query: Query, start: datetime, end: datetime, step: timedelta, deadline: timedelta
    ) -> list[RangeSeries]:
        """Return the series of one part of a period; raise ``BackendError``."""
        parameters = {**self._settings.parameters, "timeout": f"{math.ceil(deadline.total_seconds())}s"}
        seconds = f"{step.total_seconds():g}"
        request = self._requests.custom_query_range(query.text, start, end, seconds, params=parameters)
        self.request_count += 1

        async def send() -> list[RangeSeries]:
            response = await self._client.request(
                request.method, request.target, accept=_ALL_STATUSES, data=request.form
            )
            return await parse_in_thread(lambda: series_of(decode(response.status, response.body)))

        return await self._client.run(query.text, deadline, send, namespace=query.namespace)

    async def aclose(self) -> None:
        await self._client.aclose()


def series_of(response: ApiResponse) -> list[RangeSeries]:
    """Return the series of a response; raise ``BackendError`` if it is partial or not a matrix."""
    if response.partial_warnings:
        raise BackendRejected("the response may be partial", detail="; ".join(response.partial_warnings)[:300])
    try:
        matrix = _decode_matrix(response.envelope.data)
        first = [series for part in response.parts for series in _decode_series(b"".join((b"[", part, b"]")))]
    except (msgspec.DecodeError, RecursionError) as error:
        raise BackendRejected("the response is not a result of a range query", detail=str(error)) from None
    if matrix.result_type != "matrix":
        raise BadQuery(f"the result is a {matrix.result_type}, not a matrix")
    result = first + matrix.result
    if sum(len(series.values) for series in result) > _MAX_VALUES:
        raise BackendRejected("the result has too many values: aggregate series in the query")
    return result


def parts(start: datetime, end: datetime, step: timedelta) -> Iterator[tuple[datetime, datetime]]:
    """Yield the parts of a period: whole seconds, both ends included, so that no step is in two parts."""
    begin = datetime.fromtimestamp(math.floor(start.timestamp()), UTC)
    while begin <= end:
        last = min(begin + step * (MAX_POINTS - 1), end)
        yield begin, last
        begin = begin + step * ((last - begin) // step + 1)
