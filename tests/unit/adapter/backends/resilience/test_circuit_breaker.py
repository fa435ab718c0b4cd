"""The breaker, step by step; time is an argument."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from adapter.backends.resilience.circuit_breaker import CircuitBreaker, State

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def breaker() -> CircuitBreaker:
    return CircuitBreaker(failures=3, rest=timedelta(seconds=2), longest=timedelta(seconds=5))


def opened() -> CircuitBreaker:
    made = breaker()
    for question in "abc":
        made.failed(at(0), question)
    return made


def test_it_lets_everything_through_at_first() -> None:
    assert breaker().state(at(0)) is State.CLOSED
    assert breaker().admits(at(0))


def test_different_questions_that_fail_in_a_row_open_it() -> None:
    assert opened().state(at(0)) is State.OPEN
    assert not opened().admits(at(1.9))


def test_one_question_alone_never_opens_it() -> None:
    made = breaker()
    for second in range(100):
        made.failed(at(second), "the same")
    assert made.admits(at(100))


def test_an_answer_in_between_starts_the_count_anew() -> None:
    made = breaker()
    made.failed(at(0), "a")
    made.failed(at(0), "b")
    made.succeeded()
    made.failed(at(0), "c")
    assert made.admits(at(0))


def test_after_its_rest_one_may_try_and_the_others_wait() -> None:
    made = opened()
    assert made.state(at(2)) is State.HALF_OPEN
    assert [made.admits(at(2)) for _ in range(3)] == [True, False, False]


def test_a_trial_that_works_lets_everything_through_at_once() -> None:
    made = opened()
    assert made.admits(at(2))
    made.succeeded()
    assert [made.admits(at(2)) for _ in range(3)] == [True, True, True]


def test_a_trial_that_fails_doubles_the_rest_up_to_the_longest() -> None:
    made, now = opened(), 2.0
    rests = []
    for _ in range(4):
        assert made.admits(at(now))
        made.failed(at(now), "a")
        rest = next(rest for rest in range(1, 20) if made.state(at(now + rest)) is State.HALF_OPEN)
        rests.append(rest)
        now += rest
    assert rests == [4, 5, 5, 5]


def test_a_trial_that_is_withdrawn_leaves_the_next_to_another() -> None:
    made = opened()
    assert made.admits(at(2))
    made.abandoned()
    assert made.admits(at(2))


def test_a_trial_that_never_reports_back_does_not_keep_it_shut() -> None:
    made = opened()
    assert made.admits(at(2))
    assert not made.admits(at(6.9))
    assert made.admits(at(7))


@given(st.lists(st.tuples(st.sampled_from(["ok", "fail", "leave"]), st.floats(0, 3))))
def test_whatever_happens_it_admits_someone_within_twice_the_longest_rest(steps: list[tuple[str, float]]) -> None:
    made, now = breaker(), 0.0
    for number, (step, wait) in enumerate(steps):
        now += wait
        if made.admits(at(now)):
            if step == "ok":
                made.succeeded()
            elif step == "fail":
                made.failed(at(now), str(number))
            else:
                made.abandoned()
    assert made.admits(at(now + 10))
