"""Behaviour of the CloudWatch backend: batching, bisecting, metric math, searches, periods, pages, status codes."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from adapter.backends.backend import Aligned
from adapter.backends.configuration import price_per_day
from adapter.backends.loader import create_backend
from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendError, BackendRejected, BackendUnauthorized, BadQuery
from adapter.process import clock
from adapter.sample import RawSample
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import OpenBackend, configuration_for, open_backend
from tests.backends.contract import Json
from tests.backends.peers.cloudwatch import NAMESPACE, Peer

pytestmark = [
    pytest.mark.usefixtures("no_resource_leaks"),
    pytest.mark.parametrize("running_peer", [pytest.param(Peer, id="cloudwatch")], indirect=True, scope="session"),
]
MINUTE = timedelta(minutes=1)


def metric(name: str, queue: str = "orders", **more: object) -> Json:
    return {"namespace": NAMESPACE, "metric": name, "dimensions": {"Queue": queue}, **more}


def ratio(expression: str, upper: str, lower: str) -> Json:
    """Return parameters of an expression over two metrics with the names m1 and m2."""
    return {"expression": expression, "metrics": {"m1": metric(upper), "m2": metric(lower)}}


async def query_concurrently(opened: OpenBackend, queries: Iterable[Json]) -> list[object]:
    """Return the samples or the error of each query."""
    return await asyncio.gather(*(opened.fetch(query, 20) for query in queries), return_exceptions=True)


def values(result: object) -> list[float]:
    assert isinstance(result, tuple), result
    return [sample.value for sample in result]


@asynccontextmanager
async def backend_at(peer: Peer, now: datetime) -> AsyncIterator[OpenBackend]:
    """Open the backend with a clock that stands still."""
    backend = create_backend("it", configuration_for(peer).backends["it"].settings, lambda: now)
    try:
        yield OpenBackend(backend, peer)
    finally:
        await backend.aclose()


async def failure(opened: OpenBackend, parameters: Json) -> BackendError:
    with pytest.raises(BackendError) as caught:
        await opened.fetch(parameters)
    return caught.value


# ---- time ranges


async def test_the_newest_complete_period_is_returned_with_its_time(peer: Peer) -> None:
    now = clock()
    newest = peer.put({"orders": {0: 100, 1: 3, 2: 7, 3: 9}, "mails": {4: 5}}, "Newest", now=now)
    async with backend_at(peer, now) as opened:
        (sample,) = await opened.fetch(metric("Newest"))
        assert sample == RawSample(3, newest, {"Queue": "orders"}, MINUTE)
        (sample,) = await opened.fetch(metric("Newest", "mails"))
        assert sample == RawSample(5, newest - 3 * MINUTE, {"Queue": "mails"}, MINUTE)


async def test_delay_and_window_limit_the_time_range(peer: Peer) -> None:
    peer.put({"orders": {1: 3, 4: 7, 40: 9}, "mails": {40: 5}}, "Reach")
    async with open_backend(peer) as opened:
        assert values(await opened.fetch(metric("Reach", delay="2m"))) == [7]
        assert await opened.fetch(metric("Reach", "mails")) == ()
        assert values(await opened.fetch(metric("Reach", "mails", window="1h"))) == [5]


@pytest.mark.parametrize(
    ("statistic", "number"),
    [("Average", 4), ("Sum", 12), ("Minimum", 1), ("Maximum", 8), ("SampleCount", 3), ("p50", 3), ("p99.9", 8)],
)
async def test_statistics_and_percentiles_are_returned_are_returned(peer: Peer, statistic: str, number: float) -> None:
    name = f"Latency-{statistic}"
    for value in (1, 3, 8):
        peer.put({"orders": {1: value}}, name)
    async with open_backend(peer) as opened:
        assert values(await opened.fetch(metric(name, statistic=statistic))) == [number]


async def test_a_longer_period_is_requested_completely(peer: Peer) -> None:
    now = clock()
    minute = now.replace(second=0, microsecond=0)
    start = minute - timedelta(minutes=minute.minute % 5 + 5)  # start of the newest complete five minutes
    ago = int((minute - start) / MINUTE)
    peer.put({"orders": {ago: 1, ago - 4: 2, ago - 5: 100}}, "Five", now=now)
    async with backend_at(peer, now) as opened:
        (sample,) = await opened.fetch(metric("Five", statistic="Sum", period="5m"))
    assert (sample.value, sample.at, sample.window) == (3, start, timedelta(minutes=5))


async def test_unit_account_and_region_are_sent(peer: Peer) -> None:
    peer.put({"orders": {1: 3}}, "Unit", unit="Seconds")
    peer.server.clear_requests()
    async with open_backend(peer) as opened:
        assert values(await opened.fetch(metric("Unit", unit="Seconds", accountId="210987654321"))) == [3]
        assert await opened.fetch(metric("Unit", unit="Bytes")) == ()
        assert await opened.fetch(metric("Unit", region="eu-north-1")) == ()
    assert peer.server.requests()[0]["MetricDataQueries"][0]["AccountId"] == "210987654321"


# ---- expressions


async def test_equal_metric_names_of_several_expressions_do_not_collide(peer: Peer) -> None:
    peer.put({"orders": {1: 30}}, "Errors")
    peer.put({"orders": {1: 120}}, "Requests")
    async with open_backend(peer) as opened:
        peer.server.clear_requests()
        queries = [
            ratio("100 * m1 / m2", "Errors", "Requests"),
            ratio("m1 / m2", "Requests", "Errors"),
            metric("Errors"),
        ]
        assert [values(result) for result in await query_concurrently(opened, queries)] == [[25], [4], [30]]
        assert [dict(each.labels) for each in await opened.fetch(queries[0])] == [{}]
    assert len(peer.server.requests()[0]["MetricDataQueries"]) == 7, "one request"


async def test_a_division_by_zero_is_nan(peer: Peer) -> None:
    peer.put({"orders": {1: 30}}, "Some")
    peer.put({"orders": {1: 0}}, "None")
    messages = [{"Code": "ArithmeticError", "Value": "One or more data points have been dropped"}]
    async with open_backend(peer) as opened:
        with peer.server.behaving(messages={"q0": messages}):
            (sample,) = await opened.fetch(ratio("m1 / m2", "Some", "None"))
        assert math.isnan(sample.value)
        assert timedelta() < clock() - sample.at < 5 * MINUTE


async def test_a_search_returns_a_series_for_each_metric(peer: Peer) -> None:
    peer.put({"orders": {1: 3}, "mails": {1: 12}, "a b/c": {1: 4}}, "Depth")
    async with open_backend(peer) as opened:
        samples = await opened.fetch(peer.search("Depth"))
        assert {sample.labels["Queue"]: sample.value for sample in samples} == {"orders": 3, "mails": 12, "a b/c": 4}
        unlabelled = {"expression": peer.search("Depth")["expression"]}
        assert sorted((sample.value, len(sample.labels)) for sample in await opened.fetch(unlabelled)) == [
            (3, 0),
            (4, 0),
            (12, 0),
        ]


async def test_a_metrics_insights_query_is_sent_in_its_own_request(peer: Peer) -> None:
    peer.put({"orders": {1: 3}}, "Insights")
    select = [{"expression": f"SELECT {how}(Insights)"} for how in ("SUM", "MAX")]
    async with open_backend(peer) as opened:
        await opened.fetch(metric("Insights"))
        peer.server.clear_requests()
        results = await query_concurrently(opened, [*select, metric("Insights")])
        assert [len(values(result)) for result in results] == [1, 1, 1]
    requests = peer.server.requests()
    assert [len(request["MetricDataQueries"]) for request in requests] == [1, 1, 1]
    assert [
        query["Period"] for request in requests for query in request["MetricDataQueries"] if "Expression" in query
    ] == [
        60,
        60,
    ]


async def test_an_expression_with_the_metrics_function_is_sent_in_its_own_request(peer: Peer) -> None:
    peer.put({"orders": {1: 3}}, "Mine")
    all_metrics = {"expression": "SUM(METRICS())+m1", "metrics": {"m1": metric("Mine")}}
    async with open_backend(peer) as opened:
        peer.server.clear_requests()
        rejected, fetched = await query_concurrently(opened, [all_metrics, metric("Mine")])
    assert isinstance(rejected, BadQuery)  # moto implements no functions
    assert values(fetched) == [3]
    assert sorted(len(request["MetricDataQueries"]) for request in peer.server.requests()) == [1, 2]


# ---- batching


async def test_501_rules_are_batched_into_requests_of_500_and_1(peer: Peer) -> None:
    peer.put({f"q{number}": {1: number} for number in range(501)}, "Many")
    queries = [metric("Many", f"q{number}") for number in range(501)]
    async with open_backend(peer) as opened:
        assert isinstance(opened.backend, Aligned)
        await opened.fetch(queries[0])
        peer.server.clear_requests()
        assert [values(result) for result in await query_concurrently(opened, queries)] == [
            [number] for number in range(501)
        ]
    assert sorted(len(request["MetricDataQueries"]) for request in peer.server.requests()) == [1, 500]


async def test_metrics_of_expressions_count_towards_the_request_limit(peer: Peer) -> None:
    peer.put({"orders": {1: 2}}, "Part")
    queries = [ratio(f"m1 + m2 + {number}", "Part", "Part") for number in range(200)]
    async with open_backend(peer) as opened:
        peer.server.clear_requests()
        assert [values(result) for result in await query_concurrently(opened, queries)] == [
            [4 + number] for number in range(200)
        ]
    assert sorted(len(request["MetricDataQueries"]) for request in peer.server.requests()) == [102, 498]


async def test_rules_with_different_windows_are_sent_in_separate_requests(peer: Peer) -> None:
    peer.put({"orders": {1: 3}}, "Periods")
    queries = [metric("Periods"), metric("Periods", window="30m"), metric("Periods", statistic="Sum")]
    async with open_backend(peer) as opened:
        peer.server.clear_requests()
        assert [values(result) for result in await query_concurrently(opened, queries)] == [[3], [3], [3]]
    assert sorted(len(request["MetricDataQueries"]) for request in peer.server.requests()) == [1, 2]


@pytest.mark.parametrize("error_names_query", [True, False])
async def test_an_invalid_expression_is_quarantined(peer: Peer, *, error_names_query: bool) -> None:
    peer.put({f"q{number}": {1: number} for number in range(60)}, "Good")
    invalid = {"expression": f"m1 +* {error_names_query:d}", "metrics": {"m1": metric("Good")}}
    queries = [metric("Good", f"q{number}") for number in range(60)]
    queries.insert(37, invalid)
    async with open_backend(peer, maxRequestsPerSecond=50) as opened:
        with peer.server.behaving(anonymous_errors=not error_names_query):
            for max_requests in (3 if error_names_query else 14, 2):  # bisecting; quarantined
                peer.server.clear_requests()
                results = await query_concurrently(opened, queries)
                assert isinstance(results.pop(37), BadQuery)
                assert [values(result) for result in results] == [[number] for number in range(60)]
                assert len(peer.server.requests()) <= max_requests


async def test_several_invalid_expressions_are_all_found(peer: Peer) -> None:
    peer.put({f"q{number}": {1: number} for number in range(40)}, "Mixed")
    invalid = {3, 4, 21, 39}
    queries = [
        {"expression": f"m1 +* {number}", "metrics": {"m1": metric("Mixed")}}
        if number in invalid
        else metric("Mixed", f"q{number}")
        for number in range(40)
    ]
    async with open_backend(peer, maxRequestsPerSecond=50) as opened:
        with peer.server.behaving(anonymous_errors=True):
            results = await query_concurrently(opened, queries)
    assert {number for number, result in enumerate(results) if isinstance(result, BadQuery)} == invalid
    assert all(values(result) == [number] for number, result in enumerate(results) if number not in invalid)


# ---- status codes and pages


@pytest.mark.parametrize(
    ("status", "error_type", "message"),
    [
        ("Forbidden", BackendUnauthorized, "permission denied for this metric: check the IAM policy"),
        ("InternalError", BackendRejected, "CloudWatch could not read this metric"),
        ("PartialData", BackendRejected, "CloudWatch returned only part of the data"),
        ("", BackendRejected, "CloudWatch could not read this metric"),
    ],
)
async def test_a_metric_that_cannot_be_read_does_not_fail_others(
    peer: Peer, status: str, error_type: type[BackendError], message: str
) -> None:
    peer.put({"orders": {1: 3}}, "Readable")
    peer.put({"orders": {1: 4}}, "Unreadable")
    async with open_backend(peer) as opened:
        with peer.server.behaving(
            status={"Unreadable": status}, messages={"Unreadable": [{"Code": "X", "Value": "reason"}]}
        ):
            failed, fetched = await query_concurrently(opened, [metric("Unreadable"), metric("Readable")])
    assert isinstance(failed, error_type)
    assert (failed.message, "X: reason" in failed.detail) == (message, True)
    assert values(fetched) == [3]


async def test_a_truncated_search_is_rejected(peer: Peer) -> None:
    peer.put({"orders": {1: 3}}, "Cut")
    too_many = [{"Code": "MaxMetricsExceeded", "Value": "too many"}]
    async with open_backend(peer) as opened:
        with peer.server.behaving(messages={"Cut": too_many}):
            error = await failure(opened, peer.search("Cut"))
        assert error.message == "too many series, the result is truncated: narrow the expression"
        with peer.server.behaving(all_messages=too_many):
            searched, single = await query_concurrently(opened, [peer.search("Cut"), metric("Cut")])
        assert isinstance(searched, BackendRejected)
        assert values(single) == [3]


async def test_all_pages_are_read_and_the_last_status_counts(peer: Peer) -> None:
    peer.put({"orders": {1: 3, 2: 5, 3: 7, 4: 9}, "mails": {3: 1}}, "Paged")
    async with open_backend(peer, maxRequestsPerSecond=50) as opened:
        with peer.server.behaving(points=1):
            peer.server.clear_requests()
            queries = [metric("Paged"), metric("Paged", "mails"), peer.search("Paged")]
            assert [sorted(values(result)) for result in await query_concurrently(opened, queries)] == [
                [3],
                [1],
                [1, 3],
            ]
        assert len(peer.server.requests()) == 8, "four pages each of the metrics and of the search"


async def test_requests_respect_max_requests_per_second(peer: Peer) -> None:
    peer.put({"orders": {1: 3, 2: 5, 3: 7, 4: 9}}, "Paced")
    async with open_backend(peer, maxRequestsPerSecond=5) as opened:
        with peer.server.behaving(points=1):
            started = asyncio.get_running_loop().time()
            assert values(await opened.fetch(metric("Paced"))) == [3]
            assert asyncio.get_running_loop().time() - started >= 0.6, (
                "four pages, three intervals of a fifth of a second"
            )


async def test_a_result_with_too_many_pages_is_rejected(peer: Peer) -> None:
    respond_with(peer, {"MetricDataResults": [], "NextToken": "again"})
    async with open_backend(peer, maxRequestsPerSecond=500) as opened:
        assert (await failure(opened, metric("Any"))).message == "the result has more than 100 pages"


def respond_with(peer: Peer, body: Json) -> None:
    peer.proxy.respond_http(200, json.dumps(body).encode(), "Content-Type: application/x-amz-json-1.0")


NOW = datetime.now(UTC).timestamp()  # noqa: TID251 - the time of a fixed response
GOOD: Json = {"Id": "q0", "Label": "x", "StatusCode": "Complete", "Timestamps": [NOW - 120], "Values": [1.0]}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"MetricDataResults": {}},
        {"MetricDataResults": []},
        {"MetricDataResults": [{**GOOD, "Id": "q1"}]},
        {"MetricDataResults": [{**GOOD, "Values": []}]},
        {"MetricDataResults": [{**GOOD, "Values": ["many"]}]},
        {"MetricDataResults": [{**GOOD, "Timestamps": ["yesterday"]}]},
        {"MetricDataResults": [{**GOOD, "StatusCode": "Perhaps"}]},
        {"MetricDataResults": [3]},
        {"MetricDataResults": "all"},
    ],
)
async def test_an_invalid_response_is_rejected(peer: Peer, body: Json) -> None:
    respond_with(peer, body)
    async with open_backend(peer) as opened:
        assert (await failure(opened, metric("Any"))).failure is FailureClass.REFUSED


async def test_nan_and_negative_values_are_returned(peer: Peer) -> None:
    peer.proxy.respond_http(200, json.dumps({"MetricDataResults": [{**GOOD, "Values": [math.nan]}]}).encode())
    async with open_backend(peer) as opened:
        (sample,) = await opened.fetch(metric("Any"))
        assert math.isnan(sample.value)
        respond_with(peer, {"MetricDataResults": [{**GOOD, "Values": [-3]}]})
        assert values(await opened.fetch(metric("Any"))) == [-3]


# ---- validation and price


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"namespace": "x"}, "metric: exactly one of metric and expression is required"),
        ({"metric": "m"}, "namespace: must not be empty"),
        (metric("m", expression="m1"), "metric: exactly one of metric and expression is required"),
        (metric("m", labels=["Queue"]), "labels: only valid with expression"),
        (
            metric("m", statistic="Mean"),
            "statistic: must be a CloudWatch statistic such as Average, Sum or p95, is 'Mean'",
        ),
        (metric("m", period="90s"), "period: must be 1s, 5s, 10s, 20s, 30s or whole minutes, at most 24h"),
        (metric("m", window="30s"), "window: must be at least as long as period"),
        (metric("m", accountId="1"), "accountId: must be a string of twelve digits; quote it in YAML"),
        ({**metric("m"), "dimensions": {"Queue": ""}}, "dimensions: names and values must not be empty"),
        (
            {"expression": "m1", "namespace": "x", "metrics": {"m1": metric("m")}},
            "namespace: not valid with expression; set it in metrics",
        ),
        (
            {"expression": "m1", "metrics": {"m1": metric("m"), "m2": metric("m")}},
            "metrics.m2: not used in expression",
        ),
        (
            {"expression": "M1", "metrics": {"M1": metric("m")}},
            "metrics.M1: must start with a lowercase letter and contain only letters, digits and _",
        ),
        (
            {"expression": "m1", "metrics": {"m1": {**metric("m"), "namespace": ""}}},
            "metrics.m1.namespace: must not be empty",
        ),
        (
            {"expression": "SELECT x", "labels": ["a", "b"]},
            "labels: must have at most one item with SELECT: the dimension of its GROUP BY",
        ),
        ({"expression": "SEARCH('x')", "labels": ["a'}"]}, 'labels: "a\'}" is not a valid dimension name'),
    ],
)
def test_invalid_parameters_are_reported(peer: Peer, parameters: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, parameters)
    assert caught.value.messages == (f"rules[0].parameters.{problem}",)


@pytest.mark.parametrize(
    ("parameters", "dollars", "because"),
    [
        (metric("m"), 0.0576, "5,760 metrics at $0.01 per 1,000"),
        (ratio("m1 / m2", "a", "b"), 0.1152, "11,520 metrics at $0.01 per 1,000"),
        (
            {"expression": "SEARCH('x')"},
            0.0576,
            "5,760 metrics at $0.01 per 1,000, for each metric that the expression finds",
        ),
    ],
)
def test_the_price_per_day_is_calculated(peer: Peer, parameters: Json, dollars: float, because: str) -> None:
    config = configuration_for(peer, parameters)
    price = price_per_day(config.rules[0], config.backends["it"])
    assert price is not None
    assert (round(price.dollars, 6), price.calculation) == (dollars, because)
