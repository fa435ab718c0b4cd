"""From documents of every kind to numbers, and from documents that mean harm to a refusal."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from adapter.backends.http.parse import samples
from adapter.backends.http.settings import HttpParameters
from adapter.errors import BackendError, BackendRejected, BadQuery

NOW = datetime(2026, 3, 1, tzinfo=UTC)
LAUGHS = b"""<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><x>&b;</x>"""
OUTSIDE = b"""<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>"""
QUEUES = b"""<broker xmlns:m="urn:m"><m:queue name="a" size="3"><depth>5</depth></m:queue>
<queue name="b" size="4"><depth> 7.5 </depth></queue><queue name="c"/></broker>"""


def read(body: bytes, form: str = "json", value: str = "") -> list[tuple[float, dict[str, str]]]:
    found = samples(body, HttpParameters(format=form, value=value), NOW)  # type: ignore[arg-type]
    assert all(sample.at == NOW for sample in found)
    return [(sample.value, dict(sample.labels)) for sample in found]


@pytest.mark.parametrize(
    ("body", "value", "expected"),
    [
        pytest.param(b"12", "", [(12, {})], id="a number is a document"),
        pytest.param(b'"12.5"', "", [(12.5, {})], id="and so is one in quotes"),
        pytest.param(b'{"a":{"b":[1,2,3]}}', "a.b[1]", [(2, {})], id="somewhere inside"),
        pytest.param(b'{"a":{"b":[1,2,3]}}', "sum(a.b)", [(6, {})], id="worked out"),
        pytest.param(b'{"a":1}', "b", [], id="nothing there"),
        pytest.param(b"[]", "", [], id="an empty list"),
        pytest.param(b"null", "", [], id="null"),
        pytest.param(b"[1,2]", "", [(1, {}), (2, {})], id="a list of numbers"),
        pytest.param(
            b'{"q":[{"n":"x","d":1},{"n":"y","d":"2"}]}',
            "q[].{labels: {queue: n}, value: d}",
            [(1, {"queue": "x"}), (2, {"queue": "y"})],
            id="series",
        ),
        pytest.param(
            b'[{"labels":{"a":1,"b":true,"c":"x"},"value":3}]',
            "",
            [(3, {"a": "1", "b": "true", "c": "x"})],
            id="labels are texts",
        ),
    ],
)
def test_json(body: bytes, value: str, expected: list[Any]):
    assert read(body, "json", value) == expected


@pytest.mark.parametrize("at", ['"2026-02-28T23:59:00Z"', "1772323140", '"2026-02-28T23:59:00"'])
def test_a_series_may_say_when_it_is_from(at: str):
    (sample,) = samples(f'[{{"value":1,"at":{at}}}]'.encode(), HttpParameters(), NOW)
    assert sample.at == datetime(2026, 2, 28, 23, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("form", "body", "value", "kind", "message"),
    [
        ("json", b"<html>", "", BackendRejected, "it answers, but not with JSON"),
        ("json", b"\xff\xfe", "", BackendRejected, "it answers, but not with JSON"),
        ("json", b'{"a":1}', "", BackendRejected, "what it answers is no number"),
        ("json", b"true", "", BackendRejected, "what it answers is no number"),
        ("json", b'"many"', "", BackendRejected, "what it answers is no number"),
        ("json", b'[{"value":1,"extra":2}]', "", BadQuery, "a series may have labels, value and at"),
        ("json", b'[{"labels":[1],"value":1}]', "", BadQuery, "labels must be names with values"),
        ("json", b'[{"value":null}]', "", BackendRejected, "what it answers is no number"),
        ("json", b'[{"value":1,"at":"soon"}]', "", BackendRejected, "what it answers is no time"),
        ("json", b'{"a":"x"}', "sum(a)", BadQuery, "the expression does not fit the document"),
        ("xml", LAUGHS, ".", BackendRejected, "it answers with XML that declares a document type"),
        ("xml", OUTSIDE, ".", BackendRejected, "it answers with XML that declares a document type"),
        ("xml", b"<a><b></a>", "b", BackendRejected, "it answers, but not with XML"),
        ("xml", b"", "b", BackendRejected, "it answers, but not with XML"),
        ("xml", b"<a>x</a>", ".", BackendRejected, "what it answers is no number"),
        ("text", b"plenty", "", BackendRejected, "what it answers is no number"),
    ],
)
def test_what_makes_no_sense_is_told(form: str, body: bytes, value: str, kind: type[BackendError], message: str):
    with pytest.raises(kind) as caught:
        read(body, form, value)
    assert caught.value.message == message


def test_xml():
    assert read(QUEUES, "xml", "queue/depth") == [(5, {}), (7.5, {})]
    assert read(QUEUES, "xml", "queue/@size") == [(3, {"name": "a"}), (4, {"name": "b"})]
    assert read(QUEUES, "xml", ".//queue[@name='b']/depth") == [(7.5, {})]
    assert read(QUEUES, "xml", "stack") == []
    assert read(b"<?xml version='1.0' encoding='iso-8859-1'?><a \xfc='1'>2</a>", "xml", ".") == [(2, {"ü": "1"})]


def test_text():
    body = b"queue orders: 12 waiting\nqueue mails: 3 waiting\n"
    assert read(b" 42\n", "text") == [(42, {})]
    assert read(b"up\n", "text", r"\d+") == []
    assert read(body, "text", r"(\d+) waiting") == [(12, {}), (3, {})]
    assert read(body, "text", r"queue (?P<queue>\w+): (?P<value>\d+)") == [
        (12, {"queue": "orders"}),
        (3, {"queue": "mails"}),
    ]


def test_an_expression_that_would_never_end_is_ended():
    started = time.monotonic()
    with pytest.raises(BadQuery, match="the expression takes too long"):
        read(b"a" * 40 + b"!", "text", r"^(a|a|aa)+$")
    assert time.monotonic() - started < 5


def test_depth_is_no_way_to_bring_it_down():
    deep = 100_000
    with pytest.raises(BackendRejected):
        read(b"[" * deep + b"]" * deep)
    assert read(b"<a>" * deep + b"1" + b"</a>" * deep, "xml", "nothing") == []
