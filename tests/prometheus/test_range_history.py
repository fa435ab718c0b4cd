"""Histories from a real Prometheus: queries, parts of a period, policies and aggregation as for a live read."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from adapter.__main__ import main
from adapter.backends.prometheus import range_query
from adapter.backends.prometheus.parse import decode
from adapter.backends.prometheus.range_query import parts, series_of
from adapter.config.loading import decode as decode_config
from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendError
from adapter.process import clock
from adapter.simulation.range_history import plan_reads, read_range
from tests.builders import make_external_metric, make_pods_metric
from tests.prometheus.server import Server, line, prometheus, require

pytestmark = pytest.mark.prometheus

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def samples() -> str:
    """Return an hour of two queues of one namespace and one of another; between 20 and 40 minutes there are none."""
    rows = []
    for name, namespace, factor in (("a", "shop", 1), ("b", "shop", 10), ("a", "bank", 1000)):
        labels = {"queue": name, "namespace": namespace}
        minutes = [minute for minute in range(61) if not 20 < minute < 40]
        rows += [line("waiting", labels, str(minute * factor), START.timestamp() + 60 * minute) for minute in minutes]
    return "".join(rows)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    require()
    with prometheus(tmp_path_factory.mktemp("range"), samples=samples()) as running:
        yield running


def config(server: Server, **rule):
    rules = [{"name": "waiting", "backend": "main", "query": "waiting", **rule}]
    return {"backends": {"main": {"prometheus": {"url": server.url}}}, "rules": rules}


async def table(server: Server, *metrics, **rule):
    loaded = decode_config(config(server, **rule))
    reads = plan_reads(loaded, "shop", metrics or (make_external_metric("waiting"),))
    period = (START, START + timedelta(hours=1))
    return await read_range(loaded.backends, [*reads.values()], period, MINUTE, clock)


async def test_series_of_the_namespace_are_added(server):
    found, requests = await table(server)
    assert found.columns["waiting"][:3] == (0, 11_000, 22_000)
    assert (len(found.times), found.times[0], requests) == (61, START.timestamp(), 1)


async def test_missing_samples_are_gaps_after_the_lookback(server):
    found, _ = await table(server)
    gaps = [index for index, value in enumerate(found.columns["waiting"]) if value is None]
    assert gaps in (list(range(25, 40)), list(range(26, 40)))  # Prometheus 3 excludes a sample of exactly five minutes


async def test_selector_and_aggregation_apply(server):
    selected = make_external_metric("waiting", selector={"queue": "b"})
    found, requests = await table(server, selected, make_external_metric("waiting"), aggregation="max")
    assert found.columns["waiting{queue=b}"][3] == found.columns["waiting"][3] == 30_000
    assert requests == 1  # both metrics have the same query


async def test_metrics_of_one_rule_share_its_range_queries(server):
    metrics = [make_external_metric("waiting", selector={"queue": "a", "app": f"app-{index}"}) for index in range(100)]
    found, requests = await table(server, *metrics, onEmpty="zero")
    assert (len(found.columns), requests) == (100, 1)


async def test_policy_for_missing_series_applies(server):
    found, _ = await table(server, onEmpty="zero")
    assert found.columns["waiting"][30] == 0


async def test_template_is_rendered_for_the_selector(server):
    metric = make_external_metric("waiting", selector={"queue": "b"})
    found, _ = await table(server, metric, query="sum(waiting{<<.LabelMatchers>>})")
    assert found.columns["waiting{queue=b}"][2] == 20_000


async def test_long_period_is_fetched_in_parts(server, monkeypatch):
    whole, _ = await table(server)
    monkeypatch.setattr(range_query, "MAX_POINTS", 7)
    in_parts, requests = await table(server)
    assert (in_parts, requests) == (whole, 9)


async def test_invalid_query_is_an_error(server):
    with pytest.raises(BackendError, match="parse error"):
        await table(server, query="sum(")


async def test_period_without_values_is_refused(server):
    with pytest.raises(ConfigInvalid, match="no value of any of the metrics"):
        await table(server, query="absent_metric")


def test_parts_have_every_step_once():
    found = list(parts(START, START + MINUTE * (range_query.MAX_POINTS + 1), MINUTE))
    last = START + MINUTE * range_query.MAX_POINTS
    assert found == [(START, last - MINUTE), (last, last + MINUTE)]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"resultType": "vector", "result": []}, "the result is a vector"),
        ({"resultType": "matrix", "result": 3}, "not a result of a range query"),
    ],
)
def test_other_response_is_an_error(body, message):
    with pytest.raises(BackendError, match=message):
        series_of(decode(200, json.dumps({"status": "success", "data": body}).encode()))


def test_partial_response_is_an_error():
    data = {"resultType": "matrix", "result": []}
    body = json.dumps({"status": "success", "data": data, "warnings": ["store unavailable"]}).encode()
    with pytest.raises(BackendError, match="may be partial"):
        series_of(decode(200, body))


@pytest.mark.parametrize(
    ("metric", "rule", "message"),
    [
        (make_pods_metric(), {}, "Pods metrics have no rule"),
        (make_external_metric("other"), {}, "no rule defines the metric 'other' in namespace 'shop'"),
        (
            make_external_metric("waiting"),
            {"backend": "", "query": "", "static": [{"value": 1}]},
            "not from a Prometheus",
        ),
    ],
)
def test_metric_without_a_query_is_a_problem(server, metric, rule, message):
    with pytest.raises(ConfigInvalid, match=message):
        plan_reads(decode_config(config(server, **rule)), "shop", (metric,))


async def test_too_many_steps_are_refused(server):
    loaded = decode_config(config(server))
    reads = plan_reads(loaded, "shop", (make_external_metric("waiting"),))
    period = (START, START + timedelta(days=3650))
    with pytest.raises(ConfigInvalid, match="more than 3,000,000 steps"):
        await read_range(loaded.backends, [*reads.values()], period, timedelta(seconds=1), clock)


SPEC = """
apiVersion: steadyscale.dev/v1beta1
kind: PodAutoscaler
metadata: {name: orders, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: orders}
  maxReplicas: 90
  metrics:
  - {type: External, external: {metric: {name: waiting}, target: {type: AverageValue, averageValue: "10"}}}
"""


@pytest.mark.parametrize("is_available", [True, False])
async def test_command_reads_from_prometheus(server, tmp_path, capsys, nothing_blocks_the_loop, is_available):
    nothing_blocks_the_loop.deactivate()
    (tmp_path / "orders.yaml").write_text(SPEC)
    document = config(server)
    if not is_available:
        document["backends"]["main"]["prometheus"]["url"] = "http://127.0.0.1:1"
    (tmp_path / "config.yaml").write_text(json.dumps(document))
    arguments = ["--history=prometheus", f"--config={tmp_path / 'config.yaml'}", "-o", "json"]
    period = ["--from=2026-03-01T12:00:00Z", "--to=2026-03-01T13:00:00Z"]
    code = await asyncio.to_thread(main, ["simulate", str(tmp_path / "orders.yaml"), *arguments, *period])
    printed = capsys.readouterr()
    if is_available:
        assert (code, printed.err) == (0, "1 range query\n")
        assert json.loads(printed.out)["variants"][0]["measures"]["unknown_seconds"] in {14 * 60, 15 * 60}
    else:
        assert code == 2
        assert printed.err.startswith("Prometheus cannot be read: ")
