"""The same for every backend: right numbers, every failure told by its class, nothing left, nothing blocked."""

import asyncio
import logging
from contextlib import suppress
from datetime import timedelta

import pytest

from adapter.app import clock
from adapter.errors import BackendBusy, BackendError, BackendUnreachable, ConfigInvalid
from adapter.sample import RawSample
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import Opened, backend_of, configured, question
from tests.backends.contract import Case, ContractPeer

pytestmark = pytest.mark.usefixtures("nothing_is_left")
SHORT = 0.5
NUMBERS = {"orders": 3, "mails": 12, "parcels": 0}


async def failure(opened: Opened, seconds: float | None = None, name: str = "orders") -> BackendError:
    with pytest.raises(BackendError) as caught:
        await opened.ask(opened._peer.one(name), seconds)
    return caught.value


async def is_well(opened: Opened, peer: ContractPeer) -> None:
    """See that it answers, soon after trouble is over: a breaker may rest for a second, a client connect anew."""
    ends = asyncio.get_running_loop().time() + 15
    while True:
        try:
            (sample,) = await opened.ask(peer.one("orders"))
        except BackendError:
            if asyncio.get_running_loop().time() > ends:
                raise
            await asyncio.sleep(0.05)
        else:
            assert sample.value == NUMBERS["orders"]
            return


def told(samples: tuple[RawSample, ...]) -> dict[tuple[tuple[str, str], ...], float]:
    return {tuple(sorted(sample.labels.items())): sample.value for sample in samples}


