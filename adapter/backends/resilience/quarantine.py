"""Which questions go by a call of their own, because of what became of calls before; pure, time is an argument.

A call that was late becomes two, by halves, until the slow question is by itself. A system that is slow as a whole
looks the same at first; so if nobody at all is answered, or somebody at last after many were late, what was parted
meanwhile becomes one call again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

_MOST: Final = 1000
"""Questions that are under suspicion at most; those of rules that are gone are pushed out some day."""

_MOST_IN_VAIN: Final = 32
"""Late calls in a row after which it is the system that is slow, and no question: one, two, four, eight and sixteen."""

_LATE_TOGETHER: Final = 8
"""Late calls in a row after which an answer is taken as a sign that the system was slow, and is so no longer."""

_MOST_PARTS: Final = 32
"""Parts of late calls at most: who is slow now and then must not come to be asked each question by itself."""

_REMEMBERED: Final = 3600.0
"""Seconds without being late after which a part does not count any more: its rules may be gone."""

_FIRST_REST: Final = 10.0
_LONGEST_REST: Final = 300.0
"""Seconds: the longest that it can go unnoticed that a slow question of several is fast again."""

_NEVER: Final = -math.inf


@dataclass(eq=False, slots=True)
class Part:
    """Questions that are asked together, and apart from all others."""

    late_at: float = _NEVER
    """When they were last asked in vain; never, if they are apart for being refused, or were in time since."""

    is_proven: bool = False
    """Whether it is one that was late by itself while others were answered: it is slow, and not the system."""

    rest: float = 0.0
    """Seconds for which it need not be asked again, if it is proven and others are slow, too."""

    @property
    def is_slow(self) -> bool:
        """Say whether they are apart for being late."""
        return self.late_at > _NEVER


class Suspects:
    """Questions that may have spoiled a call."""

    def __init__(self) -> None:
        self._parts: dict[str, Part] = {}
        self._late_in_a_row = 0
        self._heard_at = self._united_at = _NEVER

    def __len__(self) -> int:
        return len(self._parts)

    def part(self, question: str) -> Part | None:
        """Say with which others it goes; None: with all that are under no suspicion."""
        return self._parts.get(question)

    def rests(self, part: Part, now: float) -> bool:
        """Say whether it can wait: several that are slow would always be under way, and nobody else would be let in."""
        is_resting = part.is_proven and now < part.late_at + part.rest
        return is_resting and len({each for each in self._slow_parts(now) if each.is_proven}) > 1

    def refused(self, questions: Sequence[str], now: float) -> None:
        """Have these go together from now on, and with nobody else: their call was refused, or a larger one."""
        self._heard(now)
        self._set_apart(questions, Part())

    def answered(self, questions: Sequence[str], began: float, now: float, ends: float) -> None:
        """Let these go with the others again; but who is slow and was barely in time would soon spoil another call."""
        self._heard(now)
        part = self._parts.get(questions[0])
        is_quick = now - began < (ends - began) / 2
        if part is not None and (is_quick or not part.is_proven):
            for question in questions:
                self._parts.pop(question, None)
        elif part is not None:
            part.late_at = _NEVER  # it is in time: it stays by itself, and need not wait for a turn

    def late(self, questions: Sequence[str], began: float, now: float) -> None:
        """Note a call that was made in vain, and have its questions go by two the next time."""
        if began < self._united_at:
            return  # it was under way when the system was found slow, and says no more than that
        texts = list(dict.fromkeys(questions))
        part = self._parts.get(texts[0]) or Part()
        if len(texts) == 1:
            part = replace(part)  # the others that it went with are under no more suspicion than before
            self._set_apart(texts, part)
            self._prove(part, began)
        part.late_at = now
        if not part.is_proven:
            self._late_in_a_row += 1
            self._look_closer(texts, now)

    def _prove(self, part: Part, began: float) -> None:
        """See whether anybody was answered while this one was not, now or since it was late before."""
        since = min(began, part.late_at) if part.is_slow else began
        part.is_proven |= self._heard_at >= since
        if part.is_proven:
            part.rest = min(max(part.rest * 4, _FIRST_REST), _LONGEST_REST)

    def _heard(self, now: float) -> None:
        """Note that the system answers, if only to refuse; if hardly anyone was answered before, all may be well."""
        if self._late_in_a_row >= _LATE_TOGETHER:
            self._unite(now)
        self._heard_at, self._late_in_a_row = now, 0

    def _look_closer(self, questions: Sequence[str], now: float) -> None:
        if self._late_in_a_row >= _MOST_IN_VAIN:
            self._unite(now)
        elif len(questions) > 1 and len(self._slow_parts(now)) < _MOST_PARTS:
            middle = len(questions) // 2
            self._set_apart(questions[:middle], Part(now))
            self._set_apart(questions[middle:], Part(now))

    def _unite(self, now: float) -> None:
        """Make one call of what was parted for nothing; who is known to be slow stays by itself."""
        parted = [question for question, part in self._parts.items() if part.is_slow and not part.is_proven]
        self._set_apart(parted, Part(now))
        self._united_at, self._late_in_a_row = now, 0

    def _slow_parts(self, now: float) -> set[Part]:
        return {part for part in self._parts.values() if part.late_at > now - _REMEMBERED}

    def _set_apart(self, questions: Sequence[str], part: Part) -> None:
        for question in questions:
            self._parts.pop(question, None)  # so that those of long ago are the first to be pushed out
            self._parts[question] = part
        while len(self._parts) > _MOST:
            del self._parts[next(iter(self._parts))]
