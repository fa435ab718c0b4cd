"""An event loop in virtual time with several simulated processes, each of which can be frozen as by SIGSTOP.

A process consists of the tasks and callbacks whose context has its identity. While it is frozen, its callbacks and
timers are held; when it continues, they run in the order in which they became due. Its connections stay open.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVarTuple, cast

import looptime

_Ts = TypeVarTuple("_Ts")
_IDENTITY: ContextVar[str] = ContextVar("identity", default="")


def context_of(identity: str) -> Context:
    """Return the context of the first task of a process."""
    context = copy_context()
    context.run(_IDENTITY.set, identity)
    return context


class FreezableLoop(asyncio.SelectorEventLoop):
    """The event loop; create it with `new_event_loop`."""

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[str, list[Callable[[], None]]] = {}
        """What frozen processes do when they continue, by their identity."""

    def freeze(self, identity: str) -> None:
        self._held.setdefault(identity, [])

    def thaw(self, identity: str) -> None:
        for resume in self._held.pop(identity, ()):
            resume()

    def call_soon(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.Handle:
        context = context if context is not None else copy_context()
        held = _HeldCallback(self, callback, args, context)
        held.handle = super().call_soon(held, context=context)
        return held.handle

    def call_at(
        self,
        when: float,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        context = context if context is not None else copy_context()
        held = _HeldCallback(self, callback, args, context)
        held.handle = handle = super().call_at(when, held, context=context)
        return handle

    def hold(self, resume: Callable[[], None]) -> bool:
        """Hold a callback of the current process if it is frozen."""
        held = self._held.get(_IDENTITY.get())
        if held is None:
            return False
        held.append(resume)
        return True


class _HeldCallback:
    """A callback that runs when it is due, or when its frozen process continues, unless it is cancelled before."""

    __slots__ = ("_args", "_callback", "_context", "_loop", "handle")
    handle: asyncio.Handle

    def __init__(self, loop: FreezableLoop, callback: Any, args: tuple[Any, ...], context: Context) -> None:
        self._loop = loop
        self._callback = callback
        self._args = args
        self._context = context

    def __call__(self) -> None:
        if not self._loop.hold(self._resume):
            self._callback(*self._args)

    def _resume(self) -> None:
        if not self.handle.cancelled():
            self._loop.call_soon(self._callback, *self._args, context=self._context)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new loop; all input is local and ready at once, so few idle cycles are needed before time advances."""
    return looptime.patch_event_loop(cast(asyncio.BaseEventLoop, FreezableLoop()), noop_cycles=4)