@pytest.mark.case(Case.VALUE)
async def test_one_number_has_its_value_its_labels_and_its_time(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    async with backend_of(peer) as opened:
        for name, number in NUMBERS.items():
            (sample,) = await opened.ask(peer.one(name))
            assert (sample.value, dict(sample.labels)) == (number, dict(peer.labels(name)))
            assert isinstance(sample.value, float | int)
            assert timedelta(seconds=-5) < clock() - sample.at < timedelta(minutes=5)
        peer.hold({**NUMBERS, "orders": 5})
        (sample,) = await opened.ask(peer.one("orders"))
        assert sample.value == 5


@pytest.mark.case(Case.SEVERAL)
async def test_several_series_each_have_their_own(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    async with backend_of(peer) as opened:
        found = await opened.ask(peer.several())
    assert len(found) == len(NUMBERS)
    assert told(found) == {
        tuple(sorted(peer.labels_among_several(name).items())): number for name, number in NUMBERS.items()
    }


@pytest.mark.case(Case.EMPTY)
async def test_nothing_found_is_no_series_and_no_error(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    async with backend_of(peer) as opened:
        assert await opened.ask(peer.nothing()) == ()


@pytest.mark.case(Case.UNKNOWN)
async def test_what_does_not_exist_is_told_as_it_is_said_to_be(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    async with backend_of(peer) as opened:
        if peer.unknown_is is None:
            assert await opened.ask(peer.unknown()) == ()
            return
        with pytest.raises(BackendError) as caught:
            await opened.ask(peer.unknown())
        assert caught.value.failure is peer.unknown_is
        await is_well(opened, peer)


@pytest.mark.case(Case.UNKNOWN)
async def test_many_rules_for_what_does_not_exist_keep_no_other_waiting(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    async with backend_of(peer) as opened:
        for number in range(8):
            with suppress(BackendError):
                await opened.ask(peer.one(f"nobody-has-heard-of-{number}"))
        (sample,) = await opened.ask(peer.one("orders"))
        assert sample.value == NUMBERS["orders"]


@pytest.mark.case(Case.REFUSED)
async def test_nobody_listening_is_unreachable_until_somebody_does(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    async with backend_of(peer) as opened:
        await is_well(opened, peer)
        peer.hop.refuse()
        said = [await failure(opened) for _ in range(3)]
        assert {each.failure for each in said} == {FailureClass.UNREACHABLE}
        assert len({each.message for each in said[1:]}) == 1, "the words stay the same while the cause does"
        peer.recover()
        await is_well(opened, peer)


@pytest.mark.case(Case.TIMED_OUT)
async def test_silence_is_timed_out_when_the_deadline_says_so(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    async with backend_of(peer) as opened:
        await is_well(opened, peer)
        peer.hop.stall()
        for _ in range(2):
            await deadline_kept(opened)
        peer.recover()
        await is_well(opened, peer)


@pytest.mark.case(Case.TIMED_OUT)
async def test_silence_from_the_first_moment_is_timed_out_too(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    peer.hop.stall()
    async with backend_of(peer) as opened:
        await deadline_kept(opened)
        peer.recover()
        await is_well(opened, peer)


@pytest.mark.case(Case.DRIPPING)
async def test_a_byte_now_and_then_keeps_nobody_past_the_deadline(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    async with backend_of(peer) as opened:
        await is_well(opened, peer)
        peer.hop.drip(peer.begins)
        await deadline_kept(opened)
        peer.recover()
        await is_well(opened, peer)


async def deadline_kept(opened: Opened) -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    error = await failure(opened, SHORT)
    assert (error.failure, error.message) == (FailureClass.TIMED_OUT, f"no answer within {SHORT:g}s")
    assert SHORT * 0.9 < loop.time() - started < SHORT + 0.5


@pytest.mark.case(Case.CUT)
@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"])
async def test_a_connection_that_breaks_is_unreachable(peer: ContractPeer, beginning: bytes) -> None:
    peer.hold(NUMBERS)
    async with backend_of(peer) as opened:
        await is_well(opened, peer)
        peer.hop.cut(beginning)
        said = [await failure(opened, name=name) for name in NUMBERS]
        assert {each.failure for each in said} <= (peer.cut_is if not beginning else peer.cut_is | peer.garbage_is)
        peer.recover()
        await is_well(opened, peer)


@pytest.mark.case(Case.SLOW)
async def test_slow_is_no_failure_within_the_deadline(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    async with backend_of(peer) as opened:
        peer.hop.slow(0.1)
        (sample,) = await opened.ask(peer.one("orders"), peer.patience * 2)
        assert sample.value == NUMBERS["orders"]


@pytest.mark.case(Case.THROTTLED)
async def test_being_asked_too_often_is_refused_and_not_asked_more_often_for_it(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    async with backend_of(peer) as opened:
        await is_well(opened, peer)
        peer.throttle()
        said = [await failure(opened) for _ in range(2)]
        assert {each.failure for each in said} == {FailureClass.REFUSED}
        assert all(isinstance(each, BackendBusy) for each in said), "else nobody would leave it in peace"
        assert len({each.message for each in said}) == 1
        peer.recover()
        await is_well(opened, peer)


@pytest.mark.case(Case.UNAUTHORISED)
async def test_not_being_admitted_is_unauthorised(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    async with backend_of(peer) as opened:
        peer.lock_out()
        said = [await failure(opened) for _ in range(2)]
        assert {each.failure for each in said} == {FailureClass.UNAUTHORIZED}
        assert len({each.message for each in said}) == 1
        peer.recover()
        await is_well(opened, peer)


@pytest.mark.case(Case.RENEWED)
async def test_a_secret_that_expired_is_replaced_by_what_is_in_its_file(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    async with backend_of(peer) as opened:
        await is_well(opened, peer)
        peer.expire()
        try:
            assert (await failure(opened)).failure is FailureClass.UNAUTHORIZED
        finally:
            peer.renew()
        await is_well(opened, peer)


@pytest.mark.case(Case.UNREADABLE)
async def test_a_secret_that_is_not_there_is_told_by_the_name_of_its_setting(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    peer.lose_secret()
    try:
        async with backend_of(peer) as opened:
            error = await failure(opened)
            assert error.failure is FailureClass.UNAUTHORIZED
            assert "File cannot be read" in error.message
            assert str(peer.folder) not in error.message
            peer.renew()
            await is_well(opened, peer)
    finally:
        peer.renew()


@pytest.mark.case(Case.GARBAGE)
async def test_nonsense_is_refused_in_words_that_stay_the_same(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    async with backend_of(peer) as opened:
        await is_well(opened, peer)
        peer.talk_nonsense()
        said = [await failure(opened) for _ in range(2)]
        assert {each.failure for each in said} <= peer.garbage_is
        assert len({each.message for each in said}) == 1
        peer.recover()
        await is_well(opened, peer)


@pytest.mark.case(Case.CANCELLED)
async def test_who_leaves_takes_nobody_along(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    async with backend_of(peer) as opened:
        await is_well(opened, peer)
        peer.hop.slow(0.3)
        leaving = asyncio.create_task(opened.ask(peer.one("orders")))
        staying = asyncio.create_task(opened.ask(peer.one("mails"), peer.patience * 2))
        await asyncio.sleep(0.1)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        (sample,) = await staying
        assert sample.value == NUMBERS["mails"]
        peer.recover()
        await is_well(opened, peer)


@pytest.mark.case(Case.CLOSED)
async def test_closing_ends_what_is_under_way_and_tells_who_waits(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    loop = asyncio.get_running_loop()
    async with backend_of(peer) as opened:
        await is_well(opened, peer)
        peer.hop.stall()
        waiting = asyncio.create_task(opened.ask(peer.one("orders"), 30))
        await asyncio.sleep(0.2)
        started = loop.time()
        await opened.backend.aclose()
        with pytest.raises(BackendUnreachable):
            await waiting
        assert loop.time() - started < 5
        with pytest.raises(BackendUnreachable):
            await opened.ask(peer.one("orders"), 1)
        peer.recover()


@pytest.mark.case(Case.CROWD)
async def test_a_crowd_gets_right_answers_each_its_own(peer: ContractPeer) -> None:
    peer.hold(NUMBERS)
    names = list(NUMBERS) * 20
    async with backend_of(peer) as opened:
        found = await asyncio.gather(*(opened.ask(peer.one(name), peer.patience * 4) for name in names))
    assert [[sample.value for sample in each] for each in found] == [[NUMBERS[name]] for name in names]


@pytest.mark.case(Case.SECRETS)
async def test_no_secret_is_in_any_message_detail_log_or_picture(
    peer: ContractPeer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    peer.hold(NUMBERS)
    seen: list[str] = []
    async with backend_of(peer) as opened:
        await is_well(opened, peer)
        for trouble in (peer.lock_out, peer.throttle, peer.talk_nonsense, peer.hop.cut, peer.hop.refuse):
            try:
                trouble()
            except NotImplementedError:
                continue
            error = await failure(opened, 1)
            seen += [error.message, error.detail, repr(error), str(error.__cause__), str(error.__context__)]
            peer.recover()
        seen += [repr(opened.backend), repr(configured(peer)), question(peer, peer.one("orders")).text]
        seen += [str(vars(record)) for record in caplog.records]
    assert peer.secrets
    assert [text for text in seen for secret in peer.secrets if secret in text] == []


@pytest.mark.case(Case.PING)
async def test_a_ping_says_whether_it_is_there(peer: ContractPeer) -> None:
    async with backend_of(peer) as opened:
        await opened.backend.ping()
        peer.hop.refuse()
        with pytest.raises(BackendError) as caught:
            await opened.backend.ping()
        assert caught.value.failure is FailureClass.UNREACHABLE
        assert opened.backend.name == "it"


@pytest.mark.case(Case.PARAMETERS)
async def test_a_misspelt_parameter_is_told_when_the_rule_is_read_with_the_right_one(peer: ContractPeer) -> None:
    right = peer.one("orders")
    key = max(right, key=len)
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, {**right, f"{key}z": 1})
    assert caught.value.problems == (f"rules[0].parameters.{key}z: unknown key; did you mean '{key}'?",)
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, {**right, key: {"no": ["such", "thing"]}})
    assert caught.value.problems
    assert all(problem.startswith(f"rules[0].parameters.{key}") for problem in caught.value.problems)
