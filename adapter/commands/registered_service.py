"""The CA and the name of the service, read from its APIService.

On loopback, as with ``kubectl port-forward``, any local user can listen on the port of a service that is not forwarded.
The API server is verified by the kubeconfig, and it knows by which CA it verifies the service itself.
"""

from pathlib import Path
from typing import Final

from adapter.tls.registration import EXTERNAL_METRICS, RegisteredService, api_service_path
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from autoscaler.kube.errors import KubeError

API_SERVICE: Final = api_service_path(EXTERNAL_METRICS)


class RequestFailed(Exception):
    """The service could not be reached or verified, or rejected the request."""


async def registered_service(kubeconfig: Path | None) -> RegisteredService:
    """Read the APIService; raise ``RequestFailed`` if that is not possible or if it has no CA bundle."""
    try:
        async with KubeClient.open(await connect(kubeconfig)) as kube:
            return RegisteredService.parse(await kube.get(API_SERVICE))
    except (KubeError, ValueError) as error:
        kubectl = "--kubeconfig, because --server does not use that of kubectl, or " if kubeconfig is None else ""
        raise RequestFailed(f"cannot verify the service: {error}; pass {kubectl}the CA with --ca-file") from error
