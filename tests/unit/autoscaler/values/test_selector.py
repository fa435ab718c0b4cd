"""Label selectors as text and as API objects."""

import msgspec
import pytest

from autoscaler.values.requirement import Requirement, make_requirement
from autoscaler.values.selector import (
    LabelSelector,
    LabelSelectorRequirement,
    Selector,
    SelectorError,
    format_label_selector,
    from_label_selector,
    go_syntax,
    parse,
)

OPERATORS = "in, notin, =, ==, !=, gt, lt"


def expression(key, operator, *values):
    return LabelSelector(match_expressions=(LabelSelectorRequirement(key, operator, values),))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        pytest.param("", "", id="empty"),
        pytest.param(" \t\r\n", "", id="only whitespace"),
        pytest.param("app=web", "app=web", id="equality"),
        pytest.param("app == web", "app==web", id="double equals"),
        pytest.param("app!=web", "app!=web", id="inequality"),
        pytest.param("b,a", "a,b", id="sorted by key"),
        pytest.param("! a", "!a", id="does not exist"),
        pytest.param("a in (y, x ,y)", "a in (x,y)", id="values are sorted and unique"),
        pytest.param("a notin ()", "a notin ()", id="empty list is the empty value"),
        pytest.param("a in (,)", "a in ()", id="only a comma"),
        pytest.param("a in (x,,y)", "a in (,x,y)", id="empty entry in the list"),
        pytest.param("a in (x,)", "a in (,x)", id="empty entry at the end"),
        pytest.param("a in (,x)", "a in (,x)", id="empty entry at the start"),
        pytest.param("in in (in,notin)", "in in (in,notin)", id="keywords as key and values"),
        pytest.param("notin", "notin", id="keyword as key"),
        pytest.param("a=", "a=", id="empty value"),
        pytest.param("a=,b", "a=,b", id="empty value before a comma"),
        pytest.param("n>5,n<10", "n>5,n<10", id="numbers"),
        pytest.param("a\0=b", "a=b", id="NUL after a word is skipped"),
        pytest.param("a,\0b", "a,b", id="NUL after a symbol is skipped"),
        pytest.param("a \0 b", "a", id="NUL after a space ends the text"),
    ],
)
def test_text_is_parsed_and_formatted(text, printed):
    assert str(parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param(",a", "found ',', expected: !, identifier, or 'end of string'", id="leading comma"),
        pytest.param("a,", "found '', expected: identifier after ','", id="trailing comma"),
        pytest.param("a=b c", "found 'c', expected: ',' or 'end of string'", id="two values"),
        pytest.param("a b", f"unable to parse requirement: found 'b', expected: {OPERATORS}", id="two keys"),
        pytest.param("a(", f"unable to parse requirement: found '(', expected: {OPERATORS}", id="list without in"),
        pytest.param("!", "unable to parse requirement: found '', expected: identifier", id="negation without key"),
        pytest.param("a==(", "unable to parse requirement: found '(', expected: identifier", id="equal to a list"),
        pytest.param("a in b", "unable to parse requirement: found 'b' expected: '('", id="in without a list"),
        pytest.param(
            "a in (",
            "unable to parse requirement: found '', expected: ',', ')' or identifier",
            id="list without closing parenthesis",
        ),
        pytest.param(
            "a in (x", "unable to parse requirement: found '', expected: ',' or ')'", id="list not closed after a value"
        ),
        pytest.param("a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'", id="missing comma"),
        pytest.param(
            "a in (x,=)", "unable to parse requirement: found '=', expected: ',', or identifier", id="symbol in a list"
        ),
        pytest.param(
            "/x",
            'unable to parse requirement: <nil>: Invalid value: "/x": prefix part must be non-empty',
            id="invalid key",
        ),
        pytest.param(
            "n>x",
            'unable to parse requirement: values[0]: Invalid value: "x": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
            id="non-integer value",
        ),
    ],
)
def test_invalid_text_is_rejected_with_the_message_of_kubernetes(text, error):
    with pytest.raises(SelectorError) as caught:
        parse(text)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        pytest.param("", {}, True, id="empty selector"),
        pytest.param("a=x", {"a": "x"}, True, id="equal"),
        pytest.param("a=x", {"a": "y"}, False, id="not equal"),
        pytest.param("a=", {}, False, id="absent label and empty value"),
        pytest.param("a!=x", {}, True, id="absent label and inequality"),
        pytest.param("a in (x,y)", {"a": "y"}, True, id="one of the values"),
        pytest.param("a in (x,y)", {}, False, id="absent label and in"),
        pytest.param("a notin (x,y)", {"a": "y"}, False, id="one of the excluded values"),
        pytest.param("a", {"a": ""}, True, id="present"),
        pytest.param("!a", {"a": ""}, False, id="does not exist, but present"),
        pytest.param("!a", {}, True, id="absent"),
        pytest.param("n>5", {"n": "6"}, True, id="greater"),
        pytest.param("n>5", {"n": "5"}, False, id="not greater"),
        pytest.param("n<5", {"n": "-3"}, True, id="less"),
        pytest.param("n<5", {"n": "many"}, False, id="not a number"),
        pytest.param("n<5", {"n": "-9223372036854775809"}, False, id="number out of range"),
        pytest.param("n<5", {}, False, id="absent label and less than"),
    ],
)
def test_matching(text, labels, matches):
    assert parse(text).matches(labels) is matches


