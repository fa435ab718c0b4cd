"""A serving certificate in files, reloaded when they change.

The files are read at an interval and compared by content: the kubelet updates a mounted Secret by replacing a symbolic
link, which a watch on the file does not see. A certificate and a key that do not match yet are read again later; the
previous pair stays in use until then.
"""

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from adapter.tls.context import KeyPair, KeyPairInvalid, ServingContext

log = logging.getLogger(__name__)


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
                log.warning(
                    "reloading the serving certificate failed; using the previous one", extra={"error": str(error)}
                )

    def _read(self) -> KeyPair:
        try:
            return KeyPair(self.certificate.read_text(), self.key.read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise KeyPairInvalid(f"serving certificate or key cannot be read: {error}") from error
