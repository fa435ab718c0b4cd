"""Slots for concurrent work that no single holder can use up."""

from contextlib import ExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.errors import TooManyConcurrentRequests
from adapter.fair_limit import FairLimit


def taken(limit: FairLimit, stack: ExitStack, holder: str, attempts: int) -> int:
    """Try to hold slots until the stack is closed; return how many the holder got."""
    before = limit.in_use
    for _ in range(attempts):
        try:
            stack.enter_context(limit.hold(holder))
        except TooManyConcurrentRequests:
            break
    return limit.in_use - before


def test_holders_get_half_of_what_is_free():
    limit = FairLimit(200, TooManyConcurrentRequests)
    with ExitStack() as stack:
        assert [taken(limit, stack, holder, 300) for holder in "abcd"] == [100, 50, 25, 13]


def test_single_slot_can_be_used_and_is_given_back():
    limit = FairLimit(1, TooManyConcurrentRequests)
    with limit.hold("a"), pytest.raises(TooManyConcurrentRequests), limit.hold("b"):
        pass
    with limit.hold("b"):
        assert limit.in_use == 1
    assert limit.in_use == 0
    assert limit._held == {}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 80)), max_size=20))
@settings(deadline=None)
def test_three_holders_leave_slots_for_a_fourth(requests: list[tuple[str, int]]):
    limit = FairLimit(64, TooManyConcurrentRequests)
    with ExitStack() as stack:
        for holder, attempts in requests:
            taken(limit, stack, holder, attempts)
        with limit.hold("another"):
            assert limit.in_use <= 64
