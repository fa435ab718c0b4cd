"""How far one pass may go: the fixed rate, the policies, the bounds, and the memory of rescales."""

import pytest

from autoscaler.algorithm.limit import Direction, Rate, legacy_rate, limit, rate, remember_rescale
from autoscaler.types.history import History, ScaleEvent
from autoscaler.types.spec import Behavior, Policy, ScalingRules
from autoscaler.types.steps import Limit, Limited
from autoscaler.values.arithmetic import MAX_INT32, MIN_INT32
from tests.builders import AT_ONCE, NOW, ago, later, make_behavior, make_rules, rescaled

UP, DOWN = Direction.UP, Direction.DOWN
NEVER = History()
TWO_A_MINUTE = Policy("Pods", 2, 60)
HALF_A_MINUTE = Policy("Percent", 50, 60)


@pytest.mark.parametrize(
    ("current", "allowed"),
    [
        pytest.param(0, 4, id="four from nothing"),
        pytest.param(1, 4, id="four from one"),
        pytest.param(3, 6, id="double from three"),
        pytest.param(MAX_INT32, MIN_INT32, id="double of the largest number is out of range"),
    ],
)
def test_the_fixed_rate(current, allowed):
    assert legacy_rate(current) == allowed


@pytest.mark.parametrize(
    ("steady", "expected"),
    [
        pytest.param(5, Limited(5, 5, Limit.NONE, 6, fixed_rate=True), id="within everything"),
        pytest.param(1, Limited(1, 2, Limit.MINIMUM, 6, fixed_rate=True), id="below the minimum"),
        pytest.param(7, Limited(7, 6, Limit.UP_RATE, 6, fixed_rate=True), id="faster than double"),
    ],
)
def test_without_behavior(steady, expected):
    assert limit(steady, 3, (2, 20), None, NEVER, NOW) == expected


def test_without_behavior_the_maximum_is_named_when_it_is_the_nearer():
    assert limit(9, 3, (2, 5), None, NEVER, NOW) == Limited(9, 5, Limit.MAXIMUM, 6, fixed_rate=True)
    assert limit(9, 3, (2, 6), None, NEVER, NOW) == Limited(9, 6, Limit.MAXIMUM, 6, fixed_rate=True)


BEHAVIOR = make_behavior(up=make_rules(TWO_A_MINUTE), down=make_rules(HALF_A_MINUTE))


@pytest.mark.parametrize(
    ("steady", "current", "expected"),
    [
        pytest.param(5, 5, Limited(5, 5), id="no move asks no policy"),
        pytest.param(6, 5, Limited(6, 6, Limit.NONE, 7, TWO_A_MINUTE), id="a small step up"),
        pytest.param(9, 5, Limited(9, 7, Limit.UP_RATE, 7, TWO_A_MINUTE), id="a step up is cut to the rate"),
        pytest.param(9, 7, Limited(9, 8, Limit.MAXIMUM, 9, TWO_A_MINUTE), id="a step up is cut to the maximum"),
        pytest.param(4, 5, Limited(4, 4, Limit.NONE, 2, HALF_A_MINUTE), id="a small step down"),
        pytest.param(3, 8, Limited(3, 4, Limit.DOWN_RATE, 4, HALF_A_MINUTE), id="a step down is cut to the rate"),
        pytest.param(1, 3, Limited(1, 2, Limit.MINIMUM, 1, HALF_A_MINUTE), id="a step down is cut to the minimum"),
        pytest.param(1, 0, Limited(1, 1, Limit.NONE, 2, TWO_A_MINUTE), id="the minimum is not looked at going up"),
        pytest.param(
            11, 12, Limited(11, 11, Limit.NONE, 6, HALF_A_MINUTE), id="the maximum is not looked at going down"
        ),
    ],
)
def test_with_behavior(steady, current, expected):
    assert limit(steady, current, (2, 8), BEHAVIOR, NEVER, NOW) == expected


@pytest.mark.parametrize("steady", [1, 9])
def test_a_direction_without_rules_is_not_limited(steady):
    assert limit(steady, 5, (2, 8), Behavior(), NEVER, NOW) == Limited(steady, steady)


