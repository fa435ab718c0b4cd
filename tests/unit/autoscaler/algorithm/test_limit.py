"""Scaling policies, bounds, the default rate, and recorded rescales."""

import pytest

from autoscaler.algorithm.limit import AllowedRate, Direction, allowed_rate, default_rate, limit, record_rescale
from autoscaler.types.history import History, ScaleEvent
from autoscaler.types.spec import Behavior, Policy, ScalingRules
from autoscaler.types.steps import LimitStep, ScalingLimit
from autoscaler.values.arithmetic import MAX_INT32, MIN_INT32
from tests.builders import NO_STABILIZATION, NOW, ago, later, make_behavior, make_rules, make_scale_events

UP, DOWN = Direction.UP, Direction.DOWN
NO_HISTORY = History()
TWO_PODS_PER_MINUTE = Policy("Pods", 2, 60)
FIFTY_PERCENT_PER_MINUTE = Policy("Percent", 50, 60)


@pytest.mark.parametrize(
    ("current", "allowed"),
    [
        pytest.param(0, 4, id="0 to 4"),
        pytest.param(1, 4, id="1 to 4"),
        pytest.param(3, 6, id="3 to 6"),
        pytest.param(MAX_INT32, MIN_INT32, id="overflow"),
    ],
)
def test_default_scale_up_rate(current, allowed):
    assert default_rate(current) == allowed


@pytest.mark.parametrize(
    ("stabilized", "expected"),
    [
        pytest.param(5, LimitStep(5, 5, ScalingLimit.NONE, 6, fixed_rate=True), id="within limits"),
        pytest.param(1, LimitStep(1, 2, ScalingLimit.MINIMUM, 6, fixed_rate=True), id="below minReplicas"),
        pytest.param(7, LimitStep(7, 6, ScalingLimit.UP_RATE, 6, fixed_rate=True), id="more than double"),
    ],
)
def test_limits_without_behavior(stabilized, expected):
    assert limit(stabilized, 3, (2, 20), None, NO_HISTORY, NOW) == expected


def test_without_behavior_max_replicas_is_named_if_it_is_not_above_the_rate():
    assert limit(9, 3, (2, 5), None, NO_HISTORY, NOW) == LimitStep(9, 5, ScalingLimit.MAXIMUM, 6, fixed_rate=True)
    assert limit(9, 3, (2, 6), None, NO_HISTORY, NOW) == LimitStep(9, 6, ScalingLimit.MAXIMUM, 6, fixed_rate=True)


BEHAVIOR = make_behavior(up=make_rules(TWO_PODS_PER_MINUTE), down=make_rules(FIFTY_PERCENT_PER_MINUTE))


@pytest.mark.parametrize(
    ("stabilized", "current", "expected"),
    [
        pytest.param(5, 5, LimitStep(5, 5), id="no change, no policy applies"),
        pytest.param(6, 5, LimitStep(6, 6, ScalingLimit.NONE, 7, TWO_PODS_PER_MINUTE), id="scale up within limits"),
        pytest.param(
            9, 5, LimitStep(9, 7, ScalingLimit.UP_RATE, 7, TWO_PODS_PER_MINUTE), id="scale up limited by the policy"
        ),
        pytest.param(
            9, 7, LimitStep(9, 8, ScalingLimit.MAXIMUM, 9, TWO_PODS_PER_MINUTE), id="scale up limited by maxReplicas"
        ),
        pytest.param(
            4, 5, LimitStep(4, 4, ScalingLimit.NONE, 2, FIFTY_PERCENT_PER_MINUTE), id="scale down within limits"
        ),
        pytest.param(
            3,
            8,
            LimitStep(3, 4, ScalingLimit.DOWN_RATE, 4, FIFTY_PERCENT_PER_MINUTE),
            id="scale down limited by the policy",
        ),
        pytest.param(
            1,
            3,
            LimitStep(1, 2, ScalingLimit.MINIMUM, 1, FIFTY_PERCENT_PER_MINUTE),
            id="scale down limited by minReplicas",
        ),
        pytest.param(
            1, 0, LimitStep(1, 1, ScalingLimit.NONE, 2, TWO_PODS_PER_MINUTE), id="minReplicas does not limit a scale up"
        ),
        pytest.param(
            11,
            12,
            LimitStep(11, 11, ScalingLimit.NONE, 6, FIFTY_PERCENT_PER_MINUTE),
            id="maxReplicas does not limit a scale down",
        ),
    ],
)
def test_limits_with_behavior(stabilized, current, expected):
    assert limit(stabilized, current, (2, 8), BEHAVIOR, NO_HISTORY, NOW) == expected


@pytest.mark.parametrize("stabilized", [1, 9])
def test_direction_without_rules_is_not_limited(stabilized):
    assert limit(stabilized, 5, (2, 8), Behavior(), NO_HISTORY, NOW) == LimitStep(stabilized, stabilized)


