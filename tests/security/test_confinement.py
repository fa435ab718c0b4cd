"""Attempts to read series of other namespaces, or to stop the process, with the query of an ExternalMetric."""

import secrets
import time
from pathlib import Path

import pytest

from adapter.rules.promql.errors import PromqlError
from adapter.rules.promql.sample_age import with_timestamps
from adapter.rules.tenancy import Dialect, restrict_to_namespace
from tests.security.confinement_fuzz import NAMESPACE, fuzz
from tests.security.promql import parsers

SMALL_COUNT = 4000
"""``python -m tests.security.confinement_fuzz`` runs many more."""

ESCAPES = (
    "vector(0) + on() group_right() offset",
    "vector(0) + on() group_left() or",
    "x + ignoring() and",
    "x > bool offset",
    "x > bool unless",
    "nan.5",
    "inf.5",
    "x + atan2",
    "x + group_left",
    "x + on() group_right",
    'x{a="b" or namespace="bank"}',
    "info(x)",
    "WITH (y = x) y",
)
HOSTILE = {
    "parentheses": "(" * 8000 + "x" + ")" * 8000,
    "open parentheses": "(" * 16_000,
    "unary minus": "-" * 16_000 + "x",
    "calls": "abs(" * 3000 + "x" + ")" * 3000,
    "operators": "x" + "+x" * 8000,
    "set operators": "x" + " or x" * 3000,
    "regular expressions": "x{" + ",".join([r'a=~"\\w{300}"'] * 1000) + "}",
    "nested repetition": "x{" + ",".join(['a=~"(((a{30}){30}){30}){30}"'] * 500) + "}",
    "matchers": "x{" + 'a="b",' * 2500 + "}",
    "labels": "sum by (" + "a," * 8000 + ") (x)",
    "quotes": "'" * 16_001,
    "backslashes": '"' + "\\" * 16_000 + '"',
    "escaped quotes": '"' + '\\"' * 8000,
    "at signs": "@ " * 8000,
    "comments": "#\n" * 8000 + "x",
    "spaces": " " * 16_000 + "x",
    "numbers": "1" * 16_000,
    "duration": "x[" + "1h" * 8000 + "]",
    "overflow": "x offset 1e300 @ 1e300",
}


@pytest.fixture(scope="module")
def program() -> Path:
    return parsers.require()


@pytest.mark.parametrize("query", ESCAPES)
@pytest.mark.parametrize("dialect", ["PromQL", "MetricsQL"])
def test_keyword_in_the_place_of_a_metric_name_does_not_escape(program: Path, query: str, dialect: Dialect) -> None:
    try:
        confined = restrict_to_namespace(query, "namespace", NAMESPACE, dialect)
    except PromqlError:
        return
    extended = with_timestamps(confined)
    assert extended is not None
    for verdicts in parsers.parse_all(program, [(query, confined), (query, extended)], NAMESPACE):
        assert verdicts.readings
        for reading in verdicts.readings.values():
            assert all(f'namespace="{NAMESPACE}"' in selector for selector in reading.selectors or [])


@pytest.mark.parametrize("dialect", ["PromQL", "MetricsQL"])
@pytest.mark.parametrize("seed", [pytest.param(1, id="fixed seed"), pytest.param(None, id="random seed")])
def test_generated_queries_do_not_escape_and_keep_their_meaning(
    program: Path, dialect: Dialect, seed: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = secrets.randbits(32) if seed is None else seed
    report = fuzz(program, SMALL_COUNT, seed, dialect)
    with capsys.disabled():
        print(f"\ndialect {dialect}, seed {seed}: {report}")  # noqa: T201
    assert report.failures == []
    assert report.counts["selectors read by plain"] > SMALL_COUNT / 4
    if dialect == "PromQL":
        accepted = report.counts["confined, without experimental syntax"]
        assert accepted > 0.95 * report.counts["valid in Prometheus without experimental syntax"]


@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE)
def test_hostile_query_is_checked_quickly_and_does_not_end_the_process(query: str) -> None:
    started = time.process_time()
    message = ""
    try:
        restrict_to_namespace(query, "namespace", NAMESPACE)
    except PromqlError as error:
        message = str(error)
    assert len(message) < 1000
    assert with_timestamps(query) is None or "timestamp(" in str(with_timestamps(query))
    # CPU time of this thread's process, with a wide margin: without limits these take minutes or overflow the stack.
    assert time.process_time() - started < 5
