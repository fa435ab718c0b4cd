"""Which question of many was no good: CloudWatch refuses them all for one, and does not always say for which."""

import re
from typing import Final

from adapter.backends.cloudwatch.question import Asked
from adapter.backends.cloudwatch.settings import CloudWatchParameters

_NAMED: Final = re.compile(r"\bq\d+(?=\b|_)")
_MOST_SPLITS: Final = 40
_REMEMBERED: Final = 500


class Splits:
    """How often the questions of one moment may still be parted: if all are refused, for one reason, it is enough."""

    def __init__(self) -> None:
        self._left = _MOST_SPLITS

    def is_left(self) -> bool:
        """Take one, if there is one."""
        self._left -= 1
        return self._left >= 0


class Suspects:
    """Questions that were refused when they stood alone; they stay alone until they are answered."""

    def __init__(self) -> None:
        self._questions: dict[str, None] = {}

    def add(self, question: CloudWatchParameters) -> None:
        """Remember this one; those of long ago are forgotten."""
        self._questions[repr(question)] = None
        while len(self._questions) > _REMEMBERED:
            del self._questions[next(iter(self._questions))]

    def discard(self, question: CloudWatchParameters) -> None:
        """Trust it again."""
        if self._questions:
            self._questions.pop(repr(question), None)

    def __contains__(self, question: object) -> bool:
        return bool(self._questions) and repr(question) in self._questions


def parted(call: list[Asked], said: str) -> tuple[list[Asked], list[Asked]]:
    """Part a call that was refused: who is named in the refusal from the others, or else in the middle."""
    named = set(_NAMED.findall(said))
    guilty = [asked for asked in call if asked.id in named]
    if guilty and len(guilty) < len(call):
        return guilty, [asked for asked in call if asked.id not in named]
    middle = len(call) // 2
    return call[:middle], call[middle:]
