"""Which node to ask: the only one, the one that sentinels call the master, or in a cluster the one that has the key."""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeVar

from redis.crc import key_slot
from redis.exceptions import AskError, MovedError

from adapter.backends.connection.address import Address
from adapter.backends.redis.client import Command, Login, Said, Wire
from adapter.errors import BackendError, BackendRejected, BackendUnreachable

T = TypeVar("T")
_MOST_HOPS: Final = 5


class Nodes(Protocol):
    """All that there are."""

    async def ask(self, key: bytes, *commands: Command) -> list[Said]:
        """Ask about a key where it is; errors are among the answers."""

    async def every(self) -> Sequence[Wire]:
        """Give each node that has keys of its own."""

    async def aclose(self) -> None:
        """Let go of connections."""


class Single:
    """One node; ``where`` says which, before each connection."""

    def __init__(self, where: Callable[[], Awaitable[Address]], login: Login, connections: int) -> None:
        self._wire = Wire(where, login, connections)

    async def ask(self, key: bytes, *commands: Command) -> list[Said]:  # noqa: ARG002 - it has all keys
        """Ask it."""
        return await self._wire.ask_each(*commands)

    async def every(self) -> Sequence[Wire]:
        """Give it."""
        return (self._wire,)

    async def aclose(self) -> None:
        """Let go of connections."""
        await self._wire.aclose()


class InTurn:
    """Several that know the same. Who does not answer is asked last the next time."""

    def __init__(self, wires: Sequence[Wire]) -> None:
        self._wires = deque(wires)

    async def ask(self, ask: Callable[[Wire], Awaitable[T]]) -> T:
        """Ask the first that can be reached."""
        failure: BackendError = BackendUnreachable("not asked yet")
        for wire in tuple(self._wires):
            try:
                return await ask(wire)
            except BackendUnreachable as error:
                failure = error
                self._wires.rotate(-1)
            except BaseException:
                self._wires.rotate(-1)
                raise
        raise failure


class Cluster:
    """Nodes that say which of them has a key."""

    def __init__(self, seeds: Sequence[Address], login: Login, connections: int) -> None:
        self._login, self._connections = login, connections
        self._wires: dict[Address, Wire] = {}
        self._homes: dict[int, Address] = {}
        """Where the keys of a slot are, as far as we were told."""

        self._seeds = InTurn([self._wire(seed) for seed in seeds])

    async def ask(self, key: bytes, *commands: Command) -> list[Said]:
        """Ask the node that has the key, sent on by others until it is found."""
        slot = key_slot(key)
        for _ in range(_MOST_HOPS):
            home = self._homes.get(slot)
            try:
                answers = await (
                    self._wire(home).ask_each(*commands)
                    if home
                    else self._seeds.ask(lambda wire: wire.ask_each(*commands))
                )
            except BackendError:
                self._homes.pop(slot, None)  # another may have it by now
                raise
            sent_on = next((each for each in answers if isinstance(each, AskError)), None)
            if sent_on is None:
                return answers
            there = Address(sent_on.host or (home.host if home else ""), int(sent_on.port))
            if not there.host:
                raise BackendRejected("its nodes do not say where the key is")
            if isinstance(sent_on, MovedError):
                self._homes[slot] = there
            else:  # the slot is on its way there, and this key is there already
                asking = [word for command in commands for word in (("ASKING",), command)]
                return (await self._wire(there).ask_each(*asking))[1::2]
        raise BackendRejected("its nodes do not agree on who has the key")

    async def every(self) -> Sequence[Wire]:
        """Give each master, by what any node knows."""
        (said,) = await self._seeds.ask(lambda wire: wire.ask(("CLUSTER", "SLOTS")))
        return [self._wire(address) for address in masters(said)]

    async def aclose(self) -> None:
        """Let go of connections."""
        for wire in self._wires.values():
            await wire.aclose()

    def _wire(self, address: Address) -> Wire:
        if address not in self._wires:
            self._wires[address] = Wire(always(address), self._login, self._connections)
        return self._wires[address]


class Sentinels:
    """They know which node is the master."""

    def __init__(self, seeds: Sequence[Address], login: Login, master: str) -> None:
        self._wires = [Wire(always(seed), login, 1) for seed in seeds]
        self._seeds = InTurn(self._wires)
        self._master = master

    async def where(self) -> Address:
        """Ask where the master is."""
        (said,) = await self._seeds.ask(
            lambda wire: wire.ask(("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._master)),
        )
        match said:
            case [bytes() as host, bytes() as port] if port.isdigit():
                return Address(host.decode("utf-8", "replace"), int(port))
            case None:
                raise BackendRejected("the sentinels know no such master")
            case _:
                raise BackendRejected("it answers, but not as a sentinel does")

    async def aclose(self) -> None:
        """Let go of connections."""
        for wire in self._wires:
            await wire.aclose()


def masters(said: Said) -> list[Address]:
    """Read CLUSTER SLOTS: ranges of slots, each with its master first and then its replicas."""
    found: dict[Address, None] = {}
    for each in said if isinstance(said, list) else [None]:
        match each:
            case [int(), int(), [bytes() as host, int() as port, *_], *_] if host:
                found[Address(host.decode("utf-8", "replace"), port)] = None
            case _:
                raise BackendRejected("it answers, but not as a node of a cluster does")
    return list(found)


def always(address: Address) -> Callable[[], Awaitable[Address]]:
    """Make a function that says where a node is that does not move."""

    async def where() -> Address:
        return address

    return where
