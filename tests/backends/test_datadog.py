"""Behaviour of the Datadog backend: batching, bisecting, points and their times, rate limits, formulas."""

import asyncio
import math
from datetime import timedelta
from typing import Any

import pytest
from datadog_api_client.model_utils import model_to_dict, validate_and_convert_types
from datadog_api_client.v2.model.timeseries_formula_query_request import TimeseriesFormulaQueryRequest

from adapter.backends.backend import Aligned
from adapter.backends.datadog.rate_limit_headers import RateLimitStatus
from adapter.backends.datadog.settings import DatadogParameters
from adapter.backends.datadog.timeseries import build_request, rename_queries
from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendError
from adapter.process import clock
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import OpenBackend, configuration_for, open_backend
from tests.backends.contract import Json
from tests.backends.peers.datadog import Peer

pytestmark = [
    pytest.mark.usefixtures("no_resource_leaks"),
    pytest.mark.parametrize("running_peer", [pytest.param(Peer, id="datadog")], indirect=True, scope="session"),
]
INVALID: Json = {"query": "this is no query"}
RATE_LIMITED = (FailureClass.REFUSED, "Datadog rate limit exceeded")


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
    peer.set_values({f"q{number}": number for number in range(30)})
    async with open_backend(peer) as opened:
        assert isinstance(opened.backend, Aligned)
        assert opened.backend.aligned
        results = await query_concurrently(opened, *(peer.parameters_for(f"q{number}") for number in range(30)))
    assert results == [[number] for number in range(30)]
    assert [len(request["queries"]) for request in peer.server.requests] == [30]


async def test_requests_respect_max_queries_per_request(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer, maxQueriesPerRequest=4) as opened:
        await query_concurrently(opened, *[peer.parameters_for("orders")] * 10)
    assert sorted(len(request["queries"]) for request in peer.server.requests) == [2, 4, 4]


