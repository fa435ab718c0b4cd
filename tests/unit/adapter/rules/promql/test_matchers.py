"""Selectors as matchers, and text as PromQL's strings."""

import pytest

from adapter.rules.promql.matchers import NotExpressible, literal, matchers, quoted
from autoscaler.values.selector import Selector, parse


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param("", (), id="nothing"),
        pytest.param("a=b", ('a="b"',), id="equal"),
        pytest.param("a==b", ('a="b"',), id="equal, twice"),
        pytest.param("a!=b", ('a!="b"',), id="not equal"),
        pytest.param("a in (c,b)", ('a=~"b|c"',), id="one of several"),
        pytest.param("a in (b)", ('a="b"',), id="one of one"),
        pytest.param("a notin (c,b)", ('a!~"b|c"',), id="none of several"),
        pytest.param("a notin (b)", ('a!="b"',), id="none of one"),
        pytest.param("a", ('a!=""',), id="exists"),
        pytest.param("!a", ('a=""',), id="does not exist"),
        pytest.param("a in (x.y,z)", ('a=~"x\\\\.y|z"',), id="a dot is a dot"),
        pytest.param("a=", ('a=""', 'a!=""'), id="equal to nothing: no series has an empty label"),
        pytest.param("a in (,b)", ('a="b"',), id="nothing or b"),
        pytest.param("a!=", (), id="not equal to nothing: every series"),
        pytest.param("a notin (,b)", ('a!="b"',), id="neither nothing nor b"),
        pytest.param("b=1,a=2", ('a="2"', 'b="1"'), id="several, in order"),
    ],
)
def test_a_selector_is_written_as_matchers_that_mean_the_same(selector: str, expected: tuple[str, ...]) -> None:
    assert matchers(parse(selector)) == expected


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        pytest.param("a>5", "compares numbers", id="greater than"),
        pytest.param("a<5", "compares numbers", id="less than"),
        pytest.param("a.b/c=d", "cannot be the name of a label", id="a key that PromQL cannot name"),
    ],
)
def test_what_promql_cannot_say_is_refused(selector: str, why: str) -> None:
    with pytest.raises(NotExpressible, match=why):
        matchers(parse(selector))


def test_a_selector_of_nothing_is_refused() -> None:
    with pytest.raises(NotExpressible):
        matchers(Selector(selectable=False))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("plain", '"plain"', id="plain"),
        pytest.param('"} or up{x="', '"\\"} or up{x=\\""', id="a quote"),
        pytest.param("a\\", '"a\\\\"', id="a backslash"),
        pytest.param("a\nb\t\r\x00", '"a\\nb\\t\\r\\x00"', id="control characters"),
        pytest.param("größe 🐢", '"größe 🐢"', id="other scripts"),
        pytest.param("\ud800", '"?"', id="half a character"),
    ],
)
def test_a_text_stays_one_string(text: str, expected: str) -> None:
    assert quoted(text) == expected


def test_a_literal_escapes_what_re2_would_take_for_more() -> None:
    assert literal("a.b*c|d(e)[f]{g}^h$i+j?k\\l") == r"a\.b\*c\|d\(e\)\[f\]\{g\}\^h\$i\+j\?k\\l"
