"""Overload is measured and told, once when it begins and once when it ends."""

import logging
from datetime import timedelta

from prometheus_client import CollectorRegistry

from autoscaler.controller.overload import Load
from autoscaler.telemetry import AutoscalerState, ControllerTelemetry, MetricState, Passed, StateCollector
from tests.builders import NOW, ago, later

PERIOD = timedelta(seconds=15)


def test_late_visits_stretch_the_period_and_that_is_said_once(caplog):
    caplog.set_level(logging.INFO)
    registry = CollectorRegistry()
    load = Load(ControllerTelemetry(registry), PERIOD)
    for second in range(46):
        load.began(timedelta(seconds=7.5), later(second))
    assert registry.get_sample_value("steadyscale_autoscaler_sync_period_ratio") == 1.5
    assert [record.message for record in caplog.records] == ["overloaded: every autoscaler is looked at less often"]
    for second in range(46, 100):
        load.began(timedelta(0), later(second))
    assert registry.get_sample_value("steadyscale_autoscaler_sync_period_ratio") == 1
    assert caplog.records[-1].message == "no longer overloaded"
    assert len(caplog.records) == 2


def test_figures_have_upstreams_names():
    registry = CollectorRegistry()
    figures = ControllerTelemetry(registry)
    for _ in range(2):
        figures.passed(Passed("scale_up", "none"), timedelta(milliseconds=3))
        figures.computed("scale_up", "none", "External", timedelta(milliseconds=3))
    labels = {"action": "scale_up", "error": "none"}
    prefix = "horizontal_pod_autoscaler_controller_"
    assert registry.get_sample_value(f"{prefix}reconciliations_total", labels) == 2
    assert registry.get_sample_value(f"{prefix}reconciliation_duration_seconds_count", labels) == 2
    labels["metric_type"] = "External"
    assert registry.get_sample_value(f"{prefix}metric_computation_total", labels) == 2


def test_the_state_of_each_autoscaler_is_told_when_someone_looks():
    registry = CollectorRegistry()
    metrics = (MetricState("queue", ago(60), in_fallback=True), MetricState("calm"))
    states = [AutoscalerState("shop", "web", 4, ago(5), metrics)]
    registry.register(StateCollector(lambda: states, lambda: NOW))
    place = {"namespace": "shop", "name": "web"}
    assert registry.get_sample_value("horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers") == 1
    assert registry.get_sample_value("steadyscale_autoscaler_decision_age_seconds", place) == 5
    queue = {**place, "metric": "queue"}
    assert registry.get_sample_value("steadyscale_autoscaler_metric_fallback_active", queue) == 1
    assert registry.get_sample_value("steadyscale_autoscaler_metric_failing_seconds", queue) == 60
    assert registry.get_sample_value("steadyscale_autoscaler_metric_failing_seconds", {**place, "metric": "calm"}) == 0
    states.clear()
    assert registry.get_sample_value("steadyscale_autoscaler_decision_age_seconds", place) is None
