import pytest

from autoscaler.validation import warnings
from autoscaler.wire import decode_autoscaler


def warning_lines(**spec):
    return [str(warning) for warning in warnings(decode_autoscaler({"spec": {"maxReplicas": 10} | spec}))]


def external(**parts):
    return {"metrics": [{"type": "External", "external": {"target": {"type": "Value", "value": "1"}} | parts}]}


def scale_up(select, *types):
    policies = [{"type": kind, "value": 1, "periodSeconds": 1} for kind in types]
    return {"minReplicas": 0, "behavior": {"scaleUp": {"selectPolicy": select, "policies": policies}}}


FALLBACK = "spec.metrics[0].external.fallback.replicas"
CANNOT_LEAVE_ZERO = (
    "spec.behavior.scaleUp.policies: a percentage of zero replicas is zero, so with"
    " minReplicas 0 the target cannot scale up from zero: add a policy of type Pods and set selectPolicy to Max"
)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="no warnings"),
        pytest.param(
            external(fallback={"replicas": 20}),
            [f"{FALLBACK}: 20 is more than maxReplicas: 10 is used"],
            id="fallback above maxReplicas",
        ),
        pytest.param(
            external(fallback={"replicas": 2}) | {"minReplicas": 3},
            [f"{FALLBACK}: 2 is less than minReplicas: 3 is used"],
            id="fallback below minReplicas",
        ),
        pytest.param(external(fallback={"replicas": 5}), [], id="fallback within bounds"),
        pytest.param(external(fallback={}), [], id="fallback without replicas is a problem"),
        pytest.param(
            external(target={"type": "Utilization", "averageValue": "1"}),
            [
                (
                    "spec.metrics[0].external.target: type is Utilization, but averageValue is set instead of"
                    " averageUtilization: averageValue is used"
                )
            ],
            id="target field of another type",
        ),
        pytest.param(external(target={"type": "Value"}), [], id="missing target is a problem"),
        pytest.param(external(target={"type": "Odd", "value": "1"}), [], id="unknown target type is a problem"),
        pytest.param(
            {"metrics": [{"type": "Object", "object": {"target": {"type": "Value", "averageValue": "1"}}}]},
            [("spec.metrics[0].object.target: type Value requires value, which is not set: the metric cannot be read")],
            id="target field of another type in an Object metric",
        ),
        pytest.param(
            external(metric={"name": "q", "selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}),
            [
                (
                    "spec.metrics[0].external.metric.selector: invalid selector, the metric cannot be read:"
                    ' "Near" is not a valid label selector operator'
                )
            ],
            id="invalid selector",
        ),
        pytest.param(scale_up("Max", "Percent", "Percent"), [CANNOT_LEAVE_ZERO], id="percentages only"),
        pytest.param(scale_up("Min", "Pods", "Percent"), [CANNOT_LEAVE_ZERO], id="minimum of pods and a percentage"),
        pytest.param(scale_up("Max", "Pods", "Percent"), [], id="maximum of pods and a percentage"),
        pytest.param(scale_up("Max", "Percent") | {"minReplicas": 1}, [], id="percentages with minReplicas 1"),
        pytest.param({"minReplicas": 0}, [], id="minReplicas 0 without behavior"),
    ],
)
def test_warnings(spec, expected):
    assert warning_lines(**spec) == expected
