"""Choosing within the recent recommendations, on both of upstream's paths."""

from datetime import timedelta

import pytest

from autoscaler.algorithm.stabilize import Steadied, stabilize, windows
from autoscaler.settings import Settings
from autoscaler.types.history import Recommendation
from autoscaler.types.spec import Behavior, ScalingRules
from autoscaler.types.steps import Stabilized
from tests.builders import NOW, SETTINGS, make_behavior, make_rules, recommended

FIVE_MINUTES = timedelta(minutes=5)
MINUTE = timedelta(minutes=1)
BOTH = make_behavior(up=make_rules(window=60), down=make_rules(window=300))


def steadied(wanted, current, past, behavior):
    return stabilize(wanted, current, recommended(*past), behavior, SETTINGS, NOW)


def at(*entries):
    return recommended(*entries)


def this(replicas):
    return Recommendation(replicas, NOW)


@pytest.mark.parametrize(
    ("wanted", "current", "past", "replicas", "held_by", "remembered"),
    [
        pytest.param(3, 5, [], 3, None, (this(3),), id="with no past nothing is held"),
        pytest.param(3, 5, [(5, 200)], 5, (5, 200), (*at((5, 200)), this(3)), id="a higher one holds a way down"),
        pytest.param(
            3, 5, [(5, 301)], 3, None, (this(3),), id="one older than the window does not, and gives its slot"
        ),
        pytest.param(3, 5, [(5, 300)], 5, (5, 300), (*at((5, 300)), this(3)), id="one exactly as old as it still does"),
        pytest.param(5, 4, [(10, 60)], 10, (10, 60), (*at((10, 60)), this(5)), id="a higher one may raise the size"),
        pytest.param(8, 4, [(2, 10)], 8, None, (*at((2, 10)), this(8)), id="a lower one never holds a way up"),
        pytest.param(
            3,
            9,
            [(5, 400), (9, 350), (4, 100)],
            4,
            (4, 100),
            (*at((5, 400)), this(3), *at((4, 100))),
            id="of several outdated slots the last is used",
        ),
        pytest.param(
            3,
            9,
            [(7, 250), (7, 50), (5, 10)],
            7,
            (7, 50),
            (*at((7, 250), (7, 50), (5, 10)), this(3)),
            id="it is held by the one that will leave last",
        ),
    ],
)
def test_without_behavior_the_highest_of_the_window_wins(wanted, current, past, replicas, held_by, remembered):
    holder = None if held_by is None else at(held_by)[0]

    assert steadied(wanted, current, past, None) == Steadied(
        Stabilized(wanted, replicas, current, FIVE_MINUTES, holder), remembered
    )


@pytest.mark.parametrize(
    ("wanted", "current", "past", "expected", "remembered"),
    [
        pytest.param(3, 5, [], Stabilized(3, 3, 5, FIVE_MINUTES), (this(3),), id="with no past nothing is held"),
        pytest.param(
            3,
            5,
            [(5, 200)],
            Stabilized(3, 5, 5, FIVE_MINUTES, at((5, 200))[0]),
            (*at((5, 200)), this(3)),
            id="a higher one holds a way down",
        ),
        pytest.param(
            3,
            5,
            [(4, 200)],
            Stabilized(3, 4, 5, FIVE_MINUTES, at((4, 200))[0]),
            (*at((4, 200)), this(3)),
            id="a way down stops at the highest of the window",
        ),
        pytest.param(
            3,
            5,
            [(5, 300)],
            Stabilized(3, 3, 5, FIVE_MINUTES),
            (*at((5, 300)), this(3)),
            id="one exactly as old as the window does not hold, but keeps its slot",
        ),
        pytest.param(
            3,
            5,
            [(5, 301)],
            Stabilized(3, 3, 5, FIVE_MINUTES),
            (this(3),),
            id="an older one gives its slot",
        ),
        pytest.param(
            8,
            5,
            [(6, 30)],
            Stabilized(8, 6, 5, MINUTE, at((6, 30))[0], held_down=True),
            (*at((6, 30)), this(8)),
            id="a way up stops at the lowest of its window",
        ),
        pytest.param(
            8,
            5,
            [(2, 30)],
            Stabilized(8, 5, 5, MINUTE, at((2, 30))[0], held_down=True),
            (*at((2, 30)), this(8)),
            id="a lower one holds a way up altogether",
        ),
        pytest.param(
            8,
            5,
            [(2, 60)],
            Stabilized(8, 8, 5, FIVE_MINUTES),
            (*at((2, 60)), this(8)),
            id="one exactly as old as the window upwards does not hold",
        ),
        pytest.param(
            5,
            4,
            [(10, 70)],
            Stabilized(5, 5, 4, FIVE_MINUTES),
            (*at((10, 70)), this(5)),
            id="a higher one never raises the size",
        ),
        pytest.param(
            5,
            5,
            [(9, 10), (1, 20)],
            Stabilized(5, 5, 5, FIVE_MINUTES),
            (*at((9, 10), (1, 20)), this(5)),
            id="the current size is within all extremes",
        ),
        pytest.param(
            3,
            5,
            [(2, 400), (3, 350), (3, 100)],
            Stabilized(3, 3, 5, FIVE_MINUTES),
            (*at((2, 400)), this(3), *at((3, 100))),
            id="of several slots outdated both ways the last is used",
        ),
    ],
)
def test_with_behavior_the_size_moves_no_further_than_the_windows_extremes(wanted, current, past, expected, remembered):
    assert steadied(wanted, current, past, BOTH) == Steadied(expected, remembered)


@pytest.mark.parametrize(
    ("past", "behavior", "expected"),
    [
        pytest.param([(10, 60)], None, 10, id="without behavior an older ten raises it"),
        pytest.param([(10, 60)], make_behavior(), 5, id="with an empty one it does not"),
    ],
)
def test_an_absent_behavior_is_not_an_empty_one(past, behavior, expected):
    assert steadied(5, 4, past, behavior).step.replicas == expected


@pytest.mark.parametrize(
    ("behavior", "expected"),
    [
        pytest.param(make_behavior(), (0, 420), id="by default none upwards, and the cluster's downwards"),
        pytest.param(Behavior(), (0, 420), id="likewise where no direction says anything"),
        pytest.param(Behavior(ScalingRules(), ScalingRules()), (0, 420), id="likewise where both are empty"),
        pytest.param(BOTH, (60, 300), id="its own where it has any"),
        pytest.param(make_behavior(down=make_rules(window=0)), (0, 0), id="zero is a window"),
    ],
)
def test_windows(behavior, expected):
    settings = Settings(downscale_stabilization=timedelta(seconds=420, milliseconds=900))

    assert windows(behavior, settings) == tuple(timedelta(seconds=seconds) for seconds in expected)