@pytest.mark.parametrize(
    ("direction", "current", "policies", "select", "expected"),
    [
        pytest.param(UP, 5, [TWO_PODS_PER_MINUTE, FIFTY_PERCENT_PER_MINUTE], "Max", 8, id="up, Max"),
        pytest.param(UP, 5, [TWO_PODS_PER_MINUTE, FIFTY_PERCENT_PER_MINUTE], "Min", 7, id="up, Min"),
        pytest.param(DOWN, 6, [TWO_PODS_PER_MINUTE, FIFTY_PERCENT_PER_MINUTE], "Max", 3, id="down, Max"),
        pytest.param(DOWN, 6, [TWO_PODS_PER_MINUTE, FIFTY_PERCENT_PER_MINUTE], "Min", 4, id="down, Min"),
        pytest.param(
            UP, 5, [TWO_PODS_PER_MINUTE, FIFTY_PERCENT_PER_MINUTE], None, 8, id="selectPolicy defaults to Max"
        ),
        pytest.param(
            UP, 5, [TWO_PODS_PER_MINUTE, FIFTY_PERCENT_PER_MINUTE], "Most", 8, id="unknown selectPolicy means Max"
        ),
        pytest.param(UP, 5, [TWO_PODS_PER_MINUTE], "Disabled", 5, id="up, Disabled"),
        pytest.param(DOWN, 5, [TWO_PODS_PER_MINUTE], "Disabled", 5, id="down, Disabled"),
        pytest.param(UP, 1, [Policy("Percent", 10, 60)], "Max", 2, id="10 % of 1 rounds up to 1 more"),
        pytest.param(UP, 50, [Policy("Percent", 10, 60)], "Max", 56, id="10 % of 50 is 6 more in float arithmetic"),
        pytest.param(UP, 0, [Policy("Percent", 100, 60)], "Max", 0, id="100 % of 0 is 0"),
        pytest.param(UP, 3, [Policy("Pods", MAX_INT32, 60)], "Max", -2147483646, id="int32 overflow wraps"),
        pytest.param(DOWN, 5, [Policy("Percent", 10, 60)], "Max", 4, id="10 % of 5 rounds to 1 less"),
        pytest.param(DOWN, 1, [Policy("Percent", 10, 60)], "Max", 0, id="10 % of 1 rounds to 1 less"),
        pytest.param(DOWN, 10, [Policy("Percent", 90, 60)], "Max", 0, id="90 % of 10 is 10 in float arithmetic"),
        pytest.param(DOWN, 10, [Policy("Percent", 200, 60)], "Max", -10, id="200 % of 10 is 20"),
        pytest.param(UP, 5, [], "Max", MIN_INT32, id="up without policies"),
        pytest.param(DOWN, 5, [], "Max", MAX_INT32, id="down without policies"),
        pytest.param(
            UP,
            5,
            [TWO_PODS_PER_MINUTE, Policy("Weather", 1, 60)],
            "Max",
            7,
            id="unknown policy type repeats the previous value",
        ),
    ],
)
def test_allowed_rate_of_a_direction(direction, current, policies, select, expected):
    rules = ScalingRules(select_policy=select, policies=tuple(policies))

    assert allowed_rate(direction, current, rules, NO_HISTORY, NOW).allowed == expected


def test_allowed_rate_names_its_policy():
    rules = make_rules(TWO_PODS_PER_MINUTE, FIFTY_PERCENT_PER_MINUTE)

    assert allowed_rate(UP, 2, rules, NO_HISTORY, NOW) == AllowedRate(4, TWO_PODS_PER_MINUTE)
    assert allowed_rate(UP, 8, rules, NO_HISTORY, NOW) == AllowedRate(12, FIFTY_PERCENT_PER_MINUTE)
    assert allowed_rate(UP, 8, make_rules(select="Disabled"), NO_HISTORY, NOW) == AllowedRate(8)


@pytest.mark.parametrize(
    ("ups", "downs", "expected"),
    [
        pytest.param(
            [(4, 30)], [(2, 30)], 12, id="rescales in both directions are subtracted before the percentage applies"
        ),
        pytest.param([(4, 60)], [(2, 60)], 15, id="rescale exactly as old as the period does not count"),
        pytest.param([(4, 59), (4, 61)], [], 9, id="only rescales newer than the period count"),
    ],
)
def test_allowed_rate_starts_from_the_replicas_at_the_start_of_the_period(ups, downs, expected):
    history = History(scale_ups=make_scale_events(*ups), scale_downs=make_scale_events(*downs))

    assert allowed_rate(UP, 10, make_rules(FIFTY_PERCENT_PER_MINUTE), history, NOW).allowed == expected