async def test_queries_with_different_windows_are_sent_in_separate_requests(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    windows = ("1m", "1m", "1h")
    async with open_backend(peer) as opened:
        await query_concurrently(opened, *({**peer.parameters_for("orders"), "window": window} for window in windows))
    spans = {(request["to"] - request["from"]) // 1000: len(request["queries"]) for request in peer.server.requests}
    assert spans == {60: 2, 3600: 1}


async def test_requests_respect_min_request_interval(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    loop = asyncio.get_running_loop()
    async with open_backend(peer, minRequestInterval="300ms", maxQueriesPerRequest=1) as opened:
        started = loop.time()
        await query_concurrently(opened, *[peer.parameters_for("orders")] * 3)
        assert loop.time() - started >= 0.6


async def test_an_invalid_query_is_quarantined(peer: Peer) -> None:
    peer.set_values({f"q{number}": number for number in range(9)})
    valid = [peer.parameters_for(f"q{number}") for number in range(9)]
    expected = [[number] for number in range(9)]
    async with open_backend(peer) as opened:
        results = await query_concurrently(opened, *valid[:4], INVALID, *valid[4:])
        assert results == [*expected[:4], FailureClass.BAD_QUERY, *expected[4:]]
        before, peer.server.request_count = peer.server.request_count, 0
        results = await query_concurrently(opened, *valid[:4], INVALID, *valid[4:])
        assert results == [*expected[:4], FailureClass.BAD_QUERY, *expected[4:]]
        assert (before, peer.server.request_count) == (9, 2), "bisected once"


async def test_a_query_that_is_valid_again_leaves_the_quarantine(peer: Peer) -> None:
    peer.set_values({"orders": 3, "mails": 4})
    async with open_backend(peer) as opened:
        peer.server.status = 400
        await query_concurrently(opened, peer.parameters_for("orders"), peer.parameters_for("mails"))
        peer.server.status = 0
        assert await query_concurrently(opened, peer.parameters_for("orders"), peer.parameters_for("mails")) == [
            [3],
            [4],
        ]
        peer.server.request_count = 0
        assert await query_concurrently(opened, peer.parameters_for("orders"), peer.parameters_for("mails")) == [
            [3],
            [4],
        ]
        assert peer.server.request_count == 1


@pytest.mark.parametrize(("status", "failure_class"), [(500, FailureClass.REFUSED), (403, FailureClass.UNAUTHORIZED)])
async def test_an_error_of_the_whole_request_fails_all_queries_without_a_retry(
    peer: Peer, status: int, failure_class: FailureClass
) -> None:
    peer.server.status = status
    async with open_backend(peer) as opened:
        assert await query_concurrently(opened, peer.parameters_for("orders"), peer.parameters_for("mails")) == [
            failure_class,
            failure_class,
        ]
    assert peer.server.request_count == 1


# ---- rate limits


async def test_no_request_is_sent_until_an_exhausted_rate_limit_resets(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    peer.server.rate_limit_headers = {
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": "1",
        "X-RateLimit-Name": "query",
    }
    async with open_backend(peer) as opened:
        await opened.fetch(peer.parameters_for("orders"))
        assert await failure(opened, peer.parameters_for("orders")) == RATE_LIMITED
        assert peer.server.request_count == 1
        peer.server.rate_limit_headers = {}
        await asyncio.sleep(1)
        await opened.fetch(peer.parameters_for("orders"))


async def test_no_request_is_sent_after_429_until_the_rate_limit_resets(peer: Peer) -> None:
    peer.server.status, peer.server.rate_limit_headers = 429, {"X-RateLimit-Reset": "600", "X-RateLimit-Remaining": "0"}
    async with open_backend(peer) as opened:
        for _ in range(3):
            assert await failure(opened, peer.parameters_for("orders")) == RATE_LIMITED
    assert peer.server.request_count == 1


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (200, {}, 0),
        (200, {"X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "30"}, 0),
        (200, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "30"}, 30),
        (429, {}, 0),
        (429, {"X-RateLimit-Reset": "30"}, 30),
        (429, {"X-RateLimit-Period": "60"}, 60),
        (429, {"X-RateLimit-Reset": "1e99"}, 3600),
        (429, {"X-RateLimit-Reset": "-5"}, 0),
        (429, {"X-RateLimit-Reset": "soon"}, 0),
        (429, {"X-RateLimit-Reset": "nan"}, 0),
    ],
)
@pytest.mark.usefixtures("peer")
def test_rate_limit_headers_determine_the_waiting_time(status: int, headers: dict[str, str], seconds: float) -> None:
    rate_limit = RateLimitStatus()
    rate_limit.update(status, headers, 100.0)
    assert bool(rate_limit.exhausted(100.0)) == (seconds > 0)
    assert rate_limit.exhausted(100.0 + seconds - 0.1) or not seconds
    assert not rate_limit.exhausted(100.0 + seconds)


# ---- points


@pytest.mark.parametrize(
    ("points", "skip", "value", "age"),
    [
        ([1, 2, 3], 0, 3, 20),
        ([1, 2, None, None], 0, 2, 60),
        ([1, 2, None], 1, 1, 60),
        ([1, 2, 3], 2, 1, 60),
        ([1.5], 0, 1.5, 20),
    ],
)
async def test_the_newest_point_is_returned_with_its_time(
    peer: Peer, points: list[float | None], skip: int, value: float, age: float
) -> None:
    peer.set_values({"orders": 3})
    peer.server.points = [points]
    async with open_backend(peer) as opened:
        (sample,) = await opened.fetch({**peer.parameters_for("orders"), "skipNewest": skip})
    assert sample.value == value
    assert timedelta(seconds=age) <= clock() - sample.at < timedelta(seconds=age + 10)


@pytest.mark.parametrize(("points", "skip"), [([None, None], 0), ([5, None], 1)])
async def test_a_series_without_points_is_nan(peer: Peer, points: list[float | None], skip: int) -> None:
    peer.set_values({"orders": 3})
    peer.server.points = [points]
    async with open_backend(peer) as opened:
        (sample,) = await opened.fetch({**peer.parameters_for("orders"), "skipNewest": skip})
    assert math.isnan(sample.value)


async def test_tags_become_labels(peer: Peer) -> None:
    tags = ["url:http://a:80/x", "alone", "größe:ü"]
    series = [{"group_tags": tags, "query_index": 0}]
    peer.server.response = {"data": {"attributes": {"series": series, "times": [1700000000000], "values": [[1]]}}}
    async with open_backend(peer) as opened:
        (sample,) = await opened.fetch(peer.parameters_for("orders"))
    assert dict(sample.labels) == {"url": "http://a:80/x", "alone": "", "größe": "ü"}


def response(index: int = 0, times: Any = (1,), values: Any = ((1,),)) -> Json:
    return {"data": {"attributes": {"series": [{"query_index": index}], "times": times, "values": values}}}


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        {"data": {}},
        {"data": {"attributes": []}},
        response(index=1),
        response(index=-1),
        response(times=(1, 2)),
        response(values=((1,), (2,))),
        response(values=(("1",),)),
        response(times=(10**30,)),
        response(times=(10**17,)),
    ],
)
async def test_an_invalid_response_is_rejected(peer: Peer, document: object) -> None:
    peer.server.response = document
    async with open_backend(peer) as opened:
        expected = (FailureClass.REFUSED, "invalid response from Datadog")
        assert await failure(opened, peer.parameters_for("orders")) == expected


async def test_errors_in_a_response_with_status_200_are_reported(peer: Peer) -> None:
    peer.server.response = {"errors": "no such thing"}
    async with open_backend(peer) as opened:
        expected = (FailureClass.BAD_QUERY, "Datadog rejected the query")
        assert await failure(opened, peer.parameters_for("orders")) == expected


async def test_a_response_without_series_is_an_empty_result(peer: Peer) -> None:
    async with open_backend(peer) as opened:
        for attributes in ({}, {"series": None, "times": None, "values": None}, {"series": [], "times": [1]}):
            peer.server.response = {"data": {"attributes": attributes}}
            assert await opened.fetch(peer.parameters_for("orders")) == ()


# ---- formulas


async def test_query_names_of_several_formulas_do_not_collide(peer: Peer) -> None:
    peer.set_values({"orders": 12, "mails": 4})
    ratio: Json = {
        "queries": {"a": "sum:queue.depth{queue:orders}", "b": "sum:queue.depth{queue:mails}"},
        "formula": "a / b",
    }
    async with open_backend(peer) as opened:
        other: Json = {"queries": {"b": "sum:queue.depth{queue:orders}"}, "formula": "default_zero(b)"}
        assert await query_concurrently(opened, ratio, peer.parameters_for("mails"), other) == [[3], [4], [0]]
    assert len(peer.server.requests) == 1


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("a", "X"),
        ("a/b", "X/Y"),
        ("default_zero(a) * 100", "default_zero(X) * 100"),
        ("top(a, 5, 'a', \"b\")", "top(X, 5, 'a', \"b\")"),
        ("aa + a1 + a", "aa + a1 + X"),
        ("1e5 * a", "1e5 * X"),
    ],
)
def test_only_queries_of_a_formula_are_renamed(peer: Peer, formula: str, expected: str) -> None:  # noqa: ARG001
    assert rename_queries(formula, {"a": "X", "b": "Y"}) == expected


