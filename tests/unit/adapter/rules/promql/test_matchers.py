import pytest

from adapter.rules.promql.matchers import NotExpressible, escape_regex, quote, selector_matchers
from autoscaler.values.selector import Selector, parse


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param("", (), id="empty selector"),
        pytest.param("a=b", ('a="b"',), id="equal"),
        pytest.param("a==b", ('a="b"',), id="double equals sign"),
        pytest.param("a!=b", ('a!="b"',), id="not equal"),
        pytest.param("a in (c,b)", ('a=~"b|c"',), id="in several values"),
        pytest.param("a in (b)", ('a="b"',), id="in one value"),
        pytest.param("a notin (c,b)", ('a!~"b|c"',), id="notin several values"),
        pytest.param("a notin (b)", ('a!="b"',), id="notin one value"),
        pytest.param("a", ('a!=""',), id="exists"),
        pytest.param("!a", ('a=""',), id="does not exist"),
        pytest.param("a in (x.y,z)", ('a=~"x\\\\.y|z"',), id="regular expression characters are escaped"),
        pytest.param("a=", ('a=""', 'a!=""'), id="equal to the empty value matches no series"),
        pytest.param("a in (,b)", ('a="b"',), id="in empty value or b"),
        pytest.param("a!=", (), id="not equal to the empty value matches every series"),
        pytest.param("a notin (,b)", ('a!="b"',), id="notin empty value or b"),
        pytest.param("b=1,a=2", ('a="2"', 'b="1"'), id="several requirements, sorted"),
    ],
)
def test_selector_is_translated_to_matchers_with_the_same_meaning(selector: str, expected: tuple[str, ...]) -> None:
    assert selector_matchers(parse(selector)) == expected


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        pytest.param("a>5", "compares numbers", id="greater than"),
        pytest.param("a<5", "compares numbers", id="less than"),
        pytest.param("a.b/c=d", "is not a valid PromQL label name", id="key that is not a PromQL label name"),
    ],
)
def test_requirement_that_promql_cannot_express_is_rejected(selector: str, reason: str) -> None:
    with pytest.raises(NotExpressible, match=reason):
        selector_matchers(parse(selector))


def test_selector_that_matches_nothing_is_rejected() -> None:
    with pytest.raises(NotExpressible):
        selector_matchers(Selector(selectable=False))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("plain", '"plain"', id="plain"),
        pytest.param('"} or up{x="', '"\\"} or up{x=\\""', id="quote"),
        pytest.param("a\\", '"a\\\\"', id="backslash"),
        pytest.param("a\nb\t\r\x00", '"a\\nb\\t\\r\\x00"', id="control characters"),
        pytest.param("größe 🐢", '"größe 🐢"', id="non-ASCII text"),
        pytest.param("\ud800", '"?"', id="lone surrogate"),
    ],
)
def test_any_text_is_quoted_as_one_string(text: str, expected: str) -> None:
    assert quote(text) == expected


def test_escape_regex_escapes_re2_metacharacters() -> None:
    assert escape_regex("a.b*c|d(e)[f]{g}^h$i+j?k\\l") == r"a\.b\*c\|d\(e\)\[f\]\{g\}\^h\$i\+j\?k\\l"
