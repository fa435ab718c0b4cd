"""The New Relic backend: the queries of many rules by one call of NerdGraph."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from adapter.backends.connection.http import Answer, HttpClient
from adapter.backends.connection.secret_file import SecretFile, all_without_secrets
from adapter.backends.newrelic.parse import Samples, answers
from adapter.backends.newrelic.request import PING, request
from adapter.backends.newrelic.settings import NewRelic, NewRelicParameters
from adapter.backends.parameters import parameters
from adapter.backends.resilience.batching import Batcher
from adapter.backends.resilience.bisect import SettingApart
from adapter.backends.resilience.rate_limit import Pace
from adapter.errors import BackendError
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING: Final = timedelta(seconds=5)


class Question(NamedTuple):
    """What one rule asks."""

    text: str
    asked: NewRelicParameters


class NewRelicBackend:
    """A client of NerdGraph."""

    aligned = True

    def __init__(self, name: str, settings: NewRelic, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._account = settings.account
        self._clock = clock
        self._key = SecretFile(settings.api_key_file, "apiKeyFile")
        self._client = HttpClient(settings.http, clock, (self._key,))
        apart: SettingApart[Question, Samples] = SettingApart(self._call, text=lambda question: question.text)
        self._batcher = Batcher(apart.send, most=settings.max_queries_per_request, together=apart.together)
        self._pace = Pace.apart(settings.pace, at_once=settings.http.connections)

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return a series for each row that the query finds."""
        question = Question(query.text, parameters(query, NewRelicParameters))
        return await self._batcher.ask(question, deadline)

    async def ping(self) -> None:
        """Ask who we are."""

        async def call() -> None:
            answers((await self._send(PING)).body, (), self._clock())

        await self._client.through("ping", _PING, call)

    async def aclose(self) -> None:
        """End what is under way, then let go of connections."""
        await self._batcher.aclose()
        await self._client.aclose()

    async def _call(self, questions: Sequence[Question], ends: float) -> Sequence[Samples | BackendError]:
        async with self._pace.turn():
            return await self._ask(questions, ends)

    async def _ask(self, questions: Sequence[Question], ends: float) -> Sequence[Samples | BackendError]:
        left = max(0.0, ends - asyncio.get_running_loop().time())
        asked, now = [question.asked for question in questions], self._clock()

        async def call() -> list[Samples | BackendError]:
            answer = await self._send(request(asked, self._account, left))
            return await asyncio.to_thread(answers, answer.body, asked, now)

        found = await self._client.through(repr(asked), timedelta(seconds=left), call)
        return all_without_secrets(found, (self._key,))

    async def _send(self, document: dict[str, Any]) -> Answer:
        headers = {"API-Key": await self._key.read(), "Content-Type": "application/json"}
        return await self._client.request("POST", "/graphql", headers=headers, data=msgspec.json.encode(document))
