"""ExternalMetric objects on a real API server: validation by the CRD, serving and status."""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from adapter.__main__ import main
from tests.integration.service import APISERVICE, GROUP, Service, condition, until

pytestmark = pytest.mark.apiserver


def external_metric(name: str, **spec: Any) -> str:
    metadata = {"name": name, "namespace": "default"}
    return json.dumps(
        {"apiVersion": "steadyscale.dev/v1beta1", "kind": "ExternalMetric", "metadata": metadata, "spec": spec}
    )


def apply(running: Service, name: str, *, check: bool = True, **spec: Any) -> str:
    text = external_metric(name, **spec)
    return running.plane.kubectl("apply", "--filename=-", stdin=text, check=check)


def status(running: Service, name: str) -> dict[str, Any]:
    found: dict[str, Any] = running.plane.get("externalmetric", name, "--namespace=default").get("status", {})
    return found


def test_object_becomes_a_metric_and_gets_a_status(running: Service) -> None:
    apply(running, "orders", static=[{"value": 1.5, "labels": {"queue": "a"}}, {"value": 2}])
    until(lambda: condition({"status": status(running, "orders")}, "Ready") == "True", "Ready is True")

    assert (status(running, "orders")["lastValue"], status(running, "orders")["series"]) == ("3500m", 2)
    values = json.loads(running.plane.kubectl("get", "--raw", f"{GROUP}/namespaces/default/orders"))
    assert [item["value"] for item in values["items"]] == ["2", "1500m"]
    assert running.plane.kubectl("get", "--raw", f"{GROUP}/namespaces/kube-system/orders", check=False).count(
        "no rule defines metric 'orders' in namespace 'kube-system'"
    )


def test_update_and_deletion_take_effect(running: Service) -> None:
    apply(running, "mails", static=[{"value": 1}])
    until(lambda: status(running, "mails").get("lastValue") == "1", "the first value")
    apply(running, "mails", static=[{"value": 2}])
    until(lambda: status(running, "mails").get("observedGeneration") == 2, "the second generation")

    running.plane.kubectl("delete", "externalmetric", "mails", "--namespace=default")
    path = f"{GROUP}/namespaces/default/mails"
    until(lambda: "no rule defines" in running.plane.kubectl("get", "--raw", path, check=False), "the metric is gone")


def test_problem_that_the_crd_cannot_check_is_in_the_status(running: Service) -> None:
    apply(running, "lost", backend="nowhere", query="x")
    until(lambda: condition({"status": status(running, "lost")}, "Ready") == "False", "Ready is False")

    (ready,) = status(running, "lost")["conditions"]
    assert ready["reason"] == "Invalid"
    assert ready["message"].startswith("spec.backend: backend 'nowhere' is not available to ExternalMetrics")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "exactly one of static and backend is required"),
        ({"backend": "b"}, "query or parameters is required with a backend, and a backend with query or parameters"),
        ({"backend": "b", "query": "x", "static": [{"value": 1}]}, "exactly one of static and backend is required"),
        ({"backend": "b", "query": "x", "parameters": {"queue": "a"}}, "query and parameters cannot be combined"),
        ({"metric": "Status", "static": [{"value": 1}]}, "the API server authorizes a request for it"),
        (
            {"aliases": ["finalize"], "static": [{"value": 1}]},
            "the API server authorizes a request for it",
        ),
        ({"metric": "externalmetrics", "static": [{"value": 1}]}, "lists all metrics of a namespace"),
        ({"aliases": ["a/b"], "static": [{"value": 1}]}, "must be a valid path segment"),
        ({"metric": "a/b", "static": [{"value": 1}]}, "must be a valid path segment"),
        ({"static": [{"value": 1}], "interval": "4s"}, "must be at least 5s"),
        ({"static": [{"value": 1}], "deadline": "999ms"}, "must be at least 1s and at most 60s"),
        ({"static": [{"value": 1}], "deadline": "2m"}, "must be at least 1s and at most 60s"),
        ({"static": [{"value": 1}], "interval": "soon"}, "should match"),
        ({"static": [{"value": 1}], "aggregation": "median"}, 'supported values: "sum", "max", "min", "avg", "one"'),
        ({"static": [{"value": 1}], "onEmtpy": "zero"}, 'unknown field "spec.onEmtpy"'),
    ],
)
def test_crd_rejects_invalid_specs(running: Service, spec: dict[str, Any], message: str) -> None:
    assert message in apply(running, "rejected", check=False, **spec)


@pytest.mark.parametrize("name", ["status", "finalize", "externalmetrics"])
def test_object_with_a_reserved_name_needs_another_metric_name(running: Service, name: str) -> None:
    assert "set another name in spec.metric" in apply(running, name, check=False, static=[{"value": 1}])
    apply(running, name, metric=f"{name}-of-it", static=[{"value": 1}])


def test_parameters_are_stored_unchanged(running: Service) -> None:
    apply(running, "parts", backend="b", parameters={"dimensions": {"QueueName": "orders"}, "period": "1m"})
    parameters = running.plane.get("externalmetric", "parts", "--namespace=default")["spec"]["parameters"]

    assert parameters == {"dimensions": {"QueueName": "orders"}, "period": "1m"}


def connection(running: Service, folder: Path) -> tuple[str, ...]:
    """Return the options to connect to the service without a kubeconfig."""
    ca = folder / "ca.crt"
    ca.write_bytes(b64decode(running.plane.get(APISERVICE)["spec"]["caBundle"]))
    return "--server", f"https://localhost:{running.port}", "--ca-file", str(ca)


def test_service_is_verified_by_the_apiservice_of_the_kubeconfigs_cluster(
    running: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ("--server", f"https://127.0.0.1:{running.port}", "--kubeconfig", str(running.plane.kubeconfig("admin")))

    assert main(["metric", *server, "default/queue-depth"]) == 0
    assert "rule          queue-depth, from configuration" in capsys.readouterr().out


def test_metric_command_works_with_the_token_of_the_pod(
    running: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tmp_path / "token"
    token.write_text(running.plane.kubectl("create", "token", "steadyscale", "--namespace=steadyscale"))
    command = ["metric", "--token-file", str(token), *connection(running, tmp_path)]

    assert main([*command, "default/queue-depth"]) == 0
    assert "rule          queue-depth, from configuration" in capsys.readouterr().out


def test_metric_command_needs_the_debug_role(
    running: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plane = running.plane
    plane.kubectl("create", "serviceaccount", "operator", "--namespace=default")
    token = tmp_path / "token"
    token.write_text(plane.kubectl("create", "token", "operator", "--namespace=default", "--duration=1h"))
    command = ["metric", "--token-file", str(token), *connection(running, tmp_path)]
    assert main([*command, "default/queue-depth"]) == 2
    assert 'cannot get path "/debug/metrics/default/queue-depth"' in capsys.readouterr().err

    role = ["--clusterrole=steadyscale:debug", "--serviceaccount=default:operator"]
    plane.kubectl("create", "clusterrolebinding", "operators", *role)
    until(lambda: main([*command, "default/queue-depth"]) == 0, "the role takes effect")
    assert "HPA response  30 (2 items)" in capsys.readouterr().out
