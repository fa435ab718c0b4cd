"""The sixteen acceptance scenarios of the fallback, through ``decide`` over several passes."""

import pytest

from autoscaler.defaults import with_defaults
from autoscaler.readings import read_external
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.limiting_factor import Bound
from autoscaler.types.observation import BadSelector, FailureClass, TargetUnreadable
from autoscaler.types.spec import Policy
from autoscaler.types.status import UNREAD, Condition, Status
from autoscaler.types.steps import Combined, MetricFailed, MetricFellBack
from autoscaler.validation import problems
from tests.builders import (
    ALL_ON,
    AT_ONCE,
    NO_FALLBACK,
    NOW,
    REFUSED,
    Step,
    ago,
    at_zero_by_us,
    condition_of,
    decide_once,
    events_of,
    external_slot,
    fallen_back,
    later,
    make_autoscaler,
    make_behavior,
    make_condition,
    make_external_metric,
    make_fallback,
    make_observation,
    make_pods_metric,
    make_resource_metric,
    make_rules,
    make_spec,
    passes_at,
    pods_say,
    queue_of,
    reasons_of,
    run_passes,
    running,
    told,
    unreadable,
)

KIND = "ExternalMetricFallbackActive"
BROKEN = unreadable()
WHY = f"unable to get external metric shop/queue_depth/nil: {REFUSED}"
FAILED = ("FailedGetExternalMetric", WHY)
STUCK = (
    "FailedComputeMetricsReplicas",
    (
        "invalid metrics (1 invalid out of 1), first error is: failed to get queue_depth external metric value: "
        f"failed to get queue_depth external metric: {WHY}"
    ),
)
CLOCK_RUNS = (
    "False",
    "FailureClockRunning",
    "external metric 'queue_depth' is unreadable since 2026-03-01T12:00:00Z, not yet in fallback",
)
READABLE = ("False", "NoFailureKnown", "no external metric with a fallback is known to fail")
FEATURE_OFF = ("Unknown", "FeatureDisabled", "the feature gate HPAExternalMetricFallback is off")


def in_use(replicas, name="queue_depth", since="2026-03-01T12:00:00Z"):
    message = f"external metric '{name}' is unreadable since {since}, using {replicas} replicas"
    return ("True", "FallbackActive", message)


def activated(replicas, after="3m0s", name="queue_depth"):
    return (
        "ExternalMetricFallbackActivated",
        (
            f"Fallback activated for external metric '{name}' after {after} of consecutive failures, "
            f"using fallback replica count: {replicas}"
        ),
    )


def deactivated(after, name="queue_depth"):
    return (
        "ExternalMetricFallbackDeactivated",
        f"External metric '{name}' is readable again after {after}; fallback deactivated",
    )


def with_fallback(replicas=10, seconds=180, strategy="Static", **parts):
    return make_spec(make_external_metric(fallback=make_fallback(replicas, seconds, strategy)), **parts)


def slots(decision):
    return decision.status.current_metrics


# --- 1 to 16 ---------------------------------------------------------------------------------------------------------


def test_01_a_metric_holds_for_179_seconds_and_falls_back_at_180():
    first, waiting, active = run_passes(with_fallback(), passes_at((0, 179, 180), BROKEN), replicas=8)

    assert (first.replicas, first.scale_to, slots(first)) == (8, None, (running(),))
    assert condition_of(first, KIND) == CLOCK_RUNS
    assert told(first) == [FAILED, STUCK]

    assert (waiting.replicas, waiting.scale_to, slots(waiting)) == (8, None, (running(),))
    assert condition_of(waiting, KIND) == CLOCK_RUNS
    assert told(waiting) == [STUCK]

    assert (active.replicas, active.scale_to, slots(active)) == (10, 10, (fallen_back(captured=8),))
    assert condition_of(active, KIND) == in_use(10)
    assert told(active) == [
        activated(10),
        ("SuccessfulRescale", "New size: 10; reason: the fallback of external metric queue_depth(nil) asks for 10"),
    ]


@pytest.mark.parametrize(
    ("milli", "replicas"),
    [
        pytest.param(1000, 12, id="cpu proposes 12 and the fallback 8: twelve"),
        pytest.param(250, 8, id="cpu proposes 3 and the fallback 8: eight"),
    ],
)
def test_02_the_highest_proposal_wins_over_a_fallback_or_gives_way_to_it(milli, replicas):
    spec = make_spec(make_resource_metric(), make_external_metric(fallback=make_fallback(8)))
    slow = pods_say(*[500] * 6)

    _, active = run_passes(spec, [Step(0, (slow, BROKEN)), Step(180, (pods_say(*[milli] * 6), BROKEN))], replicas=6)

    assert (active.replicas, active.scale_to) == (replicas, replicas)
    assert slots(active)[1] == fallen_back(replicas=8, captured=6)
    assert condition_of(active, KIND) == in_use(8)


