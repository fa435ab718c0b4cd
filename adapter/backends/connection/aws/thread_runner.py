"""Runs coroutines of aiobotocore in threads, because they read files and would block the main event loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class ThreadRunner:
    """Runs each coroutine in a thread with its own event loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine; cancelling this call ends the coroutine but does not wait for its file access."""
        task = asyncio.create_task(_run_in_thread(function), name="aws")
        self._tasks.add(task)
        task.add_done_callback(self._discard)
        try:
            return await asyncio.shield(task)
        finally:
            task.cancel()

    async def aclose(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _discard(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # mark it as retrieved: the caller may have been cancelled


async def _run_in_thread(function: Callable[[], Coroutine[Any, Any, T]]) -> T:
    coroutine, loop = function(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="aws", daemon=True)
    thread.start()
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return await asyncio.wrap_future(future)
    finally:
        future.cancel()
        await asyncio.shield(_close(loop, thread))  # shielded from a second cancellation


async def _close(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_cancel_remaining_tasks(), loop))
    loop.call_soon_threadsafe(loop.stop)
    await asyncio.to_thread(thread.join)
    loop.close()


async def _cancel_remaining_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
