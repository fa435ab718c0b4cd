"""The Azure backend: questions of all rules go out together, and each rule gets its own answer."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from adapter.backends.azure.client import AzureClient
from adapter.backends.azure.parse import answers, decoded
from adapter.backends.azure.query import Call, Question, questions
from adapter.backends.azure.request_grouping import Combiner, Found
from adapter.backends.azure.settings import Azure, AzureParameters
from adapter.backends.connection.secret_file import all_without_secrets
from adapter.backends.parameters import parameters
from adapter.backends.resilience.batching import Batcher
from adapter.backends.resilience.protected_call import Guard
from adapter.backends.resilience.rate_limit import Pace
from adapter.errors import BackendError
from adapter.rules.query_builder import Query

_PING: Final = timedelta(seconds=5)
_GATHERED: Final = 1000
"""Questions that are sorted into calls at a time."""


class AzureBackend:
    """A client of Azure Monitor in one region."""

    aligned: Final = True

    def __init__(self, name: str, settings: Azure, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._clock = clock
        self._client = AzureClient(settings)
        self._guard = Guard(settings.breaker, clock, self._client.secrets)
        pace = Pace(at_once=settings.connections, per_second=settings.calls_per_second)
        combiner = Combiner(self._call, pace)
        self._batcher: Batcher[Question, Found] = Batcher(combiner.send, most=_GATHERED, together=combiner.together)

    async def fetch(self, query: Query, deadline: timedelta) -> Found:
        """Return the newest number of each series of the rule's resources."""
        asked = questions(parameters(query, AzureParameters))
        found = await asyncio.gather(*(self._batcher.ask(each, deadline) for each in asked), return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException):
                raise each  # a part of what a rule asks for is no answer
        return tuple(sample for each in found if isinstance(each, tuple) for sample in each)

    async def ping(self) -> None:
        """Ask for a token, and for any answer."""
        await self._guard.ask("ping", _PING, self._client.ping)

    async def aclose(self) -> None:
        """End what is under way, then let go of connections."""
        await self._guard.aclose()
        await self._batcher.aclose()
        await self._client.aclose()

    async def _call(self, call: Call, group: list[Question], ends: float) -> list[Found | BackendError]:
        """Call once; a call that fails is one failure to the breaker, however many rules are in it."""
        now = self._clock()

        async def ask() -> list[Found | BackendError]:
            body = await self._client.post(call.target(now), {"resourceids": [question.resource for question in group]})
            return await asyncio.to_thread(lambda: answers(decoded(body), group, now))

        left = timedelta(seconds=max(0.0, ends - asyncio.get_running_loop().time()))
        return all_without_secrets(await self._guard.ask(repr(group), left, ask), self._client.secrets)
