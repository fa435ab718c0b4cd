"""The decision history of real processes, with the permissions of the manifests: a killed leader and a restart."""

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.client import HTTPSConnection
from typing import Any

import pytest

from tests.control_plane.cluster import ControlPlane, free_port
from tests.control_plane.process import Program
from tests.integration.service import process, until
from tests.integration.test_autoscaling import autoscaler, deployment

pytestmark = pytest.mark.apiserver

QUICK = (
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--leader-elect-lease-duration=5s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=1s",
)


@pytest.fixture
def token(plane: ControlPlane) -> str:
    """Return one token for all requests; each new one would need a review, of which a process makes few per second."""
    return plane.kubectl("create", "token", "steadyscale", "--namespace=steadyscale").strip()


def fetch_history(token: str, port: int, query: str) -> dict[str, Any]:
    """Fetch the history from one process, with the service account that the debugging role is bound to."""
    unverified = ssl._create_unverified_context()  # noqa: S323 - a process of this test on loopback
    connection = HTTPSConnection("localhost", port, timeout=15, context=unverified)
    try:
        connection.request(
            "GET", f"/debug/history/default/recorded?{query}", headers={"Authorization": f"Bearer {token}"}
        )
        response = connection.getresponse()
        body: dict[str, Any] = json.loads(response.read())
    finally:
        connection.close()
    assert response.status == 200, body
    return body


@contextmanager
def started(program: Program) -> Iterator[Program]:
    program.start()
    try:
        yield program
    finally:
        program.stop()


def create_autoscaler(plane: ControlPlane) -> None:
    hpa = autoscaler("recorded", "queue-depth")
    scaler = {**hpa, "apiVersion": "steadyscale.dev/v1beta1", "kind": "PodAutoscaler"}
    listing = {"apiVersion": "v1", "kind": "List", "items": [deployment("recorded"), scaler]}
    plane.kubectl("apply", "--filename=-", stdin=json.dumps(listing))


@pytest.mark.usefixtures("port")
def test_history_survives_a_killed_leader_and_a_restart(plane: ControlPlane, token: str) -> None:
    create_autoscaler(plane)
    ports = [free_port() for _ in range(3)]
    first, second, third = (process(plane, port, flags=QUICK) for port in ports)

    def knows_three_replicas(port: int) -> bool:
        response = fetch_history(token, port, "at=now")
        return response["decision"] is not None and response["decision"]["replicas"] == 3

    with started(first):
        until(lambda: knows_three_replicas(ports[0]), "the leader has decided")
        with started(second):
            until(lambda: knows_three_replicas(ports[1]), "another replica reads it")
            moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251 - a moment of the real history
            first.kill()
            gaps = lambda: fetch_history(token, ports[1], "since=10m")["gaps"]  # noqa: E731
            # On a busy machine leaders can change more often, and each change without a last write is a gap.
            until(lambda: any("ended without a last write" in gap["reason"] for gap in gaps()), "the gap of the leader")
    with started(third):
        response = fetch_history(token, ports[2], f"at={moment}")
        assert response["status"] in {"decided", "gap"}  # the last seconds before the kill are not stored
        assert response["decision"]["replicas"] == 3
        assert response["decision"]["explanation"]["steps"]
        period = fetch_history(token, ports[2], "since=10m&steps=true")
        assert [record["replicas"] for record in period["records"]][:2] == [3, 3]
        assert "decision history cannot be stored" not in third.log.read_text()
