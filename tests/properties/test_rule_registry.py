"""The registry finds the same rules, after any changes, as a search through all rules."""

from collections.abc import Iterable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from adapter.rules.query_builder import snapshot_query
from adapter.rules.rule import Rule, Series, TenantRule
from adapter.rules.rule_registry import FILE_ORIGIN, RuleRegistry

NAMESPACES = ("a", "b", "c")
NAMES = ("x", "X", "y", "z")
names = st.sampled_from(NAMES)
values = st.integers(0, 2).map(lambda value: (Series(float(value)),))
file_rules = st.lists(
    st.builds(
        Rule,
        names,
        values,
        namespaces=st.lists(st.sampled_from(NAMESPACES), max_size=2, unique=True).map(tuple),
        aliases=st.lists(names, max_size=2).map(tuple),
    ),
    max_size=4,
)


class RegistryMachine(RuleBasedStateMachine):
    """Changes a registry and a plain model: the rules of objects by key, and a list of the rules of files."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = RuleRegistry()
        self.objects: dict[str, Rule] = {}
        self.file: list[Rule] = []
        self.imported: list[Rule] = []

    @rule(namespace=st.sampled_from(NAMESPACES), name=names, series=values, alias=names)
    def set_object(self, namespace: str, name: str, series: tuple[Series, ...], alias: str) -> None:
        key = f"{namespace}/{name.lower()}"
        changed = TenantRule(
            name, series, (namespace,), aliases=(f"{name}-{alias}",)
        )  # names are unique in a namespace
        self.objects[key] = changed
        self.registry.set_object_rule(key, changed)

    @rule(namespace=st.sampled_from(NAMESPACES), name=names)
    def remove_object(self, namespace: str, name: str) -> None:
        key = f"{namespace}/{name.lower()}"
        self.objects.pop(key, None)
        self.registry.set_object_rule(key, None)

    @rule(rules=file_rules)
    def set_file(self, rules: list[Rule]) -> None:
        self.file = rules
        self.registry.set_file_rules(rules)

    @rule(rules=file_rules)
    def set_imported(self, rules: list[Rule]) -> None:
        self.imported = rules
        self.registry.set_imported_rules("old.yaml", rules)

    @invariant()
    def lookups_equal_a_search(self) -> None:
        ordered = [*self.objects.values(), *self.file, *self.imported]
        for namespace in NAMESPACES:
            applicable = [each for each in ordered if each.applies_to(namespace)]
            for name in ("x", "y", "z", "x-y", "Y-x"):
                assert self.registry.rules.find(namespace, name) is _first(applicable, name)
            assert self.registry.rules.names(namespace) == tuple(sorted({each.name for each in applicable}))

    @invariant()
    def rules_have_their_origin_and_query(self) -> None:
        for key, each in self.objects.items():
            assert self.registry.origin(each) == key
        for each in self.file:
            assert self.registry.origin(each) == FILE_ORIGIN
        everything = [*self.objects.values(), *self.file, *self.imported]
        assert len(list(self.registry.rules)) == len(everything)
        for each in everything:
            query = snapshot_query(each).key
            found = self.registry.rules_for_query(query)
            assert sorted(map(id, found)) == sorted(
                id(other) for other in everything if snapshot_query(other).key == query
            )


def _first(rules: Iterable[Rule], name: str) -> Rule | None:
    return next((each for each in rules if name.lower() in map(str.lower, each.names)), None)


TestRegistry = RegistryMachine.TestCase
TestRegistry.settings = settings(deadline=None, max_examples=30, stateful_step_count=12)
