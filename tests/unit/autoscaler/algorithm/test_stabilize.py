"""Stabilization, with and without behavior."""

from datetime import timedelta

import pytest

from autoscaler.algorithm.stabilize import StabilizationResult, stabilize, windows
from autoscaler.settings import Settings
from autoscaler.types.history import Recommendation
from autoscaler.types.spec import Behavior, ScalingRules
from autoscaler.types.steps import StabilizationStep
from tests.builders import NOW, SETTINGS, make_behavior, make_recommendations, make_rules

FIVE_MINUTES = timedelta(minutes=5)
MINUTE = timedelta(minutes=1)
BOTH = make_behavior(up=make_rules(window=60), down=make_rules(window=300))


def stabilized(recommended, current, history, behavior):
    return stabilize(recommended, current, make_recommendations(*history), behavior, SETTINGS, NOW)


def at(*entries):
    return make_recommendations(*entries)


def new(replicas):
    return Recommendation(replicas, NOW)


@pytest.mark.parametrize(
    ("recommended", "current", "history", "replicas", "held_by", "updated"),
    [
        pytest.param(3, 5, [], 3, None, (new(3),), id="empty history"),
        pytest.param(
            3, 5, [(5, 200)], 5, (5, 200), (*at((5, 200)), new(3)), id="higher recommendation delays a scale down"
        ),
        pytest.param(3, 5, [(5, 301)], 3, None, (new(3),), id="entry older than the window is overwritten"),
        pytest.param(
            3, 5, [(5, 300)], 5, (5, 300), (*at((5, 300)), new(3)), id="entry exactly as old as the window counts"
        ),
        pytest.param(
            5,
            4,
            [(10, 60)],
            10,
            (10, 60),
            (*at((10, 60)), new(5)),
            id="higher recommendation exceeds the current replicas",
        ),
        pytest.param(
            8, 4, [(2, 10)], 8, None, (*at((2, 10)), new(8)), id="lower recommendation does not delay a scale up"
        ),
        pytest.param(
            3,
            9,
            [(5, 400), (9, 350), (4, 100)],
            4,
            (4, 100),
            (*at((5, 400)), new(3), *at((4, 100))),
            id="last of several outdated entries is overwritten",
        ),
        pytest.param(
            3,
            9,
            [(7, 250), (7, 50), (5, 10)],
            7,
            (7, 50),
            (*at((7, 250), (7, 50), (5, 10)), new(3)),
            id="held by the newest of equal recommendations",
        ),
    ],
)
def test_without_behavior_the_highest_recommendation_of_the_window_is_used(
    recommended, current, history, replicas, held_by, updated
):
    held_by_entry = None if held_by is None else at(held_by)[0]

    assert stabilized(recommended, current, history, None) == StabilizationResult(
        StabilizationStep(recommended, replicas, current, FIVE_MINUTES, held_by_entry), updated
    )


@pytest.mark.parametrize(
    ("recommended", "current", "history", "expected", "updated"),
    [
        pytest.param(3, 5, [], StabilizationStep(3, 3, 5, FIVE_MINUTES), (new(3),), id="empty history"),
        pytest.param(
            3,
            5,
            [(5, 200)],
            StabilizationStep(3, 5, 5, FIVE_MINUTES, at((5, 200))[0]),
            (*at((5, 200)), new(3)),
            id="higher recommendation delays a scale down",
        ),
        pytest.param(
            3,
            5,
            [(4, 200)],
            StabilizationStep(3, 4, 5, FIVE_MINUTES, at((4, 200))[0]),
            (*at((4, 200)), new(3)),
            id="scale down is limited to the highest recommendation",
        ),
        pytest.param(
            3,
            5,
            [(5, 300)],
            StabilizationStep(3, 3, 5, FIVE_MINUTES),
            (*at((5, 300)), new(3)),
            id="entry exactly as old as the window does not count but is kept",
        ),
        pytest.param(
            3,
            5,
            [(5, 301)],
            StabilizationStep(3, 3, 5, FIVE_MINUTES),
            (new(3),),
            id="older entry is overwritten",
        ),
        pytest.param(
            8,
            5,
            [(6, 30)],
            StabilizationStep(8, 6, 5, MINUTE, at((6, 30))[0], scale_up=True),
            (*at((6, 30)), new(8)),
            id="scale up is limited to the lowest recommendation",
        ),
        pytest.param(
            8,
            5,
            [(2, 30)],
            StabilizationStep(8, 5, 5, MINUTE, at((2, 30))[0], scale_up=True),
            (*at((2, 30)), new(8)),
            id="recommendation below the current replicas blocks a scale up",
        ),
        pytest.param(
            8,
            5,
            [(2, 60)],
            StabilizationStep(8, 8, 5, FIVE_MINUTES),
            (*at((2, 60)), new(8)),
            id="entry exactly as old as the scale-up window does not count",
        ),
        pytest.param(
            5,
            4,
            [(10, 70)],
            StabilizationStep(5, 5, 4, FIVE_MINUTES),
            (*at((10, 70)), new(5)),
            id="higher recommendation does not raise the result",
        ),
        pytest.param(
            5,
            5,
            [(9, 10), (1, 20)],
            StabilizationStep(5, 5, 5, FIVE_MINUTES),
            (*at((9, 10), (1, 20)), new(5)),
            id="current replicas between lowest and highest",
        ),
        pytest.param(
            3,
            5,
            [(2, 400), (3, 350), (3, 100)],
            StabilizationStep(3, 3, 5, FIVE_MINUTES),
            (*at((2, 400)), new(3), *at((3, 100))),
            id="last of several outdated entries is overwritten",
        ),
    ],
)
def test_with_behavior_the_result_is_clamped_to_the_recommendations_of_the_windows(
    recommended, current, history, expected, updated
):
    assert stabilized(recommended, current, history, BOTH) == StabilizationResult(expected, updated)


@pytest.mark.parametrize(
    ("history", "behavior", "expected"),
    [
        pytest.param([(10, 60)], None, 10, id="without behavior a higher recommendation raises the result"),
        pytest.param([(10, 60)], make_behavior(), 5, id="with default behavior it does not"),
    ],
)
def test_absent_behavior_differs_from_default_behavior(history, behavior, expected):
    assert stabilized(5, 4, history, behavior).step.replicas == expected


@pytest.mark.parametrize(
    ("behavior", "expected"),
    [
        pytest.param(make_behavior(), (0, 420), id="default behavior"),
        pytest.param(Behavior(), (0, 420), id="behavior without directions"),
        pytest.param(Behavior(ScalingRules(), ScalingRules()), (0, 420), id="behavior with empty directions"),
        pytest.param(BOTH, (60, 300), id="configured windows"),
        pytest.param(make_behavior(down=make_rules(window=0)), (0, 0), id="scale-down window of 0"),
    ],
)
def test_windows_of_a_behavior(behavior, expected):
    settings = Settings(downscale_stabilization=timedelta(seconds=420, milliseconds=900))

    assert windows(behavior, settings) == tuple(timedelta(seconds=seconds) for seconds in expected)
