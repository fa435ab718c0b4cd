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