@pytest.mark.parametrize(
    ("direction", "current", "policies", "select", "expected"),
    [
        pytest.param(UP, 5, [TWO_A_MINUTE, HALF_A_MINUTE], "Max", 8, id="up by the most"),
        pytest.param(UP, 5, [TWO_A_MINUTE, HALF_A_MINUTE], "Min", 7, id="up by the least"),
        pytest.param(DOWN, 6, [TWO_A_MINUTE, HALF_A_MINUTE], "Max", 3, id="down by the most"),
        pytest.param(DOWN, 6, [TWO_A_MINUTE, HALF_A_MINUTE], "Min", 4, id="down by the least"),
        pytest.param(UP, 5, [TWO_A_MINUTE, HALF_A_MINUTE], None, 8, id="no word means the most"),
        pytest.param(UP, 5, [TWO_A_MINUTE, HALF_A_MINUTE], "Most", 8, id="an unknown word means the most"),
        pytest.param(UP, 5, [TWO_A_MINUTE], "Disabled", 5, id="disabled means no step up"),
        pytest.param(DOWN, 5, [TWO_A_MINUTE], "Disabled", 5, id="disabled means no step down"),
        pytest.param(UP, 1, [Policy("Percent", 10, 60)], "Max", 2, id="ten percent of one is one more"),
        pytest.param(UP, 50, [Policy("Percent", 10, 60)], "Max", 56, id="ten percent of fifty is six more, in floats"),
        pytest.param(UP, 0, [Policy("Percent", 100, 60)], "Max", 0, id="no percentage of zero is more"),
        pytest.param(UP, 3, [Policy("Pods", MAX_INT32, 60)], "Max", -2147483646, id="the largest number wraps"),
        pytest.param(DOWN, 5, [Policy("Percent", 10, 60)], "Max", 4, id="ten percent of five is one less"),
        pytest.param(DOWN, 1, [Policy("Percent", 10, 60)], "Max", 0, id="ten percent of one is one less"),
        pytest.param(DOWN, 10, [Policy("Percent", 90, 60)], "Max", 0, id="ninety percent of ten is all, in floats"),
        pytest.param(DOWN, 10, [Policy("Percent", 200, 60)], "Max", -10, id="more than all"),
        pytest.param(UP, 5, [], "Max", MIN_INT32, id="no policy at all, up"),
        pytest.param(DOWN, 5, [], "Max", MAX_INT32, id="no policy at all, down"),
        pytest.param(
            UP, 5, [TWO_A_MINUTE, Policy("Weather", 1, 60)], "Max", 7, id="an unknown type repeats the one before"
        ),
    ],
)
def test_the_rate_of_a_direction(direction, current, policies, select, expected):
    rules = ScalingRules(select_policy=select, policies=tuple(policies))

    assert rate(direction, current, rules, NEVER, NOW).allowed == expected


def test_the_rate_names_the_policy_that_decided():
    rules = make_rules(TWO_A_MINUTE, HALF_A_MINUTE)

    assert rate(UP, 2, rules, NEVER, NOW) == Rate(4, TWO_A_MINUTE)
    assert rate(UP, 8, rules, NEVER, NOW) == Rate(12, HALF_A_MINUTE)
    assert rate(UP, 8, make_rules(select="Disabled"), NEVER, NOW) == Rate(8)


@pytest.mark.parametrize(
    ("ups", "downs", "expected"),
    [
        pytest.param([(4, 30)], [(2, 30)], 12, id="both are undone before the percentage applies"),
        pytest.param([(4, 60)], [(2, 60)], 15, id="what is exactly as old as the period is forgotten"),
        pytest.param([(4, 59), (4, 61)], [], 9, id="only what is newer counts"),
    ],
)
def test_rescales_of_the_period_are_undone_first(ups, downs, expected):
    past = History(scale_ups=rescaled(*ups), scale_downs=rescaled(*downs))

    assert rate(UP, 10, make_rules(HALF_A_MINUTE), past, NOW).allowed == expected


def test_a_limit_below_the_current_size_never_turns_a_way_up_round():
    past = History(scale_ups=rescaled((4, 10)))

    assert limit(20, 6, (1, 50), make_behavior(up=make_rules(TWO_A_MINUTE)), past, NOW) == Limited(
        20, 6, Limit.UP_RATE, 4, TWO_A_MINUTE, later(50)
    )


