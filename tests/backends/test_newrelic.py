"""Behaviour of the New Relic backend: batching, errors next to results, columns, facets and times."""

import asyncio
import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapter.backends.backend import Aligned
from adapter.backends.newrelic.nerdgraph import build_request
from adapter.backends.newrelic.settings import NewRelicParameters
from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendError
from adapter.process import clock
from adapter.sample import RawSample
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import OpenBackend, configuration_for, open_backend
from tests.backends.contract import Json
from tests.backends.peers.newrelic import ACCOUNT, Peer

pytestmark = [
    pytest.mark.usefixtures("no_resource_leaks"),
    pytest.mark.parametrize("running_peer", [pytest.param(Peer, id="newrelic")], indirect=True, scope="session"),
]
INVALID: Json = {"query": "SELECT latest(depth) FORM Queue FROM"}
ANY: Json = {"query": "SELECT 1 FROM Queue"}
INVALID_NRQL = (FailureClass.BAD_QUERY, "invalid NRQL query")


async def failure(opened: OpenBackend, parameters: Json) -> tuple[FailureClass, str]:
    with pytest.raises(BackendError) as caught:
        await opened.fetch(parameters)
    return caught.value.failure, caught.value.message


async def query_concurrently(opened: OpenBackend, *queries: Json) -> list[Any]:
    """Return the values or the failure class of each query."""
    results = await asyncio.gather(*(opened.fetch(query) for query in queries), return_exceptions=True)
    return [
        result.failure if isinstance(result, BackendError) else [sample.value for sample in result]  # type: ignore[union-attr]
        for result in results
    ]


# ---- batching


async def test_concurrent_queries_are_sent_in_one_request(peer: Peer) -> None:
    peer.set_values({f"q{number}": number for number in range(10)})
    async with open_backend(peer) as opened:
        assert isinstance(opened.backend, Aligned)
        assert opened.backend.aligned
        results = await query_concurrently(opened, *(peer.parameters_for(f"q{number}") for number in range(10)))
    assert results == [[number] for number in range(10)]
    assert (len(peer.server.requests), len(peer.server.requests[0])) == (1, 20)


