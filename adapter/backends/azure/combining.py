"""The questions of many rules, in as few calls as Azure allows: fifty resources that are asked the same are one call.

Azure refuses a call as a whole, whichever resource it is that it does not like. So a call that is refused is halved
until the culprit stands alone, and who was refused alone is asked alone from then on, until it is answered.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final, TypeAlias

from adapter.backends.asking.pacing import Pace
from adapter.backends.azure.question import Call, Question
from adapter.errors import BackendError, BackendRefused, BackendUnauthorized, BadQuery
from adapter.sample import RawSample

MOST: Final = 50
_REMEMBERED: Final = 1000

Answer: TypeAlias = tuple[RawSample, ...] | BackendError
Ask: TypeAlias = Callable[[Call, list[Question]], Awaitable[list[Answer]]]
"""Makes one call, for resources that are asked the same."""


class Combiner:
    """Sends questions together."""

    def __init__(self, ask: Ask, pace: Pace) -> None:
        self._ask = ask
        self._pace = pace
        self._apart: dict[Question, None] = {}

    async def send(self, questions: Sequence[Question], _: timedelta) -> list[Answer]:
        """Answer each, in their order."""
        answers: dict[Question, Answer] = {}
        await asyncio.gather(*(self._group(group, answers) for group in self._groups(questions)))
        return [answers[question] for question in questions]

    def _groups(self, questions: Sequence[Question]) -> list[list[Question]]:
        together: dict[Call, list[Question]] = defaultdict(list)
        groups = []
        for question in dict.fromkeys(questions):  # the same question twice is asked once
            if question in self._apart:
                groups.append([question])
            else:
                together[question.call].append(question)
        for all_of_them in together.values():
            groups += [all_of_them[first : first + MOST] for first in range(0, len(all_of_them), MOST)]
        return groups

    async def _group(self, group: list[Question], answers: dict[Question, Answer]) -> None:
        try:
            async with self._pace.turn():
                found = await self._ask(group[0].call, group)
        except BackendError as error:
            if len(group) > 1 and _may_be_one(error):
                half = len(group) // 2
                await self._group(group[:half], answers)
                await self._group(group[half:], answers)
                return
            found = [error] * len(group)
        answers.update(zip(group, found, strict=True))
        if len(group) == 1:
            self._note(group[0], found[0])

    def _note(self, question: Question, answer: Answer) -> None:
        self._apart.pop(question, None)
        if isinstance(answer, BackendError) and _may_be_one(answer):
            self._apart[question] = None
            for oldest in list(self._apart)[:-_REMEMBERED]:
                del self._apart[oldest]


def _may_be_one(error: BackendError) -> bool:
    """Say whether one resource alone can be why: it is not there, not ours to see, or not of that kind."""
    if isinstance(error, BackendRefused):
        return error.message.startswith("HTTP 404")
    return isinstance(error, BadQuery) or (isinstance(error, BackendUnauthorized) and "403" in error.message)
