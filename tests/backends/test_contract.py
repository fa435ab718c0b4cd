"""The contract of all backends: values, error classes, deadlines, recovery, no leaks and no blocking calls."""

import asyncio
import logging
from contextlib import suppress
from datetime import timedelta

import pytest

from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendBusy, BackendError, BackendUnreachable
from adapter.process import clock
from adapter.sample import RawSample
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import OpenBackend, configuration_for, open_backend, query_for
from tests.backends.contract import Case, ContractPeer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_resource_leaks")]
SHORT = 0.5
NUMBERS = {"orders": 3, "mails": 12, "parcels": 0}


async def failure(opened: OpenBackend, seconds: float | None = None, name: str = "orders") -> BackendError:
    with pytest.raises(BackendError) as caught:
        await opened.fetch(opened.peer.parameters_for(name), seconds)
    return caught.value


async def wait_until_recovered(opened: OpenBackend, peer: ContractPeer) -> None:
    """Wait for a value: after a failure the circuit may be open for a second, and the client reconnects."""
    ends = asyncio.get_running_loop().time() + 15
    while True:
        error: BackendError | None = None
        try:
            samples = await opened.fetch(peer.parameters_for("orders"))
        except BackendError as raised:
            error, samples = raised, ()
        if samples:
            assert [sample.value for sample in samples] == [NUMBERS["orders"]]
            return
        assert asyncio.get_running_loop().time() < ends, f"no value: {error!r}"
        await asyncio.sleep(0.05)


def values_by_labels(samples: tuple[RawSample, ...]) -> dict[tuple[tuple[str, str], ...], float]:
    return {tuple(sorted(sample.labels.items())): sample.value for sample in samples}


