"""Which resource a kind is, and whether it can be scaled: built-ins, custom resources and aggregated ones alike.

Asked one API group at a time, since autoscalers name few, and remembered until something proves it wrong: a kind that
is not there is looked for again, and a path that no longer leads anywhere is forgotten by whoever found that out.
"""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.client_go_messages import in_words
from autoscaler.kube.errors import KubeError, NotFound
from autoscaler.types.record import Record

_LOOK_AGAIN: Final = timedelta(seconds=10)
"""How often a group is asked again for a kind that it did not have."""


class Resource(Record):
    """A kind as it is served: where its objects are, and in which form their scale is written."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    scale: str | None = None
    """The apiVersion of its Scale, such as ``autoscaling/v1``; None: it cannot be scaled."""

    @property
    def root(self) -> str:
        """Where the group's version is served."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def everywhere(self) -> str:
        """Where the objects of all namespaces are listed."""
        return f"{self.root}/{self.plural}"

    def path(self, namespace: str, name: str, subresource: str = "") -> str:
        """Say where one object is, or a subresource of it."""
        place = f"{self.root}/namespaces/{namespace}/{self.plural}/{name}"
        return f"{place}/{subresource}" if subresource else place


class NoMatch(Exception):
    """No resource is known for a kind, in the words of upstream's RESTMapper."""


class _Group(Record):
    kinds: Mapping[str, Resource]
    asked_at: float
    error: str | None = None


class Discovery:
    """What the API server serves, as far as someone asked."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._groups: dict[str, _Group] = {}
        self._asking: dict[str, asyncio.Lock] = {}

    async def resource(self, group: str, kind: str) -> Resource:
        """Find the resource of a kind, in the version that the server prefers; raise NoMatch if there is none."""
        found = self._known(group, kind)
        if found is not None:
            return found
        async with self._asking.setdefault(group, asyncio.Lock()):
            found = self._known(group, kind)
            if found is None and self._may_ask(group):
                self._groups[group] = await self._ask(group)
                found = self._known(group, kind)
        if found is None:
            raise NoMatch(self._groups[group].error or f'no matches for kind "{kind}" in group "{group}"')
        return found

    def forget(self, resource: Resource) -> None:
        """Look again next time: what was known of this resource's group is no longer so."""
        self._groups.pop(resource.group, None)

    def _known(self, group: str, kind: str) -> Resource | None:
        known = self._groups.get(group)
        return None if known is None else known.kinds.get(kind)

    def _may_ask(self, group: str) -> bool:
        known = self._groups.get(group)
        return known is None or _now() - known.asked_at >= _LOOK_AGAIN.total_seconds()

    async def _ask(self, group: str) -> _Group:
        before = self._groups.get(group)
        kinds: dict[str, Resource] = {}
        try:
            for version in await self._versions(group):
                root = f"/apis/{group}/{version}" if group else f"/api/{version}"
                for resource in _resources(group, version, await self._client.get(root)):
                    kinds.setdefault(resource.kind, resource)
        except NotFound:
            return _Group({}, _now())
        except KubeError as error:
            kept = before.kinds if before else {}
            return _Group({**kept, **kinds}, _now(), in_words(error, f"get {group or 'api'}"))
        return _Group(kinds, _now())

    async def _versions(self, group: str) -> list[str]:
        """List a group's versions, the preferred one first."""
        if not group:
            return ["v1"]
        answer = await self._client.get(f"/apis/{group}")
        preferred = (answer.get("preferredVersion") or {}).get("version")
        served = [one["version"] for one in answer.get("versions") or ()]
        return sorted(served, key=lambda version: version != preferred)


def split_api_version(api_version: str) -> tuple[str, str]:
    """Split ``group/version``; the core group has no name."""
    group, slash, version = api_version.partition("/")
    return (group, version) if slash else ("", api_version)


def _resources(group: str, version: str, answer: Json) -> Iterator[Resource]:
    listed = answer.get("resources") or ()
    scales = {
        one["name"].removesuffix("/scale"): f"{one.get('group') or group}/{one.get('version') or version}"
        for one in listed
        if one["name"].endswith("/scale") and one.get("kind") == "Scale"
    }
    for one in listed:
        if "/" not in one["name"]:
            yield Resource(
                group, version, one["name"], one["kind"], bool(one.get("namespaced")), scales.get(one["name"])
            )


def _now() -> float:
    return asyncio.get_running_loop().time()
