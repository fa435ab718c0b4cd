"""The APIService's caBundle, kept in step with the authorities that stand behind our certificate."""

import logging
from base64 import b64encode
from dataclasses import dataclass

from autoscaler.kube.client import KubeClient
from autoscaler.kube.errors import Conflict, NotFound

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ApiService:
    """The registration of our API with the API server."""

    client: KubeClient
    namespace: str
    """Of the Service that it should name: ours."""
    service: str
    name: str = "v1beta1.external.metrics.k8s.io"

    async def publish(self, bundle: str) -> bool:
        """Make the API server trust `bundle`; False if that cannot be said to have happened.

        Someone else's registration is left alone: a cluster has one server of external metrics, and which it is was
        somebody's decision.
        """
        path = f"/apis/apiregistration.k8s.io/v1/apiservices/{self.name}"
        try:
            found = await self.client.get(path)
            spec, wanted = found["spec"], b64encode(bundle.encode()).decode()
            if not self._is_ours(spec):
                log.warning("the APIService belongs to another service", extra={"service": spec.get("service")})
                return False
            if spec.get("caBundle") != wanted:
                version = found["metadata"]["resourceVersion"]
                await self.client.patch(path, {"metadata": {"resourceVersion": version}, "spec": {"caBundle": wanted}})
                log.info("published the authorities of the serving certificate", extra={"apiservice": self.name})
        except NotFound:
            log.warning("there is no APIService yet", extra={"apiservice": self.name})
            return False
        except Conflict:
            return False  # another replica is at it
        return True

    def _is_ours(self, spec: dict[str, object]) -> bool:
        service = spec.get("service")
        return isinstance(service, dict) and (service.get("namespace"), service.get("name")) == (
            self.namespace,
            self.service,
        )
