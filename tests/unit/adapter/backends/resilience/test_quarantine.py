"""What becomes of late calls, without any call."""

from adapter.backends.resilience.quarantine import Suspects

LONG = 3600


def slow(suspects: Suspects, first: int, last: int, now: float) -> None:
    """Have each of these be late by itself, while another is answered."""
    for number in range(first, last):
        suspects.answered(["another"], now - 5, now - 4, now)
        suspects.late([str(number)], now - 5, now)


def test_there_are_no_more_parts_than_a_system_can_be_asked():
    suspects = Suspects()
    slow(suspects, 0, 32, 100)
    suspects.late(["a", "b"], 95, 100)
    assert suspects.part("a") is suspects.part("b") is None


def test_parts_that_nobody_asks_for_any_more_do_not_count():
    suspects = Suspects()
    slow(suspects, 0, 32, 100)
    suspects.late(["a", "b"], 101 + LONG, 106 + LONG)
    assert suspects.part("a") is not None


def test_a_question_that_is_asked_twice_in_a_call_is_one():
    suspects = Suspects()
    suspects.late(["a", "a"], 0, 5)
    suspects.late(["a", "a"], 10, 15)
    assert len(suspects) == 1
    suspects.answered(["b"], 16, 17, 21)
    suspects.late(["a", "a"], 20, 25)
    part = suspects.part("a")
    assert part is not None
    assert part.is_proven


def test_one_that_was_late_by_itself_while_nobody_was_answered_goes_with_the_others_once_it_is_in_time():
    suspects = Suspects()
    suspects.late(["a"], 0, 5)
    suspects.answered(["a"], 10, 14.9, 15)
    assert suspects.part("a") is None


def test_one_that_is_late_by_itself_again_is_slow_if_another_was_answered_in_between():
    suspects = Suspects()
    suspects.late(["a"], 0, 5)
    suspects.late(["a"], 10, 15)
    before = suspects.part("a")
    suspects.answered(["another"], 16, 17, 21)
    suspects.late(["a"], 20, 25)
    after = suspects.part("a")
    assert before is not None
    assert after is not None
    assert (before.is_proven, after.is_proven) == (False, True)


def test_one_that_is_slow_by_itself_says_nothing_of_those_it_went_with():
    suspects = Suspects()
    suspects.late(["a", "b", "c", "d"], 0, 5)
    suspects.answered(["another"], 6, 7, 11)
    suspects.late(["a"], 10, 15)
    one, other = suspects.part("a"), suspects.part("b")
    assert one is not None
    assert other is not None
    assert (one.is_proven, other.is_proven) == (True, False)


def test_what_was_under_way_when_the_system_was_found_slow_parts_nothing():
    suspects = Suspects()
    calls = [[f"{call} {number}" for number in range(4)] for call in range(17)]
    for now in (5, 10):
        for call in calls:
            suspects.late(call, now - 5, now)
    parts = {suspects.part(question) for call in calls for question in call}
    assert len(parts) == 2
    assert None in parts
