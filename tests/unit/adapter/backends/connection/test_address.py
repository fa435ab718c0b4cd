"""Parsing of ``host:port``."""

import pytest

from adapter.backends.connection.address import Address, address, address_problems


@pytest.mark.parametrize(
    ("text", "host", "port", "formatted"),
    [
        pytest.param("redis.shop:6380", "redis.shop", 6380, "redis.shop:6380", id="host and port"),
        pytest.param("redis_1", "redis_1", 7, "redis_1:7", id="default port"),
        pytest.param("127.0.0.1:1", "127.0.0.1", 1, "127.0.0.1:1", id="IPv4"),
        pytest.param("[::1]:6379", "::1", 6379, "[::1]:6379", id="IPv6"),
        pytest.param("[fe80::1%eth0]", "fe80::1%eth0", 7, "[fe80::1%eth0]:7", id="IPv6 with zone"),
    ],
)
def test_address_is_parsed_and_formatted(text: str, host: str, port: int, formatted: str) -> None:
    assert address(text, 7) == Address(host, port)
    assert str(address(text, 7)) == formatted
    assert list(address_problems([text], "addresses")) == []


@pytest.mark.parametrize(
    "text",
    ["", ":1", "a:0", "a:99999", "a:b", "a/b", "a?b", "a#b", "a b", "a,b:1", "redis://a:1", "a:1:2", "a\n", "[::1"],
)
def test_text_that_is_not_an_address_is_reported(text: str) -> None:
    (problem,) = address_problems(["a", text], "addresses")
    assert str(problem) == "addresses[1]: not an address; write host:port, without a scheme"


def test_address_with_credentials_is_reported_without_them() -> None:
    (problem,) = address_problems(["me:secret@a:1"], "addresses")
    assert str(problem) == "addresses[0]: must not contain credentials; use username and passwordFile"


def test_empty_list_of_addresses_is_reported() -> None:
    (problem,) = address_problems([], "addresses")
    assert str(problem) == "addresses: must have at least one address; write host:port"
