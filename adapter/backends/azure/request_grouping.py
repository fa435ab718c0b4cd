"""The questions of many rules in as few calls as Azure allows: fifty resources that are asked the same are one."""

from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Final, NamedTuple, TypeAlias

from adapter.backends.azure.query import Call, Question
from adapter.backends.resilience.bisect import SettingApart
from adapter.backends.resilience.rate_limit import Pace
from adapter.errors import BackendError
from adapter.sample import RawSample

_MOST: Final = 50
"""Resources in one call, by Azure's limit."""

Found: TypeAlias = tuple[RawSample, ...]
Ask: TypeAlias = Callable[[Call, list[Question], float], Awaitable[list[Found | BackendError]]]
"""Makes one call that ends at this time of the loop, for resources that are asked the same."""


class _Placed(NamedTuple):
    question: Question
    fifty: int
    """Which fifty of those that are asked the same it goes with."""


class Combiner:
    """Sends questions together. Azure refuses a call as a whole; the resource that it is for is set apart."""

    def __init__(self, ask: Ask, pace: Pace) -> None:
        self._ask = ask
        self._pace = pace
        self._apart: SettingApart[_Placed, Found] = SettingApart(
            self._call,
            text=lambda placed: repr(placed.question),
            together=lambda placed: (placed.question.call, placed.fifty),
        )

    def together(self, question: Question) -> Hashable:
        """Say which questions to send at a time: those that are asked the same, and none with suspects."""
        return self._apart.together(_Placed(question, 0))

    async def send(self, questions: Sequence[Question], left: timedelta) -> list[Found | BackendError]:
        """Answer each, in their order; the same question twice is asked once."""
        once = list(_placed(dict.fromkeys(questions)))
        found = await self._apart.send(once, left)
        answers = {placed.question: answer for placed, answer in zip(once, found, strict=True)}
        return [answers[question] for question in questions]

    async def _call(self, placed: Sequence[_Placed], ends: float) -> list[Found | BackendError]:
        async with self._pace.turn():
            return await self._ask(placed[0].question.call, [each.question for each in placed], ends)


def _placed(questions: Iterable[Question]) -> Iterator[_Placed]:
    seen: Counter[Call] = Counter()
    for question in questions:
        yield _Placed(question, seen[question.call] // _MOST)
        seen[question.call] += 1
