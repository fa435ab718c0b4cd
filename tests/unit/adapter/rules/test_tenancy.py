import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.rules.promql.errors import PromqlError
from adapter.rules.promql.expression import LabelMatcher, vector_selectors
from adapter.rules.promql.parser import parse
from adapter.rules.tenancy import restrict_to_namespace


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("x", 'x{namespace="shop"}'),
        ("sum(x)", 'sum(x{namespace="shop"})'),
        ('x{a="b"}', 'x{namespace="shop",a="b"}'),
        ('{__name__=~".+"}', '{namespace="shop",__name__=~".+"}'),
        ("x / on(a) group_left y", 'x{namespace="shop"} / on (a) group_left () y{namespace="shop"}'),
        (
            "vector(0) + on() group_right() offset",
            'vector(0) + on () group_right () {__name__="offset",namespace="shop"}',
        ),
        ("x > bool unless", 'x{namespace="shop"} > bool {__name__="unless",namespace="shop"}'),
        ('x{namespace="bank"}', 'x{namespace="shop",namespace="bank"}'),
        (
            'label_replace(x, "namespace", "shop", "", "")',
            'label_replace(x{namespace="shop"}, "namespace", "shop", "", "")',
        ),
        ("rate(x{<<.LabelMatchers>>}[5m])", 'rate(x{namespace="shop",<<.LabelMatchers>>}[5m])'),
        (
            'a{<<.LabelMatchers>>} / b{c="d",<<.LabelMatchers>>,}',
            'a{namespace="shop",<<.LabelMatchers>>} / b{namespace="shop",c="d",<<.LabelMatchers>>}',
        ),
        ('x # {namespace="bank"}', 'x{namespace="shop"}'),
        ("x # of Windows\r\nor y # too\r", 'x{namespace="shop"} or y{namespace="shop"}'),
        ("x # comment\r or y", 'x{namespace="shop"} or y{namespace="shop"}'),
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
        ("WITH (a = x) a", "invalid PromQL"),
        (r'label_replace(x, "a", "\x3c\x3c.Series>>", "", "")', "a string may not contain '<<'"),
        ("x" + " or x" * 151, "no more than 150 operators"),
        ("<<.Series>>", "only template action allowed here is <<.LabelMatchers>>"),
        ("x{<<if true>>}", "only template action allowed here is <<.LabelMatchers>>"),
        ('x{steadyscale_label_matchers=""}', "is reserved"),
        ('x{steadyscale_label_matchers ="",a="<<.LabelMatchers>>"}', "is reserved"),
        ('x{a="<<.LabelMatchers>>y"}', "invalid PromQL"),
        ("x{a='<<.LabelMatchers>>'}", "must be a matcher of its own"),
        ("x{a=<<.LabelMatchers>>}", "invalid PromQL"),
        ('x{<<.LabelMatchers>>"y"}', "invalid PromQL"),
        ("x{b<<.LabelMatchers>>}", "must be a matcher of its own"),
        ("sum by (<<.LabelMatchers>>) (x)", "invalid PromQL"),
        ("x + <<.LabelMatchers>>", "invalid PromQL"),
        ("x # <<.LabelMatchers>>", "must be a matcher of its own"),
        ("x{", "invalid PromQL"),
        ("x}", "invalid PromQL"),
        ('x{a="\n"}', "a string is not terminated"),
    ],
)
def test_query_that_cannot_be_restricted_safely_is_rejected(query: str, reason: str):
    with pytest.raises(PromqlError, match=reason):
        restrict_to_namespace(query, "namespace", "shop")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("a + fill(0) b", "uses fill modifiers"),
        ("limitk(1, x)", r"uses limitk\(\)"),
        ("double_exponential_smoothing(x[5m], 0.5, 0.5)", r"uses double_exponential_smoothing\(\)"),
        ('sum by ("a b") (x)', "uses the label 'a b'"),
        ('x * on ("a b") y', "uses the label 'a b'"),
        ('x{vm_account_id="1"}', "uses the label 'vm_account_id'"),
        ('{__name__="x",__name__="y"}', "has a selector with two metric names"),
    ],
)
def test_query_that_metricsql_reads_differently_is_rejected_for_that_dialect(query: str, reason: str):
    assert restrict_to_namespace(query, "namespace", "shop")
    with pytest.raises(PromqlError, match=f"{reason}, which is not supported on a backend with dialect MetricsQL"):
        restrict_to_namespace(query, "namespace", "shop", "MetricsQL")


def test_query_of_the_common_subset_is_the_same_in_both_dialects():
    query = 'sum by (a) (rate(x{b=~"c|d"}[5m] offset 1h)) / on (a) group_left () max by (a) (offset) > 0.5'
    restricted = restrict_to_namespace(query, "namespace", "shop")
    assert restrict_to_namespace(query, "namespace", "shop", "MetricsQL") == restricted


@given(st.text(alphabet="abx{}()[]=~!\"'`,+ \r\n#\\<.0159ormsby", max_size=40))
def test_every_selector_of_any_accepted_query_has_the_namespace_matcher(query: str):
    try:
        restricted = restrict_to_namespace(query, "namespace", "shop")
    except PromqlError:
        return
    for selector in vector_selectors(parse(restricted.replace("<<.LabelMatchers>>", ""))):
        assert LabelMatcher("namespace", "=", "shop") in selector.matchers
