"""Label selectors as text and as objects: what they mean, what they print, what is refused."""

import msgspec
import pytest

from autoscaler.values.requirement import Requirement, checked
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
        pytest.param("", "", id="nothing asked"),
        pytest.param(" \t\r\n", "", id="only space"),
        pytest.param("app=web", "app=web", id="equality"),
        pytest.param("app == web", "app==web", id="equality, doubled"),
        pytest.param("app!=web", "app!=web", id="inequality"),
        pytest.param("b,a", "a,b", id="sorted by key"),
        pytest.param("! a", "!a", id="absence"),
        pytest.param("a in (y, x ,y)", "a in (x,y)", id="values sorted, each once"),
        pytest.param("a notin ()", "a notin ()", id="an empty list means the empty value"),
        pytest.param("a in (,)", "a in ()", id="a comma alone, too"),
        pytest.param("a in (x,,y)", "a in (,x,y)", id="a gap in the list"),
        pytest.param("a in (x,)", "a in (,x)", id="a gap at the end"),
        pytest.param("a in (,x)", "a in (,x)", id="a gap at the start"),
        pytest.param("in in (in,notin)", "in in (in,notin)", id="keywords as key and values"),
        pytest.param("notin", "notin", id="a keyword alone is a key"),
        pytest.param("a=", "a=", id="the empty value"),
        pytest.param("a=,b", "a=,b", id="the empty value before a comma"),
        pytest.param("n>5,n<10", "n>5,n<10", id="numbers"),
        pytest.param("a\0=b", "a=b", id="a NUL behind a word is skipped"),
        pytest.param("a,\0b", "a,b", id="a NUL behind a symbol is skipped"),
        pytest.param("a \0 b", "a", id="a NUL behind a space ends the text"),
    ],
)
def test_a_text_is_read_and_printed(text, printed):
    assert str(parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param(",a", "found ',', expected: !, identifier, or 'end of string'", id="a comma first"),
        pytest.param("a,", "found '', expected: identifier after ','", id="a comma last"),
        pytest.param("a=b c", "found 'c', expected: ',' or 'end of string'", id="two values"),
        pytest.param("a b", f"unable to parse requirement: found 'b', expected: {OPERATORS}", id="two keys"),
        pytest.param("a(", f"unable to parse requirement: found '(', expected: {OPERATORS}", id="a list without in"),
        pytest.param("!", "unable to parse requirement: found '', expected: identifier", id="not what"),
        pytest.param("a==(", "unable to parse requirement: found '(', expected: identifier", id="equal to a list"),
        pytest.param("a in b", "unable to parse requirement: found 'b' expected: '('", id="in without a list"),
        pytest.param("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier", id="open"),
        pytest.param("a in (x", "unable to parse requirement: found '', expected: ',' or ')'", id="unclosed"),
        pytest.param("a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'", id="no comma"),
        pytest.param("a in (x,=)", "unable to parse requirement: found '=', expected: ',', or identifier", id="symbol"),
        pytest.param(
            "/x", 'unable to parse requirement: <nil>: Invalid value: "/x": prefix part must be non-empty', id="key"
        ),
        pytest.param(
            "n>x",
            'unable to parse requirement: values[0]: Invalid value: "x": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
            id="more than a word",
        ),
    ],
)
def test_what_is_not_a_selector_is_refused_in_kubernetes_words(text, error):
    with pytest.raises(SelectorError) as caught:
        parse(text)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        pytest.param("", {}, True, id="nothing asked of nothing"),
        pytest.param("a=x", {"a": "x"}, True, id="equal"),
        pytest.param("a=x", {"a": "y"}, False, id="not equal"),
        pytest.param("a=", {}, False, id="absent is not empty"),
        pytest.param("a!=x", {}, True, id="absent is unequal"),
        pytest.param("a in (x,y)", {"a": "y"}, True, id="among the values"),
        pytest.param("a in (x,y)", {}, False, id="absent is among no values"),
        pytest.param("a notin (x,y)", {"a": "y"}, False, id="not to be among the values"),
        pytest.param("a", {"a": ""}, True, id="present"),
        pytest.param("!a", {"a": ""}, False, id="not to be present"),
        pytest.param("!a", {}, True, id="absent"),
        pytest.param("n>5", {"n": "6"}, True, id="greater"),
        pytest.param("n>5", {"n": "5"}, False, id="not greater"),
        pytest.param("n<5", {"n": "-3"}, True, id="less"),
        pytest.param("n<5", {"n": "many"}, False, id="not a number is not less"),
        pytest.param("n<5", {"n": "-9223372036854775809"}, False, id="nor is what does not fit"),
        pytest.param("n<5", {}, False, id="nor is what is absent"),
    ],
)
def test_matching(text, labels, matches):
    assert parse(text).matches(labels) is matches


def test_none_at_all_selects_nothing_and_an_empty_one_everything():
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


def test_an_object_and_a_text_that_mean_the_same_are_the_same():
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
            id="values where none belong",
        ),
    ],
)
def test_an_object_that_makes_no_sense_is_refused(selector, error):
    with pytest.raises(SelectorError) as caught:
        from_label_selector(selector)
    assert str(caught.value) == error
    assert format_label_selector(selector) == "<error>"


def test_every_problem_of_a_requirement_is_named_once_and_html_is_defused():
    with pytest.raises(SelectorError) as caught:
        from_label_selector(expression("/a", "DoesNotExist", "<", "<"))
    first, second, third = str(caught.value).split(", values")[:3]
    assert first == '[key: Invalid value: "/a": prefix part must be non-empty'
    assert second.startswith(r': Invalid value: ["\u003c","\u003c"]: values set must be empty')
    assert third.startswith('[0][/a]: Invalid value: "<": a valid label must be')


@pytest.mark.parametrize(
    ("operator", "values", "error"),
    [
        pytest.param("=", ("a", "b"), "exact-match compatibility requires one single value", id="equal to two"),
        pytest.param("gt", ("1", "2"), "for 'Gt', 'Lt' operators, exactly one value is required", id="more than two"),
    ],
)
def test_a_requirement_takes_as_many_values_as_its_operator(operator, values, error):
    with pytest.raises(SelectorError, match=error):
        checked("a", operator, values)


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
def test_an_object_is_printed_for_kubectl_and_for_messages(selector, for_kubectl, for_messages):
    assert format_label_selector(selector) == for_kubectl
    assert go_syntax(selector) == for_messages


@pytest.mark.parametrize(
    ("received", "sent"),
    [
        pytest.param('{"matchLabels":null,"matchExpressions":null}', "{}", id="null is empty"),
        pytest.param('{"matchExpressions":[]}', "{}", id="empty is omitted"),
        pytest.param(
            '{"matchExpressions":[{"values":null}]}',
            '{"matchExpressions":[{"key":"","operator":""}]}',
            id="key and operator are always there",
        ),
        pytest.param('{"matchLabels":{"a":"b"}}', '{"matchLabels":{"a":"b"}}', id="labels"),
    ],
)
def test_an_object_is_decoded_and_encoded_as_the_api_does(received, sent):
    selector = msgspec.json.decode(received, type=LabelSelector)
    assert msgspec.json.encode(selector).decode() == sent


def test_a_selector_is_everything_unless_told_otherwise():
    assert Selector().is_empty
