"""Finds, reads and writes the scale of an autoscaler's target.

Reading needs no request if the target's kind is watched. Writing follows upstream: after a conflict the scale is read
again and the same replicas are written, at most five times; any other error is final.

A write without a response may have been applied, or may be applied later, for example after a slow webhook.
`ScaleClient.outcome` then fetches the scale. Each write requires the resourceVersion of the scale that it changes, so
at most one of several writes with the same resourceVersion is applied, and none once the target has another version.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from typing import Final, TypeAlias

from msgspec.structs import replace

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.discovery import Discovery, NoMatch, Resource, group_resource
from autoscaler.kube.errors import NO_RESOURCE, Conflict, KubeError, NotFound, client_go_message, is_outcome_unknown
from autoscaler.kube.informer import Informer
from autoscaler.kube.objects import decode_response, is_older
from autoscaler.kube.scale_paths import ObservedScale, decode_scale
from autoscaler.kube.targets import TargetInformers, target_of
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.history import UnknownRescale
from autoscaler.types.observation import ScaleTarget, TargetReadStage, UnavailableTarget
from autoscaler.types.record import Record

_MAX_ATTEMPTS: Final = 5
_RETRY_SECONDS: Final = 0.010
_NOT_LEADER: Final = "this process is no longer the leader"


class Rescaled(Record):
    """The scale was written."""

    replicas: int
    attempts: int = 1


class NotRescaled(Record):
    """The scale could not be written; the message has client-go's text."""

    message: str


class OutcomeUnknown(Record):
    """The response to the write was lost: it may have been applied, or may be applied later."""

    message: str
    resource_version: str
    """The resourceVersion that the write requires."""


RescaleResult: TypeAlias = Rescaled | NotRescaled | OutcomeUnknown


class NotApplied(Record):
    """Certainty that a rescale was not applied and cannot be applied any more."""


