"""Requests are rejected while TokenReviews and SubjectAccessReviews fail, and allowed again without a restart."""

from collections.abc import Iterator

import pytest

from tests.control_plane.certificates import Credentials
from tests.integration.service import METRIC, Service, until

pytestmark = pytest.mark.apiserver

BINDING = "clusterrolebinding/steadyscale:reviews"


@pytest.fixture
def reader(running: Service) -> Iterator[Credentials]:
    """Credentials of a user who may read metrics, and whose reads are not cached for longer than a second."""
    plane = running.plane
    bind = (
        "create",
        "clusterrolebinding",
        "reviewed",
        "--clusterrole=steadyscale:external-metrics-reader",
        "--user=reviewed",
    )
    plane.kubectl(*bind)
    credentials = plane.authority.client("reviewed")
    until(lambda: running.request(credentials=credentials)[0] == 200, "the role takes effect")
    yield credentials
    plane.kubectl("delete", "clusterrolebinding", "reviewed")


def test_reads_fail_without_the_permission_to_create_reviews(running: Service, reader: Credentials) -> None:
    plane = running.plane
    binding = plane.kubectl("get", BINDING, "-o", "json")
    plane.kubectl("delete", BINDING)
    until(lambda: running.request(credentials=reader)[0] == 500, "reads fail")
    assert running.request(headers={"Authorization": "Bearer some-token"})[0] == 401
    plane.kubectl("create", "--filename=-", stdin=binding)
    until(lambda: running.request(credentials=reader)[0] == 200, "reads succeed again")


def test_reads_fail_while_the_api_server_is_down(running: Service, reader: Credentials) -> None:
    plane = running.plane
    tls = running.tls(reader)  # before the API server is down: it reads the caBundle
    plane.apiserver.kill()
    try:
        until(lambda: running.request(tls=tls)[0] == 500, "reads fail")
    finally:
        plane.apiserver.start()
    until(lambda: running.request(credentials=reader)[0] == 200, "reads succeed again")
    until(running.is_available, "the APIService is available again")
    assert "queue-depth" in plane.kubectl("get", "--raw", METRIC)


def test_probes_of_the_api_server_need_no_review(running: Service) -> None:
    prober = {"X-Remote-User": "system:kube-aggregator", "X-Remote-Group": "system:masters"}
    tls = running.tls(running.plane.front_proxy)
    running.plane.apiserver.kill()
    try:
        assert running.request("/apis/external.metrics.k8s.io/v1beta1", tls=tls, headers=prober)[0] == 200
    finally:
        running.plane.apiserver.start()
    until(running.is_available, "the APIService is available again")