def test_the_request_body_is_accepted_by_datadogs_own_model(peer: Peer) -> None:  # noqa: ARG001
    batch = [
        DatadogParameters(query="avg:queue.depth{*} by {queue}"),
        DatadogParameters(queries={"a": "sum:x{*}", "b": "sum:y{*}"}, formula="a / b"),
    ]
    body = build_request(batch, clock())
    parsed = validate_and_convert_types(
        body, (TimeseriesFormulaQueryRequest,), ["body"], spec_property_naming=True, check_type=True, configuration=None
    )
    assert model_to_dict(parsed) == body


# ---- keys


async def test_variables_of_the_environment_are_ignored(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DD_API_KEY", "DD_APP_KEY", "DD_SITE"):
        monkeypatch.setenv(name, "ignored")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    peer.set_values({"orders": 3})
    async with open_backend(peer) as opened:
        (sample,) = await opened.fetch(peer.parameters_for("orders"))
        assert sample.value == 3


async def test_an_empty_key_file_is_reported(peer: Peer) -> None:
    peer.files["DD-API-KEY"].write_text("\n")
    async with open_backend(peer) as opened:
        expected = (FailureClass.UNAUTHORIZED, "apiKeyFile is empty or contains unprintable characters")
        assert await failure(opened, peer.parameters_for("orders")) == expected
        with pytest.raises(BackendError):
            await opened.backend.ping()
    peer.renew_credentials()


# ---- validation


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"window": "5m"}, "query: exactly one of query and queries is required"),
        ({"query": "a", "queries": {"a": "b"}}, "query: exactly one of query and queries is required"),
        ({"query": "a", "formula": "b"}, "formula: only valid with queries"),
        ({"query": " "}, "query: must not be empty"),
        ({"queries": {"a": "b"}}, "formula: required with queries"),
        ({"queries": {"a": "x"}, "formula": "a / b"}, "formula: 'b' is not in queries"),
        ({"queries": {"a": "x"}, "formula": "a + r0q0"}, "formula: 'r0q0' is not in queries"),
        ({"queries": {"a": "x", "b": "y"}, "formula": "a"}, "queries.b: not used in formula"),
        (
            {"queries": {"abs": "x"}, "formula": "abs(abs)"},
            "queries.abs: has the name of a function in the formula; rename it",
        ),
        ({"query": "a", "window": "1s"}, "window: must be at least 10s, the finest resolution of Datadog"),
        ({"query": "a", "skipNewest": -1}, "skipNewest: must not be negative, is -1"),
    ],
)
def test_invalid_parameters_are_reported(peer: Peer, parameters: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, parameters)
    assert caught.value.messages == (f"rules[0].parameters.{problem}",)


def test_a_formula_can_contain_functions_numbers_and_strings(peer: Peer) -> None:
    formula = "top(default_zero(a) / 1e3 * 2, 5, 'mean', 'desc')"
    configuration_for(peer, {"queries": {"a": "avg:x{*}"}, "formula": formula})


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"site": "app.datadoghq.eu"},
            "site: must be a site such as datadoghq.eu, without app. or api., is 'app.datadoghq.eu'",
        ),
        (
            {"site": "https://datadoghq.eu"},
            "site: must be a site such as datadoghq.eu, without app. or api., is 'https://datadoghq.eu'",
        ),
        ({"url": "datadog"}, "url: not an http or https URL with a host"),
        ({"apiKeyFile": ""}, "apiKeyFile: must not be empty"),
        ({"maxQueriesPerRequest": 0}, "maxQueriesPerRequest: must be at least 1, is 0"),
    ],
)
def test_invalid_settings_are_reported(peer: Peer, settings: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, **settings)
    assert caught.value.messages == (f"backends.it.datadog.{problem}",)


def test_the_site_determines_the_url(peer: Peer) -> None:
    settings: Any = configuration_for(peer, url="", site="us5.datadoghq.com").backends["it"].settings
    assert settings.http.url == "https://api.us5.datadoghq.com"
