import pytest

from autoscaler.validation import warnings
from autoscaler.wire import decode_autoscaler


def advice(**spec):
    return [str(each) for each in warnings(decode_autoscaler({"spec": {"maxReplicas": 10} | spec}))]


def external(**parts):
    return {"metrics": [{"type": "External", "external": {"target": {"type": "Value", "value": "1"}} | parts}]}


def waking(select, *types):
    policies = [{"type": kind, "value": 1, "periodSeconds": 1} for kind in types]
    return {"minReplicas": 0, "behavior": {"scaleUp": {"selectPolicy": select, "policies": policies}}}


FALLBACK = "spec.metrics[0].external.fallback.replicas"
STUCK = (
    "spec.behavior.scaleUp.policies: a percentage of zero replicas is zero, so with"
    " minReplicas 0 the target cannot leave"
    " zero; add a policy of type Pods and let selectPolicy be Max"
)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="nothing to say"),
        pytest.param(
            external(fallback={"replicas": 20}),
            [f"{FALLBACK}: 20 is more than maxReplicas, so 10 will be used"],
            id="a fallback above the maximum",
        ),
        pytest.param(
            external(fallback={"replicas": 2}) | {"minReplicas": 3},
            [f"{FALLBACK}: 2 is less than minReplicas, so 3 will be used"],
            id="a fallback below the minimum",
        ),
        pytest.param(external(fallback={"replicas": 5}), [], id="a fallback within bounds"),
        pytest.param(external(fallback={}), [], id="a fallback without replicas is a problem, not advice"),
        pytest.param(
            external(target={"type": "Utilization", "averageValue": "1"}),
            [
                (
                    "spec.metrics[0].external.target: type is Utilization, but averageValue is set and"
                    " averageUtilization is"
                    " not: averageValue is what counts"
                )
            ],
            id="a target of another type",
        ),
        pytest.param(external(target={"type": "Value"}), [], id="no target at all is a problem, not advice"),
        pytest.param(external(target={"type": "Odd", "value": "1"}), [], id="an unknown type is a problem, not advice"),
        pytest.param(
            {"metrics": [{"type": "Object", "object": {"target": {"type": "Value", "averageValue": "1"}}}]},
            [
                (
                    "spec.metrics[0].object.target: type Value needs value, which is not set:"
                    " this metric will not be readable"
                )
            ],
            id="an object's target of another type",
        ),
        pytest.param(
            external(metric={"name": "q", "selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}),
            [
                (
                    "spec.metrics[0].external.metric.selector: does not parse, so this metric will not be readable:"
                    ' "Near" is not a valid label selector operator'
                )
            ],
            id="a selector that does not parse",
        ),
        pytest.param(waking("Max", "Percent", "Percent"), [STUCK], id="percentages only"),
        pytest.param(waking("Min", "Pods", "Percent"), [STUCK], id="the smaller of pods and a percentage"),
        pytest.param(waking("Max", "Pods", "Percent"), [], id="the larger of pods and a percentage"),
        pytest.param(waking("Max", "Percent") | {"minReplicas": 1}, [], id="percentages that never see zero"),
        pytest.param({"minReplicas": 0}, [], id="zero without a behavior"),
    ],
)
def test_advice(spec, expected):
    assert advice(**spec) == expected
