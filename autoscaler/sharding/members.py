"""The processes that take part, as observed through their member Leases. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from autoscaler.sharding.lease_state import LeaseSpec


class _Observed(NamedTuple):
    spec: LeaseSpec
    changed_at: float


@dataclass(slots=True)
class MemberObservations:
    """The member Leases by name, and when each was last observed to change."""

    _observed: dict[str, _Observed] = field(default_factory=dict)

    def observe(self, specs: Mapping[str, LeaseSpec], now: float) -> None:
        """Replace what is known by the result of a list."""
        known = self._observed
        self._observed = {
            name: known[name] if name in known and known[name].spec == spec else _Observed(spec, now)
            for name, spec in specs.items()
        }

    def live(self, now: float, max_age: float) -> frozenset[str]:
        """Return the identities of members whose Lease has changed within ``max_age`` seconds."""
        recent = (member for member in self._observed.values() if now < member.changed_at + max_age)
        return frozenset(member.spec.holder_identity for member in recent if member.spec.holder_identity)

    def abandoned(self, now: float, age: float) -> tuple[str, ...]:
        """Return the names of Leases that have not changed for ``age`` seconds: their processes have ended."""
        return tuple(name for name, member in self._observed.items() if now >= member.changed_at + age)
