"""A target's scale: found by the reference in a spec, read, and written.

Reading costs no request where the target's kind is watched. Writing follows upstream's rule: a conflict is met by
reading again and writing the same number, five times at most; any other refusal is the end.
"""

import asyncio
import random
from contextlib import nullcontext
from typing import Final, TypeAlias

from msgspec.structs import replace

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.client_go_messages import NO_RESOURCE, group_resource, in_words, not_found
from autoscaler.kube.discovery import Discovery, NoMatch, Resource
from autoscaler.kube.errors import Conflict, KubeError, NotFound
from autoscaler.kube.scale_paths import SeenScale, decode_scale
from autoscaler.kube.targets import Targets, target_of
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.observation import Hop, ScaleTarget, TargetUnreadable
from autoscaler.types.record import Record

_MOST_WRITES: Final = 5
_BETWEEN_WRITES: Final = 0.010


class Rescaled(Record):
    """The scale was written."""

    replicas: int
    writes: int = 1
    """How many times it was tried, counting the one that succeeded."""


class NotRescaled(Record):
    """The scale could not be written, and why, as upstream's client says it."""

    message: str


Written: TypeAlias = Rescaled | NotRescaled


class ScaleClient:
    """Reads and writes the scale of whatever an autoscaler refers to."""

    def __init__(self, client: KubeClient, discovery: Discovery, targets: Targets) -> None:
        self._client = client
        self._discovery = discovery
        self._targets = targets

    async def read(self, autoscaler: Autoscaler) -> ScaleTarget | TargetUnreadable:
        """Say how large the target is; no request where its kind is watched."""
        found = await self._find(autoscaler)
        if isinstance(found, TargetUnreadable):
            return found
        seen = await self._see(found, autoscaler)
        return seen if isinstance(seen, TargetUnreadable) else seen.scale

    async def write(self, autoscaler: Autoscaler, replicas: int) -> Written:
        """Make the target so large; never raises for the server's sake."""
        found = await self._find(autoscaler)
        if isinstance(found, TargetUnreadable):
            return NotRescaled(found.message)
        seen = await self._see(found, autoscaler)
        if isinstance(seen, TargetUnreadable):
            return NotRescaled(seen.message)
        store = await self._targets.store(found)
        with nullcontext() if store is None else store.writing(_key(autoscaler)):
            return await self._write(found, autoscaler, seen, replicas)

    async def _find(self, autoscaler: Autoscaler) -> Resource | TargetUnreadable:
        reference, target = autoscaler.spec.scale_target_ref, target_of(autoscaler)
        if reference.api_version.count("/") > 1:
            return TargetUnreadable(f"unexpected GroupVersion string: {reference.api_version}", Hop.REFERENCE)
        try:
            resource = await self._discovery.resource(target.group, target.kind)
        except NoMatch as error:
            return TargetUnreadable(str(error), Hop.MAPPING)
        return resource if resource.scale is not None else TargetUnreadable(NO_RESOURCE)

    async def _see(self, resource: Resource, autoscaler: Autoscaler) -> SeenScale | TargetUnreadable:
        """Look in what is watched, and fetch what is not."""
        namespace, name = autoscaler.metadata.namespace, autoscaler.spec.scale_target_ref.name
        store = await self._targets.store(resource)
        if store is None:
            return await self._fetch(resource, namespace, name)
        seen = store.get(_key(autoscaler))
        return TargetUnreadable(not_found(resource.group, resource.plural, name)) if seen is None else seen

    async def _fetch(self, resource: Resource, namespace: str, name: str) -> SeenScale | TargetUnreadable:
        try:
            return decode_scale(await self._client.get(resource.path(namespace, name, "scale")))
        except KubeError as error:
            if isinstance(error, NotFound) and error.said is None:
                self._discovery.forget(resource)  # not the object is missing, but its kind
            return TargetUnreadable(in_words(error, _asked("get", resource, name)))

    async def _write(self, resource: Resource, autoscaler: Autoscaler, seen: SeenScale, replicas: int) -> Written:
        namespace, name = autoscaler.metadata.namespace, autoscaler.spec.scale_target_ref.name
        path = resource.path(namespace, name, "scale")
        for attempt in range(1, _MOST_WRITES + 1):
            try:
                answer = await self._client.replace(path, _body(resource, namespace, name, seen, replicas))
            except KubeError as error:
                if not isinstance(error, Conflict) or attempt == _MOST_WRITES:
                    return NotRescaled(in_words(error, _asked("put", resource, name)))
                fresh = await self._fetch(resource, namespace, name)
                seen = seen if isinstance(fresh, TargetUnreadable) else fresh
                await asyncio.sleep(_BETWEEN_WRITES * random.uniform(1, 1.1))  # noqa: S311 - spreads load, guards nothing
            else:
                await self._learn(resource, _key(autoscaler), decode_scale(answer), seen)
                return Rescaled(replicas, attempt)
        raise AssertionError("the last attempt returns")

    async def _learn(self, resource: Resource, key: str, written: SeenScale, before: SeenScale) -> None:
        """Let the next look see what was written, even if the watch has not told of it yet."""
        store = await self._targets.store(resource)
        if store is None or not isinstance(written.scale, ScaleTarget):
            return
        if isinstance(before.scale, ScaleTarget):  # a Deployment's own selector is printed otherwise than in its Scale
            written = replace(written, scale=replace(written.scale, selector=before.scale.selector))
        store.hold(key, written.version, written)


def _key(autoscaler: Autoscaler) -> str:
    return f"{autoscaler.metadata.namespace}/{autoscaler.spec.scale_target_ref.name}"


def _body(resource: Resource, namespace: str, name: str, seen: SeenScale, replicas: int) -> Json:
    metadata = {"name": name, "namespace": namespace, "resourceVersion": seen.version, "uid": seen.uid}
    return {"apiVersion": resource.scale, "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas}}


def _asked(verb: str, resource: Resource, name: str) -> str:
    return f"{verb} {group_resource(resource.group, resource.plural)} {name}"
