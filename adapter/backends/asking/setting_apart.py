"""One bad question among many that are sent as one call must not take the others along.

Where a system refuses a whole call because of one question, that one is looked for, by its place if the refusal tells
it and else by halves, and is sent by itself from then on, until it is good again. What is known of it is kept: a search
that a deadline ends goes on with the next.
"""

import asyncio
from collections.abc import Awaitable, Callable, Container, Hashable, Sequence
from datetime import timedelta
from typing import Final, Generic, TypeVar

from adapter.errors import BackendError, BadQuery

Q = TypeVar("Q")
A = TypeVar("A")

_MOST: Final = 1000
"""Questions that are under suspicion at most; those of rules that are gone are pushed out some day."""


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

        self._suspects: dict[str, str] = {}
        """By question: which part of a call that was refused it goes with; it alone, if it was refused alone."""

    async def send(self, questions: Sequence[Q], left: timedelta) -> Sequence[A | BackendError]:
        """Ask everything within this time, and give an answer or an error for each, in their order."""
        ends = asyncio.get_running_loop().time() + left.total_seconds()
        groups: dict[tuple[Hashable, str], list[int]] = {}
        for place, question in enumerate(questions):
            part = self._suspects.get(self._text(question), "")
            groups.setdefault((self._together(question), part), []).append(place)
        found = await asyncio.gather(
            *(self._ask([questions[place] for place in places], part, ends) for (_, part), places in groups.items())
        )
        answers: dict[int, A | BackendError] = {}
        for places, theirs in zip(groups.values(), found, strict=True):
            answers.update(zip(places, theirs, strict=True))
        return [answers[place] for place in range(len(questions))]

    async def _ask(self, questions: Sequence[Q], part: str, ends: float) -> Sequence[A | BackendError]:
        try:
            answers = await self._call(questions, ends)
        except BadQuery as error:
            if len(questions) == 1:
                text = self._text(questions[0])
                self._suspect(questions, f"alone {text}")
                return [error]
            return await self._parts(questions, self._blamed(error), part, ends)
        except BackendError as error:
            return [error] * len(questions)
        for question in questions:
            self._suspects.pop(self._text(question), None)
        return answers

    async def _parts(
        self, questions: Sequence[Q], blamed: Container[int], part: str, ends: float
    ) -> Sequence[A | BackendError]:
        """Ask again by two calls: those that are blamed and the others, or else by halves."""
        places = range(len(questions))
        first = [place for place in places if place in blamed]
        if not 0 < len(first) < len(questions):
            first = list(places[: len(questions) // 2])
        parts = {f"{part}0": first, f"{part}1": [place for place in places if place not in first]}
        for each, theirs in parts.items():
            self._suspect([questions[place] for place in theirs], each)
        found = await asyncio.gather(
            *(self._ask([questions[place] for place in theirs], each, ends) for each, theirs in parts.items())
        )
        answers: dict[int, A | BackendError] = {}
        for theirs, said in zip(parts.values(), found, strict=True):
            answers.update(zip(theirs, said, strict=True))
        return [answers[place] for place in places]

    def _suspect(self, questions: Sequence[Q], part: str) -> None:
        for question in questions:
            self._suspects[self._text(question)] = part
        while len(self._suspects) > _MOST:
            del self._suspects[next(iter(self._suspects))]
