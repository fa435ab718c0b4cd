"""The record of one run: every write that the API server accepted, in its order, and the times of the faults."""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

CLIENT = ""
"""The writer of changes that are made by the run itself, not by a controller process."""


@dataclass(frozen=True)
class LeaseWrite:
    """The lease was acquired or renewed, or released."""

    at: float
    writer: str
    is_released: bool = False


@dataclass(frozen=True)
class ScaleWrite:
    """The scale of a target was written by a controller process."""

    at: float
    writer: str
    target: str
    replicas: int


@dataclass(frozen=True)
class StatusWrite:
    """The status of an autoscaler was written by a controller process."""

    at: float
    writer: str
    name: str


@dataclass(frozen=True)
class SpecWrite:
    """An autoscaler was created, edited or deleted by another client."""

    at: float
    name: str
    uid: str
    spec: Json | None
    """None: the object was deleted."""

    @property
    def target(self) -> str:
        return "" if self.spec is None else str(self.spec["scaleTargetRef"]["name"])


@dataclass(frozen=True)
class TargetWrite:
    """A target was created, resized or deleted by another client."""

    at: float
    target: str
    replicas: int | None
    """None: the target was deleted."""


Write: TypeAlias = LeaseWrite | ScaleWrite | StatusWrite | SpecWrite | TargetWrite


@dataclass
class Record:
    """All writes in the order of the API server, and the intervals in which faults were injected."""

    writes: list[Write] = field(default_factory=list)
    faults: list[tuple[float, float]] = field(default_factory=list)

    def has_fault(self, since: float, until: float) -> bool:
        return any(start <= until and end >= since for start, end in self.faults)


class SpecHistory:
    """The specs of all autoscalers at every time, from their writes in order."""

    def __init__(self, writes: list[Write]) -> None:
        self._changes = [write for write in writes if isinstance(write, SpecWrite)]
        self._times = [change.at for change in self._changes]
        self._states: list[dict[str, SpecWrite]] = [{}]
        for change in self._changes:
            state = {name: spec for name, spec in self._states[-1].items() if name != change.name}
            self._states.append(state if change.spec is None else {**state, change.name: change})

    def at(self, time: float) -> dict[str, SpecWrite]:
        """Return the last version of every autoscaler that exists at a time."""
        return self._states[bisect_right(self._times, time)]

    def owners_within(self, target: str, since: float, until: float) -> list[tuple[float, list[SpecWrite]]]:
        """Return the autoscalers of a target in every state within the interval, with the start of each state."""
        first, last = bisect_right(self._times, since), bisect_right(self._times, until)
        starts = [float("-inf"), *self._times]
        return [(starts[number], owners_of(target, self._states[number])) for number in range(first, last + 1)]


def owners_of(target: str, state: dict[str, SpecWrite]) -> list[SpecWrite]:
    """Return the autoscalers of a target; one with ``mode: DryRun`` never scales and conflicts with none."""
    return [one for one in state.values() if one.target == target and (one.spec or {}).get("mode") != "DryRun"]
