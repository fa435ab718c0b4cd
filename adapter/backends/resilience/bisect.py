"""One question among many that are sent as one call must not take the others along, be it bad or slow.

Where a system refuses a whole call because of one question, that one is looked for, by its place if the refusal tells
it and else by halves, and is sent by itself from then on, until it is good again. What is known of it is kept: a search
that a deadline ends goes on with the next. So does the search for a slow one: a call that is late leaves no time to ask
again, so its questions go by two calls the next time, and those of them that are late by two again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Container, Hashable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import timedelta
from typing import Final, Generic, TypeVar

from adapter.backends.resilience.fair_semaphore import Turns
from adapter.backends.resilience.quarantine import Part, Suspects
from adapter.errors import BackendError, BackendTimeout, BadQuery

Q = TypeVar("Q")
A = TypeVar("A")

_SLOW_AT_ONCE: Final = 2
"""Calls with perhaps a slow question in them that are under way at once: they last, and others need connections too."""


class SettingApart(Generic[Q, A]):
    """Sends questions as few calls as can be; ``send`` is what a ``Batcher`` wants."""

    def __init__(
        self,
        call: Callable[[Sequence[Q], float], Awaitable[Sequence[A | BackendError]]],
        *,
        text: Callable[[Q], str],
        together: Callable[[Q], Hashable] = lambda _: None,
        blamed: Callable[[BadQuery], Container[int]] = lambda _: (),
    ) -> None:
        self._call = call
        """Makes one call that ends at this time of the loop; raises ``BadQuery`` if one of the questions is bad."""

        self._text = text
        """What tells questions apart."""

        self._together = together
        """Which questions can go by one call: those of which this says the same."""

        self._blamed = blamed
        """The places in its call of the questions that a refusal names, if it does; they are looked at first."""

        self._suspects = Suspects()
        self._turns = Turns(_SLOW_AT_ONCE)

    def together(self, question: Q) -> Hashable:
        """Say which questions can go by one call, as things are: so nobody waits for the answers of a suspect."""
        return self._together(question), self._suspects.part(self._text(question))

    async def send(self, questions: Sequence[Q], left: timedelta) -> Sequence[A | BackendError]:
        """Ask everything within this time, and give an answer or an error for each, in their order."""
        ends = asyncio.get_running_loop().time() + left.total_seconds()
        groups: dict[Hashable, list[int]] = {}
        for place, question in enumerate(questions):
            groups.setdefault(self.together(question), []).append(place)
        found = await asyncio.gather(
            *(self._ask([questions[place] for place in places], ends) for places in groups.values())
        )
        answers: dict[int, A | BackendError] = {}
        for places, theirs in zip(groups.values(), found, strict=True):
            answers.update(zip(places, theirs, strict=True))
        return [answers[place] for place in range(len(questions))]

    async def _ask(self, questions: Sequence[Q], ends: float, *, is_again: bool = False) -> Sequence[A | BackendError]:
        loop, texts = asyncio.get_running_loop(), [self._text(question) for question in questions]
        began = loop.time()
        try:
            answers = await self._in_time(questions, self._suspects.part(texts[0]), ends)
        except BadQuery as error:
            if len(questions) == 1:
                self._suspects.refused(texts, loop.time())
                return [error]
            return await self._parts(questions, self._blamed(error), ends)
        except BackendTimeout as error:
            # What is asked again had less time than it should have; it goes by itself the next time anyway.
            if error.was_sent and not is_again:
                self._suspects.late(texts, began, loop.time())
            return [error] * len(questions)
        except BackendError as error:
            return [error] * len(questions)
        self._suspects.answered(texts, began, loop.time(), ends)
        return answers

    async def _in_time(self, questions: Sequence[Q], part: Part | None, ends: float) -> Sequence[A | BackendError]:
        late = BackendTimeout(
            "no answer in time", detail="not asked this time: others that may be slow were asked first"
        )
        late.was_sent = False
        if part is not None and self._suspects.rests(part, asyncio.get_running_loop().time()):
            raise late
        try:
            async with asyncio.timeout_at(ends), self._turn(part, ends):
                late = BackendTimeout("no answer in time")
                return await self._call(questions, ends)
        except TimeoutError:
            raise late from None

    def _turn(self, part: Part | None, ends: float) -> AbstractAsyncContextManager[None]:
        """Wait until it may be asked; but in the little time that is left late it would only seem slow."""
        if part is None or not part.is_slow:
            return nullcontext()
        half = (asyncio.get_running_loop().time() + ends) / 2
        return self._turns.turn(last=part.late_at, until=half)

    async def _parts(self, questions: Sequence[Q], blamed: Container[int], ends: float) -> Sequence[A | BackendError]:
        """Ask again by two calls: those that are blamed and the others, or else by halves."""
        places, now = range(len(questions)), asyncio.get_running_loop().time()
        first = [place for place in places if place in blamed]
        if not 0 < len(first) < len(questions):
            first = list(places[: len(questions) // 2])
        parts = [first, [place for place in places if place not in first]]
        for theirs in parts:
            self._suspects.refused([self._text(questions[place]) for place in theirs], now)
        found = await asyncio.gather(
            *(self._ask([questions[place] for place in theirs], ends, is_again=True) for theirs in parts)
        )
        answers: dict[int, A | BackendError] = {}
        for theirs, said in zip(parts, found, strict=True):
            answers.update(zip(theirs, said, strict=True))
        return [answers[place] for place in places]
