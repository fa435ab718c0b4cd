"""The whole way: a scrape, a real Prometheus, our process, the API server, an HPA, more workers; and an outage."""

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
def measured(scraped: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    require()
    waiting(scraped, 10)
    with prometheus(tmp_path_factory.mktemp("prometheus"), target=scraped.address) as running:
        yield running


@pytest.fixture(scope="module")
def running(
    plane: ControlPlane, port: int, measured: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    old = tmp_path_factory.mktemp("prometheus-adapter") / "config.yaml"
    old.write_text(json.dumps({"externalRules": [OLD_RULE]}))
    metrics = {
        "backends": {"main": {"prometheus": {"url": measured.url}}},
        "rules": [RULE],
        "prometheusAdapter": [{"file": str(old), "backend": "main", "interval": "1s"}],
    }
    with service(plane, port, metrics=metrics) as started:
        yield started


def waiting(scraped: Target, jobs: int) -> None:
    """Let so many jobs wait in our namespace, and very many in another, which is none of our business."""
    scraped.text = (
        f'jobs{{namespace="default",queue="a"}} {jobs}\njobs{{namespace="default",queue="b"}} 0\n'
        'jobs{namespace="other",queue="a"} 100000\n'
    )


def told(running: Service, name: str) -> dict[str, Any]:
    conditions = running.plane.get("hpa", name).get("status", {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == "ScalingActive"), {})


def failed_looks(running: Service, name: str) -> int:
    events = running.plane.get("events", f"--field-selector=involvedObject.name={name},reason=FailedGetExternalMetric")
    return sum(one.get("count") or 1 for one in events["items"])


def replicas(running: Service, name: str) -> int:
    return int(running.plane.get("deployment", name)["spec"]["replicas"])


def test_the_queue_grows_and_so_does_the_workload_and_an_outage_leaves_it_as_it_is(
    running: Service, scraped: Target, measured: Server
) -> None:
    create(running, deployment("jobs"), autoscaler("jobs", "jobs-waiting"))
    until(lambda: condition(running.plane.get("hpa", "jobs"), "ScalingActive") == "True", "it reads", within=60)
    waiting(scraped, 60)
    until(lambda: replicas(running, "jobs") == 6, "ten jobs for each of six workers", within=60)

    measured.program.kill()
    until(lambda: told(running, "jobs").get("status") == "False", "the HPA has noticed", within=60)
    assert told(running, "jobs")["reason"] == "FailedGetExternalMetric"
    message = told(running, "jobs")["message"]
    assert "metric 'jobs-waiting': main: unreachable: connection refused" in message
    noticed = failed_looks(running, "jobs")
    until(lambda: failed_looks(running, "jobs") >= noticed + 3, "it has looked three more times", within=60)
    assert (replicas(running, "jobs"), told(running, "jobs")["message"]) == (6, message)  # it holds, and says the same

    waiting(scraped, 80)
    measured.program.start()
    until(lambda: replicas(running, "jobs") == 8, "it scales again", within=60)
    assert told(running, "jobs")["status"] == "True"


def test_a_metric_of_prometheus_adapters_file_is_read_as_it_was(running: Service, scraped: Target) -> None:
    waiting(scraped, 30)

    def values() -> list[str]:
        path = f"{GROUP}/namespaces/default/old-jobs?labelSelector=queue%20in%20(a,b)"
        answer = running.plane.kubectl("get", f"--raw={path}", check=False)
        return [str(item["value"]) for item in json.loads(answer or "{}").get("items", ())]

    until(lambda: values() == ["30"], "the sum of the namespace's two queues", within=30)
