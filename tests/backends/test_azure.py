"""Behaviour of the Azure backend: batching, bisecting, rate limit, dimensions, missing values, authentication."""

import asyncio
import json
import math
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from adapter.backends.azure.settings import Azure
from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendError, BackendUnauthorized, BadQuery
from adapter.process import clock
from adapter.sample import RawSample
from autoscaler.types.observation import FailureClass
from tests.backends.azure_server import CLIENT, METRIC, SUBSCRIPTION, TENANT, TYPE, resource
from tests.backends.conftest import OpenBackend, configuration_for, open_backend
from tests.backends.contract import Json
from tests.backends.peers.azure import Peer

pytestmark = [
    pytest.mark.usefixtures("no_resource_leaks"),
    pytest.mark.parametrize("running_peer", [pytest.param(Peer, id="azure")], indirect=True, scope="session"),
]
VARIABLES = ("TENANT_ID", "CLIENT_ID", "CLIENT_SECRET", "FEDERATED_TOKEN_FILE", "AUTHORITY_HOST")


@pytest.fixture(autouse=True)
def reset_server(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reset the server and remove the variables of Azure from the environment."""
    for name in VARIABLES:
        monkeypatch.delenv(f"AZURE_{name}", raising=False)
    server = peer.server
    server.requests, server.logins, server.targets, server.missing = [], [], [], set()
    yield
    server.points, server.raw_response, server.missing = None, None, set()


async def query_one(opened: OpenBackend, name: str, **more: object) -> RawSample:
    (sample,) = await opened.fetch({"resource": resource(name), "metric": METRIC, **more})
    return sample


async def failure(opened: OpenBackend, parameters: Json) -> tuple[FailureClass, str]:
    with pytest.raises(BackendError) as caught:
        await opened.fetch(parameters)
    return caught.value.failure, caught.value.message


def query_string(target: str) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(target).query).items()}


# ---- batching


async def test_concurrent_queries_are_batched_into_requests_of_fifty_resources(peer: Peer) -> None:
    names = [f"n{number}" for number in range(120)]
    peer.set_values({name: number for number, name in enumerate(names)})
    async with open_backend(peer) as opened:
        samples = await asyncio.gather(*(query_one(opened, name) for name in names))
    assert [sample.value for sample in samples] == list(range(120))
    assert sorted(len(resources) for resources in peer.server.requests) == [20, 50, 50]
    assert peer.server.logins == ["secret"]


async def test_a_resource_that_two_rules_query_is_sent_once(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer) as opened:
        parameters = {"resource": resource("orders"), "metric": METRIC}
        first, second = await asyncio.gather(opened.fetch(parameters), opened.fetch({**parameters, "maxSeries": 100}))
        assert first == second
    assert peer.server.requests == [["orders"]]


async def test_queries_with_different_aggregations_are_sent_in_separate_requests(peer: Peer) -> None:
    peer.set_values({"orders": 3, "mails": 4})
    async with open_backend(peer) as opened:
        await asyncio.gather(
            query_one(opened, "orders"), query_one(opened, "mails"), query_one(opened, "mails", aggregation="total")
        )
    assert sorted(peer.server.requests) == [["mails"], ["orders", "mails"]]


async def test_a_rule_with_several_resources_returns_a_series_for_each(peer: Peer) -> None:
    peer.set_values({"orders": 3, "mails": 4})
    async with open_backend(peer) as opened:
        parameters = {"resources": [resource("orders"), resource("mails", "post")], "metric": METRIC}
        values = {
            (sample.labels["resource_group"], sample.labels["resource_name"]): sample.value
            for sample in await opened.fetch(parameters)
        }
        assert values == {("shop", "orders"): 3, ("post", "mails"): 4}
        parameters["resources"] = [resource("orders"), resource("absent")]
        assert (await failure(opened, parameters))[0] is FailureClass.BAD_QUERY


async def test_a_resource_that_makes_azure_reject_the_batch_is_quarantined(peer: Peer) -> None:
    names = [f"n{number}" for number in range(40)]
    peer.set_values(dict.fromkeys(names, 7))
    peer.server.missing = {"n13"}
    async with open_backend(peer) as opened:
        for _ in range(2):
            peer.server.requests.clear()
            results = await asyncio.gather(*(query_one(opened, name) for name in names), return_exceptions=True)
            (error,) = [result for result in results if isinstance(result, BaseException)]
            assert isinstance(error, BadQuery)
            assert error.message == "resource not found: check resource"
            assert results.index(error) == 13
            assert sum(isinstance(result, RawSample) for result in results) == 39
        assert sorted(len(resources) for resources in peer.server.requests) == [1, 39], (
            "the quarantined resource is sent alone"
        )
        peer.server.missing = set()
        await asyncio.gather(*(query_one(opened, name) for name in names))
        peer.server.requests.clear()
        await asyncio.gather(*(query_one(opened, name) for name in names))
        assert [len(resources) for resources in peer.server.requests] == [40], "the resource left the quarantine"


async def test_404_without_an_azure_error_body_is_not_a_bad_query(peer: Peer) -> None:
    peer.proxy.respond_http(404, b"no such page")
    async with open_backend(peer) as opened:
        error = await failure(opened, {"resource": resource("orders"), "metric": METRIC})
    assert error == (FailureClass.REFUSED, "HTTP 404 Not Found")


async def test_a_throttled_batch_is_not_retried(peer: Peer) -> None:
    peer.set_values({"orders": 3, "mails": 4})
    async with open_backend(peer) as opened:
        await query_one(opened, "orders")
        before = peer.proxy.connections
        peer.throttle()
        failed = await asyncio.gather(query_one(opened, "orders"), query_one(opened, "mails"), return_exceptions=True)
        assert [str(each) for each in failed] == ["HTTP 429 Too Many Requests"] * 2
        assert peer.proxy.connections - before <= 1


async def test_requests_respect_max_requests_per_second(peer: Peer) -> None:
    peer.set_values({f"n{number}": number for number in range(5)})
    async with open_backend(peer, maxRequestsPerSecond=10) as opened:
        await query_one(opened, "n0")
        loop = asyncio.get_running_loop()
        started = loop.time()
        await asyncio.gather(*(query_one(opened, f"n{number}", maxSeries=number + 1) for number in range(5)))
        assert loop.time() - started > 0.4
    assert len(peer.server.requests) == 6


# ---- requests and responses


async def test_the_requested_time_range_consists_of_complete_intervals(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer) as opened:
        sample = await query_one(opened, "orders", granularity="5m", window="30m", delay="10m", aggregation="total")
    sent = query_string(peer.server.targets[0])
    assert (sent["interval"], sent["aggregation"], sent["metricnamespace"]) == ("PT5M", "total", TYPE)
    assert sent["endtime"].endswith(":00.000Z")
    assert int(sent["endtime"][14:16]) % 5 == 0
    assert "top" not in sent
    assert sample.window == timedelta(minutes=5)
    assert timedelta(minutes=10) <= clock() - sample.at < timedelta(minutes=16)


async def test_the_newest_interval_with_a_value_is_returned_with_its_end_time(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    peer.server.points = [
        {"timeStamp": "2026-03-01T12:00:00Z", "average": 1.0},
        {"timeStamp": "2026-03-01T12:02:00Z"},
        {"timeStamp": "2026-03-01T12:01:00Z", "average": 2.5, "total": 99.0},
    ]
    async with open_backend(peer) as opened:
        sample = await query_one(opened, "orders")
    assert (sample.value, sample.at.isoformat()) == (2.5, "2026-03-01T12:02:00+00:00")


async def test_a_series_without_values_is_nan(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    for points in (
        [],
        [{"timeStamp": "2026-03-01T12:00:00Z"}],
        [{"timeStamp": "2026-03-01T12:00:00Z", "average": None}],
    ):
        peer.server.points = points
        async with open_backend(peer) as opened:
            assert math.isnan((await query_one(opened, "orders")).value)


async def test_dimensions_and_filters_select_series(peer: Peer) -> None:
    peer.set_values({"orders": 3, "o'hara": 4, "mails": 5})
    parameters: Json = {"resource": resource("all"), "metric": METRIC}
    async with open_backend(peer) as opened:
        for selection, expected in (
            ({"dimensions": {"EntityName": "o'hara"}}, {"o'hara": 4}),
            ({"dimensions": {"EntityName": "x' or EntityName eq '*"}}, {}),
            ({"filter": "EntityName eq 'orders' or EntityName eq 'mails'"}, {"orders": 3, "mails": 5}),
        ):
            samples = await opened.fetch({**parameters, **selection})
            assert {sample.labels["entityname"]: sample.value for sample in samples} == expected
        rolled = {"filter": "EntityName eq 'orders' or EntityName eq 'mails'", "rollUpBy": "EntityName"}
        assert [sample.value for sample in await opened.fetch({**parameters, **rolled})] == [8]
        assert await failure(opened, {**parameters, "filter": "EntityName is 'orders'"}) == (
            FailureClass.BAD_QUERY,
            "HTTP 400 Bad Request",
        )


async def test_parentheses_quotes_and_commas_are_escaped(peer: Peer) -> None:
    parameters = {"resource": resource("all"), "metric": "a,b", "dimensions": {"dim (x) 1": "v (y) & 'z'"}}
    async with open_backend(peer) as opened:
        await failure(opened, parameters)
    sent = query_string(peer.server.targets[0])
    assert sent["filter"] == "dim %2528x%2529 1 eq 'v %2528y%2529 & ''z'''"
    assert sent["metricnames"] == "a%2b"


async def test_more_series_than_max_series_are_rejected(peer: Peer) -> None:
    peer.set_values({f"q{number}": number for number in range(30)})
    parameters = {"resource": resource("all"), "metric": METRIC, "dimensions": {"EntityName": "*"}}
    async with open_backend(peer) as opened:
        assert len(await opened.fetch({**parameters, "maxSeries": 30})) == 30
        error = await failure(opened, {**parameters, "maxSeries": 29})
        assert error == (FailureClass.REFUSED, "more series than maxSeries")


async def test_an_unknown_metric_is_a_bad_query(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer) as opened:
        with pytest.raises(BadQuery, match="HTTP 400"):
            await opened.fetch({"resource": resource("orders"), "metric": "NoSuchThing"})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"values": [{}]}',
        b'{"values": [{"resourceid": 7, "value": []}]}',
        b'{"values": []}',
        b'"not json in it"',
        b"[" * 100_000,
    ],
)
async def test_an_invalid_response_is_rejected(peer: Peer, body: bytes) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer) as opened:
        await query_one(opened, "orders")
        peer.server.raw_response = body
        assert (await failure(opened, {"resource": resource("orders"), "metric": METRIC}))[0] is FailureClass.REFUSED


async def test_a_response_that_is_a_json_string_with_json_is_decoded(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer) as opened:
        await query_one(opened, "orders")
        metric = {
            "name": {"value": METRIC},
            "timeseries": [{"data": [{"timeStamp": "2026-03-01T12:00:00", "average": 9}]}],
        }
        inner = {"values": [{"resourceid": resource("orders"), "value": [metric]}]}
        peer.server.raw_response = json.dumps(json.dumps(inner)).encode()
        assert (await query_one(opened, "orders")).value == 9


async def test_a_dimension_cannot_replace_the_resource_labels(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer) as opened:
        await query_one(opened, "orders")
        forged = [{"name": {"value": name}, "value": "another"} for name in ("resource_group", "odd name (1)")]
        metric = {"name": {"value": METRIC}, "timeseries": [{"metadatavalues": forged, "data": []}]}
        inner = {"values": [{"resourceid": resource("orders").upper(), "value": [metric]}]}
        peer.server.raw_response = json.dumps(inner).encode()
        labels = (await query_one(opened, "orders")).labels
    assert labels == {"resource_group": "shop", "resource_name": "orders", "odd_name_1_": "another"}


async def test_a_response_larger_than_max_response_bytes_is_rejected(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer, maxResponseBytes=100) as opened:
        error = await failure(opened, {"resource": resource("orders"), "metric": METRIC})
    assert error == (FailureClass.REFUSED, "the response is larger than maxResponseBytes")


# ---- authentication


async def test_a_rejected_token_is_replaced(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer) as opened:
        await query_one(opened, "orders")
        peer.server.revoke()
        with pytest.raises(BackendUnauthorized, match="HTTP 401"):
            await query_one(opened, "orders")
        assert (await query_one(opened, "orders")).value == 3
    assert peer.server.logins == ["secret", "secret"]


async def test_workload_identity_reads_the_rotated_service_account_token(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    peer.set_values({"orders": 3})
    token = tmp_path / "token"
    token.write_text(peer.server.assertion)
    monkeypatch.setenv("AZURE_TENANT_ID", TENANT)
    monkeypatch.setenv("AZURE_CLIENT_ID", CLIENT)
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", str(token))
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", peer.server.authority)
    async with open_backend(peer, login={}, authority="") as opened:
        assert (await query_one(opened, "orders")).value == 3
        peer.server.assertion = "rotated-service-account-token"
        peer.server.revoke()
        for expected in ("HTTP 401 Unauthorized", "authentication with Microsoft Entra ID failed"):
            with pytest.raises(BackendUnauthorized, match=expected):
                await query_one(opened, "orders")
        token.write_text(peer.server.assertion)
        assert (await query_one(opened, "orders")).value == 3
    assert peer.server.logins == ["assertion", "assertion"]
    peer.server.assertion = "service-account-token"


@pytest.mark.parametrize("client", ["", CLIENT])
async def test_managed_identity_of_the_node_is_the_default(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    peer.set_values({"orders": 3})
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", f"http://127.0.0.1:{peer.server.port}")
    login = {"clientId": client} if client else {}
    async with open_backend(peer, login=login, proxyUrl="") as opened:
        assert (await query_one(opened, "orders")).value == 3
    assert peer.server.logins == ["managedIdentity"]
    async with open_backend(peer, login={"method": "managedIdentity", "clientId": "another"}) as opened:
        error = await failure(opened, {"resource": resource("orders"), "metric": METRIC})
    assert error == (FailureClass.UNAUTHORIZED, "no Azure credential available: check login")


async def test_only_the_configured_proxy_is_used_and_not_for_managed_identity(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer.set_values({"orders": 3})
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", f"http://127.0.0.1:{peer.server.port}")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with open_backend(peer, login={}) as opened:
        assert (await query_one(opened, "orders")).value == 3
    connections = peer.proxy.connections
    async with open_backend(peer, login={}, url="http://127.0.0.1:1", proxyUrl=peer.proxy.url) as opened:
        assert (await query_one(opened, "orders")).value == 3
    assert peer.proxy.connections - connections == 1


async def test_a_client_secret_of_the_environment_is_used(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    peer.set_values({"orders": 3})
    for name, value in (("TENANT_ID", TENANT), ("CLIENT_ID", CLIENT), ("CLIENT_SECRET", peer.server.secret)):
        monkeypatch.setenv(f"AZURE_{name}", value)
    async with open_backend(peer, login={}) as opened:
        assert (await query_one(opened, "orders")).value == 3
    assert peer.server.logins == ["secret"]


async def test_an_incomplete_login_names_the_missing_setting(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    peer.set_values({"orders": 3})
    parameters = {"resource": resource("orders"), "metric": METRIC}
    async with open_backend(peer, login={"method": "environment"}) as opened:
        assert await failure(opened, parameters) == (
            FailureClass.UNAUTHORIZED,
            "no Azure credential available: check login",
        )
    async with open_backend(peer, login={"tokenFile": "/no/such/file"}) as opened:
        assert await failure(opened, parameters) == (FailureClass.UNAUTHORIZED, "login.tokenFile cannot be read")
    async with open_backend(peer, login={"method": "workloadIdentity"}) as opened:
        assert await failure(opened, parameters) == (FailureClass.UNAUTHORIZED, "login.tokenFile cannot be read")
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", str(peer.secret))
    async with open_backend(peer, login={}) as opened:
        message = "login needs tenantId and clientId, or AZURE_TENANT_ID and AZURE_CLIENT_ID"
        assert await failure(opened, parameters) == (FailureClass.UNAUTHORIZED, message)


async def test_the_certificate_of_the_token_endpoint_is_verified(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer, tls={}) as opened:
        error = await failure(opened, {"resource": resource("orders"), "metric": METRIC})
    assert error == (FailureClass.UNREACHABLE, "TLS handshake failed: certificate not accepted")
    assert peer.server.logins == []


@pytest.mark.parametrize(
    ("cloud", "url", "audience", "authority"),
    [
        ("public", "https://westeurope.metrics.monitor.azure.com", "https://metrics.monitor.azure.com", ""),
        (
            "usGovernment",
            "https://westeurope.metrics.monitor.azure.us",
            "https://metrics.monitor.azure.us",
            "https://login.microsoftonline.us",
        ),
        (
            "china",
            "https://westeurope.metrics.monitor.azure.cn",
            "https://metrics.monitor.azure.cn",
            "https://login.chinacloudapi.cn",
        ),
    ],
)
@pytest.mark.usefixtures("peer")
def test_each_cloud_has_its_own_url_audience_and_authority(cloud: Any, url: str, audience: str, authority: str) -> None:
    settings = Azure(region="westeurope", cloud=cloud)
    assert (settings.http.url, settings.token_audience, settings.login_authority) == (url, audience, authority)


# ---- validation


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"resource": ""}, "resource: exactly one of resource and resources is required"),
        (
            {"resource": "shop"},
            "resource: must be /subscriptions/GUID/resourceGroups/GROUP/providers/PROVIDER/TYPE/NAME, is 'shop'",
        ),
        ({"metric": ""}, "metric: must not be empty"),
        ({"granularity": "2m"}, "granularity: must be one of 1m, 5m, 15m, 30m, 1h, 6h, 12h, 24h"),
        ({"granularity": "15m"}, "window: must be at least as long as granularity"),
        ({"dimensions": {"a": "b"}, "filter": "c eq 'd'"}, "filter: cannot be combined with dimensions"),
        ({"rollUpBy": "a"}, "rollUpBy: requires dimensions or filter"),
        ({"maxSeries": 0}, "maxSeries: must be at least 1, is 0"),
        ({"window": "169h"}, "window: must be at most 168h"),
        ({"delay": "169h"}, "delay: must be at most 168h"),
    ],
)
def test_invalid_parameters_are_reported(peer: Peer, parameters: Json, expected: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, {**peer.parameters_for("orders"), **parameters})
    assert caught.value.messages == (f"rules[0].parameters.{expected}",)


@pytest.mark.parametrize("part", ["..", "a/b", "a?b=c", "a#b", "%2e%2e", "a b", ""])
def test_a_resource_id_cannot_contain_path_traversal(peer: Peer, part: str) -> None:
    for id_ in (resource("x").replace(SUBSCRIPTION, part), resource(f"{part}/../..") if part else resource("")):
        with pytest.raises(ConfigInvalid, match="must be /subscriptions/GUID"):
            configuration_for(peer, {"resource": id_, "metric": METRIC})


def test_resources_of_one_rule_must_be_distinct_and_of_one_type(peer: Peer) -> None:
    for ids, expected in (
        (
            [resource("a"), resource("b", kind="Microsoft.Web/sites")],
            "must have one type and one subscription; write a rule for each",
        ),
        ([resource("a"), resource("A")], "contains a duplicate"),
        ([resource(f"n{number}") for number in range(51)], "must have at most 50 items, has 51; write a second rule"),
    ):
        with pytest.raises(ConfigInvalid, match=expected):
            configuration_for(peer, {"resources": ids, "metric": METRIC})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"url": ""}, "region: exactly one of region and url is required"),
        (
            {"url": "", "region": "West Europe"},
            "region: must be a region name such as westeurope, is 'West Europe'",
        ),
        ({"url": "http://example.com"}, "url: must be https, because credentials are sent to it"),
        ({"url": "ftp://x"}, "url: not an http or https URL with a host"),
        ({"maxRequestsPerSecond": 0}, "maxRequestsPerSecond: must be at least 1, is 0"),
        ({"login": {"method": "clientSecret"}}, "login.clientSecretFile: required with method clientSecret"),
        ({"login": {"clientSecretFile": "/x"}}, "login.clientSecretFile: requires tenantId and clientId"),
        (
            {"login": {"method": "environment", "tokenFile": "/x"}},
            "login.tokenFile: not valid with method environment",
        ),
        ({"login": {"tenantId": "a/b"}}, "login.tenantId: must be a GUID or a domain name"),
    ],
)
def test_invalid_settings_are_reported(peer: Peer, settings: Json, expected: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, **settings)
    assert caught.value.messages == (f"backends.it.azure.{expected}",)
