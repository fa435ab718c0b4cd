"""A serving certificate signed by the service's own CA, published in the APIService; needs no cert-manager.

Every replica does the same at an interval: read the Secret, publish its CAs in the APIService, serve with its
certificate, and take the next step of the rotation if one is due. A step is taken only after the previous one was
published, so that no replica serves a certificate that the API server does not trust yet.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from adapter.tls.api_service import ApiService
from adapter.tls.authority import CertificateLifetimes, ManagedCertificates, create_certificates, rotate
from adapter.tls.context import ServingContext
from adapter.tls.secret import CertificateSecret
from autoscaler.kube.errors import KubeError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SelfManagedCertificate:
    """The certificate rotation of one replica."""

    secret: CertificateSecret
    api_service: ApiService
    dns_names: tuple[str, ...]
    """The certificate's DNS names; the first is the one that the API server verifies: <service>.<namespace>.svc"""

    clock: Callable[[], datetime]
    lifetimes: CertificateLifetimes = field(default_factory=CertificateLifetimes)
    interval: timedelta = timedelta(seconds=30)
    """How often the Secret is read; much shorter than ``lifetimes.ca_overlap``."""

    async def load(self, context: ServingContext) -> None:
        """Serve with the stored certificate, or create one; raise ``KubeError`` if the API server rejects that."""
        while True:
            stored = await self.secret.read()
            certificates = stored.certificates or await self._create()
            if stored.certificates is not None or await self.secret.write(certificates, stored):
                break
        await self._serve(certificates, context)

    async def run(self, context: ServingContext) -> None:
        """Check and rotate the certificates at the interval until cancelled."""
        while True:
            await asyncio.sleep(self.interval.total_seconds() * random.uniform(0.8, 1.2))  # noqa: S311 - jitter
            try:
                await self.step(context)
            except KubeError as error:
                log.warning("checking the serving certificate failed", extra={"error": str(error)})

    async def step(self, context: ServingContext) -> None:
        """Serve the stored certificate; then take the due step of the rotation if all CAs are published."""
        stored = await self.secret.read()
        if stored.certificates is None:
            await self.load(context)
            return
        is_published = await self._serve(stored.certificates, context)
        rotated = await asyncio.to_thread(rotate, stored.certificates, self.dns_names, self.lifetimes, self.clock())
        if rotated == stored.certificates or not (is_published or _has_same_cas(rotated, stored.certificates)):
            return
        if await self.secret.write(rotated, stored):
            log.info("rotated the serving certificate or its CA")
            await self._serve(rotated, context)

    async def _create(self) -> ManagedCertificates:
        return await asyncio.to_thread(create_certificates, self.dns_names, self.lifetimes, self.clock())

    async def _serve(self, certificates: ManagedCertificates, context: ServingContext) -> bool:
        is_published = await self.api_service.publish(certificates.bundle)
        context.use_key_pair(certificates.serving)
        return is_published


def _has_same_cas(rotated: ManagedCertificates, stored: ManagedCertificates) -> bool:
    """Return whether only the serving certificate is new, signed by a CA that is already trusted."""
    return rotated.ca == stored.ca and rotated.next_ca == stored.next_ca
