"""Overload detection and the metrics of the controller."""

import logging
from datetime import timedelta

from prometheus_client import CollectorRegistry

from autoscaler.controller.overload import OverloadMonitor
from autoscaler.controller.reporting import state_of
from autoscaler.telemetry import AutoscalerState, ControllerTelemetry, MetricState, StateCollector
from tests.builders import (
    NOW,
    ago,
    external_reading,
    inputs_at,
    later,
    make_external_metric,
    make_fallback,
    make_spec,
    run_reconciles,
    unavailable_reading,
)

PERIOD = timedelta(seconds=15)


def test_late_reconciles_increase_the_period_ratio_and_are_logged_once(caplog):
    caplog.set_level(logging.INFO)
    registry = CollectorRegistry()
    monitor = OverloadMonitor(ControllerTelemetry(registry), PERIOD)
    for second in range(46):
        monitor.record_delay(timedelta(seconds=7.5), later(second))
    assert registry.get_sample_value("steadyscale_autoscaler_sync_period_ratio") == 1.5
    assert [record.message for record in caplog.records] == ["controller overloaded: reconciles start late"]
    for second in range(46, 100):
        monitor.record_delay(timedelta(0), later(second))
    assert registry.get_sample_value("steadyscale_autoscaler_sync_period_ratio") == 1
    assert caplog.records[-1].message == "controller no longer overloaded"
    assert len(caplog.records) == 2


def test_metrics_have_the_names_of_upstream():
    registry = CollectorRegistry()
    telemetry = ControllerTelemetry(registry)
    for _ in range(2):
        telemetry.reconciles.record(timedelta(milliseconds=3), "scale_up", "none")
        telemetry.metrics.record(timedelta(milliseconds=3), "scale_up", "none", "External")
    labels = {"action": "scale_up", "error": "none"}
    prefix = "horizontal_pod_autoscaler_controller_"
    assert registry.get_sample_value(f"{prefix}reconciliations_total", labels) == 2
    assert registry.get_sample_value(f"{prefix}reconciliation_duration_seconds_count", labels) == 2
    assert registry.get_sample_value(f"{prefix}reconciliation_duration_seconds_sum", labels) == 0.006
    counts = [
        registry.get_sample_value(f"{prefix}reconciliation_duration_seconds_bucket", {**labels, "le": bound})
        for bound in ("0.002", "0.004", "16.384", "+Inf")
    ]
    assert counts == [0, 2, 2, 2]
    labels["metric_type"] = "External"
    assert registry.get_sample_value(f"{prefix}metric_computation_total", labels) == 2


def test_state_of_each_autoscaler_is_collected_at_scrape_time():
    registry = CollectorRegistry()
    metrics = (MetricState("queue", "app=web", ago(60), in_fallback=True), MetricState("ok"))
    conditions = (("AbleToScale", "True", "ReadyForNewScale"), ("ScalingActive", "False", "InvalidSpec"))
    states = [
        AutoscalerState("shop", "web", 4, ago(5), metrics, 3, (2, 20), conditions),
        AutoscalerState("shop", "lost", 1, ago(5)),
    ]
    registry.register(StateCollector(lambda: states, lambda: NOW))
    labels = {"namespace": "shop", "name": "web"}
    assert registry.get_sample_value("horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers") == 2
    assert registry.get_sample_value("steadyscale_autoscaler_decision_age_seconds", labels) == 5
    queue = {**labels, "metric": "queue", "selector": "app=web"}
    assert registry.get_sample_value("steadyscale_autoscaler_metric_fallback_active", queue) == 1
    assert registry.get_sample_value("steadyscale_autoscaler_metric_failing_seconds", queue) == 60
    assert (
        registry.get_sample_value(
            "steadyscale_autoscaler_metric_failing_seconds", {**labels, "metric": "ok", "selector": ""}
        )
        == 0
    )
    for kind, value in {"min": 2, "max": 20, "current": 3, "desired": 4}.items():
        assert registry.get_sample_value(f"steadyscale_autoscaler_{kind}_replicas", labels) == value
    assert registry.get_sample_value("steadyscale_autoscaler_max_replicas", {**labels, "name": "lost"}) is None
    inactive = {**labels, "condition": "ScalingActive", "status": "False", "reason": "InvalidSpec"}
    assert registry.get_sample_value("steadyscale_autoscaler_condition", inactive) == 1
    assert registry.get_sample_value("steadyscale_autoscaler_condition", {**inactive, "status": "True"}) is None
    states.clear()
    assert registry.get_sample_value("steadyscale_autoscaler_decision_age_seconds", labels) is None


def test_state_of_one_metric_with_two_selectors_has_two_series():
    first, second = (
        make_external_metric(selector={"queue": which}, fallback=make_fallback()) for which in ("red", "blue")
    )
    *_, decision = run_reconciles(
        make_spec(first, first, second),
        inputs_at((0, 180), external_reading(30), external_reading(30), unavailable_reading()),
    )

    assert [(metric.selector, metric.in_fallback) for metric in state_of("shop/web", decision).metrics] == [
        ("queue=red", False),
        ("queue=blue", True),
    ]
