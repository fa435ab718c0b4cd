"""``steadyscale check`` reads files, directories, stdin and a cluster."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from blockbuster import BlockBuster

from adapter.__main__ import main
from tests.fakes.cluster import Cluster
from tests.fakes.cluster_thread import ClusterThread
from tests.mutations import EXTERNAL_METRICS, POD_AUTOSCALER
from tests.waiting import GIVE_UP

INVALID = {**POD_AUTOSCALER, "spec": {**POD_AUTOSCALER["spec"], "maxReplicas": "ten", "mode": "Asleep"}}
CONFIG = {"backends": {"main": {"prometheus": {"url": "http://prometheus:9090"}}}, "rules": []}
NAMESPACE = "/apis/steadyscale.dev/v1beta1/namespaces/shop"
API_SERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io"


def test_files_below_a_directory_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "web.yaml").write_text(yaml.safe_dump(INVALID))
    (tmp_path / "metric.json").write_text(json.dumps(EXTERNAL_METRICS[0]))
    (tmp_path / "config.yml").write_text(yaml.safe_dump(CONFIG))
    (tmp_path / "values.yaml").write_text("replicas: 3\n")  # of a chart
    (tmp_path / "notes.md").write_text("no: [yaml")

    assert main(["check", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "spec.maxReplicas" in line or "spec.mode" in line] == lines[1:3]
    assert lines[1].startswith(f"{tmp_path}/team/web.yaml PodAutoscaler/web: spec.maxReplicas: must be an integer")
    assert lines[-1].startswith("3 documents checked, ")


def test_stdin_is_checked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr("sys.stdin", io.StringIO(yaml.safe_dump_all([INVALID, EXTERNAL_METRICS[0]])))

    assert main(["check", "-"]) == 1
    output = capsys.readouterr().out
    assert output.startswith("stdin PodAutoscaler/web: spec.maxReplicas: must be an integer")
    assert "2 documents checked, 3 problems" in output


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("mode: Paused", "mode: Paused\n  mode: Active", "line 84, column 3: invalid YAML: duplicate key 'mode'"),
        ("maxReplicas: 10", "maxReplicas: 10.0", None),
        ("'2026-12-01T08:00:00Z'", "2026-12-01T08:00:00Z", None),
        ("apiVersion: steadyscale.dev/v1beta1", "apiVersion: autoscaling.knative.dev/v1", "note: skipped: the kind"),
    ],
    ids=["duplicate key", "whole number with a fraction", "time without quotes", "kind of another group"],
)
def test_yaml_is_read_as_kubectl_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, line: str | None
):
    text = yaml.safe_dump(POD_AUTOSCALER)
    assert before in text
    (tmp_path / "web.yaml").write_text(text.replace(before, after))

    main(["check", str(tmp_path / "web.yaml")])
    output = capsys.readouterr().out
    assert (line in output) if line else output == "1 document checked, 0 problems\n", output


@pytest.fixture
def served(tmp_path: Path, blocking_calls_fail: BlockBuster) -> Iterator[ClusterThread]:
    blocking_calls_fail.deactivate()  # kubernetes_asyncio reads the kubeconfig in the event loop
    thread = ClusterThread(tmp_path)
    thread.start()
    assert thread.ready.wait(GIVE_UP)
    yield thread
    thread.stop()


def fill(cluster: Cluster) -> None:
    autoscaler: dict[str, Any] = {**POD_AUTOSCALER, "spec": {**POD_AUTOSCALER["spec"], "minReplicas": 20}}
    cluster.create(f"{NAMESPACE}/podautoscalers", autoscaler)
    cluster.create(f"{NAMESPACE}/externalmetrics", EXTERNAL_METRICS[0])
    service = {"group": "external.metrics.k8s.io", "service": {"name": "metrics", "namespace": "ops"}}
    cluster.put(API_SERVICE, {"metadata": {"name": "v1beta1.external.metrics.k8s.io"}, "spec": service})
    data = {"config.yaml": yaml.safe_dump(CONFIG)}
    cluster.create("/api/v1/namespaces/ops/configmaps", {"metadata": {"name": "steadyscale"}, "data": data})


def test_objects_and_configuration_of_a_cluster_are_checked(served: ClusterThread, capsys: pytest.CaptureFixture[str]):
    served.call(fill)

    assert main(["check", "--from-cluster", f"--kubeconfig={served.kubeconfig}"]) == 1
    output = capsys.readouterr().out
    assert (
        "cluster shop PodAutoscaler/web: spec.maxReplicas: Invalid value: 10: must be greater than or equal" in output
    )
    assert "cluster shop ExternalMetric/queue: spec.backend: backend 'main' is not available" in output
    assert "3 documents checked" in output


def test_kubeconfig_of_kubectl_is_the_default(
    served: ClusterThread, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("KUBECONFIG", str(served.kubeconfig))

    assert main(["check", "--from-cluster", "--namespace=other"]) == 2
    assert "there is no configuration, ExternalMetric, PodAutoscaler" in capsys.readouterr().out


def test_missing_permissions_are_reported_with_what_to_do(served: ClusterThread, capsys: pytest.CaptureFixture[str]):
    served.call(fill)
    served.call(lambda cluster: cluster.faults.fail_next(403, within="podautoscalers"))
    served.call(lambda cluster: cluster.faults.fail_next(403, within="apiservices"))

    assert main(["check", "--from-cluster", f"--kubeconfig={served.kubeconfig}"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("cluster: PodAutoscalers cannot be listed: ")
    assert lines[0].endswith("; select a namespace that you may read with --namespace")
    assert lines[1].startswith(
        "cluster: note: the configuration cannot be read, so backends and rules are unknown: 403"
    )
    assert lines[-1] == "1 document checked, 1 problem"


@pytest.mark.parametrize("arguments", [[], ["--namespace=shop"]], ids=["none", "namespace"])
def test_nothing_to_read_is_an_error_that_lists_the_sources(capsys: pytest.CaptureFixture[str], arguments: list[str]):
    assert main(["check", *arguments]) == 2
    assert capsys.readouterr().err == "name files or directories to check, - for stdin, or pass --from-cluster\n"


def test_namespace_needs_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["check", "--namespace=shop", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "--namespace needs --from-cluster: all documents of files are checked\n"