async def test_requests_respect_max_queries_per_request(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer, maxQueriesPerRequest=4) as opened:
        await query_concurrently(opened, *[peer.parameters_for("orders")] * 10)
    assert sorted(len(variables) // 2 for variables in peer.server.requests) == [2, 4, 4]


async def test_an_invalid_query_does_not_fail_the_other_queries(peer: Peer) -> None:
    peer.set_values({"orders": 3, "mails": 4})
    async with open_backend(peer) as opened:
        results = await query_concurrently(opened, peer.parameters_for("orders"), INVALID, peer.parameters_for("mails"))
    assert results == [[3], FailureClass.BAD_QUERY, [4]]
    assert peer.server.request_count == 1


async def test_an_invalid_query_that_fails_the_request_is_quarantined(peer: Peer) -> None:
    peer.server.validates_first = True
    peer.set_values({"orders": 3, "mails": 4, "parcels": 5})
    valid = [peer.parameters_for(name) for name in peer.server.values]
    async with open_backend(peer) as opened:
        assert await query_concurrently(opened, *valid, INVALID) == [[3], [4], [5], FailureClass.BAD_QUERY]
        peer.server.request_count = 0
        assert await query_concurrently(opened, *valid, INVALID) == [[3], [4], [5], FailureClass.BAD_QUERY]
        assert peer.server.request_count == 2


async def test_queries_of_several_accounts_share_a_request(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    peer.server.accounts.add(2)
    async with open_backend(peer) as opened:
        other, forbidden = (
            {**peer.parameters_for("orders"), "account": 2},
            {**peer.parameters_for("orders"), "account": 3},
        )
        results = await query_concurrently(opened, peer.parameters_for("orders"), other, forbidden)
        assert results == [[3], [3], FailureClass.UNAUTHORIZED]
        assert await failure(opened, forbidden) == (
            FailureClass.UNAUTHORIZED,
            "permission denied: the user of apiKeyFile cannot read this account",
        )
    assert [peer.server.requests[0][f"a{number}"] for number in range(3)] == [ACCOUNT, 2, 3]


async def test_the_timeout_of_a_query_is_its_deadline_up_to_60_seconds(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    peer.server.timeouts.clear()
    async with open_backend(peer) as opened:
        await opened.fetch(peer.parameters_for("orders"), 3.5)
        await opened.fetch(peer.parameters_for("orders"), 600)
    assert peer.server.timeouts == {4, 60}


# ---- injection


HOSTILE = (
    'SELECT 1 FROM x") { results } } } mutation { dashboardDelete(guid: "a") { status } } #',
    "SELECT 1 FROM `x\\` WHERE a = '\\'' \n\r\t\u2028 { } $q1 $a0 \"\"\"",
    "SELECT 1 FROM Queue WHERE name = '${jndi:ldap://x}' %s {0} \\u0022",
)


@pytest.mark.parametrize("nrql", HOSTILE)
async def test_a_query_is_sent_unchanged_as_a_variable(peer: Peer, nrql: str) -> None:
    peer.server.nrql_result = {"results": [], "metadata": {}}
    async with open_backend(peer) as opened:
        assert await opened.fetch({"query": nrql}) == ()
    (variables,) = peer.server.requests
    assert variables == {"a0": ACCOUNT, "q0": nrql}


@pytest.mark.parametrize("nrql", HOSTILE)
def test_the_graphql_document_does_not_depend_on_the_query(peer: Peer, nrql: str) -> None:  # noqa: ARG001 - the module parametrizes it
    documents = {build_request([NewRelicParameters(each)], 1, 5)["query"] for each in (nrql, "SELECT 1 FROM x")}
    assert len(documents) == 1


# ---- errors in responses with status 200


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            {"message": "NRQL Syntax Error: Error at line 1", "extensions": {"errorClass": "SERVER_ERROR"}},
            INVALID_NRQL,
        ),
        ({"message": "Unknown function baseline()"}, INVALID_NRQL),
        (
            {"message": "x", "extensions": {"errorClass": "SERVER_ERROR"}},
            (FailureClass.REFUSED, "New Relic server error"),
        ),
        (
            {"message": "x", "extensions": {"errorClass": "TIMEOUT"}},
            (FailureClass.TIMED_OUT, "no response within 60s"),
        ),
        (
            {"message": "x", "extensions": {"errorClass": "TOO_MANY_REQUESTS"}},
            (FailureClass.REFUSED, "New Relic rate limit exceeded"),
        ),
        (
            {"message": "You have exceeded a rate limit"},
            (FailureClass.REFUSED, "New Relic rate limit exceeded"),
        ),
        ({"message": "something else"}, (FailureClass.BAD_QUERY, "New Relic could not run the query")),
        ({}, (FailureClass.BAD_QUERY, "New Relic could not run the query")),
    ],
)
async def test_an_error_is_classified_by_message_and_class(
    peer: Peer, error: Json, expected: tuple[FailureClass, str]
) -> None:
    peer.server.errors_by_query = {ANY["query"]: error}
    async with open_backend(peer) as opened:
        assert await failure(opened, ANY) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            {"message": "x", "extensions": {"error_code": "BAD_API_KEY"}},
            (FailureClass.UNAUTHORIZED, "authentication failed: check apiKeyFile"),
        ),
        ({"message": "x", "path": ["actor"]}, (FailureClass.REFUSED, "New Relic could not run the query")),
        ({"message": "x"}, (FailureClass.REFUSED, "New Relic could not run the query")),
    ],
)
async def test_an_error_of_the_whole_request_fails_all_queries(
    peer: Peer, error: Json, expected: tuple[FailureClass, str]
) -> None:
    for data in (None, {"actor": None}):
        peer.server.response = {"data": data, "errors": [error]}
        async with open_backend(peer) as opened:
            assert await query_concurrently(opened, ANY, ANY) == [expected[0], expected[0]]
            assert await failure(opened, ANY) == expected


async def test_an_error_next_to_a_result_does_not_discard_the_result(peer: Peer) -> None:
    result = {"results": [{"count": 3}], "metadata": {"facets": None}}
    warning = {"message": "This field is deprecated!", "path": ["actor", "r0", "nrql"]}
    peer.server.response = {"data": {"actor": {"r0": {"nrql": result}}}, "errors": [warning]}
    async with open_backend(peer) as opened:
        (sample,) = await opened.fetch(ANY)
        assert sample.value == 3


