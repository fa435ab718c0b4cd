"""Properties of stabilization, compared with its definition."""

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
def test_with_behavior_the_result_is_clamped_to_the_recommendations_of_the_windows(
    recommended, current, history, up, down
):
    behavior = make_behavior(up=make_rules(window=up), down=make_rules(window=down))
    stabilized = stabilize(recommended, current, history, behavior, Settings(), NOW).step.replicas
    highest = max([recommended, *(entry.replicas for entry in history if entry.at > since(down))])
    lowest = min([recommended, *(entry.replicas for entry in history if entry.at > since(up))])

    if recommended < current:
        assert stabilized == min(current, highest)
    elif recommended > current:
        assert stabilized == max(current, lowest)
    else:
        assert stabilized == current


@quick
@given(SIZES, SIZES, recommendations, WINDOWS)
def test_without_behavior_the_result_is_the_highest_recommendation_of_the_window(recommended, current, history, window):
    settings = Settings(downscale_stabilization=timedelta(seconds=window))
    stabilized = stabilize(recommended, current, history, None, settings, NOW).step.replicas

    assert stabilized == max([recommended, *(entry.replicas for entry in history if entry.at >= since(window))])


@quick
@given(SIZES, SIZES, recommendations, st.none() | st.just(make_behavior(up=make_rules(window=60))))
def test_new_recommendation_is_added_and_only_an_outdated_one_is_lost(recommended, current, history, behavior):
    updated = stabilize(recommended, current, history, behavior, Settings(), NOW).recommendations
    lost = [entry for entry in history if history.count(entry) > updated.count(entry)]

    assert Recommendation(recommended, NOW) in updated
    assert len(updated) == len(history) + 1 - len(set(lost))
    assert all(entry.at < since(300) for entry in lost)


@quick
@given(SIZES, SIZES, recommendations, st.none() | st.just(make_behavior(up=make_rules(window=60))))
def test_result_changes_when_the_holding_recommendation_leaves_the_window(recommended, current, history, behavior):
    step = stabilize(recommended, current, history, behavior, Settings(), NOW).step
    if step.held_by is None:
        assert step.replicas == recommended
        return
    expiry = step.held_by.at + step.window
    instant = timedelta(microseconds=1)

    still = stabilize(recommended, current, history, behavior, Settings(), max(expiry - instant, NOW)).step
    after = stabilize(recommended, current, history, behavior, Settings(), expiry + instant).step

    assert still.replicas == step.replicas
    assert after.replicas != step.replicas
