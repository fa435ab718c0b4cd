"""Deadline, circuit breaker and closing of ``ProtectedCall``, in virtual time."""

import asyncio
from datetime import timedelta

import pytest

from adapter.backends.resilience.protected_call import ProtectedCall
from adapter.backends.settings import CircuitBreakerSettings
from adapter.errors import (
    Ambiguous,
    BackendBusy,
    BackendError,
    BackendMetricUnknown,
    BackendRejected,
    BackendTimeout,
    BackendUnauthorized,
    BackendUnreachable,
    BadQuery,
)
from tests.fakes.backend import loop_clock

pytestmark = pytest.mark.looptime
SECOND = timedelta(seconds=1)
REMOVED = "the backend was removed from the configuration"


def protected_call(failure_threshold: int = 2) -> ProtectedCall:
    limits = CircuitBreakerSettings(failure_threshold, open_duration=SECOND, max_open_duration=SECOND * 4)
    return ProtectedCall(limits, loop_clock)


async def succeed() -> int:
    return 42


async def hang() -> int:
    await asyncio.sleep(3600)
    return 0


async def refuse() -> int:
    raise BackendUnreachable("connection refused", detail="x")


async def half_open() -> ProtectedCall:
    protected = protected_call(failure_threshold=1)
    with pytest.raises(BackendUnreachable):
        await protected.run("q", SECOND, refuse)
    await asyncio.sleep(1.1)
    return protected


async def test_result_of_the_operation_is_returned():
    assert await protected_call().run("q", SECOND, succeed) == 42


async def test_deadline_cancels_the_operation():
    cancelled = []

    async def operation() -> int:
        try:
            return await hang()
        except asyncio.CancelledError:
            cancelled.append(asyncio.get_running_loop().time())
            raise

    with pytest.raises(BackendTimeout, match=r"^no response within 1s$"):
        await protected_call().run("q", SECOND, operation)
    assert cancelled == [pytest.approx(0.98)]


@pytest.mark.parametrize(
    "raised",
    [
        pytest.param(TimeoutError("a library's"), id="timeout of a library"),
        pytest.param(BackendTimeout("its own text", detail="x"), id="timeout of the backend"),
    ],
)
async def test_message_of_a_timeout_is_the_same_whatever_timed_out(raised: Exception):
    async def operation() -> int:
        raise raised

    with pytest.raises(BackendTimeout, match=r"^no response within 1s$"):
        await protected_call().run("q", SECOND, operation)


async def test_open_circuit_repeats_the_last_error_without_a_request_and_closes_after_a_success():
    protected, requests = protected_call(), []

    async def operation() -> int:
        requests.append(1)
        return await refuse()

    for number in range(10):
        with pytest.raises(BackendUnreachable, match=r"^connection refused$") as caught:
            await protected.run(f"q{number}", SECOND, operation)
    assert len(requests) == 2
    assert (caught.value.detail, caught.value.was_sent) == ("circuit breaker open: x", False)
    await asyncio.sleep(1.1)
    assert await protected.run("q", SECOND, succeed) == 42
    assert await protected.run("q", SECOND, succeed) == 42


@pytest.mark.parametrize("kind", [Ambiguous, BackendRejected, BackendUnauthorized, BackendMetricUnknown, BadQuery])
async def test_error_of_a_single_query_does_not_open_the_circuit(kind: type[BackendError]):
    protected = protected_call()

    async def operation() -> int:
        raise kind("HTTP 404 Not Found")

    for number in range(10):
        with pytest.raises(kind):
            await protected.run(f"q{number}", SECOND, operation)
    assert await protected.run("q", SECOND, succeed) == 42


async def test_exceeded_rate_limit_opens_the_circuit():
    protected = protected_call()

    async def operation() -> int:
        raise BackendBusy("HTTP 429 Too Many Requests")

    for number in range(2):
        with pytest.raises(BackendBusy):
            await protected.run(f"q{number}", SECOND, operation)
    with pytest.raises(BackendBusy, match=r"^HTTP 429 Too Many Requests$"):
        await protected.run("q", SECOND, succeed)


async def test_timeouts_of_quarantined_queries_do_not_open_the_circuit():
    protected = protected_call(failure_threshold=1)
    for number in range(5):
        with pytest.raises(BackendTimeout):
            await protected.run(f"q{number}", SECOND, hang, is_quarantined=True)
    assert await protected.run("q", SECOND, succeed) == 42


async def test_timeout_of_a_quarantined_probe_allows_another_probe():
    protected = await half_open()
    with pytest.raises(BackendTimeout):
        await protected.run("slow", SECOND, hang, is_quarantined=True)
    assert await protected.run("q", SECOND, succeed) == 42


async def test_closing_ends_running_operations_and_rejects_new_ones():
    protected = protected_call()
    running = asyncio.create_task(protected.run("q", SECOND * 60, hang))
    await asyncio.sleep(0.5)
    await protected.aclose()
    with pytest.raises(BackendUnreachable, match=REMOVED):
        await running
    with pytest.raises(BackendUnreachable, match=REMOVED):
        await protected.run("q", SECOND, succeed)
    assert asyncio.get_running_loop().time() == pytest.approx(0.5)


async def test_cancelled_probe_allows_another_probe():
    protected = await half_open()
    probe = asyncio.create_task(protected.run("q", SECOND, hang))
    await asyncio.sleep(0.1)
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    assert await protected.run("q", SECOND, succeed) == 42


async def test_unexpected_exception_in_the_probe_does_not_leave_the_circuit_half_open():
    protected = await half_open()

    async def fail_unexpectedly() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await protected.run("q", SECOND, fail_unexpectedly)
    assert await protected.run("q", SECOND, succeed) == 42
