"""The source of the serving certificate that the configuration names."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from adapter.config.model import SelfManagedTls, ServingTls
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.tls.api_service import ApiService
from adapter.tls.authority import CertificateLifetimes
from adapter.tls.context import KeyPairInvalid, ServingContext
from adapter.tls.files import CertificateFiles
from adapter.tls.secret import CertificateSecret
from adapter.tls.self_managed import SelfManagedCertificate
from autoscaler.kube.client import KubeClient
from autoscaler.kube.errors import KubeError

_log = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 2.0


def certificate_source(
    tls: ServingTls, kube: KubeClient, clock: Callable[[], datetime]
) -> CertificateFiles | SelfManagedCertificate:
    """Return the configured source; raise ``ConfigInvalid`` if there is none."""
    if tls.files is not None:
        return CertificateFiles(Path(tls.files.cert_file), Path(tls.files.key_file))
    if tls.self_managed is None:
        raise ConfigInvalid([Problem("serving.tls", "files or selfManaged is required")])
    settings = tls.self_managed
    return SelfManagedCertificate(
        secret=CertificateSecret(kube, settings.namespace, settings.secret),
        api_service=ApiService(kube, settings.namespace, settings.service),
        dns_names=_dns_names(settings),
        clock=clock,
        lifetimes=CertificateLifetimes(settings.ca_lifetime, settings.certificate_lifetime, settings.ca_overlap),
        interval=settings.check_interval,
    )


async def load_and_refresh(source: CertificateFiles | SelfManagedCertificate, context: ServingContext) -> None:
    """Load the certificate, with retries, and refresh it until cancelled; without one the process is not ready."""
    while not context.has_certificate:
        try:
            await source.load(context)
        except (KubeError, KeyPairInvalid) as error:
            _log.warning("loading the serving certificate failed, retrying", extra={"error": str(error)})
            await asyncio.sleep(_RETRY_SECONDS)
    await source.run(context)


def _dns_names(settings: SelfManagedTls) -> tuple[str, ...]:
    """Return the DNS names of the Service; the API server uses the first."""
    name = f"{settings.service}.{settings.namespace}"
    return (f"{name}.svc", name, settings.service, f"{name}.svc.{settings.cluster_domain}", "localhost")
