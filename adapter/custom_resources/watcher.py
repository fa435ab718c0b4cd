"""The rules of ``ExternalMetric`` objects, updated as objects are created, changed and deleted.

An object is parsed once, and again only when its spec or the configured backends change. Its problems affect no other
object, whatever it contains.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Final, TypeAlias

import msgspec

from adapter.backends.configuration import BackendEntry
from adapter.config.model import TenantLimits
from adapter.custom_resources.budget import within_budget
from adapter.custom_resources.external_metric import GROUP_VERSION, PLURAL, rule_from_spec
from adapter.custom_resources.loop_share import LoopShare
from adapter.custom_resources.rejection import BUDGET_EXCEEDED, INVALID, Rejection, RejectionLog
from adapter.custom_resources.watched_object import ExternalMetricObject, read_object
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.rules.rule import TenantRule
from adapter.rules.rule_registry import RuleRegistry
from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import KubeError
from autoscaler.kube.informer import Informer
from autoscaler.kube.paths import api_path
from autoscaler.kube.watch import ListWatch

_log = logging.getLogger(__name__)

PATH: Final = f"/apis/{GROUP_VERSION}/{PLURAL}"
_RETRY_SECONDS: Final = 30.0
_Parsed: TypeAlias = TenantRule | tuple[Problem, ...]


class ExternalMetricWatcher:
    """Updates the object rules of a registry from the objects of the cluster, while ``run`` is running."""

    def __init__(
        self,
        client: KubeClient,
        registry: RuleRegistry,
        backends: Mapping[str, BackendEntry],
        limits: TenantLimits,
        on_rejection: Callable[[str], None] = lambda _reason: None,
    ) -> None:
        """Create a watcher; ``on_rejection`` is called with the reason whenever an object is rejected."""
        self.store = Informer(client, ListWatch(PATH), read_object)
        self.rules: dict[str, TenantRule] = {}
        """The rules in force, by object key."""

        self.rejections: dict[str, Rejection] = {}
        """The objects that are not in force, by key."""

        self._client = client
        self._registry = registry
        self._backends = backends
        self._limits = limits
        self._log = RejectionLog(on_rejection)
        self._by_namespace: dict[str, set[str]] = {}
        self._parsed: dict[str, tuple[bytes, _Parsed]] = {}
        """The spec and the result of parsing it, by object key."""

        self._changed_namespaces: dict[str, None] = {}
        """In the order of their changes, so that no namespace delays the others by frequent changes."""

        self._has_changes = asyncio.Event()
        self._share = LoopShare()
        self.store.add_listener(self._on_change)

    @property
    def problems(self) -> dict[str, tuple[Problem, ...]]:
        """The problems of the objects that are not in force, by key."""
        return {key: rejection.problems for key, rejection in self.rejections.items()}

    @property
    def is_updating(self) -> bool:
        """Whether changes of objects or of the configuration have not taken effect yet."""
        return self._has_changes.is_set()

    async def run(self) -> None:
        for namespace in self._by_namespace:
            self._mark_changed(namespace)  # an update that was interrupted is repeated
        async with asyncio.TaskGroup() as group:
            group.create_task(self.store.run())
            group.create_task(self._update_changed())

    def configure(self, backends: Mapping[str, BackendEntry], limits: TenantLimits) -> None:
        """Apply a changed configuration; the objects are parsed again if the backends have changed."""
        if backends == self._backends and limits == self._limits:
            return
        if backends != self._backends:
            self._parsed.clear()
        self._backends, self._limits = backends, limits
        for namespace in self._by_namespace:
            self._mark_changed(namespace)

    def apply_response(self, content: Json) -> None:
        """Store the response to a write of a status; it can be the first to contain a change of the spec."""
        key = read_object(content).key
        before, after = self.store.get(key), self.store.apply_response(content)
        if before is None or after is None:
            return
        if before.spec_hash != after.spec_hash:
            self._on_change(key)
        elif before.is_released:
            after.release_spec()

    def _on_change(self, key: str) -> None:
        namespace = key.partition("/")[0]
        if self.store.get(key) is None:
            self._forget(key, namespace)
        else:
            self._by_namespace.setdefault(namespace, set()).add(key)
        self._mark_changed(namespace)

    def _forget(self, key: str, namespace: str) -> None:
        """Remove a deleted object."""
        self._parsed.pop(key, None)
        self._set_rule(key, None)
        self._registry.refuse_object(key, "")
        self.rejections.pop(key, None)
        keys = self._by_namespace.get(namespace, set())
        keys.discard(key)
        if not keys:
            self._by_namespace.pop(namespace, None)

    def _mark_changed(self, namespace: str) -> None:
        self._changed_namespaces[namespace] = None
        self._has_changes.set()

    async def _update_changed(self) -> None:
        while True:
            await self._has_changes.wait()
            self._share.start()
            while self._changed_namespaces:
                namespace = next(iter(self._changed_namespaces))
                del self._changed_namespaces[namespace]
                await self._update(namespace)
            self._has_changes.clear()

    async def _update(self, namespace: str) -> None:
        """Decide which objects of a namespace are in force; of two with the same metric, the older one is."""
        objects = [found for key in self._by_namespace.get(namespace, ()) if (found := self.store.get(key)) is not None]
        objects.sort(key=attrgetter("age"))
        owners: dict[str, str] = {}
        for metric_object, excess in within_budget(objects, self._limits):
            if excess is None and metric_object.is_released:
                await self._restore_spec(metric_object)
            current = self.store.get(metric_object.key)
            if current is not None and current.spec_hash == metric_object.spec_hash:  # otherwise it changed meanwhile
                self._update_object(current, excess, owners)
            await self._share.step()

    async def _restore_spec(self, metric_object: ExternalMetricObject) -> None:
        """Read the spec of an object again that is within the budget now."""
        path = f"/apis/{GROUP_VERSION}{api_path('namespaces', metric_object.namespace, PLURAL)}"
        try:
            found = await self._client.get(path, {"fieldSelector": f"metadata.name={metric_object.name}"})
            if not found["items"]:
                return  # deleted; the watch reports it
            restored = read_object(found["items"][0])
        except (KubeError, LookupError, TypeError) as error:
            _log.warning(
                "ExternalMetric cannot be read again", extra={"externalmetric": metric_object.key, "error": str(error)}
            )
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._mark_changed, metric_object.namespace)
            return
        current = self.store.get(metric_object.key)
        if current is not None and current.spec_hash == restored.spec_hash:
            current.spec = restored.spec

    def _update_object(
        self, metric_object: ExternalMetricObject, excess: Problem | None, owners: dict[str, str]
    ) -> None:
        if excess is not None:
            metric_object.release_spec()
            self._parsed.pop(metric_object.key, None)
            self._reject(metric_object.key, Rejection(BUDGET_EXCEEDED, (excess,)))
            return
        if metric_object.is_released:
            return  # it could not be read again yet
        parsed = self._parse(metric_object)
        if isinstance(parsed, TenantRule):
            parsed = _duplicate_problems(parsed, owners) or parsed
        if not isinstance(parsed, TenantRule):
            self._reject(metric_object.key, Rejection(INVALID, parsed))
            return
        owners |= {name.lower(): metric_object.name for name in parsed.names}
        self.rejections.pop(metric_object.key, None)
        self._set_rule(metric_object.key, parsed)

    def _parse(self, metric_object: ExternalMetricObject) -> _Parsed:
        """Return the rule of an object, or its problems; parse it only if its spec has changed."""
        if metric_object.problems:
            return metric_object.problems
        spec, parsed = self._parsed.get(metric_object.key, (b"", ()))
        if spec != metric_object.spec:
            parsed = _parse(metric_object, self._backends)
            self._parsed[metric_object.key] = metric_object.spec, parsed
        return parsed

    def _reject(self, key: str, rejection: Rejection) -> None:
        if self.rejections.get(key) != rejection:
            self.rejections[key] = rejection
            self._log.report(key, rejection)
        self._registry.refuse_object(key, rejection.message)
        self._set_rule(key, None)

    def _set_rule(self, key: str, rule: TenantRule | None) -> None:
        if self.rules.get(key) is rule:
            return
        self.rules.pop(key, None)
        if rule is not None:
            self.rules[key] = rule
            self._registry.refuse_object(key, "")
        self._registry.set_object_rule(key, rule)


def _parse(metric_object: ExternalMetricObject, backends: Mapping[str, BackendEntry]) -> _Parsed:
    try:
        document = msgspec.json.decode(metric_object.spec)
        return rule_from_spec(document, metric_object.name, metric_object.namespace, backends)
    except ConfigInvalid as error:
        return error.problems
    except Exception as error:  # noqa: BLE001 - an object must not end the watch, whatever it contains
        _log.exception("ExternalMetric cannot be parsed", extra={"externalmetric": metric_object.key})
        return (Problem("spec", f"cannot be parsed: {type(error).__name__}; the cause is in the log of Steadyscale"),)


def _duplicate_problems(rule: TenantRule, owners: Mapping[str, str]) -> tuple[Problem, ...]:
    return tuple(
        Problem("spec.metric", f"{name!r} is already defined by ExternalMetric {owner!r}")
        for name in rule.names
        if (owner := owners.get(name.lower())) is not None
    )
