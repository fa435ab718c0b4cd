"""Responses of any content are read or rejected with ``BackendError``; no other error reaches the caller."""

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.backends.azure import metrics_batch
from adapter.backends.azure.settings import AzureParameters
from adapter.backends.connection.json_body import error_object
from adapter.backends.datadog import timeseries
from adapter.backends.datadog.settings import DatadogParameters
from adapter.backends.google import promql, time_series
from adapter.backends.http import parse as http
from adapter.backends.http.settings import HttpParameters
from adapter.backends.nats import parse as nats
from adapter.backends.newrelic import nerdgraph
from adapter.backends.newrelic.settings import NewRelicParameters
from adapter.backends.prometheus import parse as prometheus
from adapter.backends.rabbitmq import parse as rabbitmq
from adapter.backends.upstream import parse as upstream
from adapter.errors import BackendError

NOW: Final = datetime(2026, 3, 1, tzinfo=UTC)
RESOURCE: Final = f"/subscriptions/{'0' * 36}/resourceGroups/g/providers/p/t/n"
PARSERS: Final[dict[str, Callable[[bytes], object]]] = {
    "azure": lambda body: metrics_batch.samples_by_query(body, [AzureParameters("m", resource=RESOURCE)], NOW),
    "error object": error_object,
    "datadog": lambda body: timeseries.samples_by_query(body, [DatadogParameters("q")], NOW),
    "google": time_series.decode_page,
    "google PromQL": lambda body: promql.samples(body, 10),
    "http": lambda body: http.samples(body, HttpParameters(), NOW),
    "nats": lambda body: nats.decode_response(body, nats.ListPage),
    "newrelic": lambda body: nerdgraph.samples_by_query(body, [NewRelicParameters("q")], NOW),
    "prometheus": lambda body: prometheus.samples(prometheus.decode(200, body), NOW),
    "prometheus error": lambda body: prometheus.decode(400, body),
    "prometheus names": lambda body: prometheus.names(prometheus.decode(200, body)),
    "rabbitmq": lambda body: rabbitmq.has_error("not_found", body),
    "upstream": lambda body: upstream.samples(body, NOW),
    "upstream error": upstream.status_message,
}
DEEP: Final = b"[" * 100_000
SHAPES: Final = (
    b"%s",
    b'{"x":%s',
    b'{"status":"success","data":%s',
    b'{"status":"success","data":{"resultType":"vector","result":%s',
    b'{"status":"success","data":{"resultType":"scalar","result":%s',
    b'{"kind":"Status","x":%s',
    b'{"kind":"ExternalMetricValueList","items":%s',
    b'{"error":%s',
    b'{"errors":%s',
    b'{"data":%s',
    b'{"timeSeries":%s',
    b'{"values":%s',
)
NUMBERS: Final = (
    b"1e999",
    b"-1e999",
    b"9" * 5000,
    b"NaN",
    b'"1"',
    b'"9e9999999"',
    b"[1,2]",
    b'[1e99,"1"]',
    b'[0,"x"]',
    b"null",
)


@pytest.mark.parametrize("name", PARSERS)
def test_deep_response_is_rejected(name: str) -> None:
    for shape in SHAPES:
        for deep in (DEEP, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000):
            with contextlib.suppress(BackendError):
                PARSERS[name](shape % deep)


@pytest.mark.parametrize("name", PARSERS)
def test_unusual_numbers_are_rejected_or_read(name: str) -> None:
    for shape in SHAPES:
        for number in NUMBERS:
            closing = b"}" * shape.count(b"{")
            with contextlib.suppress(BackendError):
                PARSERS[name](shape % number + closing)


KEYS: Final = (
    *("status", "data", "resultType", "result", "metric", "value", "items", "timestamp", "values", "errors", "error"),
    *("timeSeries", "points", "interval", "endTime", "actor", "series", "timeseries", "attributes", "times", "results"),
    *("metricLabels", "kind", "code", "message", "labels", "resource", "account", "nrql"),
)
SCALARS: Final = (b"null", b"true", b"0", b"1e400", b'"x"', b'""', b'"1"', b"-5", b"9" * 400, b'"\\ud800"', b'"2026"')


def json_object(members: list[tuple[str, bytes]]) -> bytes:
    return b"{%s}" % b",".join(b'"%s":%s' % (key.encode(), value) for key, value in members)


VALUES = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: b"[%s]" % b",".join(items))
        | st.lists(st.tuples(st.sampled_from(KEYS), inner), max_size=4).map(json_object)
    ),
    max_leaves=25,
)


@settings(deadline=None, max_examples=300)
@given(VALUES | st.binary(max_size=50))
def test_no_response_raises_another_error(body: bytes) -> None:
    for parse in PARSERS.values():
        with contextlib.suppress(BackendError):
            parse(body)