async def test_the_api_key_is_redacted_from_error_details(peer: Peer) -> None:
    peer.server.errors_by_query = {ANY["query"]: {"message": f"the key {peer.current_secret} is no good"}}
    async with open_backend(peer) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.fetch(ANY)
    assert caught.value.detail == "the key *** is no good"


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        {"data": None},
        {"data": {"actor": {}}},
        {"data": {"actor": {"r1": {"nrql": None}}}},
        {"data": {"actor": {"r0": None}}},
        {"data": {"actor": {"r0": {"nrql": {"results": None}}}}},
        {"data": {"actor": {"r0": {"nrql": {"results": [[1]], "metadata": {}}}}}},
        {"data": {"actor": {"r0": {"nrql": {"results": [{"timestamp": "soon", "count": 1}], "metadata": {}}}}}},
        {"data": {"actor": {"r0": {"nrql": {"results": [{"timestamp": 1e300, "count": 1}], "metadata": {}}}}}},
        {"errors": "no"},
        {"errors": [{"message": 5}]},
    ],
)
async def test_an_invalid_response_is_rejected(peer: Peer, document: object) -> None:
    peer.server.response = document
    async with open_backend(peer) as opened:
        expected = (FailureClass.REFUSED, "invalid response from New Relic")
        assert await failure(opened, ANY) == expected


async def test_ping_fails_with_an_invalid_key(peer: Peer) -> None:
    peer.server.response = {"data": None, "errors": [{"message": "x", "extensions": {"code": "UNAUTHENTICATED"}}]}
    async with open_backend(peer) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.backend.ping()
    assert caught.value.failure is FailureClass.UNAUTHORIZED


# ---- rows


async def sample_of_row(peer: Peer, row: Json, facets: list[str] | None = None, **more: object) -> RawSample:
    peer.server.nrql_result = {"results": [row], "metadata": {"facets": facets, "timeWindow": None}}
    async with open_backend(peer) as opened:
        (sample,) = await opened.fetch({**ANY, **more})
    return sample


@pytest.mark.parametrize(
    ("row", "facets", "more", "value", "labels"),
    [
        ({"count": 1000}, None, {}, 1000, {}),
        ({"average.duration": 0.25}, [], {}, 0.25, {}),
        ({"facet": "a", "app": "a", "count": 3}, ["app"], {}, 3, {"app": "a"}),
        ({"app": "a", "count": 3}, ["app"], {}, 3, {"app": "a"}),
        ({"facet": ["a", "b"], "count": 3}, ["app", "host"], {}, 3, {"app": "a", "host": "b"}),
        ({"facet": ["a", None], "app": "a", "host": None, "count": 3}, ["app", "host"], {}, 3, {"app": "a"}),
        ({"facet": 5, "port": 5, "up": True, "count": 3}, ["port", "up"], {}, 3, {"port": "5", "up": "true"}),
        ({"count": 3, "average.duration": 4}, None, {"value": "average.duration"}, 4, {}),
        ({"percentile.duration": {"95": 0.7}}, None, {}, 0.7, {}),
        ({"count": 10**400}, None, {}, math.inf, {}),
        ({"latest.depth": 4, "latest.timestamp": 1700000000000}, None, {}, 4, {}),
        ({"count": -1}, None, {}, -1, {}),
    ],
)
async def test_a_row_becomes_a_series(
    peer: Peer, row: Json, facets: list[str] | None, more: Json, value: float, labels: dict[str, str]
) -> None:
    sample = await sample_of_row(peer, row, facets, **more)
    assert (sample.value, dict(sample.labels)) == (value, labels)


async def test_a_null_value_is_nan(peer: Peer) -> None:
    assert math.isnan((await sample_of_row(peer, {"average.duration": None})).value)


