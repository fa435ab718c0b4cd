import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.rules.promql.lexer import PromqlError, tokenize, vector_selectors
from adapter.rules.tenancy import restrict_to_namespace


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("x", 'x{namespace="shop"}'),
        ("sum(x)", 'sum(x{namespace="shop"})'),
        ('x{a="b"}', 'x{namespace="shop",a="b"}'),
        ('{__name__=~".+"}', '{namespace="shop",__name__=~".+"}'),
        ("x / on(a) group_left y", 'x{namespace="shop"} / on(a) group_left y{namespace="shop"}'),
        ('x{namespace="bank"}', 'x{namespace="shop",namespace="bank"}'),
        (
            'label_replace(x, "namespace", "shop", "", "")',
            'label_replace(x{namespace="shop"}, "namespace", "shop", "", "")',
        ),
        ("rate(x{<<.LabelMatchers>>}[5m])", 'rate(x{namespace="shop",<<.LabelMatchers>>}[5m])'),
        (
            'a{<<.LabelMatchers>>} / b{c="d",<<.LabelMatchers>>,}',
            'a{namespace="shop",<<.LabelMatchers>>} / b{namespace="shop",c="d",<<.LabelMatchers>>,}',
        ),
        ('x # {namespace="bank"}', 'x{namespace="shop"} # {namespace="bank"}'),
        ("x # of Windows\r\nor y # too\r", 'x{namespace="shop"} # of Windows\r\nor y{namespace="shop"} # too\r'),
        ("sum by (queue) (x) or y", 'sum by (queue) (x{namespace="shop"}) or y{namespace="shop"}'),
    ],
)
def test_namespace_matcher_is_added_to_every_selector(query: str, expected: str):
    assert restrict_to_namespace(query, "namespace", "shop") == expected


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ('x{a="1" or b="2"}', "'or' between matchers is not supported"),
        ('{a="1" OR b="2"}', "'or' between matchers is not supported"),
        ("info(x)", "does not name"),
        ("WITH (a = x) a", "WITH templates are not supported"),
        ("<<.Series>>", "only template action allowed here is <<.LabelMatchers>>"),
        ("x{<<if true>>}", "only template action allowed here is <<.LabelMatchers>>"),
        ('x{steadyscale_label_matchers=""}', "is reserved"),
        ('x{steadyscale_label_matchers ="",a="<<.LabelMatchers>>"}', "is reserved"),
        ('x{a="<<.LabelMatchers>>y"}', "must be a matcher of its own"),
        ("x{a='<<.LabelMatchers>>'}", "must be a matcher of its own"),
        ("x{a=<<.LabelMatchers>>}", "must be a matcher of its own"),
        ('x{<<.LabelMatchers>>"y"}', "must be a matcher of its own"),
        ("x{b<<.LabelMatchers>>}", "must be a matcher of its own"),
        ("sum by (<<.LabelMatchers>>) (x)", "must be a matcher of its own"),
        ("x + <<.LabelMatchers>>", "must be a matcher of its own"),
        ("x # <<.LabelMatchers>>", "must be a matcher of its own"),
        ("x{", "is missing"),
        ("x}", "has no opening bracket"),
        ('x{a="\n"}', "unexpected text"),
        ("x # comment\r or y", "unexpected text: '# comment"),
        ("x{ # `\r a=`}`}", "unexpected text: '# `"),
    ],
)
def test_query_that_cannot_be_restricted_safely_is_rejected(query: str, reason: str):
    with pytest.raises(PromqlError, match=reason):
        restrict_to_namespace(query, "namespace", "shop")


@given(st.text(alphabet="abx{}()[]=~!\"'`,+ \r\n#\\<.0159ormsby", max_size=40))
def test_every_selector_of_any_accepted_query_has_the_namespace_matcher(query: str):
    try:
        restricted = restrict_to_namespace(query, "namespace", "shop")
    except PromqlError:
        return
    for selector in vector_selectors(restricted.replace("<<.LabelMatchers>>", "")):
        assert selector.opening is not None
        inside = [token.text for token in tokenize(restricted[selector.opening : selector.end])]
        assert inside[:4] == ["{", "namespace", "=", '"shop"']
