"""Selection of the node for a command: the master behind Sentinel, or the cluster node with the key.

The clients of redis-py for clusters and sentinels are not used: they need permission for more commands (``COMMAND`` and
``SENTINEL MASTERS``), load certificates in the event loop, and hide the error of a sentinel behind their own.
"""

from collections.abc import Sequence
from typing import Final

from redis.crc import key_slot
from redis.exceptions import AskError, MovedError

from adapter.backends.connection.address import Address
from adapter.backends.connection.failover import Failover
from adapter.backends.redis.client import Command, RedisConnectionPool, RedisLogin, Reply
from adapter.backends.redis.errors import UNEXPECTED
from adapter.errors import BackendError, BackendRejected

_MAX_REDIRECTS: Final = 5


class ClusterNodes:
    """The nodes of a Redis Cluster, discovered from seed nodes and redirects."""

    def __init__(self, seeds: Sequence[Address], login: RedisLogin, max_connections: int) -> None:
        self._login, self._max_connections = login, max_connections
        self._pools: dict[Address, RedisConnectionPool] = {}
        self._slot_owners: dict[int, Address] = {}  # known owners of hash slots, from MOVED redirects
        self._seeds = Failover([self._pool(seed) for seed in seeds])

    async def execute(self, *commands: Command, key: bytes = b"") -> list[Reply]:
        """Execute commands on the node that has the key, following redirects."""
        slot = key_slot(key)
        for _ in range(_MAX_REDIRECTS):
            owner = self._slot_owners.get(slot)
            try:
                replies = await (
                    self._pool(owner).execute(*commands)
                    if owner
                    else self._seeds.run(lambda pool: pool.execute(*commands))
                )
            except BackendError:
                self._slot_owners.pop(slot, None)  # the slot may have a new owner after a failover
                raise
            # MovedError is a subclass of AskError.
            redirect = next((reply for reply in replies if isinstance(reply, AskError)), None)
            if redirect is None:
                return replies
            target = Address(redirect.host or (owner.host if owner else ""), int(redirect.port))
            if not target.host:
                raise BackendRejected("the cluster redirects to a node without a host name")
            if isinstance(redirect, MovedError):
                self._slot_owners[slot] = target
            else:  # ASK: the slot is being migrated, and this key is on the target already
                with_asking = [part for command in commands for part in (("ASKING",), command)]
                return (await self._pool(target).execute(*with_asking))[1::2]
        raise BackendRejected(f"more than {_MAX_REDIRECTS} redirects for one key: the cluster is inconsistent")

    async def masters(self) -> Sequence[RedisConnectionPool]:
        """Return all masters, as listed by any reachable seed."""
        slots = await self._seeds.run(lambda pool: pool.execute_one("CLUSTER", "SLOTS"))
        return [self._pool(address) for address in parse_slots(slots)]

    async def aclose(self) -> None:
        for pool in self._pools.values():
            await pool.aclose()

    def _pool(self, address: Address) -> RedisConnectionPool:
        if address not in self._pools:
            self._pools[address] = RedisConnectionPool(address, self._login, self._max_connections)
        return self._pools[address]


class SentinelMaster(RedisConnectionPool):
    """The current master, found with Redis Sentinel before each connection, because a failover changes its address."""

    def __init__(
        self, sentinels: Sequence[RedisConnectionPool], name: str, login: RedisLogin, max_connections: int
    ) -> None:
        super().__init__(Address("", 0), login, max_connections)  # the address is not used: see resolve()
        self._sentinels, self._servers, self._name = sentinels, Failover(sentinels), name

    async def resolve(self) -> Address:
        """Return the address of the current master, as reported by any reachable sentinel."""
        command = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._name)
        match await self._servers.run(lambda sentinel: sentinel.execute_one(*command)):
            case [bytes() as host, bytes() as port] if port.isdigit():
                return Address(host.decode("utf-8", "replace"), int(port))
            case None:
                raise BackendRejected("the sentinels do not know the master: check sentinel.master")
            case _:
                raise BackendRejected(UNEXPECTED, detail=command[1])

    async def aclose(self) -> None:
        for pool in self._sentinels:
            await pool.aclose()
        await super().aclose()


def parse_slots(reply: Reply) -> list[Address]:
    """Return the masters in a reply to CLUSTER SLOTS: slot ranges, each with its master first, then the replicas."""
    masters: dict[Address, None] = {}
    for slot_range in reply if isinstance(reply, list) else [None]:
        match slot_range:
            case [int(), int(), [bytes() as host, int() as port, *_], *_] if host:
                masters[Address(host.decode("utf-8", "replace"), port)] = None
            case _:
                raise BackendRejected(UNEXPECTED, detail="CLUSTER SLOTS")
    return list(masters)