def test_absent_selector_selects_nothing_and_empty_selector_everything():
    nothing, everything = from_label_selector(None), from_label_selector(LabelSelector())
    assert (nothing.selectable, nothing.is_empty, nothing.matches({}), str(nothing)) == (False, False, False, "")
    assert (everything.selectable, everything.is_empty, everything.matches({}), str(everything)) == (
        True,
        True,
        True,
        "",
    )
    assert nothing != everything
    assert (repr(nothing), repr(everything)) == ("Selector(nothing)", "Selector('')")


def test_equivalent_object_and_text_are_equal():
    written = LabelSelector({"app": "web"}, (LabelSelectorRequirement("tier", "NotIn", ("back",)),))
    selector = from_label_selector(written)
    assert selector == parse("tier notin (back),app=web")
    assert len({selector, parse("app=web,tier notin (back)")}) == 1
    assert selector != "app=web,tier notin (back)"
    assert selector.requirements == (Requirement("app", "=", ("web",)), Requirement("tier", "notin", ("back",)))


@pytest.mark.parametrize(
    ("selector", "error"),
    [
        pytest.param(expression("a", "Gt"), '"Gt" is not a valid label selector operator', id="unknown operator"),
        pytest.param(
            expression("a", "In"),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="no values",
        ),
        pytest.param(
            expression("a", "Exists", "x", "y"),
            'values: Invalid value: ["x","y"]: values set must be empty for exists and does not exist',
            id="unexpected values",
        ),
    ],
)
def test_invalid_object_is_rejected(selector, error):
    with pytest.raises(SelectorError) as caught:
        from_label_selector(selector)
    assert str(caught.value) == error
    assert format_label_selector(selector) == "<error>"


def test_problems_of_a_requirement_are_unique_and_html_is_escaped():
    with pytest.raises(SelectorError) as caught:
        from_label_selector(expression("/a", "DoesNotExist", "<", "<"))
    first, second, third = str(caught.value).split(", values")[:3]
    assert first == '[key: Invalid value: "/a": prefix part must be non-empty'
    assert second.startswith(r': Invalid value: ["\u003c","\u003c"]: values set must be empty')
    assert third.startswith('[0][/a]: Invalid value: "<": a valid label must be')


@pytest.mark.parametrize(
    ("operator", "values", "error"),
    [
        pytest.param(
            "=", ("a", "b"), "exact-match compatibility requires one single value", id="equals with two values"
        ),
        pytest.param(
            "gt",
            ("1", "2"),
            "for 'Gt', 'Lt' operators, exactly one value is required",
            id="greater than with two values",
        ),
    ],
)
def test_number_of_values_must_fit_the_operator(operator, values, error):
    with pytest.raises(SelectorError, match=error):
        make_requirement("a", operator, values)


@pytest.mark.parametrize(
    ("selector", "for_kubectl", "for_messages"),
    [
        pytest.param(None, "<none>", "nil", id="none"),
        pytest.param(
            LabelSelector(),
            "<none>",
            "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{},}",
            id="empty",
        ),
        pytest.param(
            LabelSelector({"b": "2", "a": "1"}, (LabelSelectorRequirement("c", "In", ("y", "x")),)),
            "a=1,b=2,c in (x,y)",
            "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{"
            "LabelSelectorRequirement{Key:c,Operator:In,Values:[y x],},},}",
            id="labels and an expression",
        ),
    ],
)
def test_object_is_formatted_like_kubectl_and_like_go(selector, for_kubectl, for_messages):
    assert format_label_selector(selector) == for_kubectl
    assert go_syntax(selector) == for_messages


@pytest.mark.parametrize(
    ("received", "sent"),
    [
        pytest.param('{"matchLabels":null,"matchExpressions":null}', "{}", id="null"),
        pytest.param('{"matchExpressions":[]}', "{}", id="empty list is omitted"),
        pytest.param(
            '{"matchExpressions":[{"values":null}]}',
            '{"matchExpressions":[{"key":"","operator":""}]}',
            id="key and operator are not omitted",
        ),
        pytest.param('{"matchLabels":{"a":"b"}}', '{"matchLabels":{"a":"b"}}', id="labels"),
    ],
)
def test_object_is_decoded_and_encoded_like_the_api(received, sent):
    selector = msgspec.json.decode(received, type=LabelSelector)
    assert msgspec.json.encode(selector).decode() == sent


def test_default_selector_matches_everything():
    assert Selector().is_empty
