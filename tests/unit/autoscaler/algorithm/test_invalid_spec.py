"""A spec that makes no sense is told once, field by field, and nothing is scaled."""

from autoscaler.algorithm.explain import explain
from autoscaler.algorithm.invalid_spec import refuse
from autoscaler.settings import FeatureGates
from autoscaler.types.history import History
from autoscaler.types.limiting_factor import Bound
from tests.builders import ALL_ON, NOW, make_autoscaler

WRONG = ("spec.maxReplicas: Required value",)


def refused(autoscaler, gates=ALL_ON):
    return refuse(autoscaler=autoscaler, problems=WRONG, past=History(), gates=gates, now=NOW)


def test_the_fields_are_named_in_condition_event_and_explanation():
    decision = refused(make_autoscaler(generation=3))
    condition = decision.status.condition("ScalingActive")
    assert (condition.status, condition.reason) == ("False", "InvalidSpec")
    assert condition.message == "nothing is scaled until this is corrected: spec.maxReplicas: Required value"
    assert [(event.reason, event.message) for event in decision.events] == [("InvalidSpec", WRONG[0])]
    assert decision.status.observed_generation == 3
    assert (decision.scale_to, decision.bound, decision.blames_spec) == (None, Bound.SPEC, True)
    told = explain(decision).working[0].sentence
    assert told == "the spec is wrong, so nothing was looked at: spec.maxReplicas: Required value"


def test_it_is_told_once():
    first = refused(make_autoscaler())
    again = refused(make_autoscaler(status=first.status))
    assert again.events == ()
    assert not again.status_changed


def test_with_the_gate_off_the_generation_is_not_observed():
    assert refused(make_autoscaler(), FeatureGates(HPAGeneration=False)).status.observed_generation is None
