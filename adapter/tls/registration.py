"""How the API server verifies the service: the CA and the name in its APIService."""

import binascii
import ssl
from base64 import b64decode
from typing import Any, Final, NamedTuple

from autoscaler.kube.paths import api_path

EXTERNAL_METRICS: Final = "v1beta1.external.metrics.k8s.io"
DEBUG: Final = "v1alpha1.debug.steadyscale.dev"
API_SERVICES: Final = (EXTERNAL_METRICS, DEBUG)
"""The APIServices of the service. Both refer to the same Service."""


def api_service_path(name: str) -> str:
    return api_path("apis", "apiregistration.k8s.io", "v1", "apiservices", name)


class RegisteredService(NamedTuple):
    """How the API server verifies the service."""

    ca: str
    """The CA bundle, as PEM."""

    server_name: str
    """The name in the certificate."""

    @classmethod
    def parse(cls, api_service: dict[str, Any]) -> "RegisteredService":
        """Return the content of an APIService; raise ValueError if it has no valid CA bundle."""
        try:
            spec = api_service["spec"]
            service = spec["service"]
            name = f"{service['name']}.{service['namespace']}.svc"
            ca = b64decode(spec["caBundle"], validate=True).decode("ascii")
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=ca)  # fails if it is empty
        except (KeyError, TypeError, ValueError, ssl.SSLError, binascii.Error) as error:
            raise ValueError("its APIService has no valid caBundle") from error
        return cls(ca, name)
