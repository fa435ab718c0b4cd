"""What is New Relic's own: many queries by one call, errors inside of good answers, columns, facets and their times."""

import asyncio
import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapter.app import clock
from adapter.backends.backend import Aligned
from adapter.backends.newrelic.request import request
from adapter.backends.newrelic.settings import LONGEST, NewRelicParameters
from adapter.errors import BackendError, ConfigInvalid
from adapter.sample import RawSample
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import Opened, backend_of, configured
from tests.backends.contract import Json
from tests.backends.peers.newrelic import ACCOUNT, Peer

pytestmark = [
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("running", [pytest.param(Peer, id="newrelic")], indirect=True, scope="session"),
]
BAD: Json = {"query": "SELECT latest(depth) FORM Queue FROM"}
ANY: Json = {"query": "SELECT 1 FROM Queue"}
NOT_UNDERSTOOD = (FailureClass.BAD_QUERY, "it does not understand the query")


async def failure(opened: Opened, asked: Json) -> tuple[FailureClass, str]:
    with pytest.raises(BackendError) as caught:
        await opened.ask(asked)
    return caught.value.failure, caught.value.message


async def all_at_once(opened: Opened, *asked: Json) -> list[Any]:
    found = await asyncio.gather(*(opened.ask(each) for each in asked), return_exceptions=True)
    return [each.failure if isinstance(each, BackendError) else [sample.value for sample in each] for each in found]  # type: ignore[union-attr]


# ---- one call for many


async def test_the_queries_of_many_rules_are_one_call(peer: Peer) -> None:
    peer.hold({f"q{number}": number for number in range(10)})
    async with backend_of(peer) as opened:
        assert isinstance(opened.backend, Aligned)
        assert opened.backend.aligned
        found = await all_at_once(opened, *(peer.one(f"q{number}") for number in range(10)))
    assert found == [[number] for number in range(10)]
    assert (len(peer.server.asked), len(peer.server.asked[0])) == (1, 20)


async def test_a_call_has_no_more_queries_than_may_be(peer: Peer) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer, maxQueriesPerRequest=4) as opened:
        await all_at_once(opened, *[peer.one("orders")] * 10)
    assert sorted(len(asked) // 2 for asked in peer.server.asked) == [2, 4, 4]


async def test_a_bad_query_has_its_own_error_and_the_others_their_answers(peer: Peer) -> None:
    peer.hold({"orders": 3, "mails": 4})
    async with backend_of(peer) as opened:
        found = await all_at_once(opened, peer.one("orders"), BAD, peer.one("mails"))
    assert found == [[3], FailureClass.BAD_QUERY, [4]]
    assert peer.server.calls == 1


async def test_a_bad_query_that_spoils_the_call_is_found_and_set_apart(peer: Peer) -> None:
    peer.server.coerces = True
    peer.hold({"orders": 3, "mails": 4, "parcels": 5})
    good = [peer.one(name) for name in peer.server.numbers]
    async with backend_of(peer) as opened:
        assert await all_at_once(opened, *good, BAD) == [[3], [4], [5], FailureClass.BAD_QUERY]
        peer.server.calls = 0
        assert await all_at_once(opened, *good, BAD) == [[3], [4], [5], FailureClass.BAD_QUERY]
        assert peer.server.calls == 2


async def test_rules_of_several_accounts_go_together(peer: Peer) -> None:
    peer.hold({"orders": 3})
    peer.server.accounts.add(2)
    async with backend_of(peer) as opened:
        other, foreign = {**peer.one("orders"), "account": 2}, {**peer.one("orders"), "account": 3}
        found = await all_at_once(opened, peer.one("orders"), other, foreign)
        assert found == [[3], [3], FailureClass.UNAUTHORIZED]
        assert await failure(opened, foreign) == (FailureClass.UNAUTHORIZED, "our key may not read that account")
    assert [peer.server.asked[0][f"a{number}"] for number in range(3)] == [ACCOUNT, 2, 3]


async def test_new_relic_is_told_how_long_a_query_may_take(peer: Peer) -> None:
    peer.hold({"orders": 3})
    peer.server.patience.clear()
    async with backend_of(peer) as opened:
        await opened.ask(peer.one("orders"), 3.5)
        await opened.ask(peer.one("orders"), 600)
    assert peer.server.patience == {4, 60}


# ---- nothing of a query is anything but a query


HOSTILE = (
    'SELECT 1 FROM x") { results } } } mutation { dashboardDelete(guid: "a") { status } } #',
    "SELECT 1 FROM `x\\` WHERE a = '\\'' \n\r\t\u2028 { } $q1 $a0 \"\"\"",
    "SELECT 1 FROM Queue WHERE name = '${jndi:ldap://x}' %s {0} \\u0022",
)


@pytest.mark.parametrize("nrql", HOSTILE)
async def test_a_query_arrives_as_it_was_written(peer: Peer, nrql: str) -> None:
    peer.server.found = {"results": [], "metadata": {}}
    async with backend_of(peer) as opened:
        assert await opened.ask({"query": nrql}) == ()
    (variables,) = peer.server.asked
    assert variables == {"a0": ACCOUNT, "q0": nrql}


@pytest.mark.parametrize("nrql", HOSTILE)
def test_the_document_is_the_same_whatever_the_query(peer: Peer, nrql: str) -> None:  # noqa: ARG001 - every test here has one
    documents = {request([NewRelicParameters(each)], 1, 5)["query"] for each in (nrql, "SELECT 1 FROM x")}
    assert len(documents) == 1


# ---- errors inside of good answers


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            {"message": "NRQL Syntax Error: Error at line 1", "extensions": {"errorClass": "SERVER_ERROR"}},
            NOT_UNDERSTOOD,
        ),
        ({"message": "Unknown function baseline()"}, NOT_UNDERSTOOD),
        ({"message": "x", "extensions": {"errorClass": "SERVER_ERROR"}}, (FailureClass.REFUSED, "it failed to answer")),
        (
            {"message": "x", "extensions": {"errorClass": "TIMEOUT"}},
            (FailureClass.TIMED_OUT, "no answer within 5s"),
        ),
        (
            {"message": "x", "extensions": {"errorClass": "TOO_MANY_REQUESTS"}},
            (FailureClass.REFUSED, "asked more often than New Relic allows"),
        ),
        (
            {"message": "You have exceeded a rate limit"},
            (FailureClass.REFUSED, "asked more often than New Relic allows"),
        ),
        ({"message": "something else"}, (FailureClass.BAD_QUERY, "it cannot answer the query")),
        ({}, (FailureClass.BAD_QUERY, "it cannot answer the query")),
    ],
)
async def test_an_error_is_told_by_its_class(peer: Peer, error: Json, told: tuple[FailureClass, str]) -> None:
    peer.server.fails = {ANY["query"]: error}
    async with backend_of(peer) as opened:
        assert await failure(opened, ANY) == told


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            {"message": "x", "extensions": {"error_code": "BAD_API_KEY"}},
            (FailureClass.UNAUTHORIZED, "it does not know our key"),
        ),
        ({"message": "x", "path": ["actor"]}, (FailureClass.REFUSED, "it cannot answer the query")),
        ({"message": "x"}, (FailureClass.REFUSED, "it cannot answer the query")),
    ],
)
async def test_an_error_of_the_whole_call_is_everyones(peer: Peer, error: Json, told: tuple[FailureClass, str]) -> None:
    for data in (None, {"actor": None}):
        peer.server.says = {"data": data, "errors": [error]}
        async with backend_of(peer) as opened:
            assert await all_at_once(opened, ANY, ANY) == [told[0], told[0]]
            assert await failure(opened, ANY) == told


