"""The simulated world: an API server with Leases, a network with faults, and true time.

A process is a set of generators. Each yields what it waits for: a `Sleep` or a request, and receives the response, or
None if there is none. Nothing here knows the protocol.
"""

import heapq
import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from autoscaler.sharding.lease_state import LeaseSpec

REQUEST_TIMEOUT: Final = 5.0
MAX_DELAY: Final = 1.5
"""The longest time from sending a request to its execution."""


class Stored(NamedTuple):
    version: int
    spec: LeaseSpec


class Sleep(NamedTuple):
    """Wait for some seconds of the local clock."""

    seconds: float


class Get(NamedTuple):
    name: str


class ListAll(NamedTuple):
    pass


class Put(NamedTuple):
    """Create (version 0) or replace a Lease."""

    name: str
    version: int
    spec: LeaseSpec


class Delete(NamedTuple):
    name: str


class ObjectWrite(NamedTuple):
    """A write to an object of a shard."""

    shard: int


class Conflict(NamedTuple):
    """The response to a write of an outdated version."""


Steps = Generator[Any, Any, None]


@dataclass
class Host:
    """A machine with one process: its clock and its connection."""

    name: str
    rate: float
    """Seconds of the local clock per second of true time."""

    offset: float
    is_partitioned: bool = False
    frozen_until: float = 0.0
    is_dead: bool = False
    started_at: float = 0.0
    troubled_at: float = 0.0
    """The last time at which the process was dead, frozen or partitioned."""


@dataclass
class World:
    """True time, the API server, and everything that is going to happen."""

    random: random.Random
    on_object_write: Callable[[Host, int], None] = lambda _host, _shard: None
    lost_responses: float = 0.002
    now: float = 0.0
    leases: dict[str, Stored] = field(default_factory=dict)
    _version: int = 0
    _count: int = 0
    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)

    def at(self, time: float, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (time, self._count, action))

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, action = heapq.heappop(self._events)
            action()
        self.now = until

    def local(self, host: Host) -> float:
        return host.offset + host.rate * self.now

    def start(self, host: Host, steps: Steps) -> None:
        self._resume(host, steps, None)

    def _resume(self, host: Host, steps: Steps, value: object) -> None:
        if host.is_dead:
            steps.close()
        elif self.now < host.frozen_until:
            self.at(host.frozen_until, lambda: self._resume(host, steps, value))
        else:
            try:
                wanted = steps.send(value)
            except StopIteration:
                return
            self._wait(host, steps, wanted)

    def _wait(self, host: Host, steps: Steps, wanted: Any) -> None:
        if isinstance(wanted, Sleep):
            self.at(self.now + max(wanted.seconds, 0.0) / host.rate, lambda: self._resume(host, steps, None))
            return
        pending = [True]

        def respond(response: object) -> None:
            if pending.pop() if pending else False:
                self._resume(host, steps, response)

        self.at(self.now + REQUEST_TIMEOUT / host.rate, lambda: respond(None))
        self.at(self.now + self._delay(), lambda: self._arrive(host, wanted, respond))

    def _arrive(self, host: Host, request: Any, respond: Callable[[object], None]) -> None:
        if host.is_partitioned:
            return
        response = self._execute(host, request)
        if self.random.random() >= self.lost_responses:
            self.at(self.now + self._delay(), lambda: None if host.is_partitioned else respond(response))

    def _delay(self) -> float:
        return self.random.uniform(0.001, 0.05) if self.random.random() > 0.02 else self.random.uniform(0.05, MAX_DELAY)

    def _execute(self, host: Host, request: Any) -> object:
        match request:
            case Get(name):
                return self.leases.get(name, Stored(0, LeaseSpec()))
            case ListAll():
                return dict(self.leases)
            case Put(name, version, spec):
                stored = self.leases.get(name)
                if (0 if stored is None else stored.version) != version:
                    return Conflict()
                self._version += 1
                self.leases[name] = Stored(self._version, spec)
                return self.leases[name]
            case Delete(name):
                self.leases.pop(name, None)
                return True
            case ObjectWrite(shard):
                self.on_object_write(host, shard)
                return True
            case _:
                raise AssertionError(request)
