"""A cache with a limit on the total weight of its entries, in which no namespace can evict the entries of others.

If the limit is exceeded, the least recently used entry of the namespace with the largest weight is evicted.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class _Partition(OrderedDict[Key, tuple[Value, int]], Generic[Key, Value]):
    """The entries of one namespace, with their weights."""

    weight = 0


class NamespaceCache(MutableMapping[Key, Value]):
    """Values by key."""

    def __init__(
        self,
        max_weight: int,
        namespace: Callable[[Key], str],
        weight: Callable[[Key, Value], int] = lambda _key, _value: 1,
    ) -> None:
        self._max_weight = max_weight
        self._namespace = namespace
        self._weigh = weight
        self._weight = 0
        self._partitions: dict[str, _Partition[Key, Value]] = {}

    def __getitem__(self, key: Key) -> Value:
        partition = self._partitions[self._namespace(key)]
        value = partition[key][0]
        partition.move_to_end(key)
        return value

    def __setitem__(self, key: Key, value: Value) -> None:
        """Store a value; one that weighs more than the whole cache is not stored."""
        self.pop(key, None)
        weight = self._weigh(key, value)
        if weight > self._max_weight:
            return
        namespace = self._namespace(key)
        partition = self._partitions.get(namespace)
        if partition is None:
            partition = self._partitions[namespace] = _Partition()
        partition[key] = value, weight
        partition.weight += weight
        self._weight += weight
        while self._weight > self._max_weight:
            heaviest = max(self._partitions.values(), key=lambda each: each.weight)
            del self[next(iter(heaviest))]

    def __delitem__(self, key: Key) -> None:
        namespace = self._namespace(key)
        partition = self._partitions[namespace]
        _, weight = partition.pop(key)
        partition.weight -= weight
        self._weight -= weight
        if not partition:
            del self._partitions[namespace]

    def __iter__(self) -> Iterator[Key]:
        return (key for key, _ in self.entries())

    def entries(self) -> list[tuple[Key, Value]]:
        """Return all entries; this is no use of them."""
        return [(key, value) for partition in self._partitions.values() for key, (value, _) in partition.items()]

    def __len__(self) -> int:
        return sum(map(len, self._partitions.values()))
