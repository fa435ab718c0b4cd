"""What a controller that starts anew remembers: as much as decides anything, and no more than fits in a line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from autoscaler.algorithm.limit import limit
from autoscaler.algorithm.stabilize import stabilize
from autoscaler.controller.persistence import MOST_KEPT, essence, recall, would_miss, write_down
from autoscaler.types.history import History, Recommendation, ScaleEvent
from autoscaler.types.spec import Policy
from tests.builders import NOW, SETTINGS, ago, later, make_behavior, make_rules, make_spec

PLAIN = make_spec()
BOTH_WINDOWS = make_spec(behavior=make_behavior(up=make_rules(window=120), down=make_rules(window=300)))


def recommended(*pairs):
    return History(tuple(Recommendation(replicas, ago(age)) for replicas, age in pairs))


def test_nothing_to_remember_is_no_line():
    assert write_down(History(), PLAIN, SETTINGS, NOW) is None
    assert recall(None, NOW) == History()


def test_only_what_no_later_recommendation_exceeds_is_kept():
    past = recommended((9, 290), (4, 200), (7, 100), (5, 50), (6, 20), (3, 0))
    line = write_down(past, PLAIN, SETTINGS, NOW)
    assert line == "v1;at=2026-03-01T12:00:00.000Z;rec=9@290,7@100,6@20,3@0;up=;down="


def test_what_has_left_the_window_is_left_behind():
    assert write_down(recommended((9, 301)), PLAIN, SETTINGS, NOW) is None


def test_with_a_window_upwards_the_lowest_are_kept_as_well():
    past = recommended((2, 110), (9, 100), (4, 50), (6, 0))
    line = write_down(past, BOTH_WINDOWS, SETTINGS, NOW)
    assert line == "v1;at=2026-03-01T12:00:00.000Z;rec=2@110,9@100,4@50,6@0;up=;down="


def test_a_recommendation_that_still_stood_stood_until_now():
    line = write_down(recommended((5, 100), (3, 0)), PLAIN, SETTINGS, NOW)
    woken = recall(line, later(40))
    assert woken.recommendations == (Recommendation(5, ago(100)), Recommendation(3, NOW), Recommendation(3, later(40)))


def test_one_that_no_longer_stood_is_not_prolonged():
    line = write_down(recommended((5, 100)), PLAIN, SETTINGS, NOW)
    assert recall(line, later(40)).recommendations == (Recommendation(5, ago(100)),)


def test_rescales_are_kept_for_the_longest_period_of_any_policy():
    up, down = Policy("Pods", 4, 60), Policy("Pods", 4, 30)
    spec = make_spec(behavior=make_behavior(up=make_rules(up), down=make_rules(down)))
    past = History((), (ScaleEvent(4, ago(59)), ScaleEvent(2, ago(61))), (ScaleEvent(1, ago(45)),))
    line = write_down(past, spec, SETTINGS, NOW)
    assert recall(line, NOW) == History((), (ScaleEvent(4, ago(59)),), (ScaleEvent(1, ago(45)),))


@pytest.mark.parametrize(
    "line",
    ["", "v2;at=x", "v1", "v1;at=yesterday;rec=;up=;down=", "v1;at=2026-03-01T12:00:00Z;rec=five@1;up=;down=", "v1;;"],
)
def test_a_line_that_is_not_ours_is_no_past(line):
    assert recall(line, NOW) == History()


def test_a_line_from_the_future_counts_from_now():
    line = write_down(recommended((5, 0)), PLAIN, SETTINGS, later(3600))
    assert recall(line, NOW).recommendations in ((), (Recommendation(5, NOW),))


def test_a_line_is_short_whatever_happened():
    many = tuple(Recommendation(1000 - index, ago(299 - index)) for index in range(300))
    events = tuple(ScaleEvent(1, ago(index / 10)) for index in range(100))
    spec = make_spec(behavior=make_behavior(up=make_rules(window=3600), down=make_rules(window=3600)))
    line = write_down(History(many, events, events), spec, SETTINGS, NOW)
    assert line is not None
    assert len(line) < 2000
    again = recall(line, NOW)
    assert len(again.recommendations) <= 2 * MOST_KEPT
    assert sum(event.change for event in again.scale_ups) == 100


def test_what_grew_old_is_not_missed_but_what_is_new_is():
    spec = BOTH_WINDOWS
    past = History((Recommendation(5, NOW),), (ScaleEvent(2, ago(10)),))
    kept = essence(past, spec, NOW)
    older = History((Recommendation(5, later(20)),), past.scale_ups)
    assert not would_miss(kept, essence(older, spec, later(20)))
    other = replace(older, recommendations=(Recommendation(4, later(20)),))
    assert would_miss(kept, essence(other, spec, later(20)))
    rescaled = replace(older, scale_ups=(*past.scale_ups, ScaleEvent(1, later(20))))
    assert would_miss(kept, essence(rescaled, spec, later(20)))
    silent = replace(older, recommendations=(Recommendation(5, NOW),))
    assert would_miss(kept, essence(silent, spec, later(20)))
    assert would_miss(None, kept)
    assert not would_miss(None, essence(History(), spec, NOW))


ages = st.floats(0, 400).map(lambda age: round(age, 3))
histories = st.lists(st.tuples(st.integers(0, 12), ages), max_size=20, unique_by=lambda one: one[1])  # one a pass
rescales = st.lists(st.tuples(st.integers(1, 5), ages), max_size=8)


@given(histories, rescales, rescales, st.integers(0, 12), st.integers(0, 12), st.booleans())
def test_whoever_starts_anew_decides_as_the_one_before(recs, ups, downs, wanted, current, has_behavior):
    spec = BOTH_WINDOWS if has_behavior else PLAIN
    past = History(
        tuple(Recommendation(replicas, ago(age)) for replicas, age in recs),
        tuple(ScaleEvent(change, ago(age)) for change, age in ups),
        tuple(ScaleEvent(change, ago(age)) for change, age in downs),
    )
    again = recall(write_down(past, spec, SETTINGS, NOW), NOW)
    one = stabilize(wanted, current, past.recommendations, spec.behavior, SETTINGS, NOW).step
    other = stabilize(wanted, current, again.recommendations, spec.behavior, SETTINGS, NOW).step
    assert other == one
    assert limit(one.replicas, current, (0, 12), spec.behavior, again, NOW) == limit(
        one.replicas, current, (0, 12), spec.behavior, past, NOW
    )
