"""The CA and the name of the service, read from its APIService.

On loopback, as with ``kubectl port-forward``, any local user can listen on the port of a service that is not forwarded.
The API server is verified by the kubeconfig, and it knows by which CA it verifies the service itself.
"""

import binascii
import ssl
from base64 import b64decode
from pathlib import Path
from typing import Final, NamedTuple

from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from autoscaler.kube.errors import KubeError

API_SERVICE: Final = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io"


class RequestFailed(Exception):
    """The service could not be reached or verified, or rejected the request."""


class RegisteredService(NamedTuple):
    """How the API server verifies the service."""

    ca: str
    """The CA bundle, as PEM."""

    server_name: str
    """The name in the certificate."""


async def registered_service(kubeconfig: Path | None) -> RegisteredService:
    """Read the APIService; raise ``RequestFailed`` if that is not possible or if it has no CA bundle."""
    try:
        async with KubeClient.open(await connect(kubeconfig)) as kube:
            spec = (await kube.get(API_SERVICE))["spec"]
        service = spec["service"]
        name = f"{service['name']}.{service['namespace']}.svc"
        ca = b64decode(spec["caBundle"], validate=True).decode("ascii")
        ssl.create_default_context(cadata=ca)
    except KubeError as error:
        raise RequestFailed(
            f"cannot verify the service: {error}; pass the CA of its certificate with --ca-file"
        ) from error
    except (KeyError, TypeError, ValueError, ssl.SSLError, binascii.Error) as error:
        raise RequestFailed(
            "cannot verify the service: its APIService has no valid caBundle; pass the CA of its certificate "
            "with --ca-file"
        ) from error
    return RegisteredService(ca, name)