@pytest.mark.parametrize(
    ("fallback", "behavior", "size", "proposal"),
    [
        pytest.param(make_fallback(10), AT_ONCE, 10, 10, id="static goes there at once where nothing is in the way"),
        pytest.param(
            make_fallback(10),
            make_behavior(down=make_rules(Policy("Pods", 5, 60), window=0)),
            45,
            10,
            id="static goes there no faster than the policies allow",
        ),
        pytest.param(make_fallback(10, strategy="UseMax"), AT_ONCE, 50, 50, id="use max holds a larger size"),
        pytest.param(make_fallback(80, strategy="UseMax"), AT_ONCE, 80, 80, id="use max rises to a larger fallback"),
        pytest.param(make_fallback(80, strategy="UseMin"), AT_ONCE, 50, 50, id="use min holds a smaller size"),
        pytest.param(make_fallback(10, strategy="UseMin"), AT_ONCE, 10, 10, id="use min sinks to a smaller fallback"),
    ],
)
def test_03_at_fifty_the_strategy_decides_what_is_proposed(fallback, behavior, size, proposal):
    spec = make_spec(make_external_metric(fallback=fallback), behavior=behavior)

    *_, active = run_passes(spec, passes_at((0, 180), BROKEN), replicas=50)

    assert (active.replicas, slots(active)) == (size, (fallen_back(replicas=proposal, captured=50),))
    assert condition_of(active, KIND) == in_use(proposal)


def test_03_a_fallback_downwards_waits_for_the_stabilization_window():
    restarted = Step(170, (BROKEN,), restarted=True)  # its first recommendation is the size it finds

    _, _, active, held, free = run_passes(
        with_fallback(), [Step(0, (BROKEN,)), restarted, *passes_at((180, 470, 471), BROKEN)], replicas=50
    )

    assert (active.replicas, reasons_of(active)["AbleToScale"]) == (50, ("True", "ScaleDownStabilized"))
    assert active.may_change_at == later(470)
    assert (held.replicas, free.replicas) == (50, 10)


def test_04_a_change_of_leader_at_170_seconds_does_not_restart_the_clock():
    steps = [Step(0, (BROKEN,)), Step(170, (BROKEN,), restarted=True), Step(180, (BROKEN,))]

    _, handed_over, active = run_passes(with_fallback(), steps, replicas=8)

    assert (told(handed_over), slots(handed_over)) == ([STUCK], (running(),))
    assert (active.replicas, slots(active)) == (10, (fallen_back(captured=8),))
    assert told(active)[0] == activated(10)


def test_05_someone_scaling_above_the_maximum_does_not_touch_the_clock():
    steps = [Step(0, (BROKEN,)), Step(100, (BROKEN,), replicas=150), Step(179, (BROKEN,)), Step(180, (BROKEN,))]

    _, clamped, waiting, active = run_passes(with_fallback(behavior=AT_ONCE), steps, replicas=8)

    assert (clamped.scale_to, slots(clamped), condition_of(clamped, KIND)) == (100, (running(),), CLOCK_RUNS)
    assert told(clamped) == [
        ("SuccessfulRescale", "New size: 100; reason: Current number of replicas above Spec.MaxReplicas")
    ]
    assert (waiting.replicas, slots(waiting)) == (100, (running(),))
    assert (active.replicas, slots(active)) == (10, (fallen_back(captured=100),))


def test_06_of_one_name_with_two_selectors_only_the_failing_one_falls_back():
    one, other = (
        make_external_metric(selector={"queue": which}, fallback=make_fallback(10)) for which in ("red", "blue")
    )

    *_, active = run_passes(make_spec(one, other), passes_at((0, 180), queue_of(30), BROKEN), replicas=6)

    assert active.replicas == 10
    assert slots(active) == (
        external_slot(average="5", metric=one.external.metric, fallback_status="Normal"),
        fallen_back(captured=6, metric=other.external.metric),
    )
    assert condition_of(active, KIND) == in_use(10)


def test_07_metrics_reordered_during_an_outage_keep_their_clocks():
    broken, sound = make_external_metric(fallback=make_fallback(10)), make_external_metric("backlog")
    steps = [
        Step(0, (BROKEN, queue_of(40))),
        Step(100, (queue_of(40), BROKEN), spec=make_spec(sound, broken)),
        Step(180, (BROKEN, queue_of(40)), spec=make_spec(broken, sound)),
    ]

    _, swapped, active = run_passes(make_spec(broken, sound), steps, replicas=8)

    assert slots(swapped) == (external_slot("backlog", average="5"), running())
    assert (active.replicas, slots(active)) == (
        10,
        (fallen_back(captured=8), external_slot("backlog", average="5")),
    )


