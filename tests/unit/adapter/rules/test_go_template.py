import pytest

from adapter.rules.go_template.lexer import TemplateError
from adapter.rules.go_template.template import Template

DATA = {
    "Series": "lag",
    "LabelMatchers": 'a="b"',
    "LabelValuesByName": {"topic": "t", "zone": "z"},
    "GroupBy": "",
    "GroupBySlice": [],
}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param("sum(<<.Series>>{<<.LabelMatchers>>})", 'sum(lag{a="b"})', id="fields"),
        pytest.param("<< .Series >>", "lag", id="spaces around a field"),
        pytest.param('<<index .LabelValuesByName "topic">>', "t", id="index"),
        pytest.param('[<<index .LabelValuesByName "none">>]', "[]", id="index of a missing key"),
        pytest.param("<<.LabelValuesByName.topic>>", "t", id="map key as a field"),
        pytest.param("<<.LabelValuesByName.none>>", "<no value>", id="missing map key as a field"),
        pytest.param("<<if .GroupBy>>x<<else>>y<<end>>", "y", id="if and else"),
        pytest.param('<<if eq .Series "a">>1<<else if eq .Series "lag">>2<<end>>', "2", id="else if"),
        pytest.param("<<if not .GroupBySlice>>none<<end>>", "none", id="an empty list is false"),
        pytest.param("<<range $k, $v := .LabelValuesByName>><<$k>>=<<$v>>;<<end>>", "topic=t;zone=z;", id="range"),
        pytest.param("<<range .LabelValuesByName>><<.>><<end>>", "tz", id="dot inside range"),
        pytest.param("<<range .GroupBySlice>>x<<else>>none<<end>>", "none", id="else of an empty range"),
        pytest.param(
            '<<with index .LabelValuesByName "topic">><<.>>/<<$.Series>><<end>>', "t/lag", id="with and root variable"
        ),
        pytest.param('<<printf "%q %s %d%%" .Series "x" 5>>', '"lag" x 5%', id="printf"),
        pytest.param('<<.Series | printf "%s_%s" "x">>', "x_lag", id="pipeline"),
        pytest.param("<<$x := .Series>><<$x>>", "lag", id="variable"),
        pytest.param('<<$x := "a">><<if true>><<$x = "b">><<end>><<$x>>', "b", id="variable assignment"),
        pytest.param("<<(index .LabelValuesByName `zone`)>>", "z", id="parentheses and a raw string"),
        pytest.param("a  <<- .Series ->>  b", "alagb", id="trimmed whitespace"),
        pytest.param("a<</* nothing */>>b", "ab", id="comment"),
        pytest.param("a <<- /* << >> */ ->> b", "ab", id="trimmed comment with delimiters"),
        pytest.param("<<len .LabelValuesByName>>", "2", id="len"),
        pytest.param("<<and .Series .GroupBy>>|<<or .GroupBy .Series>>", "|lag", id="and, or"),
        pytest.param("<<lt 1 2>> <<ge 1 2>> <<ne 1 2>>", "true false true", id="comparisons"),
        pytest.param('<<">>">>', ">>", id="closing delimiter in a string"),
        pytest.param("<<urlquery `a b`>><<html `<`>>", "a+b&lt;", id="urlquery and html"),
        pytest.param("<<slice .Series 1 2>>", "a", id="slice"),
        pytest.param("<<print .Series 1 2>>", "lag1 2", id="print"),
        pytest.param("<<.LabelValuesByName>>", "map[topic:t zone:z]", id="map"),
    ],
)
def test_template_is_rendered_as_in_go(template: str, expected: str) -> None:
    assert Template(template).render(DATA) == expected


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        pytest.param("<<.Foo>>", "can't evaluate field Foo", id="unknown field"),
        pytest.param("<<foo>>", "function 'foo' not defined", id="unknown function"),
        pytest.param("<<if .Series>>", "'if' has no 'end'", id="missing end"),
        pytest.param("<<end>>", "unexpected 'end'", id="unexpected end"),
        pytest.param("<<.Series", "unclosed action", id="unclosed action"),
        pytest.param("<<>>", "empty action", id="empty action"),
        pytest.param("<<$x>>", "undefined variable", id="undefined variable"),
        pytest.param("<<define `x`>><<end>>", "not supported", id="unsupported action"),
        pytest.param("<<.Series.Foo>>", "can't evaluate field Foo", id="field of a string"),
        pytest.param("<<range .Series>><<end>>", "neither a list nor a map", id="range over a string"),
        pytest.param("<<index .GroupBySlice 3>>", "index", id="index out of range"),
        pytest.param("<<.Series 3>>", "non-function", id="argument for a non-function"),
        pytest.param("<<(.Series>>", "unclosed parenthesis", id="unclosed parenthesis"),
        pytest.param("<<lt 1 `a`>>", "lt", id="comparison of a number and a string"),
        pytest.param('<<printf "%s">>', "printf: 1 verbs, but 0 values", id="printf without its value"),
        pytest.param('<<printf "%d" .Series>>', "printf: %d format", id="printf of a string as a number"),
        pytest.param("<<if .Series>><<else range .Series>><<end>>", "unexpected 'range'", id="else with another block"),
        pytest.param("<<§>>", "unexpected", id="invalid character"),
    ],
)
def test_template_that_go_rejects_is_rejected(template: str, reason: str) -> None:
    with pytest.raises(TemplateError, match=reason):
        Template(template).render(DATA)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        pytest.param('<<printf "%999999999s" "x">>', "a width or precision has more than 3 digits", id="width"),
        pytest.param('<<printf "%.999999999f" 1.0>>', "a width or precision has more than 3 digits", id="precision"),
        pytest.param('<<$x := "aaaaaaaa">>' + "<<$x = print $x $x>>" * 40, "the result has more than", id="doubling"),
        pytest.param("<<$x := printf `%999s` `a`>>" + "<<$x>>" * 2000, "the result has more than", id="long output"),
        pytest.param("<<" + "(" * 5000 + "1" + ")" * 5000 + ">>", "nested too deeply", id="parentheses"),
        pytest.param("<<if 1>>" * 5000 + "<<end>>" * 5000, "nested too deeply", id="blocks"),
    ],
)
def test_template_that_grows_or_nests_without_limit_is_an_error(template: str, message: str):
    with pytest.raises(TemplateError, match=message):
        Template(template).render({})
