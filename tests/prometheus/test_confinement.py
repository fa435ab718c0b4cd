"""Restricted queries on a Prometheus with the data of all namespaces, and on one with only the tenant's data."""

import json
import math
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from http.client import HTTPConnection
from typing import Any, Final
from urllib.parse import urlencode

import pytest

from adapter.rules.promql.errors import PromqlError
from adapter.rules.promql.sample_age import with_timestamps
from adapter.rules.tenancy import restrict_to_namespace
from tests.control_plane.cluster import LOOPBACK
from tests.prometheus.server import Server, line, prometheus, require
from tests.security.promql.generator import QueryGenerator
from tests.security.promql.vocabulary import CORPUS

pytestmark = pytest.mark.prometheus
NOW: Final = 1_700_000_000
COUNT: Final = 1000
NAMES: Final = ("x", "y", "up", "offset", "or", "and", "unless", "by", "sum", "start", "bool_")
NAMESPACES: Final = ("shop", "bank", "")
UNORDERED: Final = ("topk", "bottomk", "limit", "TOPK")
"""Which of several equal values these select depends on the order in the server's index."""

Response = list[tuple[dict[str, str], float]] | str
"""The series of a response, or the status of a failure."""


def samples(namespaces: tuple[str, ...]) -> str:
    lines = []
    for number, name in enumerate(NAMES):
        lines.append(f"# TYPE {name} gauge\n")
        for index, namespace in enumerate(namespaces):
            for a, b in (("1", "a"), ("2", "b"), ("", "a|b")):
                labels = {"a": a, "b": b, "pod": f"{namespace}-{a}", "namespace": namespace}
                labels = {label: value for label, value in labels.items() if value}
                seed = NAMESPACES.index(namespace) * 1000 + number * 10 + len(b) + index
                times = range(NOW - 3600, NOW + 1, 60)
                lines += (line(name, labels, str(seed + at // 60 % 7), at) for at in times)
    return "".join(lines)


@pytest.fixture(scope="module")
def all_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    require()
    with prometheus(tmp_path_factory.mktemp("all"), samples=samples(NAMESPACES)) as running:
        yield running


@pytest.fixture(scope="module")
def tenant_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    require()
    with prometheus(tmp_path_factory.mktemp("tenant"), samples=samples(("shop",))) as running:
        yield running


class Client:
    """A connection to one server that is kept for all queries."""

    def __init__(self, server: Server) -> None:
        self._connection = HTTPConnection(LOOPBACK, server.port, timeout=60)

    def close(self) -> None:
        self._connection.close()

    def response(self, query: str) -> Response:
        form = urlencode({"query": query, "time": str(NOW)})
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", "/api/v1/query", form, headers)
        response = self._connection.getresponse()
        body = json.loads(response.read())
        if response.status != 200:
            return str(response.status)
        data: Mapping[str, Any] = body["data"]
        if data["resultType"] == "vector":
            rows = [(series["metric"], float(series["value"][1])) for series in data["result"] if "value" in series]
            return sorted(rows, key=lambda row: sorted(row[0].items()))
        return [({}, float(data["result"][1]))] if data["resultType"] == "scalar" else data["resultType"]


def is_equal(one: Response, other: Response, query: str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    if any(word in query for word in UNORDERED):
        return len(one) == len(other)
    return len(one) == len(other) and all(
        left[0] == right[0]
        and (
            math.isclose(left[1], right[1], rel_tol=1e-6, abs_tol=1e-6)
            or (math.isnan(left[1]) and math.isnan(right[1]))
        )
        for left, right in zip(one, other, strict=True)
    )


def without_namespace(response: Response) -> Response:
    """Drop the label that ``absent()`` derives from the added matcher."""
    if isinstance(response, str):
        return response
    rows = [({key: text for key, text in labels.items() if key != "namespace"}, value) for labels, value in response]
    return sorted(rows, key=lambda row: sorted(row[0].items()))


def queries(seed: int) -> Iterator[str]:
    yield from CORPUS
    plain, unusual = QueryGenerator(seed, NAMES, is_plain=True), QueryGenerator(seed, NAMES)
    for _ in range(COUNT):
        yield plain.valid()
        yield unusual.query()


class Comparison:
    """The results of queries on both servers."""

    def __init__(self, everything: Client, own: Client) -> None:
        self._everything, self._own = everything, own
        self.counts, self.failures = Counter[str](), list[tuple[str, str, Response, Response]]()

    def compare(self, query: str) -> None:
        self.counts["queries"] += 1
        try:
            restricted = restrict_to_namespace(query, "namespace", "shop").replace("<<.LabelMatchers>>", "")
        except PromqlError:
            return
        self.counts["restricted"] += 1
        response = self._compare(query, restricted)
        self.counts["with a result"] += isinstance(response, list)
        self.counts["with series"] += isinstance(response, list) and bool(response)
        self._compare_with_original(query, restricted, response)
        if (extended := with_timestamps(restricted)) is not None:
            self.counts["with timestamps"] += 1
            self._compare(query, extended)

    def _compare(self, query: str, restricted: str) -> Response:
        response, expected = self._everything.response(restricted), self._own.response(restricted)
        if not is_equal(response, expected, query):
            self.failures.append((query, restricted, response, expected))
        return response

    def _compare_with_original(self, query: str, restricted: str, response: Response) -> None:
        expected = self._own.response(query)
        if "absent" in query:
            response, expected = without_namespace(response), without_namespace(expected)
        is_invalid = expected == "400"  # such as {a=""}, which has no matcher that requires a label
        if not is_invalid and not is_equal(response, expected, query):
            self.failures.append((query, restricted, response, expected))
        self.counts["unrestricted differs"] += not is_equal(self._everything.response(query), expected, query)


@pytest.mark.parametrize("seed", [pytest.param(1, id="fixed seed"), pytest.param(None, id="random seed")])
def test_restricted_query_has_the_result_of_a_server_with_only_the_tenants_data(
    all_data: Server, tenant_data: Server, seed: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = secrets.randbits(32) if seed is None else seed
    with closing(Client(all_data)) as everything, closing(Client(tenant_data)) as own:
        comparison = Comparison(everything, own)
        for query in queries(seed):
            comparison.compare(query)
    with capsys.disabled():
        print(f"\nseed {seed}: {dict(comparison.counts)}")  # noqa: T201
    assert comparison.failures == []
    assert comparison.counts["with series"] > COUNT / 2
    assert comparison.counts["unrestricted differs"] > COUNT / 4
