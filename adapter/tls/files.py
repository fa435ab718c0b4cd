"""A serving certificate out of files, used anew when the files change.

They are read again at intervals and compared by content. A mounted Secret is replaced by turning a link over, which a
watch on the file would miss; and both files never change in the same instant, so a pair that does not match is looked
at again later, while the old one goes on serving.
"""

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from adapter.tls.context import Pair, PairInvalid, ServingContext

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServingFiles:
    """Where the certificate and its key are."""

    certificate: Path
    key: Path
    every: timedelta = timedelta(seconds=10)
    """How soon a change is noticed. A mounted Secret itself takes a minute to change."""

    async def load(self, context: ServingContext) -> None:
        """Serve with what the files hold now; PairInvalid if that is nothing to serve with."""
        context.serve_with(await asyncio.to_thread(self._read))

    async def keep(self, context: ServingContext) -> None:
        """Serve with what the files hold, for ever."""
        while True:
            await asyncio.sleep(self.every.total_seconds())
            try:
                await self.load(context)
            except PairInvalid as error:
                log.warning("serving certificate not reloaded; the old one stays", extra={"error": str(error)})

    def _read(self) -> Pair:
        try:
            return Pair(self.certificate.read_text(), self.key.read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise PairInvalid(f"the serving certificate cannot be read: {error}") from error
