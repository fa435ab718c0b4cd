import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.rules.problems import name_problems, problems
from adapter.rules.rule import Rule, Series
from adapter.rules.rule_set import RuleSet

ONE = (Series(1.0),)


def rule(name: str, *namespaces: str) -> Rule:
    return Rule(name, ONE, namespaces)


@pytest.mark.parametrize("asked", ["Queue-Depth", "queue-depth", "QUEUE-DEPTH"])
def test_a_rule_is_found_in_any_case(asked: str):
    assert RuleSet([rule("Queue-Depth")]).find("any", asked) == rule("Queue-Depth")


def test_a_rule_is_found_where_it_applies_and_nowhere_else():
    here, there = rule("queue", "here"), rule("queue", "there", "yonder")
    rules = RuleSet([here, there])

    assert (rules.find("here", "queue"), rules.find("yonder", "queue")) == (here, there)
    assert rules.find("elsewhere", "queue") is None


def test_names_are_those_of_this_namespace_in_order():
    assert RuleSet([rule("b"), rule("a", "here"), rule("c", "there")]).names("here") == ("a", "b")


def test_the_nearest_names_are_of_this_namespace_only():
    rules = RuleSet([rule("Queue-Depth"), rule("queue-length"), rule("queue-dept", "there"), rule("zzz")])

    assert rules.nearest("here", "queue-dpth") == ("Queue-Depth", "queue-length")


def test_nothing_is_near_nonsense():
    assert RuleSet([rule("queue")]).nearest("here", "%" * 100_000) == ()


@pytest.mark.parametrize("name", ["queue", "a.b-c_d", "s0|x", "Größe", "namespaces"])
def test_names_that_fit_one_segment_of_a_path_are_good(name: str):
    assert name_problems(name) == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "must not be empty"),
        (".", "may not be '.'"),
        ("..", "may not be '..'"),
        ("a/b", "may not contain '/'"),
        ("a%b", "may not contain '%'"),
        ("a\nb", "do not print"),
        ("x" * 254, "no more than 253"),
        ("externalmetrics", "all metrics of a namespace are listed"),
    ],
)
def test_bad_names_are_refused_with_the_reason(name: str, says: str):
    assert any(says in problem for problem in name_problems(name))


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param([rule("a"), rule("A")], ["rules[1].name: 'A' is defined by rules[0] already"], id="everywhere"),
        pytest.param(
            [rule("a", "x"), rule("a", "y", "x")],
            ["rules[1].name: 'a' is defined in namespace 'x' by rules[0] already"],
            id="in one namespace",
        ),
        pytest.param([rule("a", "x"), rule("a", "y")], [], id="apart"),
    ],
)
def test_one_name_means_one_thing_in_one_place(rules: list[Rule], expected: list[str]):
    assert list(problems(rules)) == expected


@given(st.text(max_size=30), st.lists(st.text(min_size=1, max_size=12), max_size=8, unique_by=str.lower))
def test_the_nearest_are_always_names_that_exist(asked: str, names: list[str]):
    rules = RuleSet(map(rule, names))

    assert set(rules.nearest("any", asked)) <= set(names)
