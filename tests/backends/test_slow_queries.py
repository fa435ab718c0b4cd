"""Where the questions of many rules are one call: a slow one among them is nobody else's trouble for long."""

import asyncio

import pytest

from adapter.errors import BackendTimeout
from adapter.sample import RawSample
from tests.backends.conftest import Opened, backend_of
from tests.backends.contract import ContractPeer, every_peer

TOGETHER = ("azure", "cloudwatch", "datadog", "newrelic")
pytestmark = [
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize(
        "running",
        [pytest.param(every_peer()[name], id=name, marks=every_peer()[name].marks) for name in TOGETHER],
        indirect=True,
        scope="session",
    ),
]
SLOW = "sluggish"
NUMBERS = {**{f"q{number}": number for number in range(4)}, SLOW: 4, **{f"q{number}": number for number in range(5, 8)}}
OTHERS = {name: number for name, number in NUMBERS.items() if name != SLOW}


async def outcomes(opened: Opened, peer: ContractPeer) -> dict[str, float | BaseException]:
    """Ask everything at once, each within a second."""
    found = await asyncio.gather(*(opened.ask(peer.one(name), 1.0) for name in NUMBERS), return_exceptions=True)
    return {name: _outcome(each) for name, each in zip(NUMBERS, found, strict=True)}


def _outcome(found: tuple[RawSample, ...] | BaseException) -> float | BaseException:
    return found if isinstance(found, BaseException) else found[0].value


async def test_a_slow_question_fails_alone_after_few_intervals_and_until_it_is_fast_again(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    async with backend_of(peer) as opened:
        await opened.ask(peer.one("q0"), 20)
        assert await outcomes(opened, peer) == NUMBERS
        peer.hop.stall_for(SLOW.encode())
        answered = []
        for _ in range(5):
            found = await outcomes(opened, peer)
            slow = found.pop(SLOW)
            assert isinstance(slow, BackendTimeout)
            assert slow.message == "no answer within 1s"
            answered.append(sum(found[name] == OTHERS[name] for name in OTHERS))
        assert answered == [0, 4, 6, 7, 7]
        peer.recover()
        for _ in range(2):
            assert await outcomes(opened, peer) == NUMBERS
