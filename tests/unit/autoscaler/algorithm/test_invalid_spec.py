"""The decision for an invalid spec."""

from autoscaler.algorithm.explain import explain
from autoscaler.algorithm.invalid_spec import decide_invalid_spec
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
