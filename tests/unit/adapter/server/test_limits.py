from contextlib import suppress
from datetime import timedelta

import pytest
from aiohttp.test_utils import make_mocked_request
from prometheus_client import CollectorRegistry, Gauge

from adapter.errors import InvalidRequest, TooManyConcurrentRequests
from adapter.server.limits import ConcurrencyLimit, request_timeout
from adapter.server.request_context import RequestContext

TEN = timedelta(seconds=10)


def context(path: str) -> RequestContext:
    return RequestContext.create(make_mocked_request("GET", path))


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("", 10),
        ("?timeout=", 10),
        ("?timeout=0", 10),
        ("?timeout=1s", 1),
        ("?timeout=1m", 10),
        ("?timeout=1s&timeout=x", 1),
    ],
)
def test_timeout_parameter_can_only_shorten_the_timeout(query: str, seconds: int):
    assert request_timeout(context(f"/apis{query}"), TEN) == seconds


def test_invalid_timeout_parameter_is_a_bad_request():
    with pytest.raises(InvalidRequest, match="timeout: 'abc' is not a duration"):
        request_timeout(context("/apis?timeout=abc"), TEN)


def test_concurrency_limit_rejects_and_counts_requests_in_flight():
    registry = CollectorRegistry()
    limit = ConcurrencyLimit(1, Gauge("in_flight", "Number of requests in flight.", registry=registry))
    with suppress(ZeroDivisionError), limit:
        assert registry.get_sample_value("in_flight") == 1
        with pytest.raises(TooManyConcurrentRequests), limit:
            pass
        _ = 1 // 0

    assert registry.get_sample_value("in_flight") == 0