def test_a_limit_above_the_current_size_never_turns_a_way_down_round():
    past = History(scale_downs=rescaled((4, 10)))

    assert limit(1, 6, (1, 50), make_behavior(down=make_rules(TWO_A_MINUTE)), past, NOW) == Limited(
        1, 6, Limit.DOWN_RATE, 8, TWO_A_MINUTE, later(50)
    )


def test_up_does_not_mirror_down():
    """Ten percent up and ten percent down do not lead back: one rounds up, the other towards zero."""
    ten = make_rules(Policy("Percent", 10, 60))

    assert rate(UP, 15, ten, NEVER, NOW).allowed == 17
    assert rate(DOWN, 17, ten, NEVER, NOW).allowed == 15
    assert rate(DOWN, 15, ten, NEVER, NOW).allowed == 13
    assert rate(UP, 13, ten, NEVER, NOW).allowed == 15
    assert rate(UP, 1, ten, NEVER, NOW).allowed == 2
    assert rate(DOWN, 2, ten, NEVER, NOW).allowed == 1
    assert rate(DOWN, 1, ten, NEVER, NOW).allowed == 0
    assert rate(UP, 0, ten, NEVER, NOW).allowed == 0


# --- memory ----------------------------------------------------------------------------------------------------------

FORGETTING = make_behavior(up=make_rules(TWO_A_MINUTE, Policy("Percent", 10, 30)), down=make_rules(HALF_A_MINUTE))


def outdated(change, seconds):
    return ScaleEvent(change, ago(seconds), outdated=True)


@pytest.mark.parametrize(
    ("before", "after", "past", "expected"),
    [
        pytest.param(3, 5, NEVER, History(scale_ups=rescaled((2, 0))), id="a way up is remembered as such"),
        pytest.param(5, 3, NEVER, History(scale_downs=rescaled((2, 0))), id="a way down is remembered as such"),
        pytest.param(
            3,
            5,
            History(scale_ups=rescaled((7, 60))),
            History(scale_ups=rescaled((7, 60), (2, 0))),
            id="what is exactly as old as the longest period is kept",
        ),
        pytest.param(
            3,
            5,
            History(scale_ups=rescaled((7, 61))),
            History(scale_ups=rescaled((2, 0))),
            id="what is older gives its slot",
        ),
        pytest.param(
            3,
            5,
            History(scale_ups=rescaled((1, 90), (2, 80), (3, 10))),
            History(scale_ups=(outdated(1, 90), *rescaled((2, 0), (3, 10)))),
            id="the last outdated slot is used and the others are flagged",
        ),
        pytest.param(
            5,
            3,
            History(scale_ups=rescaled((1, 90))),
            History(scale_ups=rescaled((1, 90)), scale_downs=rescaled((2, 0))),
            id="a way down leaves the ways up alone",
        ),
    ],
)
def test_a_rescale_is_remembered(before, after, past, expected):
    assert remember_rescale(past, FORGETTING, before, after, NOW) == expected


def test_without_behavior_nothing_is_remembered():
    assert remember_rescale(NEVER, None, 3, 5, NOW) == NEVER


@pytest.mark.parametrize(
    "behavior",
    [
        pytest.param(Behavior(), id="no rules"),
        pytest.param(Behavior(ScalingRules(), ScalingRules()), id="no policies"),
        pytest.param(Behavior(make_rules(Policy("Pods", 1, -5)), make_rules(Policy("Pods", 1, -5))), id="no period"),
    ],
)
def test_without_a_period_everything_earlier_is_outdated(behavior):
    past = History(scale_ups=rescaled((7, 1)))

    assert remember_rescale(past, behavior, 3, 5, NOW) == History(scale_ups=rescaled((2, 0)))


def test_default_policies_allow_doubling_or_four_in_fifteen_seconds():
    assert limit(50, 3, (1, 100), AT_ONCE, NEVER, NOW).replicas == 7
    assert limit(50, 10, (1, 100), AT_ONCE, NEVER, NOW).replicas == 20
    assert limit(1, 50, (1, 100), AT_ONCE, NEVER, NOW).replicas == 1
