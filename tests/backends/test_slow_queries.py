"""A slow query among those that one request of a batching backend contains."""

import asyncio

import pytest

from adapter.errors import BackendTimeout
from adapter.sample import RawSample
from tests.backends.conftest import OpenBackend, open_backend
from tests.backends.contract import ContractPeer, all_peers

BATCHING = ("azure", "cloudwatch", "datadog", "newrelic")
pytestmark = [
    pytest.mark.usefixtures("no_resource_leaks"),
    pytest.mark.parametrize(
        "running_peer",
        [pytest.param(all_peers()[name], id=name, marks=all_peers()[name].marks) for name in BATCHING],
        indirect=True,
        scope="session",
    ),
]
SLOW = "sluggish"
NUMBERS = {**{f"q{number}": number for number in range(4)}, SLOW: 4, **{f"q{number}": number for number in range(5, 8)}}
OTHERS = {name: number for name, number in NUMBERS.items() if name != SLOW}


async def results(opened: OpenBackend, peer: ContractPeer) -> dict[str, float | BaseException]:
    """Fetch everything at once, each query within a second."""
    fetches = (opened.fetch(peer.parameters_for(name), 1.0) for name in NUMBERS)
    fetched = await asyncio.gather(*fetches, return_exceptions=True)
    return {name: _value(result) for name, result in zip(NUMBERS, fetched, strict=True)}


def _value(result: tuple[RawSample, ...] | BaseException) -> float | BaseException:
    return result if isinstance(result, BaseException) else result[0].value


async def test_slow_query_fails_alone_after_two_intervals_and_returns_to_the_batch_when_it_is_fast(
    peer: ContractPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.backends.resilience.quarantine._FIRST_BACKOFF", 1.0)
    monkeypatch.setattr("adapter.backends.resilience.quarantine._MAX_BACKOFF", 1.0)
    peer.set_values(NUMBERS)
    async with open_backend(peer) as opened:
        await opened.fetch(peer.parameters_for("q0"), 20)
        assert await results(opened, peer) == NUMBERS
        peer.proxy.stall_requests_with(SLOW.encode())
        answered = []
        for _ in range(5):
            found = await results(opened, peer)
            slow = found.pop(SLOW)
            assert isinstance(slow, BackendTimeout)
            assert slow.message == "no response within 1s"
            answered.append(sum(found[name] == OTHERS[name] for name in OTHERS))
        assert answered == [0, 0, 7, 7, 7]
        peer.recover()
        recovered = [await results(opened, peer) == NUMBERS for _ in range(10)]  # the backoff is a second
        assert any(recovered)
