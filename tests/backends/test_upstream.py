"""Two of our own, one behind the other: the first has rules, the second passes on what it has none for, or compares."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import ClientSession

from adapter.process import clock
from adapter.backends.loader import create_backend
from adapter.backends.upstream.parse import samples
from adapter.config.loading import Loaded, decode
from adapter.config.model import Limits
from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendRejected
from adapter.metrics.comparison import ComparedValue, ComparisonResult, compare
from adapter.metrics.pipeline import MetricPipeline
from adapter.sample import RawSample
from adapter.server.accounting import RequestAccounting
from adapter.server.debug_endpoints import DebugEndpoints
from adapter.server.external_metrics import ExternalMetrics
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


def document(first: Loopback, *rules: Json, **how: object) -> Json:
    reached = {"url": first.url, "bearerTokenFile": str(first.folder / "token"), "tls": {"caFile": str(first.ca)}}
    return {
        "backends": {"old": {"upstream": reached}},
        "rules": list(rules),
        "delegate": {"backend": "old", **how},
    }


@asynccontextmanager
async def second(config: Json) -> AsyncIterator[tuple[MetricPipeline, ClientSession]]:
    pipeline = MetricPipeline(Loaded(decode(config), {}), create_backend, clock, Telemetry())
    server = Server(
        metrics=ExternalMetrics(pipeline.reader, clock),
        authenticator=TrustingAuth(),
        authorizer=TrustingAuth(),
        limits=Limits(),
        accounting=RequestAccounting(Telemetry(), lambda *_: None, clock),
        debug=DebugEndpoints(pipeline.reader, comparisons=pipeline.comparisons),
    )
    try:
        async with server.serving("127.0.0.1", 0, None) as port, ClientSession(f"http://127.0.0.1:{port}") as session:
            yield pipeline, session
    finally:
        await pipeline.aclose()


async def get(session: ClientSession, path: str) -> tuple[int, Json]:
    async with session.get(path) as answer:
        return answer.status, await answer.json()


async def test_a_name_without_a_rule_is_answered_by_the_one_behind_with_the_selector_it_was_asked_with(first):
    async with second(document(first)) as (_, session):
        code, told = await get(session, f"{ROOT}/my-metric?labelSelector=foo%3Dbaz")
        assert code == 200
        assert [(item["value"], item["metricLabels"]) for item in told["items"]] == [("2", {"foo": "baz"})]


async def test_a_rule_of_our_own_goes_before(first):
    ours = {"name": "my-metric", "static": [{"value": 9}]}
    async with second(document(first, ours)) as (_, session):
        code, told = await get(session, f"{ROOT}/my-metric")
        assert (code, [item["value"] for item in told["items"]]) == (200, ["9"])


async def test_what_neither_knows_is_not_found_and_says_who_was_asked(first):
    async with second(document(first)) as (_, session):
        code, told = await get(session, f"{ROOT}/nobody-has-heard-of-it")
        assert (code, told["reason"]) == (404, "NotFound")
        assert told["message"] == "metric 'nobody-has-heard-of-it': old: unknown metric"


async def test_what_the_one_behind_cannot_read_is_unavailable_with_its_words_for_debugging(first):
    async with second(document(first)) as (_, session):
        code, told = await get(session, f"{ROOT}/negative")
        assert (code, told["message"]) == (503, "metric 'negative': old: refused: HTTP 503 Service Unavailable")
        _, way = await get(session, "/debug/metrics/default/negative")
        assert way["rule"]["origin"] == "delegated to old"
        assert "negative" in way["error"]["detail"]
        assert way["history"]["failures"] == 2


async def test_a_namespace_that_we_may_not_read_there_is_unauthorised(first):
    async with second(document(first)) as (_, session):
        code, told = await get(session, f"{ROOT.replace('default', 'other')}/my-metric")
        assert (code, told["message"]) == (503, "metric 'my-metric': old: unauthorized: HTTP 403 Forbidden")


async def test_switched_off_nothing_is_passed_on(first):
    async with second(document(first, unknown=False, compare=True)) as (pipeline, session):
        code, told = await get(session, f"{ROOT}/my-metric")
        assert (code, told["message"]) == (404, "no rule defines metric 'my-metric' in namespace 'default'")
        assert pipeline.fetcher.query_count == 0


async def compared(pipeline: MetricPipeline, session: ClientSession, metric: str) -> Json:
    await pipeline.reader.read("default", metric, parse(""))
    for _ in range(200):
        _, told = await get(session, "/debug/comparisons")
        found: list[Json] = [one for one in told["items"] if one["metric"] == metric]
        if found:
            return found[0]
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
async def test_answers_are_laid_beside_those_of_the_one_behind_and_never_replaced(
    first, metric, static, result, local, remote
):
    config = document(first, {"name": metric, "static": static}, unknown=False, compare=True)
    async with second(config) as (pipeline, session):
        one = await compared(pipeline, session, metric)
        assert (one["result"], one["local"]["value"], one["delegate"]["value"]) == (result, local, remote)
        assert bool(one["differentSince"]) is (result != "same")
        assert bool(one["delegate"]["error"]) is (remote is None)
        code, told = await get(session, f"{ROOT}/{metric}")
        assert (told["items"][0]["value"] if code == 200 else None) == local


async def test_a_metric_is_compared_once_per_interval_however_often_it_is_read(first):
    config = document(first, {"name": "whole", "static": [{"value": 2}]}, compare=True)
    async with second(config) as (pipeline, session):
        for _ in range(50):
            one = await compared(pipeline, session, "whole")
        assert (one["comparisons"], one["result"]) == (1, "same")


async def test_a_new_configuration_is_passed_on_by_from_then_on(first):
    async with second(document(first)) as (pipeline, session):
        assert (await get(session, f"{ROOT}/whole"))[0] == 200
        without = {key: part for key, part in document(first).items() if key != "delegate"}
        await pipeline.apply(decode(without))
        assert (await get(session, f"{ROOT}/whole"))[0] == 404


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ({"backend": "new"}, "delegate.backend: no upstream backend 'new' under backends"),
        ({"unknownMetrics": False}, "delegate: has no effect; set unknownMetrics or compare to true"),
        ({"tolerance": 1}, "delegate.tolerance: must be at least 0 and less than 1, is 1"),
        ({"interval": "0s"}, "delegate.interval: must be greater than 0"),
    ],
)
def test_settings_that_make_no_sense_are_named(first, how, problem):
    config = document(first)
    config["delegate"] |= how
    with pytest.raises(ConfigInvalid) as caught:
        decode(config)
    assert caught.value.messages == (problem,)


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"namespace": "a/b", "metric": "m"}, ".namespace: must be a name that can stand in a path, is 'a/b'"),
        ({"namespace": "shop", "metric": ".."}, ".metric: must be a name that can stand in a path, is '..'"),
        ({"namespace": "shop", "metric": "m", "selector": "a in"}, ".selector: "),
    ],
)
def test_a_question_that_cannot_be_asked_is_told_when_it_is_read(first, parameters, problem):
    config = document(first, {"name": "m", "backend": "old", "parameters": parameters})
    with pytest.raises(ConfigInvalid) as caught:
        decode(config)
    (said,) = caught.value.messages
    assert said.startswith(f"rules[0].parameters{problem}")


def test_every_form_of_a_value_is_understood():
    body = b"""{"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1", "items": [
        {"metricName": "m", "metricLabels": {"a": "b"}, "timestamp": "2026-01-02T03:04:00Z", "value": "1500m"},
        {"metricName": "m", "metricLabels": null, "timestamp": "2026-01-02T03:04:00Z", "value": "2Ki", "window": 60},
        {"metricName": "m", "value": 7, "windowSeconds": 30}]}"""
    at = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    assert samples(body, NOW) == (
        RawSample(1.5, at, {"a": "b"}),
        RawSample(2048.0, at),
        RawSample(7.0, NOW, {}, timedelta(seconds=30)),
    )


@pytest.mark.parametrize("items", [b"[]", b"null"])
def test_an_empty_list_is_no_series(items):
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
def test_what_is_no_list_of_values_is_refused(body):
    with pytest.raises(BackendRejected):
        samples(body, NOW)


def test_two_zeros_are_the_same_and_a_zero_is_not_a_thousandth():
    assert compare(ComparedValue(0), ComparedValue(0), 0.1) is ComparisonResult.SAME
    assert compare(ComparedValue(0), ComparedValue(1), 0.1) is ComparisonResult.DIFFERENT
