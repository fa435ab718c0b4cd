"""``kubectl get`` of a PodAutoscaler beside that of an HPA, and ``steadyscale check --from-cluster``."""

import json
import re
from collections.abc import Iterator

import pytest

from adapter.__main__ import main
from tests.control_plane.cluster import ControlPlane
from tests.integration.service import process, until
from tests.integration.test_autoscaling import autoscaler, deployment

pytestmark = pytest.mark.apiserver

POD_AUTOSCALER = {"apiVersion": "steadyscale.dev/v1beta1", "kind": "PodAutoscaler"}


@pytest.fixture(scope="module")
def scaled(plane: ControlPlane, port: int) -> Iterator[ControlPlane]:
    """Scale two equal Deployments, one by an HPA and one by a PodAutoscaler, until both have three replicas."""
    by_hpa = autoscaler("by-hpa", "queue-depth")
    by_spa = {**autoscaler("by-spa", "queue-depth"), **POD_AUTOSCALER}
    objects = [deployment("by-hpa"), deployment("by-spa"), by_hpa, by_spa]
    service = process(plane, port, flags=())
    service.start()
    try:
        plane.kubectl("apply", "--filename=-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        until(lambda: all(is_scaled(plane, kind) for kind in ("hpa", "spa")), "three replicas each")
        yield plane
    finally:
        service.stop()


def is_scaled(plane: ControlPlane, kind: str) -> bool:
    """Return whether there are three replicas and the value per replica is one of three replicas."""
    status = plane.get(kind, f"by-{kind}").get("status", {})
    metrics = status.get("currentMetrics") or [{}]
    average = (metrics[0].get("external") or {}).get("current", {}).get("averageValue")
    return (status.get("currentReplicas"), average) == (3, "10")


def columns(plane: ControlPlane, kind: str, *flags: str) -> dict[str, str]:
    """Return the cells of the object by the names of the columns."""
    header, row = plane.kubectl("get", kind, f"by-{kind}", *flags).splitlines()
    return dict(zip(re.split(r"\s{2,}", header), re.split(r"\s{2,}", row), strict=True))


def test_columns_begin_with_those_of_an_hpa(scaled: ControlPlane) -> None:
    hpa, spa = columns(scaled, "hpa"), columns(scaled, "spa")
    assert [name for name in spa if name != "STATE"] == [*hpa]
    same = ("TARGETS", "MINPODS", "MAXPODS", "REPLICAS")
    assert [spa[name] for name in same] == [hpa[name] for name in same]
    assert (hpa["REFERENCE"], spa["REFERENCE"], spa["STATE"]) == ("Deployment/by-hpa", "Deployment/by-spa", "normal")


def test_wide_output_has_the_mode_and_the_conditions(scaled: ControlPlane) -> None:
    wide = columns(scaled, "spa", "--output=wide")
    assert (wide["DESIRED"], wide["MODE"], wide["ABLE"], wide["ACTIVE"]) == ("3", "Active", "True", "True")


def test_workload_without_replicas_has_a_zero_in_the_column(scaled: ControlPlane) -> None:
    scaled.kubectl("scale", "deployment/by-spa", "--replicas=0")
    try:
        until(lambda: columns(scaled, "spa")["STATE"] == "scaling disabled", "the zero is observed")
        assert columns(scaled, "spa")["REPLICAS"] == "0"
    finally:
        scaled.kubectl("scale", "deployment/by-spa", "--replicas=3")


def test_check_accepts_the_objects_of_the_cluster(scaled: ControlPlane, capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig = scaled.kubeconfig("admin")
    assert main(["check", "--from-cluster", f"--kubeconfig={kubeconfig}", "--namespace=default"]) == 0
    assert capsys.readouterr().out.endswith("checked, 0 problems\n")
