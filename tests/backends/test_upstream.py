"""Tests of the upstream backend and of delegation, with two Steadyscale servers: the second delegates to the first."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import ClientSession

from adapter.backends.loader import create_backend
from adapter.backends.upstream.parse import samples
from adapter.config.loading import Loaded, decode
from adapter.config.model import Limits
from adapter.debug.decision_log import DecisionLog
from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendRejected
from adapter.metrics.comparison import ComparedValue, ComparisonResult, compare
from adapter.metrics.pipeline import MetricPipeline
from adapter.process import clock
from adapter.sample import RawSample
from adapter.server.accounting import RequestAccounting
from adapter.server.debug_endpoints import DebugEndpoints, DebugSources
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.listener import listen
from adapter.server.server import Server
from adapter.telemetry import Telemetry
from autoscaler.values.selector import parse
from tests.loopback import Loopback, loopback
from tests.unit.adapter.served import TrustingAuth

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ROOT = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default"
Json = dict[str, Any]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    with loopback(tmp_path_factory.mktemp("first")) as running:
        (running.folder / "token").write_text("good")
        yield running


def document(first: Loopback, *rules: Json, **delegate: object) -> Json:
    upstream = {"url": first.url, "bearerTokenFile": str(first.folder / "token"), "tls": {"caFile": str(first.ca)}}
    return {
        "backends": {"old": {"upstream": upstream}},
        "rules": list(rules),
        "delegate": {"backend": "old", **delegate},
    }


@asynccontextmanager
async def second(config: Json) -> AsyncIterator[tuple[MetricPipeline, ClientSession]]:
    pipeline = MetricPipeline(Loaded(decode(config), {}), create_backend, clock, Telemetry())
    sources = DebugSources(DecisionLog(), pipeline.reader, dict, clock, comparisons=pipeline.comparisons)
    server = Server(
        metrics=ExternalMetrics(pipeline.reader, clock),
        authenticator=TrustingAuth(),
        authorizer=TrustingAuth(),
        limits=Limits(),
        accounting=RequestAccounting(Telemetry(), lambda *_: None, clock),
        debug=DebugEndpoints(sources, Limits().request_timeout),
    )
    try:
        async with (
            server.serving(listen("127.0.0.1", 0), None) as port,
            ClientSession(f"http://127.0.0.1:{port}") as session,
        ):
            yield pipeline, session
    finally:
        await pipeline.aclose()


async def get(session: ClientSession, path: str) -> tuple[int, Json]:
    async with session.get(path) as response:
        return response.status, await response.json()


async def test_metric_without_rule_is_read_from_the_delegate_with_its_selector(first):
    async with second(document(first)) as (_, session):
        code, body = await get(session, f"{ROOT}/my-metric?labelSelector=foo%3Dbaz")
        assert code == 200
        assert [(item["value"], item["metricLabels"]) for item in body["items"]] == [("2", {"foo": "baz"})]


async def test_rule_takes_precedence_over_the_delegate(first):
    rule = {"name": "my-metric", "static": [{"value": 9}]}
    async with second(document(first, rule)) as (_, session):
        code, body = await get(session, f"{ROOT}/my-metric")
        assert (code, [item["value"] for item in body["items"]]) == (200, ["9"])


async def test_metric_unknown_to_the_delegate_is_not_found(first):
    async with second(document(first)) as (_, session):
        code, body = await get(session, f"{ROOT}/missing")
        assert (code, body["reason"]) == (404, "NotFound")
        assert body["message"] == "metric 'missing': old: unknown metric"


async def test_error_of_the_delegate_is_unavailable_and_detailed_in_the_trace(first):
    async with second(document(first)) as (_, session):
        code, body = await get(session, f"{ROOT}/negative")
        assert (code, body["message"]) == (503, "metric 'negative': old: refused: HTTP 503 Service Unavailable")
        _, trace = await get(session, "/debug/metrics/default/negative")
        assert trace["rule"]["origin"] == "delegated to old"
        assert "negative" in trace["error"]["detail"]
        assert trace["history"]["failures"] == 2


async def test_forbidden_namespace_of_the_delegate_is_unauthorized(first):
    async with second(document(first)) as (_, session):
        code, body = await get(session, f"{ROOT.replace('default', 'other')}/my-metric")
        assert (code, body["message"]) == (503, "metric 'my-metric': old: unauthorized: HTTP 403 Forbidden")


async def test_unknown_metrics_false_disables_delegation(first):
    async with second(document(first, unknownMetrics=False, compare=True)) as (pipeline, session):
        code, body = await get(session, f"{ROOT}/my-metric")
        assert (code, body["message"]) == (404, "no rule defines metric 'my-metric' in namespace 'default'")
        assert pipeline.fetcher.query_count == 0


async def compared(pipeline: MetricPipeline, session: ClientSession, metric: str) -> Json:
    await pipeline.reader.read("default", metric, parse(""))
    for _ in range(200):
        _, body = await get(session, "/debug/comparisons")
        for item in body["items"]:
            if item["metric"] == metric:
                return item
        await asyncio.sleep(0.02)
    raise AssertionError(metric)


@pytest.mark.parametrize(
    ("metric", "static", "result", "local", "remote"),
    [
        ("whole", [{"value": 2.1}], "same", "2100m", "2"),
        ("whole", [{"value": 3}], "different", "3", "2"),
        ("negative", [{"value": 3}], "only local", "3", None),
        ("my-metric", [{"value": -1}], "only delegate", None, "3100m"),
        ("negative", [{"value": -1}], "same", None, None),
    ],
)
async def test_values_are_compared_with_the_delegate_and_never_replaced(first, metric, static, result, local, remote):
    config = document(first, {"name": metric, "static": static}, unknownMetrics=False, compare=True)
    async with second(config) as (pipeline, session):
        item = await compared(pipeline, session, metric)
        assert (item["result"], item["local"]["value"], item["delegate"]["value"]) == (result, local, remote)
        assert bool(item["differentSince"]) is (result != "same")
        assert bool(item["delegate"]["error"]) is (remote is None)
        code, body = await get(session, f"{ROOT}/{metric}")
        assert (body["items"][0]["value"] if code == 200 else None) == local


async def test_metric_is_compared_once_per_interval(first):
    config = document(first, {"name": "whole", "static": [{"value": 2}]}, compare=True)
    async with second(config) as (pipeline, session):
        for _ in range(50):
            item = await compared(pipeline, session, "whole")
        assert (item["comparisons"], item["result"]) == (1, "same")


async def test_configuration_change_applies_to_delegation(first):
    async with second(document(first)) as (pipeline, session):
        assert (await get(session, f"{ROOT}/whole"))[0] == 200
        without = {key: part for key, part in document(first).items() if key != "delegate"}
        await pipeline.apply(decode(without))
        assert (await get(session, f"{ROOT}/whole"))[0] == 404


@pytest.mark.parametrize(
    ("delegate", "problem"),
    [
        ({"backend": "new"}, "delegate.backend: no upstream backend 'new' under backends"),
        ({"unknownMetrics": False}, "delegate: has no effect; set unknownMetrics or compare to true"),
        ({"tolerance": 1}, "delegate.tolerance: must be at least 0 and less than 1, is 1"),
        ({"interval": "0s"}, "delegate.interval: must be greater than 0, is 0s"),
    ],
)
def test_invalid_delegate_settings_are_reported(first, delegate, problem):
    config = document(first)
    config["delegate"] |= delegate
    with pytest.raises(ConfigInvalid) as caught:
        decode(config)
    assert caught.value.messages == (problem,)


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"namespace": "a/b", "metric": "m"}, ".namespace: must be a valid URL path segment, is 'a/b'"),
        ({"namespace": "shop", "metric": ".."}, ".metric: must be a valid URL path segment, is '..'"),
        ({"namespace": "shop", "metric": "m", "selector": "a in"}, ".selector: "),
    ],
)
def test_invalid_parameters_are_reported(first, parameters, problem):
    config = document(first, {"name": "m", "backend": "old", "parameters": parameters})
    with pytest.raises(ConfigInvalid) as caught:
        decode(config)
    (message,) = caught.value.messages
    assert message.startswith(f"rules[0].parameters{problem}")


def test_value_formats_are_parsed():
    body = b"""{"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1", "items": [
        {"metricName": "m", "metricLabels": {"a": "b"}, "timestamp": "2026-01-02T03:04:00Z", "value": "1500m"},
        {"metricName": "m", "metricLabels": null, "timestamp": "2026-01-02T03:04:00Z", "value": "2Ki", "window": 60},
        {"metricName": "m", "value": 7, "windowSeconds": 30}]}"""
    timestamp = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    assert samples(body, NOW) == (
        RawSample(1.5, timestamp, {"a": "b"}),
        RawSample(2048.0, timestamp),
        RawSample(7.0, NOW, {}, timedelta(seconds=30)),
    )


@pytest.mark.parametrize("items", [b"[]", b"null"])
def test_empty_list_has_no_series(items):
    assert samples(b'{"kind": "ExternalMetricValueList", "items": ' + items + b"}", NOW) == ()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"kind": "Status"}',
        b'{"kind": "ExternalMetricValueList", "items": [{"value": "many"}]}',
        b'{"kind": "ExternalMetricValueList", "items": [{"value": "1", "timestamp": "soon"}]}',
        b'{"kind": "ExternalMetricValueList", "items": [{"value": null}]}',
    ],
)
def test_response_that_is_not_a_value_list_is_rejected(body):
    with pytest.raises(BackendRejected):
        samples(body, NOW)


def test_zero_equals_zero_and_differs_from_any_other_value():
    assert compare(ComparedValue(0), ComparedValue(0), 0.1) is ComparisonResult.SAME
    assert compare(ComparedValue(0), ComparedValue(1), 0.1) is ComparisonResult.DIFFERENT
