"""The maximum number of connections and its fair share per source address."""

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.auth.source_address import source_of
from adapter.server.connection_limit import ConnectionLimit


@dataclass(eq=False)
class Connected:
    """A connection of a source address."""

    source: str
    is_front_proxy: bool = False


def test_source_with_most_connections_loses_its_oldest():
    limit: ConnectionLimit[Connected] = ConnectionLimit(3)
    attacker, client = [Connected("attacker") for _ in range(3)], Connected("client")
    for connection in attacker:
        limit.add(connection, 0.0)

    assert limit.admits("client", 0.0)
    assert limit.add(client, 0.0) is attacker[0]
    assert client in limit
    assert len(limit) == 3


def test_source_with_most_connections_displaces_only_its_own_unused_ones():
    limit: ConnectionLimit[Connected] = ConnectionLimit(2)
    first, second = Connected("attacker"), Connected("attacker")
    limit.add(first, 0.0)
    limit.add(second, 0.0)

    assert not limit.admits("attacker", 0.9)
    limit.touch(first, 0.9)
    assert limit.admits("attacker", 1.0)
    assert limit.add(Connected("attacker"), 1.0) is second


def test_connections_of_the_front_proxy_are_not_displaced_by_many_sources():
    limit: ConnectionLimit[Connected] = ConnectionLimit(256)
    front_proxy = [Connected("api-server", is_front_proxy=True) for _ in range(30)]
    for connection in front_proxy:
        limit.add(connection, 0.0)
    for number in range(400):
        limit.add(Connected(f"pod-{number % 40}"), number / 100)

    assert all(connection in limit for connection in front_proxy)
    assert len(limit) == 256


def test_front_proxy_displaces_other_connections_before_its_own():
    limit: ConnectionLimit[Connected] = ConnectionLimit(3)
    pod, *front_proxy = Connected("pod"), *(Connected("api-server", is_front_proxy=True) for _ in range(4))
    limit.add(pod, 0.0)
    displaced = [limit.add(connection, 1.0) for connection in front_proxy]

    assert displaced == [None, None, pod, front_proxy[0]]
    assert limit.add(pod, 2.0) is pod
    assert pod not in limit
    assert len(limit) == 3


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=60), st.integers(1, 8))
@settings(deadline=None)
def test_source_with_fewer_connections_than_another_loses_none(events: list[tuple[str, bool]], maximum: int):
    limit: ConnectionLimit[Connected] = ConnectionLimit(maximum)
    opened: list[Connected] = []
    for now, (source, closes) in enumerate(events):
        if closes and opened:
            limit.remove(opened.pop(0))
            continue
        before = Counter(connection.source for connection in opened)
        connection = Connected(source)
        displaced = limit.add(connection, float(now))
        opened.append(connection)
        if displaced is not None:
            opened.remove(displaced)
            assert before[displaced.source] == max(before.values())
        assert len(limit) == len(opened) <= maximum


@pytest.mark.parametrize(
    ("host", "source"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        (None, ""),
    ],
)
def test_source_is_the_address_or_the_ipv6_prefix(host: str | None, source: str):
    assert source_of(host) == source
