"""API discovery: the resource of a kind and whether it has a scale subresource.

Groups are discovered one at a time, because autoscalers refer to few of them, and cached. A missing kind is looked up
again after some seconds; a caller that gets 404 for a path invalidates the group.
"""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Final
from weakref import WeakValueDictionary

from cachetools import LRUCache

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import KubeError, NotFound, client_go_message
from autoscaler.kube.objects import decode_response
from autoscaler.kube.paths import api_path
from autoscaler.types.record import Record

_RETRY_INTERVAL: Final = timedelta(seconds=10)
"""How often a group is fetched again for a kind that it did not contain."""

_MAX_GROUPS: Final = 512
"""Groups that are cached; autoscalers may refer to any number of groups that do not exist."""

_MAX_GROUP_LENGTH: Final = 253


class Resource(Record):
    """A served kind: its paths, and the apiVersion of its scale subresource."""

    group: str
    version: str
    plural: str
    kind: str
    scale: str | None = None
    """The apiVersion of its Scale, such as ``autoscaling/v1``; None if it has no scale subresource."""

    @property
    def collection(self) -> str:
        """The path of the collection across all namespaces."""
        return f"{_root(self.group, self.version)}{api_path(self.plural)}"

    def path(self, namespace: str, name: str, subresource: str = "") -> str:
        below = api_path("namespaces", namespace, self.plural, name, *((subresource,) if subresource else ()))
        return f"{_root(self.group, self.version)}{below}"


class NoMatch(Exception):
    """The kind is not served; the message is that of upstream's RESTMapper."""


class _Group(Record):
    kinds: Mapping[str, Resource]
    fetched_at: float
    error: str | None = None


class Discovery:
    """The discovered API groups."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._groups: LRUCache[str, _Group] = LRUCache(_MAX_GROUPS)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Locks of the groups that are being fetched."""

    async def resource(self, group: str, kind: str) -> Resource:
        """Return the resource of a kind in the preferred version; raise NoMatch if the kind is not served."""
        resource = self.cached(group, kind)
        if resource is not None:
            return resource
        no_match = NoMatch(f'no matches for kind "{kind}" in group "{group}"')
        if len(group) > _MAX_GROUP_LENGTH:
            raise no_match
        async with self._locks.setdefault(group, asyncio.Lock()):
            resource = self.cached(group, kind)
            if resource is None and self._may_fetch(group):
                self._groups[group] = await self._fetch(group)
                resource = self.cached(group, kind)
        if resource is None:
            known = self._groups.get(group)
            raise NoMatch(known.error) if known is not None and known.error else no_match
        return resource

    def invalidate(self, resource: Resource) -> None:
        self._groups.pop(resource.group, None)

    def cached(self, group: str, kind: str) -> Resource | None:
        """Return the resource of a kind; None if it is not known without a request."""
        known = self._groups.get(group)
        return None if known is None else known.kinds.get(kind)

    def _may_fetch(self, group: str) -> bool:
        known = self._groups.get(group)
        return known is None or _now() - known.fetched_at >= _RETRY_INTERVAL.total_seconds()

    async def _fetch(self, group: str) -> _Group:
        kinds: dict[str, Resource] = {}
        try:
            for version in await self.versions(group):
                response = await self._client.get(_root(group, version))
                for resource in decode_response("APIResourceList", _resources, group, version, response):
                    kinds.setdefault(resource.kind, resource)
        except NotFound:
            return _Group({}, _now())
        except KubeError as error:
            before = self._groups.get(group)
            known = before.kinds if before else {}
            return _Group({**known, **kinds}, _now(), client_go_message(error, f"get {group or 'api'}"))
        return _Group(kinds, _now())

    async def versions(self, group: str) -> list[str]:
        """Return the versions of a group, the preferred one first; raise a KubeError if they are unknown."""
        if not group:
            return ["v1"]
        return decode_response("APIGroup", _versions, await self._client.get(api_path("apis", group)))


def split_api_version(api_version: str) -> tuple[str, str]:
    """Split ``group/version``; the name of the core group is empty."""
    group, slash, version = api_version.partition("/")
    return (group, version) if slash else ("", api_version)


def group_resource(group: str, plural: str) -> str:
    """Return the resource name as shown in messages: ``deployments.apps``, or ``pods`` in the core group."""
    return f"{plural}.{group}" if group else plural


def _root(group: str, version: str) -> str:
    return api_path("apis", group, version) if group else api_path("api", version)


def _versions(content: Json) -> list[str]:
    preferred = (content.get("preferredVersion") or {}).get("version")
    served = [str(entry["version"]) for entry in content.get("versions") or ()]
    return sorted(served, key=lambda version: version != preferred)


def _resources(group: str, version: str, content: Json) -> list[Resource]:
    resources = content.get("resources") or ()
    scales = {
        entry["name"].removesuffix("/scale"): f"{entry.get('group') or group}/{entry.get('version') or version}"
        for entry in resources
        if entry["name"].endswith("/scale") and entry.get("kind") == "Scale"
    }
    return [
        Resource(group, version, entry["name"], str(entry["kind"]), scales.get(entry["name"]))
        for entry in resources
        if "/" not in entry["name"]
    ]


def _now() -> float:
    return asyncio.get_running_loop().time()
