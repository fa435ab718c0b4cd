"""What one process knows about one Lease: whether it holds it, and whether it may acquire it. Pure.

As in client-go, the lease of another process has expired if it was not *observed* to change for its duration on the
local clock; clocks of different machines are never compared. The holder counts the renew deadline from before it sent
the last successful write, and so stops some seconds before the lease expires for others.

Times are seconds of a local clock that also advances while the machine is suspended.
"""

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

import msgspec

from autoscaler.types.record import Record

_NEVER: Final = float("-inf")
_Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class LeaseSpec(Record):
    """The spec of a coordination.k8s.io Lease."""

    holder_identity: str | None = None
    lease_duration_seconds: _Int32 | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: _Int32 | None = None


@dataclass(slots=True)
class LeaseState:
    """The last observation of a Lease, and until when this process holds it."""

    identity: str
    lease_duration: float
    """Applies to a lease that contains no duration."""

    renew_deadline: float
    is_shared: bool = False
    """Whether several processes hold the lease together, under one identity: a renewal by one renews it for all."""

    spec: LeaseSpec | None = None
    """None: the lease does not exist, or was never observed."""

    changed_at: float = _NEVER
    """When the lease was last observed to change."""

    held_until: float = _NEVER
    """Until when no process with another identity can have acquired the lease."""

    _requested_at: float = _NEVER
    """When the last request was sent whose response was observed."""

    @property
    def holder(self) -> str:
        """The identity in the lease; empty if it is released or does not exist."""
        return "" if self.spec is None else self.spec.holder_identity or ""

    def is_held(self, now: float) -> bool:
        """Return whether this process holds the lease; checked right before each write."""
        return now < self.held_until

    def is_free(self, now: float) -> bool:
        """Return whether the lease has no holder, or has expired."""
        return not self.holder or now >= self.expires_at

    @property
    def expires_at(self) -> float:
        """When the lease of another process expires, unless it is observed to change before."""
        seconds = None if self.spec is None else self.spec.lease_duration_seconds
        return self.changed_at + (seconds or self.lease_duration)

    def observe(self, spec: LeaseSpec | None, requested_at: float, now: float) -> None:
        """Record a response; one that was overtaken by the response to a later request is ignored."""
        if requested_at < self._requested_at:
            return
        if spec != self.spec:
            # The change was made after the last request that did not show it was sent.
            if self.is_shared and spec is not None and spec.holder_identity == self.identity:
                self.held_until = max(self.held_until, self._requested_at + self.renew_deadline)
            self.spec, self.changed_at = spec, now
        self._requested_at = requested_at

    def written(self, spec: LeaseSpec, requested_at: float, now: float) -> None:
        """Record a successful write of this process that was sent at a time."""
        self.observe(spec, requested_at, now)
        self.held_until = requested_at + self.renew_deadline

    def drop(self) -> None:
        """Record that this process no longer holds the lease."""
        self.held_until = _NEVER
