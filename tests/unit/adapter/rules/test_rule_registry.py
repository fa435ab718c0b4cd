from adapter.rules.query_builder import snapshot_query
from adapter.rules.rule import Rule, Series
from adapter.rules.rule_registry import FILE_ORIGIN, RuleRegistry

ONE = (Series(1.0),)
FROM_FILE = Rule("queue", ONE)
FROM_OBJECT = Rule("queue", (Series(2.0),), ("shop",))


def test_rule_of_an_object_overrides_the_file_only_in_its_namespace():
    registry = RuleRegistry([FROM_FILE])
    registry.set_object_rule("shop/queue", FROM_OBJECT)

    assert registry.rules.find("shop", "queue") is FROM_OBJECT
    assert registry.rules.find("bank", "queue") is FROM_FILE
    assert (registry.origin(FROM_OBJECT), registry.origin(FROM_FILE)) == ("shop/queue", FILE_ORIGIN)


def test_file_rule_applies_again_after_the_object_is_deleted():
    registry = RuleRegistry([FROM_FILE])
    registry.set_object_rule("shop/queue", FROM_OBJECT)
    registry.set_object_rule("shop/queue", None)

    assert registry.rules.find("shop", "queue") is FROM_FILE


def test_listeners_are_called_with_removed_and_added_rules():
    registry = RuleRegistry([FROM_FILE, Rule("other", ONE)])
    changes: list[tuple[Rule, ...]] = []
    registry.add_listener(changes.append)
    edited = Rule("queue", ONE, aliases=("q",))
    registry.set_file_rules([edited, Rule("other", ONE)])
    registry.set_object_rule("shop/queue", FROM_OBJECT)
    registry.set_object_rule("shop/queue", FROM_OBJECT)

    assert changes == [(FROM_FILE, edited), (FROM_OBJECT,)]


def test_rules_with_the_same_query_are_found_by_its_key():
    one, two = Rule("a", backend="b", query="x"), Rule("c", backend="b", query="x")
    template = Rule("t", backend="b", query="x{<<.LabelMatchers>>}")

    assert RuleRegistry([one, two, template]).rules_for_query(snapshot_query(one).key) == (one, two)


def test_rule_is_found_by_alias_ignoring_case():
    rule = Rule("queue", ONE, aliases=("Queue-Depth",))

    assert RuleRegistry([rule]).rules.find("any", "queue-depth") is rule
