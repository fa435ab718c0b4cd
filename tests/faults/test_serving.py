"""The served metrics API when the objects that it depends on disappear."""

from collections.abc import Iterator

import pytest

from tests.control_plane.cluster import ControlPlane, free_port
from tests.faults.api import Api, Refused
from tests.integration.service import APISERVICE, METRIC, Service, apply_manifests, service, until

pytestmark = pytest.mark.faults

SECRET = "/api/v1/namespaces/steadyscale/secrets/steadyscale-serving-cert"  # noqa: S105 - a path


@pytest.fixture
def running(installed: ControlPlane) -> Iterator[Service]:
    port = free_port()
    apply_manifests(installed, port)
    with service(installed, port, self_managed={"checkInterval": "1s"}) as started:
        yield started
    # An APIService without a server would keep namespaces from being deleted.
    installed.kubectl("delete", APISERVICE)


def test_deleted_serving_secret_is_created_again_and_no_read_is_lost(running: Service) -> None:
    api, reads = Api(running.plane), 0

    def secret_exists() -> bool:
        nonlocal reads
        assert api.get(METRIC)["items"]
        reads += 1
        try:
            return "tls.crt" in api.get(SECRET)["data"]
        except Refused:
            return False

    for _ in range(3):
        api.delete(SECRET)
        until(secret_exists, "the Secret exists again", within=60)
    for _ in range(20):
        assert secret_exists()
    assert reads >= 23
