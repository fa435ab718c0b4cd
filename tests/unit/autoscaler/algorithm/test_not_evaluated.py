"""The decisions for an invalid spec and for a reconcile that raised."""

from autoscaler.algorithm.conditions import state_discarded
from autoscaler.algorithm.explain import explain
from autoscaler.algorithm.not_evaluated import decide_failed_reconcile, decide_invalid_spec
from autoscaler.settings import FeatureGates
from autoscaler.types.history import History
from autoscaler.types.limiting_factor import LimitingFactor
from tests.builders import ALL_GATES, NOW, make_autoscaler

PROBLEMS = ("spec.maxReplicas: Required value",)


def decide_invalid(autoscaler, gates=ALL_GATES):
    return decide_invalid_spec(autoscaler=autoscaler, problems=PROBLEMS, history=History(), gates=gates, now=NOW)


def test_problems_are_named_in_condition_event_and_explanation():
    decision = decide_invalid(make_autoscaler(generation=3))
    condition = decision.status.condition("ScalingActive")
    assert (condition.status, condition.reason) == ("False", "InvalidSpec")
    assert condition.message == (
        "the spec is invalid and nothing is scaled until it is corrected: spec.maxReplicas: Required value"
    )
    assert [(event.reason, event.message) for event in decision.events] == [("InvalidSpec", PROBLEMS[0])]
    assert decision.status.observed_generation == 3
    assert (decision.scale_to, decision.limiting_factor, decision.caused_by_spec) == (
        None,
        LimitingFactor.INVALID_SPEC,
        True,
    )
    assert explain(decision).steps[0].text == "spec: invalid: spec.maxReplicas: Required value"


def test_event_is_sent_once_per_set_of_problems():
    first = decide_invalid(make_autoscaler())
    again = decide_invalid(make_autoscaler(status=first.status))
    assert again.events == ()
    assert not again.status_changed


def test_generation_is_not_observed_with_the_gate_off():
    assert decide_invalid(make_autoscaler(), FeatureGates(HPAGeneration=False)).status.observed_generation is None


def test_reconcile_that_raised_is_named_in_condition_event_and_explanation():
    decision = decide_failed_reconcile(
        autoscaler=make_autoscaler(), error="KeyError: 'x'", history=History(), gates=ALL_GATES, now=NOW
    )
    condition = decision.status.condition("AbleToScale")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "ReconcileFailed")
    assert condition.message.endswith("retries with backoff: KeyError: 'x'")
    assert [(event.reason, event.message) for event in decision.events] == [("ReconcileFailed", "KeyError: 'x'")]
    assert (decision.scale_to, decision.limiting_factor, decision.caused_by_spec, decision.failed) == (
        None,
        LimitingFactor.RECONCILE_FAILED,
        False,
        True,
    )
    assert explain(decision).steps[0].text == "reconcile: failed: KeyError: 'x'"


def test_discarded_state_is_an_event():
    event = state_discarded("unsupported version: 'v9'")
    assert (event.type, event.reason) == ("Warning", "DiscardedControllerState")
    assert event.message.endswith("discarded: unsupported version: 'v9'")