@pytest.mark.parametrize(
    ("row", "more", "message"),
    [
        ({"count": 1, "sum.x": 2}, {}, "the query does not return exactly one value column: set value"),
        ({}, {}, "the query does not return exactly one value column: set value"),
        ({"count": 1}, {"value": "average.x"}, "the query returns no column 'average.x'"),
        ({"uniques.x": ["a"]}, {}, "the value column is not numeric"),
        ({"latest.x": "12"}, {}, "the value column is not numeric"),
        ({"latest.x": True}, {}, "the value column is not numeric"),
        ({"percentile.x": {"90": 1, "95": 2}}, {}, "the value column is not numeric"),
        (
            {"count": 1, "beginTimeSeconds": 1},
            {},
            "the query returns several values per series: remove TIMESERIES or COMPARE WITH",
        ),
        (
            {"count": 1, "comparison": "previous"},
            {},
            "the query returns several values per series: remove TIMESERIES or COMPARE WITH",
        ),
    ],
)
async def test_a_row_without_a_unique_numeric_value_is_a_bad_query(
    peer: Peer, row: Json, more: Json, message: str
) -> None:
    with pytest.raises(BackendError) as caught:
        await sample_of_row(peer, row, **more)
    assert (caught.value.failure, caught.value.message) == (FailureClass.BAD_QUERY, message)


async def test_the_time_is_that_of_the_event_or_the_end_of_the_window_but_not_in_the_future(peer: Peer) -> None:
    async def time_of(row: Json, end: float | None) -> datetime:
        peer.server.nrql_result = {"results": [row], "metadata": {"timeWindow": {"end": end}}}
        (sample,) = await opened.fetch(ANY)
        return sample.at

    async with open_backend(peer) as opened:
        assert await time_of({"x": 1, "timestamp": 1700000000000}, 1600000000000) == datetime.fromtimestamp(
            1700000000, UTC
        )
        assert await time_of({"count": 1}, 1700000000000) == datetime.fromtimestamp(1700000000, UTC)
        for end in (None, 4000000000000):
            assert abs(clock() - await time_of({"count": 1}, end)) < timedelta(seconds=10)


# ---- validation


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"query": " -- nothing\n"}, "query: must not be empty"),
        ({"query": "SHOW EVENT TYPES"}, "query: must contain SELECT and FROM"),
        (
            {"query": "SELECT count(*) FROM a TIMESERIES"},
            "query: TIMESERIES returns several values per series; use only SINCE",
        ),
        (
            {"query": "SELECT count(*) FROM a COMPARE WITH 1 day ago"},
            "query: COMPARE WITH returns two values per series; remove it",
        ),
        (
            {"query": "SELECT count(*) FROM a FACET b"},
            "query: FACET requires LIMIT, because New Relic returns only ten groups by default; add LIMIT MAX",
        ),
        ({"query": "SELECT a FROM b", "account": -1}, "account: must be an account ID, is -1"),
        (
            {"query": f"SELECT a FROM b {'x' * 16384}"},  # noqa: S608 - it is not sent
            "query: must have at most 16384 characters, has 16400",
        ),
    ],
)
def test_invalid_parameters_are_reported(peer: Peer, parameters: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, parameters)
    assert caught.value.messages == (f"rules[0].parameters.{problem}",)


@pytest.mark.parametrize(
    "query",
    [
        "from Queue select latest(depth) since 1 minute ago",
        "SELECT count(*) FROM a WHERE b = 'FACET \\' TIMESERIES' AND `COMPARE` = 1 // FACET".replace("//", "--"),
        "SELECT count(*) FROM a FACET b LIMIT 5",
        "SELECT count(http.facet) FROM(SELECT a FROM b)",
    ],
)
def test_valid_queries_are_accepted(peer: Peer, query: str) -> None:
    configuration_for(peer, {"query": query})


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"account": 0}, "account: must be an account ID, is 0"),
        ({"apiKeyFile": ""}, "apiKeyFile: must not be empty"),
        ({"url": "https://gateway/graphql"}, "url: must not end with /graphql"),
        ({"url": "gateway"}, "url: not an http or https URL with a host"),
        ({"maxQueriesPerRequest": 0}, "maxQueriesPerRequest: must be at least 1, is 0"),
    ],
)
def test_invalid_settings_are_reported(peer: Peer, settings: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, **settings)
    assert caught.value.messages == (f"backends.it.newrelic.{problem}",)


@pytest.mark.parametrize(("region", "url"), [("US", "https://api.newrelic.com"), ("EU", "https://api.eu.newrelic.com")])
def test_the_region_determines_the_url(peer: Peer, region: str, url: str) -> None:
    settings: Any = configuration_for(peer, url="", region=region).backends["it"].settings
    assert settings.http.url == url
    assert "NRAK" not in json.dumps(repr(settings))
