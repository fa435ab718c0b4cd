"""The CA and the name by which the API server verifies the service."""

from base64 import b64encode

import pytest

from adapter.tls.registration import RegisteredService
from tests.control_plane.certificates import Authority


def api_service(ca: str) -> dict[str, object]:
    bundle = b64encode(ca.encode()).decode()
    return {"spec": {"service": {"name": "steadyscale", "namespace": "system"}, "caBundle": bundle}}


def test_ca_and_name_are_those_of_the_api_service():
    ca = Authority.new("serving").pem
    assert RegisteredService.parse(api_service(ca)) == RegisteredService(ca, "steadyscale.system.svc")


@pytest.mark.parametrize("ca", ["", " ", "no certificate"])
def test_bundle_without_a_certificate_is_not_replaced_by_the_cas_of_the_system(ca: str):
    with pytest.raises(ValueError, match="no valid caBundle"):
        RegisteredService.parse(api_service(ca))