def test_08_at_zero_through_the_autoscaler_it_wakes():
    quick = make_behavior(up=make_rules(Policy("Pods", 50, 60)))
    spec = with_fallback(minimum=0, behavior=quick)

    asleep, awake = run_passes(spec, passes_at((0, 180), BROKEN), replicas=0, status=at_zero_by_us())

    assert (asleep.replicas, asleep.scale_to, slots(asleep)) == (0, None, (running(),))
    assert (awake.replicas, awake.scale_to, slots(awake)) == (10, 10, (fallen_back(captured=0),))
    assert reasons_of(awake)["ScaledToZero"] == ("False", "NotScaledToZero")


def test_08_it_wakes_no_faster_than_its_rates_allow():
    steps = passes_at((0, 180, 195, 210), BROKEN)

    decisions = run_passes(with_fallback(minimum=0), steps, replicas=0, status=at_zero_by_us())

    assert [one.replicas for one in decisions] == [0, 4, 8, 10]


def test_08_at_zero_by_hand_it_stays():
    decisions = run_passes(with_fallback(minimum=0), passes_at((0, 180, 600), BROKEN), replicas=0)

    assert [(one.replicas, one.scale_to, slots(one), told(one)) for one in decisions] == [(0, None, None, [])] * 3
    assert condition_of(decisions[-1], KIND) == (
        "Unknown",
        "ScalingDisabled",
        "no metric was read, because scaling is disabled",
    )


def test_09_a_good_read_clears_the_clock_and_the_next_failure_starts_anew():
    steps = [
        Step(0, (BROKEN,)),
        Step(60, (queue_of(40),)),
        *passes_at((75, 180, 254, 255), BROKEN),
    ]

    _, good, again, still, almost, active = run_passes(with_fallback(), steps, replicas=8)

    assert (slots(good), condition_of(good, KIND)) == (
        (external_slot(average="5", fallback_status="Normal"),),
        READABLE,
    )
    assert (slots(again), told(again)) == ((running(since=later(75)),), [FAILED, STUCK])
    assert (still.replicas, almost.replicas, active.replicas) == (8, 8, 10)
    assert slots(active) == (fallen_back(since=later(75), captured=8),)


def test_10_recovery_is_told_once():
    steps = [*passes_at((0, 180), BROKEN), *passes_at((450, 465), queue_of(50))]

    *_, recovered, after = run_passes(with_fallback(), steps, replicas=10)

    assert (recovered.replicas, slots(recovered)) == (10, (external_slot(average="5", fallback_status="Normal"),))
    assert condition_of(recovered, KIND) == READABLE
    assert told(recovered) == [deactivated("7m30s")]
    assert recovered.status.condition(KIND).last_transition_time == later(450)
    assert (told(after), after.status_changed) == ([], False)


def test_11_a_metric_that_fails_without_fallback_still_blocks_scale_down_and_is_named():
    spec = make_spec(
        make_external_metric(fallback=make_fallback(5)), make_external_metric("orders"), make_external_metric("backlog")
    )

    *_, active = run_passes(spec, passes_at((0, 180), BROKEN, BROKEN, queue_of(15)), replicas=20)

    assert (active.replicas, active.scale_to) == (20, None)
    assert condition_of(active, KIND) == in_use(5)
    assert condition_of(active, "ScalingActive") == (
        "False",
        "FailedGetExternalMetric",
        f"the HPA was unable to compute the replica count: unable to get external metric shop/orders/nil: {REFUSED}",
    )
    assert slots(active) == (
        fallen_back(replicas=5, captured=20),
        UNREAD,
        external_slot("backlog", average="750m"),
    )


def test_12_a_fallback_above_the_maximum_ends_at_the_maximum():
    *_, active = run_passes(with_fallback(20, maximum=15), passes_at((0, 180), BROKEN), replicas=10)

    assert (active.replicas, active.scale_to) == (15, 15)
    assert condition_of(active, "ScalingLimited") == (
        "True",
        "TooManyReplicas",
        "the desired replica count is more than the maximum replica count",
    )
    assert slots(active) == (fallen_back(replicas=20, captured=10),)


