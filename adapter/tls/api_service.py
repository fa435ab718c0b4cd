"""The caBundle of the APIService, updated with the CAs of the serving certificate."""

import logging
from base64 import b64encode
from dataclasses import dataclass

from autoscaler.kube.client import KubeClient
from autoscaler.kube.errors import Conflict, NotFound

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ApiService:
    """The APIService that registers this server with the API server."""

    client: KubeClient
    namespace: str
    service: str
    """This server's own Service."""

    name: str = "v1beta1.external.metrics.k8s.io"

    async def publish(self, bundle: str) -> bool:
        """Write ``bundle`` into the APIService if it refers to this Service; return whether it is published.

        A cluster has one server of external metrics; an APIService of another Service is not changed.
        """
        path = f"/apis/apiregistration.k8s.io/v1/apiservices/{self.name}"
        try:
            api_service = await self.client.get(path)
            spec, ca_bundle = api_service["spec"], b64encode(bundle.encode()).decode()
            if not self._refers_to_this_service(spec):
                log.warning(
                    "APIService refers to another Service; caBundle not updated", extra={"service": spec.get("service")}
                )
                return False
            if spec.get("caBundle") != ca_bundle:
                version = api_service["metadata"]["resourceVersion"]
                patch = {"metadata": {"resourceVersion": version}, "spec": {"caBundle": ca_bundle}}
                await self.client.patch(path, patch)
                log.info("updated the caBundle of the APIService", extra={"apiservice": self.name})
        except NotFound:
            log.warning("APIService not found; caBundle not updated", extra={"apiservice": self.name})
            return False
        except Conflict:
            return False  # another replica updated it
        return True

    def _refers_to_this_service(self, spec: dict[str, object]) -> bool:
        service = spec.get("service")
        return isinstance(service, dict) and (service.get("namespace"), service.get("name")) == (
            self.namespace,
            self.service,
        )
