"""Our answers beside those of another server of the same API: to see, before a move, that nothing will change.

What the other one says is looked at and never served. It is asked in the background, for each metric, namespace and
selector at most once per interval, and only while somebody reads that metric here.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from cachetools import LRUCache

from adapter.errors import AdapterError, NoSeries
from adapter.metrics.fetcher import Failed
from adapter.metrics.read_history import Asked
from adapter.metrics.reader import Look, RuleReader
from adapter.rules.delegation import Delegate, delegated_rule
from adapter.rules.evaluation import evaluate
from adapter.rules.query_builder import snapshot_query

_MOST: Final = 1000
_AT_ONCE: Final = 8


class Verdict(StrEnum):
    """What a comparison came to."""

    SAME = "same"
    """Numbers within the tolerance of each other, or none on either side."""

    DIFFERENT = "different"
    ONLY_OURS = "only ours"
    """It has no number, and we do."""

    ONLY_THEIRS = "only theirs"
    """It has a number, and we do not."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One side: a number in thousandths with all series added, or why there is none."""

    milli: int | None
    error: str = ""


@dataclass(slots=True)
class Compared:
    """One metric with one selector in one namespace: the last comparison, and how many there were of each verdict."""

    at: datetime
    ours: Answered
    theirs: Answered
    verdict: Verdict
    comparisons: int = 0
    differences: int = 0
    different_since: datetime | None = None
    """When the first of the differences in a row was seen; None: they agree."""


class Comparisons:
    """Listens to a reader, and asks the other server the same."""

    def __init__(self, reader: RuleReader) -> None:
        self._reader = reader
        self._found: LRUCache[Asked, Compared] = LRUCache(_MOST)
        self._due: LRUCache[Asked, float] = LRUCache(_MOST)
        self._asking: set[asyncio.Task[None]] = set()
        self.watch: Callable[[Verdict], None] = lambda _: None
        """Told of each comparison."""

    def heard(self, look: Look) -> None:
        """Compare a read, if that is wanted, it is time to, and not too many are being compared."""
        how, now = self._reader.delegate, asyncio.get_running_loop().time()
        if how is None or not how.compare or len(self._asking) >= _AT_ONCE or self._due.get(look.asked, 0.0) > now:
            return
        self._due[look.asked] = now + how.interval.total_seconds()
        task = asyncio.create_task(self._compare(look, how), name=f"compare {look.asked.metric}")
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    def __iter__(self) -> Iterator[tuple[Asked, Compared]]:
        return iter(list(self._found.items()))

    async def aclose(self) -> None:
        """End what is under way."""
        asking = tuple(self._asking)
        for each in asking:
            each.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    async def _compare(self, look: Look, how: Delegate) -> None:
        theirs = await self._theirs(look.asked, how)
        ours = Answered(sum(sample.milli for sample in look.samples)) if look.error is None else _failed(look.error)
        verdict = compare(ours, theirs, how.tolerance)
        self._note(look.asked, ours, theirs, verdict)
        self.watch(verdict)

    async def _theirs(self, asked: Asked, how: Delegate) -> Answered:
        rule = delegated_rule(how, *asked)
        outcome = await self._reader.sources.cache.get(snapshot_query(rule), rule.interval, rule.deadline)
        if isinstance(outcome, Failed):
            return _failed(outcome.error)
        try:
            samples = evaluate(rule, outcome.rows, self._reader.clock(), lambda: "it has none now")
        except AdapterError as error:
            return _failed(error)
        return Answered(sum(sample.milli for sample in samples))

    def _note(self, asked: Asked, ours: Answered, theirs: Answered, verdict: Verdict) -> None:
        now, known = self._reader.clock(), self._found.get(asked)
        differs = verdict is not Verdict.SAME
        since = known.different_since if known is not None else None
        self._found[asked] = Compared(
            at=now,
            ours=ours,
            theirs=theirs,
            verdict=verdict,
            comparisons=(known.comparisons if known else 0) + 1,
            differences=(known.differences if known else 0) + differs,
            different_since=(since or now) if differs else None,
        )


def compare(ours: Answered, theirs: Answered, tolerance: float) -> Verdict:
    """Say whether two answers would make the same of a workload."""
    if ours.milli is None or theirs.milli is None:
        if ours.milli is theirs.milli:
            return Verdict.SAME
        return Verdict.ONLY_THEIRS if ours.milli is None else Verdict.ONLY_OURS
    near = abs(ours.milli - theirs.milli) <= tolerance * max(ours.milli, theirs.milli)
    return Verdict.SAME if near else Verdict.DIFFERENT


def _failed(error: AdapterError) -> Answered:
    failure = error.failure or NoSeries.failure
    return Answered(None, ": ".join(part for part in (failure.value, error.message) if part))