def test_13_a_rollout_surge_does_not_change_what_use_max_holds():
    steps = [
        Step(0, (BROKEN,)),
        Step(180, (BROKEN,), status_replicas=13),
        Step(195, (BROKEN,), status_replicas=14),
    ]

    _, active, after = run_passes(with_fallback(5, strategy="UseMax"), steps, replicas=10)

    assert (active.replicas, slots(active)) == (10, (fallen_back(replicas=10, captured=10),))
    assert (after.replicas, slots(after)) == (10, (fallen_back(replicas=10, captured=10),))


@pytest.mark.parametrize(
    "reading",
    [
        *(pytest.param(unreadable("why", failure), id=f"{failure}") for failure in FailureClass),
        pytest.param(read_external((), NOW), id="an empty list"),
    ],
)
def test_14_every_failure_to_retrieve_starts_the_clock(reading):
    decision = decide_once(with_fallback(), make_observation(reading))

    assert slots(decision) == (running(),)
    assert condition_of(decision, KIND) == CLOCK_RUNS


@pytest.mark.parametrize(
    ("seen", "slot"),
    [
        pytest.param(
            make_observation(queue_of(40), pods=()), external_slot(fallback_status="Normal"), id="no pods is no failure"
        ),
        pytest.param(make_observation(BadSelector("bad")), UNREAD, id="a selector that does not parse is no failure"),
    ],
)
def test_14_what_is_not_the_metrics_fault_starts_no_clock(seen, slot):
    spec = make_spec(make_external_metric(value="5", fallback=make_fallback(10)))

    decision = decide_once(spec, seen)

    assert (decision.failed, slots(decision)) == (True, (slot,))
    assert condition_of(decision, KIND) == READABLE


def test_14_an_unreadable_target_starts_no_clock():
    decision = decide_once(with_fallback(), make_observation(BROKEN, target=TargetUnreadable("gone")))

    assert slots(decision) is None


def test_15_the_gate_off_in_an_outage_and_on_again_starts_afresh():
    steps = [
        Step(0, (BROKEN,)),
        Step(100, (BROKEN,), gates=NO_FALLBACK),
        Step(115, (BROKEN,)),
        Step(130, (BROKEN,), gates=ALL_ON),
        Step(309, (BROKEN,)),
        Step(310, (BROKEN,)),
    ]

    _, off, still_off, on, waiting, active = run_passes(with_fallback(), steps, replicas=8)

    assert (slots(off), condition_of(off, KIND), told(off)) == ((running(),), FEATURE_OFF, [FAILED, STUCK])
    assert (slots(still_off), told(still_off)) == ((running(),), [FAILED, STUCK])
    assert (slots(on), told(on)) == ((running(since=later(130)),), [FAILED, STUCK])
    assert (waiting.replicas, active.replicas) == (8, 10)


def test_15_a_restart_in_an_outage_with_the_gate_on_carries_on():
    steps = [*passes_at((0, 180), BROKEN), Step(200, (BROKEN,), restarted=True)]

    _, active, restarted = run_passes(with_fallback(strategy="UseMax"), steps, replicas=8)

    assert (slots(active), slots(restarted)) == ((fallen_back(captured=8),), (fallen_back(captured=8),))
    assert (restarted.replicas, told(restarted)) == (10, [])


def test_15_the_gate_on_again_while_the_target_is_unreadable_starts_afresh_too():
    steps = [
        Step(0, (BROKEN,)),
        Step(100, (BROKEN,), gates=NO_FALLBACK),
        Step(130, (BROKEN,), gates=ALL_ON, target=TargetUnreadable("gone")),
        Step(145, (BROKEN,)),
    ]

    *_, seen_again = run_passes(with_fallback(), steps, replicas=8)

    assert slots(seen_again) == (running(since=later(145)),)


def test_15_what_a_fallback_said_stays_in_status_while_the_gate_is_off():
    steps = [*passes_at((0, 180), BROKEN), Step(195, (queue_of(60),), gates=NO_FALLBACK)]

    *_, off = run_passes(with_fallback(), steps, replicas=10)

    assert off.replicas == 12
    assert slots(off) == (fallen_back(captured=10, average="6"),)
    assert condition_of(off, KIND) == FEATURE_OFF


FIELD = "spec.metrics[0].external.fallback"


