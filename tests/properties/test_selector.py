"""Properties of selectors: formatting and parsing are inverse, and matching equals its definition."""

from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.values.requirement import Requirement
from autoscaler.values.selector import Selector, parse

no_deadline = settings(deadline=None)  # tests must pass on slow machines

keys = st.sampled_from(["app", "tier", "in", "example.com/role", "n"])
values = st.sampled_from(["", "web", "db", "in", "5", "10", "-3", "007"]) | st.text("abz019", min_size=1, max_size=5)
numbers = st.integers(0, 20).map(str)
label_sets = st.dictionaries(keys, values, max_size=4)

requirements = st.one_of(
    st.builds(Requirement, keys, st.sampled_from(["exists", "!"])),
    st.builds(Requirement, keys, st.sampled_from(["gt", "lt"]), st.tuples(numbers)),
    st.builds(Requirement, keys, st.sampled_from(["=", "==", "!="]), st.tuples(values.filter(lambda v: v != "-3"))),
    st.builds(
        Requirement,
        keys,
        st.sampled_from(["in", "notin"]),
        st.sets(values.filter(lambda v: v != "-3"), min_size=1, max_size=4).map(lambda items: tuple(sorted(items))),
    ),
)
selectors = st.lists(requirements, max_size=4).map(Selector)


def holds(requirement, labels):
    present = requirement.key in labels
    value = labels.get(requirement.key, "")
    match requirement.operator:
        case "exists":
            return present
        case "!":
            return not present
        case "=" | "==" | "in":
            return present and value in requirement.values
        case "!=" | "notin":
            return not present or value not in requirement.values
        case operator:
            if not value.lstrip("-").isdigit():
                return False
            difference = int(value) - int(requirement.values[0])
            return difference > 0 if operator == "gt" else difference < 0


@no_deadline
@given(selectors)
def test_formatted_selector_parses_to_an_equal_selector(selector):
    assert parse(str(selector)) == selector
    assert str(parse(str(selector))) == str(selector)


@no_deadline
@given(selectors, label_sets)
def test_labels_match_if_every_requirement_holds(selector, labels):
    assert selector.matches(labels) == all(holds(requirement, labels) for requirement in selector.requirements)


@no_deadline
@given(selectors, selectors, label_sets)
def test_selectors_joined_by_a_comma_match_the_intersection(first, second, labels):
    joined = parse(",".join(filter(None, [str(first), str(second)])))
    assert joined.matches(labels) == (first.matches(labels) and second.matches(labels))
