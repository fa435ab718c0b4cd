"""A limit on concurrent requests and on the interval between the starts of requests, fair between namespaces.

All namespaces share the connections of a backend. A free slot goes to the waiting namespace with the fewest requests in
progress, then to the one that used the least time in slots recently. While the operator and several namespaces send
requests, some slots are reserved for the operator, and no namespace can occupy all other slots. If several namespaces
do, a request that has run for ``SLOW_AFTER`` seconds, and four times as long as the requests of a waiting namespace
usually take, is ended if that namespace has fewer requests in progress and used less time. So a namespace with fast
requests waits for little more than that time, however many slow requests other namespaces send. If all namespaces are
equally slow, no request is ended.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from adapter.errors import OverBudget

OPERATOR: Final = ""
"""Stands for the operator where the name of a namespace is expected."""

SLOW_AFTER: Final = 2.0
"""Less if more than three namespaces wait without a request in progress."""

_MIN_WAIT: Final = 0.5
_CHECK_INTERVAL: Final = 0.25
"""Seconds between two checks for slow requests, while a request waits."""

_USE_HALF_LIFE: Final = 30.0
_AVERAGE_WEIGHT: Final = 0.3
_ACTIVE_FOR: Final = 300.0
_LIMITS_INTERVAL: Final = 5.0
_MAX_IDLE_SHARES: Final = 1000
_MAX_WAITING: Final = 1000
_TIMER_TOLERANCE: Final = 1e-3


@dataclass(eq=False, slots=True)
class _Request:
    namespace: str
    max_concurrent: int | None
    granted: asyncio.Future[None]
    queued: float
    started: float = 0.0
    timeout: asyncio.Timeout | None = None
    is_ended: bool = False


@dataclass(eq=False, slots=True)
class _Share:
    """The requests of one namespace."""

    used_until: float
    used: float = 0.0
    """Seconds in slots up to ``used_until``, with exponential decay."""

    typical_duration: float = 0.0
    """Of a request, in seconds: an exponential moving average."""

    running: int = 0
    waiting: deque[_Request] = field(default_factory=deque)

    def is_active(self, now: float) -> bool:
        return bool(self.running or self.waiting or now - self.used_until < _ACTIVE_FOR)

    def recent_use(self, now: float) -> float:
        return self.used * 0.5 ** ((now - self.used_until) / _USE_HALF_LIFE) if self.used else 0.0

    def add_use(self, duration: float, min_use: float, now: float) -> None:
        self.used, self.used_until = self.recent_use(now) + max(duration, min_use), now
        self.typical_duration += _AVERAGE_WEIGHT * (duration - self.typical_duration)


class RateLimit:
    """Delays requests that would exceed the limit."""

    def __init__(
        self,
        *,
        max_concurrent: int,
        min_interval: timedelta = timedelta(),
        resource: str = "a connection of the backend",
        ends_slow_requests: bool = True,
    ) -> None:
        """Create a limit; ``resource`` is what a slot stands for, for messages."""
        self._max_concurrent = max_concurrent
        self._resource = resource
        self._ends_slow_requests = ends_slow_requests
        self._max_of_tenants = self._max_per_tenant = max_concurrent
        self._next_limits = 0.0
        self._min_interval = min_interval.total_seconds()
        self._next_start = 0.0
        self._shares: dict[str, _Share] = {}
        self._pending: dict[str, _Share] = {}
        """Those with waiting requests."""

        self._running: set[_Request] = set()
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def slot(self, namespace: str = OPERATOR, max_concurrent: int | None = None) -> AsyncIterator[None]:
        """Wait until a request may start; the request counts as running until the block ends.

        ``max_concurrent`` limits the requests of the namespace. The block raises ``OverBudget`` if the request is ended
        in favour of another namespace.
        """
        loop = asyncio.get_running_loop()
        request = _Request(namespace, max_concurrent, loop.create_future(), loop.time())
        await self._wait(request)
        try:
            async with asyncio.timeout(None) as request.timeout:
                yield
        except TimeoutError:
            if not request.is_ended:
                raise
            message = f"the query was ended because it was slow and other namespaces waited for {self._resource}"
            raise OverBudget(message) from None
        finally:
            self._release(request)

    async def _wait(self, request: _Request) -> None:
        share = self._shares.get(request.namespace)
        if share is None:
            share = self._create_share(request.namespace)
        if request.namespace != OPERATOR and len(share.waiting) >= _MAX_WAITING:
            raise OverBudget(f"more than {_MAX_WAITING} queries of the namespace wait for {self._resource}")
        share.waiting.append(request)
        self._pending[request.namespace] = share
        self._grant()
        try:
            await request.granted
        except asyncio.CancelledError:
            if request in self._running:  # granted at the same moment
                self._release(request)
            elif request in share.waiting:
                share.waiting.remove(request)
            raise

    def _create_share(self, namespace: str) -> _Share:
        if len(self._shares) > _MAX_IDLE_SHARES:
            self._shares = {key: share for key, share in self._shares.items() if share.running or share.waiting}
        share = self._shares[namespace] = _Share(used_until=asyncio.get_running_loop().time())
        self._next_limits = 0.0
        return share

    def _update_limits(self, now: float) -> None:
        """Reserve slots for the operator and for other namespaces, if they sent requests recently."""
        if now < self._next_limits:
            return
        self._next_limits = now + _LIMITS_INTERVAL
        active = {namespace for namespace, share in self._shares.items() if share.is_active(now)}
        reserved = max(1, self._max_concurrent // 4) if OPERATOR in active else 0
        self._max_of_tenants = max(1, self._max_concurrent - reserved)
        has_several = len(active - {OPERATOR}) > 1
        self._max_per_tenant = max(1, self._max_of_tenants - 1) if has_several else self._max_of_tenants

    def _grant(self) -> None:
        """Start the requests that may start now; end a slow one, or check again later, if others have to wait."""
        now = asyncio.get_running_loop().time()
        self._set_timer(None)
        self._update_limits(now)
        while (share := self._next_share(now)) is not None:
            if now < self._next_start - _TIMER_TOLERANCE:
                self._set_timer(self._next_start)
                return
            request = share.waiting.popleft()
            if request.granted.done():  # cancelled
                continue
            request.started = now
            share.running += 1
            self._running.add(request)
            self._next_start = max(now, self._next_start) + self._min_interval
            request.granted.set_result(None)
        self._end_slow_request(now)

    def _release(self, request: _Request) -> None:
        now, share = asyncio.get_running_loop().time(), self._shares[request.namespace]
        self._running.discard(request)
        share.running -= 1
        share.add_use(now - request.started, self._min_interval, now)
        self._grant()

    def _next_share(self, now: float) -> _Share | None:
        """Return the namespace whose request starts next; None if no request may start."""
        total = len(self._running)
        of_tenants = total - self._shares[OPERATOR].running if OPERATOR in self._shares else total
        allowed = [
            share
            for namespace, share in self._waiting()
            if total < self._max_concurrent and (namespace == OPERATOR or of_tenants < self._max_of_tenants)
        ]
        return min(allowed, key=lambda share: _precedence(share, now), default=None)

    def _waiting(self) -> Iterator[tuple[str, _Share]]:
        """Yield the namespaces that wait for a slot, without those that wait for their own requests to end."""
        for namespace, share in tuple(self._pending.items()):
            if not share.waiting:
                del self._pending[namespace]
                continue
            limit = self._max_concurrent if namespace == OPERATOR else self._max_per_tenant
            if share.running < min(limit, share.waiting[0].max_concurrent or limit):
                yield namespace, share

    def _end_slow_request(self, now: float) -> None:
        waiting = min((share for _, share in self._waiting()), key=lambda share: _precedence(share, now), default=None)
        if waiting is None or not self._ends_slow_requests:
            return
        self._set_timer(now + _CHECK_INTERVAL)
        if now - waiting.waiting[0].queued < _MIN_WAIT or any(request.is_ended for request in self._running):
            return  # a slot may become free soon
        uses = {namespace: share.recent_use(now) for namespace, share in self._shares.items() if share.running}
        for request in self._running:
            uses[request.namespace] += now - request.started
        without_slot = sum(not share.running for share in self._pending.values())
        slow_after = max(SLOW_AFTER / max(1, without_slot - 2), 4 * waiting.typical_duration)
        slow = [
            request
            for request in self._running
            if request.namespace != OPERATOR
            and now - request.started >= slow_after - _TIMER_TOLERANCE
            and (not waiting.running or self._shares[request.namespace].running > waiting.running + 1)
            and uses[request.namespace] > waiting.recent_use(now) / 2
        ]
        slowest = max(slow, key=lambda request: (uses[request.namespace], -request.started), default=None)
        if slowest is not None and slowest.timeout is not None:
            slowest.is_ended = True
            slowest.timeout.reschedule(now)

    def _set_timer(self, when: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if when is None else asyncio.get_running_loop().call_at(when, self._grant)


def _precedence(share: _Share, now: float) -> tuple[int, float]:
    return share.running, share.recent_use(now)