@pytest.mark.parametrize(
    ("fallback", "problem"),
    [
        pytest.param(
            make_fallback(seconds=179),
            f"{FIELD}.failureDurationSeconds: Invalid value: 179: must be greater than or equal to 180",
            id="less than three minutes",
        ),
        pytest.param(
            make_fallback(0),
            f"{FIELD}.replicas: Invalid value: 0: must be greater than or equal to 1",
            id="no replica at all",
        ),
        pytest.param(
            make_fallback(None),
            f"{FIELD}.replicas: Required value: must specify the replicas to propose while the metric cannot be read",
            id="replicas missing",
        ),
        pytest.param(
            make_fallback(strategy="Guess"),
            f'{FIELD}.strategy: Unsupported value: "Guess": supported values: "Static", "UseMax", "UseMin"',
            id="an unknown strategy",
        ),
    ],
)
def test_16_a_wrong_fallback_is_refused_on_create_with_its_path(fallback, problem):
    autoscaler = make_autoscaler(with_defaults(make_spec(make_external_metric(fallback=fallback))))

    assert [str(one) for one in problems(autoscaler, gates=ALL_ON, settings=Settings())] == [problem]


# --- events ----------------------------------------------------------------------------------------------------------


def test_events_are_told_at_the_edges_only():
    steps = [*passes_at((0, 15, 180, 195), BROKEN), *passes_at((210, 225), queue_of(50)), Step(240, (BROKEN,))]

    decisions = run_passes(with_fallback(), steps, replicas=10)

    assert events_of(decisions) == [
        ["FailedGetExternalMetric", "FailedComputeMetricsReplicas"],
        ["FailedComputeMetricsReplicas"],
        ["ExternalMetricFallbackActivated"],
        [],
        ["ExternalMetricFallbackDeactivated"],
        [],
        ["FailedGetExternalMetric", "FailedComputeMetricsReplicas"],
    ]


def test_a_metric_without_fallback_tells_its_failure_in_every_pass():
    decisions = run_passes(make_spec(), passes_at((0, 180, 360), BROKEN), replicas=8)

    assert [told(one) for one in decisions] == [[FAILED, STUCK]] * 3
    assert [slots(one) for one in decisions] == [(UNREAD,)] * 3
    assert [condition_of(one, KIND) for one in decisions] == [None] * 3


def test_with_the_gate_off_a_fallback_is_ignored_and_every_failure_told():
    decisions = run_passes(with_fallback(), passes_at((0, 180, 360), BROKEN), replicas=8, gates=NO_FALLBACK)

    assert [(one.replicas, told(one), slots(one)) for one in decisions] == [(8, [FAILED, STUCK], (UNREAD,))] * 3
    assert condition_of(decisions[-1], KIND) == FEATURE_OFF


def test_with_the_gate_off_an_answer_is_shown_as_upstream_shows_it():
    decision = decide_once(with_fallback(), make_observation(queue_of(15)), gates=NO_FALLBACK)

    assert (decision.replicas, slots(decision)) == (3, (external_slot(average="5"),))


def test_the_condition_goes_when_the_fallback_is_taken_out_of_the_spec():
    steps = [Step(0, (BROKEN,)), Step(15, (BROKEN,), spec=make_spec())]

    with_it, without = run_passes(with_fallback(), steps)

    assert condition_of(with_it, KIND) == CLOCK_RUNS
    assert (condition_of(without, KIND), slots(without)) == (None, (UNREAD,))


def test_every_metric_in_fallback_is_named_in_the_condition():
    spec = make_spec(
        make_external_metric("a", fallback=make_fallback(4)), make_external_metric("b", fallback=make_fallback(6))
    )

    *_, active = run_passes(spec, [Step(0, (BROKEN, queue_of(15))), *passes_at((20, 200), BROKEN, BROKEN)])

    assert active.replicas == 6
    assert condition_of(active, KIND) == (
        "True",
        "FallbackActive",
        (
            "external metric 'a' is unreadable since 2026-03-01T12:00:00Z, using 4 replicas; "
            "external metric 'b' is unreadable since 2026-03-01T12:00:20Z, using 6 replicas"
        ),
    )
    assert told(active)[:2] == [activated(4, after="3m20s", name="a"), activated(6, name="b")]


def test_a_fallback_that_decides_is_named_in_conditions_and_reason():
    *_, active = run_passes(with_fallback(4), passes_at((0, 180), BROKEN), replicas=3)

    assert condition_of(active, "ScalingActive") == (
        "True",
        "ValidMetricFound",
        (
            "the HPA was able to successfully calculate a replica count from the fallback of external metric "
            "queue_depth(nil)"
        ),
    )
    assert active.rescale_reason == "the fallback of external metric queue_depth(nil) asks for 4"


def test_a_fallback_that_asks_for_the_current_size_gives_no_reason():
    *_, active = run_passes(with_fallback(3), passes_at((0, 180), BROKEN), replicas=3)

    assert (active.scale_to, active.rescale_reason, told(active)) == (None, "", [activated(3)])


