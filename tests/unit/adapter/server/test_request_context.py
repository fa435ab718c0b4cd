from datetime import timedelta

import pytest
from aiohttp.test_utils import make_mocked_request

from adapter.errors import InvalidRequest
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
    assert context(f"/apis{query}").timeout(TEN) == timedelta(seconds=seconds)


def test_invalid_timeout_parameter_is_a_bad_request():
    with pytest.raises(InvalidRequest, match="timeout: 'abc' is not a duration"):
        context("/apis?timeout=abc").timeout(TEN)