async def test_an_error_beside_data_does_not_take_the_data_away(peer: Peer) -> None:
    found = {"results": [{"count": 3}], "metadata": {"facets": None}}
    warning = {"message": "This field is deprecated!", "path": ["actor", "r0", "nrql"]}
    peer.server.says = {"data": {"actor": {"r0": {"nrql": found}}}, "errors": [warning]}
    async with backend_of(peer) as opened:
        (sample,) = await opened.ask(ANY)
        assert sample.value == 3


async def test_what_new_relic_repeats_of_our_key_is_taken_out(peer: Peer) -> None:
    peer.server.fails = {ANY["query"]: {"message": f"the key {peer.shown} is no good"}}
    async with backend_of(peer) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.ask(ANY)
    assert caught.value.detail == "the key *** is no good"


@pytest.mark.parametrize(
    "says",
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
async def test_an_answer_that_does_not_fit_is_refused(peer: Peer, says: object) -> None:
    peer.server.says = says
    async with backend_of(peer) as opened:
        told = (FailureClass.REFUSED, "it answers, but not as New Relic does")
        assert await failure(opened, ANY) == told


async def test_a_ping_with_a_key_that_is_no_good_fails(peer: Peer) -> None:
    peer.server.says = {"data": None, "errors": [{"message": "x", "extensions": {"code": "UNAUTHENTICATED"}}]}
    async with backend_of(peer) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.backend.ping()
    assert caught.value.failure is FailureClass.UNAUTHORIZED


# ---- rows


async def found(peer: Peer, row: Json, facets: list[str] | None = None, **more: object) -> RawSample:
    peer.server.found = {"results": [row], "metadata": {"facets": facets, "timeWindow": None}}
    async with backend_of(peer) as opened:
        (sample,) = await opened.ask({**ANY, **more})
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
async def test_a_row_is_a_series(
    peer: Peer, row: Json, facets: list[str] | None, more: Json, value: float, labels: dict[str, str]
) -> None:
    sample = await found(peer, row, facets, **more)
    assert (sample.value, dict(sample.labels)) == (value, labels)


async def test_a_number_that_is_not_known_is_none_and_not_zero(peer: Peer) -> None:
    assert math.isnan((await found(peer, {"average.duration": None})).value)


@pytest.mark.parametrize(
    ("row", "more", "message"),
    [
        ({"count": 1, "sum.x": 2}, {}, "which column is the number? name it by value"),
        ({}, {}, "which column is the number? name it by value"),
        ({"count": 1}, {"value": "average.x"}, "the query has no column 'average.x'"),
        ({"uniques.x": ["a"]}, {}, "the column with the number holds something else"),
        ({"latest.x": "12"}, {}, "the column with the number holds something else"),
        ({"latest.x": True}, {}, "the column with the number holds something else"),
        ({"percentile.x": {"90": 1, "95": 2}}, {}, "the column with the number holds something else"),
        ({"count": 1, "beginTimeSeconds": 1}, {}, "the query gives many numbers where one is wanted"),
        ({"count": 1, "comparison": "previous"}, {}, "the query gives many numbers where one is wanted"),
    ],
)
async def test_rows_that_are_not_clear_are_told(peer: Peer, row: Json, more: Json, message: str) -> None:
    with pytest.raises(BackendError) as caught:
        await found(peer, row, **more)
    assert (caught.value.failure, caught.value.message) == (FailureClass.BAD_QUERY, message)


async def test_a_number_is_of_its_event_or_of_the_end_of_its_window_and_never_of_later(peer: Peer) -> None:
    async def at(row: Json, end: float | None) -> datetime:
        peer.server.found = {"results": [row], "metadata": {"timeWindow": {"end": end}}}
        (sample,) = await opened.ask(ANY)
        return sample.at

    async with backend_of(peer) as opened:
        assert await at({"x": 1, "timestamp": 1700000000000}, 1600000000000) == datetime.fromtimestamp(1700000000, UTC)
        assert await at({"count": 1}, 1700000000000) == datetime.fromtimestamp(1700000000, UTC)
        for end in (None, 4000000000000):
            assert abs(clock() - await at({"count": 1}, end)) < timedelta(seconds=10)


# ---- what can be seen before it is asked


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"query": " -- nothing\n"}, "query: must not be empty"),
        ({"query": "SHOW EVENT TYPES"}, "query: must have SELECT and FROM"),
        (
            {"query": "SELECT count(*) FROM a TIMESERIES"},
            "query: TIMESERIES gives many numbers where one is wanted; use SINCE alone",
        ),
        (
            {"query": "SELECT count(*) FROM a COMPARE WITH 1 day ago"},
            "query: COMPARE WITH gives two numbers where one is wanted",
        ),
        (
            {"query": "SELECT count(*) FROM a FACET b"},
            "query: FACET needs LIMIT, such as LIMIT MAX; else New Relic leaves out all groups but ten",
        ),
        ({"query": "SELECT a FROM b", "account": -1}, "account: must be the number of an account, is -1"),
        (
            {"query": f"SELECT a FROM b {'x' * LONGEST}"},  # noqa: S608 - it is not sent
            f"query: must have at most {LONGEST} characters, has {LONGEST + 16}",
        ),
    ],
)
def test_parameters_that_make_no_sense(peer: Peer, parameters: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, parameters)
    assert caught.value.problems == (f"rules[0].parameters.{problem}",)


