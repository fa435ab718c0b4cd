"""A serving certificate of our own making: no other component is needed for the API server to verify us.

Every replica does the same at intervals: read the Secret, make sure that the API server trusts all authorities in it,
serve with its certificate, and take the next step of the rotation if one is due. A step is only taken after what came
before it was published, so no replica ever shows a certificate that the API server has not been told to trust.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from adapter.tls.api_service import ApiService
from adapter.tls.authority import Keys, Lifetimes, advance, first_keys
from adapter.tls.context import ServingContext
from adapter.tls.secret import KeySecret
from autoscaler.kube.errors import KubeError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SelfManaged:
    """The rotation, as one replica sees it."""

    secret: KeySecret
    registration: ApiService
    names: tuple[str, ...]
    """The names to be certified; the first one is what the API server asks for: <service>.<namespace>.svc"""

    clock: Callable[[], datetime]
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    every: timedelta = timedelta(seconds=30)
    """How often all this is looked at; much more often than `overlap`."""

    async def load(self, context: ServingContext) -> None:
        """Serve with the kept certificate, or with a new one if none is kept; KubeError if neither can be had."""
        while True:
            kept = await self.secret.read()
            keys = kept.keys or await self._first_keys()
            if kept.keys is not None or await self.secret.write(keys, kept):
                break
        await self._serve(keys, context)

    async def keep(self, context: ServingContext) -> None:
        """Rotate what needs to be, for ever."""
        while True:
            await asyncio.sleep(self.every.total_seconds() * random.uniform(0.8, 1.2))  # noqa: S311 - spreads load
            try:
                await self.step(context)
            except KubeError as error:
                log.warning("serving certificate not looked after", extra={"error": str(error)})

    async def step(self, context: ServingContext) -> None:
        """Serve what is kept; then, if the API server trusts all of it, do what is due."""
        kept = await self.secret.read()
        if kept.keys is None:
            await self.load(context)
            return
        published = await self._serve(kept.keys, context)
        due = await asyncio.to_thread(advance, kept.keys, self.names, self.lifetimes, self.clock())
        if due == kept.keys or not (published or _trusts_the_same(due, kept.keys)):
            return
        if await self.secret.write(due, kept):
            log.info("serving certificate or its authority renewed")
            await self._serve(due, context)

    async def _first_keys(self) -> Keys:
        return await asyncio.to_thread(first_keys, self.names, self.lifetimes, self.clock())

    async def _serve(self, keys: Keys, context: ServingContext) -> bool:
        published = await self.registration.publish(keys.bundle)
        context.serve_with(keys.serving)
        return published


def _trusts_the_same(due: Keys, kept: Keys) -> bool:
    """Say whether only the certificate is new, signed by an authority that is trusted already."""
    return due.authority == kept.authority and due.next_authority == kept.next_authority
