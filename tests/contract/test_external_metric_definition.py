"""The schema of ExternalMetric on a real API server: it limits size and depth of ``spec.parameters``."""

import json
from typing import Any

import pytest

from tests.control_plane.cluster import ControlPlane
from tools.crd.parameters import FILE

COLLECTION = "/apis/steadyscale.dev/v1beta1/namespaces/default/externalmetrics"

pytestmark = pytest.mark.apiserver


DEEP = "@deep@"
"""Stands for nested lists and objects, which ``json`` cannot encode."""

NESTED = '[{"a":' * 1500 + '"x"' + "}]" * 1500


@pytest.fixture(scope="module")
def installed(plane: ControlPlane) -> ControlPlane:
    plane.kubectl("apply", "-f", str(FILE))
    plane.kubectl("wait", "--for=condition=Established", "-f", str(FILE))
    return plane


def create(plane: ControlPlane, parameters: Any, validation: str = "Warn") -> Any:
    """Create an object without storing it; return its parameters, or the message if it is rejected."""
    body = {
        "apiVersion": "steadyscale.dev/v1beta1",
        "kind": "ExternalMetric",
        "metadata": {"name": "it"},
        "spec": {"backend": "b", "parameters": parameters},
    }
    text = json.dumps(body).replace(json.dumps(DEEP), NESTED)
    query = f"?dryRun=All&fieldValidation={validation}"
    output = plane.kubectl("create", "--raw", COLLECTION + query, "--filename=-", stdin=text, check=False)
    return json.loads(output.splitlines()[0])["spec"]["parameters"] if output.startswith("{") else output


@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param({"queue": "orders", "vhost": "/", "measure": "ready"}, id="rabbitmq"),
        pytest.param({"queue": "orders", "measure": ["visible", "delayed"]}, id="sqs"),
        pytest.param({"group": "g", "topics": ["a", "b"], "stuckAfter": "5m", "lagPerConsumer": 10}, id="kafka"),
        pytest.param(
            {
                "expression": "m1/m2",
                "metrics": {"m1": {"namespace": "n", "metric": "m", "dimensions": {"a": "b"}}},
                "period": "1m",
            },
            id="cloudwatch",
        ),
        pytest.param({"path": "/a", "format": "json", "value": "x" * 2048}, id="http"),
        pytest.param({"queries": {"a": "avg:x{*}", "b": "avg:y{*}"}, "formula": "a/b"}, id="datadog"),
    ],
)
def test_parameters_of_all_backend_kinds_are_stored_unchanged(installed: ControlPlane, parameters: Any) -> None:
    assert create(installed, parameters, "Strict") == parameters


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        pytest.param({"value": "x" * 20_000}, "spec.parameters.value: Too long", id="long text"),
        pytest.param({"topics": ["x"] * 257}, "spec.parameters.topics: Too many", id="many items"),
        pytest.param({"dimensions": {str(n): "x" for n in range(65)}}, "dimensions: Too many", id="many keys"),
        pytest.param({"lagPerConsumer": 2**60}, "should be less than or equal to", id="large number"),
        pytest.param({"value": DEEP}, "must be of type string", id="deep text"),
        pytest.param({"dimensions": {"a": DEEP}}, "must be of type string", id="deep item"),
        pytest.param({"measure": {"a": DEEP}}, "measure: Too many", id="deep value of a field without type"),
        pytest.param({"measure": [DEEP]}, "must be of type string", id="deep list of a field without type"),
        pytest.param({"measure": "x" * 100}, "measure: Too long", id="long text of a field without type"),
    ],
)
def test_large_and_deep_parameters_are_rejected(installed: ControlPlane, parameters: Any, message: str) -> None:
    assert message in str(create(installed, parameters))


def test_unknown_parameter_is_removed_and_strict_clients_are_told(installed: ControlPlane) -> None:
    parameters = {"queue": "orders", "quueue": DEEP}
    assert create(installed, parameters) == {"queue": "orders"}
    assert 'unknown field "spec.parameters.quueue"' in create(installed, parameters, "Strict")
