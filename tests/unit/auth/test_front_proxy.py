import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict

from adapter.auth.front_proxy import _MAX_ENTRIES, HeaderParser, RawHeaders
from adapter.auth.trust_store import TrustedAuthorities

TRUSTED = TrustedAuthorities(
    user_headers=("X-Remote-User", "X-User"),
    uid_headers=("X-Remote-Uid",),
    group_headers=("X-Remote-Group",),
    extra_prefixes=("X-Remote-Extra-",),
)
NAMES = st.sampled_from(
    [
        "X-Remote-User",
        "x-remote-user",
        "X-User",
        "X-Remote-Uid",
        "X-Remote-Group",
        "X-REMOTE-GROUP",
        "X-Remote-Extra-A",
        "X-Remote-Extra-a%2fb",
        "X-Remote-Extra-",
        "X-Remote-Users",
        "X-Remote",
        "Audit-Id",
        "Accept",
    ]
)
HEADERS = st.lists(st.tuples(NAMES, st.sampled_from(["", "a", "b", "c"])), max_size=6)


def raw(headers: list[tuple[str, str]]) -> RawHeaders:
    return make_mocked_request("GET", "/", headers=CIMultiDict(headers)).raw_headers


@settings(deadline=None)
@given(st.lists(HEADERS, max_size=12))
def test_cached_caller_equals_the_parsed_caller(requests: list[list[tuple[str, str]]]):
    parser = HeaderParser(TRUSTED)
    for headers in requests * 2:
        assert parser.caller(raw(headers)) == parser.parse(raw(headers))


def test_other_headers_are_not_part_of_the_cache_key():
    parser = HeaderParser(TRUSTED)
    caller = parser.caller(raw([("X-Remote-User", "alice"), ("Audit-Id", "1")]))

    assert caller is not None
    assert parser.caller(raw([("Audit-Id", "2"), ("X-Remote-User", "alice")])) is caller


@pytest.mark.parametrize(
    ("value", "entries"), [("x", _MAX_ENTRIES), ("x" * 5000, 0)], ids=["many users", "long headers"]
)
def test_cache_of_callers_is_bounded(value: str, entries: int):
    parser = HeaderParser(TRUSTED)
    for number in range(_MAX_ENTRIES + 10):
        caller = parser.caller(raw([("X-Remote-User", f"{value}{number}")]))
        assert caller is not None
        assert caller.name == f"{value}{number}"

    assert parser.parse_cached.cache_info().currsize == entries
