"""The circuits of several namespaces on one backend."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.backends.resilience.circuits import Circuits
from adapter.backends.resilience.rate_limit import OPERATOR
from adapter.backends.settings import CircuitBreakerSettings
from adapter.errors import BackendUnreachable

START = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = CircuitBreakerSettings(
    failure_threshold=3, open_duration=timedelta(seconds=2), max_open_duration=timedelta(seconds=8)
)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def with_failures(namespace: str, seconds: float = 0, queries: str = "abc") -> Circuits:
    circuits = Circuits(SETTINGS)
    for query in queries:
        circuits.failed(namespace, at(seconds), query, BackendUnreachable(f"secret of {namespace}"))
    return circuits


def test_failures_of_a_namespace_open_only_its_own_circuit():
    circuits = with_failures("bad")
    assert [circuits.allows(name, at(1)) for name in ("bad", "good", OPERATOR)] == [False, True, True]


def test_failures_of_several_namespaces_together_open_no_circuit_of_others():
    circuits = Circuits(SETTINGS)
    for number in range(100):
        circuits.failed(f"bad{number % 20}", at(0), str(number), BackendUnreachable("x"))
    assert [circuits.allows(name, at(1)) for name in ("bad1", "good", OPERATOR)] == [False, True, True]


def test_failures_of_the_operator_open_the_circuit_for_all_namespaces():
    circuits = with_failures(OPERATOR)
    assert [circuits.allows(name, at(1)) for name in ("a", "b", OPERATOR)] == [False, False, False]


def test_each_namespace_may_send_one_probe():
    circuits = with_failures(OPERATOR)
    assert [circuits.allows(name, at(2)) for name in ("a", "b", OPERATOR)] == [True] * 3
    assert [circuits.allows(name, at(2)) for name in ("a", "b", OPERATOR)] == [False] * 3


def test_rejected_query_of_a_namespace_closes_the_circuit_of_the_operator_only_as_a_probe():
    circuits = with_failures(OPERATOR, queries="ab")
    circuits.rejected("a", at(0))
    circuits.failed(OPERATOR, at(0), "c", BackendUnreachable("x"))
    circuits.rejected("a", at(1))
    assert not circuits.allows(OPERATOR, at(1))
    assert circuits.allows("a", at(2))
    circuits.rejected("a", at(2))
    assert all(circuits.allows(name, at(2)) for name in ("a", "b", OPERATOR) for _ in range(3))


def test_successful_probe_of_a_namespace_closes_the_circuit_of_the_operator():
    circuits = with_failures(OPERATOR)
    assert circuits.allows("a", at(2))
    circuits.succeeded("a")
    assert all(circuits.allows(name, at(2)) for name in ("a", "b", OPERATOR) for _ in range(3))


def test_failed_probe_of_a_namespace_has_no_effect_on_others():
    circuits = with_failures(OPERATOR)
    assert circuits.allows("bad", at(2))
    circuits.failed("bad", at(2), "q", BackendUnreachable("x"))
    assert [circuits.allows(name, at(2.1)) for name in ("bad", "good", OPERATOR)] == [False, True, True]


def test_unreported_probe_of_a_namespace_does_not_block_others():
    circuits = with_failures(OPERATOR)
    assert circuits.allows("bad", at(2))
    assert circuits.allows("good", at(2))


@pytest.mark.parametrize(("failed", "text"), [("bad", "no request was sent yet"), (OPERATOR, "secret of ")])
def test_error_of_an_open_circuit_never_has_the_text_of_another_namespace(failed: str, text: str):
    assert with_failures(failed).last_failure("good", at(0)).message == text
    assert with_failures("good").last_failure("good", at(0)).message == "secret of good"


STEPS = st.tuples(
    st.sampled_from(["bad1", "bad2", "bad3"]), st.sampled_from(["fail", "abandon", "nothing"]), st.floats(0, 3)
)


@settings(deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_namespace_that_never_fails_is_never_stopped_by_others(steps: list[tuple[str, str, float]]):
    circuits, now = Circuits(SETTINGS), 0.0
    for number, (namespace, result, wait) in enumerate(steps):
        now += wait
        if circuits.allows(namespace, at(now)):
            if result == "fail":
                circuits.failed(namespace, at(now), str(number), BackendUnreachable("x"))
            elif result == "abandon":
                circuits.abandoned(namespace)
        assert circuits.allows("good", at(now))
        circuits.succeeded("good")
