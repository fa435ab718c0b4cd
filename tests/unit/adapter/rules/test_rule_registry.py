from adapter.rules.query_builder import whole
from adapter.rules.rule import Rule, Series
from adapter.rules.rule_registry import FILE, RuleRegistry

ONE = (Series(1.0),)
FILED = Rule("queue", ONE)
OWN = Rule("queue", (Series(2.0),), ("shop",))


def test_an_objects_rule_goes_before_the_files_in_its_own_namespace_only():
    book = RuleRegistry([FILED])
    book.use_object("shop/queue", OWN)

    assert book.rules.find("shop", "queue") is OWN
    assert book.rules.find("bank", "queue") is FILED
    assert (book.origin(OWN), book.origin(FILED)) == ("shop/queue", FILE)


def test_when_the_object_goes_the_file_is_in_force_again():
    book = RuleRegistry([FILED])
    book.use_object("shop/queue", OWN)
    book.use_object("shop/queue", None)

    assert book.rules.find("shop", "queue") is FILED


def test_listeners_hear_of_the_rules_that_changed_old_and_new():
    book, heard = RuleRegistry([FILED, Rule("other", ONE)]), []
    book.tell(heard.append)
    edited = Rule("queue", ONE, aliases=("q",))
    book.use_file([edited, Rule("other", ONE)])
    book.use_object("shop/queue", OWN)
    book.use_object("shop/queue", OWN)

    assert heard == [(FILED, edited), (OWN,)]


def test_rules_that_ask_the_same_are_known_by_the_query():
    one, two = Rule("a", backend="b", query="x"), Rule("c", backend="b", query="x")
    template = Rule("t", backend="b", query="x{<<.LabelMatchers>>}")

    assert RuleRegistry([one, two, template]).asking(whole(one).key) == (one, two)


def test_an_alias_finds_the_rule_in_any_case():
    rule = Rule("queue", ONE, aliases=("Queue-Depth",))

    assert RuleRegistry([rule]).rules.find("any", "queue-depth") is rule
