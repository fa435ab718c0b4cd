import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.rules.problems import name_problems, problems
from adapter.rules.rule import Rule, Series
from adapter.rules.rule_set import RuleSet

ONE = (Series(1.0),)


def rule(name: str, *namespaces: str) -> Rule:
    return Rule(name, ONE, namespaces)


@pytest.mark.parametrize("name", ["Queue-Depth", "queue-depth", "QUEUE-DEPTH"])
def test_rule_lookup_ignores_case(name: str):
    assert RuleSet([rule("Queue-Depth")]).find("any", name) == rule("Queue-Depth")


def test_rule_is_found_only_in_its_namespaces():
    here, there = rule("queue", "here"), rule("queue", "there", "yonder")
    rules = RuleSet([here, there])

    assert (rules.find("here", "queue"), rules.find("yonder", "queue")) == (here, there)
    assert rules.find("elsewhere", "queue") is None


def test_names_lists_the_metrics_of_a_namespace_sorted():
    assert RuleSet([rule("b"), rule("a", "here"), rule("c", "there")]).names("here") == ("a", "b")


def test_similar_names_are_available_in_the_namespace():
    rules = RuleSet([rule("Queue-Depth"), rule("queue-length"), rule("queue-dept", "there"), rule("zzz")])

    assert rules.similar_names("here", "queue-dpth") == ("Queue-Depth", "queue-length")


def test_no_name_is_similar_to_a_long_meaningless_name():
    assert RuleSet([rule("queue")]).similar_names("here", "%" * 100_000) == ()


@pytest.mark.parametrize("name", ["queue", "a.b-c_d", "s0|x", "Größe", "namespaces"])
def test_name_that_is_a_valid_path_segment_is_accepted(name: str):
    assert name_problems(name) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "must not be empty"),
        (".", "may not be '.'"),
        ("..", "may not be '..'"),
        ("a/b", "may not contain '/'"),
        ("a%b", "may not contain '%'"),
        ("a\nb", "non-printable"),
        ("x" * 254, "no more than 253"),
        ("externalmetrics", "all metrics of a namespace are listed"),
    ],
)
def test_invalid_name_is_rejected_with_the_reason(name: str, reason: str):
    assert any(reason in problem for problem in name_problems(name))


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param(
            [rule("a"), rule("A")], ["rules[1].name: 'A' is already defined by rules[0]"], id="in all namespaces"
        ),
        pytest.param(
            [rule("a", "x"), rule("a", "y", "x")],
            ["rules[1].name: 'a' is already defined in namespace 'x' by rules[0]"],
            id="in a common namespace",
        ),
        pytest.param([rule("a", "x"), rule("a", "y")], [], id="in different namespaces"),
    ],
)
def test_two_rules_with_one_name_in_a_namespace_are_a_problem(rules: list[Rule], expected: list[str]):
    by_path = {f"rules[{number}]": each for number, each in enumerate(rules)}
    assert list(map(str, problems(by_path))) == expected


@given(st.text(max_size=30), st.lists(st.text(min_size=1, max_size=12), max_size=8, unique_by=str.lower))
def test_similar_names_are_always_existing_names(name: str, names: list[str]):
    rules = RuleSet(map(rule, names))

    assert set(rules.similar_names("any", name)) <= set(names)
