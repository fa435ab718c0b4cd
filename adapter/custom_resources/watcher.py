"""The rules of ``ExternalMetric`` objects, updated as objects are created, changed and deleted."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from adapter.backends.configuration import BackendEntry
from adapter.custom_resources.external_metric import GROUP_VERSION, PLURAL, rule_from_object
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.rules.rule import Rule
from adapter.rules.rule_registry import RuleRegistry
from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.informer import Informer, key_of
from autoscaler.kube.watch import ListWatch

PATH: Final = f"/apis/{GROUP_VERSION}/{PLURAL}"


@dataclass(frozen=True, slots=True)
class ExternalMetricObject:
    """The parts of an object that are kept in memory."""

    key: str
    namespace: str
    name: str
    generation: int
    creation_timestamp: str
    content: Json
    """``metadata.name``, ``metadata.namespace`` and ``spec``."""

    status: Json


class ExternalMetricWatcher:
    """Updates the object rules of a registry from the objects of the cluster, while ``run`` is running."""

    def __init__(self, client: KubeClient, registry: RuleRegistry, backends: Mapping[str, BackendEntry]) -> None:
        self.store = Informer(client, ListWatch(PATH), _parse)
        self.rules: dict[str, Rule] = {}
        """The rules of valid objects, by object key."""

        self.problems: dict[str, tuple[Problem, ...]] = {}
        """The problems of invalid objects, by object key."""

        self._registry = registry
        self._backends = backends
        self._changed_namespaces: set[str] = set()
        self.store.add_listener(self._on_change)

    async def run(self) -> None:
        await self.store.run()

    def set_backends(self, backends: Mapping[str, BackendEntry]) -> None:
        """Validate all objects again, if the configured backends have changed."""
        if backends == self._backends:
            return
        self._backends = backends
        self._changed_namespaces |= {metric_object.namespace for metric_object in self.store}
        self._update()

    def _on_change(self, key: str) -> None:
        if self.store.get(key) is None:
            self._set(key, None, ())
        if not self._changed_namespaces:
            # The first list reports objects one by one; validate those of one event loop iteration together.
            asyncio.get_running_loop().call_soon(self._update)
        self._changed_namespaces.add(key.partition("/")[0])

    def _update(self) -> None:
        """Validate the objects of all namespaces with changes; of two with the same metric, the older one is valid."""
        changed, self._changed_namespaces = self._changed_namespaces, set()
        owners: dict[tuple[str, str], str] = {}
        objects = (metric_object for metric_object in self.store if metric_object.namespace in changed)
        for metric_object in sorted(objects, key=lambda item: (item.creation_timestamp, item.name)):
            try:
                rule = rule_from_object(metric_object.content, self._backends)
                _reject_duplicate(rule, metric_object.namespace, owners)
            except ConfigInvalid as error:
                self._set(metric_object.key, None, error.problems)
                continue
            owners |= {(metric_object.namespace, name.lower()): metric_object.name for name in rule.names}
            self._set(metric_object.key, rule, ())

    def _set(self, key: str, rule: Rule | None, problems: tuple[Problem, ...]) -> None:
        self.problems.pop(key, None)
        if problems:
            self.problems[key] = problems
        if self.rules.get(key) != rule:
            self.rules.pop(key, None)
            if rule is not None:
                self.rules[key] = rule
            self._registry.set_object_rule(key, rule)


def _reject_duplicate(rule: Rule, namespace: str, owners: Mapping[tuple[str, str], str]) -> None:
    for name in rule.names:
        if (owner := owners.get((namespace, name.lower()))) is not None:
            raise ConfigInvalid([Problem("spec.metric", f"{name!r} is already defined by ExternalMetric {owner!r}")])


def _parse(content: Json) -> ExternalMetricObject:
    metadata: Mapping[str, Any] = content["metadata"]
    namespace, name = str(metadata.get("namespace", "")), str(metadata["name"])
    return ExternalMetricObject(
        key=key_of(content),
        namespace=namespace,
        name=name,
        generation=int(metadata.get("generation", 0)),
        creation_timestamp=str(metadata.get("creationTimestamp", "")),
        content={"metadata": {"namespace": namespace, "name": name}, "spec": content.get("spec")},
        status=content.get("status") or {},
    )