def test_rate_below_the_current_replicas_does_not_turn_a_scale_up_into_a_scale_down():
    history = History(scale_ups=make_scale_events((4, 10)))

    assert limit(20, 6, (1, 50), make_behavior(up=make_rules(TWO_PODS_PER_MINUTE)), history, NOW) == LimitStep(
        20, 6, ScalingLimit.UP_RATE, 4, TWO_PODS_PER_MINUTE, later(50)
    )


def test_rate_above_the_current_replicas_does_not_turn_a_scale_down_into_a_scale_up():
    history = History(scale_downs=make_scale_events((4, 10)))

    assert limit(1, 6, (1, 50), make_behavior(down=make_rules(TWO_PODS_PER_MINUTE)), history, NOW) == LimitStep(
        1, 6, ScalingLimit.DOWN_RATE, 8, TWO_PODS_PER_MINUTE, later(50)
    )


def test_percentages_round_up_when_scaling_up_and_towards_zero_when_scaling_down():
    ten_percent = make_rules(Policy("Percent", 10, 60))

    assert allowed_rate(UP, 15, ten_percent, NO_HISTORY, NOW).allowed == 17
    assert allowed_rate(DOWN, 17, ten_percent, NO_HISTORY, NOW).allowed == 15
    assert allowed_rate(DOWN, 15, ten_percent, NO_HISTORY, NOW).allowed == 13
    assert allowed_rate(UP, 13, ten_percent, NO_HISTORY, NOW).allowed == 15
    assert allowed_rate(UP, 1, ten_percent, NO_HISTORY, NOW).allowed == 2
    assert allowed_rate(DOWN, 2, ten_percent, NO_HISTORY, NOW).allowed == 1
    assert allowed_rate(DOWN, 1, ten_percent, NO_HISTORY, NOW).allowed == 0
    assert allowed_rate(UP, 0, ten_percent, NO_HISTORY, NOW).allowed == 0


# --- recorded rescales -----------------------------------------------------------------------------------------------

TWO_PERIODS = make_behavior(
    up=make_rules(TWO_PODS_PER_MINUTE, Policy("Percent", 10, 30)), down=make_rules(FIFTY_PERCENT_PER_MINUTE)
)


def outdated(change, seconds):
    return ScaleEvent(change, ago(seconds), outdated=True)


@pytest.mark.parametrize(
    ("before", "after", "history", "expected"),
    [
        pytest.param(3, 5, NO_HISTORY, History(scale_ups=make_scale_events((2, 0))), id="scale up"),
        pytest.param(5, 3, NO_HISTORY, History(scale_downs=make_scale_events((2, 0))), id="scale down"),
        pytest.param(
            3,
            5,
            History(scale_ups=make_scale_events((7, 60))),
            History(scale_ups=make_scale_events((7, 60), (2, 0))),
            id="entry exactly as old as the longest period is kept",
        ),
        pytest.param(
            3,
            5,
            History(scale_ups=make_scale_events((7, 61))),
            History(scale_ups=make_scale_events((2, 0))),
            id="older entry is overwritten",
        ),
        pytest.param(
            3,
            5,
            History(scale_ups=make_scale_events((1, 90), (2, 80), (3, 10))),
            History(scale_ups=(outdated(1, 90), *make_scale_events((2, 0), (3, 10)))),
            id="last outdated entry is overwritten and the others are marked",
        ),
        pytest.param(
            5,
            3,
            History(scale_ups=make_scale_events((1, 90))),
            History(scale_ups=make_scale_events((1, 90)), scale_downs=make_scale_events((2, 0))),
            id="scale down does not change recorded scale ups",
        ),
    ],
)
def test_rescale_is_recorded(before, after, history, expected):
    assert record_rescale(history, TWO_PERIODS, before, after, NOW) == expected


def test_rescale_is_not_recorded_without_behavior():
    assert record_rescale(NO_HISTORY, None, 3, 5, NOW) == NO_HISTORY


@pytest.mark.parametrize(
    "behavior",
    [
        pytest.param(Behavior(), id="no rules"),
        pytest.param(Behavior(ScalingRules(), ScalingRules()), id="no policies"),
        pytest.param(
            Behavior(make_rules(Policy("Pods", 1, -5)), make_rules(Policy("Pods", 1, -5))), id="negative period"
        ),
    ],
)
def test_without_a_period_all_earlier_entries_are_outdated(behavior):
    history = History(scale_ups=make_scale_events((7, 1)))

    assert record_rescale(history, behavior, 3, 5, NOW) == History(scale_ups=make_scale_events((2, 0)))


def test_default_policies_allow_double_or_four_replicas():
    assert limit(50, 3, (1, 100), NO_STABILIZATION, NO_HISTORY, NOW).replicas == 7
    assert limit(50, 10, (1, 100), NO_STABILIZATION, NO_HISTORY, NOW).replicas == 20
    assert limit(1, 50, (1, 100), NO_STABILIZATION, NO_HISTORY, NOW).replicas == 1
