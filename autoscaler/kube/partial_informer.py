"""An informer that stores only the objects of some namespaces, which can change while it runs.

The API server cannot select objects by the shard of their namespace, so all of them are received, and those of other
shards are dropped one by one.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.freshness import Freshness
from autoscaler.kube.informer import Informer, _Stored
from autoscaler.kube.listing import ListWatch, list_objects
from autoscaler.kube.objects import key_of

T = TypeVar("T")

Accepts: TypeAlias = Callable[[str], bool]
"""Returns whether the objects of a namespace are stored."""

_DROPPED: Final[tuple[str, _Stored[Any]]] = ("", _Stored("", "", None))
"""What a dropped object is reduced to: no object has this key."""


def accept_all(_: str) -> bool:
    return True


class PartialInformer(Informer[T]):
    """An informer of the namespaces that ``accepts`` returns True for."""

    def __init__(
        self, client: KubeClient, source: ListWatch, transform: Callable[[Json], T | None], accepts: Accepts
    ) -> None:
        super().__init__(client, source, transform)
        self._accepts = accepts
        self._deleted: set[str] | None = None
        """Keys that were deleted while `refresh` is running; None while it is not."""

    async def refresh(self) -> None:
        """List the collection, so that the store contains all accepted objects as of now; raise a KubeError.

        Necessary after further namespaces are accepted: the watch reports only what changes afterwards.
        """
        self._deleted = set()
        freshness = Freshness(self._source.resource, self._client.now)
        try:
            listed = await list_objects(self._client, self._source, freshness, self._handle_invalid, self._reduce)
            for key, new in dict[str, _Stored[T | None]](listed.objects).items():
                if key not in self._deleted and not self._is_outdated(key, new.resource_version):
                    self._update(key, new)
        finally:
            self._deleted = None

    def remove_unaccepted(self) -> None:
        """Remove the objects of namespaces that are no longer accepted."""
        for key in self.keys():
            if not self._accepts(key.partition("/")[0]):
                self._delete(key)

    def _reduce(self, content: Json) -> "tuple[str, _Stored[T | None]]":
        return super()._reduce(content) if self._accepts(key_of(content).partition("/")[0]) else _DROPPED

    def _delete(self, key: str) -> None:
        if self._deleted is not None:
            self._deleted.add(key)
        super()._delete(key)
