"""Behaviour of the Google backend: filters, aligners, pages, value types, PromQL and authentication."""

import asyncio
import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from google.auth.compute_engine import _metadata
from google.cloud.monitoring_v3 import Aggregation

from adapter.backends.google.settings import GoogleParameters
from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendError, BackendRejected, BackendUnauthorized, BackendUnreachable, BadQuery
from adapter.process import clock
from adapter.sample import RawSample
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import OpenBackend, configuration_for, open_backend
from tests.backends.contract import Json
from tests.backends.google_server import PROJECT, TYPE, series
from tests.backends.peers.google import Peer

pytestmark = [
    pytest.mark.usefixtures("no_resource_leaks"),
    pytest.mark.parametrize("running_peer", [pytest.param(Peer, id="google")], indirect=True, scope="session"),
]
ALL: Json = {"filter": f'metric.type="{TYPE}"'}
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def reset_server(peer: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Reset the server and remove the variables of Google from the environment."""
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    server = peer.server
    server.requests, server.logins, server.queries, server.headers = [], [], [], []
    yield
    server.series, server.execution_errors, server.token_status = None, [], 200
    server.promql_result, server.raw_response = None, None


async def failure(opened: OpenBackend, parameters: Json) -> tuple[FailureClass, str]:
    with pytest.raises(BackendError) as caught:
        await opened.fetch(parameters)
    return caught.value.failure, caught.value.message


def series_with_value(**typed: Any) -> list[dict[str, Any]]:
    """Return a series of one point."""
    return [series({}, 0, NOON, points=[{"interval": {"end_time": NOON}, "value": typed}])]


# ---- requests


async def test_the_request_has_the_fields_of_the_api_definition(peer: Peer) -> None:
    peer.set_values({"orders": 3, "mails": 4})
    parameters = {
        **ALL,
        "aligner": "percentile99",
        "reducer": "sum",
        "groupBy": ["resource.labels.subscription_id", "metric.labels.x"],
        "alignmentPeriod": "2m",
        "window": "10m",
        "delay": "3m",
    }
    async with open_backend(peer) as opened:
        (sample,) = await opened.fetch(parameters)
    (request,) = peer.server.requests
    assert sample.value == 7
    assert request.aggregation.per_series_aligner is Aggregation.Aligner.ALIGN_PERCENTILE_99
    assert request.aggregation.cross_series_reducer is Aggregation.Reducer.REDUCE_SUM
    assert list(request.aggregation.group_by_fields) == parameters["groupBy"]
    assert request.aggregation.alignment_period == timedelta(minutes=2)
    assert request.interval.end_time - request.interval.start_time == timedelta(minutes=10)
    assert timedelta(minutes=3) <= clock() - request.interval.end_time < timedelta(minutes=4)


@pytest.mark.parametrize(
    ("field", "kind", "prefix"), [("aligner", "Aligner", "ALIGN"), ("reducer", "Reducer", "REDUCE")]
)
async def test_every_aligner_and_reducer_of_the_api_is_supported(
    peer: Peer, field: str, kind: str, prefix: str
) -> None:
    def names(literal: Any) -> Iterator[str]:
        for each in get_args(literal):
            yield from [each] if isinstance(each, str) else names(each)

    supported = list(names(get_type_hints(GoogleParameters)[field]))
    defined = {each.name for each in getattr(Aggregation, kind)}
    peer.set_values({"orders": 3})
    async with open_backend(peer) as opened:
        for name in supported:
            await opened.fetch({**ALL, "aligner": "mean", field: name})
    sent = {
        getattr(request.aggregation, "per_series_aligner" if field == "aligner" else "cross_series_reducer").name
        for request in peer.server.requests
    }
    assert sent == defined
    assert len(supported) == len(defined)
    assert all(name.startswith(prefix) for name in defined)


async def test_all_pages_are_read_and_more_series_than_max_series_are_rejected(peer: Peer) -> None:
    peer.set_values({f"q{number}": number for number in range(7)})
    async with open_backend(peer, pageSize=2) as opened:
        samples = await opened.fetch(ALL)
        assert [sample.value for sample in samples] == list(range(7))
        assert [request.page_token for request in peer.server.requests] == ["", "2", "4", "6"]
        assert len(await opened.fetch({**ALL, "maxSeries": 7})) == 7
        error = await failure(opened, {**ALL, "maxSeries": 6})
        assert error == (FailureClass.REFUSED, "more series than maxSeries")


async def test_a_rule_can_query_another_project_if_permitted(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer) as opened:
        assert len(await opened.fetch({**ALL, "project": PROJECT})) == 1
        error = await failure(opened, {**ALL, "project": "another-1"})
        assert error == (FailureClass.UNAUTHORIZED, "HTTP 403 Forbidden")


async def test_requests_respect_max_requests_per_second(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer, maxRequestsPerSecond=10) as opened:
        await opened.fetch(ALL)
        loop = asyncio.get_running_loop()
        started = loop.time()
        await asyncio.gather(*(opened.fetch({**ALL, "maxSeries": number}) for number in range(1, 6)))
        assert loop.time() - started > 0.4


# ---- responses


async def test_the_newest_point_is_returned_with_its_time(peer: Peer) -> None:
    points = [
        {"interval": {"end_time": NOON - timedelta(minutes=1)}, "value": {"int64_value": 1}},
        {"interval": {"start_time": NOON - timedelta(minutes=1), "end_time": NOON}, "value": {"int64_value": 2**53}},
        {"interval": {"end_time": NOON - timedelta(minutes=2)}, "value": {"int64_value": 3}},
    ]
    peer.server.series = [series({}, 0, NOON, points=points)]
    async with open_backend(peer) as opened:
        assert await opened.fetch(ALL) == (RawSample(2.0**53, NOON, {}, timedelta(minutes=1)),)


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        ({"bool_value": True}, 1),
        ({"int64_value": -5}, -5),
        ({"double_value": 0.25}, 0.25),
        ({"double_value": math.inf}, math.inf),
        ({"double_value": math.nan}, math.nan),
        ({}, math.nan),
    ],
)
async def test_bool_int64_and_double_values_are_converted(peer: Peer, typed: dict[str, Any], number: float) -> None:
    peer.server.series = series_with_value(**typed)
    async with open_backend(peer) as opened:
        (sample,) = await opened.fetch(ALL)
    assert sample.value == number or (math.isnan(number) and math.isnan(sample.value))


async def test_a_series_without_points_is_nan(peer: Peer) -> None:
    peer.server.series = [series({"a": "b"}, 0, NOON, points=[])]
    async with open_backend(peer) as opened:
        (sample,) = await opened.fetch(ALL)
    assert math.isnan(sample.value)
    assert sample.labels == {"a": "b"}


@pytest.mark.parametrize(
    ("typed", "kind"),
    [({"distribution_value": {"count": 3}}, "distribution"), ({"string_value": "yes"}, "string")],
)
async def test_a_distribution_or_string_without_an_aligner_is_a_bad_query(
    peer: Peer, typed: dict[str, Any], kind: str
) -> None:
    peer.server.series = series_with_value(**typed)
    async with open_backend(peer) as opened:
        with pytest.raises(BadQuery, match=f"the metric is a {kind}: set an aligner such as"):
            await opened.fetch(ALL)


async def test_labels_of_metric_resource_and_user_are_merged(peer: Peer) -> None:
    more = {"metric": {"type": TYPE, "labels": {"zone": "a", "kind": "k"}}, "metadata": {"user_labels": {"team": "t"}}}
    peer.server.series = [series({"zone": "b", "id": "7", "kind": "k"}, 1, NOON, **more)]
    async with open_backend(peer) as opened:
        (sample,) = await opened.fetch(ALL)
    assert sample.labels == {"zone": "a", "resource_zone": "b", "id": "7", "kind": "k", "team": "t"}


async def test_a_partial_result_is_rejected(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    peer.server.execution_errors = [{"code": 14, "message": "a region did not respond"}]
    async with open_backend(peer) as opened:
        with pytest.raises(BackendRejected, match="the result may be partial") as caught:
            await opened.fetch(ALL)
    assert caught.value.detail == "a region did not respond"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"timeSeries": 7}',
        b'{"timeSeries": [{"points": [{}]}]}',
        b'{"timeSeries": [{"points": [{"interval": {"endTime": "2026-03-01"}, "value": {"int64Value": "1"}}]}]}',
        b'{"timeSeries": [{"points": [{"interval": {"endTime": "2026-03-01T12:00:00"}, "value": {}}]}]}',
        b'{"timeSeries":[{"points":[{"interval":{"endTime":"2026-03-01T12:00:00Z"},"value":{"int64Value":"x"}}]}]}',
        b"[" * 100_000,
    ],
)
async def test_an_invalid_response_is_rejected(peer: Peer, content: bytes) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer) as opened:
        await opened.fetch(ALL)
        peer.server.raw_response = content
        assert (await failure(opened, ALL))[0] is FailureClass.REFUSED


async def test_an_invalid_filter_is_a_bad_query(peer: Peer) -> None:
    async with open_backend(peer) as opened:
        error = await failure(opened, {"filter": f'metric.type="{TYPE}" OR OR'})
    assert error == (FailureClass.BAD_QUERY, "HTTP 400 Bad Request")


async def test_404_without_a_google_error_body_is_not_a_bad_query(peer: Peer) -> None:
    peer.proxy.respond_http(404, b"no such page")
    async with open_backend(peer) as opened:
        assert await failure(opened, ALL) == (FailureClass.REFUSED, "HTTP 404 Not Found")


# ---- PromQL


async def test_promql_returns_labels_without_the_metric_name(peer: Peer) -> None:
    peer.set_values({"orders": 3, "mails": 4})
    query = 'sum by (subscription) (n{a="b&c"})'
    async with open_backend(peer) as opened:
        samples = await opened.fetch({"promql": query})
        assert {sample.labels["subscription"]: sample.value for sample in samples} == {"orders": 3, "mails": 4}
        assert all(set(sample.labels) == {"subscription"} for sample in samples)
        assert all(clock() - sample.at < timedelta(seconds=10) for sample in samples)
        assert peer.server.queries == [query]
        peer.server.promql_result = []
        assert await opened.fetch({"promql": query}) == ()
        assert await failure(opened, {"promql": "sum("}) == (FailureClass.BAD_QUERY, "HTTP 400 Bad Request")
        peer.server.promql_result = None
        error = await failure(opened, {"promql": query, "maxSeries": 1})
        assert error == (FailureClass.REFUSED, "more series than maxSeries")


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"status": "success", "data": {"resultType": "scalar", "result": [1, "7"]}}, [7.0]),
        (
            {"status": "success", "data": {"resultType": "vector", "result": []}, "warnings": ["partial"]},
            "the result may be partial",
        ),
        ({"status": "error", "data": {"resultType": "vector", "result": []}}, "the result may be partial"),
        (
            {"status": "success", "data": {"resultType": "matrix", "result": []}},
            "invalid response from Cloud Monitoring",
        ),
        (
            {"status": "success", "data": {"resultType": "scalar", "result": [1, "x"]}},
            "invalid response from Cloud Monitoring",
        ),
        (
            {"status": "success", "data": {"resultType": "scalar", "result": [1e300, "1"]}},
            "invalid response from Cloud Monitoring",
        ),
    ],
)
async def test_partial_and_invalid_promql_responses_are_rejected(peer: Peer, document: Json, expected: Any) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer) as opened:
        await opened.fetch({"promql": "up"})
        peer.server.raw_response = json.dumps(document).encode()
        if isinstance(expected, list):
            assert [sample.value for sample in await opened.fetch({"promql": "up"})] == expected
        else:
            with pytest.raises(BackendRejected, match=expected):
                await opened.fetch({"promql": "up"})


# ---- authentication


async def test_a_token_is_cached_until_it_is_rejected(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer) as opened:
        await asyncio.gather(*(opened.fetch({**ALL, "maxSeries": number}) for number in range(1, 9)))
        assert peer.server.logins == ["key"]
        peer.server.revoke()
        with pytest.raises(BackendUnauthorized, match="HTTP 401"):
            await opened.fetch(ALL)
        assert len(await opened.fetch(ALL)) == 1
    assert peer.server.logins == ["key", "key"]


async def test_an_external_account_authenticates_with_a_token_file(peer: Peer, tmp_path: Path) -> None:
    peer.set_values({"orders": 3})
    subject, file = tmp_path / "subject", tmp_path / "external.json"
    subject.write_text(peer.server.subject_token)
    file.write_text(peer.server.external_file(str(subject)))
    async with open_backend(peer, credentialsFile=str(file)) as opened:
        assert len(await opened.fetch(ALL)) == 1
        subject.write_text("revoked-token")
        peer.server.revoke()
        assert await failure(opened, ALL) == (FailureClass.UNAUTHORIZED, "HTTP 401 Unauthorized")
        assert await failure(opened, ALL) == (
            FailureClass.UNAUTHORIZED,
            "authentication with Google failed: check credentialsFile",
        )
        subject.write_text(peer.server.subject_token)
        assert len(await opened.fetch(ALL)) == 1
    assert peer.server.logins == ["subject", "subject"]


async def test_google_application_credentials_names_the_file(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    peer.set_values({"orders": 3})
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(peer.file))
    async with open_backend(peer, credentialsFile="") as opened:
        assert len(await opened.fetch(ALL)) == 1
    assert peer.server.logins == ["key"]


async def test_the_metadata_server_is_used_without_a_file(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    peer.set_values({"orders": 3})
    # google-auth reads GCE_METADATA_HOST only when it is imported.
    monkeypatch.setattr(_metadata, "_GCE_METADATA_HOST", f"127.0.0.1:{peer.server.port}")
    async with open_backend(peer, credentialsFile="") as opened:
        assert len(await opened.fetch(ALL)) == 1
    assert peer.server.logins == ["metadataServer"]


async def test_quota_project_is_sent(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer, quotaProject="billing-1") as opened:
        await opened.fetch(ALL)
    assert peer.server.headers[0]["X-Goog-User-Project"] == "billing-1"


async def test_only_the_configured_proxy_is_used(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    peer.set_values({"orders": 3})
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with open_backend(peer) as opened:
        assert len(await opened.fetch(ALL)) == 1
    async with open_backend(peer, url="http://127.0.0.1:1", proxyUrl=peer.proxy.url) as opened:
        assert len(await opened.fetch(ALL)) == 1


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_failed_token_requests_are_not_retried(peer: Peer, status: int) -> None:
    peer.server.token_status = status
    async with open_backend(peer) as opened:
        assert f"HTTP {status}" in (await failure(opened, ALL))[1]
    assert peer.server.logins == ["rejected"]


async def test_an_unreachable_token_endpoint_is_reported(peer: Peer, tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text(peer.server.account.file("http://127.0.0.1:1/token"))
    async with open_backend(peer, credentialsFile=str(file)) as opened:
        assert await failure(opened, ALL) == (FailureClass.UNREACHABLE, "connection refused")


async def test_a_token_request_ends_with_the_deadline_and_leaves_no_thread(peer: Peer, tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text(peer.server.account.file(f"{peer.proxy.url}/token"))
    peer.proxy.stall()
    loop = asyncio.get_running_loop()
    async with open_backend(peer, credentialsFile=str(file)) as opened:
        started = loop.time()
        with pytest.raises(BackendError, match=r"no response within 0\.3s"):
            await opened.fetch(ALL, 0.3)
        waiting = asyncio.create_task(opened.fetch(ALL, 30))
        await asyncio.sleep(0.1)
        await opened.backend.aclose()
        with pytest.raises(BackendUnreachable):
            await waiting
        assert loop.time() - started < 5


@pytest.mark.parametrize(
    "content",
    [
        "",
        "no JSON",
        "[]",
        "{}",
        '{"type": "service_account", "private_key": "not a key"}',
        '{"type": "external_account", "credential_source": {"executable": {"command": "/bin/true"}}}',
        '{"type": "external_account", "credential_source": 7}',
    ],
)
async def test_invalid_credentials_are_reported_and_read_again(peer: Peer, tmp_path: Path, content: str) -> None:
    file = tmp_path / "key.json"
    file.write_text(content)
    async with open_backend(peer, credentialsFile=str(file)) as opened:
        assert await failure(opened, ALL) == (FailureClass.UNAUTHORIZED, "invalid credentials: check credentialsFile")
        file.write_text(peer.server.key_file)
        peer.set_values({"orders": 3})
        assert len(await opened.fetch(ALL)) == 1


# ---- validation


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, "filter: exactly one of filter and promql is required"),
        ({**ALL, "promql": "up"}, "filter: exactly one of filter and promql is required"),
        (
            {"filter": 'resource.type="x"'},
            'filter: must contain a metric type, such as metric.type="pubsub.googleapis.com/topic/byte_cost"',
        ),
        ({"promql": "up", "reducer": "sum"}, "reducer: not valid with promql; use PromQL functions"),
        ({"promql": "up", "groupBy": ["project"]}, "groupBy: not valid with promql; use PromQL functions"),
        (
            {**ALL, "reducer": "sum"},
            "aligner: required with reducer; for example mean for gauges and rate for counters",
        ),
        ({**ALL, "groupBy": ["project"]}, "reducer: required with groupBy"),
        (
            {**ALL, "aligner": "mean", "reducer": "sum", "groupBy": ["zone"]},
            "groupBy[0]: must be a field such as resource.labels.zone, is 'zone'",
        ),
        ({**ALL, "aligner": "mean", "alignmentPeriod": "30s"}, "alignmentPeriod: must be at least 1m"),
        (
            {**ALL, "aligner": "mean", "alignmentPeriod": "10m"},
            "window: must be at least 1m and at least as long as alignmentPeriod",
        ),
        ({**ALL, "project": "../x"}, "project: must be a project ID or number, is '../x'"),
        ({**ALL, "maxSeries": 0}, "maxSeries: must be at least 1, is 0"),
        ({**ALL, "window": "169h"}, "window: must be at most 168h"),
        ({**ALL, "delay": "169h"}, "delay: must be at most 168h"),
    ],
)
def test_invalid_parameters_are_reported(peer: Peer, parameters: Json, expected: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, {"delay": "0s", **parameters})
    assert caught.value.messages == (f"rules[0].parameters.{expected}",)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"project": ""}, "project: must be a project ID or number, is ''"),
        ({"url": "http://example.com"}, "url: must be https, because credentials are sent to it"),
        ({"url": "https://example.com/v3"}, "url: must not have a path"),
        ({"url": "monitoring"}, "url: not an http or https URL with a host"),
        ({"proxyUrl": "proxy:3128"}, "proxyUrl: not an http or https URL with a host"),
        ({"proxyUrl": "http://me:secret@proxy:3128"}, "proxyUrl: must not contain credentials"),
        ({"pageSize": 100_001}, "pageSize: must be at most 100000, is 100001"),
        ({"maxRequestsPerSecond": 0}, "maxRequestsPerSecond: must be at least 1, is 0"),
        ({"tls": {"keyFile": "/x"}}, "tls.certFile: required with keyFile"),
    ],
)
def test_invalid_settings_are_reported(peer: Peer, settings: Json, expected: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, **settings)
    assert caught.value.messages == (f"backends.it.google.{expected}",)
