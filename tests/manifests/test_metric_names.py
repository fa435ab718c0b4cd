"""Alerts and dashboard use metrics that exist, and alerts fire when they should."""

import json
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.telemetry import Telemetry
from autoscaler.kube.freshness import Freshness
from autoscaler.kube.metrics import KubeMetrics
from autoscaler.telemetry import AutoscalerState, ControllerTelemetry, MetricState, StateCollector
from tests.manifests.rendered import MANIFESTS
from tests.prometheus.server import require

ALERTS = MANIFESTS / "components" / "prometheus-operator" / "alerts.yaml"
DASHBOARD = MANIFESTS / "components" / "grafana" / "steadyscale.json"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
FOREIGN_METRICS = {"aggregator_unavailable_apiservice", "up"}
"""Metrics of the API server and of Prometheus; tests/docs checks the former on a real API server."""

_NAME = re.compile(r"\b(?:steadyscale|horizontal_pod_autoscaler|aggregator)_\w+|\bup\b")
_MATCHED = re.compile(r"(\w+)\{([^}]*)\}")


def exported() -> dict[str, set[str]]:
    """Return every metric that the service exports, with its labels."""
    telemetry = Telemetry()
    controller = ControllerTelemetry(telemetry.registry)
    metric = MetricState("queue", "app=web", NOW - timedelta(minutes=1), in_fallback=True)
    state = AutoscalerState(
        "shop", "web", 3, NOW, (metric,), 3, (1, 5), (("ScalingActive", "True", "ValidMetricFound"),)
    )
    telemetry.registry.register(StateCollector(lambda: [state], lambda: NOW))
    telemetry.requests.labels("metric", "200").inc()
    telemetry.request_duration.labels("metric").observe(0.1)
    telemetry.record_query("main", "ok", 0.1)
    telemetry.metric_failures.labels("no series").inc()
    controller.reconciles.record(timedelta(seconds=1), "none", "none")
    controller.metrics.record(timedelta(seconds=1), "none", "none", "External")
    kube, watch = KubeMetrics(telemetry.registry), Freshness("pods", lambda: 0.0)
    kube.watches.add(watch)
    kube.task_restarts.labels("events").inc()
    kube.events_dropped.labels("rate_limited").inc()
    found: dict[str, set[str]] = {}
    for line in telemetry.render()[0].decode().splitlines():
        if not line.startswith("#"):
            name, _, labels = line.partition("{")
            found.setdefault(name.split()[0], set()).update(re.findall(r'(\w+)="', labels))
    return found


def rules() -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load(ALERTS.read_text())["spec"]["groups"]:
        yield from group["rules"]


def expressions() -> Iterator[object]:
    yield from (pytest.param(rule["expr"], id=rule["alert"]) for rule in rules())
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        yield from (pytest.param(target["expr"], id=panel["title"]) for target in panel["targets"])
    yield from (pytest.param(one["query"], id=one["name"]) for one in dashboard["templating"]["list"][1:])


@pytest.mark.parametrize("expression", list(expressions()))
def test_used_metrics_and_labels_are_exported(expression: str) -> None:
    known = exported()
    named = set(_NAME.findall(expression))
    assert named
    assert named - FOREIGN_METRICS <= known.keys()
    for name, matchers in _MATCHED.findall(expression):
        assert name in FOREIGN_METRICS or set(re.findall(r"(\w+)[=!]", matchers)) <= known[name]
    labels = set().union(*(known[name] for name in named - FOREIGN_METRICS))
    for grouping in re.findall(r"by \(([^)]*)\)", expression):
        assert set(grouping.split(", ")) <= labels


def test_alerts_have_severity_summary_and_description() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"].keys() == {"summary", "description"}


def test_operations_page_lists_every_alert() -> None:
    page = (MANIFESTS.parent / "docs" / "operations.md").read_text()
    assert [rule["alert"] for rule in rules() if f"`{rule['alert']}`" not in page] == []


