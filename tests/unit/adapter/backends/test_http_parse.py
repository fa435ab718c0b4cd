"""Parsing of JSON, XML and text documents by the HTTP backend, including malicious documents."""

from datetime import UTC, datetime
from typing import Any

import pytest

from adapter.backends.http.parse import samples
from adapter.backends.http.settings import HttpParameters
from adapter.errors import BackendError, BackendRejected, BadQuery

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ENTITY_EXPANSION = b"""<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><x>&b;</x>"""
EXTERNAL_ENTITY = b"""<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>"""
QUEUES = b"""<broker xmlns:m="urn:m"><m:queue name="a" size="3"><depth>5</depth></m:queue>
<queue name="b" size="4"><depth> 7.5 </depth></queue><queue name="c"/></broker>"""


def read(body: bytes, format_: str = "json", value: str = "") -> list[tuple[float, dict[str, str]]]:
    parsed = samples(body, HttpParameters(format=format_, value=value), NOW)  # type: ignore[arg-type]
    assert all(sample.at == NOW for sample in parsed)
    return [(sample.value, dict(sample.labels)) for sample in parsed]


@pytest.mark.parametrize(
    ("body", "value", "expected"),
    [
        pytest.param(b"12", "", [(12, {})], id="number"),
        pytest.param(b'"12.5"', "", [(12.5, {})], id="number in quotes"),
        pytest.param(b'{"a":{"b":[1,2,3]}}', "a.b[1]", [(2, {})], id="path"),
        pytest.param(b'{"a":{"b":[1,2,3]}}', "sum(a.b)", [(6, {})], id="function"),
        pytest.param(b'{"a":1}', "b", [], id="no match"),
        pytest.param(b"[]", "", [], id="empty list"),
        pytest.param(b"null", "", [], id="null"),
        pytest.param(b"[1,2]", "", [(1, {}), (2, {})], id="list of numbers"),
        pytest.param(
            b'{"q":[{"n":"x","d":1},{"n":"y","d":"2"}]}',
            "q[].{labels: {queue: n}, value: d}",
            [(1, {"queue": "x"}), (2, {"queue": "y"})],
            id="list of series",
        ),
        pytest.param(
            b'[{"labels":{"a":1,"b":true,"c":"x"},"value":3}]',
            "",
            [(3, {"a": "1", "b": "true", "c": "x"})],
            id="labels are converted to text",
        ),
    ],
)
def test_json(body: bytes, value: str, expected: list[Any]):
    assert read(body, "json", value) == expected


@pytest.mark.parametrize("timestamp", ['"2026-02-28T23:59:00Z"', "1772323140", '"2026-02-28T23:59:00"'])
def test_series_can_have_a_timestamp(timestamp: str):
    (sample,) = samples(f'[{{"value":1,"timestamp":{timestamp}}}]'.encode(), HttpParameters(), NOW)
    assert sample.at == datetime(2026, 2, 28, 23, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("format_", "body", "value", "error_type", "message"),
    [
        ("json", b"<html>", "", BackendRejected, "the response is not valid JSON"),
        ("json", b"\xff\xfe", "", BackendRejected, "the response is not valid JSON"),
        ("json", b'{"a":1}', "", BackendRejected, "the value is not a number"),
        ("json", b"true", "", BackendRejected, "the value is not a number"),
        ("json", b'"many"', "", BackendRejected, "the value is not a number"),
        (
            "json",
            b'[{"value":1,"extra":2}]',
            "",
            BadQuery,
            "a series can only have the keys labels, value and timestamp",
        ),
        ("json", b'[{"labels":[1],"value":1}]', "", BadQuery, "the labels of a series must be an object"),
        ("json", b'[{"value":null}]', "", BackendRejected, "the value is not a number"),
        ("json", b'[{"value":1,"timestamp":"soon"}]', "", BackendRejected, "the timestamp is not a time"),
        ("json", b'{"a":"x"}', "sum(a)", BadQuery, "the JMESPath expression failed on the document"),
        ("xml", ENTITY_EXPANSION, ".", BackendRejected, "XML with a document type declaration is not supported"),
        ("xml", EXTERNAL_ENTITY, ".", BackendRejected, "XML with a document type declaration is not supported"),
        ("xml", b"<a><b></a>", "b", BackendRejected, "the response is not valid XML"),
        ("xml", b"", "b", BackendRejected, "the response is not valid XML"),
        ("xml", b"<a>x</a>", ".", BackendRejected, "the value is not a number"),
        ("text", b"plenty", "", BackendRejected, "the value is not a number"),
    ],
)
def test_invalid_document_or_expression_is_rejected(
    format_: str, body: bytes, value: str, error_type: type[BackendError], message: str
):
    with pytest.raises(error_type) as caught:
        read(body, format_, value)
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


def test_deeply_nested_documents_do_not_exhaust_the_stack():
    deep = 100_000
    with pytest.raises(BackendRejected):
        read(b"[" * deep + b"]" * deep)
    with pytest.raises(BackendRejected):
        read(b"<a>" * deep + b"1" + b"</a>" * deep, "xml", "nothing")
