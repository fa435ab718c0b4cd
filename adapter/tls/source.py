"""The source of the serving certificate: files, or self-managed.

Files are read at an interval and compared by content: the kubelet updates a mounted Secret by replacing a symbolic
link, which a watch on the file does not see. A certificate and a key that do not match yet are read again later; the
previous pair stays in use until then.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from adapter.config.model import SelfManagedTls, ServingTls
from adapter.tls.context import KeyPair, KeyPairInvalid, ServingContext
from adapter.tls.self_managed import SelfManagedCertificate
from autoscaler.kube.client import KubeClient
from autoscaler.kube.errors import KubeError

_log = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """The paths of the serving certificate and its key."""

    certificate: Path
    key: Path
    interval: timedelta = timedelta(seconds=10)
    """How often the files are read. The kubelet takes up to a minute to update a mounted Secret."""

    async def load(self, context: ServingContext) -> None:
        """Use the content of the files; raise ``KeyPairInvalid`` if it is invalid."""
        context.use_key_pair(await asyncio.to_thread(self._read))

    async def run(self, context: ServingContext) -> None:
        """Reload the files at the interval until cancelled."""
        while True:
            await asyncio.sleep(self.interval.total_seconds())
            try:
                await self.load(context)
            except KeyPairInvalid as error:
                _log.warning(
                    "reloading the serving certificate failed; using the previous one", extra={"error": str(error)}
                )

    def _read(self) -> KeyPair:
        try:
            return KeyPair(self.certificate.read_text(encoding="utf-8"), self.key.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise KeyPairInvalid(f"serving certificate or key cannot be read: {error}") from error


def certificate_source(
    tls: ServingTls, namespace: str, kube: KubeClient, clock: Callable[[], datetime]
) -> CertificateFiles | SelfManagedCertificate:
    """Return the configured source; by default a self-managed certificate in the namespace of the service."""
    if tls.files is not None:
        return CertificateFiles(Path(tls.files.cert_file), Path(tls.files.key_file))
    settings = tls.self_managed or SelfManagedTls()
    return SelfManagedCertificate(kube, replace(settings, namespace=settings.namespace or namespace), clock)


async def load_and_refresh(source: CertificateFiles | SelfManagedCertificate, context: ServingContext) -> None:
    """Load the certificate, with retries, and refresh it until cancelled; without one the process is not ready."""
    while not context.has_certificate:
        try:
            await source.load(context)
        except (KubeError, KeyPairInvalid) as error:
            _log.warning("loading the serving certificate failed, retrying", extra={"error": str(error)})
            await asyncio.sleep(_RETRY_SECONDS)
    await source.run(context)
