import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.rules.promql.lexer import PromqlError, tokens, vector_selectors
from adapter.rules.tenancy import confined


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
def test_the_matcher_is_added_wherever_series_are_read(query: str, expected: str):
    assert confined(query, "namespace", "shop") == expected


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ('x{a="1" or b="2"}', "'or' between matchers"),
        ('{a="1" OR b="2"}', "'or' between matchers"),
        ("info(x)", "does not name"),
        ("WITH (a = x) a", "WITH"),
        ("<<.Series>>", "only <<.LabelMatchers>>"),
        ("x{<<if true>>}", "only <<.LabelMatchers>>"),
        ('x{steadyscale_label_matchers=""}', "not for use"),
        ('x{steadyscale_label_matchers ="",a="<<.LabelMatchers>>"}', "not for use"),
        ('x{a="<<.LabelMatchers>>y"}', "can only be a matcher by itself"),
        ("x{a='<<.LabelMatchers>>'}", "can only be a matcher by itself"),
        ("x{a=<<.LabelMatchers>>}", "can only be a matcher by itself"),
        ('x{<<.LabelMatchers>>"y"}', "can only be a matcher by itself"),
        ("x{b<<.LabelMatchers>>}", "can only be a matcher by itself"),
        ("sum by (<<.LabelMatchers>>) (x)", "can only be a matcher by itself"),
        ("x + <<.LabelMatchers>>", "can only be a matcher by itself"),
        ("x # <<.LabelMatchers>>", "can only be a matcher by itself"),
        ("x{", "is missing"),
        ("x}", "closes nothing"),
        ('x{a="\n"}', "unexpected text"),
        ("x # of ours\r or y", "unexpected text: '# of ours"),
        ("x{ # `\r a=`}`}", "unexpected text: '# `"),
    ],
)
def test_what_cannot_be_confined_with_certainty_is_refused(query: str, says: str):
    with pytest.raises(PromqlError, match=says):
        confined(query, "namespace", "shop")


@given(st.text(alphabet="abx{}()[]=~!\"'`,+ \r\n#\\<.0159ormsby", max_size=40))
def test_no_text_at_all_gets_past_the_matcher(query: str):
    try:
        safe = confined(query, "namespace", "shop")
    except PromqlError:
        return
    for selector in vector_selectors(safe.replace("<<.LabelMatchers>>", "")):
        inside = [token.text for token in tokens(safe[selector.opening or selector.end : selector.end])]
        assert inside[:4] == ["{", "namespace", "=", '"shop"']
