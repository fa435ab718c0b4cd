"""Laws of stabilization: held against the plainest reading of its definition."""

from datetime import timedelta

from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from autoscaler.algorithm.stabilize import stabilize
from autoscaler.settings import Settings
from autoscaler.types.history import Recommendation
from tests.builders import NOW, make_behavior, make_rules
from tests.properties.strategies import SIZES, recommendations

quick = hypothesis(max_examples=60, deadline=None)
WINDOWS = st.integers(0, 600)


def since(seconds):
    return NOW - timedelta(seconds=seconds)


@quick
@given(SIZES, SIZES, recommendations, WINDOWS, WINDOWS)
def test_with_behavior_a_way_down_stops_at_the_highest_of_the_window_and_a_way_up_at_the_lowest(
    wanted, current, past, up, down
):
    behavior = make_behavior(up=make_rules(window=up), down=make_rules(window=down))
    steady = stabilize(wanted, current, past, behavior, Settings(), NOW).step.replicas
    highest = max([wanted, *(one.replicas for one in past if one.at > since(down))])
    lowest = min([wanted, *(one.replicas for one in past if one.at > since(up))])

    if wanted < current:
        assert steady == min(current, highest)
    elif wanted > current:
        assert steady == max(current, lowest)
    else:
        assert steady == current


@quick
@given(SIZES, SIZES, recommendations, WINDOWS)
def test_without_behavior_it_is_the_highest_of_the_window_whatever_the_size(wanted, current, past, window):
    settings = Settings(downscale_stabilization=timedelta(seconds=window))
    steady = stabilize(wanted, current, past, None, settings, NOW).step.replicas

    assert steady == max([wanted, *(one.replicas for one in past if one.at >= since(window))])


@quick
@given(SIZES, SIZES, recommendations, st.none() | st.just(make_behavior(up=make_rules(window=60))))
def test_it_remembers_this_recommendation_and_loses_only_an_outdated_one(wanted, current, past, behavior):
    remembered = stabilize(wanted, current, past, behavior, Settings(), NOW).remembered
    lost = [one for one in past if past.count(one) > remembered.count(one)]

    assert Recommendation(wanted, NOW) in remembered
    assert len(remembered) == len(past) + 1 - len(set(lost))
    assert all(one.at < since(300) for one in lost)


@quick
@given(SIZES, SIZES, recommendations, st.none() | st.just(make_behavior(up=make_rules(window=60))))
def test_what_holds_it_really_does_and_lets_go_when_it_says(wanted, current, past, behavior):
    step = stabilize(wanted, current, past, behavior, Settings(), NOW).step
    if step.held_by is None:
        assert step.replicas == wanted
        return
    free = step.held_by.at + step.window
    instant = timedelta(microseconds=1)

    still = stabilize(wanted, current, past, behavior, Settings(), max(free - instant, NOW)).step
    after = stabilize(wanted, current, past, behavior, Settings(), free + instant).step

    assert still.replicas == step.replicas
    assert after.replicas != step.replicas
