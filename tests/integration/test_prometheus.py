"""From a scrape through a real Prometheus, Steadyscale and the API server to an HPA, with an outage of Prometheus."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.control_plane.cluster import ControlPlane
from tests.integration.service import GROUP, Service, condition, service, until
from tests.integration.test_autoscaling import autoscaler, create, deployment
from tests.prometheus.server import Server, prometheus, require
from tests.prometheus.target import Target, target

pytestmark = [pytest.mark.apiserver, pytest.mark.prometheus]
RULE = {
    "name": "jobs-waiting",
    "backend": "main",
    "query": "sum by (namespace) (jobs)",
    "interval": "1s",
    "maxSampleAge": "1m",
}
OLD_RULE = {
    "seriesQuery": '{__name__=~"^jo.*",queue!=""}',
    "resources": {"overrides": {"namespace": {"resource": "namespace"}}},
    "name": {"matches": "(.*)", "as": "old-${1}"},
    "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>})",
}


@pytest.fixture(scope="module")
def scraped() -> Iterator[Target]:
    with target() as live:
        yield live


@pytest.fixture(scope="module")
def prometheus_server(scraped: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    require()
    set_waiting(scraped, 10)
    with prometheus(tmp_path_factory.mktemp("prometheus"), target=scraped.address) as running:
        yield running


@pytest.fixture(scope="module")
def running(
    plane: ControlPlane, port: int, prometheus_server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    old = tmp_path_factory.mktemp("prometheus-adapter") / "config.yaml"
    old.write_text(json.dumps({"externalRules": [OLD_RULE]}))
    metrics = {
        "backends": {"main": {"prometheus": {"url": prometheus_server.url}}},
        "rules": [RULE],
        "prometheusAdapter": [{"file": str(old), "backend": "main", "interval": "1s"}],
    }
    with service(plane, port, metrics=metrics) as started:
        yield started


def set_waiting(scraped: Target, jobs: int) -> None:
    """Set the number of waiting jobs in the default namespace; another namespace has many more."""
    scraped.text = (
        f'jobs{{namespace="default",queue="a"}} {jobs}\njobs{{namespace="default",queue="b"}} 0\n'
        'jobs{namespace="other",queue="a"} 100000\n'
    )


def scaling_active(running: Service, name: str) -> dict[str, Any]:
    conditions = running.plane.get("hpa", name).get("status", {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == "ScalingActive"), {})


def failed_reads(running: Service, name: str) -> int:
    events = running.plane.get("events", f"--field-selector=involvedObject.name={name},reason=FailedGetExternalMetric")
    return sum(one.get("count") or 1 for one in events["items"])


def replicas(running: Service, name: str) -> int:
    return int(running.plane.get("deployment", name)["spec"]["replicas"])


def test_hpa_follows_the_queue_and_keeps_the_replicas_during_an_outage(
    running: Service, scraped: Target, prometheus_server: Server
) -> None:
    create(running, deployment("jobs"), autoscaler("jobs", "jobs-waiting"))
    until(
        lambda: condition(running.plane.get("hpa", "jobs"), "ScalingActive") == "True",
        "ScalingActive is True",
    )
    set_waiting(scraped, 60)
    until(lambda: replicas(running, "jobs") == 6, "6 replicas for 60 jobs")

    prometheus_server.program.kill()
    until(lambda: scaling_active(running, "jobs").get("status") == "False", "ScalingActive is False")
    assert scaling_active(running, "jobs")["reason"] == "FailedGetExternalMetric"
    message = scaling_active(running, "jobs")["message"]
    assert "metric 'jobs-waiting': main: unreachable: connection refused" in message
    before = failed_reads(running, "jobs")
    until(lambda: failed_reads(running, "jobs") >= before + 3, "three more failed reads")
    assert (replicas(running, "jobs"), scaling_active(running, "jobs")["message"]) == (
        6,
        message,
    )  # the message is stable

    set_waiting(scraped, 80)
    prometheus_server.program.start()
    until(lambda: replicas(running, "jobs") == 8, "8 replicas")
    assert scaling_active(running, "jobs")["status"] == "True"


def test_rule_of_a_prometheus_adapter_file_is_served(running: Service, scraped: Target) -> None:
    set_waiting(scraped, 30)

    def values() -> list[str]:
        path = f"{GROUP}/namespaces/default/old-jobs?labelSelector=queue%20in%20(a,b)"
        response = running.plane.kubectl("get", f"--raw={path}", check=False)
        return [str(item["value"]) for item in json.loads(response or "{}").get("items", ())]

    until(lambda: values() == ["30"], "the sum of both queues of the namespace")
