"""Whom the front proxy's headers name, heard for the first time and again."""

import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from adapter.auth.front_proxy import _REMEMBERED, _caller, _SpokenFor
from adapter.auth.trust_store import Trust

TRUST = Trust(
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


def request(headers: list[tuple[str, str]]):
    return make_mocked_request("GET", "/", headers=CIMultiDict(headers))


@given(st.lists(HEADERS, max_size=12))
def test_what_is_remembered_is_what_the_headers_say(all_of_them: list[list[tuple[str, str]]]):
    spoken_for = _SpokenFor(TRUST)
    for headers in all_of_them * 2:
        asked = request(headers)
        assert spoken_for.named(asked) == _caller(TRUST, asked.headers)


def test_the_same_words_name_the_same_caller_whatever_else_is_in_the_request():
    spoken_for = _SpokenFor(TRUST)
    one = spoken_for.named(request([("X-Remote-User", "alice"), ("Audit-Id", "1")]))

    assert one is not None
    assert spoken_for.named(request([("Audit-Id", "2"), ("X-Remote-User", "alice")])) is one


@pytest.mark.parametrize("value", ["x", "x" * 5000], ids=["made up", "long"])
def test_made_up_and_long_words_do_not_fill_the_memory(value: str):
    spoken_for = _SpokenFor(TRUST)
    for number in range(_REMEMBERED + 10):
        caller = spoken_for.named(request([("X-Remote-User", f"{value}{number}")]))
        assert caller is not None
        assert caller.name == f"{value}{number}"

    assert len(spoken_for._callers) == (10 if value == "x" else 0)