@pytest.mark.case(Case.VALUE)
async def test_sample_has_its_value_labels_and_timestamp(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    async with open_backend(peer) as opened:
        for name, number in NUMBERS.items():
            (sample,) = await opened.fetch(peer.parameters_for(name))
            assert (sample.value, dict(sample.labels)) == (number, dict(peer.labels(name)))
            assert isinstance(sample.value, float | int)
            assert timedelta(seconds=-5) < clock() - sample.at < timedelta(minutes=5)
        peer.set_values({**NUMBERS, "orders": 5})
        (sample,) = await opened.fetch(peer.parameters_for("orders"))
        assert sample.value == 5


@pytest.mark.case(Case.SEVERAL)
async def test_each_of_several_series_has_its_value_and_labels(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    async with open_backend(peer) as opened:
        results = await opened.fetch(peer.parameters_for_all())
    assert len(results) == len(NUMBERS)
    assert values_by_labels(results) == {
        tuple(sorted(peer.labels_among_all(name).items())): number for name, number in NUMBERS.items()
    }


@pytest.mark.case(Case.EMPTY)
async def test_empty_result_is_not_an_error(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    async with open_backend(peer) as opened:
        assert await opened.fetch(peer.parameters_without_result()) == ()


@pytest.mark.case(Case.UNKNOWN)
async def test_unknown_metric_has_the_declared_failure(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    async with open_backend(peer) as opened:
        if peer.unknown_failure is None:
            assert await opened.fetch(peer.parameters_for_unknown()) == ()
            return
        with pytest.raises(BackendError) as caught:
            await opened.fetch(peer.parameters_for_unknown())
        assert caught.value.failure is peer.unknown_failure
        await wait_until_recovered(opened, peer)


@pytest.mark.case(Case.UNKNOWN)
async def test_unknown_metrics_do_not_open_the_circuit(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    async with open_backend(peer) as opened:
        for number in range(8):
            with suppress(BackendError):
                await opened.fetch(peer.parameters_for(f"does-not-exist-{number}"))
        (sample,) = await opened.fetch(peer.parameters_for("orders"))
        assert sample.value == NUMBERS["orders"]


@pytest.mark.case(Case.REFUSED)
async def test_refused_connection_is_unreachable_until_recovery(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    async with open_backend(peer) as opened:
        await wait_until_recovered(opened, peer)
        peer.proxy.refuse_connections()
        errors = [await failure(opened) for _ in range(3)]
        assert {error.failure for error in errors} == {FailureClass.UNREACHABLE}
        assert len({error.message for error in errors[1:]}) == 1, "the message is the same for the same cause"
        peer.recover()
        await wait_until_recovered(opened, peer)


@pytest.mark.case(Case.TIMED_OUT)
async def test_stalled_response_times_out_at_the_deadline(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    async with open_backend(peer) as opened:
        await wait_until_recovered(opened, peer)
        peer.proxy.stall()
        for _ in range(2):
            await assert_times_out(opened)
        peer.recover()
        await wait_until_recovered(opened, peer)


@pytest.mark.case(Case.TIMED_OUT)
async def test_stalled_first_connection_times_out_at_the_deadline(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    peer.proxy.stall()
    async with open_backend(peer) as opened:
        await assert_times_out(opened)
        peer.recover()
        await wait_until_recovered(opened, peer)


@pytest.mark.case(Case.DRIPPING)
async def test_response_of_one_byte_at_a_time_times_out_at_the_deadline(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    async with open_backend(peer) as opened:
        await wait_until_recovered(opened, peer)
        peer.proxy.drip(peer.response_start)
        await assert_times_out(opened)
        peer.recover()
        await wait_until_recovered(opened, peer)


async def assert_times_out(opened: OpenBackend) -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    error = await failure(opened, SHORT)
    assert (error.failure, error.message) == (FailureClass.TIMED_OUT, f"no response within {SHORT:g}s")
    assert SHORT * 0.9 < loop.time() - started < SHORT + 10  # a busy machine is late; client libraries wait longer


@pytest.mark.case(Case.CUT)
@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"])
async def test_closed_connection_is_unreachable(peer: ContractPeer, start: bytes) -> None:
    peer.set_values(NUMBERS)
    async with open_backend(peer) as opened:
        await wait_until_recovered(opened, peer)
        peer.proxy.cut(start)
        errors = [await failure(opened, name=name) for name in NUMBERS]
        assert {error.failure for error in errors} <= (
            peer.cut_failures if not start else peer.cut_failures | peer.garbage_failures
        )
        peer.recover()
        await wait_until_recovered(opened, peer)


@pytest.mark.case(Case.SLOW)
async def test_slow_response_within_the_deadline_succeeds(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    async with open_backend(peer) as opened:
        peer.proxy.delay(0.1)
        (sample,) = await opened.fetch(peer.parameters_for("orders"), peer.deadline_seconds * 2)
        assert sample.value == NUMBERS["orders"]


@pytest.mark.case(Case.THROTTLED)
async def test_exceeded_rate_limit_is_backend_busy(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    async with open_backend(peer) as opened:
        await wait_until_recovered(opened, peer)
        peer.throttle()
        errors = [await failure(opened) for _ in range(2)]
        assert {error.failure for error in errors} == {FailureClass.REFUSED}
        assert all(isinstance(error, BackendBusy) for error in errors), "only this error opens the circuit"
        assert len({error.message for error in errors}) == 1
        peer.recover()
        await wait_until_recovered(opened, peer)


@pytest.mark.case(Case.UNAUTHORIZED)
async def test_rejected_credentials_are_unauthorized(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    async with open_backend(peer) as opened:
        peer.reject_credentials()
        errors = [await failure(opened) for _ in range(2)]
        assert {error.failure for error in errors} == {FailureClass.UNAUTHORIZED}
        assert len({error.message for error in errors}) == 1
        peer.recover()
        await wait_until_recovered(opened, peer)


@pytest.mark.case(Case.RENEWED)
async def test_renewed_credentials_are_read_from_their_file(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    async with open_backend(peer) as opened:
        await wait_until_recovered(opened, peer)
        peer.expire_credentials()
        try:
            assert (await failure(opened)).failure is FailureClass.UNAUTHORIZED
        finally:
            peer.renew_credentials()
        await wait_until_recovered(opened, peer)


@pytest.mark.case(Case.UNREADABLE)
async def test_missing_credentials_file_is_reported_by_its_setting(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    peer.remove_credentials()
    try:
        async with open_backend(peer) as opened:
            error = await failure(opened)
            assert error.failure is FailureClass.UNAUTHORIZED
            assert "File cannot be read" in error.message
            assert str(peer.folder) not in error.message
            peer.renew_credentials()
            await wait_until_recovered(opened, peer)
    finally:
        peer.renew_credentials()


@pytest.mark.case(Case.GARBAGE)
async def test_invalid_response_is_rejected_with_a_constant_message(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    async with open_backend(peer) as opened:
        await wait_until_recovered(opened, peer)
        peer.send_garbage()
        errors = [await failure(opened) for _ in range(2)]
        assert {error.failure for error in errors} <= peer.garbage_failures
        assert len({error.message for error in errors}) == 1
        peer.recover()
        await wait_until_recovered(opened, peer)


@pytest.mark.case(Case.CANCELLED)
async def test_cancelled_fetch_does_not_affect_others(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    async with open_backend(peer) as opened:
        await wait_until_recovered(opened, peer)
        peer.proxy.delay(0.3)
        cancelled = asyncio.create_task(opened.fetch(peer.parameters_for("orders")))
        other = asyncio.create_task(opened.fetch(peer.parameters_for("mails"), peer.deadline_seconds * 2))
        await asyncio.sleep(0.1)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        (sample,) = await other
        assert sample.value == NUMBERS["mails"]
        peer.recover()
        await wait_until_recovered(opened, peer)


@pytest.mark.case(Case.CLOSED)
async def test_closing_fails_running_fetches(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    loop = asyncio.get_running_loop()
    async with open_backend(peer) as opened:
        await wait_until_recovered(opened, peer)
        peer.proxy.stall()
        waiting = asyncio.create_task(opened.fetch(peer.parameters_for("orders"), 30))
        await asyncio.sleep(0.2)
        started = loop.time()
        await opened.backend.aclose()
        with pytest.raises(BackendUnreachable):
            await waiting
        assert loop.time() - started < 5
        with pytest.raises(BackendUnreachable):
            await opened.fetch(peer.parameters_for("orders"), 1)
        peer.recover()


@pytest.mark.case(Case.CONCURRENT)
async def test_concurrent_fetches_get_their_own_results(peer: ContractPeer) -> None:
    peer.set_values(NUMBERS)
    names = list(NUMBERS) * 20
    async with open_backend(peer) as opened:
        results = await asyncio.gather(
            *(opened.fetch(peer.parameters_for(name), peer.deadline_seconds * 4) for name in names)
        )
    assert [[sample.value for sample in result] for result in results] == [[NUMBERS[name]] for name in names]


@pytest.mark.case(Case.SECRETS)
async def test_no_secret_is_in_an_error_a_log_record_or_a_repr(
    peer: ContractPeer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    peer.set_values(NUMBERS)
    seen: list[str] = []
    async with open_backend(peer) as opened:
        await wait_until_recovered(opened, peer)
        for fail in (
            peer.reject_credentials,
            peer.throttle,
            peer.send_garbage,
            peer.proxy.cut,
            peer.proxy.refuse_connections,
        ):
            try:
                fail()
            except NotImplementedError:
                continue
            error = await failure(opened, 1)
            seen += [error.message, error.detail, repr(error), str(error.__cause__), str(error.__context__)]
            peer.recover()
        seen += [
            repr(opened.backend),
            repr(configuration_for(peer)),
            query_for(peer, peer.parameters_for("orders")).text,
        ]
        seen += [str(vars(record)) for record in caplog.records]
    assert peer.secrets
    assert [text for text in seen for secret in peer.secrets if secret in text] == []


@pytest.mark.case(Case.PING)
async def test_ping_fails_if_the_connection_is_refused(peer: ContractPeer) -> None:
    async with open_backend(peer) as opened:
        await opened.backend.ping()
        peer.proxy.refuse_connections()
        with pytest.raises(BackendError) as caught:
            await opened.backend.ping()
        assert caught.value.failure is FailureClass.UNREACHABLE
        assert opened.backend.name == "it"


@pytest.mark.case(Case.PARAMETERS)
async def test_misspelt_parameter_is_reported_with_a_suggestion(peer: ContractPeer) -> None:
    valid = peer.parameters_for("orders")
    key = max(valid, key=len)
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, {**valid, f"{key}z": 1})
    assert caught.value.messages == (f"rules[0].parameters.{key}z: unknown key; did you mean '{key}'?",)
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, {**valid, key: {"invalid": ["type"]}})
    assert caught.value.messages
    assert all(problem.startswith(f"rules[0].parameters.{key}") for problem in caught.value.messages)
