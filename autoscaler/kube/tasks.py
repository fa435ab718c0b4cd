"""Background tasks that are restarted after an unexpected error.

An unexpected error in one task, such as an informer, must not stop the others: the error is logged and counted, and the
task is started again with a growing delay.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from autoscaler.kube.metrics import KubeMetrics

log = logging.getLogger(__name__)

Run: TypeAlias = Callable[[], Awaitable[None]]
StartTask: TypeAlias = Callable[[Run, str], asyncio.Task[None]]

_INITIAL_DELAY: Final = 1.0
_MAX_DELAY: Final = 60.0


async def supervise(run: Run, name: str, metrics: KubeMetrics) -> None:
    """Run a task until it returns or is cancelled; start it again after an unexpected error."""
    loop, delay = asyncio.get_running_loop(), _INITIAL_DELAY
    while True:
        started = loop.time()
        try:
            return await run()
        except Exception:
            log.exception("background task failed and is restarted", extra={"task": name, "delay_seconds": delay})
            metrics.task_restarts.labels(name).inc()
        if loop.time() - started > _MAX_DELAY:
            delay = _INITIAL_DELAY
        await asyncio.sleep(delay)
        delay = min(delay * 2, _MAX_DELAY)


@asynccontextmanager
async def background_tasks(metrics: KubeMetrics) -> AsyncIterator[StartTask]:
    """Provide a function that starts tasks, such as informers; they are cancelled at the end of the block."""
    async with asyncio.TaskGroup() as group:
        tasks: list[asyncio.Task[None]] = []

        def start(run: Run, name: str) -> asyncio.Task[None]:
            tasks.append(group.create_task(supervise(run, name, metrics), name=name))
            return tasks[-1]

        try:
            yield start
        finally:
            for task in tasks:
                if not task.cancelling():  # a second cancellation would end its cleanup, such as releasing the lease
                    task.cancel()