@pytest.mark.parametrize(
    "query",
    [
        "from Queue select latest(depth) since 1 minute ago",
        "SELECT count(*) FROM a WHERE b = 'FACET \\' TIMESERIES' AND `COMPARE` = 1 // FACET".replace("//", "--"),
        "SELECT count(*) FROM a FACET b LIMIT 5",
        "SELECT count(http.facet) FROM(SELECT a FROM b)",
    ],
)
def test_queries_that_make_sense(peer: Peer, query: str) -> None:
    configured(peer, {"query": query})


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"account": 0}, "account: must be the number of an account, is 0"),
        ({"apiKeyFile": ""}, "apiKeyFile: must not be empty"),
        ({"url": "https://gateway/graphql"}, "url: must be without /graphql"),
        ({"url": "gateway"}, "url: not an http or https URL with a host"),
        ({"maxQueriesPerRequest": 0}, "maxQueriesPerRequest: must be at least 1, is 0"),
    ],
)
def test_settings_that_make_no_sense(peer: Peer, settings: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, **settings)
    assert caught.value.problems == (f"backends.it.newrelic.{problem}",)


@pytest.mark.parametrize(("region", "url"), [("US", "https://api.newrelic.com"), ("EU", "https://api.eu.newrelic.com")])
def test_a_region_is_where_its_api_is(peer: Peer, region: str, url: str) -> None:
    settings: Any = configured(peer, url="", region=region).backends["it"].settings
    assert settings.http.url == url
    assert "NRAK" not in json.dumps(repr(settings))
