"""Without reviews the door is closed; with them it opens again, without a restart."""

from collections.abc import Iterator

import pytest

from tests.control_plane.certificates import Credentials
from tests.integration.service import METRIC, Service, until

pytestmark = pytest.mark.apiserver

BINDING = "clusterrolebinding/steadyscale:reviews"


@pytest.fixture
def reader(running: Service) -> Iterator[Credentials]:
    """Somebody who may read metrics, and just did."""
    plane = running.plane
    bind = ("create", "clusterrolebinding", "by-day", "--clusterrole=steadyscale:metric-reader", "--user=by-day")
    plane.kubectl(*bind)
    shown = plane.authority.client("by-day")
    until(lambda: running.ask(show=shown)[0] == 200, "the reader may read")
    yield shown
    plane.kubectl("delete", "clusterrolebinding", "by-day")


def test_when_we_may_not_ask_for_reviews_nobody_may_read_until_we_may_again(
    running: Service, reader: Credentials
) -> None:
    plane = running.plane
    binding = plane.kubectl("get", BINDING, "-o", "json")
    plane.kubectl("delete", BINDING)
    until(lambda: running.ask(show=reader)[0] == 500, "the door is closed")
    assert running.ask(headers={"Authorization": "Bearer some-token"})[0] == 401
    plane.kubectl("create", "--filename=-", stdin=binding)
    until(lambda: running.ask(show=reader)[0] == 200, "the door is open again")


def test_when_the_api_server_is_killed_nobody_may_read_until_it_is_back(running: Service, reader: Credentials) -> None:
    plane = running.plane
    trusting = running.tls(reader)  # found out now: there will be nobody to ask
    plane.apiserver.kill()
    try:
        until(lambda: running.ask(tls=trusting)[0] == 500, "the door is closed")
    finally:
        plane.apiserver.start()
    until(lambda: running.ask(show=reader)[0] == 200, "the door is open again")
    until(running.is_available, "the APIService is available again", within=60)
    assert "queue-depth" in plane.kubectl("get", "--raw", METRIC)


def test_the_api_servers_own_probes_need_no_review(running: Service) -> None:
    prober = {"X-Remote-User": "system:kube-aggregator", "X-Remote-Group": "system:masters"}
    trusting = running.tls(running.plane.front_proxy)
    running.plane.apiserver.kill()
    try:
        assert running.ask("/apis/external.metrics.k8s.io/v1beta1", tls=trusting, headers=prober)[0] == 200
    finally:
        running.plane.apiserver.start()
    until(running.is_available, "the APIService is available again", within=60)