def promtool(folder: Path, *words: str) -> None:
    done = subprocess.run(["promtool", *words], cwd=folder, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603, S607
    assert done.returncode == 0, done.stdout + done.stderr


def series(name: str, values: str) -> dict[str, str]:
    return {"series": name, "values": values}


def firing(alert: str, time: str, **labels: str) -> dict[str, object]:
    return several(alert, time, labels)


def several(alert: str, time: str, *labels: dict[str, str]) -> dict[str, object]:
    rule = next(rule for rule in rules() if rule["alert"] == alert)
    expected = [{"exp_labels": {**rule["labels"], **one}} for one in labels]
    return {"eval_time": time, "alertname": alert, "exp_alerts": expected}


METRIC_LABELS = 'namespace="shop",name="web",metric="queue",selector="app=web"'


def condition(name: str, kind: str, status: str, reason: str) -> str:
    labels = f'namespace="shop",name="{name}",condition="{kind}",status="{status}",reason="{reason}"'
    return f"steadyscale_autoscaler_condition{{{labels}}}"


@pytest.mark.prometheus
def test_alerts_fire_during_an_outage_and_not_before(tmp_path: Path) -> None:
    require()
    groups = yaml.safe_load(ALERTS.read_text())["spec"]
    for group in groups["groups"]:
        for rule in group["rules"]:
            del rule["annotations"]  # only the conditions are tested
    (tmp_path / "rules.yaml").write_text(json.dumps(groups))
    promtool(tmp_path, "check", "rules", "rules.yaml")
    metric = {"namespace": "shop", "name": "web", "metric": "queue", "selector": "app=web"}
    quiet = [{"eval_time": "1m", "alertname": rule["alert"], "exp_alerts": []} for rule in rules()]
    outage = {
        "interval": "30s",
        "input_series": [
            series('up{job="steadyscale"}', "1x40"),
            series('aggregator_unavailable_apiservice{name="v1beta1.external.metrics.k8s.io"}', "0x4 1x36"),
            series("steadyscale_autoscaler_leader", "1x4 0x36"),
            series('steadyscale_autoscaler_shards{instance="a"}', "8x40"),
            series('steadyscale_autoscaler_shards_held{instance="a"}', "5x4 4x36"),
            series('steadyscale_autoscaler_shards_held{instance="b"}', "3x40"),
            series("steadyscale_autoscaler_sync_period_ratio", "1x4 2x36"),
            series(f"steadyscale_autoscaler_metric_failing_seconds{{{METRIC_LABELS}}}", "0x4 30+30x36"),
            series(f"steadyscale_autoscaler_metric_fallback_active{{{METRIC_LABELS}}}", "0x9 1x31"),
            series("steadyscale_autoscaler_reconcile_failures_total", "0x4 1x36"),
            series('steadyscale_watch_age_seconds{resource="pods"}', "60x4 30+30x36"),
            series('steadyscale_watch_age_seconds{resource="podautoscalers"}', "60x40"),
            series('steadyscale_task_restarts_total{task="events"}', "0x4 1x36"),
            series('steadyscale_backend_queries_total{backend="main",result="ok"}', "0+2x4 8x36"),
            series('steadyscale_backend_queries_total{backend="main",result="unreachable"}', "0x4 0+2x36"),
        ],
        "alert_rule_test": [
            *quiet,
            firing("SteadyscaleUnavailable", "6m"),
            firing("SteadyscaleNoLeader", "6m"),
            firing("SteadyscaleShardUnheld", "6m"),
            firing("SteadyscaleMetricFailing", "4m", **metric),
            firing("SteadyscaleFallbackActive", "6m", **metric),
            firing("SteadyscaleBackendFailing", "14m", backend="main"),
            firing("SteadyscaleReconcileDelayed", "14m"),
            firing("SteadyscaleReconcileFailing", "4m"),
            firing("SteadyscaleWatchOutdated", "6m", resource="pods"),
            firing("SteadyscaleTaskRestarted", "4m", task="events"),
        ],
    }
    states = {
        "interval": "30s",
        "input_series": [
            series(condition("web", "ScalingLimited", "True", "TooManyReplicas"), "_x3 1x77"),
            series(condition("worker", "ScalingLimited", "True", "TooFewReplicas"), "1x80"),
            series(condition("paused", "AbleToScale", "False", "Paused"), "1x80"),
            series(condition("off", "ScalingActive", "False", "ScalingDisabled"), "1x80"),
            series(condition("twice", "AbleToScale", "False", "AmbiguousTarget"), "_x3 1x77"),
            series(condition("blind", "ScalingActive", "False", "FailedGetExternalMetric"), "_x3 1x77"),
            series(condition("lost", "AbleToScale", "False", "FailedGetScale"), "_x3 1x77"),
        ],
        "alert_rule_test": [
            {"eval_time": "14m", "alertname": "SteadyscaleAtMaximum", "exp_alerts": []},
            firing("SteadyscaleAtMaximum", "18m", namespace="shop", name="web"),
            firing("SteadyscaleConflict", "8m", namespace="shop", name="twice"),
            several(
                "SteadyscaleScalingInactive",
                "8m",
                {"namespace": "shop", "name": "blind", "reason": "FailedGetExternalMetric"},
                {"namespace": "shop", "name": "lost", "reason": "FailedGetScale"},
            ),
        ],
    }
    shards = {
        "interval": "30s",
        "input_series": [
            series('steadyscale_autoscaler_shards{instance="a"}', "8x40"),
            series('steadyscale_autoscaler_shards_held{instance="a"}', "8x40"),
            series('steadyscale_autoscaler_shards_unheld{instance="a"}', "0x4 1x36"),
        ],
        "alert_rule_test": [
            {"eval_time": "1m", "alertname": "SteadyscaleShardUnheld", "exp_alerts": []},
            firing("SteadyscaleShardUnheld", "4m"),
        ],
    }
    without_shards = {
        "interval": "30s",
        "input_series": [
            series("steadyscale_autoscaler_shards", "1x40"),
            series("steadyscale_autoscaler_shards_held", "0x40"),
        ],
        "alert_rule_test": [{"eval_time": "10m", "alertname": "SteadyscaleShardUnheld", "exp_alerts": []}],
    }
    down = {
        "interval": "30s",
        "input_series": [series('up{job="steadyscale"}', "1x4 0x36")],
        "alert_rule_test": [firing("SteadyscaleDown", "10m")],
    }
    tests = [outage, states, shards, without_shards, down]
    (tmp_path / "test.yaml").write_text(json.dumps({"rule_files": ["rules.yaml"], "tests": tests}))
    promtool(tmp_path, "test", "rules", "test.yaml")
