"""The Datadog backend: the questions of many rules by one call, and a bad one among them is found and set apart."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from adapter.backends.datadog.client import Client
from adapter.backends.datadog.settings import Datadog, DatadogParameters
from adapter.backends.parameters import parameters
from adapter.backends.resilience.batching import Batcher
from adapter.backends.resilience.bisect import SettingApart
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING: Final = timedelta(seconds=5)


class Question(NamedTuple):
    """What one rule asks."""

    text: str
    asked: DatadogParameters


class DatadogBackend:
    """A client of one organisation at Datadog."""

    aligned = True

    def __init__(self, name: str, settings: Datadog, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._client = Client(settings, clock)
        apart: SettingApart[Question, tuple[RawSample, ...]] = SettingApart(
            self._call, text=lambda question: question.text, together=lambda question: question.asked.window
        )
        self._batcher = Batcher(apart.send, most=settings.max_queries_per_request, together=apart.together)

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return the newest point of each series."""
        question = Question(query.text, parameters(query, DatadogParameters))
        return await self._batcher.ask(question, deadline)

    async def ping(self) -> None:
        """See whether the API key is one."""
        await self._client.ping(_PING)

    async def aclose(self) -> None:
        """End what is under way, then let go of connections."""
        await self._batcher.aclose()
        await self._client.aclose()

    async def _call(self, questions: Sequence[Question], ends: float) -> Sequence[tuple[RawSample, ...]]:
        return await self._client.ask([question.asked for question in questions], ends)