# --- the clock -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(Step(100, (BROKEN,), replicas=150), id="a size above the maximum"),
        pytest.param(Step(100, (BROKEN,), replicas=1), id="a size below the minimum"),
        pytest.param(Step(100, (BROKEN,), selector=""), id="a target without selector"),
        pytest.param(Step(100, (BROKEN,), replicas=0), id="a zero by hand"),
        pytest.param(Step(100, (BROKEN,), target=TargetUnreadable("gone")), id="a target that cannot be read"),
        pytest.param(Step(100, (BROKEN,), restarted=True), id="a restart"),
        pytest.param(Step(100, (BadSelector("bad"),)), id="a selector of the metric that does not parse"),
    ],
)
def test_the_clock_survives(between):
    steps = [Step(0, (BROKEN,)), between, Step(179, (BROKEN,), replicas=8), Step(180, (BROKEN,))]

    _, during, waiting, active = run_passes(with_fallback(minimum=2), steps, replicas=8)

    assert slots(during) == (running(),)
    assert (waiting.replicas, slots(waiting)) == (8, (running(),))
    assert (active.replicas, slots(active)) == (10, (fallen_back(captured=8),))


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(Step(200, (BROKEN,), replicas=150), id="a size above the maximum"),
        pytest.param(Step(200, (BROKEN,), selector=""), id="a target without selector"),
        pytest.param(Step(200, (BROKEN,), replicas=0), id="a zero by hand"),
        pytest.param(Step(200, (BROKEN,), target=TargetUnreadable("gone")), id="a target that cannot be read"),
        pytest.param(Step(200, (BROKEN,), write_fails="conflict"), id="a scale that cannot be written"),
    ],
)
def test_what_was_captured_is_kept_until_recovery(between):
    steps = [
        Step(0, (BROKEN,)),
        Step(180, (BROKEN,)),
        between,
        Step(215, (BROKEN,), replicas=30),
        Step(230, (queue_of(150),)),
        Step(245, (BROKEN,)),
        Step(425, (BROKEN,)),
    ]

    _, active, during, after, recovered, _, anew = run_passes(
        with_fallback(12, strategy="UseMax", behavior=AT_ONCE), steps, replicas=20
    )

    assert slots(active) == slots(during) == slots(after) == (fallen_back(replicas=20, captured=20),)
    assert after.replicas == 20
    assert slots(recovered) == (external_slot(average="7500m", fallback_status="Normal"),)
    assert slots(anew) == (fallen_back(since=later(245), replicas=30, captured=30),)


def test_a_failed_scale_write_at_activation_keeps_clock_and_capture():
    steps = [Step(0, (BROKEN,)), Step(180, (BROKEN,), write_fails="conflict"), Step(195, (BROKEN,))]

    _, refused, written = run_passes(with_fallback(), steps, replicas=8)

    assert (refused.scale_to, slots(refused)) == (None, (fallen_back(captured=8),))
    assert [reason for reason, _ in told(refused)] == ["ExternalMetricFallbackActivated", "FailedRescale"]
    assert (written.scale_to, slots(written)) == (10, (fallen_back(captured=8),))
    assert [reason for reason, _ in told(written)] == ["SuccessfulRescale"]


def test_a_first_failure_in_the_future_counts_as_now():
    decision = decide_once(
        with_fallback(), make_observation(BROKEN), status=Status(current_metrics=(running(since=later(3600)),))
    )

    assert slots(decision) == (running(since=NOW),)
    assert told(decision) == [STUCK]


def test_the_clock_is_kept_in_whole_seconds_and_runs_out_by_them():
    started = decide_once(with_fallback(), make_observation(BROKEN), now=later(0.9))

    assert slots(started) == (running(since=NOW),)

    active = decide_once(with_fallback(), make_observation(BROKEN), status=started.status, now=later(180))

    assert slots(active) == (fallen_back(captured=3),)


def test_two_entries_with_one_identity_share_a_clock_and_its_events_are_told_once():
    low = make_external_metric(average="5", fallback=make_fallback(4))
    high = make_external_metric(average="8", fallback=make_fallback(6))
    steps = [*passes_at((0, 180), BROKEN, BROKEN), Step(195, (queue_of(30), queue_of(48)))]

    first, active, recovered = run_passes(make_spec(low, high), steps)

    assert told(first)[:-1] == [FAILED]
    assert (active.replicas, slots(active)) == (6, (fallen_back(replicas=4), fallen_back(replicas=6)))
    assert [reason for reason, _ in told(active)] == ["ExternalMetricFallbackActivated", "SuccessfulRescale"]
    assert told(recovered) == [deactivated("3m15s")]


