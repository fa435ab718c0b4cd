"""Faults to inject into the API server: error responses, missing responses, missing permissions."""

import asyncio
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from adapter.fakecluster.api_errors import ApiError

_REASONS: Final = {410: "Expired", 422: "Invalid", 500: "InternalError", 504: "Timeout"}
"""The reasons of Kubernetes that differ from the HTTP phrase, such as ``TooManyRequests``."""


@dataclass
class _Failure:
    code: int
    times: int
    verb: str
    within: str
    after: int

    def matches(self, verb: str, path: str) -> bool:
        if self.times <= 0 or self.verb not in {"", verb} or self.within not in path:
            return False
        self.after -= 1
        return self.after < 0


@dataclass
class LostResponse:
    """What happens to the next requests with this verb whose path ends with ``suffix``."""

    verb: str
    suffix: str
    times: int = 1
    hold: float = 0.0
    """Seconds by which the request is handled late, like by a slow webhook, also if the client has disconnected."""

    delay: float = 0.0
    """Seconds by which the response is sent late."""

    drop: bool = False
    """Whether the connection is closed instead of sending the response."""


@dataclass
class FaultInjection:
    """The faults that are active. There are none at first."""

    fail_all_with: int = 0
    """While not zero, every request fails with this status code."""

    delay: float = 0.0
    """The time in seconds by which every response is delayed."""

    lost_responses: list[LostResponse] = field(default_factory=list)
    _failures: list[_Failure] = field(default_factory=list)
    _forbidden: set[tuple[str, str]] = field(default_factory=set)
    _unblocked: asyncio.Event = field(default_factory=asyncio.Event)

    watches_may_send: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether watches send events and bookmarks; their connections stay open in any case."""

    def __post_init__(self) -> None:
        self._unblocked.set()
        self.watches_may_send.set()

    def fail_next(self, code: int, *, times: int = 1, verb: str = "", within: str = "", after: int = 0) -> None:
        """Fail requests with this verb and ``within`` in their path: skip ``after`` of them, then fail ``times``."""
        self._failures.append(_Failure(code, times, verb, within, after))

    def take_lost_response(self, verb: str, path: str) -> LostResponse | None:
        """Return the fault of a request that is handled, and count it."""
        for lost in self.lost_responses:
            if lost.times > 0 and lost.verb == verb and path.endswith(lost.suffix):
                lost.times -= 1
                return lost
        return None

    def clear(self) -> None:
        """Remove the failures that ``fail_next`` added."""
        self._failures.clear()

    def forbid(self, verb: str, resource: str) -> None:
        """Answer 403 to a verb on a resource: ``forbid("list", "pods")``."""
        self._forbidden.add((verb, resource))

    def allow(self, verb: str, resource: str) -> None:
        self._forbidden.discard((verb, resource))

    def block(self) -> None:
        """Accept requests and send no responses."""
        self._unblocked.clear()

    def unblock(self) -> None:
        """Send responses again, also to the requests that are waiting."""
        self._unblocked.set()

    def stall_watches(self) -> None:
        """Keep every watch open and send nothing on it, also on new ones."""
        self.watches_may_send.clear()

    async def inject(self, verb: str, path: str, resource: str) -> None:
        """Raise the fault for a request, if any; verb and resource as in an RBAC rule: ``patch``, ``pods/status``."""
        await self._unblocked.wait()
        await asyncio.sleep(self.delay)
        if self.fail_all_with:
            raise _injected(self.fail_all_with)
        for failure in self._failures:
            if failure.matches(verb, path):
                failure.times -= 1
                raise _injected(failure.code)
        if (verb, resource) in self._forbidden:
            plural, _, _ = resource.partition("/")
            why = f'User "steadyscale" cannot {verb} resource "{resource}" in this API group'
            raise ApiError(403, "Forbidden", f"{plural} is forbidden: {why}")


def _injected(code: int) -> ApiError:
    reason = _REASONS.get(code) or HTTPStatus(code).phrase.replace(" ", "")
    return ApiError(code, reason, "injected fault", retry_after=1 if code == 429 else None)
