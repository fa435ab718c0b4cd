"""Addresses as people write them, and as they should not."""

import pytest

from adapter.backends.connection.address import Address, address, address_problems


@pytest.mark.parametrize(
    ("text", "host", "port", "written"),
    [
        ("redis.shop:6380", "redis.shop", 6380, "redis.shop:6380"),
        ("redis_1", "redis_1", 7, "redis_1:7"),
        ("127.0.0.1:1", "127.0.0.1", 1, "127.0.0.1:1"),
        ("[::1]:6379", "::1", 6379, "[::1]:6379"),
        ("[fe80::1%eth0]", "fe80::1%eth0", 7, "[fe80::1%eth0]:7"),
    ],
)
def test_addresses(text: str, host: str, port: int, written: str) -> None:
    assert address(text, 7) == Address(host, port)
    assert str(address(text, 7)) == written
    assert list(address_problems([text], "at")) == []


@pytest.mark.parametrize(
    "text",
    ["", ":1", "a:0", "a:99999", "a:b", "a/b", "a?b", "a#b", "a b", "a,b:1", "redis://a:1", "a:1:2", "a\n", "[::1"],
)
def test_what_is_none(text: str) -> None:
    assert list(address_problems(["a", text], "at")) == [
        "at[1]: not an address; write host:port, without any scheme",
    ]


def test_passwords_have_no_place_in_it() -> None:
    (problem,) = address_problems(["me:secret@a:1"], "at")
    assert "secret" not in problem
    assert list(address_problems([], "at")) == ["at: at least one is needed, written host:port"]