def test_of_two_entries_with_one_identity_the_more_patient_one_does_not_silence_the_other():
    patient = make_external_metric(average="8", fallback=make_fallback(6, seconds=300))
    hasty = make_external_metric(average="5", fallback=make_fallback(4))

    decisions = run_passes(make_spec(patient, hasty), passes_at((0, 180, 300), BROKEN, BROKEN), replicas=4)

    assert slots(decisions[1]) == (running(), fallen_back(replicas=4, captured=4))
    assert slots(decisions[2]) == (fallen_back(replicas=6, captured=4), fallen_back(replicas=4, captured=4))
    assert [[text for reason, text in told(one) if reason.startswith("External")] for one in decisions] == [
        [],
        [activated(4)[1]],
        [],
    ]


def test_the_earlier_of_two_clocks_of_one_metric_counts():
    status = Status(current_metrics=(fallen_back(since=ago(10), replicas=4), running(since=ago(400))))

    decision = decide_once(with_fallback(4), make_observation(BROKEN), status=status)

    assert slots(decision) == (fallen_back(since=ago(400), replicas=4),)


def test_selectors_that_mean_the_same_are_one_metric():
    written, rewritten = (
        make_external_metric(selector=labels, fallback=make_fallback(10))
        for labels in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"})
    )
    steps = [Step(0, (BROKEN,)), Step(180, (BROKEN,), spec=make_spec(rewritten))]

    *_, active = run_passes(make_spec(written), steps, replicas=8)

    assert active.replicas == 10


def test_a_new_selector_is_a_new_metric():
    steps = [
        Step(0, (BROKEN,)),
        Step(180, (BROKEN,), spec=make_spec(make_external_metric(selector={"a": "1"}, fallback=make_fallback(10)))),
    ]

    *_, anew = run_passes(with_fallback(), steps, replicas=8)

    assert (anew.replicas, slots(anew)[0].external.first_failure_time) == (8, later(180))


@pytest.mark.parametrize(
    ("edited", "replicas", "proposal"),
    [
        pytest.param(with_fallback(12), 12, 12, id="replicas"),
        pytest.param(with_fallback(4, strategy="UseMax"), 8, 8, id="strategy"),
        pytest.param(
            make_spec(make_external_metric(average="7", fallback=make_fallback(10))), 10, 10, id="the metric's target"
        ),
    ],
)
def test_an_edit_keeps_the_clock(edited, replicas, proposal):
    steps = [Step(0, (BROKEN,)), Step(180, (BROKEN,), spec=edited)]

    *_, active = run_passes(with_fallback(), steps, replicas=8)

    assert (active.replicas, slots(active)) == (replicas, (fallen_back(replicas=proposal, captured=8),))


@pytest.mark.parametrize(
    ("seconds", "replicas", "slot"),
    [
        pytest.param(300, 8, running(), id="a longer patience waits on"),
        pytest.param(200, 10, fallen_back(captured=8), id="a shorter patience has run out already"),
        pytest.param(None, 10, fallen_back(captured=8), id="no patience given means three minutes"),
    ],
)
def test_an_edited_failure_duration_counts_from_the_first_failure(seconds, replicas, slot):
    steps = [Step(0, (BROKEN,)), Step(200, (BROKEN,), spec=with_fallback(seconds=seconds))]

    *_, decision = run_passes(with_fallback(seconds=250), steps, replicas=8)

    assert (decision.replicas, slots(decision)) == (replicas, (slot,))


def test_where_the_floor_is_lowered_to_nothing_so_may_be_the_patience():
    decision = decide_once(with_fallback(4, seconds=0), make_observation(BROKEN))

    assert (decision.replicas, slots(decision)) == (4, (fallen_back(replicas=4),))
    assert told(decision)[:2] == [FAILED, activated(4, after="0s")]


def test_an_active_fallback_whose_patience_is_lengthened_waits_again():
    steps = [*passes_at((0, 180), BROKEN), Step(195, (BROKEN,), spec=with_fallback(seconds=600))]

    *_, decision = run_passes(with_fallback(), steps, replicas=8)

    assert (decision.replicas, slots(decision), condition_of(decision, KIND)) == (10, (running(),), CLOCK_RUNS)


def test_the_working_tells_when_the_fallback_will_speak_and_what_it_said():
    waiting, active = run_passes(with_fallback(strategy="UseMin"), passes_at((0, 180), BROKEN), replicas=8)

    (failed,) = [step for step in waiting.working if isinstance(step, MetricFailed)]
    assert (failed.failing_since, failed.fallback_at, failed.fallback_replicas) == (NOW, later(180), 10)
    assert waiting.may_change_at == later(180)
    assert [step for step in active.working if isinstance(step, MetricFellBack)] == [
        MetricFellBack("queue_depth", 8, WHY, NOW, "UseMin", 10, 8)
    ]


