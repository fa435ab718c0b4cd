"""A library's coroutines that read files between their awaits, run beside the loop that everyone waits for."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Aside:
    """Runs each in a thread with a loop of its own."""

    def __init__(self) -> None:
        self._under_way: set[asyncio.Task[Any]] = set()

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine there. Who stops waiting ends it, and need not wait until a file is read."""
        task = asyncio.create_task(_beside(work), name="aws")
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        try:
            return await asyncio.shield(task)
        finally:
            task.cancel()

    async def aclose(self) -> None:
        """End what is under way, and wait until it has ended."""
        under_way = tuple(self._under_way)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # whoever wanted to know has left


async def _beside(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    coroutine, loop = work(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="aws", daemon=True)
    thread.start()
    running = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return await asyncio.wrap_future(running)
    finally:
        running.cancel()
        await asyncio.shield(_close(loop, thread))  # also if it is told twice to stop


async def _close(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_finish(), loop))
    loop.call_soon_threadsafe(loop.stop)
    await asyncio.to_thread(thread.join)
    loop.close()


async def _finish() -> None:
    """Wait until nothing is left of what was begun in this loop."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
