"""The state machine of the circuit breaker; time is an argument."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from adapter.backends.resilience.circuit_breaker import CircuitBreaker, CircuitState

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def closed_breaker() -> CircuitBreaker:
    return CircuitBreaker(
        failure_threshold=3, open_duration=timedelta(seconds=2), max_open_duration=timedelta(seconds=5)
    )


def open_breaker() -> CircuitBreaker:
    breaker = closed_breaker()
    for query in "abc":
        breaker.failed(at(0), query)
    return breaker


def test_circuit_is_closed_at_first() -> None:
    assert closed_breaker().state(at(0)) is CircuitState.CLOSED
    assert closed_breaker().allows(at(0))


def test_failures_of_different_queries_in_a_row_open_the_circuit() -> None:
    assert open_breaker().state(at(0)) is CircuitState.OPEN
    assert not open_breaker().allows(at(1.9))


def test_failures_of_a_single_query_never_open_the_circuit() -> None:
    breaker = closed_breaker()
    for second in range(100):
        breaker.failed(at(second), "the same")
    assert breaker.allows(at(100))


def test_success_resets_the_count_of_failures() -> None:
    breaker = closed_breaker()
    breaker.failed(at(0), "a")
    breaker.failed(at(0), "b")
    breaker.succeeded()
    breaker.failed(at(0), "c")
    assert breaker.allows(at(0))


def test_half_open_circuit_allows_one_probe() -> None:
    breaker = open_breaker()
    assert breaker.state(at(2)) is CircuitState.HALF_OPEN
    assert [breaker.allows(at(2)) for _ in range(3)] == [True, False, False]


def test_successful_probe_closes_the_circuit() -> None:
    breaker = open_breaker()
    assert breaker.allows(at(2))
    breaker.succeeded()
    assert [breaker.allows(at(2)) for _ in range(3)] == [True, True, True]


def test_failed_probe_doubles_the_open_duration_up_to_the_maximum() -> None:
    breaker, now = open_breaker(), 2.0
    durations = []
    for _ in range(4):
        assert breaker.allows(at(now))
        breaker.failed(at(now), "a")
        duration = next(
            seconds for seconds in range(1, 20) if breaker.state(at(now + seconds)) is CircuitState.HALF_OPEN
        )
        durations.append(duration)
        now += duration
    assert durations == [4, 5, 5, 5]


def test_abandoned_probe_allows_another_probe() -> None:
    breaker = open_breaker()
    assert breaker.allows(at(2))
    breaker.abandoned()
    assert breaker.allows(at(2))


def test_probe_without_a_reported_result_does_not_block_the_circuit_for_ever() -> None:
    breaker = open_breaker()
    assert breaker.allows(at(2))
    assert not breaker.allows(at(6.9))
    assert breaker.allows(at(7))


@given(st.lists(st.tuples(st.sampled_from(["success", "failure", "abandoned"]), st.floats(0, 3))))
def test_some_request_is_allowed_within_twice_the_maximum_open_duration(steps: list[tuple[str, float]]) -> None:
    breaker, now = closed_breaker(), 0.0
    for number, (step, wait) in enumerate(steps):
        now += wait
        if breaker.allows(at(now)):
            if step == "success":
                breaker.succeeded()
            elif step == "failure":
                breaker.failed(at(now), str(number))
            else:
                breaker.abandoned()
    assert breaker.allows(at(now + 10))