# --- zero ------------------------------------------------------------------------------------------------------------


def test_it_never_goes_to_zero_while_a_metric_with_fallback_is_failing():
    spec = make_spec(
        make_external_metric(fallback=make_fallback(1)),
        make_external_metric("backlog"),
        minimum=0,
        behavior=AT_ONCE,
    )
    steps = [*passes_at((0, 180, 195), BROKEN, queue_of(0)), Step(210, (queue_of(0), queue_of(0)))]

    decisions = run_passes(spec, steps, replicas=2)

    assert [one.replicas for one in decisions] == [2, 1, 1, 0]


@pytest.mark.parametrize("strategy", ["Static", "UseMax", "UseMin"])
def test_a_zero_that_was_captured_does_not_keep_it_asleep(strategy):
    spec = with_fallback(4, strategy=strategy, minimum=0)

    *_, awake, after = run_passes(spec, passes_at((0, 180, 195), BROKEN), replicas=0, status=at_zero_by_us())

    assert (awake.replicas, slots(awake)) == (4, (fallen_back(replicas=4, captured=0),))
    assert (after.replicas, slots(after)) == (4, (fallen_back(replicas=4, captured=0),))


def test_a_fallback_without_replicas_asks_for_one():
    *_, active = run_passes(with_fallback(None), passes_at((0, 180), BROKEN), replicas=2)

    assert slots(active) == (fallen_back(replicas=1, captured=2),)


# --- beside other metrics --------------------------------------------------------------------------------------------


def test_while_the_clock_runs_others_may_scale_up_but_not_down():
    spec = make_spec(make_external_metric(fallback=make_fallback(4)), make_pods_metric(), behavior=AT_ONCE)
    idle, busy = (pods_say(*[milli] * 4) for milli in (5000, 20000))

    down, up = run_passes(spec, [Step(0, (BROKEN, idle)), Step(15, (BROKEN, busy))], replicas=4)

    assert (down.replicas, up.replicas) == (4, 8)
    assert [step for step in down.working if isinstance(step, Combined)] == [Combined(4, 4, 2, 1, blocked=True)]
    assert condition_of(up, KIND) == CLOCK_RUNS


def test_an_active_fallback_no_longer_blocks_scale_down():
    spec = make_spec(make_external_metric(fallback=make_fallback(2)), make_pods_metric(), behavior=AT_ONCE)

    *_, active = run_passes(spec, passes_at((0, 180), BROKEN, pods_say(*[5000] * 8)), replicas=8)

    assert (active.replicas, active.error) == (4, None)


def test_a_clock_of_a_metric_that_is_no_longer_asked_for_is_dropped():
    old, new = (
        make_external_metric("old", fallback=make_fallback()),
        make_external_metric("new", fallback=make_fallback()),
    )
    steps = [Step(0, (BROKEN,)), Step(15, (BROKEN,), spec=make_spec(new), replicas=150)]

    *_, clamped = run_passes(make_spec(old), steps)

    assert (slots(clamped), condition_of(clamped, KIND)) == (None, READABLE)


def test_the_condition_changes_its_time_only_with_its_status():
    waiting, still, active = run_passes(with_fallback(), passes_at((0, 15, 180), BROKEN), replicas=8)

    assert still.status.condition(KIND) == waiting.status.condition(KIND)
    assert active.status.condition(KIND) == Condition(KIND, "True", later(180), *in_use(10)[1:])


def test_the_unreadable_target_is_told_in_the_condition():
    known = Status(current_metrics=(running(),), conditions=(make_condition(KIND, "False"),))
    decision = decide_once(
        with_fallback(), make_observation(BROKEN, target=TargetUnreadable("gone")), status=known, gates=FeatureGates()
    )

    assert condition_of(decision, KIND) == (
        "Unknown",
        "FailedGetScale",
        "no metric was read, because the target's scale could not be read",
    )
    assert slots(decision) == (running(),)


def test_a_metric_selector_that_does_not_parse_has_an_identity_of_its_own():
    bad = make_external_metric(selector={"a b": "1"}, fallback=make_fallback(10))
    status = Status(current_metrics=(running(metric=bad.external.metric),))

    decision = decide_once(make_spec(bad), make_observation(BadSelector("bad")), status=status)

    assert slots(decision) == status.current_metrics


def test_the_bound_is_the_fallback_when_nothing_else_was():
    *_, active = run_passes(with_fallback(), passes_at((0, 180), BROKEN), replicas=8)

    assert active.bound is Bound.FALLBACK
