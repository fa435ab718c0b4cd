"""``steadyscale autoscale``: prints or creates a PodAutoscaler."""

import io
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from blockbuster import BlockBuster

from adapter.__main__ import main
from adapter.commands.check import check
from tests.fakes.cluster_thread import ClusterThread
from tests.waiting import GIVE_UP

ORDERS = "autoscale deployment/orders --namespace=shop --min=2 --max=40 --external=orders-waiting --average=30"


def printed(command: str, capsys: pytest.CaptureFixture[str]) -> Any:
    assert main(shlex.split(command)) == 0
    return yaml.safe_load(capsys.readouterr().out)


def test_autoscaler_is_printed_as_yaml_that_check_accepts(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    document = printed(ORDERS, capsys)

    assert document == {
        "apiVersion": "steadyscale.dev/v1beta1",
        "kind": "PodAutoscaler",
        "metadata": {"name": "orders", "namespace": "shop"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "orders"},
            "minReplicas": 2,
            "maxReplicas": 40,
            "metrics": [
                {
                    "type": "External",
                    "external": {
                        "metric": {"name": "orders-waiting"},
                        "target": {"type": "AverageValue", "averageValue": "30"},
                    },
                }
            ],
        },
    }
    file = tmp_path / "orders.yaml"
    file.write_text(yaml.safe_dump(document))
    assert check([file], io.StringIO(), output="text") == 0


def test_options_after_a_metric_belong_to_it(capsys: pytest.CaptureFixture[str]):
    document = printed(
        "autoscale statefulset/db --max=9 --cpu=80"
        " --external=lag --value=500m --selector=topic=a,group=b --fallback-replicas=5 --fallback-after=600"
        " --fallback-strategy=UseMax --external=queue --average=2 --mode=DryRun --name=db-scaler",
        capsys,
    )

    assert document["metadata"] == {"name": "db-scaler"}
    assert document["spec"]["mode"] == "DryRun"
    assert document["spec"]["metrics"] == [
        {
            "type": "External",
            "external": {
                "metric": {"name": "lag", "selector": {"matchLabels": {"topic": "a", "group": "b"}}},
                "target": {"type": "Value", "value": "500m"},
                "fallback": {"replicas": 5, "failureDurationSeconds": 600, "strategy": "UseMax"},
            },
        },
        {
            "type": "External",
            "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "2"}},
        },
        {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
        },
    ]


def test_without_metrics_the_default_of_an_hpa_applies(capsys: pytest.CaptureFixture[str]):
    assert "metrics" not in printed("autoscale deployment/web --max=3", capsys)["spec"]


def test_target_of_another_kind_needs_its_api_version(capsys: pytest.CaptureFixture[str]):
    document = printed("autoscale Rollout/web --api-version=argoproj.io/v1alpha1 --max=3", capsys)
    assert document["spec"]["scaleTargetRef"] == {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "name": "web",
    }

    assert main(shlex.split("autoscale Rollout/web --max=3")) == 1
    assert "Rollout: set --api-version, such as apps/v1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("web --max=3", "'web' does not have the form KIND/NAME, such as deployment/web"),
        ("deployment/web --max=3 --average=5", "--average: put it after the --external that it belongs to"),
        ("deployment/web --max=3 --external=q", "spec.metrics[0].external.target.averageValue: Required value"),
        ("deployment/web --max=3 --external=q --average=-1", "averageValue: Invalid value"),
        ("deployment/web --max=3 --external=q --average=x", "must be a quantity"),
        ("deployment/web --max=3 --external=q --average=1 --selector=a", "--selector: 'a' does not have the form"),
        ("deployment/web --min=5 --max=3", "spec.maxReplicas: Invalid value: 3"),
        ("deployment/web --max=3 --external=q --average=1 --fallback-after=200", "fallback.replicas: Required value"),
    ],
)
def test_problems_are_printed_and_nothing_else(arguments: str, message: str, capsys: pytest.CaptureFixture[str]):
    assert main(["autoscale", *shlex.split(arguments)]) == 1
    output = capsys.readouterr()
    assert message in output.err
    assert output.out == ""


def test_advice_is_printed_to_standard_error(capsys: pytest.CaptureFixture[str]):
    main(shlex.split(f"{ORDERS} --fallback-replicas=50"))
    assert "50 is more than maxReplicas: 40 is used" in capsys.readouterr().err


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ClusterThread]:
    thread = ClusterThread(tmp_path)
    thread.start()
    assert thread.ready.wait(GIVE_UP)
    yield thread
    thread.stop()


def test_apply_creates_the_autoscaler_once(
    served: ClusterThread, capsys: pytest.CaptureFixture[str], blocking_calls_fail: BlockBuster
):
    blocking_calls_fail.deactivate()  # kubernetes_asyncio reads the kubeconfig in the event loop
    command = shlex.split(f"{ORDERS} --apply --kubeconfig={served.kubeconfig}")

    assert main(command) == 0
    assert capsys.readouterr().out == "podautoscaler.steadyscale.dev/orders created\n"
    assert served.cluster is not None
    created = served.cluster.get("/apis/steadyscale.dev/v1beta1/namespaces/shop/podautoscalers/orders")
    assert created is not None
    assert created["spec"]["maxReplicas"] == 40

    assert main(command) == 2
    assert "already exists" in capsys.readouterr().err
