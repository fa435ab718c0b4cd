"""Go's templates, as far as queries use them."""

import pytest

from adapter.rules.go_template.nodes import TemplateError
from adapter.rules.go_template.parser import parse
from adapter.rules.go_template.render import fill

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
        pytest.param("<< .Series >>", "lag", id="spaces inside"),
        pytest.param('<<index .LabelValuesByName "topic">>', "t", id="index"),
        pytest.param('[<<index .LabelValuesByName "none">>]', "[]", id="index of what is not there"),
        pytest.param("<<.LabelValuesByName.topic>>", "t", id="a key as a field"),
        pytest.param("<<.LabelValuesByName.none>>", "<no value>", id="a key that is not there"),
        pytest.param("<<if .GroupBy>>x<<else>>y<<end>>", "y", id="if, else"),
        pytest.param('<<if eq .Series "a">>1<<else if eq .Series "lag">>2<<end>>', "2", id="else if"),
        pytest.param("<<if not .GroupBySlice>>none<<end>>", "none", id="an empty list is false"),
        pytest.param("<<range $k, $v := .LabelValuesByName>><<$k>>=<<$v>>;<<end>>", "topic=t;zone=z;", id="range"),
        pytest.param("<<range .LabelValuesByName>><<.>><<end>>", "tz", id="the dot in a range"),
        pytest.param("<<range .GroupBySlice>>x<<else>>none<<end>>", "none", id="a range of nothing"),
        pytest.param('<<with index .LabelValuesByName "topic">><<.>>/<<$.Series>><<end>>', "t/lag", id="with, and $"),
        pytest.param('<<printf "%q %s %d%%" .Series "x" 5>>', '"lag" x 5%', id="printf"),
        pytest.param('<<.Series | printf "%s_%s" "x">>', "x_lag", id="a pipeline"),
        pytest.param("<<$x := .Series>><<$x>>", "lag", id="a variable"),
        pytest.param('<<$x := "a">><<if true>><<$x = "b">><<end>><<$x>>', "b", id="a variable that is set again"),
        pytest.param("<<(index .LabelValuesByName `zone`)>>", "z", id="parentheses and a raw string"),
        pytest.param("a  <<- .Series ->>  b", "alagb", id="trimmed space"),
        pytest.param("a<</* nothing */>>b", "ab", id="a comment"),
        pytest.param("<<len .LabelValuesByName>>", "2", id="len"),
        pytest.param("<<and .Series .GroupBy>>|<<or .GroupBy .Series>>", "|lag", id="and, or"),
        pytest.param("<<lt 1 2>> <<ge 1 2>> <<ne 1 2>>", "true false true", id="comparisons"),
        pytest.param('<<">>">>', ">>", id="the closing sign in a string"),
        pytest.param("<<urlquery `a b`>><<html `<`>>", "a+b&lt;", id="escapes"),
        pytest.param("<<slice .Series 1 2>>", "a", id="slice"),
        pytest.param("<<print .Series 1 2>>", "lag1 2", id="print"),
        pytest.param("<<.LabelValuesByName>>", "map[topic:t zone:z]", id="a whole map"),
    ],
)
def test_a_template_is_filled_as_go_fills_it(template: str, expected: str) -> None:
    assert fill(parse(template), DATA) == expected


@pytest.mark.parametrize(
    ("template", "why"),
    [
        pytest.param("<<.Foo>>", "can't evaluate field Foo", id="no such field"),
        pytest.param("<<foo>>", "function 'foo' not defined", id="no such function"),
        pytest.param("<<if .Series>>", "'if' has no 'end'", id="no end"),
        pytest.param("<<end>>", "unexpected 'end'", id="an end too many"),
        pytest.param("<<.Series", "not closed", id="not closed"),
        pytest.param("<<>>", "an action is empty", id="empty"),
        pytest.param("<<$x>>", "undefined variable", id="no such variable"),
        pytest.param("<<define `x`>><<end>>", "not supported", id="define"),
        pytest.param("<<.Series.Foo>>", "can't evaluate field Foo", id="a field of a text"),
        pytest.param("<<range .Series>><<end>>", "not a list", id="a range of a text"),
        pytest.param("<<index .GroupBySlice 3>>", "index", id="beyond the list"),
        pytest.param("<<.Series 3>>", "no function", id="an argument for what is no function"),
        pytest.param("<<(.Series>>", "not closed", id="a parenthesis that is not closed"),
        pytest.param("<<lt 1 `a`>>", "lt", id="comparing a number with a text"),
        pytest.param("<<§>>", "unexpected", id="no token at all"),
    ],
)
def test_what_go_refuses_is_refused(template: str, why: str) -> None:
    with pytest.raises(TemplateError, match=why):
        fill(parse(template), DATA)
