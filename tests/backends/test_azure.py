"""What is Azure's own: calls that are combined, halved and paced, dimensions, empty minutes, and ways to log in."""

import asyncio
import json
import math
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from adapter.app import clock
from adapter.backends.azure.client import AzureClient
from adapter.backends.azure.settings import Azure
from adapter.errors import BackendError, BackendUnauthorized, BadQuery, ConfigInvalid
from adapter.sample import RawSample
from autoscaler.types.observation import FailureClass
from tests.backends.azure_server import CLIENT, METRIC, SUBSCRIPTION, TENANT, TYPE, resource
from tests.backends.conftest import Opened, backend_of, configured
from tests.backends.contract import Json
from tests.backends.peers.azure import Peer

pytestmark = [
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("running", [pytest.param(Peer, id="azure")], indirect=True, scope="session"),
]
VARIABLES = ("TENANT_ID", "CLIENT_ID", "CLIENT_SECRET", "FEDERATED_TOKEN_FILE", "AUTHORITY_HOST")


@pytest.fixture(autouse=True)
def as_new(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server with nothing asked of it yet, and an environment without a word of Azure."""
    for name in VARIABLES:
        monkeypatch.delenv(f"AZURE_{name}", raising=False)
    server = peer.server
    server.calls, server.logins, server.targets, server.missing = [], [], [], set()
    yield
    server.points, server.said, server.missing = None, None, set()


async def one(opened: Opened, name: str, **more: object) -> RawSample:
    (sample,) = await opened.ask({"resource": resource(name), "metric": METRIC, **more})
    return sample


async def failure(opened: Opened, asked: Json) -> tuple[FailureClass, str]:
    with pytest.raises(BackendError) as caught:
        await opened.ask(asked)
    return caught.value.failure, caught.value.message


def query(target: str) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(target).query).items()}


# ---- one call for many


async def test_what_many_rules_ask_at_once_is_one_call_for_every_fifty_resources(peer: Peer) -> None:
    names = [f"n{number}" for number in range(120)]
    peer.hold({name: number for number, name in enumerate(names)})
    async with backend_of(peer) as opened:
        found = await asyncio.gather(*(one(opened, name) for name in names))
    assert [sample.value for sample in found] == list(range(120))
    assert sorted(len(call) for call in peer.server.calls) == [20, 50, 50]
    assert peer.server.logins == ["secret"]


async def test_the_same_question_of_two_rules_is_asked_once_whatever_its_case(peer: Peer) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer) as opened:
        asked = {"resource": resource("orders"), "metric": METRIC}
        first, second = await asyncio.gather(opened.ask(asked), opened.ask({**asked, "maxSeries": 100}))
        assert first == second
    assert peer.server.calls == [["orders"]]


async def test_what_differs_in_anything_but_the_resource_is_a_call_of_its_own(peer: Peer) -> None:
    peer.hold({"orders": 3, "mails": 4})
    async with backend_of(peer) as opened:
        await asyncio.gather(one(opened, "orders"), one(opened, "mails"), one(opened, "mails", aggregation="total"))
    assert sorted(peer.server.calls) == [["mails"], ["orders", "mails"]]


async def test_a_rule_for_several_resources_has_a_series_of_each(peer: Peer) -> None:
    peer.hold({"orders": 3, "mails": 4})
    async with backend_of(peer) as opened:
        asked = {"resources": [resource("orders"), resource("mails", "post")], "metric": METRIC}
        found = await opened.ask(asked)
        told = {(sample.labels["resource_group"], sample.labels["resource_name"]): sample.value for sample in found}
        assert told == {("shop", "orders"): 3, ("post", "mails"): 4}
        asked["resources"] = [resource("orders"), resource("nobody")]
        assert (await failure(opened, asked))[0] is FailureClass.BAD_QUERY


async def test_one_resource_that_azure_refuses_the_call_for_costs_the_others_nothing(peer: Peer) -> None:
    names = [f"n{number}" for number in range(40)]
    peer.hold(dict.fromkeys(names, 7))
    peer.server.missing = {"n13"}
    async with backend_of(peer) as opened:
        for _ in range(2):
            peer.server.calls.clear()
            found = await asyncio.gather(*(one(opened, name) for name in names), return_exceptions=True)
            (error,) = [each for each in found if isinstance(each, BaseException)]
            assert isinstance(error, BadQuery)
            assert error.message == "Azure does not have this resource"
            assert found.index(error) == 13
            assert sum(isinstance(each, RawSample) for each in found) == 39
        assert sorted(len(call) for call in peer.server.calls) == [1, 39], "it is known by now, and asked alone"
        peer.server.missing = set()
        await asyncio.gather(*(one(opened, name) for name in names))
        peer.server.calls.clear()
        await asyncio.gather(*(one(opened, name) for name in names))
        assert [len(call) for call in peer.server.calls] == [40], "it is answered again, and goes along again"


async def test_a_page_not_found_that_is_not_azures_is_refused(peer: Peer) -> None:
    peer.hop.answer_http(404, b"no such page")
    async with backend_of(peer) as opened:
        told = await failure(opened, {"resource": resource("orders"), "metric": METRIC})
    assert told == (FailureClass.REFUSED, "HTTP 404 Not Found")


async def test_being_throttled_is_not_answered_with_more_calls(peer: Peer) -> None:
    peer.hold({"orders": 3, "mails": 4})
    async with backend_of(peer) as opened:
        await one(opened, "orders")
        before = peer.hop.connections
        peer.throttle()
        failed = await asyncio.gather(one(opened, "orders"), one(opened, "mails"), return_exceptions=True)
        assert [str(each) for each in failed] == ["HTTP 429 Too Many Requests"] * 2
        assert peer.hop.connections - before <= 1


async def test_calls_keep_to_the_pace(peer: Peer) -> None:
    peer.hold({f"n{number}": number for number in range(5)})
    async with backend_of(peer, callsPerSecond=10) as opened:
        await one(opened, "n0")
        loop = asyncio.get_running_loop()
        started = loop.time()
        await asyncio.gather(*(one(opened, f"n{number}", maxSeries=number + 1) for number in range(5)))
        assert loop.time() - started > 0.4
    assert len(peer.server.calls) == 6


# ---- what is asked, and what is told


async def test_only_whole_granularities_are_asked_for(peer: Peer) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer) as opened:
        sample = await one(opened, "orders", granularity="5m", window="30m", delay="10m", aggregation="total")
    asked = query(peer.server.targets[0])
    assert (asked["interval"], asked["aggregation"], asked["metricnamespace"]) == ("PT5M", "total", TYPE)
    assert asked["endtime"].endswith(":00.000Z")
    assert int(asked["endtime"][14:16]) % 5 == 0
    assert "top" not in asked
    assert sample.window == timedelta(minutes=5)
    assert timedelta(minutes=10) <= clock() - sample.at < timedelta(minutes=16)


async def test_the_newest_minute_that_has_a_number_is_told_with_its_time(peer: Peer) -> None:
    peer.hold({"orders": 3})
    peer.server.points = [
        {"timeStamp": "2026-03-01T12:00:00Z", "average": 1.0},
        {"timeStamp": "2026-03-01T12:02:00Z"},
        {"timeStamp": "2026-03-01T12:01:00Z", "average": 2.5, "total": 99.0},
    ]
    async with backend_of(peer) as opened:
        sample = await one(opened, "orders")
    assert (sample.value, sample.at.isoformat()) == (2.5, "2026-03-01T12:02:00+00:00")


async def test_minutes_without_any_number_are_not_a_number_and_never_zero(peer: Peer) -> None:
    peer.hold({"orders": 3})
    for points in (
        [],
        [{"timeStamp": "2026-03-01T12:00:00Z"}],
        [{"timeStamp": "2026-03-01T12:00:00Z", "average": None}],
    ):
        peer.server.points = points
        async with backend_of(peer) as opened:
            assert math.isnan((await one(opened, "orders")).value)


async def test_dimensions_and_filters_choose_series(peer: Peer) -> None:
    peer.hold({"orders": 3, "o'hara": 4, "mails": 5})
    asked: Json = {"resource": resource("all"), "metric": METRIC}
    async with backend_of(peer) as opened:
        for more, expected in (
            ({"dimensions": {"EntityName": "o'hara"}}, {"o'hara": 4}),
            ({"dimensions": {"EntityName": "x' or EntityName eq '*"}}, {}),
            ({"filter": "EntityName eq 'orders' or EntityName eq 'mails'"}, {"orders": 3, "mails": 5}),
        ):
            found = await opened.ask({**asked, **more})
            assert {sample.labels["entityname"]: sample.value for sample in found} == expected
        rolled = {"filter": "EntityName eq 'orders' or EntityName eq 'mails'", "rollUpBy": "EntityName"}
        assert [sample.value for sample in await opened.ask({**asked, **rolled})] == [8]
        assert await failure(opened, {**asked, "filter": "EntityName is 'orders'"}) == (
            FailureClass.BAD_QUERY,
            "HTTP 400 Bad Request",
        )


async def test_brackets_and_commas_are_written_as_azure_wants_them(peer: Peer) -> None:
    asked = {"resource": resource("all"), "metric": "a,b", "dimensions": {"dim (x) 1": "v (y) & 'z'"}}
    async with backend_of(peer) as opened:
        await failure(opened, asked)
    sent = query(peer.server.targets[0])
    assert sent["filter"] == "dim %2528x%2529 1 eq 'v %2528y%2529 & ''z'''"
    assert sent["metricnames"] == "a%2b"


async def test_more_series_than_may_be_are_refused_and_none_left_out(peer: Peer) -> None:
    peer.hold({f"q{number}": number for number in range(30)})
    asked = {"resource": resource("all"), "metric": METRIC, "dimensions": {"EntityName": "*"}}
    async with backend_of(peer) as opened:
        assert len(await opened.ask({**asked, "maxSeries": 30})) == 30
        told = await failure(opened, {**asked, "maxSeries": 29})
        assert told == (FailureClass.REFUSED, "there are more series than maxSeries")


async def test_a_metric_that_azure_does_not_know_is_a_bad_query(peer: Peer) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer) as opened:
        with pytest.raises(BadQuery, match="HTTP 400"):
            await opened.ask({"resource": resource("orders"), "metric": "NoSuchThing"})


@pytest.mark.parametrize(
    "said",
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
async def test_what_is_no_answer_is_refused(peer: Peer, said: bytes) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer) as opened:
        await one(opened, "orders")
        peer.server.said = said
        assert (await failure(opened, {"resource": resource("orders"), "metric": METRIC}))[0] is FailureClass.REFUSED


async def test_an_answer_that_is_a_text_with_json_in_it_is_read(peer: Peer) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer) as opened:
        await one(opened, "orders")
        metric = {
            "name": {"value": METRIC},
            "timeseries": [{"data": [{"timeStamp": "2026-03-01T12:00:00", "average": 9}]}],
        }
        inner = {"values": [{"resourceid": resource("orders"), "value": [metric]}]}
        peer.server.said = json.dumps(json.dumps(inner)).encode()
        assert (await one(opened, "orders")).value == 9


async def test_no_dimension_can_pass_for_the_resource_group(peer: Peer) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer) as opened:
        await one(opened, "orders")
        forged = [{"name": {"value": name}, "value": "another"} for name in ("resource_group", "odd name (1)")]
        metric = {"name": {"value": METRIC}, "timeseries": [{"metadatavalues": forged, "data": []}]}
        inner = {"values": [{"resourceid": resource("orders").upper(), "value": [metric]}]}
        peer.server.said = json.dumps(inner).encode()
        labels = (await one(opened, "orders")).labels
    assert labels == {"resource_group": "shop", "resource_name": "orders", "odd_name_1_": "another"}


async def test_an_answer_without_end_is_refused(peer: Peer) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer, maxResponseBytes=100) as opened:
        told = await failure(opened, {"resource": resource("orders"), "metric": METRIC})
    assert told == (FailureClass.REFUSED, "the answer is larger than maxResponseBytes")


# ---- who we are


async def test_a_token_that_is_not_believed_any_more_is_replaced(peer: Peer) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer) as opened:
        await one(opened, "orders")
        peer.server.revoke()
        with pytest.raises(BackendUnauthorized, match="HTTP 401"):
            await one(opened, "orders")
        assert (await one(opened, "orders")).value == 3
    assert peer.server.logins == ["secret", "secret"]


async def test_a_service_account_logs_in_by_its_token_as_aks_arranges_it(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    peer.hold({"orders": 3})
    token = tmp_path / "token"
    token.write_text(peer.server.assertion)
    monkeypatch.setenv("AZURE_TENANT_ID", TENANT)
    monkeypatch.setenv("AZURE_CLIENT_ID", CLIENT)
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", str(token))
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", peer.server.authority)
    async with backend_of(peer, login={}, authority="") as opened:
        assert (await one(opened, "orders")).value == 3
        peer.server.assertion = "another-token-of-our-service-account"
        peer.server.revoke()
        for expected in ("HTTP 401 Unauthorized", "Microsoft Entra ID gives us no token"):
            with pytest.raises(BackendUnauthorized, match=expected):
                await one(opened, "orders")
        token.write_text(peer.server.assertion)
        assert (await one(opened, "orders")).value == 3
    assert peer.server.logins == ["assertion", "assertion"]
    peer.server.assertion = "a-token-of-our-service-account"


@pytest.mark.parametrize("client", ["", CLIENT])
async def test_a_machine_has_an_identity_of_its_own(peer: Peer, monkeypatch: pytest.MonkeyPatch, client: str) -> None:
    peer.hold({"orders": 3})
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", f"http://127.0.0.1:{peer.server.port}")
    login = {"clientId": client} if client else {}
    async with backend_of(peer, login=login, proxyUrl="") as opened:
        assert (await one(opened, "orders")).value == 3
    assert peer.server.logins == ["machine"]
    async with backend_of(peer, login={"by": "managedIdentity", "clientId": "another"}) as opened:
        told = await failure(opened, {"resource": resource("orders"), "metric": METRIC})
    assert told == (FailureClass.UNAUTHORIZED, "there is no identity to log in with")


async def test_a_proxy_is_the_one_that_is_configured_and_not_in_the_way_of_the_machine(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer.hold({"orders": 3})
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", f"http://127.0.0.1:{peer.server.port}")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with backend_of(peer, login={}) as opened:
        assert (await one(opened, "orders")).value == 3
    asked = peer.hop.connections
    async with backend_of(peer, login={}, endpoint="http://127.0.0.1:1", proxyUrl=peer.hop.url) as opened:
        assert (await one(opened, "orders")).value == 3
    assert peer.hop.connections - asked == 1


async def test_the_environment_may_hold_a_secret(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    peer.hold({"orders": 3})
    for name, value in (("TENANT_ID", TENANT), ("CLIENT_ID", CLIENT), ("CLIENT_SECRET", peer.server.secret)):
        monkeypatch.setenv(f"AZURE_{name}", value)
    async with backend_of(peer, login={}) as opened:
        assert (await one(opened, "orders")).value == 3
    assert peer.server.logins == ["secret"]


async def test_a_login_that_lacks_something_says_what(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    peer.hold({"orders": 3})
    asked = {"resource": resource("orders"), "metric": METRIC}
    async with backend_of(peer, login={"by": "environment"}) as opened:
        assert await failure(opened, asked) == (FailureClass.UNAUTHORIZED, "there is no identity to log in with")
    async with backend_of(peer, login={"tokenFile": "/no/such/file"}) as opened:
        assert await failure(opened, asked) == (FailureClass.UNAUTHORIZED, "login.tokenFile cannot be read")
    async with backend_of(peer, login={"by": "workloadIdentity"}) as opened:
        assert await failure(opened, asked) == (FailureClass.UNAUTHORIZED, "login.tokenFile cannot be read")
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", str(peer.secret))
    async with backend_of(peer, login={}) as opened:
        told = "login needs tenantId and clientId, or the variables in their place"
        assert await failure(opened, asked) == (FailureClass.UNAUTHORIZED, told)


async def test_who_gives_tokens_is_believed_by_certificate_only(peer: Peer) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer, caFile="") as opened:
        told = await failure(opened, {"resource": resource("orders"), "metric": METRIC})
    assert told == (FailureClass.UNREACHABLE, "its certificate or ours was not accepted")
    assert peer.server.logins == []


@pytest.mark.parametrize(
    ("cloud", "endpoint", "audience", "authority"),
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
async def test_each_cloud_has_its_own_places(
    peer: Peer, cloud: Any, endpoint: str, audience: str, authority: str
) -> None:
    client = AzureClient(Azure(region="westeurope", cloud=cloud))
    assert peer.kind == "azure"
    assert (client._endpoint, client._audience, client._login._authority) == (endpoint, audience, authority)


# ---- what cannot be right


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"resource": ""}, "resource: either this or resources is needed"),
        (
            {"resource": "shop"},
            "resource: must be /subscriptions/GUID/resourceGroups/GROUP/providers/PROVIDER/TYPE/NAME, is 'shop'",
        ),
        ({"metric": ""}, "metric: must not be empty"),
        ({"granularity": "2m"}, "granularity: must be one of 1m, 5m, 15m, 30m, 1h, 6h, 12h, 24h"),
        ({"granularity": "15m"}, "window: must be at least as long as granularity"),
        ({"dimensions": {"a": "b"}, "filter": "c eq 'd'"}, "filter: excludes dimensions; write all of it here"),
        ({"rollUpBy": "a"}, "rollUpBy: needs dimensions or a filter that names them"),
        ({"maxSeries": 0}, "maxSeries: must be at least 1, is 0"),
        ({"window": "99999999h"}, "window: must be at most 168h"),
        ({"delay": "99999999h"}, "delay: must be at most 168h"),
    ],
)
def test_parameters_that_cannot_be_right_are_told_with_what_to_write(peer: Peer, asked: Json, expected: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, {**peer.one("orders"), **asked})
    assert caught.value.problems == (f"rules[0].parameters.{expected}",)


@pytest.mark.parametrize("part", ["..", "a/b", "a?b=c", "a#b", "%2e%2e", "a b", ""])
def test_an_id_cannot_lead_anywhere_else(peer: Peer, part: str) -> None:
    for id_ in (resource("x").replace(SUBSCRIPTION, part), resource(f"{part}/../..") if part else resource("")):
        with pytest.raises(ConfigInvalid, match="must be /subscriptions/GUID"):
            configured(peer, {"resource": id_, "metric": METRIC})


def test_resources_of_one_rule_are_alike(peer: Peer) -> None:
    for ids, expected in (
        ([resource("a"), resource("b", kind="Microsoft.Web/sites")], "must be of one type and in one subscription"),
        ([resource("a"), resource("A")], "names one twice"),
        ([resource(f"n{number}") for number in range(51)], "at most 50, are 51"),
    ):
        with pytest.raises(ConfigInvalid, match=expected):
            configured(peer, {"resources": ids, "metric": METRIC})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"endpoint": ""}, "region: either this or endpoint is needed"),
        ({"endpoint": "", "region": "West Europe"}, "region: must be a name such as westeurope, is 'West Europe'"),
        ({"endpoint": "http://example.com"}, "endpoint: must be https: a token would be seen on the way"),
        ({"endpoint": "ftp://x"}, "endpoint: not an http or https URL with a host"),
        ({"callsPerSecond": 0}, "callsPerSecond: must be at least 1, is 0"),
        ({"login": {"by": "clientSecret"}}, "login.clientSecretFile: is needed to log in by clientSecret"),
        ({"login": {"clientSecretFile": "/x"}}, "login.clientSecretFile: needs tenantId and clientId"),
        (
            {"login": {"by": "environment", "tokenFile": "/x"}},
            "login.tokenFile: is for workloadIdentity, and by is environment",
        ),
        ({"login": {"tenantId": "a/b"}}, "login.tenantId: must be a GUID or a domain"),
    ],
)
def test_settings_that_cannot_be_right_are_told_with_what_to_write(peer: Peer, settings: Json, expected: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, **settings)
    assert caught.value.problems == (f"backends.it.azure.{expected}",)