class ScaleClient:
    """Reads and writes the scale of autoscaler targets."""

    def __init__(
        self,
        client: KubeClient,
        discovery: Discovery,
        targets: TargetInformers,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self._client = client
        self._may_write = may_write
        self._discovery = discovery
        self._targets = targets

    def read_now(self, autoscaler: Autoscaler) -> ScaleTarget | UnavailableTarget | None:
        """Return the scale of a target whose kind is watched; None if `read` would have to wait or send a request."""
        reference, target = autoscaler.spec.scale_target_ref, target_of(autoscaler)
        resource = self._discovery.cached(target.group, target.kind)
        if resource is None or resource.scale is None or reference.api_version.count("/") > 1:
            return None
        informer = self._targets.synced_informer(resource)
        return None if informer is None else _scale(_watched(informer, resource, autoscaler))

    async def read(self, autoscaler: Autoscaler) -> ScaleTarget | UnavailableTarget:
        resource = await self._resource(autoscaler)
        if isinstance(resource, UnavailableTarget):
            return resource
        return _scale(await self._observe(resource, autoscaler))

    async def write(self, autoscaler: Autoscaler, replicas: int, *, retry_conflicts: bool = True) -> RescaleResult:
        """Write the replicas of the target; a failure is returned, not raised.

        Do not retry conflicts while the outcome of an earlier rescale is unknown: the conflict can be its result.
        """
        resource = await self._resource(autoscaler)
        if isinstance(resource, UnavailableTarget):
            return NotRescaled(resource.message)
        observed = await self._observe(resource, autoscaler)
        if isinstance(observed, UnavailableTarget):
            return NotRescaled(observed.message)
        informer = await self._targets.informer(resource)
        with nullcontext() if informer is None else informer.own_write(_key(autoscaler)):
            return await self._write(resource, autoscaler, observed, replicas, retry_conflicts=retry_conflicts)

    async def outcome(
        self, autoscaler: Autoscaler, unknown: Sequence[UnknownRescale], *, in_flight: bool
    ) -> UnknownRescale | NotApplied | None:
        """Return the rescale that was applied, or that none was; None if that is not known yet.

        The scale is fetched unless the informer has a conclusive one. ``in_flight`` is whether the API server can still
        be handling one of the writes.
        """
        resource = await self._resource(autoscaler)
        if isinstance(resource, UnavailableTarget):
            return None
        informer = await self._targets.informer(resource)
        known = None if informer is None else informer.get(_key(autoscaler))
        if known is not None and (outcome := _outcome(known, unknown, in_flight=True)) is not None:
            return outcome
        name = autoscaler.spec.scale_target_ref.name
        observed = await self._fetch(resource, autoscaler.metadata.namespace, name)
        if isinstance(observed, UnavailableTarget):
            return None
        await self._store(resource, _key(autoscaler), observed)
        return _outcome(observed, unknown, in_flight=in_flight)

    async def _resource(self, autoscaler: Autoscaler) -> Resource | UnavailableTarget:
        reference, target = autoscaler.spec.scale_target_ref, target_of(autoscaler)
        if reference.api_version.count("/") > 1:
            message = f"unexpected GroupVersion string: {reference.api_version}"
            return UnavailableTarget(message, TargetReadStage.REFERENCE)
        try:
            resource = await self._discovery.resource(target.group, target.kind)
        except NoMatch as error:
            return UnavailableTarget(str(error), TargetReadStage.MAPPING)
        return resource if resource.scale is not None else UnavailableTarget(NO_RESOURCE)

    async def _observe(self, resource: Resource, autoscaler: Autoscaler) -> ObservedScale | UnavailableTarget:
        """Return the scale from the informer, or fetch it if the kind is not watched."""
        informer = await self._targets.informer(resource)
        if informer is None:
            return await self._fetch(resource, autoscaler.metadata.namespace, autoscaler.spec.scale_target_ref.name)
        return _watched(informer, resource, autoscaler)

    async def _fetch(self, resource: Resource, namespace: str, name: str) -> ObservedScale | UnavailableTarget:
        try:
            response = await self._client.get(resource.path(namespace, name, "scale"))
            return decode_response("Scale", decode_scale, response)
        except KubeError as error:
            if isinstance(error, NotFound) and error.server_message is None:
                self._discovery.invalidate(resource)  # a 404 without Status: the path, not the object, is missing
            return UnavailableTarget(client_go_message(error, _action("get", resource, name)))

    async def _write(
        self,
        resource: Resource,
        autoscaler: Autoscaler,
        observed: ObservedScale,
        replicas: int,
        *,
        retry_conflicts: bool,
    ) -> RescaleResult:
        namespace, name = autoscaler.metadata.namespace, autoscaler.spec.scale_target_ref.name
        path = resource.path(namespace, name, "scale")
        for attempt in range(1, _MAX_ATTEMPTS + 1):
            if not self._may_write():  # reading the scale can take longer than the Lease is valid
                return NotRescaled(_NOT_LEADER)
            try:
                response = await self._client.replace(path, _body(resource, namespace, name, observed, replicas))
            except KubeError as error:
                message = client_go_message(error, _action("put", resource, name))
                if is_outcome_unknown(error) or (isinstance(error, Conflict) and not retry_conflicts):
                    return OutcomeUnknown(message, observed.resource_version)
                if not isinstance(error, Conflict) or attempt == _MAX_ATTEMPTS:
                    return NotRescaled(message)
                fresh = await self._fetch(resource, namespace, name)
                observed = observed if isinstance(fresh, UnavailableTarget) else fresh
                await asyncio.sleep(_RETRY_SECONDS * random.uniform(1, 1.1))  # noqa: S311 - spreads load, not security
            else:
                await self._apply_write(resource, _key(autoscaler), response)
                return Rescaled(replicas, attempt)
        raise AssertionError("unreachable: the last attempt returns")

    async def _apply_write(self, resource: Resource, key: str, response: Json) -> None:
        with suppress(KubeError):  # the scale was written; the watch event will tell the result
            await self._store(resource, key, decode_response("Scale", decode_scale, response))

    async def _store(self, resource: Resource, key: str, scale: ObservedScale) -> None:
        """Store a scale in the informer, so that the next read sees it before the watch event arrives."""
        informer = await self._targets.informer(resource)
        before = None if informer is None else informer.get(key)
        if informer is None or before is None or not isinstance(scale.scale, ScaleTarget):
            return
        if isinstance(before.scale, ScaleTarget):  # the selector is printed differently in a Deployment and its Scale
            scale = replace(scale, scale=replace(scale.scale, selector=before.scale.selector))
        informer.apply_write(key, scale.uid, scale.resource_version, scale)


def _watched(
    informer: Informer[ObservedScale], resource: Resource, autoscaler: Autoscaler
) -> ObservedScale | UnavailableTarget:
    observed = informer.get(_key(autoscaler))
    if observed is not None:
        return observed
    name = autoscaler.spec.scale_target_ref.name
    return UnavailableTarget(f'{group_resource(resource.group, resource.plural)} "{name}" not found')


def _scale(observed: ObservedScale | UnavailableTarget) -> ScaleTarget | UnavailableTarget:
    return observed if isinstance(observed, UnavailableTarget) else observed.scale


def _outcome(
    observed: ObservedScale, unknown: Sequence[UnknownRescale], *, in_flight: bool
) -> UnknownRescale | NotApplied | None:
    replicas = observed.scale.replicas if isinstance(observed.scale, ScaleTarget) else None
    if applied := [rescale for rescale in unknown if rescale.replicas == replicas]:
        return applied[-1]
    return NotApplied() if not in_flight or all(_conflicts(rescale, observed) for rescale in unknown) else None


def _conflicts(rescale: UnknownRescale, observed: ObservedScale) -> bool:
    """Return whether the API server would refuse the write, because the target has a later version."""
    required, current = rescale.resource_version, observed.resource_version
    return bool(required) and current != required and not is_older(current, required)


def _key(autoscaler: Autoscaler) -> str:
    return f"{autoscaler.metadata.namespace}/{autoscaler.spec.scale_target_ref.name}"


def _body(resource: Resource, namespace: str, name: str, observed: ObservedScale, replicas: int) -> Json:
    metadata = {"name": name, "namespace": namespace, "resourceVersion": observed.resource_version, "uid": observed.uid}
    return {"apiVersion": resource.scale, "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas}}


def _action(verb: str, resource: Resource, name: str) -> str:
    return f"{verb} {group_resource(resource.group, resource.plural)} {name}"
