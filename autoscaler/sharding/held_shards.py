"""The shards that one process controls. Pure."""

from autoscaler.sharding.assignment import shard_of
from autoscaler.types.record import Record


class HeldShards(Record):
    """The shards of one process; by default all, as without shards."""

    total: int = 1
    held: tuple[int, ...] = (0,)

    def contains(self, namespace: str) -> bool:
        """Return whether the autoscalers of a namespace are controlled by the process."""
        return shard_of(namespace, self.total) in self.held
