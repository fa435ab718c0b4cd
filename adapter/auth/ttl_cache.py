"""What a review said, remembered briefly: bounded in number and age, and never asked twice at the same time."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from datetime import timedelta
from typing import Generic, TypeVar

from cachetools import TLRUCache

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")


class Memory(Generic[Key, Answer]):
    """Answers by their question. Only answers are kept: what raised is asked again."""

    def __init__(
        self, size: int, lifetime: Callable[[Answer], timedelta], timer: Callable[[], float] = time.monotonic
    ) -> None:
        def expiry(_key: Key, answer: Answer, now: float) -> float:
            return now + lifetime(answer).total_seconds()

        self._answers: TLRUCache[Key, Answer] = TLRUCache(size, ttu=expiry, timer=timer)
        self._asking: dict[Key, asyncio.Task[Answer]] = {}

    def known(self, key: Key) -> Answer | None:
        """Give the remembered answer; None if there is none, or it has been kept for long enough."""
        try:
            return self._answers[key]
        except KeyError:
            return None

    async def recall(self, key: Key, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Give the remembered answer, or ask; who comes while it is being asked waits for the same answer."""
        try:
            return self._answers[key]
        except KeyError:
            pass
        asking = self._asking.get(key)
        if asking is None:
            asking = asyncio.create_task(self._ask(key, ask))
            self._asking[key] = asking
            asking.add_done_callback(lambda asked: self._done(key, asked))
        return await asyncio.shield(asking)  # one impatient caller must not spoil it for the others

    def _done(self, key: Key, asked: asyncio.Task[Answer]) -> None:
        del self._asking[key]
        if not asked.cancelled():
            asked.exception()  # seen, even if everyone who waited for it has left

    async def _ask(self, key: Key, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        answer = await ask()
        self._answers[key] = answer
        return answer
