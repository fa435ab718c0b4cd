"""Every parser of tenants' and callers' texts takes linear time on hostile texts and raises only its own error."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pytest
from yarl import URL

from adapter.backends.azure.resource_id import parse_resource_id
from adapter.backends.cloudwatch import expressions
from adapter.backends.connection.redaction import redact
from adapter.backends.datadog.settings import DatadogParameters
from adapter.backends.http.json_query import compile_expression
from adapter.backends.http.settings import HttpParameters
from adapter.backends.http.text_pattern import compile_pattern
from adapter.backends.http.xml_path import XmlPath
from adapter.backends.kafka.settings import parse_ranges
from adapter.backends.newrelic.settings import NewRelicParameters
from adapter.backends.postgresql.settings import PostgreSqlParameters
from adapter.backends.sqs.settings import SqsParameters
from adapter.backends.upstream.settings import UpstreamParameters
from adapter.decoding.duration import parse_duration
from adapter.errors import NotAcceptable
from adapter.rules.go_template.lexer import TemplateError
from adapter.rules.go_template.template import Template
from adapter.rules.problems import name_problems
from adapter.rules.promql.errors import PromqlError
from adapter.rules.tenancy import restrict_to_namespace
from adapter.server.content_negotiation import Offer, negotiate
from adapter.server.request_context import _parse as parse_request_line
from autoscaler.kube.errors import BadRequest
from autoscaler.kube.objects import split
from autoscaler.kube.paths import api_path, api_url
from autoscaler.readings import decode_usage
from autoscaler.values import selector
from autoscaler.values.names import label_key_problems, label_value_problems
from autoscaler.values.quantity import Quantity, QuantityError
from autoscaler.values.selector import SelectorError
from autoscaler.values.timestamps import parse_rfc3339

QUERY, PARAMETER, HEADER = 16384, 1024, 65536


class Parser(NamedTuple):
    parse: Callable[[str], object]
    errors: tuple[type[Exception], ...]
    bound: int
    """The longest text that can reach it."""

    units: tuple[str, ...] = ()
    """Parts of its language, which are repeated in addition to those for all parsers."""


def problems(create: Callable[[str], Any]) -> Callable[[str], object]:
    return lambda text: list(create(text).problems("parameters"))


def window(text: str) -> object:
    return decode_usage({"metadata": {"name": "x"}, "timestamp": "2026-01-01T00:00:00Z", "window": text})


OFFERS: Final = (Offer("application", "json"),)
PARSERS: Final = {
    "label selector": Parser(
        lambda text: selector.parse(text, 64), (SelectorError,), 32768, ("a=b,", "a in (b,c),", "!a,", "a>1,", "a,")
    ),
    "label key": Parser(label_key_problems, (), 32768, ("a.", "a-", "a/")),
    "label value": Parser(label_value_problems, (), 32768, ("a.", "a-")),
    "metric name": Parser(name_problems, (), QUERY),
    "quantity": Parser(Quantity.parse, (QuantityError,), 4096, ("0", ".", "9", "e", "E9", "Ki", "-")),
    "duration": Parser(parse_duration, (ValueError,), QUERY, ("1h", "1.", ".1ms", "0")),
    "window of a reading": Parser(window, (ValueError,), 4096, ("1h", "1.", "0", "..")),
    "timestamp": Parser(parse_rfc3339, (ValueError,), 4096, ("2026-01-01T00:00:00Z", "0", ":")),
    "Go template": Parser(
        Template, (TemplateError,), QUERY, ("<<", "<<.A>>", "<<if 1>>", "<<(", "<<- ", "(", "<<end>>")
    ),
    "JMESPath": Parser(
        compile_expression, (ValueError,), 2048, ("a.", "[", "a|", "(", "!", "`", "&", "[?a]", "*.", "'")
    ),
    "XML path": Parser(XmlPath, (ValueError,), 2048, ("a/", "//", "[1]", "../", "[@a='b']", "a[", "*")),
    "regular expression": Parser(
        compile_pattern, (ValueError,), 2048, ("(", "a|", "a*", "[", "(?:", "a{9}", "\\pL", "(a")
    ),
    "path": Parser(problems(lambda text: HttpParameters(path=text)), (), 2048, ("/a", "/..", "%2e", "/%2F", "?")),
    "NRQL": Parser(problems(NewRelicParameters), (), QUERY, ("/*", "/* ", "--", "'", '"\\', "`", "SELECT ", "*/")),
    "SQL": Parser(problems(PostgreSqlParameters), (), QUERY, ("/*", "/**/", "--\n", "(", "SELECT ")),
    "Datadog formula": Parser(
        problems(lambda text: DatadogParameters(queries={"a": "b"}, formula=text)),
        (),
        PARAMETER,
        ("a(", "a +", "'", "a ", "_"),
    ),
    "CloudWatch expression": Parser(expressions.requires_own_request, (), QUERY, ("SEARCH(", "'", '"', "m1+", "_")),
    "partitions": Parser(parse_ranges, (), PARAMETER, ("1,", "1-2,", "-", ",")),
    "resource ID": Parser(parse_resource_id, (ValueError,), PARAMETER, ("/subscriptions/", "/a", "/.", "/a/b")),
    "SQS queue": Parser(problems(lambda text: SqsParameters(queue=text)), (), PARAMETER, ("https://", "/1", "[", "@")),
    "upstream selector": Parser(
        problems(lambda text: UpstreamParameters(namespace="a", metric="b", selector=text)), (), PARAMETER, ("a=b,",)
    ),
    "PromQL": Parser(
        lambda text: restrict_to_namespace(text, "namespace", "shop"),
        (PromqlError,),
        QUERY,
        ("(", "x+", "-", "x{", 'x{a="b"},', "sum(", "x or ", "#", "'", "x[5m]", "[5m:]", "1+", "x{}", "and ", '"\\'),
    ),
    "Accept header": Parser(
        lambda text: negotiate(text, OFFERS), (NotAcceptable,), HEADER, ("a/b,", "*/*;q=0,", ";a=b", ",")
    ),
    "request target": Parser(
        lambda text: parse_request_line("GET", URL(f"http://x/{text}", encoded=True)),
        (),
        HEADER,
        ("/a", "%2e", "?a=b", "&a"),
    ),
    "API path": Parser(lambda text: api_url("https://x", api_path("apis", text)), (BadRequest,), QUERY, ("%2e", "../")),
    "JSON document": Parser(lambda text: list(split(text.encode())), (), QUERY, ('"\\', "{", '{"a":', "[1,", '"', "}")),
    "message with secrets": Parser(
        lambda text: redact(text, ("correct-horse", 'pa"ss\\word')),
        (),
        2048,
        ("\\u00", "%2", "&#", "corr", 'pa\\"ss', "''", "&amp;"),
    ),
}
UNITS: Final = (
    "a",
    "0",
    " ",
    "\t",
    "\n",
    "\\",
    '"',
    "'",
    "(",
    ")",
    "[",
    "{",
    "<",
    ">",
    "/",
    ".",
    "%",
    ",",
    "=",
    "\0",
    "é",
    "😀",
    "-",
)


def texts(units: tuple[str, ...], length: int) -> Iterator[str]:
    """Yield repeated units, also with another end, and repeated pairs of units."""
    pairs = [first + second for first in units for second in (*units, *UNITS[:14])]
    repeated = [(unit * (length // len(unit) + 1))[:length] for unit in (*units, *UNITS, *pairs)]
    yield from repeated
    yield from (f"{text[:-1]}!" for text in repeated[: -len(pairs) or None])


def seconds(parser: Parser, text: str) -> float:
    """Return the processor time, which does not depend on other processes."""
    started = time.thread_time()
    with contextlib.suppress(*parser.errors):
        parser.parse(text)
    return time.thread_time() - started


@pytest.mark.filterwarnings("ignore:deprecated string literal syntax")
@pytest.mark.parametrize("name", PARSERS)
def test_parser_takes_linear_time_and_raises_only_its_own_error(name: str) -> None:
    parser = PARSERS[name]
    short = parser.bound // 4
    for brief, full in zip(texts(parser.units, short), texts(parser.units, parser.bound), strict=True):
        before = seconds(parser, brief)
        assert before < 10, (
            f"{brief[:50]!r} ({short} characters) takes {before:.0f} s"
        )  # before the longer text takes hours
        if (after := seconds(parser, full)) < 0.2:
            continue
        ratio = min(seconds(parser, full) for _ in range(3)) / min(before, *(seconds(parser, brief) for _ in range(3)))
        assert ratio < 10, f"{full[:50]!r}: four times the length takes {ratio:.0f} times as long ({after:.2f} s)"
