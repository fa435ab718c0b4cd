"""A serving certificate signed by the service's own CA, which the APIServices' caBundle contains; no cert-manager.

Every replica does the same at an interval: read the Secret, publish its CAs in the APIServices, serve with its
certificate, and take the next step of the rotation if one is due. A step that changes a CA is taken only after the CAs
of the previous step were published, so that no replica serves a certificate that the API server does not trust yet.
"""

import asyncio
import logging
import random
from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from typing import Any

from adapter.config.model import SelfManagedTls
from adapter.tls.authority import ManagedCertificates, create_certificates, rotate
from adapter.tls.context import ServingContext
from adapter.tls.registration import API_SERVICES, EXTERNAL_METRICS, api_service_path
from adapter.tls.secret import CertificateSecret
from autoscaler.kube.client import KubeClient
from autoscaler.kube.errors import Conflict, Forbidden, KubeError, NotFound

log = logging.getLogger(__name__)


class SelfManagedCertificate:
    """The certificate rotation of one replica."""

    def __init__(self, client: KubeClient, settings: SelfManagedTls, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._secret = CertificateSecret(client, settings.namespace, settings.secret)
        self._served: ManagedCertificates | None = None

    async def load(self, context: ServingContext) -> None:
        """Serve the stored certificate; if there is none, store the served one, or a new one.

        The API server trusts the served one already; with another CA it would reject this server until it knows that
        CA. Raise ``KubeError`` if an API request fails.
        """
        while True:
            stored = await self._secret.read()
            if stored.certificates is not None:
                await self._serve(stored.certificates, context)
                return
            created = self._served
            if created is None:
                created = await asyncio.to_thread(create_certificates, self._settings, self._clock())
            if await self._secret.write(created, stored):
                await self._serve(created, context)
                return

    async def run(self, context: ServingContext) -> None:
        """Check and rotate the certificates at the interval until cancelled."""
        while True:
            await asyncio.sleep(self._settings.check_interval.total_seconds() * random.uniform(0.8, 1.2))  # noqa: S311 - jitter
            try:
                await self.step(context)
            except KubeError as error:
                log.warning("checking the serving certificate failed", extra={"error": str(error)})

    async def step(self, context: ServingContext) -> None:
        """Serve the stored certificate and take the due rotation step; CAs change only if all are published."""
        stored = await self._secret.read()
        if stored.certificates is None:
            await self.load(context)
            return
        is_published = await self._serve(stored.certificates, context)
        rotated = await asyncio.to_thread(rotate, stored.certificates, self._settings, self._clock())
        if rotated == stored.certificates or not (is_published or _has_same_cas(rotated, stored.certificates)):
            return
        if await self._secret.write(rotated, stored):
            log.info("rotated the serving certificate or its CA")
            await self._serve(rotated, context)

    async def _serve(self, certificates: ManagedCertificates, context: ServingContext) -> bool:
        is_published = await self._publish(certificates.bundle)
        context.use_key_pair(certificates.serving)
        self._served = certificates
        return is_published

    async def _publish(self, bundle: str) -> bool:
        """Write ``bundle`` into the APIServices that refer to this Service; return whether all of them have it."""
        published = [await self._publish_in(name, b64encode(bundle.encode()).decode()) for name in API_SERVICES]
        return any(published) and None not in published

    async def _publish_in(self, name: str, ca_bundle: str) -> bool | None:
        """Write the CA bundle into an APIService; return False if it is not that of this server, None after a conflict.

        A cluster has one server of external metrics; an APIService of another Service is not changed.
        """
        path = api_service_path(name)
        try:
            api_service = await self._client.get(path)
            spec = api_service["spec"]
            if not self._is_registered(spec):
                log.warning(
                    "APIService refers to another Service; caBundle not updated",
                    extra={"apiservice": name, "service": spec.get("service")},
                )
                return False
            if spec.get("caBundle") != ca_bundle:
                version = api_service["metadata"]["resourceVersion"]
                patch = {"metadata": {"resourceVersion": version}, "spec": {"caBundle": ca_bundle}}
                await self._client.patch(path, patch)
                log.info("updated the caBundle of the APIService", extra={"apiservice": name})
        except NotFound:
            log.warning("APIService not found; caBundle not updated", extra={"apiservice": name})
            return False
        except Forbidden:
            if name == EXTERNAL_METRICS:
                raise
            log.warning("APIService not permitted; apply the roles of this version", extra={"apiservice": name})
            return False
        except Conflict:
            return None  # another replica updated it at the same time; the next check compares again
        return True

    def _is_registered(self, spec: dict[str, Any]) -> bool:
        """Return whether the APIService refers to the Service of this server."""
        service = spec.get("service") or {}
        return (service.get("namespace"), service.get("name")) == (self._settings.namespace, self._settings.service)


def _has_same_cas(rotated: ManagedCertificates, stored: ManagedCertificates) -> bool:
    """Return whether only the serving certificate is new, signed by a CA that is already trusted."""
    return rotated.ca == stored.ca and rotated.next_ca == stored.next_ca
