"""Questions of many rules, sent as one call: for systems that take hundreds at a time and charge or limit each call.

Who asks waits only for its own answer, by its own deadline. The rules' fetches come at the same moments if the backend
says that it is ``aligned``; this gathers those that come within a short while of each other. How often a system lets
itself be called is another matter: ``pacing.py``.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Generic, TypeAlias, TypeVar

from adapter.errors import BackendError, BackendRejected, BackendTimeout, BackendUnreachable

Q = TypeVar("Q")
A = TypeVar("A")

_HEAD_START: Final = 0.98
"""Who asks gives up a little before whoever waits for it does, and so knows why; a call before who asks."""


@dataclass(eq=False, slots=True)
class _Asked(Generic[Q, A]):
    question: Q
    ends: float
    answer: asyncio.Future[A]


Send: TypeAlias = Callable[[Sequence[Q], timedelta], Awaitable[Sequence[A | BackendError]]]
"""Sends questions as one call that may take so long, and gives an answer or an error for each, in their order."""


class Batcher(Generic[Q, A]):
    """Gathers questions and sends them together."""

    def __init__(
        self,
        send: Send[Q, A],
        *,
        most: int,
        linger: timedelta = timedelta(milliseconds=100),
        together: Callable[[Q], Hashable] = lambda _: None,
    ) -> None:
        self._send = send
        self._together = together
        """Which questions can go by one call: those of which this says the same. No others wait for their answers."""

        self._most = most
        """Questions in one call, by the system's limit."""

        self._linger = linger.total_seconds()
        """How long the first question of a call waits for others to go with it."""

        self._waiting: list[_Asked[Q, A]] = []
        self._is_full = asyncio.Event()
        self._gathering: asyncio.Task[None] | None = None
        self._calls: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def ask(self, question: Q, deadline: timedelta) -> A:
        """Send this with the next call, and return its own answer or raise its own error."""
        if self._is_closed:
            raise BackendUnreachable("it is no longer configured")
        loop = asyncio.get_running_loop()
        ends = loop.time() + deadline.total_seconds() * _HEAD_START
        asked: _Asked[Q, A] = _Asked(question, ends, loop.create_future())
        self._waiting.append(asked)
        if len(self._waiting) >= self._most:
            self._is_full.set()
        if self._gathering is None:
            self._gathering = asyncio.create_task(self._gather(), name="batch")
        try:
            async with asyncio.timeout_at(asked.ends):
                return await asked.answer
        except TimeoutError:
            raise BackendTimeout(f"no answer within {deadline.total_seconds():g}s") from None
        except BackendTimeout as error:  # who was first to notice, and of how much time, is chance
            raise BackendTimeout(f"no answer within {deadline.total_seconds():g}s", detail=error.detail) from None
        finally:
            asked.answer.cancel()  # whoever left is not waited for
            if asked in self._waiting:
                self._waiting.remove(asked)

    async def aclose(self) -> None:
        """End what is under way; who still waits is told so."""
        self._is_closed = True
        under_way = [*self._calls, *([self._gathering] if self._gathering else [])]
        for asked in self._waiting:
            if not asked.answer.done():
                asked.answer.set_exception(BackendUnreachable("it is no longer configured"))
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    async def _gather(self) -> None:
        """Make calls of what waits, until nothing does."""
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                await self._for_company(loop.time() + self._linger)
                batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                self._begin(batch)
        finally:
            self._gathering = None

    async def _for_company(self, until: float) -> None:
        """Wait for others to go along, as long as one call can take more."""
        self._is_full.clear()
        if len(self._waiting) < self._most:
            try:
                async with asyncio.timeout_at(until):
                    await self._is_full.wait()
            except TimeoutError:
                pass

    def _begin(self, batch: list[_Asked[Q, A]]) -> None:
        groups: dict[Hashable, list[_Asked[Q, A]]] = {}
        for asked in batch:
            groups.setdefault(self._together(asked.question), []).append(asked)
        for group in groups.values():
            call = asyncio.create_task(self._call(group), name="batch call")
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)

    async def _call(self, batch: list[_Asked[Q, A]]) -> None:
        """Send one call, for as long as anyone waits for it, and hand out what came of it."""
        loop = asyncio.get_running_loop()
        left = (max(asked.ends for asked in batch) - loop.time()) * _HEAD_START
        sending = asyncio.ensure_future(self._send([asked.question for asked in batch], timedelta(seconds=left)))
        everyone = asyncio.gather(*(asked.answer for asked in batch), return_exceptions=True)
        try:
            await asyncio.wait((sending, everyone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not sending.done():
                sending.cancel()  # nobody waits for it any more, or we are told to stop
            await asyncio.gather(sending, return_exceptions=True)
            _hand_out(batch, sending)
            everyone.cancel()


def _hand_out(batch: list[_Asked[Q, A]], sent: asyncio.Future[Sequence[A | BackendError]]) -> None:
    answers: Sequence[A | BaseException]
    failure = BackendUnreachable("it is no longer configured") if sent.cancelled() else sent.exception()
    if failure is not None:
        answers = [failure] * len(batch)
    elif len(sent.result()) != len(batch):
        answers = [BackendRejected("it answers, but not everything that was asked")] * len(batch)
    else:
        answers = sent.result()
    for asked, answer in zip(batch, answers, strict=True):
        if asked.answer.done():
            continue
        if isinstance(answer, BackendError):
            # One for each: who catches it adds to it.
            asked.answer.set_exception(type(answer)(answer.message, detail=answer.detail))
        elif isinstance(answer, BaseException):
            asked.answer.set_exception(answer)
        else:
            asked.answer.set_result(answer)
