"""The Datadog backend: the questions of many rules by one call, and a bad one among them is found and set apart."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from adapter.backends.asking.batching import Batcher
from adapter.backends.asking.question import parameters
from adapter.backends.datadog.client import Client
from adapter.backends.datadog.settings import Datadog, DatadogParameters
from adapter.errors import BackendError, BackendTimedOut, BadQuery
from adapter.rules.fill import Query
from adapter.sample import RawSample

_PING: Final = timedelta(seconds=5)
_MOST_ALONE: Final = 1000


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
        self._batcher: Batcher[Question, tuple[RawSample, ...]] = Batcher(self._send, most=settings.questions_per_call)
        self._alone: dict[str, None] = {}
        """Questions that were refused: among others they would take them along, so each has a call of its own."""

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return the newest point of each series."""
        question = Question(query.text, parameters(query, DatadogParameters))
        try:
            return await self._batcher.ask(question, deadline)
        except BackendTimedOut as error:  # who was first to notice, and of how much time, is chance
            raise BackendTimedOut(f"no answer within {deadline.total_seconds():g}s", detail=error.detail) from None

    async def ping(self) -> None:
        """See whether the API key is one."""
        await self._client.ping(_PING)

    async def aclose(self) -> None:
        """End what is under way, then let go of connections."""
        await self._batcher.aclose()
        await self._client.aclose()

    async def _send(
        self, questions: Sequence[Question], left: timedelta
    ) -> Sequence[tuple[RawSample, ...] | BackendError]:
        """Ask those of one window together, and those that were refused before by themselves."""
        ends = asyncio.get_running_loop().time() + left.total_seconds()
        groups: dict[object, list[int]] = {}
        for place, (text, asked) in enumerate(questions):
            groups.setdefault(text if text in self._alone else asked.window, []).append(place)
        answers: dict[int, tuple[RawSample, ...] | BackendError] = {}
        found = await asyncio.gather(
            *(self._together([questions[place] for place in places], ends) for places in groups.values())
        )
        for places, theirs in zip(groups.values(), found, strict=True):
            answers.update(zip(places, theirs, strict=True))
        return [answers[place] for place in range(len(questions))]

    async def _together(
        self, questions: Sequence[Question], ends: float
    ) -> Sequence[tuple[RawSample, ...] | BackendError]:
        """Ask by one call; where that is refused because of a bad question, by halves, until it is found."""
        try:
            answers = await self._client.ask([question.asked for question in questions], ends)
        except BadQuery as error:
            if len(questions) == 1:
                self._set_apart(questions[0].text)
                return [error]
            half = len(questions) // 2
            return [
                *await self._together(questions[:half], ends),
                *await self._together(questions[half:], ends),
            ]
        except BackendError as error:
            return [error] * len(questions)
        for question in questions:
            self._alone.pop(question.text, None)
        return answers

    def _set_apart(self, text: str) -> None:
        self._alone[text] = None
        while len(self._alone) > _MOST_ALONE:
            del self._alone[next(iter(self._alone))]
