"""``ExternalMetric`` objects as they come and go: each becomes a rule, or a reason why it is none."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from adapter.backends.configuration import BackendEntry
from adapter.custom_resources.external_metric import GROUP_VERSION, PLURAL, rule_of
from adapter.errors import ConfigInvalid
from adapter.rules.rule import Rule
from adapter.rules.rule_registry import RuleRegistry
from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.store import Store, key_of
from autoscaler.kube.watch import Watched

PATH: Final = f"/apis/{GROUP_VERSION}/{PLURAL}"


@dataclass(frozen=True, slots=True)
class Defined:
    """One object: what is needed of it, and what it stands for."""

    key: str
    namespace: str
    name: str
    generation: int
    created: str
    content: Json
    """``metadata.name``, ``metadata.namespace`` and ``spec``."""

    status: Json
    """As it was written last, by whomever."""


class ExternalMetricObjects:
    """Keeps the book's object rules as the cluster's objects say. Run it beside who reads."""

    def __init__(self, client: KubeClient, book: RuleRegistry, backends: Mapping[str, BackendEntry]) -> None:
        self.store = Store(client, Watched(PATH), _kept)
        self.rules: dict[str, Rule] = {}
        """Those in force, by object."""

        self.problems: dict[str, tuple[str, ...]] = {}
        """What is wrong with the others, by object."""

        self._book = book
        self._backends = backends
        self._namespaces: dict[str, str] = {}
        self._unsettled: set[str] = set()
        self.store.tell(self._changed)

    async def run(self) -> None:
        """Keep up, for ever."""
        await self.store.run()

    def use_backends(self, backends: Mapping[str, BackendEntry]) -> None:
        """Look at all of them again, because the backends that they may use have changed."""
        self._backends = backends
        self._unsettled |= set(self._namespaces.values())
        self._settle()

    def _changed(self, key: str) -> None:
        found = self.store.get(key)
        if found is not None:
            self._namespaces[key] = found.namespace
        namespace = self._namespaces[key]
        if found is None:
            del self._namespaces[key]
            self._put(key, None, ())
        if not self._unsettled:
            # A cluster's objects are told of one by one; they are looked at together.
            asyncio.get_running_loop().call_soon(self._settle)
        self._unsettled.add(namespace)

    def _settle(self) -> None:
        """Look at the objects of all namespaces where something changed."""
        unsettled, self._unsettled = self._unsettled, set()
        objects: dict[str, list[Defined]] = {}
        for each in self.store:
            if each.namespace in unsettled:
                objects.setdefault(each.namespace, []).append(each)
        for here in objects.values():
            self._settle_namespace(here)

    def _settle_namespace(self, here: list[Defined]) -> None:
        """Look at a namespace's objects, oldest first: of two that define one name, the older does."""
        taken: dict[str, str] = {}
        for each in sorted(here, key=lambda one: (one.created, one.name)):
            try:
                rule = rule_of(each.content, self._backends)
                _refuse_taken(rule, taken)
            except ConfigInvalid as error:
                self._put(each.key, None, error.problems)
                continue
            taken |= {name.lower(): each.name for name in rule.names}
            self._put(each.key, rule, ())

    def _put(self, key: str, rule: Rule | None, problems: tuple[str, ...]) -> None:
        self.problems.pop(key, None)
        if problems:
            self.problems[key] = problems
        if self.rules.get(key) != rule:
            self.rules.pop(key, None)
            if rule is not None:
                self.rules[key] = rule
            self._book.use_object(key, rule)


def _refuse_taken(rule: Rule, taken: Mapping[str, str]) -> None:
    for name in rule.names:
        if (other := taken.get(name.lower())) is not None:
            raise ConfigInvalid([f"spec.metric: {name!r} is defined by ExternalMetric {other!r} already"])


def _kept(content: Json) -> Defined:
    metadata: Mapping[str, Any] = content["metadata"]
    namespace, name = str(metadata.get("namespace", "")), str(metadata["name"])
    return Defined(
        key=key_of(content),
        namespace=namespace,
        name=name,
        generation=int(metadata.get("generation", 0)),
        created=str(metadata.get("creationTimestamp", "")),
        content={"metadata": {"namespace": namespace, "name": name}, "spec": content.get("spec")},
        status=content.get("status") or {},
    )
