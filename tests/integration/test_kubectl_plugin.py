"""``kubectl steadyscale`` through a real API server that reaches only a follower, as several users."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin

import pytest

from tests.control_plane.cluster import LOOPBACK, ControlPlane, free_port
from tests.control_plane.process import Program
from tests.integration.service import apply_manifests, condition, process, until

pytestmark = pytest.mark.apiserver

DEBUG_API = "v1alpha1.debug.steadyscale.dev"
LEASE = ("lease", "steadyscale", "--namespace=steadyscale")
METRIC = {"external": {"metric": {"name": "queue-depth"}, "target": {"type": "AverageValue", "averageValue": "10"}}}


class Replicas(NamedTuple):
    plane: ControlPlane
    leader: Program
    follower: Program


class Result(NamedTuple):
    code: int
    output: str
    errors: str


def deployment(namespace: str) -> dict[str, Any]:
    labels = {"app": "orders"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "example.com/orders"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    metadata = {"name": "orders", "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def autoscaler(namespace: str) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "orders"}
    return {
        "apiVersion": "steadyscale.dev/v1beta1",
        "kind": "PodAutoscaler",
        "metadata": {"name": "orders", "namespace": namespace},
        "spec": {"scaleTargetRef": target, "maxReplicas": 9, "metrics": [{"type": "External", **METRIC}]},
    }


def replica(plane: ControlPlane, port: int) -> Program:
    created = process(plane, port, flags=())
    return Program(["env", f"POD_IP={LOOPBACK}", *created._command], created.log, created.is_ready)


@pytest.fixture(scope="module")
def replicas(plane: ControlPlane, port: int) -> Iterator[Replicas]:
    """Run a leader, and a follower to which the API server forwards all requests."""
    leader_port = free_port()
    leader, follower = replica(plane, leader_port), replica(plane, port)
    for namespace in ("plugin-shop", "plugin-bank"):
        plane.kubectl("create", "namespace", namespace)
        plane.kubectl("apply", "--filename=-", stdin=json.dumps(deployment(namespace)))
        plane.kubectl("apply", "--filename=-", stdin=json.dumps(autoscaler(namespace)))
    for user, role in (("viewer", "view"), ("editor", "edit")):
        subject = (f"--clusterrole={role}", f"--user={user}")
        plane.kubectl("create", "rolebinding", user, "--namespace=plugin-shop", *subject)
    try:
        leader.start()
        until(
            lambda: f"{LOOPBACK}:{leader_port}" in plane.kubectl("get", *LEASE, "-o", "yaml", check=False), "it leads"
        )
        follower.start()
        until(lambda: condition(plane.get("apiservice", DEBUG_API), "Available") == "True", "available")
        until(lambda: kubectl(plane, "explain", "plugin-shop/orders").code == 0, "there is a decision")
        until(lambda: kubectl(plane, "explain", "plugin-shop/orders", user="viewer").code == 0, "roles")
        yield Replicas(plane, leader, follower)
    finally:
        leader.stop()
        follower.stop()
        plane.kubectl("delete", "namespace", "plugin-shop", "plugin-bank", "--wait=false")


def environment(plane: ControlPlane, user: str) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "KUBECONFIG": str(plane.kubeconfig(user))}


def kubectl(plane: ControlPlane, *arguments: str, user: str = "admin") -> Result:
    command = [str(plane.kubectl_path), "steadyscale", *arguments]
    done = subprocess.run(  # noqa: S603 - arguments of the tests
        command, env=environment(plane, user), capture_output=True, text=True, timeout=60, check=False
    )
    return Result(done.returncode, done.stdout, done.stderr)


def test_follower_explains_the_last_decision_of_the_leader(replicas: Replicas) -> None:
    code, output, errors = kubectl(replicas.plane, "explain", "plugin-shop/orders")
    assert (code, errors) == (0, "")
    assert output.startswith("plugin-shop/orders  target: Deployment/orders")
    assert re.search(r"3 replicas at .* UTC", output)
    assert "history" not in output


def test_user_of_a_namespace_sees_only_its_decisions(replicas: Replicas) -> None:
    assert kubectl(replicas.plane, "explain", "orders", "-n", "plugin-shop", user="viewer").code == 0
    code, output, errors = kubectl(replicas.plane, "explain", "plugin-bank/orders", user="viewer")
    assert (code, output) == (2, "")
    message, step = errors.splitlines()
    assert message.startswith('403: decisions.debug.steadyscale.dev "orders" is forbidden: User "viewer" cannot get')
    assert step.startswith("ask an administrator for the role `view` in the namespace")
    assert kubectl(replicas.plane, "history", "plugin-bank/orders", user="viewer").code == 2
    assert kubectl(replicas.plane, "debug", "--port=0", user="viewer").errors.startswith("403: views.debug")


def test_metrics_are_listed_with_value_age_and_health(replicas: Replicas) -> None:
    everything = kubectl(replicas.plane, "metrics").output.splitlines()
    assert everything[0].split() == ["NAMESPACE", "METRIC", "SELECTOR", "VALUE", "AGE", "HEALTH", "MESSAGE"]
    own = [row for row in everything[1:] if row.startswith("plugin-")]  # other tests use this cluster, too
    rows = [re.sub(r"\d+s$", "AGE", " ".join(row.split()[:5])) + " " + row.split()[5] for row in own]
    assert rows == ["plugin-bank queue-depth - 30 AGE ok", "plugin-shop queue-depth - 30 AGE ok"]


def test_editor_of_a_namespace_lists_and_reads_its_metrics(replicas: Replicas) -> None:
    plane = replicas.plane
    listed = json.loads(kubectl(plane, "metrics", "-n", "plugin-shop", "-o", "json", user="editor").output)
    assert [row["namespace"] for row in listed["metrics"]] == ["plugin-shop"]
    assert "value         30" in kubectl(plane, "metric", "plugin-shop/queue-depth", user="editor").output
    for forbidden in (("metrics",), ("metrics", "-n", "plugin-bank"), ("metric", "plugin-bank/queue-depth")):
        assert kubectl(plane, *forbidden, user="editor").errors.startswith("403: metrics.debug.steadyscale.dev")
    assert kubectl(plane, "metrics", "-n", "plugin-shop", user="viewer").code == 2


def test_history_is_read_through_a_follower(replicas: Replicas) -> None:
    history = ("history", "plugin-shop/orders")
    until(lambda: "→ 3" in kubectl(replicas.plane, *history).output, "a record is stored")
    now = ("explain", "plugin-shop/orders", "--at=now")  # failed once on a busy machine; the cause is unknown
    until(lambda: kubectl(replicas.plane, *now, user="viewer").code == 0, "the present moment is explained")


def test_page_of_the_leader_is_served_through_a_follower(replicas: Replicas) -> None:
    command = [str(replicas.plane.kubectl_path), "steadyscale", "debug", "--port=0"]
    env = environment(replicas.plane, "admin")
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as running:  # noqa: S603
        try:
            assert running.stdout is not None
            address = running.stdout.readline().removeprefix("Debugging page: ").strip()
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
            with browser.open(address, timeout=20) as page:
                html, at = page.read().decode(), page.url
            root = address.partition("/open/")[0]
            links = {urljoin(at, link) for link in re.findall(r'(?:href|src)="([^"#]+)', html)}
            assert f"{root}/debug/page/page.js" in links  # the API server makes absolute paths links to the service
            for link in links:
                with browser.open(link, timeout=20) as file:
                    assert file.status == 200
            with browser.open(f"{root}/debug/overview", timeout=20) as overview:
                assert json.load(overview)["total"] == len(replicas.plane.get("spa", "--all-namespaces")["items"])
        finally:
            running.send_signal(signal.SIGINT)
    assert running.returncode == 0


def test_kubectl_finds_all_resources_without_errors(replicas: Replicas) -> None:
    found = replicas.plane.kubectl("api-resources", "--api-group=debug.steadyscale.dev", "-o", "name", check=False)
    assert sorted(name.partition(".")[0] for name in found.split()) == ["decisions", "histories", "metrics", "views"]


def test_answers_without_a_leader_and_without_the_service_have_a_reason_and_a_next_step(
    replicas: Replicas, port: int
) -> None:
    plane = replicas.plane
    os.kill(replicas.leader.pid, signal.SIGSTOP)
    try:
        recorded = kubectl(plane, "explain", "plugin-shop/orders")
    finally:
        os.kill(replicas.leader.pid, signal.SIGCONT)
    assert recorded.code == 0
    assert re.search(r"from the decision history, as of \d+ s ago: .*; no response from the leader: ", recorded.output)

    replicas.follower.stop()
    down = kubectl(plane, "explain", "plugin-shop/orders")
    assert (down.code, down.errors.splitlines()[0][:4]) == (2, "503:")
    assert "Steadyscale does not respond: look at `kubectl get apiservice" in down.errors

    plane.kubectl("delete", "apiservice", DEBUG_API)
    try:
        until(lambda: kubectl(plane, "metrics").errors.startswith("404:"), "the group is not served")
        missing = kubectl(plane, "explain", "plugin-shop/orders")
        assert f"the APIService {DEBUG_API} is missing: apply the manifests" in missing.errors
    finally:
        apply_manifests(plane, port)
