"""One bad question among many that are sent as one call must not take the others along.

Where a system refuses a whole call because of one question, that one is looked for by halves, and is sent by itself
from then on, until it is good again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from datetime import timedelta
from typing import Final, Generic, TypeVar

from adapter.errors import BackendError, BadQuery

Q = TypeVar("Q")
A = TypeVar("A")

_MOST: Final = 1000
"""Bad questions that are remembered; those of rules that are gone are pushed out some day."""


class SettingApart(Generic[Q, A]):
    """Sends questions as few calls as can be; ``send`` is what a ``Batcher`` wants."""

    def __init__(
        self,
        call: Callable[[Sequence[Q], float], Awaitable[Sequence[A | BackendError]]],
        *,
        text: Callable[[Q], str],
        together: Callable[[Q], Hashable] = lambda _: None,
    ) -> None:
        self._call = call
        """Makes one call that ends at this time of the loop; raises ``BadQuery`` if one of the questions is bad."""

        self._text = text
        """What tells questions apart."""

        self._together = together
        """Which questions can go by one call: those of which this says the same."""

        self._bad: dict[str, None] = {}

    async def send(self, questions: Sequence[Q], left: timedelta) -> Sequence[A | BackendError]:
        """Ask everything within this time, and give an answer or an error for each, in their order."""
        ends = asyncio.get_running_loop().time() + left.total_seconds()
        groups: dict[Hashable, list[int]] = {}
        for place, question in enumerate(questions):
            text = self._text(question)
            alone: Hashable = ("alone", text) if text in self._bad else ("with", self._together(question))
            groups.setdefault(alone, []).append(place)
        found = await asyncio.gather(
            *(self._halves([questions[place] for place in places], ends) for places in groups.values())
        )
        answers: dict[int, A | BackendError] = {}
        for places, theirs in zip(groups.values(), found, strict=True):
            answers.update(zip(places, theirs, strict=True))
        return [answers[place] for place in range(len(questions))]

    async def _halves(self, questions: Sequence[Q], ends: float) -> Sequence[A | BackendError]:
        try:
            answers = await self._call(questions, ends)
        except BadQuery as error:
            if len(questions) == 1:
                self._remember(self._text(questions[0]))
                return [error]
            half = len(questions) // 2
            return [*await self._halves(questions[:half], ends), *await self._halves(questions[half:], ends)]
        except BackendError as error:
            return [error] * len(questions)
        for question in questions:
            self._bad.pop(self._text(question), None)
        return answers

    def _remember(self, text: str) -> None:
        self._bad[text] = None
        while len(self._bad) > _MOST:
            del self._bad[next(iter(self._bad))]
