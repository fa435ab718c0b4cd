"""Which shards a process acquires and releases, so that every process has its fair share. Pure.

All processes compute the same quotas from the same observation, so that they need not talk to each other. Where their
observations differ, two processes try to acquire the same shard, and its Lease has one holder all the same.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from hashlib import blake2b

from autoscaler.types.record import Record


class Assignment(Record):
    """What a process does next."""

    acquire: tuple[int, ...] = ()
    release: tuple[int, ...] = ()
    is_complete: bool = True
    """Whether every shard has a holder and this process has its quota."""


def shard_of(namespace: str, shards: int) -> int:
    """Return the shard of a namespace; the same in every process and version."""
    return int.from_bytes(blake2b(namespace.encode(), digest_size=8).digest()) % shards


def assign(me: str, members: Collection[str], holders: Sequence[str], overdue: Collection[int] = ()) -> Assignment:
    """Return what ``me`` acquires and releases.

    ``holders`` has the holder of each shard, empty for a free one. A holder that is not a member, because it does not
    respond, keeps its shards until their Leases expire; the members share the others. The first quotas of
    ceil(shards / members) belong to the members that hold most, so that as few shards as possible move. A shard in
    ``overdue`` has been free for so long that the member it is assigned to is not trusted to acquire it.
    """
    everyone = {*members, me}
    counts = Counter(holder for holder in holders if holder in everyone)
    ranked = sorted(everyone, key=lambda member: (-counts[member], member))
    shared = sum(not holder or holder in everyone for holder in holders)
    floor, remainder = divmod(shared, len(ranked))
    quotas = {member: floor + (rank < remainder) for rank, member in enumerate(ranked)}
    own = [shard for shard, holder in enumerate(holders) if holder == me]
    free = [shard for shard, holder in enumerate(holders) if not holder]
    # Every missing shard of a member is one place; members with the fewest shards come first.
    places = sorted((count, member) for member in ranked for count in range(counts[member], quotas[member]))
    assigned = [shard for shard, (_, member) in zip(free, places, strict=False) if member == me]
    return Assignment(
        acquire=tuple(sorted({*assigned, *(shard for shard in free if shard in overdue)})),
        release=tuple(own[quotas[me] :]),
        is_complete=not free and len(own) == quotas[me],
    )
